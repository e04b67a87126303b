"""A claim of the paper: what is run for it, the rule that judges the numbers, and its chart."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from importlib import import_module

import polars

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import show, suggest
from fsmdp.report.charts import Chart

Callback = Callable[[str], None]
"""Called with what is being run."""


class Form(StrEnum):
    """How much is run: for tests, for a look, for the documentation."""

    TINY = "tiny"
    SMALL = "small"
    FULL = "full"


@dataclass(frozen=True, slots=True, eq=False)
class Repeats:
    """How often learners are run, for how long, and on how many processes."""

    seeds: int
    episodes: int
    workers: int = field(default=2, kw_only=True)


class Verdict(StrEnum):
    """What the numbers say of a claim."""

    HOLDS = "holds"
    CORRECTED = "holds with a correction"
    FAILS = "does not hold as stated"


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """What a run found: tables that depend on its seed alone, and tables with measured times."""

    tables: Mapping[str, polars.DataFrame]
    timed: Mapping[str, polars.DataFrame] = field(default_factory=dict)

    def __getitem__(self, name: str) -> polars.DataFrame:
        return self.tables[name] if name in self.tables else self.timed[name]


@dataclass(frozen=True, slots=True, eq=False)
class Judgement:
    """A verdict with the numbers that led to it."""

    verdict: Verdict
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Claim:
    """One claim: all texts are ours, all numbers come from the evidence.

    `rule` says in words what `judge` computes; `draw` makes one chart or several; `tables` names
    tables of the evidence that the page shows beside them, with their columns.
    """

    name: str
    title: str
    statement: str
    what_was_run: str
    rule: str
    run: Callable[[Form, int, Callback], Evidence]
    judge: Callable[[Evidence], Judgement]
    draw: Callable[[Evidence], Chart | tuple[Chart, ...]]
    tables: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


NAMES = (
    "oracle",
    "planner",
    "reformulation",
    "regret",
    "diameter",
    "correlated",
    "proposition",
    "notes",
    "beyond",
    "subsumed",
)
"""Modules of `fsmdp.reproduction.claims`, each with its CLAIM; imported when they are run."""


def find_claims(names: tuple[str, ...] = ()) -> tuple[Claim, ...]:
    """The claims of some names, in the order of the page; all if none is named."""
    for name in names:
        if name not in NAMES:
            raise ModelError(f"unknown claim {show(name)}; {suggest(name, NAMES)}")
    return tuple(
        import_module(f"fsmdp.reproduction.claims.{name}").CLAIM
        for name in NAMES
        if not names or name in names
    )
