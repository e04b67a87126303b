"""Final figures of every learner on every model, with intervals over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fsmdp.experiments.report.charts import Dot, DotChart
from fsmdp.experiments.report.curves import reference_values
from fsmdp.experiments.store import ModelFacts
from fsmdp.experiments.summary import NORMAL_QUANTILE, Row

if TYPE_CHECKING:
    import polars


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """A column of the table: which figure it holds, under which heading."""

    figure: str
    heading: str
    least: float = 0.0  # a smaller mean is shown as "< least"


COLUMNS = (
    Column("regret", "regret"),
    Column("observable_regret_bound", "observable regret bound"),
    Column("return_last_tenth", "return, last tenth"),
    Column("percent_below_best", "% below V*, last tenth"),
    Column("percent_below_bound", "% below the certified bound, last tenth"),
    Column("replans", "plans made"),
    Column("seconds_planning", "seconds planning", 0.001),
    Column("seconds", "seconds in all", 0.001),
)


def columns_shown(finals: Sequence[Row], facts: ModelFacts) -> tuple[Column, ...]:
    """Columns worth showing: the bounds only where V* is not known."""
    hidden = {"percent_below_bound"} if facts.start_value_exact else {"percent_below_best"}
    if facts.start_value_exact is not None:
        hidden.add("observable_regret_bound")
    present = {name for final in finals for name in final.figures}
    return tuple(c for c in COLUMNS if c.figure in present and c.figure not in hidden)


def summary_frame(finals: Sequence[Row]) -> polars.DataFrame:
    """One row for each model and learner: every mean, and half the width of its interval."""
    import polars

    rows = []
    for final in finals:
        row: dict[str, object] = {
            "model": final.model,
            "learner": final.trials.learner,
            "label": final.trials.label,
            "heuristic": final.trials.heuristic,
            "seeds": final.done,
            "episodes": final.trials.n_episodes,
        }
        for column in COLUMNS:
            found = final.figures.get(column.figure)
            row[column.figure] = None if found is None else found.mean
            row[f"{column.figure}_half_width"] = None if found is None else found.half_width
        rows.append(row)
    return polars.DataFrame(rows, infer_schema_length=None)


def finals_chart(finals: Sequence[Row], facts: ModelFacts) -> DotChart:
    """What every learner ended at, against the value that no policy exceeds."""
    dots = [
        Dot(
            final.trials.label,
            final.figures["return_last_tenth"].mean,
            final.figures["return_last_tenth"].half_width,
            final.trials.learner,
        )
        for final in finals
    ]
    several = any(dot.half_width is not None for dot in dots)
    spread = "with 95 % t intervals over seeds" if several else "of one seed"
    text = f"Mean return over the last tenth of episodes, {spread}. "
    if facts.plan_policy_mean is not None:
        error = facts.plan_policy_standard_error or 0.0
        dots.append(Dot("plan behind the bound", facts.plan_policy_mean, NORMAL_QUANTILE * error))
        text += "The plan behind the bound was simulated; its 95 % interval is over episodes. "
    if facts.plan_upper_bound is not None:
        text += "No policy earns more than the certified bound. "
    return DotChart(
        name="finals",
        title="Final returns and the certified gap",
        caption=text.rstrip(),
        x_label="return",
        dots=tuple(dots),
        marks=tuple(reference_values(facts)),
    )
