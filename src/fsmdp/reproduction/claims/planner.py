"""Theorem 2: the planner takes polynomial time, by the ellipsoid method or by others."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import polars

from fsmdp.bounds.cutting_planes import CuttingPlanes
from fsmdp.bounds.ellipsoid import Ellipsoid
from fsmdp.bounds.joint import Joint
from fsmdp.bounds.problem import problem_of_model
from fsmdp.bounds.stagewise import Stagewise
from fsmdp.domains.sysadmin import sysadmin
from fsmdp.model.basis import Basis
from fsmdp.model.mdp import FactoredMDP
from fsmdp.report.charts import Chart, Line, Panel, Role
from fsmdp.reproduction.claim import (
    Callback,
    Claim,
    Evidence,
    Form,
    Judgement,
    Verdict,
    fitted_exponent,
    seconds_of,
)

EPSILON = 0.01
SAME_VALUE = 1e-4
ELLIPSOID, CUTS, JOINT, STAGEWISE = "ellipsoid", "cutting planes", "joint program", "stagewise"
SWEEPS = {"machines": "m", "horizon": "horizon", "functions": "number of basis functions"}


@dataclass(frozen=True, slots=True, eq=False)
class Sizes:
    """What is swept; the ellipsoid method comes along as long as its weights are few."""

    machines: Sequence[int]
    horizons: Sequence[int]
    extra_pairs: Sequence[int]
    most_ellipsoid_weights: int


SIZES = {
    Form.TINY: Sizes((2, 3), (2, 3), (0, 2), 12),
    Form.SMALL: Sizes((2, 3, 4, 5, 8, 16, 32), (2, 4, 8, 16), (0, 2, 4, 8), 18),
    Form.FULL: Sizes((2, 3, 4, 5, 6, 8, 16, 32, 64), (2, 4, 8, 16, 32, 64), (0, 2, 4, 8), 36),
}


def run(form: Form, _seed: int, callback: Callback) -> Evidence:
    """All planners on the same problems, one size growing at a time; nothing is random."""
    sizes, values, timed = SIZES[form], [], []
    callback("planner: compiling")
    small = sysadmin(2, horizon=2)
    for _, planner in _planners(with_ellipsoid=True):
        planner.solve(problem_of_model(small, Basis.singles(small), "uniform"))
    for sweep, size, model, basis in _problems(sizes):
        assert model.horizon is not None
        problem = problem_of_model(model, basis, "uniform")
        n_weights = model.horizon * len(problem.network.basis)
        for method, planner in _planners(n_weights <= sizes.most_ellipsoid_weights):
            callback(f"planner: {method}, {sweep} {size}")
            repeats = 1 if method == ELLIPSOID or form is Form.FULL else 3
            seconds, plan = seconds_of(partial(planner.solve, problem), repeats)
            value = float(problem.means @ plan.bound.weights[0])
            values.append({"sweep": sweep, "size": size, "method": method, "value": value})
            timed.append(
                {
                    "sweep": sweep,
                    "size": size,
                    "weights": n_weights,
                    "method": method,
                    "seconds": seconds,
                    "formula": paper_operations(
                        model, len(problem.network.basis), problem.network.elimination.induced_width
                    ),
                }
            )
    return Evidence({"values": polars.DataFrame(values)}, {"seconds": polars.DataFrame(timed)})


def _problems(sizes: Sizes) -> Iterator[tuple[str, int, FactoredMDP, Basis]]:
    for m in sizes.machines:
        model = sysadmin(m, horizon=3)
        yield "machines", m, model, Basis.singles(model)
    for horizon in sizes.horizons:
        model = sysadmin(3, horizon=horizon)
        yield "horizon", horizon, model, Basis.singles(model)
    model = sysadmin(10, horizon=2)
    singles = [(i,) for i in range(10)]
    for extra in sizes.extra_pairs:
        pairs = [(i, i + 1) for i in range(extra)]
        basis = Basis.blocks(model, [*singles, *pairs])
        yield "functions", len(basis), model, basis


def _planners(with_ellipsoid: bool) -> Iterator[tuple[str, Any]]:
    if with_ellipsoid:
        yield ELLIPSOID, Ellipsoid(epsilon=EPSILON)
    yield CUTS, CuttingPlanes()
    yield JOINT, Joint()
    yield STAGEWISE, Stagewise()


def paper_operations(model: FactoredMDP, n_functions: int, width: int) -> float:
    """The paper's count of operations of a plan, constants left out.

    tau |A| J phi + |A| n^2.5 log(n / delta) tau phi L + (tau phi)^3 L,
    n = tau m kappa^width, L = log((tau phi)^2 W / epsilon).
    """
    assert model.horizon is not None
    tau, m, n_actions = model.horizon, len(model.variables), len(model.actions)
    kappa = max(model.sizes)
    j = kappa ** max(len(model.parents(i)) for i in range(m))
    n = tau * m * kappa**width
    log = math.log((tau * n_functions) ** 2 * tau / EPSILON)
    oracle = n_actions * n**2.5 * math.log(n / EPSILON)
    weights = tau * n_functions
    return float(tau * n_actions * j * n_functions + oracle * weights * log + weights**3 * log)


def largest_difference(evidence: Evidence) -> float:
    """Between planners of the joint program, relative; less what the ellipsoid method leaves."""
    worst = 0.0
    joint = evidence["values"].filter(polars.col("method") == JOINT)
    for row in joint.iter_rows(named=True):
        same = evidence["values"].filter(
            (polars.col("sweep") == row["sweep"]) & (polars.col("size") == row["size"])
        )
        for other in same.iter_rows(named=True):
            if other["method"] == STAGEWISE:
                continue
            allowed = EPSILON if other["method"] == ELLIPSOID else 0.0
            difference = max(0.0, abs(other["value"] - row["value"]) - allowed)
            worst = max(worst, difference / max(1.0, abs(row["value"])))
    return worst


def growths(evidence: Evidence) -> dict[tuple[str, str], tuple[float, float]]:
    """By sweep and method: exponents of the time and of the paper's count, in the size swept."""
    found = {}
    for (sweep, method), part in evidence["seconds"].group_by(
        ["sweep", "method"], maintain_order=True
    ):
        if part["size"].n_unique() > 1:
            found[str(sweep), str(method)] = (
                fitted_exponent(part["size"], part["seconds"]),
                fitted_exponent(part["size"], part["formula"]),
            )
    return found


def judge(evidence: Evidence) -> Judgement:
    """The same value by every planner of the program, and no faster growth than was counted."""
    difference, found = largest_difference(evidence), growths(evidence)
    within = all(time <= counted for time, counted in found.values())
    stagewise = evidence["values"].pivot("method", index=["sweep", "size"], values="value")
    above = bool((stagewise[STAGEWISE] >= stagewise[JOINT] - SAME_VALUE).all())
    time, counted = max(found.values(), key=lambda pair: pair[0] / pair[1])
    reason = (
        f"planners of the same program differ by {difference:.0e} at most; the fastest growth "
        f"measured, relative to the count, has exponent {time:z.2f} where the count has "
        f"{counted:z.2f}; {_ratio_words(evidence)}"
    )
    good = difference <= SAME_VALUE and within and above
    return Judgement(Verdict.HOLDS if good else Verdict.FAILS, reason)


def _ratio_words(evidence: Evidence) -> str:
    seconds = evidence["seconds"].pivot("method", index=["sweep", "size"], values="seconds")
    both = seconds.drop_nulls(ELLIPSOID)
    ratio = max(both[ELLIPSOID] / both[JOINT])
    return f"the ellipsoid method takes up to {ratio:,.0f} times as long as the joint program"


def draw(evidence: Evidence) -> Chart:
    """Seconds of each planner, and the paper's count scaled to the ellipsoid's first point."""
    part = evidence["seconds"].filter(polars.col("sweep") == "machines")
    lines = []
    for method in (ELLIPSOID, CUTS, JOINT, STAGEWISE):
        one = part.filter(polars.col("method") == method)
        x, y = one["size"].to_numpy().astype(float), one["seconds"].to_numpy()
        lines.append(Line(method, x, y, method, note=f"m^{fitted_exponent(x, y):.1f}"))
    counted = part.filter(polars.col("method") == ELLIPSOID)
    x, formula = counted["size"].to_numpy().astype(float), counted["formula"].to_numpy()
    scaled = formula / formula[0] * float(counted["seconds"][0])
    note = f"m^{fitted_exponent(x, formula):.1f}"
    lines.append(Line("the paper's count, scaled", x, scaled, None, Role.REFERENCE, note=note))
    return Chart(
        name="planner",
        title="Time of a plan",
        caption="Rings of m machines, horizon 3, singles. The first three solve the same program; "
        "stagewise planning solves one program for each step and gives a somewhat higher bound. "
        f"The ellipsoid method stops at {EPSILON:g}, and is left out where it would take too long.",
        panels=(Panel("seconds", tuple(lines), log=True),),
        x_label="machines m",
        log=True,
    )


CLAIM = Claim(
    name="planner",
    title="Theorem 2: a plan takes polynomial time",
    statement="With the oracle of Theorem 1 the ellipsoid method solves the planning program, "
    "which has a constraint for every state and action, in polynomial time. So do faster methods "
    "that solve the same program.",
    what_was_run="Rings of machines planned by the ellipsoid method, by cutting planes, by one "
    "joint linear program and step by step, while the machines, the horizon or the basis grow; "
    "the paper's count of operations is evaluated beside the measured time.",
    rule="Holds if all planners of the joint program end at the same value (to "
    f"{SAME_VALUE:g}, the ellipsoid method to {EPSILON:g} more), stagewise planning is never "
    "below it, and no measured exponent in machines, horizon or functions exceeds the exponent "
    "of the paper's count over the same sizes.",
    run=run,
    judge=judge,
    draw=draw,
)
