"""Posterior sampling: plan for a model drawn from the posterior, and follow the plan."""

from collections.abc import Sequence
from typing import Annotated

import numpy as np

from fsmdp.bounds.bellman import Intervals
from fsmdp.errors import ModelError
from fsmdp.foundation.checks import as_choice, as_positive
from fsmdp.foundation.kinds import OneOf, PositiveOrChosen
from fsmdp.learning.learners.factored import (
    PLANNERS,
    PROGRAM,
    REPLAN,
    SOLVER,
    STAGEWISE,
    FactoredLearner,
)
from fsmdp.learning.learners.learner import Planned, check_structure
from fsmdp.learning.learners.registry import Options, entry_of
from fsmdp.learning.sampled import best_policy, model_of
from fsmdp.model.rewards import Reward
from fsmdp.model.structure import Structure
from fsmdp.model.tables import Floats
from fsmdp.policies.arrays import CompiledPolicy

MOST_ROWS = 40_000
"""Of the program of all steps, so that its policy is a candidate beside fitted values."""

REPLAN_BY: dict[str, str | float] = {PROGRAM: "episode", SOLVER: 0.2}
"""When plans are made unless it is said: by the solver, when all steps have grown by a fifth."""


PRIOR_BY = {PROGRAM: 1.0, SOLVER: 0.1}
"""For each value unless it is said. Real problems are nearly deterministic in most cells: with 1, a
model drawn whole has chance in every variable, and what was not tried looks like noise."""


class PSRLFactored(FactoredLearner):
    """Posterior sampling, cell by cell.

    The next values of a cell have a Dirichlet posterior, whose prior is `prior` for each value (1,
    the program's: all distributions alike; 0.1, the solver's: most of the mass on few values);
    functions of the same scope and parents share the draw. A reward cell has a normal prior over
    the middle of its bounds with a deviation of half their distance; draws are clipped to the
    bounds, and a term without noise is known after one visit. Cells are drawn independently, so a
    draw need not be the model of any process: the program does not ask for one. Where the structure
    states independence, products are made from draws of their parts (`independent=False`: not).
    `replan` as for `UCRLFactored`.

    With `planner="solver"` a whole model is drawn, group by group of what the structure states to
    be independent, and the best of several policies for it is followed: exact values if it is
    small, otherwise fitted values and the program's policy, judged by simulation of the draw. Plans
    are made when the number of steps has grown by a fifth. Values of the history are NaN.

    There is no guarantee for a single run; what `optimistic_values` show is the sample's value.
    """

    name = "PSRLFactored"

    def __init__(
        self,
        structure: Structure,
        seed: int = 0,
        *,
        prior: PositiveOrChosen = None,
        replan: Annotated[str | float | None, REPLAN] = None,
        known_rewards: Sequence[Reward] | None = None,
        independent: bool = True,
        planner: Annotated[str, OneOf(PLANNERS)] = PROGRAM,
    ) -> None:
        as_choice(planner, "planner", PLANNERS)
        given = PRIOR_BY[planner] if prior is None else prior
        self.prior = as_positive(given, "prior", "1 is uniform")
        stated = check_structure(self.name, structure).independent
        if planner == SOLVER and not (independent and stated):
            raise ModelError(
                "planner='solver' plans for a whole model drawn from the posterior, which takes "
                "groups of variables that are independent, and the structure states none; state "
                "them (independent=...), or use planner='program'."
            )
        super().__init__(
            structure,
            seed=seed,
            method=STAGEWISE,
            replan=REPLAN_BY[planner] if replan is None else replan,
            known_rewards=known_rewards,
            independent=independent,
            planner=planner,
        )

    def sample_means(self) -> Floats:
        """Mean of h_j in every cell, under distributions drawn from the posterior."""
        return self.means_of(self.sample_outcomes())

    def sample_outcomes(self) -> Floats:
        """Weights of all outcomes, drawn from the posterior; shares of a set are a distribution."""
        draws = self.rng.standard_gamma(self.prior + self.statistics.outcomes)
        empty = np.flatnonzero(self.sets.totals(draws) == 0)
        if len(empty):
            # A small prior can draw nothing but zeros; then all is on one value, at random.
            draws[self.sets.starts[empty] + self.rng.integers(self.sets.sizes[empty])] = 1.0
        return np.asarray(draws)

    def sample_rewards(self) -> Floats:
        """Mean of every reward cell, drawn from the posterior; the truth where it is known."""
        cells, n = self.cells, self.statistics.reward_visits
        low, high = cells.reward_low, cells.reward_high
        middle, deviation = (low + high) / 2, np.maximum((high - low) / 2, 1e-300)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            # By the ratio of prior to noise, which is infinite without noise.
            weight = np.where(cells.sigma > 0, n * (deviation / cells.sigma) ** 2, np.inf)
        weight = np.where(n == 0, 0.0, weight)
        observed = self.statistics.reward_sums / np.maximum(n, 1)
        share = np.where(
            np.isinf(weight), 1.0, weight / (1 + np.where(np.isinf(weight), 0, weight))
        )
        spread = deviation * np.sqrt(1 - share)
        drawn = (1 - share) * middle + share * observed + spread * self.rng.standard_normal(len(n))
        return np.where(self.cell_known, self.known_means, np.clip(drawn, low, high))

    def replan(self) -> Planned:
        """Plan for a draw from the posterior."""
        draws, rewards = self.sample_outcomes(), self.sample_rewards()
        means = self.means_of(draws)
        intervals = Intervals(rewards, means, means)
        if self.groups is None:
            return self.follow(intervals)
        model = model_of(
            self.structure,
            self.groups,
            self.cells,
            self.sets.shares(draws),
            rewards,
            self.statistics,
        )
        seed = int(self.rng.integers(2**31))
        _, policy = best_policy(model, lambda: self.candidates(intervals), seed)
        return self.unclaimed(policy, self.replan_at())

    def candidates(self, intervals: Intervals) -> list[tuple[str, CompiledPolicy]]:
        """The policy of the linear program, unless that takes longer than all the rest."""
        if self.horizon * self.network.elimination.n_rows > MOST_ROWS:
            return []
        return [("linear program", self.follow(intervals).acting.policy)]

    def describe(self) -> str:
        """The options that matter."""
        return f"Dirichlet prior {self.prior:g}, {self.planner.method}, {self.when_to_plan()}"


def _fill_from_planner(options: Options) -> Options:
    """Say what was left to the planner, so that results tell what was used."""
    planner = options["planner"]
    filled = {"prior": PRIOR_BY[planner], "replan": REPLAN_BY[planner]}
    return {name: filled.get(name) if value is None else value for name, value in options.items()}


ENTRY = entry_of(
    PSRLFactored,
    "psrl",
    "PSRL-Factored",
    "posterior sampling, cell by cell",
    complete=_fill_from_planner,
)
