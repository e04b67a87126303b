"""Cost networks: a sum of local functions, one sum for each action."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fsmdp.errors import ModelError
from fsmdp.model.cases import Cases, Change, actions_alike
from fsmdp.model.tables import Floats
from fsmdp.model.variables import Scope, table_size

Constraint = tuple[Scope, NDArray[np.bool_]]
"""A scope, and which of its assignments are allowed (an axis for each variable)."""


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """The structure of a sum of local functions; its numbers are passed separately.

    F_a(x) = sum_f entries[offsets[f][group_f(a)] + index of x in the group's scope]

    The tables of all groups of all factors lie one after another in one vector, `entries`, each in
    C order over its sorted scope. So the same structure serves any numbers.
    `names` appear in messages only.

    `constraints` allow some assignments of a scope and no others: F_a(x) is minus infinity where
    one does not hold. `conditions` do so by group of actions. They are the last factors, conditions
    first, with numbers of their own after the entries.
    """

    sizes: tuple[int, ...]
    n_actions: int
    factors: tuple[Cases[Scope], ...]
    names: tuple[str, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    conditions: tuple[Cases[Constraint], ...] = ()
    offsets: tuple[tuple[int, ...], ...] = field(init=False, repr=False)
    n_entries: int = field(init=False)
    fixed: Floats = field(init=False, repr=False)  # numbers of the constraints: 0 or -inf
    changes: tuple[tuple[Change, ...], ...] = field(init=False, repr=False)
    class_of_action: NDArray[np.int64] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        n_terms = len(self.factors)
        restricting = (*self.conditions, *(Cases((one,)) for one in self.constraints))
        added = tuple(cases.map(lambda constraint: constraint[0]) for cases in restricting)
        object.__setattr__(self, "factors", (*self.factors, *added))
        for position, factor in enumerate(self.factors):
            _check_factor(position, factor, len(self.sizes), self.n_actions)
        offsets = []
        end = 0
        entries_end = 0
        for position, factor in enumerate(self.factors):
            if position == n_terms:
                entries_end = end
            starts = []
            for scope in factor:
                starts.append(end)
                end += self.table_size(scope)
            offsets.append(tuple(starts))
        object.__setattr__(self, "offsets", tuple(offsets))
        object.__setattr__(self, "n_entries", entries_end if added else end)
        numbers = [
            np.where(allowed, 0.0, -np.inf).ravel() for cases in restricting for _, allowed in cases
        ]
        object.__setattr__(self, "fixed", np.concatenate([np.zeros(0), *numbers]))
        alike = actions_alike(self.factors, self.n_actions)
        class_of_action = np.empty(self.n_actions, dtype=np.int64)
        for number, actions in enumerate(alike.values()):
            class_of_action[actions] = number
        class_of_action.flags.writeable = False
        object.__setattr__(self, "changes", tuple(alike))
        object.__setattr__(self, "class_of_action", class_of_action)

    @property
    def n_terms(self) -> int:
        """Number of factors that are no constraint: those before the others."""
        return len(self.factors) - len(self.conditions) - len(self.constraints)

    @property
    def n_numbers(self) -> int:
        """Entries, and the numbers of constraints after them."""
        return self.n_entries + len(self.fixed)

    @property
    def n_variables(self) -> int:
        """Number of variables, those in no scope included."""
        return len(self.sizes)

    @property
    def n_classes(self) -> int:
        """Number of different sums: actions with the same group in every factor share one."""
        return len(self.changes)

    @property
    def default_scopes(self) -> tuple[Scope, ...]:
        """The scope of every factor's default group."""
        return tuple(factor.groups[0] for factor in self.factors)

    @property
    def all_scopes(self) -> tuple[Scope, ...]:
        """The scopes of all groups of all factors."""
        return tuple(scope for factor in self.factors for scope in factor)

    def with_constraints(
        self, constraints: Sequence[Constraint], counters: Sequence[int] = ()
    ) -> Network:
        """The same sum with further constraints, and with further variables of these sizes."""
        if not constraints:
            return self
        names = self.names
        if names:
            names = (*names, *(f"count {number}" for number in range(len(counters))))
        return Network(
            (*self.sizes, *counters),
            self.n_actions,
            self.factors[: self.n_terms],
            names,
            (*self.constraints, *constraints),
            self.conditions,
        )

    def table_size(self, scope: Scope) -> int:
        """Number of assignments of a scope, exactly."""
        return table_size(self.sizes[variable] for variable in scope)

    def value(self, entries: ArrayLike, states: ArrayLike, action: int) -> Floats:
        """F_a(x) at one state or at each of several (the last axis runs over variables)."""
        numbers = np.concatenate([self.checked(entries), self.fixed])
        states = np.asarray(states, dtype=np.int64)
        total = np.zeros(states.shape[:-1])
        for factor, starts in zip(self.factors, self.offsets, strict=True):
            group = factor.group(action)
            index = np.full(states.shape[:-1], 0, dtype=np.int64)
            for variable in factor.groups[group]:
                index = index * self.sizes[variable] + states[..., variable]
            total = total + numbers[starts[group] + index]
        return total

    def checked(self, entries: ArrayLike) -> Floats:
        """Entries as a contiguous vector of the right length, all finite."""
        numbers = np.ascontiguousarray(entries, dtype=np.float64)
        if numbers.shape != (self.n_entries,):
            raise ModelError(
                f"entries of a network: expected shape ({self.n_entries},), one number for each "
                f"entry of each table, found {numbers.shape}; lay the tables out by `offsets`."
            )
        if not np.isfinite(numbers).all():
            at = int(np.flatnonzero(~np.isfinite(numbers))[0])
            raise ModelError(
                f"entries of a network: entry {at} is {numbers[at]}, expected a finite number; "
                "for what is forbidden give the network a constraint."
            )
        return numbers


def _check_factor(position: int, factor: Cases[Scope], n_variables: int, n_actions: int) -> None:
    for group, scope in enumerate(factor):
        inside = all(0 <= variable < n_variables for variable in scope)
        if not inside or any(a >= b for a, b in pairwise(scope)):
            raise ModelError(
                f"factor {position}, group {group}: expected a scope of increasing positions "
                f"below {n_variables}, found {scope}; sort it and list each variable once."
            )
    for action, group in factor.exceptions.items():
        if not 0 <= action < n_actions or not 0 <= group < len(factor):
            raise ModelError(
                f"factor {position}: action {action} is put into group {group}; expected actions "
                f"below {n_actions} and groups below {len(factor)}, correct the exceptions."
            )
