"""Arguments and options that several commands take."""

from typing import Annotated

import typer

Model = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="A domain with options (sysadmin:[bold]ring[/bold]:8), "
        "rddl:[bold]DOMAIN[/bold]:INSTANCE, or a JSON model file.",
    ),
]
BasisName = Annotated[str, typer.Option(help="Basis: singles, pairs or objects.")]
Seed = Annotated[int, typer.Option(help="Seed of everything random.", min=0)]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def check_output(path: str | None) -> None:
    """Refuse, before hours of work, a path that cannot be written in the end."""
    from pathlib import Path

    from fsmdp.errors import ModelError

    if path is None:
        return
    if not Path(path).parent.is_dir() or Path(path).is_dir():
        raise ModelError(f"cannot write {path!r}: expected a file in a folder that exists.")
