"""The states that can be reached from the start, and exact values over them alone.

Breadth first from the support of the initial distribution, by what each kernel gives a positive
probability. States are numbered as they are met, so those that can be met within some steps are
the first so many.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fsmdp.compiled import compiled
from fsmdp.errors import SizeError
from fsmdp.exact.flat import Actions, action_type
from fsmdp.exact.sweeps import threads
from fsmdp.foundation.checks import show_count, show_memory
from fsmdp.model.conditionals import Mechanism
from fsmdp.model.flat import flatten_model
from fsmdp.model.lookup import (
    CompiledConditions,
    Lookup,
    deselect,
    is_allowed,
    is_over,
    locate,
    select,
)
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.tables import Floats, Rebuilt, read_only
from fsmdp.policies.hashed import (
    Indices,
    Packing,
    find,
    insert_all,
    pack_all,
    pack_states,
    unpack,
    unpack_keys,
)

Integers = NDArray[np.int64]

DONE, FULL, PAUSED, TOO_MANY, STUCK = range(5)
"""Why following ended."""


class Rules(NamedTuple):
    """A model of listed actions in arrays; the fields of `FlatModel`, and lists of outcomes."""

    kernels: Lookup  # rows of kernels
    child_start: Integers
    child_slot: Integers
    child_size: Integers
    rewards: Lookup
    reward_means: Floats
    conditions: CompiledConditions
    n_variables: int
    n_inputs: int
    n_slots: int
    n_actions: int
    row_start: Integers  # (n_rows + 1,)
    row_outcome: Integers  # of positive probability only
    row_probability: Floats
    row_key: Integers  # (n_outcomes, n_words) the bits of a state's key that an outcome sets


def flat_rules(model: FactoredMDP) -> Rules:
    """Flatten a model. Cost: its size, once."""
    flat, tables = flatten_model(model, by_row=True)
    positive = [np.nonzero(table) for table in tables]
    counts = [
        np.bincount(row, minlength=len(table))
        for table, (row, _) in zip(tables, positive, strict=True)
    ]
    return Rules(
        **flat._asdict(),
        row_start=np.cumsum(np.concatenate([[0], *counts])),
        row_outcome=np.concatenate([outcome for _, outcome in positive]).astype(np.int64),
        row_probability=np.concatenate(
            [table[where] for table, where in zip(tables, positive, strict=True)]
        ),
        row_key=np.concatenate(
            [
                _outcome_keys(model, mechanism)[outcome]
                for (_, outcome), mechanism in zip(
                    positive, _mechanism_of_tables(model), strict=True
                )
            ]
        ),
    )


def _mechanism_of_tables(model: FactoredMDP) -> list[Mechanism]:
    """The mechanism that each table belongs to, in the order of `flatten_model`."""
    return [mechanism for mechanism in model.dynamics.mechanisms for _ in mechanism.cases]


def _outcome_keys(model: FactoredMDP, mechanism: Mechanism) -> Integers:
    """For each joint outcome of a mechanism, the bits of the next state's key: (n, n_words)."""
    packing, sizes = pack_all(model.sizes), model.dynamics.drawn_sizes
    found = np.zeros((1, packing.kept.shape[1]), dtype=np.int64)
    for child in mechanism.children:
        found = np.repeat(found, sizes[child], axis=0)
        if child < len(model.sizes):  # latents are forgotten
            values = np.tile(np.arange(sizes[child]), len(found) // sizes[child])
            found[:, packing.word[child]] |= values << packing.shift[child]
    return found


@compiled(inline="always")
def write_outcome(rules: Rules, mechanism: int, outcome: int, values: Integers) -> None:
    """Write what a mechanism draws into the slots of its children."""
    first, last = rules.child_start[mechanism], rules.child_start[mechanism + 1] - 1
    for child in range(last, first - 1, -1):
        values[rules.child_slot[child]] = outcome % rules.child_size[child]
        outcome //= rules.child_size[child]


@compiled()
def follow_all(
    rules: Rules,
    packing: Packing,
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

    Actions that are not allowed have a reward of minus infinity and no successors; in terminal
    states all have a reward of 0 and none. Returns why it ended, the next state to follow, and how
    many states, entries and combinations of outcomes there are. A state that does not fit is begun
    again next time.
    """
    kernels, reward_lookup = rules.kernels, rules.rewards
    n_mechanisms, n_variables = len(kernels.defaults), rules.n_variables
    tables = kernels.defaults.copy()
    terms = np.zeros(len(reward_lookup.defaults))
    usual_terms = np.zeros(len(reward_lookup.defaults))
    values = np.zeros(rules.n_slots, dtype=np.int64)
    looks_at_drawn = np.zeros(len(kernels.offset) - 1, dtype=np.bool_)
    for table in range(len(looks_at_drawn)):
        for i in range(kernels.input_start[table], kernels.input_start[table + 1]):
            looks_at_drawn[table] |= kernels.input_slot[i] >= n_variables
    any_drawn = looks_at_drawn.any()
    usual = np.zeros(n_mechanisms, dtype=np.int64)  # rows under the default of each mechanism
    rows = np.zeros(n_mechanisms, dtype=np.int64)
    branching = np.zeros(n_mechanisms, dtype=np.int64)  # mechanisms whose outcomes are tried
    at, row_end = np.zeros(n_mechanisms, dtype=np.int64), np.zeros(n_mechanisms, dtype=np.int64)
    chance = np.ones(n_mechanisms + 1)
    keys_so_far = np.zeros((n_mechanisms + 1, keys.shape[1]), dtype=np.int64)
    followed = 0
    while state < end:
        n_entries = starts[state * rules.n_actions]
        if 0 < pause <= followed:
            return PAUSED, state, n_found, n_entries, followed
        unpack(packing, keys[state], values)
        over = is_over(rules.conditions, values)
        stuck = not over
        for mechanism in range(n_mechanisms):
            if not (over or looks_at_drawn[tables[mechanism]]):
                usual[mechanism] = locate(kernels, tables[mechanism], values)
        rows[:] = usual
        for term in range(len(terms)):
            place = locate(reward_lookup, reward_lookup.defaults[term], values)
            usual_terms[term] = rules.reward_means[place]
        for action in range(rules.n_actions):
            row = state * rules.n_actions + action
            if over or not is_allowed(rules.conditions, action, values):
                rewards[row] = 0.0 if over else -np.inf
                starts[row + 1] = n_entries
                continue
            stuck = False
            terms[:] = usual_terms
            first, last = reward_lookup.exception_start[action : action + 2]
            for e in range(first, last):
                place = locate(reward_lookup, reward_lookup.exception_table[e], values)
                terms[reward_lookup.exception_item[e]] = rules.reward_means[place]
            rewards[row] = terms.sum()
            first_entry = n_entries
            select(kernels, action, tables)
            for e in range(kernels.exception_start[action], kernels.exception_start[action + 1]):
                mechanism = kernels.exception_item[e]
                if not looks_at_drawn[tables[mechanism]]:
                    rows[mechanism] = locate(kernels, tables[mechanism], values)
            # What is certain is written down once. Mechanisms that look at current values alone
            # multiply: too many is seen beforehand.
            n_branching, least = 0, 1.0
            keys_so_far[0] = 0
            for mechanism in range(n_mechanisms):
                if not looks_at_drawn[tables[mechanism]]:
                    entry = rules.row_start[rows[mechanism]]
                    count = rules.row_start[rows[mechanism] + 1] - entry
                    least *= count
                    if count == 1:
                        keys_so_far[0] |= rules.row_key[entry]
                        if any_drawn:
                            write_outcome(rules, mechanism, rules.row_outcome[entry], values)
                        continue
                branching[n_branching] = mechanism
                n_branching += 1
            if least > most - followed:
                return TOO_MANY, state, n_found, n_entries, followed
            level = 0
            while level >= 0:
                if level < n_branching:
                    mechanism = branching[level]
                    if at[level] == row_end[level]:  # nothing is begun here
                        place = rows[mechanism]
                        if looks_at_drawn[tables[mechanism]]:
                            place = locate(kernels, tables[mechanism], values)
                        at[level] = rules.row_start[place]
                        row_end[level] = rules.row_start[place + 1]
                    entry = at[level]
                    at[level] += 1
                    chance[level + 1] = chance[level] * rules.row_probability[entry]
                    keys_so_far[level + 1] = keys_so_far[level] | rules.row_key[entry]
                    if any_drawn:
                        write_outcome(rules, mechanism, rules.row_outcome[entry], values)
                    level += 1
                    continue
                followed += 1
                if followed > most:
                    return TOO_MANY, state, n_found, n_entries, followed
                key = keys_so_far[n_branching]
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
                    probabilities[known] += chance[n_branching]
                else:
                    if n_entries == len(targets):
                        return FULL, state, n_found, n_entries, followed
                    targets[n_entries] = number
                    probabilities[n_entries] = chance[n_branching]
                    marks[number] = n_entries
                    n_entries += 1
                level -= 1
                while level >= 0 and at[level] == row_end[level]:
                    level -= 1
            for e in range(kernels.exception_start[action], kernels.exception_start[action + 1]):
                mechanism = kernels.exception_item[e]
                rows[mechanism] = usual[mechanism]
            deselect(kernels, action, tables)
            starts[row + 1] = n_entries
        if stuck:
            return STUCK, state, n_found, n_entries, followed
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


FEW = 2**10
PAUSE = 2**22
"""Outcomes that compiled code follows before it lets others look at the time."""


@dataclass(frozen=True, slots=True)
class Room:
    """How far a search for reachable states may go."""

    numbers: int
    """Of eight bytes, that are held at once, tables of values and actions included."""
    paths: int
    """Combinations of outcomes that are followed."""
    states: int = 2**30


@dataclass(frozen=True, slots=True, eq=False)
class ReachedStates(Rebuilt):
    """States by number, and numbers by state."""

    keys: Integers  # (n_states, n_words)
    slots: Indices  # (a power of two,) numbers by hash, -1 where none stands
    ends: tuple[int, ...]  # how many states can be met within 0, 1, ... steps

    def __post_init__(self) -> None:
        for name in ("keys", "slots"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    def __len__(self) -> int:
        return len(self.keys)

    def within(self, steps: int) -> int:
        """How many states can be met within so many steps: the first ones."""
        return self.ends[min(steps, len(self.ends) - 1)]

    def find(self, model: FactoredMDP, state: tuple[int, ...]) -> int:
        """Number of a state, or -1 if it cannot be reached."""
        (key,) = pack_states(pack_all(model.sizes), np.array([state], dtype=np.int64))
        return int(self.slots[find(self.keys, self.slots, key)])

    def states(self, model: FactoredMDP, count: int | None = None) -> Integers:
        """The states, one a row; all, or the first so many."""
        return unpack_keys(pack_all(model.sizes), self.keys[:count])


@dataclass(frozen=True, slots=True, eq=False)
class Successors:
    """What follows each state and action: row (state, action) holds some states and chances."""

    n_actions: int
    starts: Integers  # (n_expanded * n_actions + 1,)
    targets: Indices
    probabilities: Floats
    rewards: Floats  # (n_expanded * n_actions,) means

    @property
    def most(self) -> int:
        """States that follow one state and action, at most."""
        return int(np.diff(self.starts).max(initial=0))

    def back_up(
        self,
        later: Floats,
        values: Floats,
        actions: Actions,
        discount: float,
        tie: float,
        count: int,
    ) -> None:
        """values(s) = max_a R(s, a) + discount * E[later(s') | s, a] of the first states."""
        lists = (self.starts, self.targets, self.probabilities, self.rewards)
        with threads(len(self.targets)) as share:
            share(
                count,
                lambda begin, end: back_up(
                    later, values, actions, *lists, discount, tie, self.n_actions, begin, end
                ),
            )


def explore(
    model: FactoredMDP, room: Room, check: Callable[[], None]
) -> tuple[ReachedStates, Successors]:
    """All states that can be reached, within the horizon, and what follows each of them.

    A SizeError as soon as there is no room. Cost: the combinations of outcomes of positive
    probability, over all states reached and actions.
    """
    search = _Search(model, room)
    search.begin()
    depth = 0
    while len(search.ends) < 2 or search.ends[-1] > search.ends[-2]:
        if model.horizon is not None and depth == model.horizon:
            break
        search.expand(check)
        depth += 1
    return search.result()


class _Search:
    """Arrays that grow."""

    def __init__(self, model: FactoredMDP, room: Room) -> None:
        self.model, self.room, self.paths_left = model, room, room.paths
        self.rules, self.packing = flat_rules(model), pack_all(model.sizes)
        self.n_found, self.n_expanded, self.n_entries = 0, 0, 0
        self.ends: list[int] = []
        self.keys = np.zeros((FEW, self.packing.kept.shape[1]), dtype=np.int64)
        self.marks = np.zeros(FEW, dtype=np.int64)
        self.slots = np.full(2 * FEW, -1, dtype=np.int32)
        self.targets = np.zeros(FEW, dtype=np.int32)
        self.probabilities = np.zeros(FEW)
        self.starts = np.zeros(FEW * self.rules.n_actions + 1, dtype=np.int64)
        self.rewards = np.zeros(FEW * self.rules.n_actions)

    def begin(self) -> None:
        """Number the states at which an episode may begin."""
        supports = [np.flatnonzero(d) for d in self.model.initial_distributions()]
        count = math.prod(map(len, supports))
        self._check_size(len(self.targets), count)
        while len(self.keys) < count:
            self._grow_states()
        keys = np.zeros((1, self.keys.shape[1]), dtype=np.int64)
        for variable, support in enumerate(supports):
            word, shift = self.packing.word[variable], self.packing.shift[variable]
            keys = np.repeat(keys, len(support), axis=0)
            keys[:, word] |= np.tile(support, len(keys) // len(support)) << shift
        self.n_found = count
        self.keys[:count] = keys
        insert_all(self.keys, self.slots, 0, count)
        self.ends.append(count)

    def expand(self, check: Callable[[], None]) -> None:
        """Follow every action from the states found last."""
        end = self.n_found
        while self.n_expanded < end:
            check()
            status, self.n_expanded, self.n_found, self.n_entries, followed = follow_all(
                self.rules,
                self.packing,
                self.keys,
                self.slots,
                self.marks,
                self.starts,
                self.targets,
                self.probabilities,
                self.rewards,
                self.n_expanded,
                end,
                self.n_found,
                min(PAUSE, self.paths_left),
                self.paths_left,
            )
            self.paths_left -= followed
            if status == STUCK:
                (state,) = unpack_keys(
                    self.packing, self.keys[self.n_expanded : self.n_expanded + 1]
                )
                raise self.model.conditions.stuck(state.tolist())
            if status == TOO_MANY:
                found = (
                    "1 state was"
                    if self.n_found == 1
                    else f"{show_count(self.n_found)} states were"
                )
                raise SizeError(
                    f"the states that can be reached: {found} found, and more than "
                    f"{show_count(self.room.paths)} combinations of outcomes have to be followed; "
                    "where most variables change by themselves use fsmdp.plan, which does not "
                    "list states."
                )
            if status == FULL:
                if self.n_found == len(self.keys):
                    self._grow_states()
                else:
                    self._grow_entries()
        self.ends.append(self.n_found)

    def result(self) -> tuple[ReachedStates, Successors]:
        """What was found, without the room to grow."""
        n, m = self.n_found, self.n_entries
        self._check_size(m, n)
        reached = ReachedStates(self.keys[:n].copy(), self.slots, tuple(self.ends))
        return reached, Successors(
            self.rules.n_actions,
            self.starts,
            self.targets[:m],
            self.probabilities[:m],
            self.rewards,
        )

    def _grow_states(self) -> None:
        more = 2 * len(self.keys)
        self._check_size(len(self.targets), more)
        self.keys = np.concatenate([self.keys, np.zeros_like(self.keys)])
        self.marks = np.concatenate([self.marks, np.zeros_like(self.marks)])
        self.rewards = np.concatenate([self.rewards, np.zeros_like(self.rewards)])
        self.starts = np.concatenate([self.starts, np.zeros_like(self.starts[1:])])
        self.slots = np.full(2 * more, -1, dtype=np.int32)
        insert_all(self.keys, self.slots, 0, self.n_found)

    def _grow_entries(self) -> None:
        self._check_size(2 * len(self.targets), len(self.keys))
        self.targets = np.concatenate([self.targets, np.zeros_like(self.targets)])
        self.probabilities = np.concatenate([self.probabilities, np.zeros_like(self.probabilities)])

    def _check_size(self, entries: int, states: int) -> None:
        """Refuse what would not fit; in numbers of eight bytes, two integers of four being one."""
        steps = 1 if self.model.horizon is None else self.model.horizon + 1
        table = steps + -(-steps * action_type(self.model).itemsize // 8)
        each = self.keys.shape[1] + 2 + 2 * self.rules.n_actions
        needed = 3 * entries // 2 + states * each + self.n_found * table
        if needed > self.room.numbers or states > 2 * self.room.states:
            raise SizeError(
                f"the states that can be reached: {show_count(self.n_found)} states and "
                f"{show_count(self.n_entries)} successors were found, and going on would need "
                f"room for {show_count(states)} states, {show_count(needed)} numbers "
                f"({show_memory(needed)}), the limits are {show_count(self.room.states)} and "
                f"{show_count(self.room.numbers)}; use a larger limit=, or a planner that does "
                "not list states (fsmdp.plan)."
            )
