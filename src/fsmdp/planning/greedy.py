"""Greedy policies by table look-up: Q(s, a) from the terms in which actions differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from fsmdp.compiled import compiled
from fsmdp.foundation.checks import as_step
from fsmdp.model.cases import Cases
from fsmdp.model.lookup import Inputs, Integers, Lookup, compile_lookup, locate
from fsmdp.model.tables import Floats
from fsmdp.model.variables import Scope, Variable, check_state
from fsmdp.planning.bellman import BellmanNetwork
from fsmdp.planning.intervals import OPTIMISTIC, Intervals


@dataclass(frozen=True, slots=True, eq=False)
class Greedy:
    """The action of largest R(s, a) + discount * E[V_{l+1}(s')], the lowest of several equal ones.

    Rewards and backups of V are looked up in tables; no part of a model is kept.
    """

    variables: tuple[Variable, ...]
    actions: tuple[str, ...]
    horizon: int | None
    lookup: Lookup = field(repr=False)
    entries: Floats = field(repr=False)  # (n_steps, n_entries)

    def action(self, state: Sequence[int], step: int = 1) -> str:
        """The greedy action; the first in the model's order where several are equal."""
        values = np.array(check_state(state, self.variables), dtype=np.int64)
        found = np.zeros(len(self.actions))
        fill_advantages(self.lookup, self._entries(step), values, found)
        return self.actions[int(found.argmax())]

    def q_values(self, state: Sequence[int], step: int = 1) -> Floats:
        """R(s, a) + discount * backup of V, for every action."""
        values = np.array(check_state(state, self.variables), dtype=np.int64)
        entries = self._entries(step)
        found = np.zeros(len(self.actions))
        fill_advantages(self.lookup, entries, values, found)
        return np.asarray(found + default_total(self.lookup, entries, values))

    def _entries(self, step: int) -> Floats:
        position = as_step(step, self.horizon) - 1
        return np.asarray(self.entries[0 if self.horizon is None else position])


def greedy_policy(
    network: BellmanNetwork, intervals: Intervals, weights: Floats, view: str = OPTIMISTIC
) -> Greedy:
    """The greedy policy of weights (n_steps, n_functions)."""
    return Greedy(
        network.variables,
        network.actions,
        network.horizon,
        greedy_lookup(network),
        q_entries_of(network, intervals, weights, view),
    )


def q_entries_of(
    network: BellmanNetwork, intervals: Intervals, weights: Floats, view: str = OPTIMISTIC
) -> Floats:
    """Reward and backup entries of every step, from weights (n_steps, n_functions).

    The entries of a step are made from the weights of the step after.
    """
    following = weights if network.horizon is None else [*weights[1:], np.zeros(weights.shape[1])]
    start = network.rewards_at.start
    return np.stack([network.right_side(w, intervals, view)[start:] for w in following])


def greedy_lookup(network: BellmanNetwork) -> Lookup:
    """Look-up of the reward and backup terms, in the order of their entries."""
    sizes = tuple(variable.size for variable in network.variables)

    def inputs(scope: Scope) -> Inputs:
        return Inputs(scope, tuple(sizes[position] for position in scope))

    terms: list[Cases[Inputs]] = [
        cases.map(inputs) for cases in (*network.reward_scopes, *network.parent_scopes)
    ]
    return compile_lookup(terms, len(network.actions))


@compiled()
def fill_advantages(lookup: Lookup, entries: Floats, values: Integers, advantages: Floats) -> None:
    """Q(s, a) less the sum of the default terms, which is the same for every action.

    Cost: the exceptions of all actions, twice.
    """
    for action in range(len(advantages)):
        total = 0.0
        for e in range(lookup.exception_start[action], lookup.exception_start[action + 1]):
            default = lookup.defaults[lookup.exception_item[e]]
            total += entries[locate(lookup, lookup.exception_table[e], values)]
            total -= entries[locate(lookup, default, values)]
        advantages[action] = total


@compiled()
def default_total(lookup: Lookup, entries: Floats, values: Integers) -> float:
    """Sum of the default terms."""
    total = 0.0
    for table in lookup.defaults:
        total += entries[locate(lookup, table, values)]
    return total


@compiled(inline="always")
def greedy_action(lookup: Lookup, entries: Floats, values: Integers, n_actions: int) -> int:
    """Action of largest Q; the lowest index wins ties, so a plan is reproducible."""
    best = 0
    best_total = -np.inf
    for action in range(n_actions):
        total = 0.0
        for e in range(lookup.exception_start[action], lookup.exception_start[action + 1]):
            default = lookup.defaults[lookup.exception_item[e]]
            total += entries[locate(lookup, lookup.exception_table[e], values)]
            total -= entries[locate(lookup, default, values)]
        if total > best_total:
            best_total = total
            best = action
    return best


@compiled()
def best_actions(
    lookup: Lookup, entries: Floats, states: Integers, values: Floats, actions: Integers
) -> None:
    """max_a Q(s, a) and the lowest action that attains it, for each of many states."""
    advantages = np.zeros(len(lookup.exception_start) - 1)
    for row in range(len(states)):
        fill_advantages(lookup, entries, states[row], advantages)
        best = advantages.argmax()
        actions[row] = best
        values[row] = advantages[best] + default_total(lookup, entries, states[row])
