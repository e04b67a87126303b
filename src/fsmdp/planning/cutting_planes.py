"""Cutting planes: a master program in the weights alone, and elimination as its oracle.

Where the rows of an elimination tree are too many, its max-sum is still cheap. The master holds
the inequalities of a few (state, action) pairs; the oracle finds the worst violated one for every
step and action. The master's value is a lower bound on the program's, and its weights lifted by
the oracle's violations are feasible: their value is an upper bound. The gap decides when to stop.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from fsmdp.elimination import Maximum
from fsmdp.model.tables import Floats
from fsmdp.planning.bellman import OPTIMISTIC, BellmanNetwork, Intervals
from fsmdp.planning.certificate import certify, lifts_of
from fsmdp.planning.greedy import best_actions, greedy_lookup
from fsmdp.planning.highs import Solution, Status
from fsmdp.planning.interior import InteriorProgram
from fsmdp.planning.joint import constant_value
from fsmdp.planning.oracle import excesses, function_values, local_values
from fsmdp.planning.rows import reward_scale
from fsmdp.planning.stagewise import StagewiseSolution

States = NDArray[np.int64]

CUTS_PER_STEP = 12
CUTS_PER_COLUMN = 5
START_CUTS_PER_COLUMN = 3
SLACK = 5.0
"""A cut is forgotten only when it is slacker than this, in units of the largest reward."""

INWARDS = 0.8
"""How far from the master's solution towards feasible weights the oracle is asked at first."""

PUSH = 1e-6
"""Duals of the box below this are the solver's rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class CutSolution:
    """Feasible weights, bounds on the program's value from both sides, and what it took."""

    status: Status
    weights: Floats  # (n_steps, n_functions), feasible
    objective: float  # of the master: a lower bound on the program's value
    certified: float  # of the lifted weights: an upper bound
    rounds: int
    n_cuts: int
    iterations: int
    seconds: float


@dataclass(frozen=True, slots=True, eq=False)
class Cuts:
    """(step, state, action) triples whose inequalities are worth starting from."""

    rows: States = field(repr=False)  # (n_cuts,) step less one
    states: States = field(repr=False)  # (n_cuts, n_variables)
    actions: States = field(repr=False)  # (n_cuts,)

    def __len__(self) -> int:
        return len(self.rows)


def joined(parts: list[Cuts]) -> Cuts:
    """All of several, in order."""
    return Cuts(
        np.concatenate([part.rows for part in parts]),
        np.concatenate([part.states for part in parts]),
        np.concatenate([part.actions for part in parts]),
    )


def random_cuts(network: BellmanNetwork, seed: int = 0) -> Cuts:
    """Cuts to start from when no stagewise run left any: random states and actions."""
    states = _first_states(network, seed)
    rng = np.random.default_rng(seed)
    rows = np.repeat(np.arange(network.n_weight_rows), len(states))
    actions = rng.integers(len(network.actions), size=len(rows))
    return Cuts(rows, np.tile(states, (network.n_weight_rows, 1)), actions)


def solve_joint_by_cuts(
    network: BellmanNetwork,
    intervals: Intervals,
    means: Floats,
    start: Cuts | None = None,
    near: Floats | None = None,
    *,
    tolerance: float = 1e-6,
    max_rounds: int = 1000,
    time_limit: float | None = None,
) -> CutSolution:
    """The joint program of all steps (the stationary one if the horizon is infinite).

    Stops when the certified value is within `tolerance`, relative, of the master's. The cut of
    (l, s, a) takes each interval's end by the sign of its weight at the time, and holds for all.
    The master stays in a box around `near` (weights of a stagewise run), without which its first
    solutions would lie far out; the box grows until it holds nothing back.
    Cost: a two-pass max-sum for each step and round.
    """
    began = time.perf_counter()
    shape = (network.n_weight_rows, len(network.basis))
    scale = reward_scale(intervals)
    value = constant_value(network, intervals)
    weights = _constant_weights(shape, value) if near is None else near
    master = _Master(means, weights / scale, value / scale)
    cuts = random_cuts(network) if start is None else start
    master.add(*_cut_rows(network, intervals, weights, cuts, scale))
    certificate, inside = certify(network, intervals, weights, means)
    best, lowest = certificate.upper_bound, -np.inf
    status, iterations, rounds, inwards = Status.ITERATION_LIMIT, 0, 0, INWARDS
    while rounds < max_rounds:
        left = None if time_limit is None else time_limit - (time.perf_counter() - began)
        if left is not None and left <= 0:
            status = Status.TIME_LIMIT
            break
        found = master.solve(left)
        iterations += found.iterations
        if found.status is not Status.OPTIMAL:
            status = found.status
            break
        rounds += 1
        lowest = scale * found.objective
        outside = scale * found.values.reshape(shape)
        if best - lowest <= tolerance * max(abs(lowest), scale):
            if not master.box_holds_back(found):
                status = Status.OPTIMAL
                break
            master.grow_box()
        weights = outside + inwards * (inside - outside)
        worst = excesses(network, intervals, weights)
        lifts = lifts_of(network, np.array([maximum.value for maximum in worst]))
        # The closer the master comes to the truth, the closer to it the oracle is asked.
        inwards = inwards / 4 if lifts[0] < best - lowest else min(INWARDS, 2 * inwards + 0.05)
        if float(means @ weights[0]) + lifts[0] < best:
            inside = weights.copy()
            inside[:, 0] += lifts
            best = float(means @ inside[0])
        master.forget_slack_cuts(found)
        new = _violated(worst, tolerance * scale)
        if not len(new):
            weights = outside
            new = _violated(excesses(network, intervals, outside), 0.0)
        master.add(*_cut_rows(network, intervals, weights, new, scale))
    seconds = time.perf_counter() - began
    return CutSolution(status, inside, lowest, best, rounds, master.n_cuts, iterations, seconds)


def solve_stages_by_cuts(
    network: BellmanNetwork,
    intervals: Intervals,
    means: Floats,
    *,
    first_means: Floats | None = None,
    view: str = OPTIMISTIC,
    tolerance: float = 1e-6,
    max_rounds: int = 1000,
    time_limit: float | None = None,
    seed: int = 0,
) -> tuple[StagewiseSolution, Cuts]:
    """Stage by stage: V_l(s) >= max_a Q_l(s, a) at a pool of states that all steps share.

    Only right-hand sides change between steps, so the pool's program restarts warm. Returns also
    the cuts that were nearly tight, from which a joint master starts.
    """
    assert network.horizon is not None
    began = time.perf_counter()
    scale = reward_scale(intervals)
    value = constant_value(network, intervals) / scale
    pool = _StatePool(network, _first_states(network, seed))
    weights = np.zeros((network.horizon, len(network.basis)))
    following = np.zeros(len(network.basis))
    status, objective, iterations, kept = Status.OPTIMAL, 0.0, [], []
    for row in reversed(range(network.horizon)):
        entries = network.right_side(following, intervals, view) / scale
        pool.set_entries(entries[network.rewards_at.start :])
        centre = following / scale
        centre[0] += value
        objective_means = first_means if row == 0 and first_means is not None else means
        master = _Master(objective_means, centre[None, :], value)
        master.add(*pool.inequalities())
        ended, spent = Status.ITERATION_LIMIT, 0
        for _ in range(max_rounds):
            left = None if time_limit is None else time_limit - (time.perf_counter() - began)
            found = master.solve(left)
            spent += found.iterations
            if found.status is not Status.OPTIMAL:
                ended = found.status
                break
            entries[: len(network.values)] = -found.values[network.value_columns] * network.values
            worst = network.elimination.maximise(entries)
            if worst.value <= tolerance * max(1.0, abs(found.objective)):
                if not master.box_holds_back(found):
                    ended = Status.OPTIMAL
                    break
                master.grow_box()
            master.add(*pool.add(worst.states(_worst_actions(worst.values))))
        if ended is not Status.OPTIMAL:
            status = ended
        weights[row] = following = scale * found.values
        objective = scale * found.objective
        iterations.append(spent)
        kept.append(pool.tightest(row, found.values, START_CUTS_PER_COLUMN * len(following)))
        pool.forget_slack(found.values)
    seconds = time.perf_counter() - began
    solution = StagewiseSolution(status, weights, objective, tuple(iterations), seconds)
    return solution, joined(kept)


class _Master:
    """The inequalities held so far, in a box that grows until it holds nothing back.

    Solved by the interior-point method: it ends in the middle of the optimal face, where cuts go
    deep, and needs a fraction of the rounds that the corners of the simplex method take.
    """

    def __init__(self, means: Floats, centre: Floats, value: float) -> None:
        self._cost = np.zeros(centre.size)
        self._cost[: len(means)] = means
        self._centre = centre.ravel()
        self._radius = np.maximum(2 * np.abs(self._centre), value / np.sqrt(centre.size))
        self._matrix = sparse.csr_matrix((0, centre.size))
        self._lower = np.zeros(0)
        self._n_solved = 0

    @property
    def n_cuts(self) -> int:
        return len(self._lower)

    def add(self, matrix: sparse.csr_matrix, lower: Floats) -> None:
        self._matrix = sparse.csr_matrix(sparse.vstack([self._matrix, matrix]))
        self._lower = np.concatenate([self._lower, lower])

    def solve(self, time_limit: float | None) -> Solution:
        sides = sparse.identity(len(self._centre), format="csr")
        matrix = sparse.csr_matrix(sparse.vstack([self._matrix, sides, -sides]))
        self._n_solved = self.n_cuts
        box = [self._centre - self._radius, -self._centre - self._radius]
        return InteriorProgram(self._cost, matrix, np.concatenate([self._lower, *box])).solve(
            time_limit
        )

    def box_holds_back(self, found: Solution) -> bool:
        """Whether the box pushes: otherwise the value is that of the cuts alone."""
        return bool(found.duals[self._n_solved :].max() > PUSH)

    def grow_box(self) -> None:
        self._radius *= 10

    def forget_slack_cuts(self, found: Solution) -> None:
        """Drop what is slack by far, once there are many cuts for each weight."""
        if self.n_cuts <= CUTS_PER_COLUMN * len(self._centre):
            return
        kept = np.flatnonzero(self._matrix @ found.values - self._lower <= SLACK)
        self._matrix, self._lower = self._matrix[kept], self._lower[kept]


class _StatePool:
    """States whose inequality V(s) >= max_a Q(s, a) a stage's master holds; all stages share it."""

    def __init__(self, network: BellmanNetwork, states: States) -> None:
        self.network = network
        self._lookup = greedy_lookup(network)
        self._entries = np.zeros(0)
        self.states = states
        self._features = function_values(network, states)
        self._right_sides = np.zeros(len(states))
        self._actions = np.zeros(len(states), dtype=np.int64)

    def set_entries(self, entries: Floats) -> None:
        """New terms of Q: new right-hand sides for every state."""
        self._entries = entries
        self._right_sides, self._actions = self._best(self.states)

    def inequalities(self, first: int = 0) -> tuple[sparse.csr_matrix, Floats]:
        """Rows and right-hand sides of the states from a position on."""
        return sparse.csr_matrix(self._features[first:]), self._right_sides[first:]

    def add(self, states: States) -> tuple[sparse.csr_matrix, Floats]:
        """Further states, those already there left out, and their inequalities."""
        known = {state.tobytes() for state in self.states}
        fresh = [state for state in np.unique(states, axis=0) if state.tobytes() not in known]
        first = len(self.states)
        if fresh:
            new = np.array(fresh)
            right_sides, actions = self._best(new)
            self.states = np.vstack([self.states, new])
            self._features = np.vstack([self._features, function_values(self.network, new)])
            self._right_sides = np.concatenate([self._right_sides, right_sides])
            self._actions = np.concatenate([self._actions, actions])
        return self.inequalities(first)

    def tightest(self, row: int, weights: Floats, most: int) -> Cuts:
        """The cuts of one step with the least slack."""
        order = np.argsort(self._features @ weights - self._right_sides, kind="stable")[:most]
        return Cuts(np.full(len(order), row), self.states[order], self._actions[order])

    def forget_slack(self, weights: Floats) -> None:
        """Drop the slackest states when there are many."""
        most = CUTS_PER_COLUMN * self._features.shape[1]
        if len(self.states) <= 2 * most:
            return
        order = np.argsort(self._features @ weights - self._right_sides, kind="stable")
        dropped = order[most:]
        for name in ("states", "_features", "_right_sides", "_actions"):
            setattr(self, name, np.delete(getattr(self, name), dropped, axis=0))

    def _best(self, states: States) -> tuple[Floats, States]:
        values, actions = np.zeros(len(states)), np.zeros(len(states), dtype=np.int64)
        best_actions(self._lookup, self._entries, states, values, actions)
        return values, actions


def _first_states(network: BellmanNetwork, seed: int) -> States:
    """The two corners, and random states enough to hold the weights in."""
    sizes = np.array([variable.size for variable in network.variables])
    rng = np.random.default_rng(seed)
    random = rng.integers(sizes, size=(2 * len(network.basis), len(sizes)))
    mirrored = sizes - 1 - random
    return np.unique(np.vstack([0 * sizes, sizes - 1, random, mirrored]), axis=0)


def _constant_weights(shape: tuple[int, int], value: float) -> Floats:
    """Weights of the constant alone, feasible at every step."""
    weights = np.zeros(shape)
    weights[:, 0] = value
    return weights


def _worst_actions(violations: Floats) -> States:
    """Actions whose violation is positive and not far below the largest, at most a few dozen."""
    largest = violations.max()
    if largest <= 0:
        return np.zeros(0, dtype=np.int64)
    order = np.argsort(-violations, kind="stable")[:CUTS_PER_STEP]
    return np.asarray(order[violations[order] > 0.05 * largest])


def _violated(worst: list[Maximum], least: float) -> Cuts:
    """The inequalities of the worst actions of every step that is violated by more than least."""
    n_variables = worst[0].state(0).shape[0]
    parts = [Cuts(*(np.zeros(shape, dtype=np.int64) for shape in (0, (0, n_variables), 0)))]
    for row, maximum in enumerate(worst):
        if maximum.value > least:
            actions = _worst_actions(maximum.values)
            parts.append(Cuts(np.full(len(actions), row), maximum.states(actions), actions))
    return joined(parts)


def _cut_rows(
    network: BellmanNetwork,
    intervals: Intervals,
    weights: Floats,
    cuts: Cuts,
    scale: float,
) -> tuple[sparse.csr_matrix, Floats]:
    """The inequality of each triple, with interval ends by the sign of the weights."""
    n_functions = len(network.basis)
    features = function_values(network, cuts.states)
    high, low, rewards = local_values(network, intervals, cuts.states, cuts.actions)
    at_and_after = np.vstack([weights, np.zeros((1, n_functions))])
    following = at_and_after[cuts.rows + (network.horizon is not None)]
    ends = network.discount * np.where(following >= 0, high, low)
    own = cuts.rows[:, None] * n_functions + np.arange(n_functions)
    if network.horizon is None:
        columns, values = own, features - ends
    else:
        is_last = cuts.rows == network.horizon - 1
        ends[is_last] = 0.0
        after = np.where(is_last[:, None], own, own + n_functions)
        columns, values = np.hstack([own, after]), np.hstack([features, -ends])
    at = np.repeat(np.arange(len(cuts)), columns.shape[1])
    matrix = sparse.csr_matrix(
        (values.ravel(), (at, columns.ravel())), shape=(len(cuts), weights.size)
    )
    matrix.eliminate_zeros()
    return matrix, rewards / scale
