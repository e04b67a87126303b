"""Successors: what may come after a state and an action, as packed keys, and how many there are."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from fsmdp.compiled import compiled
from fsmdp.exact.reachable import Rules, flat_rules
from fsmdp.foundation.streams import Purpose, generator
from fsmdp.model.lookup import Integers, locate
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.tables import Floats
from fsmdp.planning.clock import NO_LIMIT, Clock
from fsmdp.policies.hashed import Packing, merge, pack_all, unpack

MOST_SUCCESSORS = 2**12
"""Combinations of outcomes of an action that are listed; more are not for a search."""

SAMPLED_STATES = 400
SAMPLED_AT_ONCE = 20


class Workspace(NamedTuple):
    """Room for the successors of one state; what holds under most actions is looked up once."""

    values: Integers  # (n_slots,)
    looks_at_drawn: Integers  # (n_tables,) whether a table looks at what is drawn in the step
    default_row: Integers  # (n_mechanisms,) row under most actions, -1 if it depends on draws
    row: Integers  # (n_mechanisms,) under the action at hand
    base: Integers  # (n_words,) of all that is certain under most actions
    order: Integers  # (n_mechanisms,) mechanisms that are followed one outcome after another
    at: Integers  # (n_mechanisms,)
    end: Integers  # (n_mechanisms,)
    chance: Floats  # (n_mechanisms + 1,)
    partial: Integers  # (n_mechanisms + 1, n_words)
    keys: Integers  # (MOST_SUCCESSORS, n_words)
    probabilities: Floats  # (MOST_SUCCESSORS,)


def new_workspace(rules: Rules, packing: Packing) -> Workspace:
    """Room for the successors of one state."""
    mechanisms, words = len(rules.kernels.defaults), packing.kept.shape[1]
    starts, slots = rules.kernels.input_start, rules.kernels.input_slot
    drawn = slots >= len(rules.sizes)
    looks = [int(drawn[a:b].any()) for a, b in pairwise(starts)]

    def zeros(*shape: int) -> Integers:
        return np.zeros(shape, dtype=np.int64)

    return Workspace(
        values=zeros(rules.n_slots),
        looks_at_drawn=np.array(looks, dtype=np.int64),
        default_row=zeros(mechanisms),
        row=zeros(mechanisms),
        base=zeros(words),
        order=zeros(mechanisms),
        at=zeros(mechanisms),
        end=zeros(mechanisms),
        chance=np.ones(mechanisms + 1),
        partial=zeros(mechanisms + 1, words),
        keys=zeros(MOST_SUCCESSORS, words),
        probabilities=np.zeros(MOST_SUCCESSORS),
    )


@compiled(inline="always")
def _write(
    rules: Rules, packing: Packing, mechanism: int, outcome: int, values: Integers, key: Integers
) -> None:
    """Add an outcome's values to a key, and write them where later draws look at them."""
    n_variables = len(rules.sizes)
    first, last = rules.child_start[mechanism], rules.child_start[mechanism + 1] - 1
    for child in range(last, first - 1, -1):
        value = outcome % rules.child_size[child]
        outcome //= rules.child_size[child]
        slot = rules.child_slot[child]
        values[slot] = value
        variable = slot - n_variables
        if variable < n_variables:  # latents are no part of a state
            key[packing.word[variable]] += value << packing.shift[variable]


@compiled()
def prepare(rules: Rules, packing: Packing, key: Integers, work: Workspace) -> None:
    """Look a state's rows up under most actions. Cost: one look-up a mechanism."""
    unpack(packing, key, work.values)
    work.base[:] = 0
    kernels = rules.kernels
    for mechanism in range(len(kernels.defaults)):
        table = kernels.defaults[mechanism]
        work.default_row[mechanism] = -1
        if work.looks_at_drawn[table]:
            continue
        row = locate(kernels, table, work.values)
        work.default_row[mechanism] = row
        if rules.row_start[row + 1] - rules.row_start[row] == 1:
            outcome = rules.row_outcome[rules.row_start[row]]
            _write(rules, packing, mechanism, outcome, work.values, work.base)


@compiled()
def list_successors(rules: Rules, packing: Packing, action: int, work: Workspace) -> int:
    """Write the successors of the state that was prepared; their number, or -1 for too many.

    Keys may be equal where latents differ or irrelevant variables do. Cost: the mechanisms that
    differ under the action, and the combinations of outcomes of those that are uncertain.
    """
    kernels, values = rules.kernels, work.values
    n_mechanisms = len(kernels.defaults)
    for mechanism in range(n_mechanisms):
        work.row[mechanism] = work.default_row[mechanism]
    key = work.partial[0]
    for word in range(packing.kept.shape[1]):
        key[word] = work.base[word]
    first, last = kernels.exception_start[action], kernels.exception_start[action + 1]
    for e in range(first, last):
        mechanism, table = kernels.exception_item[e], kernels.exception_table[e]
        row = work.default_row[mechanism]
        if row >= 0 and rules.row_start[row + 1] - rules.row_start[row] == 1:
            outcome = rules.row_outcome[rules.row_start[row]]
            for child in range(
                rules.child_start[mechanism + 1] - 1, rules.child_start[mechanism] - 1, -1
            ):
                variable = rules.child_slot[child] - len(rules.sizes)
                value = outcome % rules.child_size[child]
                outcome //= rules.child_size[child]
                if variable < len(rules.sizes):
                    key[packing.word[variable]] -= value << packing.shift[variable]
        row = -1 if work.looks_at_drawn[table] else locate(kernels, table, values)
        work.row[mechanism] = row
        if row >= 0 and rules.row_start[row + 1] - rules.row_start[row] == 1:
            _write(rules, packing, mechanism, rules.row_outcome[rules.row_start[row]], values, key)
    n_order = 0
    least = 1.0
    certain = 1.0
    for mechanism in range(n_mechanisms):
        row = work.row[mechanism]
        count = 0 if row < 0 else rules.row_start[row + 1] - rules.row_start[row]
        if count == 1:
            # Rows are normalised up to rounding only, and a bound pays for what a model says.
            certain *= rules.row_probability[rules.row_start[row]]
            continue
        work.order[n_order] = mechanism
        n_order += 1
        least *= max(count, 1)
    found = -1
    if least <= len(work.keys):
        found = _follow(rules, packing, action, n_order, certain, work)
    # What is certain under most actions stands in the slots again for the next action.
    for e in range(first, last):
        mechanism = kernels.exception_item[e]
        row = work.default_row[mechanism]
        if row >= 0 and rules.row_start[row + 1] - rules.row_start[row] == 1:
            outcome = rules.row_outcome[rules.row_start[row]]
            for child in range(
                rules.child_start[mechanism + 1] - 1, rules.child_start[mechanism] - 1, -1
            ):
                values[rules.child_slot[child]] = outcome % rules.child_size[child]
                outcome //= rules.child_size[child]
    return found


@compiled(inner=True)
def _follow(
    rules: Rules, packing: Packing, action: int, n_order: int, certain: float, work: Workspace
) -> int:
    """Combinations of outcomes, depth first; their number, or -1 for too many."""
    kernels, values = rules.kernels, work.values
    n_words, found = packing.kept.shape[1], 0
    work.chance[0] = certain
    level, entering = 0, True
    while level >= 0:
        if level == n_order:
            if found == len(work.keys):
                return -1
            key = work.keys[found]
            for word in range(n_words):
                key[word] = work.partial[level, word]
            merge(packing, key)
            work.probabilities[found] = work.chance[level]
            found += 1
            level, entering = level - 1, False
            continue
        mechanism = work.order[level]
        if entering:
            row = work.row[mechanism]
            if row < 0:
                table = kernels.defaults[mechanism]
                for e in range(
                    kernels.exception_start[action], kernels.exception_start[action + 1]
                ):
                    if kernels.exception_item[e] == mechanism:
                        table = kernels.exception_table[e]
                row = locate(kernels, table, values)
            work.at[level], work.end[level] = rules.row_start[row], rules.row_start[row + 1]
        if work.at[level] == work.end[level]:
            level, entering = level - 1, False
            continue
        at = work.at[level]
        work.at[level] += 1
        for word in range(n_words):
            work.partial[level + 1, word] = work.partial[level, word]
        outcome = rules.row_outcome[at]
        _write(rules, packing, mechanism, outcome, values, work.partial[level + 1])
        work.chance[level + 1] = work.chance[level] * rules.row_probability[at]
        level, entering = level + 1, True
    return found


@dataclass(frozen=True, slots=True)
class Branching:
    """How many successors an action has, in states met by chance."""

    mean: float
    largest: int
    """At most MOST_SUCCESSORS + 1, which stands for more."""
    states: int


def branching(model: FactoredMDP, clock: Clock = NO_LIMIT, seed: int = 0) -> Branching:
    """How many successors states and actions have, along episodes at random and of each action.

    Half of the states stand on walks at random, half on walks that repeat one action. Cost: the
    successors of some hundred states; where there are far too many they are not listed.
    """
    rules, packing = flat_rules(model), pack_all(model.sizes)
    work, rng = new_workspace(rules, packing), generator(seed, Purpose.BRANCHING)
    starts = model.initial_distributions()
    steps = min(model.horizon or 40, 40)
    total, count, largest, states, walk = 0.0, 0, 0, 0, 0
    while states < SAMPLED_STATES and clock.status is None:
        state = np.array([rng.choice(len(d), p=d / d.sum()) for d in starts], dtype=np.int64)
        always = (walk // 2) % rules.n_actions if walk % 2 else -1
        most = min(SAMPLED_AT_ONCE, steps)
        summed, number, large, visited = _walk(rules, packing, work, rng, state, always, most)
        total, count, largest = total + summed, count + number, max(largest, large)
        states, walk = states + visited, walk + 1
    return Branching(total / max(1, count), int(largest), int(states))


@compiled()
def _walk(
    rules: Rules,
    packing: Packing,
    work: Workspace,
    rng: np.random.Generator,
    state: Integers,
    always: int,
    steps: int,
) -> tuple[float, int, int, int]:
    """Sum, number and maximum of successors along one walk, and the states that it met."""
    key = np.zeros(packing.kept.shape[1], dtype=np.int64)
    for variable in range(len(state)):
        key[packing.word[variable]] |= state[variable] << packing.shift[variable]
    total, number, largest = 0.0, 0, 0
    for step in range(steps):
        prepare(rules, packing, key, work)
        chosen = always if always >= 0 else int(rng.random() * rules.n_actions)
        for turn in range(rules.n_actions):
            action = (chosen + 1 + turn) % rules.n_actions  # the chosen one last: it is followed
            found = list_successors(rules, packing, action, work)
            count = len(work.keys) + 1 if found < 0 else found
            total += count
            number += 1
            largest = max(largest, count)
            if found < 0:
                return total, number, largest, step + 1
        u = rng.random()
        outcome = 0
        while outcome < found - 1 and u >= work.probabilities[outcome]:
            u -= work.probabilities[outcome]
            outcome += 1
        key[:] = work.keys[outcome]
    return total, number, largest, steps
