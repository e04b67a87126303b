"""The command line's one application, and how commands register with it and word their help."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from fsmdp.cli import lists

SECTIONS = {
    "Start here": ("demo", "inspect"),
    "Plan": ("plan", "simulate", "verify", "ippc"),
    "Learn": ("learn", "discover", "compare", "report"),
    "The paper": ("reproduce",),
}
"""Commands in the order of the help."""

Function = TypeVar("Function", bound=Callable[..., Any])


def in_words(parameters: list[Any]) -> list[Any]:
    """Parameters whose help names what to write, and no type of Python's."""
    for one in parameters:
        if isinstance(one, TyperArgument):
            one.display_type_rich = lambda ctx: None  # type: ignore[method-assign]  # noqa: ARG005
        elif isinstance(one, TyperOption) and one.metavar is None:
            # Other kinds have a word of their own, given where they are declared.
            one.metavar = "" if one.is_flag else "NUMBER"
    return parameters


NARROWEST = 40
"""Columns that text and tables need; narrower terminals wrap them."""


def keep_wide() -> None:
    """Let no setting and no terminal be so narrow that nothing is shown."""
    wanted = os.environ.get("COLUMNS", "")
    columns = int(wanted) if wanted.isdecimal() else shutil.get_terminal_size().columns
    if columns < NARROWEST:
        os.environ["COLUMNS"] = str(NARROWEST)


class Group(TyperGroup):
    """All commands, in the order of their sections."""

    def main(self, *arguments: Any, **options: Any) -> Any:
        """Run a command, on a screen that is wide enough."""
        keep_wide()
        return super().main(*arguments, **options)

    def get_params(self, ctx: Any) -> list[Any]:
        """Parameters, with words in place of types."""
        return in_words(super().get_params(ctx))

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        """Names by section."""
        return [name for names in SECTIONS.values() for name in names if name in self.commands]


class Command(TyperCommand):
    """A command whose help names what is registered, which is imported only for the help."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Parameters, with words in place of types."""
        return in_words(super().get_params(ctx))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Put the names in place of such words as METHODS, and show the help."""
        from fsmdp.cli.lists import written_out

        for option in self.params:
            if isinstance(option, TyperOption) and option.help:
                option.help = written_out(option.help)
        self.epilog = written_out(self.epilog or "")
        super().format_help(ctx, formatter)


app = typer.Typer(
    name="fsmdp",
    cls=Group,
    help="Planning and learning in factored-state MDPs.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)


def command(name: str, *examples: str, more: str = "") -> Callable[[Function], Function]:
    """Register a function as a command, with examples at the end of its help, and more text."""
    # A colon ends a piece of markup, lest two of them be read as a picture's name.
    shown = (f"[bold]{one.replace(':', ':[/bold][bold]')}[/bold]" for one in examples)
    section = next(title for title, names in SECTIONS.items() if name in names)
    return app.command(
        name=name,
        cls=Command,
        epilog="\n\n".join(["Examples:", *shown, *([more] if more else [])]),
        rich_help_panel=section,
    )


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(version("fsmdp"))
        raise typer.Exit


@app.callback(epilog="fsmdp COMMAND --help shows options and examples of a command.")
def commands(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Planning and learning in factored-state MDPs."""


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
