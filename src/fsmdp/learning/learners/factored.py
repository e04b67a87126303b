"""What factored learners share: a warm planner, and when to plan again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import check_size, is_number, show
from fsmdp.foundation.kinds import Reading, read_not_negative
from fsmdp.learning.cells.confidence import weighted_means
from fsmdp.learning.cells.layout import check_cells
from fsmdp.learning.cells.products import products_of
from fsmdp.learning.cells.sets import sets_of
from fsmdp.learning.cells.together import indicators_of
from fsmdp.learning.drawn.model import Groups, count_groups
from fsmdp.learning.learners.acting import NEVER, Acting, Planned
from fsmdp.learning.learners.counting import CountingLearner
from fsmdp.learning.learners.nested import coarse_planner
from fsmdp.learning.learners.ties import TieBreaker
from fsmdp.learning.learners.warm import METHODS, STAGEWISE, Warm, Weighed
from fsmdp.learning.options import LARGEST, as_choice, check_structure
from fsmdp.model.lookup import Integers
from fsmdp.model.rewards import Reward
from fsmdp.model.structure import Structure
from fsmdp.model.tables import Floats
from fsmdp.model.variables import table_size
from fsmdp.planning.bellman import (
    PESSIMISTIC,
    BellmanNetwork,
    Intervals,
    Together,
    network_of_structure,
)
from fsmdp.planning.greedy import q_entries_of
from fsmdp.planning.plan import Plan
from fsmdp.planning.problem import Problem
from fsmdp.planning.stagewise import Stagewise

EVERY_EPISODE = 0.0

PROGRAM, SOLVER = "program", "solver"
PLANNERS = (PROGRAM, SOLVER)
"""The linear program, or the best of several policies for a model that was drawn."""

MOST_ENTRIES = 2**24
"""Numbers of all steps of a plan: several arrays of so many are held at once."""


def _read_replan(text: str) -> str | float:
    return text if text == "episode" else read_not_negative(text)


REPLAN = Reading(
    "'episode', or the growth of a cell that calls for a plan (0.5: half)", _read_replan
)


class FactoredLearner(CountingLearner):
    """A learner that counts in the cells of its Structure and plans with a linear program."""

    name = "FactoredLearner"
    nested = True  # whether an optimistic one plans in a coarser basis too, and follows the tighter

    @property
    def hopes(self) -> bool:
        """Whether plans are for the best that may be: then what is left to earn caps them."""
        return self.optimistic

    @property
    def grows_by_steps(self) -> bool:
        """Whether all steps, and not some cell, are to have grown before there is a plan."""
        return self.planned_by == SOLVER

    def __init__(
        self,
        structure: Structure,
        *,
        seed: int,
        method: str,
        replan: str | float,
        known_rewards: Sequence[Reward] | None,
        independent: bool = True,
        planner: str = PROGRAM,
    ) -> None:
        self.growth = growth_of(replan)
        self.planned_by = as_choice(planner, "planner", PLANNERS)
        self.groups: Groups | None = None
        as_choice(method, "method", METHODS)
        warm = Warm(method, capped=method == STAGEWISE and self.hopes)
        # Before cells are laid out: what is too wide to plan in is refused in no time.
        check_entries(check_structure(self.name, structure))
        self.network = network_of_structure(structure)
        hoping = self.planned_by == SOLVER and self.hopes
        self.products = products_of(structure, hoping) if independent else None
        if self.planned_by == SOLVER:
            counted = structure if self.products is None else self.products.counted
            self.groups = count_groups(structure, counted)
        super().__init__(structure, seed=seed, known_rewards=known_rewards)
        self.first_cell = self.cells.first_cells()
        if self.products is not None:
            learnt = self.is_learnt()
            sets = np.unique(self.cells.layout.outcome_start[learnt])
            scopes = self.cells.layout.is_counting[np.unique(self.cells.function[learnt])]
            self.cells = replace(
                self.cells,
                n_learnt=int(learnt.sum()),
                n_sets=len(sets),
                n_scopes=int(scopes.sum()),
            )
        self.sets = sets_of(self.cells)
        self.planner = warm.start(self.program_network())
        self.together: Together | None = indicators_of(structure)
        self.coarse = None
        if warm.capped and self.nested:
            self.coarse = coarse_planner(structure, self.network.backup_columns, warm)
        self._ties = TieBreaker(structure)

    def counted_structure(self) -> Structure:
        """What was told, functions of independent parts of products, and those of groups."""
        if self.groups is not None:
            return self.groups.counted
        return self.structure if self.products is None else self.products.counted

    def program_network(self) -> BellmanNetwork:
        """Where plans are made: where the policy looks, unless overridden."""
        return self.network

    def is_learnt(self) -> np.ndarray:
        """For each transition cell whether a plan depends on its counts."""
        if self.products is None:
            return np.asarray(self.cells.function > 0)
        learnt = self.products.is_learnt
        known = self.cells.function < len(learnt)
        return np.asarray(known & learnt[np.where(known, self.cells.function, 0)])

    def follow(self, intervals: Intervals) -> Planned:
        """The greedy policy of a plan for these intervals, to within epsilon = sqrt(1 / k).

        Of two programs, that of all functions and that of single variables' alone, an optimistic
        learner follows the one whose V_1 is smaller at the start, that of all if neither is below
        the most that an episode can earn.
        """
        epsilon = math.sqrt(1 / self.episode)
        intervals = self.planned_for(intervals)
        if self.planner.method == STAGEWISE:
            intervals = replace(intervals, together=self.together)
        start = self.start_means()
        found = self.planner.plan(intervals, start, epsilon)
        if self.coarse is not None:
            other = self.coarse.plan(intervals, start, epsilon)
            # What no episode can earn says nothing, whichever program says it.
            most = min(self.structure.largest_return, float(start @ found.weights[0]))
            if start @ other.weights[0] < most:
                found = other
        return self.follow_weights(found, intervals)

    def follow_weights(self, found: Weighed, intervals: Intervals) -> Planned:
        """The greedy policy of weights, for numbers laid out as the network has them."""
        network = self.network
        q = q_entries_of(network, intervals, found.weights)
        lowest = q_entries_of(network, intervals.with_lowest_rewards(), found.weights, PESSIMISTIC)
        largest = float(np.abs(intervals.rewards).max(initial=0.0))
        layout = self.cells.layout
        acting = Acting(
            self._ties.policy(q + self.leaning(), largest, self.rng, self.lasting()),
            _padded(
                found.weights[:, network.value_columns] * network.values, layout.value_start[-1]
            ),
            _padded(q, len(layout.cell_of)),
            _padded(q - lowest, len(layout.cell_of)),
            self.replan_at(),
        )
        return Planned(acting, found.lift, float(np.abs(found.weights).sum(axis=1).max()))

    def leaning(self) -> Floats | float:
        """What is added to Q where an action is chosen, and nowhere else."""
        return 0.0

    def planned_for(self, intervals: Intervals) -> Intervals:
        """Numbers by cell as those of the functions that are planned with, laid out for it."""
        spread, n = self.cells.spread(intervals), len(self.network.backup_columns)
        return replace(spread, low=spread.low[:n], high=spread.high[:n])

    def start_means(self) -> Floats:
        """Means of h_j over the first states seen; over all states alike before the first."""
        if self.statistics.episodes == 0:
            return self.planner.uniform
        columns, values = self.network.value_columns, self.network.values
        totals = np.bincount(columns, weights=self.statistics.starts[: len(values)] * values)
        return np.asarray(totals / self.statistics.episodes)

    def plan(self) -> Plan:
        """What was learnt, as a plan to act by: for the means seen so far, without optimism.

        In cells never met all next values are alike, and rewards in the middle. The bound of this
        plan is one of the estimated model and certifies nothing about the true one. The learner
        itself goes on as if this had not been called. Cost: a cold plan.
        """
        start = self.start_means()
        problem = Problem(self.network, self.estimate(), start, start, self.planner.uniform)
        return replace(Stagewise().solve(problem), method="stagewise, of the estimated model")

    def estimate(self) -> Intervals:
        """The means seen so far, laid out for planning; all values alike in cells never met."""
        cells, statistics = self.cells, self.statistics
        means = self.means_of(self.sets.shares(statistics.outcomes.astype(np.float64)))
        n = statistics.reward_visits
        rewards = np.where(
            n > 0,
            statistics.reward_sums / np.maximum(n, 1),
            (cells.reward_low + cells.reward_high) / 2,
        )
        rewards = np.where(self.cell_known, self.known_means, rewards)
        return self.planned_for(Intervals(rewards, means, means))

    def means_of(self, draws: Floats) -> Floats:
        """Mean of h_j in every cell, when outcomes have these weights."""
        cells = self.cells
        means = weighted_means(cells, self.sets.totals(draws)[self.sets.of_cell], draws)
        means[cells.lowest == cells.highest] = 1.0  # only the constant is
        means = np.clip(means, cells.lowest, cells.highest)
        if self.products is None:
            return means
        shares, starts = self.sets.shares(draws), cells.layout.outcome_start
        return self.products.means(means, shares, starts, self.first_cell)

    def replan_at(self) -> Integers:
        """Visits of each cell from which a new plan is due."""
        n = self.statistics.visits
        if self.growth == EVERY_EPISODE:
            return np.zeros(len(n), dtype=np.int64)
        grown = np.minimum(np.ceil((1 + self.growth) * n), NEVER)
        due = np.asarray(np.maximum(n + 1, grown), dtype=np.int64)
        constant = self.cells.n_reward_cells
        if self.grows_by_steps:
            # Its plans are dear: the steps of all episodes are to have grown, not some cell.
            due[:constant] = due[constant + 1 :] = NEVER
        else:
            due[constant:][~self.is_learnt()] = NEVER
        return due

    def lasting(self) -> float:
        """Episodes that a plan is expected to last: until the cells met in each of them have grown.

        Others may call for a plan sooner.
        """
        return 1 + self.growth * self.statistics.episodes

    def when_to_plan(self) -> str:
        """How a description says when plans are made."""
        parts = "" if self.products is None else ", products of independent parts"
        by = ", by the solver" if self.planned_by == SOLVER else ""
        if self.growth == EVERY_EPISODE:
            return f"plans every episode{parts}{by}"
        return f"plans at growth {self.growth:g}{parts}{by}"

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


def _padded(numbers: Floats, width: int) -> Floats:
    """With zeros for what is counted and not planned with."""
    more = int(width) - numbers.shape[1]
    return numbers if more == 0 else np.pad(numbers, ((0, 0), (0, more)))


def growth_of(replan: object) -> float:
    """The growth of a cell that calls for a new plan; 0 for a plan every episode."""
    if isinstance(replan, str) and replan == "episode":
        return EVERY_EPISODE
    if is_number(replan) and 0 <= replan <= LARGEST:
        return float(replan)
    raise ModelError(
        "replan: expected 'episode', or the growth of a cell that calls for a new plan, found "
        f"{show(replan)}; 0.5 is for half as many visits again."
    )
