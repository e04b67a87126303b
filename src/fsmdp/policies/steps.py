"""Folded tables of a policy's steps, each made when it is first wanted."""

from __future__ import annotations

from threading import Lock

import numpy as np

from fsmdp.model.lookup import Lookup
from fsmdp.model.tables import Floats
from fsmdp.policies.folding import NUMBERS_LIMIT, Layout, fold, fold_layout

FOLDED_AT_A_TIME = 2**18
"""Numbers in the tables of steps that are folded by one call of compiled code."""


class FoldedSteps:
    """Tables of all steps within one limit; a step that nobody asks for takes no memory.

    Copies, and what is sent to another process, are made of what was given and fold for themselves.
    """

    def __init__(
        self,
        lookup: Lookup,
        entries: Floats,
        sizes: tuple[int, ...],
        n_actions: int,
        limit: int = NUMBERS_LIMIT,
    ) -> None:
        self._given = (lookup, entries, sizes, n_actions, limit)
        self._lock = Lock()
        self._layout: Layout | None = None
        self._laid_out = False
        self._tables = np.zeros((0, 0))
        self._is_folded = np.zeros(len(entries), dtype=np.bool_)

    @property
    def layout(self) -> Layout | None:
        """How the tables are laid out; None if there is no way within the limit."""
        if not self._laid_out:
            with self._lock:
                self._lay_out()
        return self._layout

    def row(self, step: int) -> Floats:
        """The tables of a step, counted from 0. Cost: that of `fold`, the first time."""
        if not self._is_folded[step]:
            self._fold(step)
        return np.asarray(self._tables[step])

    def all(self) -> Floats:
        """The tables of all steps (n_steps, numbers)."""
        layout = self.layout
        assert layout is not None  # nobody asks for tables that have no layout
        at_a_time = max(1, FOLDED_AT_A_TIME // max(1, layout.numbers))
        with self._lock:
            left = np.flatnonzero(~self._is_folded)
            for first in range(0, len(left), at_a_time):
                steps = left[first : first + at_a_time]
                self._tables[steps] = fold(layout, self._given[1][steps])
                self._is_folded[steps] = True
        return self._tables

    def _lay_out(self) -> None:
        if self._laid_out:
            return
        lookup, entries, sizes, n_actions, limit = self._given
        self._layout = fold_layout(lookup, sizes, n_actions, len(entries), limit)
        if self._layout is not None:
            # Left as it is until it is written to, so that pages are taken step by step.
            self._tables = np.empty((len(entries), max(1, self._layout.numbers)))
        self._laid_out = True

    def _fold(self, step: int) -> None:
        layout = self.layout
        assert layout is not None  # nobody asks for tables that have no layout
        with self._lock:
            if not self._is_folded[step]:
                self._tables[step] = fold(layout, self._given[1][step : step + 1])[0]
                self._is_folded[step] = True

    def __reduce__(self) -> tuple[object, ...]:
        return FoldedSteps, self._given
