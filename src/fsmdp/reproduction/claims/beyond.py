"""Beyond the paper: what grouped actions, tighter sets and initial-state weights change."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import polars

from fsmdp.bounds.joint import Joint
from fsmdp.bounds.problem import problem_of_model
from fsmdp.domains.sysadmin import sysadmin
from fsmdp.exact.solve import solve_exactly
from fsmdp.learning.learners.learner import Learner
from fsmdp.learning.learners.psrl import PSRLFactored
from fsmdp.learning.learners.ucrl import UCRLFactored
from fsmdp.model.basis import Basis
from fsmdp.model.cases import Cases
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.structure import Structure
from fsmdp.model.variables import Scope
from fsmdp.report.charts import Chart, Panel
from fsmdp.reproduction.claim import Callback, Claim, Evidence, Form, Judgement, Verdict
from fsmdp.reproduction.losses import (
    EnumeratedOptimum,
    Optimum,
    Trial,
    final_regret,
    mean_lines,
    measure_all,
    thinned,
)


@dataclass(frozen=True, slots=True, eq=False)
class Sizes:
    """Machines of the ring that is learnt, episodes, seeds, and rings that are planned."""

    machines: int
    episodes: int
    seeds: int
    planned: Sequence[int]
    workers: int = 2


SIZES = {
    Form.TINY: Sizes(3, 40, 2, (3,), workers=1),
    Form.SMALL: Sizes(8, 1000, 4, (4, 6, 8)),
    Form.FULL: Sizes(8, 1000, 10, (4, 6, 8, 10)),
}

PER_ACTION = "Weissman, cells per action"
WEISSMAN, HOEFFDING, BERNSTEIN = "Weissman", "Hoeffding", "Bernstein (practical)"
SAMPLING = "posterior sampling"

COMPARED = (
    ("grouped actions", WEISSMAN, PER_ACTION),
    ("sets for the mean alone (Hoeffding)", HOEFFDING, WEISSMAN),
    ("sets that use the variance (Bernstein)", BERNSTEIN, WEISSMAN),
    ("posterior sampling", SAMPLING, BERNSTEIN),
)


def ungrouped(structure: Structure) -> Structure:
    """The same structure with cells of its own for every action."""

    def apart(cases: Cases[Scope]) -> Cases[Scope]:
        n_actions = len(structure.actions)
        return Cases(
            tuple(cases.at(action) for action in range(n_actions)),
            {action: action for action in range(1, n_actions)},
        )

    return replace(structure, parents=tuple(map(apart, structure.parents)))


def _prepared(machines: int) -> tuple[FactoredMDP, Optimum]:
    model = sysadmin(machines)
    return model, EnumeratedOptimum.of(model)


def _optimistic(sets: str, per_action: bool, model: FactoredMDP, seed: int) -> Learner:
    structure = model.structure(Basis.pairs(model))
    given = ungrouped(structure) if per_action else structure
    return UCRLFactored(
        given, seed=seed, confidence=sets, known_rewards=model.rewards, empirical_weight=0
    )


def _sampling(model: FactoredMDP, seed: int) -> Learner:
    structure = model.structure(Basis.pairs(model))
    return PSRLFactored(structure, seed, replan=0.5, known_rewards=model.rewards)


LEARNERS: dict[str, Callable[[FactoredMDP, int], Learner]] = {
    PER_ACTION: partial(_optimistic, "weissman", True),
    WEISSMAN: partial(_optimistic, "weissman", False),
    HOEFFDING: partial(_optimistic, "hoeffding", False),
    BERNSTEIN: partial(_optimistic, "bernstein", False),
    SAMPLING: _sampling,
}


def run(form: Form, seed: int, callback: Callback) -> Evidence:
    """The same seeds with each part changed alone, and bounds for both kinds of weights."""
    sizes = SIZES[form]
    trials = [
        Trial(
            {"learner": name},
            partial(_prepared, sizes.machines),
            make,
            sizes.episodes,
            seed + number,
        )
        for name, make in LEARNERS.items()
        for number in range(sizes.seeds)
    ]
    curves = measure_all(trials, sizes.workers, lambda text: callback(f"beyond: {text}"))
    bounds = []
    for machines in sizes.planned:
        callback(f"beyond: bounds of ring {machines}")
        bounds.append(_bounds(machines))
    return Evidence(
        {
            "curves": thinned(curves).select("learner", "seed", "episode", "regret"),
            "ends": final_regret(curves, "learner"),
            "bounds": polars.DataFrame(bounds),
        }
    )


def _bounds(machines: int) -> dict[str, Any]:
    """Joint bounds on V*_1 at the start, made for all states alike and made for the start."""
    model = sysadmin(machines)
    best = solve_exactly(model).start_value
    found: dict[str, Any] = {"machines": machines, "best": best}
    for weights in ("uniform", "initial"):
        problem = problem_of_model(model, Basis.pairs(model), weights)
        found[weights] = Joint().solve(problem).upper_bound
    return found


def ratios(evidence: Evidence) -> dict[str, float]:
    """By improvement: regret (or what a bound is above V*) with it, relative to without it."""
    ends = {row["learner"]: row["regret"] for row in evidence["ends"].iter_rows(named=True)}
    found = {name: ends[one] / ends[other] for name, one, other in COMPARED}
    bounds = evidence["bounds"]
    above = (bounds["initial"] - bounds["best"]) / (bounds["uniform"] - bounds["best"])
    return found | {"weights on the initial state": float(max(above))}


def judge(evidence: Evidence) -> Judgement:
    """Every change helps, some do, or none."""
    found = ratios(evidence)
    helped = sum(ratio < 1 for ratio in found.values())
    reason = "; ".join(f"{name}: × {ratio:.2f}" for name, ratio in found.items())
    if helped == len(found):
        return Judgement(Verdict.HOLDS, reason)
    return Judgement(Verdict.CORRECTED if helped else Verdict.FAILS, reason)


def draw(evidence: Evidence) -> Chart:
    """Regret of all variants on the same seeds."""
    return Chart(
        name="beyond",
        title="What each part changes",
        caption="A ring of machines with known rewards and pairs as basis, all learners on the "
        "same seeds; means with standard errors.",
        panels=(Panel("regret", mean_lines(evidence["curves"], "learner")),),
    )


CLAIM = Claim(
    name="beyond",
    title="Beyond the paper: what grouped actions, tighter sets and the weights change",
    statement="Cells shared by all actions with the same effect, confidence sets for the one mean "
    "that planning uses, and an objective that weighs the states an episode starts in are not in "
    "the paper. Each should lower the regret, or the bound.",
    what_was_run="A ring of machines, learnt with one part changed at a time on the same seeds; "
    "posterior sampling beside it. Then the joint bound on the value of the start, with the "
    "objective over all states alike and over the initial state.",
    rule="Holds if every ratio (regret with the change to regret without it; excess of the bound "
    "over V* likewise) is below 1, holds with a correction if some are, fails if none is.",
    run=run,
    judge=judge,
    draw=draw,
    tables={"bounds": ("machines", "best", "uniform", "initial")},
)
