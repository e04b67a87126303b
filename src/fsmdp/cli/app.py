"""The command line's one application, which every command registers with."""

import typer

app = typer.Typer(
    name="fsmdp",
    help="Planning and learning in factored-state MDPs.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    add_completion=False,
)


@app.callback()
def commands() -> None:
    """Planning and learning in factored-state MDPs."""
