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
    from fsmdp.foundation.disk import check_path

    if path is not None:
        check_path(path)
