"""The states that can be reached from the start, and exact values over them alone.

Breadth first from the support of the initial distribution, by what each kernel gives a positive
probability. States are numbered as they are met, so those that can be met within some steps are
the first so many.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fsmdp.errors import SizeError
from fsmdp.exact.following import (
    FULL,
    TOO_MANY,
    Integers,
    back_up,
    flat_rules,
    follow_all,
    state_words,
)
from fsmdp.exact.induction import Actions, action_type
from fsmdp.exact.loops import threads
from fsmdp.foundation.checks import show_count, show_memory
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.tables import Floats, Rebuilt, read_only
from fsmdp.policies.hashed import Indices, find, insert_all

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
        words, strides = state_words(model)
        key = np.zeros(self.keys.shape[1], dtype=np.int64)
        np.add.at(key, words, strides * np.array(state, dtype=np.int64))
        slot = find(self.keys, self.slots, key)
        return int(self.slots[slot])

    def states(self, model: FactoredMDP, count: int | None = None) -> Integers:
        """The states, one a row; all, or the first so many."""
        words, strides = state_words(model)
        return np.asarray(self.keys[:count, words] // strides % np.array(model.sizes))


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
        self.rules = flat_rules(model)
        self.n_found, self.n_expanded, self.n_entries = 0, 0, 0
        self.ends: list[int] = []
        words = int(self.rules.word.max()) + 1
        self.keys = np.zeros((FEW, words), dtype=np.int64)
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
            word, stride = self.rules.word[variable], self.rules.stride[variable]
            keys = np.repeat(keys, len(support), axis=0)
            keys[:, word] += np.tile(support, len(keys) // len(support)) * stride
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
