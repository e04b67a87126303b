"""What factored learners share: a live planner, and when to plan again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import is_number, show
from fsmdp.learning.confidence import empirical_moments
from fsmdp.learning.counting import CountingLearner
from fsmdp.learning.live import LivePlanner
from fsmdp.learning.options import LARGEST
from fsmdp.model.lookup import Integers
from fsmdp.model.rewards import Reward
from fsmdp.model.structure import Structure
from fsmdp.model.tables import Floats
from fsmdp.planning.intervals import Intervals
from fsmdp.planning.plan import Plan
from fsmdp.planning.problem import Problem
from fsmdp.planning.stagewise import Stagewise

EVERY_EPISODE = 0.0
NEVER = 2.0**62  # visits that no cell will have


class FactoredLearner(CountingLearner):
    """A learner that counts in the cells of its Structure and plans with a linear program."""

    name = "FactoredLearner"

    def __init__(
        self,
        structure: Structure,
        *,
        seed: int,
        method: str,
        replan: str | float,
        known_rewards: Sequence[Reward] | None,
    ) -> None:
        self.growth = _growth(replan)
        super().__init__(structure, seed=seed, known_rewards=known_rewards)
        self.planner = LivePlanner(structure, self.network, method)

    def start_means(self) -> Floats:
        """Means of h_j over the first states seen; over all states alike before the first."""
        if self.statistics.episodes == 0:
            return self.planner.uniform
        columns, values = self.network.value_columns, self.network.values
        totals = np.bincount(columns, weights=self.statistics.starts * values)
        return np.asarray(totals / self.statistics.episodes)

    def plan(self) -> Plan:
        """What was learnt, as a plan to act by: for the means seen so far, without optimism.

        Cells never met have the middle of their range. The bound of this plan is one of the
        estimated model and certifies nothing about the true one. The learner itself goes on as
        if this had not been called. Cost: a cold plan.
        """
        cells, statistics = self.cells, self.statistics
        means, _ = empirical_moments(cells, statistics)
        means = np.where(
            statistics.transition_visits > 0, means, (cells.lowest + cells.highest) / 2
        )
        n = statistics.reward_visits
        rewards = np.where(
            n > 0,
            statistics.reward_sums / np.maximum(n, 1),
            (cells.reward_low + cells.reward_high) / 2,
        )
        rewards = np.where(self.cell_known, self.known_means, rewards)
        start = self.start_means()
        intervals = Intervals(rewards, means, means)
        problem = Problem(self.network, intervals, start, start, self.planner.uniform)
        return replace(Stagewise().solve(problem), method="stagewise, of the estimated model")

    def replan_at(self) -> Integers:
        """Visits of each cell from which a new plan is due."""
        n = self.statistics.visits
        if self.growth == EVERY_EPISODE:
            return np.zeros(len(n), dtype=np.int64)
        grown = np.minimum(np.ceil((1 + self.growth) * n), NEVER)
        return np.asarray(np.maximum(n + 1, grown), dtype=np.int64)

    def when_to_plan(self) -> str:
        """How a description says when plans are made."""
        if self.growth == EVERY_EPISODE:
            return "plans every episode"
        return f"plans at growth {self.growth:g}"

    def state(self) -> dict[str, np.ndarray]:
        """Random state and bases: what the next plan depends on besides the statistics."""
        return super().state() | {"bases": self.planner.bases()}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Take a state back."""
        super().restore(state)
        self.planner.restart_from(state["bases"])


def _growth(replan: object) -> float:
    if isinstance(replan, str) and replan == "episode":
        return EVERY_EPISODE
    if is_number(replan) and 0 <= replan <= LARGEST:
        return float(replan)
    raise ModelError(
        "replan: expected 'episode', or the growth of a cell that calls for a new plan, found "
        f"{show(replan)}; 0.5 is for half as many visits again."
    )
