"""A claim of the paper: what is run for it, the rule that judges the numbers, and its chart.

Claims share a model whose sizes can be changed one at a time, and how exponents are fitted.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from importlib import import_module
from typing import Any, TypeVar

import numpy as np
import polars
from numpy.typing import ArrayLike

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import show, suggest
from fsmdp.foundation.streams import Purpose, generator
from fsmdp.model.cases import ANY, Case
from fsmdp.model.conditionals import Conditional
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.rewards import Reward
from fsmdp.model.variables import Variable
from fsmdp.report.charts import Chart, Panel


def band_model(
    variables: int,
    *,
    size: int = 2,
    reach: int = 1,
    actions: int = 4,
    horizon: int = 5,
    seed: int = 0,
) -> FactoredMDP:
    """A chain in which each variable depends on itself and `reach` before it.

    Induced width with singles: `reach`. Action a > 0 draws variable a mod `variables` from a
    distribution of its own, whatever its parents; action 0 changes nothing. Rows are uniform on
    the simplex, the reward is the mean of all values, scaled to [0, 1].
    """
    rng = generator(seed, Purpose.REPRODUCTION, "models")
    names = [f"x{i}" for i in range(variables)]
    changed: dict[int, list[int]] = {}
    for action in range(1, actions):
        changed.setdefault(action % variables, []).append(action)
    conditionals = []
    for i, name in enumerate(names):
        parents = names[max(0, i - reach) : i + 1]
        rows = rng.dirichlet(np.ones(size), size=(size,) * len(parents))
        own = [
            Case([f"act-{action}"], [], rng.dirichlet(np.ones(size)))
            for action in changed.get(i, [])
        ]
        conditionals.append(Conditional(name, [*own, Case(ANY, parents, rows)]))
    values = np.linspace(0, 1, size) / variables
    return FactoredMDP(
        variables=[Variable(name, size) for name in names],
        actions=["nothing", *(f"act-{action}" for action in range(1, actions))],
        conditionals=conditionals,
        rewards=[
            Reward(f"of-{name}", [Case(ANY, [name], values)], low=0.0, high=1 / variables)
            for name in names
        ],
        horizon=horizon,
        initial=dict.fromkeys(names, 0),
    )


def fitted_exponent(x: ArrayLike, y: ArrayLike) -> float:
    """The b of y = a x^b, by least squares on logarithms."""
    slope, _ = np.polyfit(np.log(np.asarray(x, float)), np.log(np.asarray(y, float)), 1)
    return float(slope)


Result = TypeVar("Result")


def seconds_of(action: Callable[[], Result], repeats: int = 3) -> tuple[float, Result]:
    """Shortest of several runs, since other processes can only add time, and the last result."""
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        result = action()
        times.append(time.perf_counter() - began)
    return min(times), result


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


CONFIRMED, NOT_SEEN, NOT_REPAIRED = "confirmed", "not seen", "not repaired"


@dataclass(frozen=True, slots=True, eq=False)
class Finding:
    """Two numbers, each with a limit: the first should be above it, the second not.

    `wrong` measures what the note says is wrong, `remaining` what is left of it once repaired.
    """

    note: int
    says: str  # the paper, in our words
    truth: str
    measured: str
    wrong: float
    wrong_above: float
    remaining: float
    remaining_up_to: float

    def row(self) -> dict[str, Any]:
        """As a row of a table."""
        found = {name: getattr(self, name) for name in self.__slots__}
        return found | {"verdict": note_verdict(found)}


def note_verdict(row: dict[str, Any]) -> str:
    """Whether the numbers of a row bear its note out."""
    if row["remaining"] > row["remaining_up_to"]:
        return NOT_REPAIRED
    return CONFIRMED if row["wrong"] > row["wrong_above"] else NOT_SEEN


GROWS = 1.4
"""Growth with each variable from which a number is called exponential in their number."""


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """What the numbers of one contrast say."""

    verdict: Verdict
    measured: str


@dataclass(frozen=True, slots=True, eq=False)
class Contrast:
    """Another assumption, the table that holds numbers about it, and how these are judged."""

    name: str
    others: str  # what is assumed elsewhere
    table: str
    judge: Callable[[polars.DataFrame], Judged]
    panel: Callable[[polars.DataFrame], Panel]
    caption: str

    def chart(self, table: polars.DataFrame) -> Chart:
        """Its numbers against the number of variables."""
        panels = (self.panel(table),)
        return Chart(self.table, self.name, self.caption, panels, "state variables", log=True)


def growth(table: polars.DataFrame, column: str) -> float:
    """The factor by which a column grows with each variable, from the first size to the last."""
    ordered = table.sort("variables")
    first, last = ordered.row(0, named=True), ordered.row(-1, named=True)
    return float((last[column] / first[column]) ** (1 / (last["variables"] - first["variables"])))


def growths_by_model(table: polars.DataFrame, column: str) -> dict[str, float]:
    """The same for each model."""
    return {
        str(name): growth(part, column)
        for (name,), part in table.group_by(["model"], maintain_order=True)
    }


def judge_growth(table: polars.DataFrame, column: str, what: str) -> Judged:
    """Holds if the column grows exponentially in every model, with a correction if in some."""
    found = growths_by_model(table, column)
    grows = [factor >= GROWS for factor in found.values()]
    verdict = Verdict.HOLDS if all(grows) else Verdict.CORRECTED if any(grows) else Verdict.FAILS
    words = ", ".join(f"{name} {factor:.2f}" for name, factor in found.items())
    return Judged(verdict, f"{what} grow with each variable by a factor of: {words}")
