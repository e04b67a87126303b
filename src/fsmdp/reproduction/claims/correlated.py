"""Correlated transitions: a learner that assumes independent factors never stops losing."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import polars

from fsmdp.domains.gridworld import gridworld
from fsmdp.domains.maintenance import maintenance
from fsmdp.exact.evaluation import evaluate_exactly
from fsmdp.exact.flat import enumerate_states
from fsmdp.exact.solve import solve_exactly
from fsmdp.learning.learners.baselines.ucrl2 import UCRLProduct
from fsmdp.learning.learners.learner import Learner
from fsmdp.learning.learners.ucrl import UCRLFactored
from fsmdp.model.basis import Basis
from fsmdp.model.cases import Case, Cases
from fsmdp.model.conditionals import Conditional
from fsmdp.model.marginals import Marginal
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.tables import Floats, Table
from fsmdp.report.charts import Chart, Line, Panel, Role
from fsmdp.reproduction.claim import (
    Callback,
    Claim,
    Evidence,
    Form,
    Judgement,
    Repeats,
    Verdict,
    fitted_exponent,
)
from fsmdp.reproduction.losses import EnumeratedOptimum, Optimum, Trial, measure_all, thinned

MOST_EXPONENT = 0.8
MOST_LATE = 0.5  # late loss of an episode, as a part of the early one
LEAST_LATE = 0.5  # late loss of the product learner, as a part of its limit

OURS, PRODUCT = "UCRLFactored", "UCRLProduct"
MAINTENANCE, GRIDWORLD = "maintenance", "gridworld"


@dataclass(frozen=True, slots=True, eq=False)
class Sizes(Repeats):
    """How many seeds and episodes, and episodes in the gridworld."""

    grid_episodes: int


SIZES = {
    Form.TINY: Sizes(1, 500, 40, workers=1),
    Form.SMALL: Sizes(3, 6000, 300),
    Form.FULL: Sizes(8, 20_000, 1000),
}


def run(form: Form, seed: int, callback: Callback) -> Evidence:
    """Both learners on both models, and the exact values that they should reach."""
    sizes = SIZES[form]
    trials = [
        Trial(
            {"model": name, "learner": learner},
            partial(_prepare, name),
            partial(_learner, name, learner),
            sizes.episodes if name == MAINTENANCE else sizes.grid_episodes,
            seed + number,
        )
        for name in (GRIDWORLD, MAINTENANCE)
        for number in range(sizes.seeds)
        for learner in (PRODUCT, OURS)
    ]
    measured = measure_all(trials, sizes.workers, callback).select(
        "model", "learner", "seed", "episode", "regret", "optimistic_value"
    )
    regret = polars.concat(
        [thinned(part) for _, part in measured.group_by("model", maintain_order=True)]
    )
    values = [
        exact_values(maintenance()) | {"model": MAINTENANCE},
        exact_values(lanes()) | {"model": GRIDWORLD},
    ]
    return Evidence({"regret": regret, "values": polars.DataFrame(values)})


def lanes() -> FactoredMDP:
    """Two lanes of two cells: the product learner plans over all states, after every episode."""
    return gridworld(2, 2, horizon=6)


def _prepare(name: str) -> tuple[FactoredMDP, Optimum]:
    model = maintenance() if name == MAINTENANCE else lanes()
    return model, EnumeratedOptimum.of(model)


def _learner(name: str, learner: str, model: FactoredMDP, seed: int) -> Learner:
    known: dict[str, Any] = {"known_rewards": model.rewards} if name == MAINTENANCE else {}
    basis = with_product(model) if name == MAINTENANCE else Basis.singles(model)
    structure = model.structure(basis)
    if learner == OURS:
        return UCRLFactored(structure, seed=seed, empirical_weight=0, **known)
    return UCRLProduct(structure, seed=seed, **known)


def with_product(model: FactoredMDP) -> Basis:
    """The variables of a pair, and their product."""
    names = [variable.name for variable in model.variables]
    return Basis(
        [
            *(Table([name], [0.0, 1.0]) for name in names),
            Table(names, np.outer([0.0, 1.0], [0.0, 1.0])),
        ]
    )


def product_of_marginals(model: FactoredMDP) -> FactoredMDP:
    """The model in which each variable is drawn by itself, as often as it truly is.

    Where a learner that counts each variable apart ends up.
    """
    marginals = model.marginals(Basis.blocks(model, [(v.name,) for v in model.variables]))
    by_scope = {
        table.scope: cases for table, cases in zip(marginals.basis, marginals.cases, strict=True)
    }
    return FactoredMDP(
        variables=model.variables,
        actions=model.actions,
        conditionals=[
            Conditional(variable.name, _cases(by_scope[(position,)], model))
            for position, variable in enumerate(model.variables)
        ],
        rewards=model.rewards,
        horizon=model.horizon,
        initial={
            variable.name: distribution
            for variable, distribution in zip(
                model.variables, model.initial_distributions(), strict=True
            )
        },
        discount=model.discount,
    )


def _cases(marginals: Cases[Marginal], model: FactoredMDP) -> list[Case]:
    return [
        Case(
            [a for number, a in enumerate(model.actions) if marginals.group(number) == group],
            [model.variables[parent].name for parent in marginal.parent_scope],
            marginal.probabilities,
        )
        for group, marginal in enumerate(marginals)
    ]


def exact_values(model: FactoredMDP) -> dict[str, Any]:
    """What is true, what the product of the marginals says, and what acting on it is worth.

    `distance` is how far, in total variation, the product is from the truth after one step from
    the start, under the action where it is furthest.
    """
    product = product_of_marginals(model)
    truth, wrong = solve_exactly(model), solve_exactly(product)
    start = truth.flat.initial()
    difference = np.abs(truth.flat.transitions - enumerate_states(product).transitions)
    return {
        "optimal_value": truth.start_value,
        "product_value": wrong.start_value,
        "worth_of_product_policy": float(start @ evaluate_exactly(model, wrong)),
        "distance": float((start @ difference.sum(axis=2).max(axis=0)) / 2),
    }


@dataclass(frozen=True, slots=True, eq=False)
class Course:
    """How the regret of a learner went, mean over seeds."""

    episodes: Floats
    regret: Floats

    @property
    def exponent(self) -> float:
        """Of the regret in the number of episodes, from a quarter of them on; 0 if there is none.

        The learner of the paper first has to see how the units fail, and loses on every episode
        until then: what counts is how it goes on.
        """
        late = (self.episodes >= self.episodes[-1] / 4) & (self.regret > 0)
        if late.sum() < 2:
            return 0.0
        return fitted_exponent(self.episodes[late], self.regret[late])

    def loss(self, begin: float, end: float) -> float:
        """Mean loss of an episode between two fractions of the run."""
        last = self.episodes[-1]
        at = np.interp([begin * last, end * last], self.episodes, self.regret, left=0.0)
        return float((at[1] - at[0]) / ((end - begin) * last))

    @property
    def late_part(self) -> float:
        """Loss of an episode in the last quarter as a part of that in the first."""
        return self.loss(0.75, 1.0) / max(self.loss(0.0, 0.25), 1e-12)


def course(evidence: Evidence, model: str, learner: str) -> Course:
    """The mean course of a learner on a model."""
    mean = (
        evidence["regret"]
        .filter((polars.col("model") == model) & (polars.col("learner") == learner))
        .group_by("episode")
        .agg(polars.col("regret").mean())
        .sort("episode")
    )
    return Course(mean["episode"].to_numpy().astype(float), mean["regret"].to_numpy())


def _values(evidence: Evidence, model: str) -> dict[str, Any]:
    return evidence["values"].row(by_predicate=polars.col("model") == model, named=True)


def judge(evidence: Evidence) -> Judgement:
    """Ours settles on both models, and the product learner's loss stays near its limit."""
    ours = {name: course(evidence, name, OURS) for name in (MAINTENANCE, GRIDWORLD)}
    product, grid = course(evidence, MAINTENANCE, PRODUCT), course(evidence, GRIDWORLD, PRODUCT)
    pair, grid_values = (_values(evidence, name) for name in (MAINTENANCE, GRIDWORLD))
    limit = pair["optimal_value"] - pair["worth_of_product_policy"]
    late = product.loss(0.75, 1.0)
    settles = all(
        one.exponent <= MOST_EXPONENT and one.late_part < MOST_LATE for one in ours.values()
    )
    keeps_losing = limit > 0 and late >= LEAST_LATE * limit
    mine = ours[MAINTENANCE]
    reason = (
        f"two units: our regret grows with exponent {mine.exponent:z.2f} and ends at "
        f"{mine.regret[-1]:,.0f}, an episode losing {mine.loss(0.75, 1.0):.3f} late and "
        f"{mine.loss(0.0, 0.25):.3f} early; the product learner still loses {late:.3f} an episode "
        f"(limit {limit:.3f}) and ends at {product.regret[-1]:,.0f}; the product of the marginals "
        f"is worth {pair['product_value']:.2f}, the truth {pair['optimal_value']:.2f}, and what "
        f"is best in the product {pair['worth_of_product_policy']:.2f}; gridworld: ours ends at "
        f"{ours[GRIDWORLD].regret[-1]:.0f}, the product learner at {grid.regret[-1]:.0f}: its "
        f"model is wrong there by {grid_values['distance']:.2f} in total variation, yet is worth "
        f"{grid_values['product_value']:.2f} where the truth is {grid_values['optimal_value']:.2f}"
    )
    if not settles:
        return Judgement(Verdict.FAILS, reason)
    return Judgement(Verdict.HOLDS if keeps_losing else Verdict.CORRECTED, reason)


def draw(evidence: Evidence) -> Chart:
    """Regret on the pair of units, and the value that each learner expects."""
    labels = {OURS: "ours, which learns the pair", PRODUCT: "independent factors"}
    regret, expected = [], []
    part = evidence["regret"].filter(polars.col("model") == MAINTENANCE)
    for learner, label in labels.items():
        mean = (
            part.filter(polars.col("learner") == learner)
            .group_by("episode")
            .agg(polars.col("regret", "optimistic_value").mean())
            .sort("episode")
        )
        x = mean["episode"].to_numpy().astype(float)
        regret.append(Line(label, x, mean["regret"].to_numpy(), learner))
        expected.append(Line(label, x, mean["optimistic_value"].to_numpy(), learner))
    values = _values(evidence, MAINTENANCE)
    for label, key in (
        ("V*", "optimal_value"),
        ("value of the product of the marginals", "product_value"),
    ):
        expected.append(Line(label, x, np.full(len(x), values[key]), None, Role.REFERENCE))
    return Chart(
        name="correlated",
        title="Two units that one shock takes together",
        caption="Mean over seeds. Counting each unit by itself, the product learner comes to "
        "believe that two units hardly ever fail together. What it expects falls to a value that "
        "is not to be had, and its regret stays a straight line.",
        panels=(
            Panel("regret", tuple(regret)),
            Panel("return that is expected", tuple(expected)),
        ),
    )


CLAIM = Claim(
    name="correlated",
    title="Transitions of the factors may be correlated",
    statement="Learners for factored MDPs take the next values of the variables to be independent "
    "given the state and the action. Ours needs the marginals of the basis functions only, so "
    "variables may be correlated: objects that exclude one another in a gridworld, or units that "
    "fail together.",
    what_was_run="Two redundant units that one shock takes together, with a basis that holds both "
    "variables and their product, and the gridworld of the paper's remark; our learner, and "
    "UCRL-Factored of Osband and Van Roy, which draws every variable from its own marginal. The "
    "value of the product of the marginals is computed by enumeration.",
    rule=f"Holds if on both models our regret from a quarter of the episodes on grows with an "
    f"exponent of at most {MOST_EXPONENT:g} and an episode of the last quarter loses less than "
    f"{MOST_LATE:g} of one in the first, while on the two units the product learner still loses "
    f"at least {LEAST_LATE:g} of its limit, the loss of what is best in the product of the "
    "marginals. With a correction if ours settles and the product learner does so as well.",
    run=run,
    judge=judge,
    draw=draw,
    tables={"values": ("model", "optimal_value", "product_value", "worth_of_product_policy")},
)
