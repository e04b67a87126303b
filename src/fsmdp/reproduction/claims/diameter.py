"""No dependence on the diameter: states that never reach one another do not matter."""

from dataclasses import dataclass

import numpy as np
import polars

from fsmdp.domains.influence import Influence
from fsmdp.exact.flat import FlatMDP, enumerate_states
from fsmdp.learning.learners.learner import Learner
from fsmdp.learning.learners.ucrl import UCRLFactored
from fsmdp.model.basis import Basis
from fsmdp.model.cases import ANY, Case
from fsmdp.model.conditionals import Conditional
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.rewards import Reward
from fsmdp.model.tables import Floats, Integers
from fsmdp.model.variables import Variable
from fsmdp.report.charts import Chart, Panel
from fsmdp.reproduction.claim import Callback, Claim, Evidence, Form, Judgement, Repeats, Verdict
from fsmdp.reproduction.losses import (
    Optimum,
    Trial,
    final_regret,
    mean_lines,
    measure_all,
    realizable_optimum,
    thinned,
)

CONNECTED, DISCONNECTED = "connected", "disconnected"
MOST_RATIO = 1.25
SETTLED = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Sizes(Repeats):
    """How many seeds and episodes, and nodes of the model."""

    nodes: int


SIZES = {
    Form.TINY: Sizes(2, 40, 3, workers=1),
    Form.SMALL: Sizes(4, 2000, 5),
    Form.FULL: Sizes(8, 10_000, 5),
}


@dataclass(frozen=True, slots=True)
class TwoIslands:
    """Opinions with a variable more, which says on which of two islands everything happens.

    Disconnected, the island stays what it was drawn to be at the start; connected, it is drawn
    anew in every step. It earns a little and changes nothing else, so V* is linear either way.
    """

    nodes: int
    connected: bool

    def model(self) -> FactoredMDP:
        """The factored MDP."""
        base = Influence(self.nodes).model()
        stays = [[0.5, 0.5], [0.5, 0.5]] if self.connected else [[1.0, 0.0], [0.0, 1.0]]
        return FactoredMDP(
            variables=[*base.variables, Variable("island", 2)],
            actions=base.actions,
            conditionals=[
                *base.conditionals,
                Conditional("island", [Case(ANY, ["island"], stays)]),
            ],
            rewards=[*base.rewards, Reward("island", [Case(ANY, ["island"], [0, 0.1])], 0, 0.1)],
            horizon=base.horizon,
            initial={"island": [0.5, 0.5]},
            latents=base.latents,
        )

    def prepare(self) -> tuple[FactoredMDP, Optimum]:
        """The model and its optimum."""
        model = self.model()
        return model, realizable_optimum(model, Basis.singles(model))


def diameter(flat: FlatMDP) -> float:
    """Largest over pairs of states of the least expected number of steps from one to the other.

    Infinite where some state is never reached. Cost: a few linear systems for each target.
    """
    return max(float(_steps_to(flat, target).max()) for target in range(len(flat.states)))


def _steps_to(flat: FlatMDP, target: int) -> Floats:
    """Least expected number of steps to a target from every state, by policy iteration."""
    policy = _towards(flat, target)
    if policy is None:
        return np.full(len(flat.states), np.inf)
    others = np.delete(np.arange(len(flat.states)), target)
    steps = np.zeros(len(flat.states))
    while True:
        moves = flat.transitions[policy, np.arange(len(policy))]
        inner = moves[np.ix_(others, others)]
        steps[others] = np.linalg.solve(np.eye(len(others)) - inner, np.ones(len(others)))
        after = flat.transitions @ steps  # [action, state]
        if (after.min(axis=0)[others] >= steps[others] - 1 - SETTLED * steps.max()).all():
            return steps
        policy = after.argmin(axis=0)


def _towards(flat: FlatMDP, target: int) -> Integers | None:
    """Actions that may lead nearer to a target, from every state; None if there are none."""
    policy = np.zeros(len(flat.states), dtype=np.int64)
    reached = np.arange(len(flat.states)) == target
    while not reached.all():
        chances = flat.transitions[:, :, reached].sum(axis=2)  # [action, state]
        new = (chances.max(axis=0) > 0) & ~reached
        if not new.any():
            return None
        policy[new] = chances.argmax(axis=0)[new]
        reached = reached | new
    return policy


def practical(model: FactoredMDP, seed: int) -> Learner:
    """UCRL-Factored with its practical preset, without empirical Q-values, as in the paper."""
    return UCRLFactored(model.structure(Basis.singles(model)), seed=seed, empirical_weight=0)


def run(form: Form, seed: int, callback: Callback) -> Evidence:
    """The same learner on both models, and the diameter of both."""
    sizes = SIZES[form]
    both = {
        CONNECTED: TwoIslands(sizes.nodes, connected=True),
        DISCONNECTED: TwoIslands(sizes.nodes, connected=False),
    }
    trials = [
        Trial({"model": name}, islands.prepare, practical, sizes.episodes, seed + number)
        for name, islands in both.items()
        for number in range(sizes.seeds)
    ]
    curves = measure_all(trials, sizes.workers, lambda text: callback(f"diameter: {text}"))
    callback("diameter: travelling between all pairs of states")
    return Evidence(
        {
            "curves": thinned(curves).select("model", "seed", "episode", "regret"),
            "ends": final_regret(curves, "model"),
            "diameters": polars.DataFrame(
                [
                    {"model": name, "diameter": diameter(enumerate_states(islands.model()))}
                    for name, islands in both.items()
                ]
            ),
        }
    )


def judge(evidence: Evidence) -> Judgement:
    """An infinite diameter, and no more regret."""
    ends = {row["model"]: row for row in evidence["ends"].iter_rows(named=True)}
    steps = dict(evidence["diameters"].iter_rows())
    ratio = ends[DISCONNECTED]["regret"] / ends[CONNECTED]["regret"]
    reason = (
        f"diameter {steps[CONNECTED]:,.0f} steps when connected, {steps[DISCONNECTED]:,.0f} when "
        f"not; regret {ends[CONNECTED]['regret']:.3g} and {ends[DISCONNECTED]['regret']:.3g}, a "
        f"ratio of {ratio:.2f}"
    )
    good = np.isinf(steps[DISCONNECTED]) and np.isfinite(steps[CONNECTED]) and ratio <= MOST_RATIO
    return Judgement(Verdict.HOLDS if good else Verdict.FAILS, reason)


def draw(evidence: Evidence) -> Chart:
    """Both regret curves."""
    notes = {
        name: f"diameter {steps:,.0f} steps" if np.isfinite(steps) else "diameter infinite"
        for name, steps in evidence["diameters"].iter_rows()
    }
    return Chart(
        name="diameter",
        title="Regret with and without a way between two halves of the states",
        caption="UCRL-Factored, practical preset; means over seeds with standard errors. Bounds "
        "that are proportional to the diameter say nothing of the second curve.",
        panels=(Panel("regret", mean_lines(evidence["curves"], "model", notes)),),
    )


CLAIM = Claim(
    name="diameter",
    title="Regret does not depend on the diameter",
    statement="Earlier bounds for factored problems grow with the diameter: the time it takes to "
    "get from any state to any other. Learning in episodes with linear value functions needs no "
    "such thing; states may be cut off from one another.",
    what_was_run="Opinions on a graph, on one of two islands. In one model the island is drawn "
    "anew in every step, in the other it never changes, so half of the states cannot be reached "
    "from the other half. The same learner and seeds on both, and the diameter of both computed "
    "over all pairs of states.",
    rule="Holds if one diameter is finite and the other infinite, and the regret on the "
    f"disconnected model is at most {MOST_RATIO:g} times that on the connected one.",
    run=run,
    judge=judge,
    draw=draw,
)
