"""A contrast with another line of work: a table of numbers, the rule that judges it, a figure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import polars

from fsmdp.report.charts import Chart, Panel
from fsmdp.reproduction.claim import Verdict

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
