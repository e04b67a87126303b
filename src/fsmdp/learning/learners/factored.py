"""What factored learners share: a warm planner, and when to plan again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import check_size, is_number, show
from fsmdp.foundation.kinds import Reading
from fsmdp.learning.cells.confidence import empirical_moments
from fsmdp.learning.cells.layout import check_cells
from fsmdp.learning.cells.together import indicators_of
from fsmdp.learning.learners.acting import NEVER, Acting, Planned
from fsmdp.learning.learners.counting import CountingLearner
from fsmdp.learning.learners.nested import coarse_planner
from fsmdp.learning.learners.ties import TieBreaker
from fsmdp.learning.learners.warm import STAGEWISE, Warm
from fsmdp.learning.options import LARGEST, check_structure
from fsmdp.model.lookup import Integers
from fsmdp.model.rewards import Reward
from fsmdp.model.structure import Structure
from fsmdp.model.tables import Floats
from fsmdp.model.variables import table_size
from fsmdp.planning.bellman import network_of_structure
from fsmdp.planning.greedy import q_entries_of
from fsmdp.planning.intervals import PESSIMISTIC, Intervals
from fsmdp.planning.plan import Plan
from fsmdp.planning.problem import Problem
from fsmdp.planning.stagewise import Stagewise

EVERY_EPISODE = 0.0

MOST_ENTRIES = 2**24
"""Numbers of all steps of a plan: several arrays of so many are held at once."""


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
        planner = Warm(method, capped=method == STAGEWISE and self.optimistic)
        # Before cells are laid out: what is too wide to plan in is refused in no time.
        check_entries(check_structure(self.name, structure))
        self.network = network_of_structure(structure)
        super().__init__(structure, seed=seed, known_rewards=known_rewards)
        self.planner = planner.start(self.network)
        self.together = indicators_of(structure)
        self.coarse = None
        if planner.capped:
            self.coarse = coarse_planner(structure, self.network.backup_columns, planner)
        self._ties = TieBreaker(structure)

    def follow(self, intervals: Intervals) -> Planned:
        """The greedy policy of a plan for these intervals, to within epsilon = sqrt(1 / k).

        Of two programs, that of all functions and that of single variables' alone, an optimistic
        learner follows the one whose V_1 is smaller at the start.
        """
        network, epsilon = self.network, math.sqrt(1 / self.episode)
        intervals = self.cells.spread(intervals)
        if self.planner.method == STAGEWISE:
            intervals = replace(intervals, together=self.together)
        start = self.start_means()
        found = self.planner.plan(intervals, start, epsilon)
        if self.coarse is not None:
            other = self.coarse.plan(intervals, start, epsilon)
            if start @ other.weights[0] < start @ found.weights[0]:
                found = other
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
        coarse = {} if self.coarse is None else {"coarse bases": self.coarse.planner.bases()}
        return super().state() | {"bases": self.planner.bases()} | coarse

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Take a state back."""
        super().restore(state)
        self.planner.restart_from(state["bases"])
        if self.coarse is not None:
            self.coarse.planner.restart_from(state["coarse bases"])


def check_entries(structure: Structure) -> None:
    """Refuse a structure whose plans would not fit, or whose cells are too many."""
    check_cells(structure)
    assert structure.horizon is not None
    sizes = [variable.size for variable in structure.inputs]
    n_entries = sum(
        table_size(sizes[position] for position in scope)
        for cases in (*structure.parents, *(term.parents for term in structure.rewards))
        for scope in cases
    )
    check_size(
        structure.horizon * n_entries,
        MOST_ENTRIES,
        f"plans for {structure.horizon} steps of {len(structure.basis)} functions have",
        "use a basis of smaller scopes, state fewer parents, or give a shorter horizon",
        unit="numbers",
    )


def _growth(replan: object) -> float:
    if isinstance(replan, str) and replan == "episode":
        return EVERY_EPISODE
    if is_number(replan) and 0 <= replan <= LARGEST:
        return float(replan)
    raise ModelError(
        "replan: expected 'episode', or the growth of a cell that calls for a new plan, found "
        f"{show(replan)}; 0.5 is for half as many visits again."
    )
