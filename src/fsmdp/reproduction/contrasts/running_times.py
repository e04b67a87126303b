"""Running times: two counts of operations beside measured seconds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import polars

from fsmdp.bounds.joint import Joint
from fsmdp.bounds.problem import problem_of_model
from fsmdp.bounds.stagewise import Stagewise
from fsmdp.domains.sysadmin import sysadmin
from fsmdp.model.basis import Basis
from fsmdp.report.charts import Line, Panel
from fsmdp.reproduction.claim import Callback, Contrast, Judged, Verdict
from fsmdp.reproduction.claims.planner import EPSILON, paper_operations
from fsmdp.reproduction.models import fitted_exponent, seconds_of

HORIZON = 3
SECONDS = ("joint_seconds", "stagewise_seconds")
TABLE = "times"


def one_program(variables: int, horizon: int, size: int, width: int) -> float:
    """n^2.5 log(n / epsilon) for the n = tau m kappa^width variables of the eliminated program.

    What Cohen, Lee and Song's method takes if it solves the whole program at once: the sign split
    makes it linear, so that no cutting-plane method has to stand around it.
    """
    n = horizon * variables * size**width
    return float(n**2.5 * math.log(n / EPSILON))


def measure(machines: Sequence[int], repeats: int, callback: Callback) -> polars.DataFrame:
    """Rings planned by the joint program and by stages, with both counts."""
    rows = []
    small = sysadmin(2, horizon=HORIZON)
    for planner in (Joint(), Stagewise()):  # compiled before it is timed
        planner.solve(problem_of_model(small, Basis.singles(small), "uniform"))
    for m in machines:
        callback(f"running times: {m} machines")
        model = sysadmin(m, horizon=HORIZON)
        problem = problem_of_model(model, Basis.singles(model), "uniform")
        joint, _ = seconds_of(partial(Joint().solve, problem), repeats)
        stagewise, _ = seconds_of(partial(Stagewise().solve, problem), repeats)
        width = problem.network.elimination.induced_width
        rows.append(
            {
                "variables": m,
                "cutting_planes": paper_operations(model, len(problem.network.basis), width),
                "one_program": one_program(m, HORIZON, max(model.sizes), width),
                "joint_seconds": joint,
                "stagewise_seconds": stagewise,
            }
        )
    return polars.DataFrame(rows)


def exponents(table: polars.DataFrame) -> dict[str, float]:
    """By column: how it grows with the number of machines."""
    return {
        name: fitted_exponent(table["variables"], table[name])
        for name in ("cutting_planes", "one_program", *SECONDS)
    }


def judge(table: polars.DataFrame) -> Judged:
    """Fails if seconds grow faster than the paper's count; corrected if one program is cheaper."""
    found = exponents(table)
    slowest = max(found[name] for name in SECONDS)
    measured = (
        f"counts grow like m^{found['cutting_planes']:.1f} (linear programs inside cutting planes) "
        f"and m^{found['one_program']:.1f} (one linear program), seconds like "
        f"m^{found['joint_seconds']:.1f} (joint program) and m^{found['stagewise_seconds']:.1f} "
        "(stagewise)"
    )
    if slowest > found["cutting_planes"]:
        return Judged(Verdict.FAILS, measured)
    cheaper = found["one_program"] < found["cutting_planes"] and slowest <= found["one_program"]
    return Judged(Verdict.CORRECTED if cheaper else Verdict.HOLDS, measured)


def panel(table: polars.DataFrame) -> Panel:
    """All relative to the smallest size."""
    x = table["variables"].to_numpy().astype(float)
    lines = []
    for name, label, learner in (
        ("cutting_planes", "count, cutting planes", "count"),
        ("one_program", "count, one program", "one program"),
        ("joint_seconds", "seconds, joint program", "joint"),
        ("stagewise_seconds", "seconds, stagewise", "stagewise"),
    ):
        y = table[name].to_numpy().astype(float)
        lines.append(Line(label, x, y / y[0], learner))
    return Panel("time, relative", tuple(lines), log=True)


CONTRAST = Contrast(
    "running times",
    "the paper's count: cutting planes (Jiang et al. 2020) around linear programs (Cohen, Lee and "
    "Song 2021)",
    TABLE,
    judge,
    panel,
    "Operations by both counts and seconds measured, each relative to its smallest size.",
)
