"""Bundles: the tightest weights of blocks of steps, by an oracle and a stabilised master.

f(x) = E[x_1] + sum over links k of m_k max over (s, a) of excess_k(s, a; x)

is convex and piecewise linear in the weights x, and above V* wherever it is looked at. The oracle
gives, for each link, the maximum and the (state, action) pairs that attain it: a cut each. The
master minimises the largest of all cuts so far, and stays near the best weights by a quadratic
term, without which its first solutions would lie far out. The duals of the cuts are an occupation
measure.
Source: Kiwiel, Proximity control in bundle methods for convex nondifferentiable minimization
(1990).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import factorized

from fsmdp.elimination import Maximum
from fsmdp.model.tables import Floats
from fsmdp.planning.bellman import BellmanNetwork
from fsmdp.planning.blocks import Blocks, pairs_of
from fsmdp.planning.clock import NO_LIMIT, Clock, Stopped
from fsmdp.planning.conditioning import conditioning_of
from fsmdp.planning.inequalities import Cuts, joined, parts_of
from fsmdp.planning.interior import InteriorProgram
from fsmdp.planning.intervals import Intervals
from fsmdp.planning.oracle import excesses_of
from fsmdp.planning.rows import reward_scale
from fsmdp.planning.solution import CONFIRMED, REACH, Solution, Status
from fsmdp.planning.values import value_span

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

SMALLEST_PULL, LARGEST_PULL = 1e-9, 1e6


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
        place = np.arange(len(order)) - np.searchsorted(links, links)
        least = 1e-9 * self.measure.max(initial=0.0)
        return self.cuts.at(order[(place < MOST_HELD) & (self.measure[order] > least)])


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
    before the first weights were looked at).
    Cost of a round: a max-sum for each link, and a quadratic program in the weights of all blocks.
    """
    assert intervals.exact
    bundle = _Bundle(network, intervals, means, blocks, start, clock)
    if cuts is not None and len(cuts):
        bundle.add(cuts)
    enough = max(enough, CONFIRMED * value_span(network, intervals)) / bundle.scale
    status, rounds = Status.ITERATION_LIMIT, 0
    try:
        bundle.look(bundle.best)
        if not bundle.n:  # the constant alone: the oracle has determined it
            bundle.lower, status = bundle.value, Status.OPTIMAL
        while bundle.n and rounds < max_rounds:
            rounds += 1
            if bundle.step(enough):
                status = Status.OPTIMAL
                break
    except Stopped:
        if not np.isfinite(bundle.value):
            raise  # not even the first weights were looked at
        status = clock.status or Status.TIME_LIMIT
    except _MasterError as error:
        status = error.status
    return bundle.solution(status, rounds)


class _MasterError(Exception):
    def __init__(self, status: Status) -> None:
        self.status = status


class _Bundle:
    """Cuts, the best coordinates so far, and how hard the master is pulled towards them.

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
        self.matrix = sparse.csr_matrix(conditioning_of(network, intervals).matrix[:, 1:])
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
        self.pull = 1.0
        self.rows = sparse.csr_matrix((0, len(self.cost)))
        self.sides = np.zeros(0)
        self.kept: list[Cuts] = []
        self.idle = np.zeros(0, dtype=np.int64)  # rounds since a cut last held something
        self.duals = np.zeros(0)

    def _coordinates(self, shared: Floats) -> Floats:
        """Coordinates of weights; the constant's weight does not count."""
        own = sparse.csc_matrix(self.matrix[1:])
        solve = factorized(sparse.csc_matrix(own.T @ own))
        return np.concatenate([solve(own.T @ one[1:]) for one in shared])

    def shared(self, coordinates: Floats) -> Floats:
        """Weights of the blocks, the constants left to be determined."""
        by_block = coordinates[: self.n_columns].reshape(self.blocks.n_blocks, self.n)
        return np.asarray(self.scale * (self.matrix @ by_block.T).T)

    def look(self, coordinates: Floats) -> float:
        """f at some coordinates, in units; cuts are added, and the best kept."""
        pairs = pairs_of(self.blocks, self.shared(coordinates))
        excesses, parts = np.zeros(len(pairs)), []
        for number, worst in enumerate(
            excesses_of(self.network, self.intervals, pairs, clock=self.clock)
        ):
            excesses[number] = worst.value / self.scale
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
        """Solve the master and look at what it found; True if nothing is left to gain."""
        squares = np.zeros(len(self.cost))
        squares[: self.n_columns] = self.pull
        cost = self.cost.copy()
        cost[: self.n_columns] -= self.pull * self.best
        found = InteriorProgram(cost, self.rows, self.sides, squares).solve(self.clock)
        self.clock.check()
        if found.status not in SOLVED or found.duals is None:
            raise _MasterError(found.status)
        self._note_duals(found)
        model = float(self.cost @ found.values)
        there = found.values[: self.n_columns]
        slope = self.pull * (self.best - there)
        reach = REACH * np.maximum(np.abs(there), 1.0) + np.abs(there)
        self.lower = max(self.lower, model - float(np.abs(slope) @ reach))
        promised = self.value - model
        if promised <= enough and self.value - self.lower <= 5 * enough:
            return True
        before = self.value
        value = self.look(there)
        if before - value >= ENOUGH * promised:
            kept_well = before - value >= 0.5 * promised
            self.pull = max(SMALLEST_PULL, self.pull / (4.0 if kept_well else 1.5))
        elif value - before > promised:
            self.pull = min(LARGEST_PULL, self.pull * 2.0)  # cuts were wrong by far: stay nearer
        if promised <= enough:
            self.pull = max(SMALLEST_PULL, self.pull / 10)
        return False

    def _note_duals(self, found: Solution) -> None:
        """Keep the duals of the cuts, and drop cuts that have long held nothing."""
        assert found.duals is not None
        self.duals = np.maximum(found.duals, 0.0)
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
    """Those of the actions of the largest excesses."""
    chosen = np.argsort(-worst.values, kind="stable")[:CUTS_PER_LINK]
    entries = None if worst.is_exact else worst.picked(chosen)
    return Cuts(np.full(len(chosen), link), worst.states(chosen), chosen, entries)
