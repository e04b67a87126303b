"""Cutting planes: a master program in the weights alone, and elimination as its oracle.

Where the rows of an elimination tree are too many, its max-sum is still cheap. The master holds
the inequalities of a few (state, action) pairs; the oracle finds the worst violated one for every
step and action. The master's value is a lower bound on the program's, and its weights lifted by
the oracle's violations are feasible: their value is an upper bound. The gap decides when to stop.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from fsmdp.model.tables import Floats
from fsmdp.planning.bellman import BellmanNetwork
from fsmdp.planning.certificate import lifts_of
from fsmdp.planning.clock import NO_LIMIT, Clock, Stopped
from fsmdp.planning.conditioning import conditioning_of
from fsmdp.planning.cuts import (
    Master,
    StatePool,
    first_states,
    random_cuts,
    violated_cuts,
    worst_actions,
)
from fsmdp.planning.finish import Solved, finish
from fsmdp.planning.inequalities import Cuts, inequalities, joined
from fsmdp.planning.intervals import OPTIMISTIC, Intervals
from fsmdp.planning.options import Count, Seconds, Tolerance
from fsmdp.planning.oracle import each_excess, seconds_of_excesses
from fsmdp.planning.plan import Plan
from fsmdp.planning.planner import Planner, require_optimism
from fsmdp.planning.problem import Problem
from fsmdp.planning.rows import reward_scale
from fsmdp.planning.solution import Solution, Status
from fsmdp.planning.stagewise import StagewiseSolution
from fsmdp.planning.values import largest_value, value_span

START_CUTS_PER_COLUMN = 3

USABLE = (Status.OPTIMAL, Status.INACCURATE)
"""A master need not be solved to the last digit: the oracle says what its weights are worth."""

INWARDS = 0.8
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
    status, rounds, inwards = Status.ITERATION_LIMIT, 0, INWARDS
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
            weights = outside + inwards * (search.inside - outside)
            lift, new = search.improve(weights, tolerance * search.scale, clock)
            # The closer the master comes to the truth, the closer to it the oracle is asked.
            gap = search.best - search.scale * found.objective
            inwards = inwards / 4 if lift < gap else min(INWARDS, 2 * inwards + 0.05)
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
        """Take a round's gap in; whether nothing is to be hoped for any more."""
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
        pool.set_entries(entries[network.rewards_at.start :])
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
