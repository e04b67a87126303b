"""Bundles: the tightest weights of blocks of steps, by an oracle and a stabilised master.

f(x) = E[x_1] + sum over links k of m_k max over (s, a) of excess_k(s, a; x)

is convex and piecewise linear in the weights x, and above V* everywhere. The oracle
gives, for each link, the maximum and the (state, action) pairs that attain it: a cut each. The
master minimises the largest of all cuts so far, and stays near the best weights by a quadratic
term, without which its first solutions would lie far out. The duals of the cuts are an occupation
measure.

Where episodes end early a constant that is added to a step raises values before it only where these
go on. Then constants are weights like any others, and max(0, excess) takes the place of an excess.
Source: Kiwiel, Proximity control in bundle methods for convex nondifferentiable minimization
(1990).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import groupby

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import factorized

from fsmdp.bounds.bellman import (
    BellmanNetwork,
    Intervals,
    bellman_rows,
    reward_scale,
    state_means,
    value_span,
)
from fsmdp.bounds.certificate import excesses_of, seconds_of_excesses
from fsmdp.bounds.clock import CONFIRMED, NO_LIMIT, REACH, Clock, Solution, Status, Stopped
from fsmdp.bounds.conditioning import conditioning_of
from fsmdp.bounds.costs import has_stages
from fsmdp.bounds.finish import Solved, finish
from fsmdp.bounds.highs import InteriorProgram
from fsmdp.bounds.inequalities import Cuts, States, joined, parts_of
from fsmdp.bounds.plan import Plan
from fsmdp.bounds.planner import Count, Planner, Seconds, Tolerance
from fsmdp.bounds.problem import Problem
from fsmdp.bounds.stagewise import StagewiseProgram, StagewiseSolution
from fsmdp.elimination import Maximum
from fsmdp.elimination.compiled_schedule import flatten
from fsmdp.elimination.rows import sample
from fsmdp.errors import ModelError
from fsmdp.foundation.streams import Purpose, generator
from fsmdp.model.basis import Basis
from fsmdp.model.cases import Cases
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.structure import sum_of_discounts
from fsmdp.model.tables import Floats, Table

FINEST = 2
"""Blocks of each length at the end of the horizon, where values change most."""


@dataclass(frozen=True, slots=True)
class Link:
    """Steps of one block that are followed by one block: a single set of inequalities."""

    own: int
    after: int | None  # None: the end
    weight: float  # sum of the discounts of its steps
    steps: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """The lengths of the blocks of a horizon, first step first; none if it is infinite."""

    lengths: tuple[int, ...]
    discount: float
    links: tuple[Link, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "links", tuple(self._links()))

    @property
    def n_blocks(self) -> int:
        """Sets of weights."""
        return len(self.lengths) or 1

    @property
    def is_finest(self) -> bool:
        """Whether no block can be divided."""
        return all(length == 1 for length in self.lengths)

    def divided(self) -> Blocks:
        """Every block in two halves."""
        halves = [part for one in self.lengths for part in (one // 2, one - one // 2) if part]
        return Blocks(tuple(halves), self.discount)

    def parents(self, finer: Blocks) -> tuple[list[int], list[list[int]]]:
        """For each block of a finer division, its own here; for each link here, those of it there.

        Weights that are the same in all parts of a block have the same value there as here.
        """
        if not self.lengths:
            return [0], [[0]]
        here = self.block_of_step()
        starts = np.cumsum([0, *finer.lengths[:-1]])
        links: list[list[int]] = [[] for _ in self.links]
        link_of_step = {step: k for k, link in enumerate(self.links) for step in link.steps}
        for number, link in enumerate(finer.links):
            for old in sorted({link_of_step[step] for step in link.steps}):
                links[old].append(number)
        return [here[start] for start in starts], links

    def block_of_step(self) -> list[int]:
        """The block of every step."""
        return [block for block, length in enumerate(self.lengths) for _ in range(length)]

    def weights(self, shared: Floats, excesses: Floats) -> Floats:
        """Weights of every step: those of its block, the constant raised by what it must be.

        c_l = e_l + discount * c_{l+1}
        """
        if not self.lengths:
            found = shared.copy()
            found[:, 0] += excesses[0] * self.links[0].weight
            return found
        found = shared[self.block_of_step()]
        constant = 0.0
        for number in reversed(range(len(self.links))):
            for step in reversed(self.links[number].steps):
                constant = excesses[number] + self.discount * constant
                found[step, 0] += constant
        return found

    def _links(self) -> Sequence[Link]:
        if not self.lengths:
            return [Link(0, 0, sum_of_discounts(None, self.discount), (0,))]
        of_step = self.block_of_step()
        after = [*of_step[1:], None]
        found = []
        for (own, following), steps in groupby(
            range(len(of_step)), key=lambda step: (of_step[step], after[step])
        ):
            members = tuple(steps)
            weight = sum(self.discount**step for step in members)
            found.append(Link(own, following, weight, members))
        return found


def coarse_blocks(network: BellmanNetwork) -> Blocks:
    """Blocks that double in length from the end of the horizon to its start."""
    lengths: list[int] = []
    left = network.horizon or 0
    while left:
        length = min(left, 2 ** (len(lengths) // FINEST))
        lengths.append(length)
        left -= length
    return Blocks(tuple(reversed(lengths)), network.discount)


def finest_blocks(network: BellmanNetwork) -> Blocks:
    """Every step by itself."""
    return Blocks((1,) * (network.horizon or 0), network.discount)


def pairs_of(blocks: Blocks, shared: Floats) -> list[tuple[Floats, Floats]]:
    """For each link, weights of its own block and of the block after."""
    nothing = np.zeros(shared.shape[1])
    return [
        (shared[link.own], nothing if link.after is None else shared[link.after])
        for link in blocks.links
    ]


@dataclass(frozen=True, slots=True, eq=False)
class BlockRows:
    """The rows of all links: values - discount * backups + messages >= rewards.

    Columns of values and backups are coordinates, block after block; the others belong to a link.
    """

    values: sparse.csc_matrix = field(repr=False)
    high: sparse.csc_matrix = field(repr=False)  # backups by the upper ends of next means
    low: sparse.csc_matrix = field(repr=False)  # by the lower ends
    constants: sparse.csr_matrix = field(repr=False)  # what a link's values are all raised by
    messages: sparse.csr_matrix = field(repr=False)
    rewards: Floats = field(repr=False)  # in units of `reward_scale`


def block_rows(
    network: BellmanNetwork,
    intervals: Intervals,
    blocks: Blocks,
    matrix: sparse.csr_matrix,
    clock: Clock = NO_LIMIT,
) -> BlockRows:
    """The Bellman inequalities of every link, in coordinates whose weights are `matrix` times them.

    Raises `Stopped` when the clock says so.
    Cost: the rows of one step for each link.
    """
    links = blocks.links
    step = bellman_rows(network, len(links))
    clock.check()

    def spread(blocks_of_links: Sequence[int | None], part: sparse.csr_matrix) -> sparse.csc_matrix:
        at = [(k, block) for k, block in enumerate(blocks_of_links) if block is not None]
        place = [k for k, _ in at], [block for _, block in at]
        of_link = sparse.csr_matrix((np.ones(len(at)), place), (len(links), blocks.n_blocks))
        return sparse.csc_matrix(sparse.kron(of_link, part @ matrix, format="csc"))

    values = spread([link.own for link in links], step.values)
    after = [link.after for link in links]
    high = low = spread(after, step.backups(network, intervals.high))
    if not intervals.exact:
        low = spread(after, step.backups(network, intervals.low))
    clock.check()
    every = sparse.identity(len(links), format="csr")
    nothing = np.zeros(len(network.basis))
    rewards = step.rows.gather @ network.right_side(nothing, intervals) / reward_scale(intervals)
    return BlockRows(
        values,
        high,
        low,
        sparse.kron(every, step.values[:, :1], format="csr"),
        sparse.kron(every, step.rows.messages, format="csr"),
        np.tile(rewards, len(links)),
    )


CUTS_PER_LINK = 3
CUTS_PER_COLUMN, PATIENCE = 3, 6
"""From so many cuts for each column of the master on, those are dropped that have held nothing for
so many rounds."""

MOST_HELD = 40
"""Cuts of a link that another run may start from."""

ENOUGH = 0.1
"""Share of the fall that the master promised which makes new weights the best."""

SOLVED = (Status.OPTIMAL, Status.INACCURATE)
"""A master need not be solved to the last digit: the oracle says what its weights are worth."""

SMALLEST_PROXIMAL, LARGEST_PROXIMAL = 1e-9, 1e6


@dataclass(frozen=True, slots=True, eq=False)
class BundleSolution:
    """The best weights found, what they prove, and the occupation measure behind it.

    `weights` are those of every step and feasible; `cuts.steps` are links, and `measure` their
    duals: those of a link add up to its weight. Of cuts by mini-buckets one state is kept.
    """

    status: Status
    shared: Floats = field(repr=False)  # (n_blocks, n_functions)
    weights: Floats = field(repr=False)  # (n_steps, n_functions)
    value: float
    lower: float  # no weights within reach have a smaller value
    rounds: int
    cuts: Cuts = field(repr=False)
    measure: Floats = field(repr=False)  # (n_cuts,)
    seconds: float

    @property
    def held(self) -> Cuts:
        """The cuts that hold the weights: those of most of the measure, of each link some."""
        order = np.lexsort((-self.measure, self.cuts.steps))
        links = self.cuts.steps[order]
        rank = np.arange(len(order)) - np.searchsorted(links, links)
        least = 1e-9 * self.measure.max(initial=0.0)
        return self.cuts.at(order[(rank < MOST_HELD) & (self.measure[order] > least)])


def minimise(
    network: BellmanNetwork,
    intervals: Intervals,
    means: Floats,
    blocks: Blocks,
    start: Floats | None = None,
    cuts: Cuts | None = None,
    *,
    enough: float = 0.0,
    max_rounds: int = 1000,
    clock: Clock = NO_LIMIT,
) -> BundleSolution:
    """The weights of smallest f; of a known model.

    `start` are weights of the blocks to begin with, `cuts` those of an earlier run on as many
    links. Ends when the master promises no more than `enough`, at least CONFIRMED spans of values,
    and no weights within reach are better by much more; or when time is up (`Stopped` if that is
    before the first weights were evaluated).
    Cost of a round: a max-sum for each link, and a quadratic program in the weights of all blocks.
    """
    assert intervals.exact
    bundle = _Bundle(network, intervals, means, blocks, start, clock)
    if cuts is not None and len(cuts):
        bundle.add(cuts)
    enough = max(enough, CONFIRMED * value_span(network, intervals)) / bundle.scale
    status, rounds = Status.ITERATION_LIMIT, 0
    try:
        bundle.evaluate(bundle.best)
        if not bundle.n:  # the constant alone: the oracle has determined it
            bundle.lower, status = bundle.value, Status.OPTIMAL
        while bundle.n and rounds < max_rounds:
            rounds += 1
            if bundle.step(enough):
                status = Status.OPTIMAL
                break
    except Stopped:
        if not np.isfinite(bundle.value):
            raise  # not even the first weights were evaluated
        status = clock.status or Status.TIME_LIMIT
    except _MasterError as error:
        status = error.status
    return bundle.solution(status, rounds)


class _MasterError(Exception):
    def __init__(self, status: Status) -> None:
        self.status = status


class _Bundle:
    """Cuts, the best coordinates so far, and the proximal weight that keeps the master near them.

    Coordinates are those of the conditioned basis without the constant, in units of the rewards;
    behind those of all blocks stands the excess of each link.
    """

    def __init__(
        self,
        network: BellmanNetwork,
        intervals: Intervals,
        means: Floats,
        blocks: Blocks,
        start: Floats | None,
        clock: Clock,
    ) -> None:
        self.began = time.perf_counter()
        self.network, self.intervals, self.blocks, self.clock = network, intervals, blocks, clock
        self.scale = reward_scale(intervals)
        self.ends = bool(network.conditions.terminal)
        self.matrix = _columns(network, intervals)
        self.n = int(self.matrix.shape[1])
        self.n_columns = blocks.n_blocks * self.n
        self.cost = np.zeros(self.n_columns + len(blocks.links))
        self.cost[: self.n] = means @ self.matrix
        self.cost[self.n_columns :] = [link.weight for link in blocks.links]
        self.best = np.zeros(self.n_columns)
        if start is not None and self.n:
            self.best = self._coordinates(start / self.scale)
        self.value, self.excesses = np.inf, np.zeros(len(blocks.links))
        self.lower = -np.inf
        self.proximal_weight = 1.0
        self.rows = sparse.csr_matrix((0, len(self.cost)))
        self.sides = np.zeros(0)
        self.kept: list[Cuts] = []
        self.idle = np.zeros(0, dtype=np.int64)  # rounds since a cut last held something
        self.duals = np.zeros(0)

    def _coordinates(self, shared: Floats) -> Floats:
        """Coordinates of weights; the constant's weight does not count, unless it has a column."""
        first = 0 if self.ends else 1
        own = sparse.csc_matrix(self.matrix[first:])
        solve = factorized(sparse.csc_matrix(own.T @ own))
        return np.concatenate([solve(own.T @ one[first:]) for one in shared])

    def shared(self, coordinates: Floats) -> Floats:
        """Weights of the blocks, the constants left to be determined."""
        by_block = coordinates[: self.n_columns].reshape(self.blocks.n_blocks, self.n)
        return np.asarray(self.scale * (self.matrix @ by_block.T).T)

    def evaluate(self, coordinates: Floats) -> float:
        """f at some coordinates, in units; cuts are added, and the best kept."""
        pairs = pairs_of(self.blocks, self.shared(coordinates))
        excesses, parts = np.zeros(len(pairs)), []
        for number, worst in enumerate(
            excesses_of(self.network, self.intervals, pairs, clock=self.clock)
        ):
            excesses[number] = worst.value / self.scale
            if self.ends:
                excesses[number] = max(0.0, excesses[number])
            parts.append(_cuts_of(number, worst))
        self.add(joined(parts))
        value = float(self.cost[: self.n_columns] @ coordinates)
        value += float(self.cost[self.n_columns :] @ excesses)
        if value < self.value:
            self.best, self.value, self.excesses = coordinates, value, excesses
        return value

    def add(self, cuts: Cuts) -> None:
        """e_k + own(s) @ x_own - discount * next(s, a) @ x_after >= R(s, a), in units."""
        features, ends, _, rewards = parts_of(self.network, self.intervals, cuts)
        own, after = features @ self.matrix, -self.network.discount * (ends @ self.matrix)
        links = self.blocks.links
        columns, values = [], []
        block = np.array([links[k].own for k in cuts.steps])
        columns.append(block[:, None] * self.n + np.arange(self.n))
        values.append(own)
        following = [links[k].after for k in cuts.steps]
        is_last = np.array([one is None for one in following])
        block = np.array([one or 0 for one in following])
        after[is_last] = 0.0
        columns.append(block[:, None] * self.n + np.arange(self.n))
        values.append(after)
        columns.append(self.n_columns + cuts.steps[:, None])
        values.append(np.ones((len(cuts), 1)))
        at, numbers = np.hstack(columns), np.hstack(values)
        rows = np.repeat(np.arange(len(cuts)), at.shape[1])
        new = sparse.csr_matrix(
            (numbers.ravel(), (rows, at.ravel())), shape=(len(cuts), len(self.cost))
        )
        new.eliminate_zeros()
        self.rows = sparse.csr_matrix(sparse.vstack([self.rows, new]))
        self.sides = np.concatenate([self.sides, rewards / self.scale])
        self.idle = np.concatenate([self.idle, np.zeros(len(cuts), dtype=np.int64)])
        self.duals = np.concatenate([self.duals, np.zeros(len(cuts))])
        self.kept.append(replace(cuts, entries=None))

    def step(self, enough: float) -> bool:
        """Solve the master and evaluate what it found; True if nothing is left to gain."""
        squares = np.zeros(len(self.cost))
        squares[: self.n_columns] = self.proximal_weight
        cost = self.cost.copy()
        cost[: self.n_columns] -= self.proximal_weight * self.best
        rows, sides = self.rows, self.sides
        if self.ends:
            rows, sides = _not_negative(rows, sides, self.n_columns, len(self.excesses))
        found = InteriorProgram(cost, rows, sides, squares).solve(self.clock)
        self.clock.check()
        if found.status not in SOLVED or found.duals is None:
            raise _MasterError(found.status)
        self._note_duals(found)
        model = float(self.cost @ found.values)
        there = found.values[: self.n_columns]
        slope = self.proximal_weight * (self.best - there)
        reach = REACH * np.maximum(np.abs(there), 1.0) + np.abs(there)
        self.lower = max(self.lower, model - float(np.abs(slope) @ reach))
        promised = self.value - model
        if promised <= enough and self.value - self.lower <= 5 * enough:
            return True
        before = self.value
        value = self.evaluate(there)
        weight = self.proximal_weight
        if before - value >= ENOUGH * promised:
            kept_well = before - value >= 0.5 * promised
            weight = max(SMALLEST_PROXIMAL, weight / (4.0 if kept_well else 1.5))
        elif value - before > promised:
            weight = min(LARGEST_PROXIMAL, weight * 2.0)  # cuts were wrong by far: stay nearer
        if promised <= enough:
            weight = max(SMALLEST_PROXIMAL, weight / 10)
        self.proximal_weight = weight
        return False

    def _note_duals(self, found: Solution) -> None:
        """Keep the duals of the cuts, and drop cuts that have long held nothing."""
        assert found.duals is not None
        self.duals = np.maximum(found.duals[: len(self.sides)], 0.0)
        least = 1e-9 * self.cost[self.n_columns :].max()
        self.idle = np.where(self.duals > least, 0, self.idle + 1)
        if len(self.sides) <= CUTS_PER_COLUMN * len(self.cost):
            return
        rows = np.flatnonzero(self.idle < PATIENCE)
        self.rows, self.sides = self.rows[rows], self.sides[rows]
        self.idle, self.duals = self.idle[rows], self.duals[rows]
        self.kept = [joined(self.kept).at(rows)]

    def solution(self, status: Status, rounds: int) -> BundleSolution:
        """What has been found."""
        shared = self.shared(self.best)
        cuts = joined(self.kept)
        return BundleSolution(
            status,
            shared,
            self.blocks.weights(shared, self.scale * self.excesses),
            self.scale * self.value,
            self.scale * self.lower,
            rounds,
            cuts,
            self.duals,
            time.perf_counter() - self.began,
        )


def _cuts_of(link: int, worst: Maximum) -> Cuts:
    """Those of the actions of the largest excesses, without those that are nowhere allowed."""
    chosen = np.argsort(-worst.values, kind="stable")[:CUTS_PER_LINK]
    chosen = chosen[worst.values[chosen] > -np.inf]
    entries = None if worst.is_exact else worst.picked(chosen)
    return Cuts(np.full(len(chosen), link), worst.states(chosen), chosen, entries)


def _columns(network: BellmanNetwork, intervals: Intervals) -> sparse.csr_matrix:
    """Weights of the coordinates: without the constant, unless episodes end early."""
    first = 0 if network.conditions.terminal else 1
    return sparse.csr_matrix(conditioning_of(network, intervals).matrix[:, first:])


def _not_negative(
    rows: sparse.csr_matrix, sides: Floats, first: int, count: int
) -> tuple[sparse.csr_matrix, Floats]:
    """The same rows, and that the excesses from a column on are not below 0."""
    each = np.arange(count)
    more = sparse.csr_matrix((np.ones(count), (each, first + each)), (count, rows.shape[1]))
    return sparse.csr_matrix(sparse.vstack([rows, more])), np.concatenate([sides, np.zeros(count)])


BLOCK_ROWS_ENOUGH = 1e-6
"""Of gap and rows, relative: elimination adds what is missing, and bases gain more by growing."""

SAMPLES = 600
"""States and actions drawn from the duals of each link, to see which functions are missing."""


def minimise_by_rows(
    network: BellmanNetwork,
    intervals: Intervals,
    means: Floats,
    blocks: Blocks,
    clock: Clock = NO_LIMIT,
    seed: int = 0,
) -> BundleSolution:
    """The weights of smallest f, of a known model; `Stopped` if there was no time to find any.

    What the solver says is not believed: the excesses of its weights are found by elimination.
    Cost: the rows of one step for each link.
    """
    assert intervals.exact
    began = time.perf_counter()
    links, scale = blocks.links, reward_scale(intervals)
    matrix, ends = _columns(network, intervals), bool(network.conditions.terminal)
    n = int(matrix.shape[1])
    parts = block_rows(network, intervals, blocks, matrix, clock)
    rows = sparse.hstack(
        [parts.values - network.discount * parts.high, parts.constants, parts.messages],
        format="csr",
    )
    clock.check()
    cost = np.zeros(rows.shape[1])
    cost[:n] = means @ matrix
    n_columns = blocks.n_blocks * n
    cost[n_columns : n_columns + len(links)] = [link.weight for link in links]
    sides, n_rows = parts.rewards, len(parts.rewards)
    if ends:
        rows, sides = _not_negative(rows, sides, n_columns, len(links))
    program = InteriorProgram(cost, rows, sides, tolerance=BLOCK_ROWS_ENOUGH)
    found = program.solve(clock)
    if not found.iterations or not np.isfinite(found.values).all():
        raise Stopped
    shared = np.asarray(scale * (matrix @ found.values[:n_columns].reshape(-1, n).T).T)
    pairs = pairs_of(blocks, shared)
    excesses = np.array([w.value for w in excesses_of(network, intervals, pairs, clock=clock)])
    weights = blocks.weights(shared, np.maximum(excesses, 0.0) if ends else excesses)
    assert found.duals is not None
    cuts, measure = _sampled(network, blocks, found.duals[:n_rows], seed)
    return BundleSolution(
        found.status,
        shared,
        weights,
        float(means @ weights[0]),
        scale * program.dual_bound(found),
        found.iterations,
        cuts,
        measure,
        time.perf_counter() - began,
    )


def _sampled(
    network: BellmanNetwork, blocks: Blocks, duals: Floats, seed: int
) -> tuple[Cuts, Floats]:
    """A list of states and actions from the duals of all links."""
    rng = generator(seed, Purpose.DUALS)
    parts, measure = [], []
    schedule, rows = network.elimination.schedule, network.elimination.rows()
    flat = flatten(schedule)
    for number, (link, of_link) in enumerate(
        zip(blocks.links, np.split(np.maximum(duals, 0.0), len(blocks.links)), strict=True)
    ):
        states, actions = sample(schedule, flat, rows.spread(of_link), SAMPLES, rng)
        parts.append(Cuts(np.full(SAMPLES, number), states, actions))
        measure.append(np.full(SAMPLES, link.weight / SAMPLES))
    return joined(parts), np.concatenate(measure)


def slopes(
    model: FactoredMDP,
    basis: Basis,
    blocks: Blocks,
    cuts: Cuts,
    measure: Floats,
    check: Callable[[], None] | None = None,
) -> Floats:
    """How fast the bound falls with the weight of each function in each block, up to sign.

    (n_blocks, n_functions). Cost: the marginals of the functions, and a pass over the cuts for
    each.
    """
    marginals = model.marginals(basis, check)
    held = measure > 1e-9 * measure.max(initial=0.0)
    steps, actions = cuts.steps[held], cuts.actions[held]
    columns = np.ascontiguousarray(cuts.states[held].T)  # each is read many times
    weight = measure[held]
    links = blocks.links
    own = np.array([links[k].own for k in steps], dtype=np.int64)
    after = np.array([-1 if (b := links[k].after) is None else b for k in steps], dtype=np.int64)
    found = np.zeros((blocks.n_blocks + 1, len(marginals.basis)))  # the last is after the end
    for j, (table, cases) in enumerate(
        zip(marginals.basis, marginals.backprojections(), strict=True)
    ):
        np.add.at(found[:, j], own, -weight * _at(table, columns))
        means = _next_means(cases, columns, actions, model.dynamics.n_actions)
        np.add.at(found[:, j], after, model.discount * weight * means)
    found = found[:-1]
    found[0] += state_means("initial", marginals.basis, model)
    return found


def _at(table: Table, columns: States) -> Floats:
    found = table.values[tuple(columns[p] for p in table.scope)]
    return np.broadcast_to(found, columns.shape[1:])


def _next_means(cases: Cases[Table], columns: States, actions: States, n_actions: int) -> Floats:
    """E[h(s') | s, a] of each pair; 0 at the ends of an episode, which come after the actions."""
    found = np.array(_at(cases.groups[0], columns))
    group_of = np.zeros(n_actions, dtype=np.int64)
    group_of[[*cases.exceptions]] = [*cases.exceptions.values()]
    over = actions >= n_actions
    found[over] = 0.0
    group = np.where(over, 0, group_of[np.minimum(actions, n_actions - 1)])
    for number in np.unique(group):
        if number > 0:
            rows = np.flatnonzero(group == number)
            table = cases.groups[number]
            found[rows] = table.values[tuple(columns[p, rows] for p in table.scope)]
    return found


COARSE = 1e-4
"""Tolerance of blocks that will be divided, in spans of values."""

STAGES_SHARE = 0.3
"""Of the time, at most, for the stages that a policy comes from."""


@dataclass(frozen=True, slots=True)
class Bundled(Planner):
    """A known model's tightest bound where rows would be many: an oracle and a stabilised master.

    The policy is greedy in the stages, one program for each step, where their rows are few enough.
    """

    tolerance: Tolerance = 1e-6
    max_rounds: Count = 1000
    time_limit: Seconds = None

    def solve(self, problem: Problem, clock: Clock | None = None) -> Plan:
        """The joint program of all steps, or the stationary one if the horizon is infinite."""
        clock = clock or self.own_clock
        if not problem.intervals.exact:
            raise ModelError(
                "method 'bundled' plans in known models; this one is known up to intervals, use "
                "method='joint' or 'cutting-planes'."
            )
        solving = clock.part(seconds_of_excesses(problem.network))
        policy = stage_weights(problem, solving.share(STAGES_SHARE))
        blocks, found = tightest(problem, solving, self.tolerance, self.max_rounds)
        return plan_of(problem, blocks, found, clock, policy, self.tolerance)


def plan_of(
    problem: Problem,
    blocks: Blocks,
    found: BundleSolution,
    clock: Clock,
    policy: StagewiseSolution | None = None,
    tolerance: float = CONFIRMED,
) -> Plan:
    """A plan of a bundle's weights, and the policy of others if there are any."""
    lengths = f"{blocks.n_blocks} blocks of steps" if blocks.lengths else "one block"
    seconds = {} if policy is None else {"stages": policy.seconds}
    solved = Solved(
        "bundled",
        found.status,
        found.weights,
        found.value,
        found.lower,
        rows=len(found.cuts),
        columns=found.shared.size,
        iterations=found.rounds,
        seconds=seconds | {"bundle": found.seconds},
        policy_weights=None if policy is None else policy.weights,
        choices=(f"bound: {lengths}, {found.rounds} rounds of cuts",),
        tolerance=tolerance,
    )
    return finish(problem, solved, clock)


def stage_weights(problem: Problem, clock: Clock) -> StagewiseSolution | None:
    """Weights for a policy, stage by stage, where rows are few enough and time suffices."""
    if not has_stages(problem.network):
        return None
    with suppress(Stopped):
        stages = clock.run(lambda: StagewiseProgram(problem.network, problem.uniform))
        found = stages.solve(problem.intervals, problem.view, problem.means, clock)
        if found.status in (Status.OPTIMAL, Status.INACCURATE):
            return found
    return None


def tightest(
    problem: Problem, clock: Clock, tolerance: float = 1e-6, max_rounds: int = 1000
) -> tuple[Blocks, BundleSolution]:
    """The smallest value of every step by itself, or of the finest blocks that time suffices for.

    Blocks are divided in two until none is left; each division starts from the weights and cuts of
    the one before, so that its value is never larger.
    """
    blocks = coarse_blocks(problem.network)
    span = value_span(problem.network, problem.intervals)
    found = None
    rounds = 0
    while True:
        last = blocks.is_finest
        try:
            new = minimise(
                problem.network,
                problem.intervals,
                problem.means,
                blocks,
                None if found is None else found.shared,
                None if found is None else found.cuts,
                enough=span * (tolerance if last else max(tolerance, COARSE)),
                max_rounds=max_rounds,
                clock=clock,
            )
        except Stopped:
            if found is None:
                raise
            return blocks, replace(found, status=clock.status or Status.TIME_LIMIT)
        rounds += new.rounds
        found = (
            new if found is None or new.value <= found.value else replace(found, status=new.status)
        )
        found = replace(found, rounds=rounds)
        if last or new.status is not Status.OPTIMAL:
            return blocks, found
        finer = blocks.divided()
        found, blocks = divided(found, blocks, finer), finer


def divided(found: BundleSolution, blocks: Blocks, finer: Blocks) -> BundleSolution:
    """The same weights and cuts in a finer division."""
    parents, links = blocks.parents(finer)
    held = found.held
    parts, duals = [], []
    for old, new in enumerate(links):
        part = held.at(np.flatnonzero(held.steps == old))
        for number in new:
            parts.append(Cuts(np.full(len(part), number), part.states, part.actions))
            duals.append(np.full(len(part), finer.links[number].weight / max(1, len(part))))
    return replace(
        found,
        shared=found.shared[parents],
        cuts=joined(parts),
        measure=np.concatenate(duals),
    )
