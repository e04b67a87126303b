"""Conditions: which actions are allowed in a state, and in which states an episode is over."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fsmdp.errors import ModelError, PolicyError
from fsmdp.foundation.checks import as_tuple, show, show_names
from fsmdp.foundation.equality import Compared
from fsmdp.model.actions import ActionSpace, Choice
from fsmdp.model.cases import ANY, Case, Cases, _Any, filled_cases
from fsmdp.model.projecting import Factor, project
from fsmdp.model.rewards import parents_of_table
from fsmdp.model.tables import Floats, Table, bound_table, sorted_table
from fsmdp.model.variables import (
    Scope,
    Variable,
    positions_by_name,
    show_state,
    table_size,
)

Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]

ALWAYS = bound_table((), np.zeros(()))
"""The condition that nothing is asked of."""

MOST_CHECKED = 2**12
"""Assignments that are gone through to prove that some action is allowed in every state, where a
limit on nonzero variables connects all of them."""


@dataclass(frozen=True, eq=False)
class Conditions(Compared):
    """Allowed actions and terminal states of a model, over positions of its inputs.

    An entry of `allowed` is 0 where an action is allowed and minus infinity where it is not, so
    that adding it rules an action out of every maximum. Group 0 of listed actions is always
    allowed; actions made of variables have one group, and their variables stand in its scope. An
    action is allowed if all entries are 0. A state is terminal if some table of `terminal` is not
    0 there.
    """

    actions: ActionSpace
    inputs: tuple[Variable, ...]
    allowed: tuple[Cases[Table], ...] = ()
    terminal: tuple[Table, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.allowed or self.terminal)

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return Conditions, (self.actions, self.inputs, self.allowed, self.terminal)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of values of each input."""
        return tuple(variable.size for variable in self.inputs)

    @property
    def n_variables(self) -> int:
        """Number of state variables."""
        return len(self.inputs) - len(self.actions.variables)

    @property
    def scopes(self) -> list[Cases[Scope]]:
        """Scopes of what is allowed."""
        return [cases.map(lambda table: table.scope) for cases in self.allowed]

    @cached_property
    def entries(self) -> Floats:
        """All numbers of what is allowed, group after group: 0 and minus infinity."""
        numbers = (table.values.ravel() for cases in self.allowed for table in cases)
        return np.concatenate([np.zeros(0), *numbers])

    def is_terminal(self, states: Integers) -> Booleans:
        """Whether an episode is over in each of several states (n, n_variables)."""
        found = np.zeros(len(states), dtype=np.bool_)
        for table in self.terminal:
            found |= table.values[tuple(states[:, position] for position in table.scope)] != 0
        return found

    def mask(self, states: Integers) -> Booleans:
        """Which listed actions are allowed in each of several states: (n, n_actions)."""
        found = np.ones((len(states), len(self.actions)), dtype=np.bool_)
        for cases in self.allowed:
            rows = [
                table.values[tuple(states[:, position] for position in table.scope)] == 0
                for table in cases
            ]
            for action, group in cases.exceptions.items():
                found[:, action] &= rows[group]
        return found

    def allows_each(self, states: Integers, cases: Integers, values: Integers) -> Booleans:
        """Whether each of several actions, by case and values, is allowed in its state."""
        inputs = np.hstack([states, values]) if values.shape[1] else states
        found = np.ones(len(states), dtype=np.bool_)
        for condition in self.allowed:
            for group, table in enumerate(condition):
                if not table.scope and table.values[()] == 0:
                    continue
                own = [action for action, other in condition.exceptions.items() if other == group]
                rows = np.isin(cases, own) if group or condition.exceptions else slice(None)
                at = tuple(inputs[rows, position] for position in table.scope)
                found[rows] &= table.values[at] == 0
        return found

    def allows(self, state: Sequence[int], choice: Choice) -> bool:
        """Whether an action in numbers is allowed in a state."""
        return self.broken(state, choice) is None

    def broken(self, state: Sequence[int], choice: Choice) -> tuple[int, ...] | None:
        """The scope of a condition that an action in numbers does not satisfy, or None."""
        case, values = (choice, ()) if isinstance(choice, int) else (0, choice)
        inputs = (*state, *values)
        for condition in self.allowed:
            table = condition.at(case)
            if table.values[tuple(inputs[position] for position in table.scope)] != 0:
                return table.scope
        return None

    def check(self, state: Sequence[int], choice: Choice) -> None:
        """Refuse an action that is not allowed in a state, and any in a terminal one."""
        if self.terminal and self.is_terminal(np.array([state], dtype=np.int64))[0]:
            raise PolicyError(
                f"the episode is over in state {self._state(state)}; expected no further action."
            )
        scope = self.broken(state, choice)
        if scope is None:
            return
        where = self._text(state, scope)
        if self.is_stuck(state):
            raise self.stuck(state)
        raise PolicyError(
            f"action {show(self.actions.name(choice))} is not allowed in state "
            f"{self._state(state)}, by the condition on {where}; take one that is "
            "(model.allowed_actions(state))."
        )

    def _text(self, state: Sequence[int], scope: Scope) -> str:
        if not scope:
            return "this action, in every state"
        return ", ".join(
            self.inputs[p].name + (f"={self.inputs[p].text(state[p])}" if p < len(state) else "")
            for p in scope
        )

    def _state(self, state: Sequence[int]) -> str:
        return show_state(state, self.inputs[: self.n_variables])

    def stuck(self, state: Sequence[int]) -> ModelError:
        """No action is allowed in a state that is not terminal either."""
        return ModelError(
            f"no action is allowed in state {self._state(state)}, and it is not "
            "terminal; expected at least one: relax `allowed`, or make the state terminal."
        )

    def is_stuck(self, state: Sequence[int]) -> bool:
        """Whether a state that is not terminal allows no action."""
        at = np.array([state], dtype=np.int64)
        if not self.allowed or self.is_terminal(at)[0]:
            return False
        if not self.actions.variables:
            return not self.mask(at).any()
        return next(self.joint_actions(state), None) is None

    def joint_actions(self, state: Sequence[int]) -> Iterator[tuple[int, ...]]:
        """Joint actions that are allowed in a state, one after another, lowest values first.

        A search through the variables in order, each condition checked at its last variable.
        """
        space, first = self.actions, self.n_variables
        last: dict[int, list[tuple[Scope, Floats]]] = {}
        for table in space.forbidden:
            barred = np.where(table.values != 0, -np.inf, 0.0)
            last.setdefault(max(table.scope, default=-1), []).append((table.scope, barred))
        for cases in self.allowed:
            (table,) = cases.groups
            index = tuple(state[p] if p < first else slice(None) for p in table.scope)
            scope = tuple(p - first for p in table.scope if p >= first)
            last.setdefault(max(scope, default=-1), []).append((scope, table.values[index]))
        if any(values[()] != 0 for _, values in last.get(-1, ())):
            return
        most = len(space.sizes) if space.at_most is None else space.at_most
        values = [0] * len(space.sizes)

        def search(position: int, used: int) -> Iterator[tuple[int, ...]]:
            if position == len(values):
                yield tuple(values)
                return
            for value in range(space.sizes[position]):
                values[position] = value
                spent = used + (value > 0)
                if spent <= most and all(
                    table[tuple(values[at] for at in scope)] == 0
                    for scope, table in last.get(position, ())
                ):
                    yield from search(position + 1, spent)
            values[position] = 0

        yield from search(0, 0)

    @cached_property
    def never_stuck(self) -> bool:
        """Whether every state that is not terminal provably allows some action.

        An action that is allowed everywhere, or elimination: no state that is not terminal blocks
        all listed actions, or all values of action variables that conditions connect. False says
        that it is not proved. Cost: tables of at most MOST_SUPPORT_ENTRIES.
        """
        if not self.allowed:
            return True
        if self.actions.variables:
            return self.always_allows(self.actions.idle()) or self._joint_never_stuck()
        constrained = {action for cases in self.allowed for action in cases.exceptions}
        if len(constrained) < len(self.actions):
            return True
        blocked = []
        for action in range(len(self.actions)):
            parts = [
                (cases.at(action).scope, cases.at(action).values == 0) for cases in self.allowed
            ]
            found = project(parts, self.sizes, lambda _: True)
            if found is not None:  # else it counts as blocked everywhere
                blocked.append((found[0], ~found[1]))
        return self._always_over(blocked)

    def _joint_never_stuck(self) -> bool:
        """The same for action variables, one connected group of them after another."""
        first, space = self.n_variables, self.actions
        tables = [table for cases in self.allowed for table in cases]
        parts = [(table.scope, table.values == 0) for table in tables]
        for table in space.forbidden:
            parts.append((tuple(first + p for p in table.scope), table.values == 0))
        needed = 0
        for group in _connected(parts, first):
            own = {p for scope, _ in group for p in scope if p >= first}
            idle = [(s, t[tuple(slice(None) if p < first else 0 for p in s)]) for s, t in group]
            if all(fine.all() for _, fine in idle):
                continue
            needed += len(own)
            found = project(group, self.sizes, lambda axis: axis < first)
            if found is None or not self._always_over([(found[0], ~found[1])]):
                return False
        return needed <= (space.most_nonzero or needed) or self._go_through()

    def _always_over(self, factors: Sequence[tuple[Scope, Booleans]]) -> bool:
        """Whether the states in which all factors are true are provably terminal."""
        running = [(table.scope, table.values == 0) for table in self.terminal]
        found = project([*factors, *running], self.sizes, lambda _: False)
        return found is not None and not found[1].any()

    def always_allows(self, action: object) -> bool:
        """Whether an action is allowed in every state."""
        choice = self.actions.read(action)
        case, values = (choice, ()) if isinstance(choice, int) else (0, choice)
        first = self.n_variables
        for cases in self.allowed:
            table = cases.at(case)
            index = tuple(values[p - first] if p >= first else slice(None) for p in table.scope)
            if (table.values[index] != 0).any():
                return False
        return True

    def _go_through(self) -> bool:
        tables = [table for cases in self.allowed for table in cases] + [*self.terminal]
        scope = sorted({p for table in tables for p in table.scope if p < self.n_variables})
        sizes = self.sizes
        if table_size(sizes[p] for p in scope) > MOST_CHECKED:
            return False
        state = [0] * self.n_variables
        for values in product(*(range(sizes[p]) for p in scope)):
            for position, value in zip(scope, values, strict=True):
                state[position] = value
            if self.is_stuck(state):
                return False
        return True


def resolve_conditions(
    allowed: object, terminal: object, variables: Sequence[Variable], actions: ActionSpace
) -> Conditions:
    """Conditions as a user writes them, bound to positions and checked."""
    inputs = (*variables, *actions.variables)
    found = [_condition(case, inputs, actions) for case in as_allowed(allowed, inputs)]
    tables = tuple(_terminal(table, variables) for table in as_terminal(terminal))
    kept = [(named, table) for named, table in found if (table.values != 0).any()]
    if actions.variables:
        packed = tuple(Cases((table,)) for _, table in kept)
    else:
        packed = tuple(_packed(kept))
    return Conditions(actions, inputs, packed, tables)


def as_allowed(allowed: object, inputs: Sequence[Variable]) -> tuple[Case, ...]:
    """Cases of allowed actions with their tables; a single one stands for a list of itself."""
    remedy = "give [Case(actions, parents, table), ...], zero where an action is not allowed"
    cases = as_tuple(allowed, Case, "allowed", remedy)
    if any(case.actions == () for case in cases):
        raise ModelError(
            "allowed: a case names no action, so that it would say nothing; expected names of "
            "actions, or ANY."
        )
    for case in cases:
        if isinstance(case.actions, tuple) and len(set(case.actions)) < len(case.actions):
            raise ModelError(
                f"allowed, {case.label}: an action is named twice; expected each once, remove one."
            )
    return filled_cases(cases, {one.name: one for one in inputs}, (), "allowed")


def as_terminal(terminal: object) -> tuple[Table, ...]:
    """Tables of terminal states; a single one stands for a list of itself."""
    remedy = "give [Table(names, values), ...], not zero where an episode is over"
    return as_tuple(terminal, Table, "terminal", remedy)


def _condition(
    case: Case, inputs: Sequence[Variable], actions: ActionSpace
) -> tuple[tuple[int, ...], Table]:
    """Positions of the actions that a case speaks of, and its table of 0 and minus infinity."""
    where = f"allowed, {case.label}"
    parents = parents_of_table(case, inputs, positions_by_name(inputs), where)
    table = sorted_table(parents, np.where(case.table != 0, 0.0, -np.inf))
    if isinstance(case.actions, _Any):
        return tuple(range(actions.n_cases)), table
    if actions.variables:
        raise ModelError(
            f"{where}: found names of actions, expected ANY, since actions are variables: name "
            "these among the parents."
        )
    unknown = [name for name in case.actions if name not in actions.cases]
    if unknown:
        raise ModelError(
            f"{where}: unknown action {show(unknown[0])}; expected one of {show_names(actions)}."
        )
    return tuple(actions.cases[name] for name in case.actions), table


def _connected(parts: Sequence[Factor], first: int) -> list[list[Factor]]:
    """Factors in groups that have no action variable (a position from `first` on) in common."""
    groups: list[tuple[set[int], list[Factor]]] = []
    for part in parts:
        own, joined = {p for p in part[0] if p >= first}, [part]
        apart = []
        for others, held in groups:
            if own & others:
                own, joined = own | others, joined + held
            else:
                apart.append((others, held))
        groups = [*apart, (own, joined)]
    return [held for _, held in groups]


def _packed(found: Sequence[tuple[tuple[int, ...], Table]]) -> Iterator[Cases[Table]]:
    """Conditions on different actions share one factor: a group for each."""
    packs: list[tuple[list[Table], dict[int, int]]] = []
    for actions, table in found:
        pack = next((one for one in packs if one[1].keys().isdisjoint(actions)), None)
        if pack is None:
            pack = ([ALWAYS], {})
            packs.append(pack)
        tables, exceptions = pack
        exceptions.update(dict.fromkeys(actions, len(tables)))
        tables.append(table)
    for tables, exceptions in packs:
        yield Cases(tuple(tables), exceptions)


def _terminal(table: Table, variables: Sequence[Variable]) -> Table:
    bound = table.bind(variables)
    return bound_table(bound.scope, (bound.values != 0).astype(np.float64))


def written_conditions(
    conditions: Conditions,
    names: Sequence[str],
    rewrite: Callable[[Table], Table] = lambda table: table,
) -> tuple[list[Case], list[Table]]:
    """Conditions as a user would write them: `allowed` and `terminal`, over these names.

    Tables may be rewritten into others on the way, over other positions.
    """
    space, allowed = conditions.actions, []
    for cases in conditions.allowed:
        for group, table in enumerate(map(rewrite, cases)):
            parents = [names[position] for position in table.scope]
            values = (table.values == 0).astype(np.float64)
            who: Any = ANY
            if not space.variables:
                who = [space[a] for a, other in cases.exceptions.items() if other == group]
            if who and not values.all():
                allowed.append(Case(who, parents, values))
    over = [rewrite(table) for table in conditions.terminal]
    return allowed, [Table([names[p] for p in table.scope], table.values) for table in over]
