"""The command line's one application, which every command registers with."""

from typing import Annotated

import typer

app = typer.Typer(
    name="fsmdp",
    help="Planning and learning in factored-state MDPs.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    add_completion=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(version("fsmdp"))
        raise typer.Exit


@app.callback()
def commands(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Planning and learning in factored-state MDPs."""
