"""What factored learners share: a warm planner, and when to plan again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from fsmdp.bounds.bellman import (
    PESSIMISTIC,
    BellmanNetwork,
    Intervals,
    Together,
    network_of_structure,
)
from fsmdp.bounds.certificate import certify
from fsmdp.bounds.finish import q_entries_of
from fsmdp.bounds.highs import SIMPLEX
from fsmdp.bounds.joint import solve_joint
from fsmdp.bounds.plan import Plan
from fsmdp.bounds.problem import Problem
from fsmdp.bounds.stagewise import Stagewise, StagewiseProgram
from fsmdp.errors import ModelError
from fsmdp.foundation.checks import LARGEST_OPTION, as_choice, check_size, is_number, show
from fsmdp.foundation.kinds import NOT_NEGATIVE, Reading
from fsmdp.learning.cells.confidence import reward_bounds, weighted_means
from fsmdp.learning.cells.layout import check_cells
from fsmdp.learning.cells.products import indicators_of, products_of, sets_of
from fsmdp.learning.learners.learner import (
    NEVER,
    Acting,
    CountingLearner,
    Optimism,
    Planned,
    TieBreaker,
    check_structure,
)
from fsmdp.learning.sampled import Groups, count_groups
from fsmdp.model.basis import Basis
from fsmdp.model.rewards import Reward
from fsmdp.model.structure import Structure
from fsmdp.model.tables import Floats, Integers
from fsmdp.model.variables import table_size

STAGEWISE, JOINT = "stagewise", "joint"
METHODS = (STAGEWISE, JOINT)

WARM_UP_TO = 6_000
"""Rows up to which warm restarts of the simplex method beat cold interior solves."""


@dataclass(frozen=True, slots=True)
class Warm:
    """A planner is its options: here the program, `stagewise` (warm) or `joint` (cold)."""

    method: str = STAGEWISE
    capped: bool = False  # stages: by what is left to earn

    def __post_init__(self) -> None:
        as_choice(self.method, "method", METHODS)

    def start(self, network: BellmanNetwork) -> WarmPlanner:
        """The planner at work in one network of a finite horizon, with its program built."""
        return WarmPlanner(network, self.method, self.capped)


@dataclass(frozen=True, slots=True, eq=False)
class Weighed:
    """Weights that are feasible for certain, and what it took to make them so."""

    weights: Floats = field(repr=False)  # (horizon, n_functions)
    lift: float  # added to V_1


class WarmPlanner:
    """Plans again and again in one network; stages restart from the bases of the last plan."""

    def __init__(self, network: BellmanNetwork, method: str, capped: bool) -> None:
        self.network = network
        self.method = method
        self._capped = capped
        self.uniform = np.array([table.values.mean() for table in network.basis])
        self._program = None
        if method == STAGEWISE:
            is_small = network.elimination.n_rows <= WARM_UP_TO
            self._program = self._build(SIMPLEX if is_small else "auto")

    def plan(self, intervals: Intervals, start: Floats, epsilon: float) -> Weighed:
        """Weights, certified and lifted to be feasible; `start` are means of h_j at the start.

        The lift is what the solver fell short by. Above epsilon, stages are solved again from
        nothing by the simplex method.
        """
        found = self._certified(intervals, start)
        if found.lift > epsilon and self._program is not None:
            self._program = self._build(SIMPLEX)
            found = self._certified(intervals, start)
        return found

    def bases(self) -> np.ndarray:
        """From where the next plan starts."""
        return np.zeros((0, 0), np.int64) if self._program is None else self._program.stage_bases()

    def restart_from(self, bases: np.ndarray) -> None:
        """Start the next plan from what `bases` gave; a ValueError if it was something else."""
        program = self._program
        if program is None:
            return
        if bases.dtype != np.int64 or bases.ndim != 2:
            raise ValueError("bases: expected rows of whole numbers")
        if len(bases) and bases.shape[1] != 1 + program.n_columns + program.n_rows:
            raise ValueError("bases: expected a step and how each column and row stands")
        program.set_stage_bases(bases)

    def _build(self, solver: str) -> StagewiseProgram:
        return StagewiseProgram(self.network, self.uniform, solver, capped=self._capped)

    def _certified(self, intervals: Intervals, start: Floats) -> Weighed:
        if self._program is None:
            weights = solve_joint(self.network, intervals, self.uniform).weights
        else:
            weights = self._program.solve(intervals, first_means=start).weights
        if not np.isfinite(weights).all():
            weights = np.zeros(weights.shape)
        certificate, lifted = certify(self.network, intervals, weights, start)
        return Weighed(lifted, float(certificate.lifts[0]))


@dataclass(frozen=True, slots=True, eq=False)
class CoarsePlanner:
    """A program of some functions of a basis, with weights of all as its answer."""

    planner: WarmPlanner
    together: Together | None
    kept: Integers  # functions of the basis
    entries: Integers  # their entries
    n_functions: int

    def plan(self, intervals: Intervals, start: Floats, epsilon: float) -> Weighed:
        """Weights with zeros for what was left out."""
        low, high = intervals.low[self.entries], intervals.high[self.entries]
        own = replace(intervals, low=low, high=high, rounding=None, together=self.together)
        found = self.planner.plan(own, start[self.kept], epsilon)
        weights = np.zeros((len(found.weights), self.n_functions))
        weights[:, self.kept] = found.weights
        return Weighed(weights, found.lift)


def coarse_planner(structure: Structure, columns: Integers, planner: Warm) -> CoarsePlanner | None:
    """The program of single variables' functions; None if there are no others, or none of them.

    `columns` holds the function of each backup entry.
    """
    scopes = structure.basis.scopes
    kept = [number for number, scope in enumerate(scopes) if len(scope) <= 1]
    if not 1 < len(kept) < len(scopes):
        return None
    tables = [structure.basis.tables[number] for number in kept[1:]]
    coarse = replace(
        structure,
        basis=Basis(tables),
        parents=tuple(structure.parents[number] for number in kept),
        contexts=tuple(structure.contexts[number] for number in kept) if structure.contexts else (),
    )
    network = network_of_structure(coarse)
    return CoarsePlanner(
        planner.start(network),
        _indicators(coarse),
        np.array(kept),
        np.flatnonzero(np.isin(columns, kept)),
        len(scopes),
    )


EVERY_EPISODE = 0.0

PROGRAM, SOLVER = "program", "solver"
PLANNERS = (PROGRAM, SOLVER)
"""The linear program, or the best of several policies for a model that was drawn."""

MOST_ENTRIES = 2**24
"""Numbers of all steps of a plan: several arrays of so many are held at once."""


def _read_replan(text: str) -> str | float:
    return text if text == "episode" else NOT_NEGATIVE.read(text)


REPLAN = Reading(
    "'episode', or the growth of a cell that calls for a plan (0.5: half)", _read_replan
)


class FactoredLearner(CountingLearner):
    """A learner that counts in the cells of its Structure and plans with a linear program.

    With `optimism` its values are meant to be upper bounds.
    """

    name = "FactoredLearner"
    nested = (
        True  # whether optimistic plans are made in a coarser basis too; the tighter is followed
    )

    @property
    def capped(self) -> bool:
        """Whether values are optimistic, so that what is left to earn caps them."""
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
        optimism: Optimism | None = None,
    ) -> None:
        self.optimistic = optimism is not None
        self.optimism = optimism or Optimism(0.05, 1.0)
        self.heuristic = self.heuristic or self.optimism.scale != 1.0
        self.growth = growth_of(replan)
        self.planned_by = as_choice(planner, "planner", PLANNERS)
        self.groups: Groups | None = None
        as_choice(method, "method", METHODS)
        warm = Warm(method, capped=method == STAGEWISE and self.capped)
        # Before cells are laid out: what is too wide to plan in is refused in no time.
        check_entries(check_structure(self.name, structure))
        self.network = network_of_structure(structure)
        optimistic_sweep = self.planned_by == SOLVER and self.capped
        self.products = products_of(structure, optimistic_sweep) if independent else None
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
        self.together: Together | None = _indicators(structure)
        self.coarse = None
        if warm.capped and self.nested:
            self.coarse = coarse_planner(structure, self.network.backup_columns, warm)
        self._ties = TieBreaker(structure)
        # If there are noisy rewards to learn, transitions and rewards have half of delta each.
        noisy = any(
            term.sigma > 0 and not known
            for term, known in zip(structure.rewards, self.term_known, strict=True)
        )
        half = self.optimism.delta / 2 if noisy else 0.0
        self.delta_transitions = self.optimism.delta - half
        self.delta_rewards = half or self.optimism.delta

    def counted_structure(self) -> Structure:
        """What was given, functions of independent parts of products, and those of groups."""
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
        layout, policy = self.cells.layout, q + self.empirical_part()
        n_allowed = len(network.conditions.entries)
        q, lowest = (part[:, : part.shape[1] - n_allowed] for part in (q, lowest))
        acting = Acting(
            self._ties.policy(policy, largest, self.rng, self.lasting()),
            _padded(
                found.weights[:, network.value_columns] * network.values, layout.value_start[-1]
            ),
            _padded(q, len(layout.cell_of)),
            _padded(q - lowest, len(layout.cell_of)),
            self.replan_at(),
        )
        return Planned(acting, found.lift, float(np.abs(found.weights).sum(axis=1).max()))

    def empirical_part(self) -> Floats | float:
        """What is added to Q where an action is chosen, and nowhere else."""
        return 0.0

    def planned_for(self, intervals: Intervals) -> Intervals:
        """Numbers by cell as those of the functions that are planned with, laid out for it."""
        spread, n = self.cells.spread(intervals), len(self.network.given_backups)
        return self.network.laid_out(replace(spread, low=spread.low[:n], high=spread.high[:n]))

    def start_means(self) -> Floats:
        """Means of h_j over the first states seen; over all states alike before the first."""
        if self.statistics.episodes == 0:
            return self.planner.uniform
        columns, values = self.network.value_columns, self.network.values
        totals = np.bincount(columns, weights=self.statistics.starts[: len(values)] * values)
        return np.asarray(totals / self.statistics.episodes)

    def plan(self) -> Plan:
        """What was learnt, as a plan to act by: for the means seen so far, without optimism.

        In cells never visited all next values are equally likely, and rewards in the middle. The
        bound of this plan is one of the estimated model and certifies nothing about the true one.
        The learner itself continues as if this had not been called. Cost: a cold plan.
        """
        start = self.start_means()
        problem = Problem(self.network, self.estimate(), start, start, self.planner.uniform)
        found = Stagewise().solve(problem)
        record = replace(found.record, method="stagewise, of the estimated model")
        return replace(found, record=record)

    def estimate(self) -> Intervals:
        """The means seen so far, laid out for planning; all values alike in cells never visited."""
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

    def with_known_rewards(self, found: Intervals) -> Intervals:
        """Intervals by cell, with the means of rewards that are known."""
        known, means = self.cell_known, self.known_means
        return replace(
            found,
            rewards=np.where(known, means, found.rewards),
            reward_low=np.where(known, means, found.with_lowest_rewards().rewards),
        )

    def reward_intervals(self) -> Intervals:
        """Bounds on mean rewards; functions have their whole range, as without data."""
        cells, scale = self.cells, self.optimism.scale
        low, high = reward_bounds(
            cells, self.statistics, self.episode, self.delta_rewards, scale, by_visits=True
        )
        return self.with_known_rewards(Intervals(high, cells.lowest, cells.highest, low))

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
        """Episodes that a plan is expected to last: until the cells that they visit have grown.

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

    def options(self) -> Sequence[str]:
        """What a description says before the program and `delta`."""
        return ()

    def describe(self) -> str:
        """The options that matter."""
        parts = (*self.options(), self.planner.method, self.when_to_plan())
        return self.optimism.describe(parts, self.heuristic)

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


def _indicators(structure: Structure) -> Together | None:
    """What indicators cannot be at once; nothing where episodes end early: it knows no ends."""
    return None if structure.conditions.terminal else indicators_of(structure)


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
    if is_number(replan) and 0 <= replan <= LARGEST_OPTION:
        return float(replan)
    raise ModelError(
        "replan: expected 'episode', or the growth of a cell that calls for a new plan, found "
        f"{show(replan)}; 0.5 is for half as many visits again."
    )
