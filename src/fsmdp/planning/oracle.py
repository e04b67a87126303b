"""The separation oracle: the worst violated Bellman inequality, as a hyperplane in the weights.

Paper: Theorem 1 and eq. hp(w). All steps and actions by elimination; no linear program.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from fsmdp.elimination import Maximum
from fsmdp.model.tables import Floats
from fsmdp.planning.bellman import BellmanNetwork
from fsmdp.planning.clock import NO_LIMIT, Clock
from fsmdp.planning.intervals import OPTIMISTIC, Intervals

SECONDS_PER_TERM = 4e-9
"""Twice what an addition of a max-sum takes on an idle machine of 2024."""

WORTH_A_THREAD = 50_000
"""Table entries from which a step's max-sum takes longer than starting a thread."""


@dataclass(frozen=True, slots=True, eq=False)
class Separation:
    """The most violated inequality `normal @ weights >= reward`, flat over steps and functions."""

    violation: float  # reward - normal @ weights; at most 0 if the weights are feasible
    step: int
    state: tuple[int, ...]
    action: int
    normal: Floats = field(repr=False)  # (n_steps * n_functions,)
    reward: float


def excesses(
    network: BellmanNetwork,
    intervals: Intervals,
    weights: Floats,
    view: str = OPTIMISTIC,
    clock: Clock = NO_LIMIT,
) -> list[Maximum]:
    """max over states of R + discount * backup - V, for every action, step by step.

    Raises `Stopped` when the clock says so.
    Cost: one two-pass max-sum for each step, and memory for the messages of all of them.
    """
    return list(each_excess(network, intervals, weights, view, clock))


def each_excess(
    network: BellmanNetwork,
    intervals: Intervals,
    weights: Floats,
    view: str = OPTIMISTIC,
    clock: Clock = NO_LIMIT,
) -> Iterator[Maximum]:
    """The same one after another, with memory for the messages of a few."""
    check = None if clock is NO_LIMIT else clock.check

    def at(row: int) -> Maximum:
        following = following_weights(network, weights, row)
        entries = network.excess(weights[row], following, intervals, view)
        return network.elimination.maximise(entries, check)

    workers = os.cpu_count() or 1
    if len(weights) == 1 or workers == 1 or network.elimination.n_rows < WORTH_A_THREAD:
        yield from map(at, range(len(weights)))
        return
    with ThreadPoolExecutor(workers) as threads:
        waiting: deque[Future[Maximum]] = deque()
        for row in range(len(weights)):
            waiting.append(threads.submit(at, row))
            if len(waiting) == workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def seconds_of_excesses(network: BellmanNetwork) -> float:
    """What the max-sums of all steps take, roughly: a matter of a machine's memory."""
    terms = network.n_weight_rows * network.elimination.schedule.n_terms
    workers = 1 if network.elimination.n_rows < WORTH_A_THREAD else (os.cpu_count() or 1)
    return terms * SECONDS_PER_TERM / workers


def following_weights(network: BellmanNetwork, weights: Floats, row: int) -> Floats:
    """Weights of the step after a row's: its own if the horizon is infinite, zero at the end."""
    if network.horizon is None:
        return np.asarray(weights[row])
    return np.asarray(weights[row + 1]) if row + 1 < len(weights) else np.zeros(weights.shape[1])


def separate(network: BellmanNetwork, intervals: Intervals, weights: Floats) -> Separation:
    """The worst violation over all steps, states and actions, and the hyperplane through it."""
    found = excesses(network, intervals, weights)
    row = int(np.argmax([maximum.value for maximum in found]))
    action = found[row].action
    state = found[row].state(action)
    normals, rewards = hyperplanes(
        network, intervals, weights, row, state[None, :], np.array([action])
    )
    return Separation(
        found[row].value,
        row + 1,
        tuple(int(value) for value in state),
        action,
        normals[0],
        float(rewards[0]),
    )


def hyperplanes(
    network: BellmanNetwork,
    intervals: Intervals,
    weights: Floats,
    row: int,
    states: NDArray[np.int64],
    actions: NDArray[np.int64],
) -> tuple[Floats, Floats]:
    """Inequalities of some (state, action) pairs at one step: normals and rewards.

    h(s) . w_l - discount * end(s, a) . w_{l+1} >= R(s, a), where end is the upper or lower end of
    each interval by the sign of its weight, so that the inequality holds for all feasible weights
    and is tight for the maximum at these.
    """
    features = function_values(network, states)
    high, low, rewards = local_values(network, intervals, states, actions)
    following = following_weights(network, weights, row)
    ends = np.where(following >= 0, high, low)
    normals = np.zeros((len(states), *weights.shape))
    normals[:, row] += features
    if network.horizon is None:
        normals[:, row] -= network.discount * ends
    elif row + 1 < len(weights):
        normals[:, row + 1] -= network.discount * ends
    return normals.reshape(len(states), -1), rewards


def function_values(network: BellmanNetwork, states: NDArray[np.int64]) -> Floats:
    """h_j(s) for each state: (n_states, n_functions)."""
    return np.stack(
        [
            table.values[tuple(states[:, p] for p in table.scope)] * np.ones(len(states))
            for table in network.basis
        ],
        axis=1,
    )


def local_values(
    network: BellmanNetwork,
    intervals: Intervals,
    states: NDArray[np.int64],
    actions: NDArray[np.int64],
) -> tuple[Floats, Floats, Floats]:
    """Upper and lower next means (n_pairs, n_functions), and rewards (n_pairs,), at (s, a)."""
    factors = network.elimination.network
    n_functions = len(network.basis)
    high, low = np.zeros((len(states), n_functions)), np.zeros((len(states), n_functions))
    rewards = np.zeros(len(states))
    n_values, n_rewards = len(network.values), network.n_rewards
    for factor in range(n_functions, len(factors.factors)):
        cases, offsets = factors.factors[factor], factors.offsets[factor]
        groups = np.zeros(len(factors.class_of_action), dtype=np.int64)
        for action, group in cases.exceptions.items():
            groups[action] = group
        index = np.zeros(len(states), dtype=np.int64)
        of_pair = groups[actions]
        for group in np.unique(of_pair):
            rows = of_pair == group
            at = np.zeros(int(rows.sum()), dtype=np.int64)
            for variable in cases.groups[group]:
                at = at * factors.sizes[variable] + states[rows, variable]
            index[rows] = offsets[group] + at
        if factor < n_functions + len(network.reward_scopes):
            rewards += intervals.rewards[index - n_values]
        else:
            column = factor - n_functions - len(network.reward_scopes)
            high[:, column] = intervals.high[index - n_values - n_rewards]
            low[:, column] = intervals.low[index - n_values - n_rewards]
    return high, low, rewards
