"""Bellman inequalities of single (step, state, action) triples, as rows in the weights."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from fsmdp.bounds.bellman import BellmanNetwork, Intervals
from fsmdp.bounds.clock import NO_LIMIT, Clock
from fsmdp.model.tables import Floats

States = NDArray[np.int64]


DENSE_NUMBERS = 2**20
"""Numbers of inequalities that are held densely at once."""


@dataclass(frozen=True, slots=True, eq=False)
class Cuts:
    """(step, state, action) triples whose inequalities are worth starting from.

    Mini-buckets give a variable several values at once: then `entries` are those of the network
    that add up to the excess, and the states only one of its readings.
    """

    steps: States = field(repr=False)  # (n_cuts,) counted from 0
    states: States = field(repr=False)  # (n_cuts, n_variables)
    actions: States = field(repr=False)  # (n_cuts,)
    entries: sparse.csr_matrix | None = field(default=None, repr=False)  # (n_cuts, n_entries)

    def __len__(self) -> int:
        return len(self.steps)

    def at(self, rows: slice | States | NDArray[np.bool_]) -> Cuts:
        """Some of them."""
        entries = None if self.entries is None else self.entries[rows]
        return Cuts(self.steps[rows], self.states[rows], self.actions[rows], entries)


def joined(parts: list[Cuts]) -> Cuts:
    """All of several, in order."""
    entries = [part.entries for part in parts if part.entries is not None]
    return Cuts(
        np.concatenate([part.steps for part in parts]),
        np.concatenate([part.states for part in parts]),
        np.concatenate([part.actions for part in parts]),
        sparse.csr_matrix(sparse.vstack(entries)) if entries else None,
    )


def inequalities(
    network: BellmanNetwork,
    intervals: Intervals,
    weights: Floats,
    cuts: Cuts,
    clock: Clock = NO_LIMIT,
) -> tuple[sparse.csr_matrix, Floats]:
    """The inequality of each triple: rows in the weights of all steps, and rewards.

    h(s) . w_l - discount * end(s, a) . w_{l+1} >= R(s, a), where end is the upper or lower end of
    each interval by the sign of its weight, so that the inequality holds for all feasible weights
    and is tight for the maximum at these. They are made some at a time: dense, all would be large.
    Raises `Stopped` when the clock says so.
    """
    at_a_time = max(1, DENSE_NUMBERS // len(network.basis))
    parts = []
    for first in range(0, max(1, len(cuts)), at_a_time):
        clock.check()
        some = cuts.at(slice(first, first + at_a_time))
        parts.append(_dense_inequalities(network, intervals, weights, some))
    matrix = parts[0][0] if len(parts) == 1 else sparse.vstack([m for m, _ in parts], "csr")
    return matrix, np.concatenate([rewards for _, rewards in parts])


def _dense_inequalities(
    network: BellmanNetwork, intervals: Intervals, weights: Floats, cuts: Cuts
) -> tuple[sparse.csr_matrix, Floats]:
    n_functions = len(network.basis)
    features, high, low, rewards = parts_of(network, intervals, cuts)
    at_and_after = np.vstack([weights, np.zeros((1, n_functions))])
    following = at_and_after[cuts.steps + (network.horizon is not None)]
    ends = network.discount * np.where(following >= 0, high, low)
    own = cuts.steps[:, None] * n_functions + np.arange(n_functions)
    if network.horizon is None:
        columns, values = own, features - ends
    else:
        is_last = cuts.steps == len(weights) - 1
        ends[is_last] = 0.0
        after = np.where(is_last[:, None], own, own + n_functions)
        columns, values = np.hstack([own, after]), np.hstack([features, -ends])
    at = np.repeat(np.arange(len(cuts)), columns.shape[1])
    matrix = sparse.csr_matrix(
        (values.ravel(), (at, columns.ravel())), shape=(len(cuts), weights.size)
    )
    matrix.eliminate_zeros()
    return matrix, rewards


def parts_of(
    network: BellmanNetwork, intervals: Intervals, cuts: Cuts
) -> tuple[Floats, Floats, Floats, Floats]:
    """Functions, upper and lower next means, each (n_cuts, n_functions), and rewards (n_cuts,)."""
    if cuts.entries is not None:
        return _added_entries(network, intervals, cuts.entries)
    features = function_values(network, cuts.states)
    return features, *local_values(network, intervals, cuts.states, cuts.actions)


def _added_entries(
    network: BellmanNetwork, intervals: Intervals, entries: sparse.csr_matrix
) -> tuple[Floats, Floats, Floats, Floats]:
    """The same as entries of the network add up."""

    def by_function(at: slice, numbers: Floats, columns: NDArray[np.int64]) -> Floats:
        shape = (len(numbers), len(network.basis))
        spread = sparse.csr_matrix((numbers, (np.arange(len(numbers)), columns)), shape=shape)
        return np.asarray((entries[:, at] @ spread).toarray())

    values, backups = slice(0, len(network.values)), network.backups_at
    return (
        by_function(values, network.values, network.value_columns),
        by_function(backups, intervals.high, network.backup_columns),
        by_function(backups, intervals.low, network.backup_columns),
        np.asarray(entries[:, network.rewards_at] @ intervals.rewards),
    )


def following_weights(network: BellmanNetwork, weights: Floats, step: int) -> Floats:
    """Weights of the step after one: its own if the horizon is infinite, zero at the end."""
    if network.horizon is None:
        return np.asarray(weights[step])
    return np.asarray(weights[step + 1]) if step + 1 < len(weights) else np.zeros(weights.shape[1])


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
    for factor in range(n_functions, factors.n_terms):
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
