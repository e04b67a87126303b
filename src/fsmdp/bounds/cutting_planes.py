"""Cutting planes: a master program in the weights alone, and elimination as its oracle.

Where the rows of an elimination tree are too many, its max-sum is still cheap. The master holds
the inequalities of a few (state, action) pairs; the oracle finds the worst violated one for every
step and action. The master's value is a lower bound on the program's, and its weights lifted by
the oracle's violations are feasible: their value is an upper bound. The gap decides when to stop.
"""

import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from fsmdp.bounds.bellman import (
    OPTIMISTIC,
    BellmanNetwork,
    Intervals,
    largest_value,
    reward_scale,
    value_span,
)
from fsmdp.bounds.certificate import each_excess, lifts_of, seconds_of_excesses
from fsmdp.bounds.clock import NO_LIMIT, REACH, Clock, Solution, Status, Stopped, dual_bound
from fsmdp.bounds.conditioning import Conditioning, conditioning_of
from fsmdp.bounds.finish import Solved, finish, greedy_lookup
from fsmdp.bounds.highs import InteriorProgram
from fsmdp.bounds.inequalities import Cuts, States, function_values, inequalities, joined
from fsmdp.bounds.plan import Plan
from fsmdp.bounds.planner import Count, Planner, Seconds, Tolerance, require_optimism
from fsmdp.bounds.problem import Problem
from fsmdp.bounds.stagewise import StagewiseSolution
from fsmdp.elimination import Maximum
from fsmdp.foundation.streams import Purpose, generator
from fsmdp.model.tables import Floats
from fsmdp.policies.greedy import BestActions
from fsmdp.policies.joint import random_actions

CUTS_PER_STEP = 12
CUTS_PER_COLUMN = 5
SLACK = 5.0
"""A cut is forgotten only when it is slacker than this, in units of the largest reward."""


MOST_START_NUMBERS = 2**24
"""Numbers in the cuts that a joint master starts from, about 20 bytes each."""


def random_cuts(network: BellmanNetwork, seed: int = 0) -> Cuts:
    """Cuts to start from when no stagewise run left any: random states and actions.

    Where there are many steps, fewer states of each: no more than MOST_START_NUMBERS numbers.
    """
    states = first_states(network, seed)
    rng = generator(seed, Purpose.CUTS, 1)
    most = MOST_START_NUMBERS // (2 * len(network.basis) * network.n_weight_rows)
    if len(states) > most:
        states = states[rng.permutation(len(states))[: max(1, most)]]
    steps = np.repeat(np.arange(network.n_weight_rows), len(states))
    states = np.tile(states, (network.n_weight_rows, 1))
    cases, values = random_actions(network.conditions).draw(states, rng)
    found = Cuts(steps, np.hstack([states, values]), cases)
    if not network.conditions:
        return found
    fine = network.conditions.allows_each(states, cases, values)
    return found.at(fine & ~network.conditions.is_terminal(states))


class Master:
    """The inequalities held so far, in a box that grows until it holds nothing back.

    Solved by the interior-point method: it ends in the middle of the optimal face, where cuts go
    deep, and needs a fraction of the rounds that the corners of the simplex method take. Columns
    are coordinates of the basis, those of all steps one after another.
    """

    def __init__(
        self, means: Floats, centre: Floats, value: float, conditioning: Conditioning
    ) -> None:
        self._units = conditioning.steps(len(centre))
        self._cost = np.zeros(centre.size)
        self._cost[: conditioning.n_coordinates] = means @ conditioning.matrix
        self._centre = centre.ravel()
        room = max(value, 1.0) / np.sqrt(centre.size)
        self._radius = np.maximum(2 * np.abs(self._centre), room)
        self._matrix = sparse.csr_matrix((0, centre.size))
        self._lower = np.zeros(0)

    @property
    def n_cuts(self) -> int:
        """Cuts held at present."""
        return len(self._lower)

    def add(self, matrix: sparse.csr_matrix, lower: Floats) -> None:
        """Further cuts, in weights."""
        in_units = matrix @ self._units
        self._matrix = sparse.csr_matrix(sparse.vstack([self._matrix, in_units]))
        self._lower = np.concatenate([self._lower, lower])

    def solve(self, clock: Clock) -> Solution:
        """The coordinates in the middle of the optimal face."""
        return InteriorProgram(self._cost, *self._rows(self._radius)).solve(clock)

    def lower_bound(self, found: Solution) -> float:
        """A value below which no coordinates that satisfy the cuts lie in ten times the box.

        By the duals, whatever the solver did. If it is close to the value found, the box holds
        nothing back: the value is that of the cuts alone.
        """
        return dual_bound(self._cost, *self._rows(REACH * self._radius), found)

    def grow_box(self) -> None:
        """Ten times the room."""
        self._radius *= REACH

    def forget_slack_cuts(self, found: Solution) -> None:
        """Drop what is slack by far, once there are many cuts for each coordinate."""
        if self.n_cuts <= CUTS_PER_COLUMN * len(self._centre):
            return
        slack = self._matrix @ found.values - self._lower
        kept = np.flatnonzero(slack <= SLACK)
        self._matrix, self._lower = self._matrix[kept], self._lower[kept]

    def _rows(self, radius: Floats) -> tuple[sparse.csr_matrix, Floats]:
        """Cuts, then the sides of a box."""
        sides = sparse.identity(len(self._centre), format="csr")
        matrix = sparse.csr_matrix(sparse.vstack([self._matrix, sides, -sides]))
        box = [self._centre - radius, -self._centre - radius]
        return matrix, np.concatenate([self._lower, *box])


class StatePool:
    """States whose inequality V(s) >= max_a Q(s, a) a stage's master holds; all stages share it.

    In terminal states it is V(s) >= 0, with an action after the others.
    """

    def __init__(self, network: BellmanNetwork, states: States) -> None:
        self.network = network
        sizes = [variable.size for variable in network.variables]
        lookup = greedy_lookup(network)
        self._best_actions = BestActions(lookup, sizes, actions=network.actions)
        self._entries = np.zeros(0)
        if not network.conditions.never_stuck:
            stuck = [network.conditions.is_stuck(state) for state in states.tolist()]
            states = states[~np.array(stuck)]
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
        states = states[:, : len(self.network.variables)]
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

    def tightest(self, step: int, weights: Floats, most: int) -> Cuts:
        """The cuts of one step with the least slack."""
        order = np.argsort(self._features @ weights - self._right_sides, kind="stable")[:most]
        states, actions = self.states[order], self._actions[order]
        if actions.ndim == 2:
            states, actions = np.hstack([states, actions]), np.zeros(len(order), dtype=np.int64)
        conditions = self.network.conditions
        own = states[:, : len(self.network.variables)]
        for number, table in enumerate(conditions.terminal):
            over = table.values[tuple(own[:, position] for position in table.scope)] != 0
            actions = np.where(over, conditions.actions.n_cases + number, actions)
        return Cuts(np.full(len(order), step), states, actions)

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
        values, actions = self._best_actions(self._entries, states)
        if self.network.conditions.terminal:
            values[self.network.conditions.is_terminal(states)] = 0.0
        return values, actions


def first_states(network: BellmanNetwork, seed: int) -> States:
    """The two corners, and random states enough to hold the weights in."""
    sizes = np.array([variable.size for variable in network.variables])
    rng = generator(seed, Purpose.CUTS)
    random = rng.integers(sizes, size=(2 * len(network.basis), len(sizes)))
    mirrored = sizes - 1 - random
    return np.unique(np.vstack([0 * sizes, sizes - 1, random, mirrored]), axis=0)


def worst_actions(violations: Floats) -> States:
    """Actions whose violation is positive and not far below the largest, at most a few dozen."""
    largest = violations.max()
    if largest <= 0:
        return np.zeros(0, dtype=np.int64)
    order = np.argsort(-violations, kind="stable")[:CUTS_PER_STEP]
    return np.asarray(order[violations[order] > 0.05 * largest])


def violated_cuts(worst: Iterable[Maximum], least: float, n_inputs: int) -> tuple[Floats, Cuts]:
    """The largest violation of every step, and cuts of the worst actions where it is above least.

    Maxima are freed one by one: each holds all messages of its step.
    """
    violations, parts = [], []
    for step, maximum in enumerate(worst):
        violations.append(maximum.value)
        actions = worst_actions(maximum.values if maximum.value > least else np.zeros(1))
        entries = None if maximum.is_exact else maximum.picked(actions)
        states = maximum.states(actions)[:, :n_inputs]
        parts.append(Cuts(np.full(len(actions), step), states, actions, entries))
    return np.array(violations), joined(parts)


START_CUTS_PER_COLUMN = 3

USABLE = (Status.OPTIMAL, Status.INACCURATE)
"""A master need not be solved to the last digit: the oracle says what its weights are worth."""

INSIDE_SHARE = 0.8
"""How far from the master's solution towards feasible weights the oracle is asked at first."""

STALLED_ROUNDS, STALLED_GAIN = 60, 0.02
"""Rounds in which the gap does not fall by this fraction, after which cuts are given up."""


@dataclass(frozen=True, slots=True)
class CuttingPlanes(Planner):
    """Cuts by an oracle in place of rows: for networks whose rows are too many.

    With a finite horizon the policy comes from a stagewise run, the bound from the joint program
    that starts from its active cuts.
    """

    tolerance: Tolerance = 1e-6
    max_rounds: Count = 1000
    time_limit: Seconds = None

    def solve(self, problem: Problem, clock: Clock | None = None) -> Plan:
        """Stage by stage, then jointly, until the certified gap is within the tolerance."""
        clock = clock or self.own_clock
        require_optimism(problem, "cutting-planes")
        network, solving = problem.network, clock.part(seconds_of_excesses(problem.network))
        start, near, policy_weights, seconds = None, None, None, {}
        if network.horizon is not None:
            with suppress(Stopped):
                stages, near, start = solve_stages_by_cuts(
                    network,
                    problem.intervals,
                    problem.uniform,
                    first_means=problem.means,
                    tolerance=self.tolerance,
                    max_rounds=self.max_rounds,
                    clock=solving.share(0.5),
                )
                policy_weights, seconds = stages.weights, {"stages": stages.seconds}
        found = solve_joint_by_cuts(
            network,
            problem.intervals,
            problem.means,
            start,
            near,
            tolerance=self.tolerance,
            max_rounds=self.max_rounds,
            clock=solving,
        )
        solved = Solved(
            "cutting-planes",
            found.status,
            found.weights,
            found.certified,
            found.objective,
            rows=found.n_cuts,
            columns=found.weights.size,
            iterations=found.iterations,
            seconds=seconds | {"joint": found.seconds},
            policy_weights=policy_weights,
            choices=(f"{found.rounds} rounds of cuts",),
            tolerance=self.tolerance,
        )
        return finish(problem, solved, clock)


@dataclass(frozen=True, slots=True, eq=False)
class CutSolution:
    """Feasible weights, bounds on the program's value from both sides, and what it took."""

    status: Status
    weights: Floats  # (n_steps, n_functions), feasible
    objective: float  # the master's dual bound: the program's value is not below it
    certified: float  # of the lifted weights: an upper bound
    rounds: int
    n_cuts: int
    iterations: int
    seconds: float


def solve_joint_by_cuts(
    network: BellmanNetwork,
    intervals: Intervals,
    means: Floats,
    start: Cuts | None = None,
    near: Floats | None = None,
    *,
    tolerance: float = 1e-6,
    max_rounds: int = 1000,
    clock: Clock = NO_LIMIT,
) -> CutSolution:
    """The joint program of all steps (the stationary one if the horizon is infinite).

    Stops when the certified value is within `tolerance` spans of values of the master's dual
    bound. The cut of (l, s, a) takes each interval's end by the sign of its weight at the time, and
    holds for all. The master stays in a box around `near` (coordinates of a stagewise run), without
    which its first solutions would lie far out; the box grows until it holds nothing back.
    Cost: a two-pass max-sum for each step and round.
    """
    search = _Search(network, intervals, means, near)
    enough = tolerance * value_span(network, intervals)
    status, rounds, inside_share = Status.ITERATION_LIMIT, 0, INSIDE_SHARE
    progress = Progress()
    try:
        clock.check()
        search.add(random_cuts(network) if start is None else start, clock)
        search.improve(search.weights, 0.0, clock)
        while rounds < max_rounds:
            found = search.solve(clock)
            if found.status not in USABLE:
                status = found.status
                break
            rounds += 1
            if search.best - search.scale * found.objective <= enough:
                if search.best - search.lowest <= enough:
                    status = Status.OPTIMAL
                    break
                search.grow_box()
                progress = Progress()
            elif progress.stalls(search.best - search.scale * found.objective):
                status = Status.STALLED
                break
            outside = search.weights_of(found)
            weights = outside + inside_share * (search.inside - outside)
            lift, new = search.improve(weights, tolerance * search.scale, clock)
            # The closer the master comes to the truth, the closer to it the oracle is asked.
            gap = search.best - search.scale * found.objective
            inside_share = (
                inside_share / 4 if lift < gap else min(INSIDE_SHARE, 2 * inside_share + 0.05)
            )
            search.master.forget_slack_cuts(found)
            search.weights = weights
            if not len(new):
                search.weights = outside
                _, new = search.improve(outside, 0.0, clock)
            search.add(new, clock)
    except Stopped:
        status = clock.status or status
    return search.solution(status, rounds)


class Progress:
    """The smallest gap so far, and for how many rounds it has hardly changed."""

    def __init__(self) -> None:
        self.least, self.rounds = np.inf, 0

    def stalls(self, gap: float) -> bool:
        """Take a round's gap in; whether no further gain is expected."""
        if gap < (1.0 - STALLED_GAIN) * self.least:
            self.least, self.rounds = gap, 0
        else:
            self.rounds += 1
        return self.rounds >= STALLED_ROUNDS


class _Search:
    """The master, the best feasible weights so far, and bounds on the program's value."""

    def __init__(
        self, network: BellmanNetwork, intervals: Intervals, means: Floats, near: Floats | None
    ) -> None:
        self.began = time.perf_counter()
        self.network, self.intervals, self.means = network, intervals, means
        self.scale = reward_scale(intervals)
        value = largest_value(network, intervals)
        self.conditioning = conditioning_of(network, intervals)
        if near is None:
            near = np.zeros((network.n_weight_rows, self.conditioning.n_coordinates))
            near[:, 0] = value / self.conditioning.matrix[0, 0]
        self.weights = self.conditioning.weights(near)
        self.master = Master(means, near / self.scale, value / self.scale, self.conditioning)
        self.inside = self.weights
        self.best, self.lowest = np.inf, -np.inf
        self.iterations = 0

    def add(self, cuts: Cuts, clock: Clock) -> None:
        """Cuts with interval ends by the sign of the present weights."""
        rows, rewards = inequalities(self.network, self.intervals, self.weights, cuts, clock)
        clock.check()
        self.master.add(rows, rewards / self.scale)

    def solve(self, clock: Clock) -> Solution:
        """The master's solution; its dual bound is one on the program's value."""
        found = self.master.solve(clock)
        self.iterations += found.iterations
        if found.status in USABLE:
            self.lowest = max(self.lowest, self.scale * self.master.lower_bound(found))
        return found

    def weights_of(self, found: Solution) -> Floats:
        """The weights of a master's solution."""
        shape = (self.network.n_weight_rows, self.conditioning.n_coordinates)
        return self.scale * self.conditioning.weights(found.values.reshape(shape))

    def improve(self, weights: Floats, least: float, clock: Clock) -> tuple[float, Cuts]:
        """Lift weights to be feasible and keep them if they are the best.

        Returns the lift at the first step, and cuts where the violation is above `least`.
        """
        worst = each_excess(self.network, self.intervals, weights, clock=clock)
        violations, cuts = violated_cuts(worst, least, len(self.network.inputs))
        lifts = lifts_of(self.network, violations)
        if float(self.means @ weights[0]) + lifts[0] < self.best:
            self.inside = weights.copy()
            self.inside[:, 0] += lifts
            self.best = float(self.means @ self.inside[0])
        return float(lifts[0]), cuts

    def grow_box(self) -> None:
        """Ten times the room; the lower bound was one for less."""
        self.master.grow_box()
        self.lowest = -np.inf

    def solution(self, status: Status, rounds: int) -> CutSolution:
        """What has been found."""
        seconds = time.perf_counter() - self.began
        found = (self.inside, self.lowest, self.best, rounds, self.master.n_cuts)
        return CutSolution(status, *found, self.iterations, seconds)


def solve_stages_by_cuts(
    network: BellmanNetwork,
    intervals: Intervals,
    means: Floats,
    *,
    first_means: Floats | None = None,
    view: str = OPTIMISTIC,
    tolerance: float = 1e-6,
    max_rounds: int = 1000,
    clock: Clock = NO_LIMIT,
    seed: int = 0,
) -> tuple[StagewiseSolution, Floats, Cuts]:
    """Stage by stage: V_l(s) >= max_a Q_l(s, a) at a pool of states that all steps share.

    Only right-hand sides change between steps, so the pool's program restarts warm. Returns also
    the coordinates of all steps and the cuts that were nearly tight, from which a joint master
    starts. Raises `Stopped` when the clock says so.
    """
    assert network.horizon is not None
    began = time.perf_counter()
    scale = reward_scale(intervals)
    value = largest_value(network, intervals) / scale
    conditioning = conditioning_of(network, intervals)
    pool = StatePool(network, first_states(network, seed))
    coordinates = np.zeros((network.horizon, conditioning.n_coordinates))
    following = np.zeros(conditioning.n_coordinates)
    status, objective, left_open, iterations, kept = Status.OPTIMAL, 0.0, 0.0, [], []
    check = None if clock is NO_LIMIT else clock.check
    for step in reversed(range(network.horizon)):
        entries = network.right_side(scale * conditioning.weights(following), intervals, view)
        entries /= scale
        pool.set_entries(network.q_entries(entries))
        centre = following.copy()
        centre[0] += value
        objective_means = first_means if step == 0 and first_means is not None else means
        master = Master(objective_means, centre[None, :], value, conditioning)
        master.add(*pool.inequalities())
        ended, spent = Status.ITERATION_LIMIT, 0
        for _ in range(max_rounds):
            found = master.solve(clock)
            clock.check()
            spent += found.iterations
            if found.status not in USABLE:
                ended = found.status
                break
            weights = conditioning.weights(found.values)
            entries[: len(network.values)] = -weights[network.value_columns] * network.values
            worst = network.elimination.maximise(entries, check)
            if worst.value <= tolerance * max(1.0, abs(found.objective)):
                bound = master.lower_bound(found)
                if found.objective - bound <= tolerance * max(1.0, abs(found.objective)):
                    ended = Status.OPTIMAL
                    break
                master.grow_box()
            new = pool.add(worst.states(worst_actions(worst.values)))
            if not worst.is_exact and not len(new[1]):
                ended = Status.STALLED  # what mini-buckets find wrong is wrong at no state
                break
            master.add(*new)
        if ended is not Status.OPTIMAL:
            status = ended
        else:
            left_open += scale * (found.objective - bound)
        coordinates[step] = following = found.values
        objective = scale * found.objective
        iterations.append(spent)
        most = START_CUTS_PER_COLUMN * len(following)
        kept.append(pool.tightest(step, conditioning.weights(following), most))
        pool.forget_slack(conditioning.weights(following))
    coordinates *= scale
    solution = StagewiseSolution(
        status,
        conditioning.weights(coordinates),
        objective,
        objective - left_open,
        tuple(iterations),
        time.perf_counter() - began,
    )
    return solution, coordinates, joined(kept)
