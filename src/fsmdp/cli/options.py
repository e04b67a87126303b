"""Arguments and options that several commands take, and help that lists what is registered."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperOption

Model = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="A domain with options (sysadmin:[bold]ring[/bold]:8), "
        "rddl:[bold]DOMAIN[/bold]:INSTANCE, or a JSON model file.",
    ),
]
BasisName = Annotated[str, typer.Option(help="Basis: BASES.")]
Seed = Annotated[int, typer.Option(help="Seed for everything random.", min=0)]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress.")]
ExecutorName = Annotated[str, typer.Option("--executor", help="EXECUTORS.")]
Address = Annotated[str | None, typer.Option(help="Address of a running Ray or Dask cluster.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


class ListingCommand(TyperCommand):
    """A command whose help names what is registered, which is imported only for the help."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Put the names in place of such words as METHODS, and show the help."""
        for option in self.params:
            if isinstance(option, TyperOption) and option.help:
                for word, names in LISTS.items():
                    if word in option.help:
                        option.help = option.help.replace(word, listed(names()))
        super().format_help(ctx, formatter)


def _bases() -> Iterable[str]:
    from fsmdp.experiments.catalog import BASES

    return BASES


def _claims() -> Iterable[str]:
    from fsmdp.reproduction.catalogue import NAMES

    return NAMES


def _executors() -> Iterable[str]:
    from fsmdp.experiments.executors.choose import EXECUTORS

    return EXECUTORS


def _learners() -> Iterable[str]:
    from fsmdp.learning.learners.registry import LEARNERS

    return LEARNERS


def _methods() -> Iterable[str]:
    from fsmdp.solver.plan import METHODS

    return METHODS


LISTS: dict[str, Callable[[], Iterable[str]]] = {
    "BASES": _bases,
    "CLAIMS": _claims,
    "EXECUTORS": _executors,
    "LEARNERS": _learners,
    "METHODS": _methods,
}


def listed(names: Iterable[str]) -> str:
    """Names as a sentence lists them: local, ray or dask."""
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


def check_output(path: str | None) -> None:
    """Refuse, before hours of work, a path that cannot be written in the end."""
    from fsmdp.foundation.disk import check_path

    if path is not None:
        check_path(path)
