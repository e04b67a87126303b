"""Following a model: compiled code that lists what may come after a state, and numbers states."""

from __future__ import annotations

import math
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fsmdp.compiled import compiled
from fsmdp.model.cases import Cases
from fsmdp.model.lookup import (
    Inputs,
    Lookup,
    compile_lookup,
    deselect,
    flatten_cases,
    locate,
    scope_lookup,
    scopes_of,
    select,
)
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.tables import Floats
from fsmdp.policies.hashed import Indices, find

Integers = NDArray[np.int64]

LARGEST_WORD = 2**62

DONE, FULL, PAUSED, TOO_MANY = range(4)
"""Why following ended."""


class Rules(NamedTuple):
    """A model in arrays. Slots: current values, then next values, then latents."""

    kernels: Lookup  # rows of kernels
    row_start: Integers  # (n_rows + 1,)
    row_outcome: Integers  # of positive probability only
    row_probability: Floats
    child_start: Integers  # (n_mechanisms + 1,)
    child_slot: Integers
    child_size: Integers
    rewards: Lookup
    reward_means: Floats
    sizes: Integers  # (n_variables,)
    word: Integers  # (n_variables,) the word of a key in which each variable stands
    stride: Integers  # (n_variables,) and what its value counts for there
    n_slots: int
    n_actions: int


def state_words(model: FactoredMDP) -> tuple[Integers, Integers]:
    """In which word of a key each variable stands, and what its value counts for there."""
    words, strides, word, stride = [], [], 0, 1
    for size in model.sizes:
        if stride * size > LARGEST_WORD:
            word, stride = word + 1, 1
        words.append(word)
        strides.append(stride)
        stride *= size
    return np.array(words, dtype=np.int64), np.array(strides, dtype=np.int64)


def flat_rules(model: FactoredMDP) -> Rules:
    """Flatten a model. Cost: its size, once."""
    dynamics, n_variables, n_actions = model.dynamics, len(model.sizes), len(model.actions)
    kernels, starts, outcomes, probabilities = [], [np.zeros(1, dtype=np.int64)], [], []
    for mechanism in dynamics.mechanisms:
        inputs = []
        for kernel in mechanism.cases:
            slots = (*kernel.parents, *(n_variables + drawn for drawn in kernel.drawn))
            inputs.append(Inputs(slots, kernel.table.shape[: len(slots)]))
        kernels.append(Cases(tuple(inputs), mechanism.cases.exceptions))
        width = math.prod(dynamics.drawn_sizes[child] for child in mechanism.children)
        for kernel in mechanism.cases:
            rows = kernel.table.reshape(-1, width)
            where, outcome = np.nonzero(rows)
            starts.append(starts[-1][-1] + np.cumsum(np.bincount(where, minlength=len(rows))))
            outcomes.append(outcome)
            probabilities.append(rows[where, outcome])
    children = [child for mechanism in dynamics.mechanisms for child in mechanism.children]
    words, strides = state_words(model)
    return Rules(
        kernels=compile_lookup(kernels, n_actions),
        row_start=np.concatenate(starts),
        row_outcome=np.concatenate(outcomes).astype(np.int64),
        row_probability=np.concatenate(probabilities),
        child_start=np.array(
            [*accumulate((len(m.children) for m in dynamics.mechanisms), initial=0)], dtype=np.int64
        ),
        child_slot=np.array(children, dtype=np.int64) + n_variables,
        child_size=np.array([dynamics.drawn_sizes[c] for c in children], dtype=np.int64),
        rewards=scope_lookup(scopes_of(model.reward_means), model.sizes, n_actions),
        reward_means=flatten_cases(model.reward_means),
        sizes=np.array(model.sizes, dtype=np.int64),
        word=words,
        stride=strides,
        n_slots=n_variables + len(dynamics.drawn_sizes),
        n_actions=n_actions,
    )


@compiled()
def follow_all(
    rules: Rules,
    keys: Integers,
    slots: Indices,
    marks: Integers,
    starts: Integers,
    targets: Indices,
    probabilities: Floats,
    rewards: Floats,
    state: int,
    end: int,
    n_found: int,
    pause: int,
    most: int,
) -> tuple[int, int, int, int, int]:
    """Write the successors of states `state` to `end`, numbering new ones as they are met.

    Returns why it ended, the next state to follow, and how many states, entries and combinations
    of outcomes there are. A state that does not fit is begun again next time.
    """
    kernels, reward_lookup = rules.kernels, rules.rewards
    n_mechanisms, n_variables = len(kernels.defaults), len(rules.sizes)
    tables, reward_tables = kernels.defaults.copy(), reward_lookup.defaults.copy()
    values = np.zeros(rules.n_slots, dtype=np.int64)
    at, row_end = np.zeros(n_mechanisms, dtype=np.int64), np.zeros(n_mechanisms, dtype=np.int64)
    chance = np.ones(n_mechanisms + 1)
    key = np.zeros(keys.shape[1], dtype=np.int64)
    looks_at_drawn = np.zeros(len(kernels.offset) - 1, dtype=np.bool_)
    for table in range(len(looks_at_drawn)):
        for i in range(kernels.input_start[table], kernels.input_start[table + 1]):
            looks_at_drawn[table] |= kernels.input_slot[i] >= n_variables
    followed = 0
    while state < end:
        n_entries = starts[state * rules.n_actions]
        if 0 < pause <= followed:
            return PAUSED, state, n_found, n_entries, followed
        for variable in range(n_variables):
            word = keys[state, rules.word[variable]]
            values[variable] = word // rules.stride[variable] % rules.sizes[variable]
        for action in range(rules.n_actions):
            row = state * rules.n_actions + action
            select(reward_lookup, action, reward_tables)
            total = 0.0
            for term in range(len(reward_tables)):
                total += rules.reward_means[locate(reward_lookup, reward_tables[term], values)]
            rewards[row] = total
            deselect(reward_lookup, action, reward_tables)
            first_entry = n_entries
            select(kernels, action, tables)
            # Mechanisms that look at current values alone multiply: too many is seen beforehand.
            least = 1.0
            for mechanism in range(n_mechanisms):
                if looks_at_drawn[tables[mechanism]]:
                    continue
                place = locate(kernels, tables[mechanism], values)
                least *= rules.row_start[place + 1] - rules.row_start[place]
            if least > most - followed:
                return TOO_MANY, state, n_found, n_entries, followed
            level = 0
            place = locate(kernels, tables[0], values)
            at[0], row_end[0] = rules.row_start[place], rules.row_start[place + 1]
            while level >= 0:
                if at[level] == row_end[level]:
                    level -= 1
                    continue
                outcome = rules.row_outcome[at[level]]
                chance[level + 1] = chance[level] * rules.row_probability[at[level]]
                at[level] += 1
                first, last = rules.child_start[level], rules.child_start[level + 1] - 1
                for child in range(last, first - 1, -1):
                    values[rules.child_slot[child]] = outcome % rules.child_size[child]
                    outcome //= rules.child_size[child]
                if level < n_mechanisms - 1:
                    level += 1
                    place = locate(kernels, tables[level], values)
                    at[level], row_end[level] = rules.row_start[place], rules.row_start[place + 1]
                    continue
                followed += 1
                if followed > most:
                    return TOO_MANY, state, n_found, n_entries, followed
                key[:] = 0
                for variable in range(n_variables):
                    value = values[n_variables + variable]
                    key[rules.word[variable]] += value * rules.stride[variable]
                slot = find(keys, slots, key)
                number = slots[slot]
                if number < 0:
                    if n_found == len(keys):
                        return FULL, state, n_found, n_entries, followed
                    number = n_found
                    keys[number] = key
                    slots[slot] = number
                    marks[number] = -1
                    n_found += 1
                # Different latents may lead to the same state.
                known = marks[number]
                if first_entry <= known < n_entries and targets[known] == number:
                    probabilities[known] += chance[n_mechanisms]
                else:
                    if n_entries == len(targets):
                        return FULL, state, n_found, n_entries, followed
                    targets[n_entries] = number
                    probabilities[n_entries] = chance[n_mechanisms]
                    marks[number] = n_entries
                    n_entries += 1
            deselect(kernels, action, tables)
            starts[row + 1] = n_entries
        state += 1
    return DONE, state, n_found, starts[end * rules.n_actions], followed


@compiled()
def back_up(
    later: Floats,
    values: Floats,
    actions: NDArray[np.unsignedinteger],
    starts: Integers,
    targets: Indices,
    probabilities: Floats,
    rewards: Floats,
    discount: float,
    tie: float,
    n_actions: int,
    begin: int,
    end: int,
) -> None:
    """values(s) = max_a R(s, a) + discount * E[later(s') | s, a], and an action.

    It is the first whose value is within `tie` of the largest.
    """
    q_values = np.zeros(n_actions)
    for state in range(begin, end):
        best = -np.inf
        for action in range(n_actions):
            row = state * n_actions + action
            mean = 0.0
            for entry in range(starts[row], starts[row + 1]):
                mean += probabilities[entry] * later[targets[entry]]
            q_values[action] = rewards[row] + discount * mean
            best = max(best, q_values[action])
        values[state] = best
        least = best - tie
        action = 0
        while not q_values[action] >= least:
            action += 1
        actions[state] = action
