"""max_a Q(s, a) for pools of states: folded where there are states enough to pay for it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fsmdp.foundation.threads import in_threads, split
from fsmdp.model.actions import Actions
from fsmdp.model.lookup import Integers, Lookup
from fsmdp.model.tables import Floats
from fsmdp.policies.advantages import best_actions
from fsmdp.policies.folded import folded_best_actions
from fsmdp.policies.folding import Layout, fold, fold_layout, lookup_cost
from fsmdp.policies.joint import Joint, best_joint_actions, joint_greedily

STEP_LIMIT = 2**24
"""Numbers in the folded tables of a step (128 MiB)."""

WORTH_A_THREAD = 1024
"""States below which a thread more does not pay."""


class BestActions:
    """The best actions and their values in many states, for entries that change from call to call.

    What the layout of a Lookup takes is paid once, at the first call.
    """

    def __init__(
        self,
        lookup: Lookup,
        sizes: Sequence[int],
        limit: int = STEP_LIMIT,
        actions: Sequence[str] = (),
    ) -> None:
        self._lookup = lookup
        self._sizes = tuple(sizes)
        self._joint: Joint | None = None
        if isinstance(actions, Actions):
            self._joint = joint_greedily(actions, len(sizes), lookup)
        self._n_actions = len(lookup.exception_start) - 1
        self._limit = limit
        self._layout: Layout | None = None
        self._laid_out = False
        self._plain_cost = lookup_cost(lookup, totals=True)

    def __call__(self, entries: Floats, states: Integers) -> tuple[Floats, Integers]:
        """max_a Q(s, a) and the lowest action that attains it, for states (n, n_variables).

        Where actions are made of variables, the values of joint ones: (n, n_action_variables).

        Cost: for each state the exceptions of all actions; or, where that is less, folding once,
        and the folded tables for each state.
        """
        if self._joint is not None:
            return self._best_joint(self._joint, entries, states)
        values, actions = np.zeros(len(states)), np.zeros(len(states), dtype=np.int64)
        layout = self._layout_for(len(states))
        tables = None if layout is None else fold(layout, entries[None])[0]
        parts = split(len(states), WORTH_A_THREAD)

        def run(part: int) -> None:
            at = parts[part]
            found = states[at], values[at], actions[at]
            if layout is None or tables is None:
                best_actions(self._lookup, entries, *found)
            else:
                folded_best_actions(layout.folded, tables, self._n_actions, *found)

        in_threads(run, len(parts))
        return values, actions

    def _best_joint(
        self, joint: Joint, entries: Floats, states: Integers
    ) -> tuple[Floats, Integers]:
        values = np.zeros(len(states))
        actions = np.zeros((len(states), len(joint.slots)), dtype=np.int64)
        parts = split(len(states), WORTH_A_THREAD)

        def run(part: int) -> None:
            at = parts[part]
            best_joint_actions(joint, self._lookup, entries, states[at], values[at], actions[at])

        in_threads(run, len(parts))
        return values, actions

    def _layout_for(self, n_states: int) -> Layout | None:
        """The layout if it pays for so many states."""
        if not self._laid_out:
            self._layout = fold_layout(
                self._lookup, self._sizes, self._n_actions, 1, self._limit, totals=True
            )
            self._laid_out = True
        if self._layout is None or not self._layout.pays(n_states, self._plain_cost):
            return None
        return self._layout
