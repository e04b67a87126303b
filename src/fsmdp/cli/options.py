"""Arguments and options that several commands take."""

from __future__ import annotations

from typing import Annotated

import typer

from fsmdp.cli import lists

Model = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="A domain with options (sysadmin:[bold]ring[/bold]:8), "
        "rddl:[bold]DOMAIN[/bold]:INSTANCE, a JSON model file, or "
        "my_module:make, which is imported: its code runs.",
        autocompletion=lists.complete_model,
    ),
]
BasisName = Annotated[
    str,
    typer.Option(metavar="NAME", help="Basis: BASES.", autocompletion=lists.complete(lists.bases)),
]
Seed = Annotated[int, typer.Option(help="Seed for everything random.", min=0)]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress.")]
ExecutorName = Annotated[
    str,
    typer.Option(
        "--executor",
        metavar="NAME",
        help="EXECUTORS.",
        autocompletion=lists.complete(lists.executors),
    ),
]
Address = Annotated[
    str | None, typer.Option(metavar="ADDRESS", help="Address of a running Ray or Dask cluster.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def check_output(path: str | None) -> None:
    """Refuse, before hours of work, a path that cannot be written in the end."""
    from fsmdp.foundation.disk import check_path

    if path is not None:
        check_path(path)
