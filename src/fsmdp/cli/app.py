"""The command line's one application: how commands register with it, word and complete their help.

What is registered elsewhere (learners, methods, claims) is imported only when it is listed.
"""

import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, TypeVar

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption


def bases() -> Iterable[str]:
    """Ready-made bases."""
    from fsmdp.io.readers import BASES

    return BASES


def claims() -> Iterable[str]:
    """Claims of the paper."""
    from fsmdp.reproduction.claim import NAMES

    return NAMES


def executors() -> Iterable[str]:
    """What carries runs out."""
    from fsmdp.experiments.executors import EXECUTORS

    return EXECUTORS


def learners() -> Iterable[str]:
    """Learners and baselines."""
    from fsmdp.learning.learners.registry import LEARNERS

    return LEARNERS


def methods() -> Iterable[str]:
    """Planners."""
    from fsmdp.solver.plan import METHODS

    return METHODS


LISTS: Mapping[str, Callable[[], Iterable[str]]] = {
    "BASES": bases,
    "CLAIMS": claims,
    "EXECUTORS": executors,
    "LEARNERS": learners,
    "METHODS": methods,
}

OF_LEARNERS = "OPTIONS OF LEARNERS"
"""Stands for a paragraph about each learner."""


def written_out(text: str) -> str:
    """Text with names in place of such words as METHODS."""
    if OF_LEARNERS in text:
        text = text.replace(OF_LEARNERS, options_of_learners())
    for word, names in LISTS.items():
        if word in text:
            text = text.replace(word, listed(names()))
    return text


def listed(names: Iterable[str]) -> str:
    """Names as a sentence lists them: local, ray or dask."""
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


def options_of_learners() -> str:
    """A paragraph for each learner: what it is, and each option with its kind and default."""
    from fsmdp.experiments.learners import options_of
    from fsmdp.learning.learners.registry import LEARNERS

    found = []
    for entry in LEARNERS.values():
        options = "; ".join(
            f"[bold]{name}[/bold]: {kind.description} ({default_text(default)})"
            for name, (kind, default) in options_of(entry).items()
        )
        found.append(f"[bold]{entry.name}[/bold]: {entry.description}. {options or 'No options'}.")
    return "\n\n".join(found)


def default_text(default: object) -> str:
    """How a default is written: as it would be given."""
    if default is None:
        return "chosen to fit unless given"
    if isinstance(default, bool):
        return "true unless given" if default else "false unless given"
    return f"{default} unless given"


def complete(names: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Shell completion by names."""

    def complete_name(incomplete: str) -> list[str]:
        return [name for name in names() if name.startswith(incomplete)]

    return complete_name


def complete_model(incomplete: str) -> list[str]:
    """Shell completion of models, by the readers."""
    from fsmdp.io.readers import complete_model as by_readers

    return by_readers(incomplete)


def complete_problem(incomplete: str) -> list[str]:
    """Shell completion of problems of the competitions: domains, and then their instances."""
    from fsmdp.reproduction.ippc import DOMAINS, DOMAINS_2018, read_problems

    domain = incomplete.partition(":")[0]
    known = domain in DOMAINS or domain in DOMAINS_2018
    instances = [f"{domain}:{one.instance}" for one in read_problems([domain])] if known else []
    names = ["published", "all", "2018", *DOMAINS, *DOMAINS_2018, *instances]
    return [name for name in names if name.startswith(incomplete)]


def policies() -> Iterable[str]:
    """Policies of any model, and plans of this folder."""
    return ["random", "plan", "optimal", *files("*.npz")]


def files(pattern: str) -> Iterable[str]:
    """Names of files of this folder."""
    from pathlib import Path

    return [path.name for path in Path().glob(pattern)]


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
        from fsmdp.cli.app import written_out

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
        autocompletion=complete_model,
    ),
]
BasisName = Annotated[
    str,
    typer.Option(metavar="NAME", help="Basis: BASES.", autocompletion=complete(bases)),
]
Seed = Annotated[int, typer.Option(help="Seed for everything random.", min=0)]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress.")]
ExecutorName = Annotated[
    str,
    typer.Option(
        "--executor",
        metavar="NAME",
        help="EXECUTORS.",
        autocompletion=complete(executors),
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
