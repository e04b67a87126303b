"""What factored learners share: a warm planner, and when to plan again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import is_number, show
from fsmdp.foundation.kinds import Reading
from fsmdp.learning.cells.confidence import empirical_moments
from fsmdp.learning.learners.acting import NEVER, Acting, Planned
from fsmdp.learning.learners.counting import CountingLearner
from fsmdp.learning.learners.ties import TieBreaker
from fsmdp.learning.learners.warm import Warm
from fsmdp.learning.options import LARGEST, check_structure
from fsmdp.model.lookup import Integers
from fsmdp.model.rewards import Reward
from fsmdp.model.structure import Structure
from fsmdp.model.tables import Floats
from fsmdp.planning.bellman import network_of_structure
from fsmdp.planning.greedy import q_entries_of
from fsmdp.planning.intervals import PESSIMISTIC, Intervals
from fsmdp.planning.plan import Plan
from fsmdp.planning.problem import Problem
from fsmdp.planning.stagewise import Stagewise

EVERY_EPISODE = 0.0


def _read_replan(text: str) -> str | float:
    if text == "episode":
        return text
    growth = float(text)
    if not math.isfinite(growth) or growth < 0:
        raise ValueError(text)
    return growth


REPLAN = Reading(
    "'episode', or the growth of a cell that calls for a plan (0.5: half)", _read_replan
)


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
        planner = Warm(method)
        # Before cells are laid out: what is too wide to plan in is refused in no time.
        self.network = network_of_structure(check_structure(self.name, structure))
        super().__init__(structure, seed=seed, known_rewards=known_rewards)
        self.planner = planner.start(self.network)
        self._ties = TieBreaker(structure)

    def follow(self, intervals: Intervals) -> Planned:
        """The greedy policy of a plan for these intervals, to within epsilon = sqrt(1 / k)."""
        network, epsilon = self.network, math.sqrt(1 / self.episode)
        intervals = self.cells.spread(intervals)
        found = self.planner.plan(intervals, self.start_means(), epsilon)
        q = q_entries_of(network, intervals, found.weights)
        lowest = q_entries_of(network, intervals.with_lowest_rewards(), found.weights, PESSIMISTIC)
        largest = float(np.abs(intervals.rewards).max(initial=0.0))
        acting = Acting(
            self._ties.policy(q, largest, self.rng, self.lasting()),
            found.weights[:, network.value_columns] * network.values,
            q,
            q - lowest,
            self.replan_at(),
        )
        return Planned(acting, found.lift, float(np.abs(found.weights).sum(axis=1).max()))

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
        intervals = self.cells.spread(Intervals(rewards, means, means))
        problem = Problem(self.network, intervals, start, start, self.planner.uniform)
        return replace(Stagewise().solve(problem), method="stagewise, of the estimated model")

    def replan_at(self) -> Integers:
        """Visits of each cell from which a new plan is due."""
        n = self.statistics.visits
        if self.growth == EVERY_EPISODE:
            return np.zeros(len(n), dtype=np.int64)
        grown = np.minimum(np.ceil((1 + self.growth) * n), NEVER)
        return np.asarray(np.maximum(n + 1, grown), dtype=np.int64)

    def lasting(self) -> float:
        """Episodes that a plan is expected to last: until the cells met in each of them have grown.

        Others may call for a plan sooner.
        """
        return 1 + self.growth * self.statistics.episodes

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
