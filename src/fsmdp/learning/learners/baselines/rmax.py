"""Factored R-max: cells seen often enough are believed, all others are taken at their best."""

from collections.abc import Sequence
from typing import Annotated

import numpy as np

from fsmdp.bounds.bellman import Intervals
from fsmdp.foundation.checks import as_whole
from fsmdp.foundation.kinds import WHOLE
from fsmdp.learning.cells.confidence import empirical_moments
from fsmdp.learning.learners.factored import STAGEWISE, FactoredLearner
from fsmdp.learning.learners.learner import NEVER, Planned
from fsmdp.learning.learners.registry import entry_of
from fsmdp.model.rewards import Reward
from fsmdp.model.structure import Structure
from fsmdp.model.tables import Booleans, Integers

KNOWN_AFTER = 20
MOST_VISITS = 2**40


class RMaxFactored(FactoredLearner):
    """Known cells at their averages, unknown cells at the best that they may be.

    A cell of a function or reward term is known from its m-th visit on (m is `known_after`); a
    reward without noise from its first. The mean of a function is then its average, and before
    anything between its smallest and largest value, whichever a plan profits from; an unknown
    reward is its upper bound. The program of stages plans for it, capped by what is left to earn,
    so a plan takes polynomial time. A new plan is made when a cell becomes known: with N cells at
    most N + 1 in all.
    The sources send unknown parts of the state to a fictitious best one and leave planning to an
    oracle, or to an approximate program. Here an unknown cell is the widest interval of
    `UCRLFactored`. Values are upper bounds as far as averages are right and no further, and m is
    chosen, not computed from a wanted accuracy: **every result is heuristic**.
    Sources: Brafman and Tennenholtz (2002), R-MAX; Kearns and Koller (1999), Efficient
    reinforcement learning in factored MDPs; Guestrin, Patrascu and Schuurmans (2002),
    Algorithm-directed exploration for model-based reinforcement learning in factored MDPs.
    """

    name = "RMaxFactored"
    heuristic = True

    def __init__(
        self,
        structure: Structure,
        known_after: Annotated[int, WHOLE] = KNOWN_AFTER,
        seed: int = 0,
        *,
        known_rewards: Sequence[Reward] | None = None,
    ) -> None:
        self.known_after = as_whole(known_after, "known_after", 1, MOST_VISITS)
        super().__init__(
            structure, seed=seed, method=STAGEWISE, replan="episode", known_rewards=known_rewards
        )

    @property
    def capped(self) -> bool:
        """Values are optimistic about all that is unknown."""
        return True

    def needed(self) -> Integers:
        """Visits from which each cell is known."""
        found = np.full(len(self.statistics.visits), self.known_after, dtype=np.int64)
        found[: self.cells.n_reward_cells][self.cells.sigma == 0] = 1
        return found

    def unknown(self) -> Booleans:
        """For each cell whether it is to be learnt, and not known yet."""
        learnt = np.concatenate([~self.cell_known, self.is_learnt()])
        return learnt & (self.statistics.visits < self.needed())

    def believed(self) -> Intervals:
        """Averages where cells are known, everything where they are not."""
        cells, statistics = self.cells, self.statistics
        unknown = self.unknown()
        unknown_rewards = unknown[: cells.n_reward_cells]
        # Of what is not learnt from its own cells, those never visited have only their range.
        unknown_means = unknown[cells.n_reward_cells :] | (statistics.transition_visits == 0)
        averages, _ = empirical_moments(cells, statistics)
        low = np.where(unknown_means, cells.lowest, averages)
        high = np.where(unknown_means, cells.highest, averages)
        if self.products is not None:
            low, high = self.products.ends(low, high, self.first_cell)
        seen = statistics.reward_sums / np.maximum(statistics.reward_visits, 1)
        seen = np.where(self.cell_known, self.known_means, seen)
        return Intervals(
            np.where(unknown_rewards, cells.reward_high, seen),
            low,
            high,
            reward_low=np.where(unknown_rewards, cells.reward_low, seen),
        )

    def replan(self) -> Planned:
        """Plan for known cells and the best of all others."""
        return self.follow(self.believed())

    def replan_at(self) -> Integers:
        """When the next cell becomes known."""
        return np.where(self.unknown(), self.needed(), NEVER)

    def lasting(self) -> float:
        """Episodes that a plan is expected to last: as many as there were for each so far."""
        return max(1.0, self.statistics.episodes / max(1, int((~self.unknown()).sum())))

    def describe(self) -> str:
        """The options that matter."""
        return f"known after {self.known_after} visits, heuristic"


WHAT = "believes cells seen often enough, takes all others at their best"
ENTRY = entry_of(RMaxFactored, "rmax", "factored R-max", WHAT)
