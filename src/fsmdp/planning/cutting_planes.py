"""Cutting planes: a master program in the weights alone, and elimination as its oracle.

Where the rows of an elimination tree are too many, its max-sum is still cheap. The master holds
the inequalities of a few (state, action) pairs; the oracle finds the worst violated one for every
step and action. The master's value is a lower bound on the program's, and its weights lifted by
the oracle's violations are feasible: their value is an upper bound. The gap decides when to stop.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from fsmdp.model.tables import Floats
from fsmdp.planning.bellman import OPTIMISTIC, BellmanNetwork, Intervals
from fsmdp.planning.certificate import certify, lifts_of
from fsmdp.planning.cuts import (
    Cuts,
    Master,
    StatePool,
    cut_rows,
    first_states,
    joined,
    random_cuts,
    violated_cuts,
    worst_actions,
)
from fsmdp.planning.highs import Status
from fsmdp.planning.joint import largest_value
from fsmdp.planning.oracle import excesses
from fsmdp.planning.rows import function_scales, reward_scale
from fsmdp.planning.stagewise import StagewiseSolution

START_CUTS_PER_COLUMN = 3

USABLE = (Status.OPTIMAL, Status.INACCURATE)
"""A master need not be solved to the last digit: the oracle says what its weights are worth."""

INWARDS = 0.8
"""How far from the master's solution towards feasible weights the oracle is asked at first."""


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
    value = largest_value(network, intervals)
    scales = function_scales(network)
    weights = _constant_weights(shape, value) if near is None else near
    master = Master(means, weights / scale, value / scale, scales)
    cuts = random_cuts(network) if start is None else start
    master.add(*cut_rows(network, intervals, weights, cuts, scale))
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
        if found.status not in USABLE:
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
        new = violated_cuts(worst, tolerance * scale)
        if not len(new):
            weights = outside
            new = violated_cuts(excesses(network, intervals, outside), 0.0)
        master.add(*cut_rows(network, intervals, weights, new, scale))
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
    value, scales = largest_value(network, intervals) / scale, function_scales(network)
    pool = StatePool(network, first_states(network, seed))
    weights = np.zeros((network.horizon, len(network.basis)))
    following = np.zeros(len(network.basis))
    status, objective, iterations, kept = Status.OPTIMAL, 0.0, [], []
    for row in reversed(range(network.horizon)):
        entries = network.right_side(following, intervals, view) / scale
        pool.set_entries(entries[network.rewards_at.start :])
        centre = following / scale
        centre[0] += value
        objective_means = first_means if row == 0 and first_means is not None else means
        master = Master(objective_means, centre[None, :], value, scales)
        master.add(*pool.inequalities())
        ended, spent = Status.ITERATION_LIMIT, 0
        for _ in range(max_rounds):
            left = None if time_limit is None else time_limit - (time.perf_counter() - began)
            found = master.solve(left)
            spent += found.iterations
            if found.status not in USABLE:
                ended = found.status
                break
            entries[: len(network.values)] = -found.values[network.value_columns] * network.values
            worst = network.elimination.maximise(entries)
            if worst.value <= tolerance * max(1.0, abs(found.objective)):
                if not master.box_holds_back(found):
                    ended = Status.OPTIMAL
                    break
                master.grow_box()
            master.add(*pool.add(worst.states(worst_actions(worst.values))))
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


def _constant_weights(shape: tuple[int, int], value: float) -> Floats:
    """Weights of the constant alone."""
    weights = np.zeros(shape)
    weights[:, 0] = value
    return weights
