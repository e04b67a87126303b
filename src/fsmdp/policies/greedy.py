"""Greedy policies by table look-up: Q(s, a) from the terms in which actions differ."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np

from fsmdp.compiled import compiled
from fsmdp.foundation.checks import as_step, sound
from fsmdp.foundation.threads import in_threads, split
from fsmdp.model.actions import ActionSpace
from fsmdp.model.lookup import Lookup, with_constant
from fsmdp.model.tables import Floats, Integers
from fsmdp.model.variables import State, Variable, check_state
from fsmdp.policies.arrays import (
    FOLDED,
    GREEDILY,
    JOINTLY,
    CompiledPolicy,
    best_actions,
    default_total,
    fill_advantages,
    no_strides,
    policy_arrays,
)
from fsmdp.policies.folding import (
    Folded,
    FoldedSteps,
    Layout,
    fold,
    fold_layout,
    folded_action,
    folded_best_actions,
    lookup_cost,
)
from fsmdp.policies.joint import Joint, best_joint_actions, joint_greedily, write_best


@dataclass(frozen=True, slots=True, eq=False)
class Greedy:
    """The action of largest R(s, a) + discount * E[V_{l+1}(s')], the lowest of several equal ones.

    Rewards and backups of V are looked up in tables; no part of a model is kept. To act, the tables
    are folded into fewer, once for each step; files and `q_values` know nothing of that.
    Where actions are made of variables, the terms are maximised over them by elimination.
    """

    variables: tuple[Variable, ...]
    actions: ActionSpace
    horizon: int | None
    lookup: Lookup = field(repr=False)
    entries: Floats = field(repr=False)  # (n_steps, n_entries)
    _sizes: Integers = field(init=False, repr=False)
    _steps: FoldedSteps = field(init=False, repr=False)
    _prepared: list[CompiledPolicy] = field(init=False, repr=False, default_factory=list)

    def __post_init__(self) -> None:
        sizes = tuple(variable.size for variable in self.variables)
        steps = FoldedSteps(self.lookup, self.entries, sizes, self.actions.n_cases)
        object.__setattr__(self, "_sizes", np.array(sizes, dtype=np.int64))
        object.__setattr__(self, "_steps", steps)

    def action(self, state: State, step: int = 1) -> str:
        """The greedy action; the first in the model's order where several are equal."""
        values = self._values(state)
        row = self._row(step)
        if self.actions.variables:
            return self.actions.name(self._best(values, row))
        layout = self._steps.layout
        if layout is not None:
            return self.actions[
                _act(layout.folded, self._steps.row(row), values, len(self.actions))
            ]
        found = np.zeros(len(self.actions))
        fill_advantages(self.lookup, self.entries[row], values, found)
        return self.actions[int(found.argmax())]

    def q_values(self, state: State, step: int = 1) -> Floats:
        """R(s, a) + discount * backup of V, for every action; joint ones have to be few."""
        values = self._values(state)
        entries = self.entries[self._row(step)]
        if self.actions.variables:
            rows = (np.append(values, chosen) for chosen in self.actions.rows())
            return np.array([default_total(self.lookup, entries, row) for row in rows])
        found = np.zeros(len(self.actions))
        fill_advantages(self.lookup, entries, values, found)
        return np.asarray(found + default_total(self.lookup, entries, values))

    def moved(self, factor: float, constants: Floats) -> Greedy:
        """The same policy with Q-values in another unit: factor * Q + a constant for each step.

        The constant is a term of its own that no action changes, so that it decides nothing.
        """
        entries, lookup = factor * self.entries, self.lookup
        if constants.any():
            entries = np.hstack([entries, constants[:, None]])
            lookup = with_constant(lookup)
        return Greedy(self.variables, self.actions, self.horizon, lookup, entries)

    @sound
    def compiled(self) -> CompiledPolicy:
        """The policy as arrays. Cost: to fold the steps that were not folded yet."""
        nothing = no_strides(len(self.variables))
        if self.actions.variables:
            return self._jointly(nothing)
        layout = self._steps.layout
        if layout is None:
            return policy_arrays(GREEDILY, nothing, lookup=self.lookup, entries=self.entries)
        tables = self._steps.all()
        return policy_arrays(FOLDED, nothing, entries=tables, folded=layout.folded)

    def _jointly(self, nothing: Integers) -> CompiledPolicy:
        if not self._prepared:
            joint = joint_greedily(self.actions, len(self.variables), self.lookup)
            arrays = policy_arrays(
                JOINTLY, nothing, lookup=self.lookup, entries=self.entries, joint=joint
            )
            self._prepared.append(arrays)
        return self._prepared[0]

    def _best(self, values: Integers, row: int) -> Integers:
        joint = self.compiled().joint
        return _act_jointly(joint, self.entries[row], values)

    def _row(self, step: int) -> int:
        position = as_step(step, self.horizon) - 1
        return 0 if self.horizon is None else position

    def _values(self, state: State) -> Integers:
        """The state as compiled code reads it.

        Whole numbers within their bounds are checked all at once; whatever else is given goes the
        slow way, which says what is wrong with it.
        """
        values = None
        if isinstance(state, np.ndarray):
            values = state.astype(np.int64) if state.dtype.kind in "iu" else None
        elif isinstance(state, list | tuple) and set(map(type, state)) == {int}:
            with suppress(OverflowError):
                values = np.array(state, dtype=np.int64)
        sizes = self._sizes
        if (
            values is None
            or values.shape != sizes.shape
            or not ((values >= 0) & (values < sizes)).all()
        ):
            return np.array(check_state(state, self.variables), dtype=np.int64)
        return values


@compiled()
def _act(folded: Folded, tables: Floats, values: Integers, n_actions: int) -> int:
    return folded_action(folded, tables, values, np.zeros(n_actions))


@compiled()
def _act_jointly(joint: Joint, entries: Floats, state: Integers) -> Integers:
    values = np.zeros(len(state) + len(joint.slots), dtype=np.int64)
    values[: len(state)] = state
    buffer, assignment = joint.start.copy(), np.zeros(joint.n_assigned, dtype=np.int64)
    write_best(joint, entries, values, buffer, assignment)
    return values[len(state) :]


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
        actions: ActionSpace | None = None,
    ) -> None:
        self._lookup = lookup
        self._sizes = tuple(sizes)
        self._joint: Joint | None = None
        if actions is not None and actions.variables:
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
