"""The lower bound for linear Q-functions: how many actions it takes, and how many there are."""

from __future__ import annotations

import math
from collections.abc import Sequence

import polars

from fsmdp.domains.sysadmin import sysadmin
from fsmdp.model.basis import Basis
from fsmdp.report.charts import Line, Panel
from fsmdp.reproduction.claim import Contrast, Judged, Verdict

OVERLAP = 0.25
"""Largest inner product of two of the directions that the construction has an action for each."""

TABLE = "actions"


def directions(dimension: int) -> float:
    """Unit vectors with inner products of at most 1/4 that are sure to exist: exp(d / 128).

    Source: Johnson and Lindenstrauss' argument as used by Weisz, Amortila and Szepesvari (2021),
    Exponential lower bounds for planning in MDPs with linearly-realizable optimal action-value
    functions.
    """
    return math.exp(dimension * OVERLAP**2 / 8)


def few_actions(dimension: int) -> float:
    """Actions from which a later construction is hard, constants left out: d^(1/4).

    Source: Weisz, Szepesvari and Gyorgy (2022), TensorPlan and the few actions lower bound for
    planning in MDPs under linear realizability of optimal value functions.
    """
    return math.sqrt(math.sqrt(dimension))


def measure(machines: Sequence[int]) -> polars.DataFrame:
    """Rings of machines, whose Q is linear in indicators of cells where V is in singles."""
    rows = []
    for m in machines:
        model = sysadmin(m, horizon=2)
        dimension = 1 + model.structure(Basis.singles(model)).cells
        rows.append(
            {
                "variables": m,
                "dimension": dimension,
                "our_actions": len(model.actions),
                "exponential": directions(dimension),
                "few": few_actions(dimension),
            }
        )
    return polars.DataFrame(rows)


def judge(table: polars.DataFrame) -> Judged:
    """Fails unless ours are fewer at the largest size; with a correction if few are enough."""
    ordered = table.sort("variables")
    last = ordered.row(-1, named=True)
    fewer = ordered.filter(polars.col("our_actions") < polars.col("exponential"))
    measured = (
        f"with {last['variables']} machines {last['our_actions']} actions, where the construction "
        f"in {last['dimension']} dimensions has {last['exponential']:,.0f}"
    )
    if last["our_actions"] >= last["exponential"]:
        return Judged(Verdict.FAILS, measured)
    measured += (
        f" (ours are fewer from {fewer['variables'][0]} machines on); a later one has "
        f"d^(1/4) = {last['few']:.1f}"
    )
    enough = last["our_actions"] >= last["few"]
    return Judged(Verdict.CORRECTED if enough else Verdict.HOLDS, measured)


def panel(table: polars.DataFrame) -> Panel:
    """All three, against the number of machines."""
    x = table["variables"].to_numpy().astype(float)
    ours, many, few = (
        table[name].to_numpy().astype(float) for name in ("our_actions", "exponential", "few")
    )
    return Panel(
        "actions",
        (
            Line("rings of machines", x, ours, "ring"),
            Line("lower bound's, exp(d / 128)", x, many, "lower bound"),
            Line("a later one's, d^(1/4)", x, few, "later lower bound"),
        ),
        log=True,
    )


CONTRAST = Contrast(
    "linear-Q lower bound",
    "hardness of planning with linear Q-functions",
    TABLE,
    judge,
    panel,
    "Actions of rings, beside those of two constructions in which problems with linear "
    "Q-functions are hard.",
)
