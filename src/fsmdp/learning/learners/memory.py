"""Learners that need more than counts: every transition that was seen, in order."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from fsmdp.compiled import compiled
from fsmdp.foundation.checks import check_size
from fsmdp.learning.learners.learner import CountingLearner
from fsmdp.model.lookup import Lookup, deselect, locate, select
from fsmdp.model.tables import Floats, Integers
from fsmdp.simulation.simulate import Record

Remember = Callable[[Record, int], None]
"""Called with an episode as it was recorded, and the number of its steps."""

MOST_NUMBERS = 2**27
"""Of all that is remembered: eight bytes each."""


class Seen(NamedTuple):
    """Transitions, one a row, in the order in which they were seen."""

    states: Integers  # (n, n_inputs) the state, and the action taken there if it has variables
    actions: Integers  # (n,)
    terms: Floats  # (n, n_terms) rewards; 0 for terms that are known
    following: Integers  # (n, n_variables)
    steps: Integers  # (n,) from 0

    @property
    def rewards(self) -> Floats:
        """Of the terms that are not known, together."""
        return np.asarray(self.terms.sum(axis=1))

    def first(self, n: int) -> Seen:
        """The first n transitions; views."""
        states, actions, terms, following, steps = self
        return Seen(states[:n], actions[:n], terms[:n], following[:n], steps[:n])

    def episodes(self, horizon: int) -> tuple[Record, Integers]:
        """The same as recorded episodes, and the number of steps of each."""
        starts = np.flatnonzero(self.steps == 0)
        lengths = np.diff([*starts, len(self.steps)])
        of = np.repeat(np.arange(len(starts)), lengths)
        n_variables = self.following.shape[1]
        states = np.zeros((len(starts), horizon + 1, self.states.shape[1]), dtype=np.int32)
        actions = np.zeros((len(starts), horizon), dtype=np.int64)
        terms = np.zeros((len(starts), horizon, self.terms.shape[1]))
        states[of, self.steps + 1, :n_variables] = self.following
        states[of, self.steps] = self.states
        actions[of, self.steps], terms[of, self.steps] = self.actions, self.terms
        return Record(states, actions, terms, lengths), lengths


def memory_of(learner: object) -> Remember | None:
    """How a learner is notified of each episode; None if counts are all that it needs."""
    return getattr(learner, "remember", None)


class RememberingLearner(CountingLearner):
    """A learner that keeps every transition, besides what is counted."""

    name = "RememberingLearner"
    _seen: Seen | None = None
    _n_seen = 0

    @property
    def seen(self) -> Seen:
        """All transitions so far; views."""
        return self._room(self._n_seen).first(self._n_seen)

    def remember(self, record: Record, steps: int) -> None:
        """Keep an episode."""
        n = len(self.structure.variables)
        first, last = self._n_seen, self._n_seen + steps
        room = self._room(last)
        room.states[first:last] = record.states[0, :steps]
        room.following[first:last] = record.states[0, 1 : steps + 1, :n]
        listed = self.structure.actions.n_cases > 1  # otherwise variables say what was done
        room.actions[first:last] = record.actions[0, :steps] if listed else 0
        room.steps[first:last] = np.arange(steps)
        room.terms[first:last] = np.where(self.term_known, 0.0, record.rewards[0, :steps])
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
        n, sizes = len(parts.actions), [variable.size for variable in self.structure.inputs]
        for part, like in zip(parts, self._room(0), strict=True):
            if part.dtype != like.dtype or part.shape != (n, *like.shape[1:]):
                raise ValueError("seen: expected a row for each transition")
        within = all(
            ((part >= 0) & (part < most)).all()
            for part, most in (
                (parts.states, sizes),
                (parts.following, sizes[: len(self.structure.variables)]),
                (parts.actions, self.structure.actions.n_cases),
                (parts.steps, self.horizon),
            )
        )
        # An episode begins at step 0, and goes on step by step.
        goes_on = np.diff(parts.steps, prepend=-1) == 1
        if not within or not np.isfinite(parts.terms).all() or (parts.steps[~goes_on] != 0).any():
            raise ValueError("seen: expected states, actions and steps of this structure")
        self._seen, self._n_seen = parts, n

    def _room(self, n: int) -> Seen:
        """Arrays for at least n transitions: twice as many whenever they are full."""
        if self._seen is not None and n <= len(self._seen.actions):
            return self._seen
        n_variables, size = len(self.structure.variables), max(64, 2 * n)
        n_inputs, n_terms = len(self.structure.inputs), len(self.structure.rewards)
        check_size(
            size * (n_inputs + n_variables + n_terms + 2),
            MOST_NUMBERS,
            f"{self.name} remembers every transition, after {n} of them",
            "run fewer episodes, or use PSRLFactored, which only counts",
            unit="numbers",
        )
        grown = Seen(
            np.zeros((size, n_inputs), dtype=np.int64),
            np.zeros(size, dtype=np.int64),
            np.zeros((size, n_terms)),
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
