"""Learners that need more than counts: every transition that was seen, in order."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from fsmdp.compiled import compiled
from fsmdp.foundation.checks import check_size
from fsmdp.learning.learners.counting import CountingLearner
from fsmdp.model.lookup import Integers, Lookup, deselect, locate, select
from fsmdp.model.tables import Floats
from fsmdp.simulation.simulate import Record

Remember = Callable[[Record, int], None]
"""Called with an episode as it was recorded, and the number of its steps."""

MOST_NUMBERS = 2**27
"""Of all that is remembered: eight bytes each."""


class Seen(NamedTuple):
    """Transitions, one a row."""

    states: Integers  # (n, n_variables)
    actions: Integers  # (n,)
    rewards: Floats  # (n,) of the terms that are not known, together
    following: Integers  # (n, n_variables)
    steps: Integers  # (n,) from 0


def memory_of(learner: object) -> Remember | None:
    """How a learner wants to be told of each episode; None if counts are all that it needs."""
    return getattr(learner, "remember", None)


class RememberingLearner(CountingLearner):
    """A learner that keeps every transition, besides what is counted."""

    name = "RememberingLearner"
    _seen: Seen | None = None
    _n_seen = 0

    @property
    def seen(self) -> Seen:
        """All transitions so far; views."""
        n = self._n_seen
        states, actions, rewards, following, steps = self._room(n)
        return Seen(states[:n], actions[:n], rewards[:n], following[:n], steps[:n])

    def remember(self, record: Record, steps: int) -> None:
        """Keep an episode."""
        n = len(self.structure.variables)
        first, last = self._n_seen, self._n_seen + steps
        room = self._room(last)
        states = record.states[0, : steps + 1, :n]
        room.states[first:last], room.following[first:last] = states[:-1], states[1:]
        room.actions[first:last] = record.actions[0, :steps]
        room.steps[first:last] = np.arange(steps)
        room.rewards[first:last] = record.rewards[0, :steps, ~self.term_known].sum(axis=0)
        self._n_seen = last

    def forget(self) -> None:
        """Begin anew."""
        self._n_seen = 0

    def cells_at(self, states: Integers, actions: Integers) -> Integers:
        """Where the look-up finds each reward term and function, for each of many transitions."""
        found = np.zeros((len(states), len(self.cells.layout.lookup.defaults)), dtype=np.int64)
        fill_entries(self.cells.layout.lookup, states, actions, found)
        return found

    def state(self) -> dict[str, np.ndarray]:
        """What was seen, besides the random state."""
        return super().state() | {
            f"seen {name}": part for name, part in self.seen._asdict().items()
        }

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Take a state back."""
        super().restore(state)
        parts = Seen(*(state[f"seen {name}"] for name in Seen._fields))
        n, sizes = len(parts.actions), [variable.size for variable in self.structure.variables]
        for part, like in zip(parts, self._room(0), strict=True):
            if part.dtype != like.dtype or part.shape != (n, *like.shape[1:]):
                raise ValueError("seen: expected a row for each transition")
        within = all(
            ((part >= 0) & (part < most)).all()
            for part, most in (
                (parts.states, sizes),
                (parts.following, sizes),
                (parts.actions, len(self.structure.actions)),
                (parts.steps, self.horizon),
            )
        )
        if not within or not np.isfinite(parts.rewards).all():
            raise ValueError("seen: expected states, actions and steps of this structure")
        self._seen, self._n_seen = parts, n

    def _room(self, n: int) -> Seen:
        """Arrays for at least n transitions: twice as many whenever they are full."""
        if self._seen is not None and n <= len(self._seen.actions):
            return self._seen
        n_variables, size = len(self.structure.variables), max(64, 2 * n)
        check_size(
            size * (2 * n_variables + 3),
            MOST_NUMBERS,
            f"{self.name} remembers every transition, after {n} of them",
            "run fewer episodes, or use PSRLFactored, which only counts",
            unit="numbers",
        )
        grown = Seen(
            np.zeros((size, n_variables), dtype=np.int64),
            np.zeros(size, dtype=np.int64),
            np.zeros(size),
            np.zeros((size, n_variables), dtype=np.int64),
            np.zeros(size, dtype=np.int64),
        )
        if self._seen is not None:
            for new, old in zip(grown, self._seen, strict=True):
                new[: self._n_seen] = old[: self._n_seen]
        self._seen = grown
        return grown


@compiled()
def fill_entries(lookup: Lookup, states: Integers, actions: Integers, entries: Integers) -> None:
    """Where each item of the look-up stands at each (state, action)."""
    tables = lookup.defaults.copy()
    for row in range(len(actions)):
        select(lookup, actions[row], tables)
        for item in range(entries.shape[1]):
            entries[row, item] = locate(lookup, tables[item], states[row])
        deselect(lookup, actions[row], tables)
