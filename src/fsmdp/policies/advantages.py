"""Q(s, a) by table look-up, from the terms in which actions differ: compiled."""

from __future__ import annotations

import numpy as np

from fsmdp.compiled import compiled
from fsmdp.model.lookup import Integers, Lookup, locate
from fsmdp.model.tables import Floats


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
