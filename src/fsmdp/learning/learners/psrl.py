"""Posterior sampling: plan for a model drawn from the posterior, and follow the plan."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fsmdp.foundation.kinds import POSITIVE
from fsmdp.learning.cells.confidence import weighted_means
from fsmdp.learning.learners.acting import Planned
from fsmdp.learning.learners.factored import REPLAN, FactoredLearner
from fsmdp.learning.learners.registry import LearnerEntry, builder
from fsmdp.learning.learners.warm import STAGEWISE
from fsmdp.learning.options import as_positive
from fsmdp.model.rewards import Reward
from fsmdp.model.structure import Structure
from fsmdp.model.tables import Floats
from fsmdp.planning.intervals import Intervals


class PSRLFactored(FactoredLearner):
    """Posterior sampling, cell by cell.

    The next values of a cell have a Dirichlet posterior, whose prior is `prior` for each value (1:
    all distributions alike); functions of the same scope and parents share the draw. A reward cell has a normal prior over the middle of its bounds with a
    deviation of half their distance; draws are clipped to the bounds, and a term without noise is
    known after one visit. Cells are drawn independently, so a draw need not be the model of any
    process: the planner does not ask for one. `replan` as for `UCRLFactored`.

    There is no guarantee for a single run; what `optimistic_values` show is the sample's value.
    """

    name = "PSRLFactored"

    def __init__(
        self,
        structure: Structure,
        seed: int = 0,
        *,
        prior: float = 1.0,
        replan: str | float = "episode",
        known_rewards: Sequence[Reward] | None = None,
    ) -> None:
        self.prior = as_positive(prior, "prior", "1 is uniform")
        super().__init__(
            structure, seed=seed, method=STAGEWISE, replan=replan, known_rewards=known_rewards
        )
        starts, first_cell, self._set_of_cell = np.unique(
            self.cells.layout.outcome_start, return_index=True, return_inverse=True
        )
        self._set_starts, self._set_sizes = starts, self.cells.n_values[first_cell]

    def sample_means(self) -> Floats:
        """Mean of h_j in every cell, under distributions drawn from the posterior."""
        cells, firsts = self.cells, self._set_starts
        draws = self.rng.standard_gamma(self.prior + self.statistics.outcomes)
        totals = np.add.reduceat(draws, firsts)
        empty = np.flatnonzero(totals == 0)
        if len(empty):
            # A small prior can draw nothing but zeros; then all is on one value, at random.
            draws[firsts[empty] + self.rng.integers(self._set_sizes[empty])] = 1.0
            totals[empty] = 1.0
        means = weighted_means(cells, totals[self._set_of_cell], draws)
        means[cells.lowest == cells.highest] = 1.0  # only the constant is
        return np.clip(means, cells.lowest, cells.highest)

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
        means, rewards = self.sample_means(), self.sample_rewards()
        return self.follow(Intervals(rewards, means, means))

    def describe(self) -> str:
        """The options that matter."""
        return f"Dirichlet prior {self.prior:g}, {self.planner.method}, {self.when_to_plan()}"


ENTRY = LearnerEntry(
    "psrl",
    "PSRL-Factored",
    "posterior sampling, cell by cell",
    builder(PSRLFactored),
    {"prior": (POSITIVE, 1.0), "replan": (REPLAN, "episode")},
    uses_basis=True,
    takes_rewards=True,
)
