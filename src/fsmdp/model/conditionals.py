"""Conditionals: how next values are drawn, and the dynamics they make together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import SupportsInt

import numpy as np

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import clip, show, show_names
from fsmdp.foundation.equality import Compared
from fsmdp.model.cases import ANY, Case, Cases, as_cases, common_groups, filled_cases, partition
from fsmdp.model.functions import ROW_TOLERANCE, as_function
from fsmdp.model.tables import Floats
from fsmdp.model.variables import Scope, Variable, as_names, find_positions, positions_by_name

FLOAT32_TOLERANCE = 1e-6
ROW_ROUNDING = 4 * float(np.finfo(np.float64).eps)
"""A row of n numbers that misses a sum of 1 by n times this or less is left as it is."""


@dataclass(frozen=True, slots=True, eq=False)
class Conditional(Compared):
    """How one variable or latent, or several jointly, is drawn in each group of actions."""

    children: tuple[str, ...]
    cases: tuple[Case, ...]

    def __init__(
        self, children: str | Variable | Sequence[str | Variable], cases: Case | Sequence[Case]
    ) -> None:
        object.__setattr__(self, "children", as_names(children, "children of a conditional"))
        object.__setattr__(self, "cases", as_cases(cases, self.label))

    @staticmethod
    def from_function(
        children: str | Variable | Sequence[str | Variable],
        parents: Sequence[str | Variable] | str | Variable = (),
        law: Callable[..., object] | None = None,
        drawn: Sequence[str | Variable] | str | Variable = (),
    ) -> Conditional:
        """A conditional that is the same under all listed actions, from a function of values.

        `law` is called with a value (or label) for each parent, then for each of `drawn`, and
        returns how the child is drawn: a value, the probability of 1 of a binary variable, or a
        dictionary of values and probabilities (tuples of values if there are several children).
        Where listed actions differ, write a `Case.from_function` for each group of them.
        """
        function = as_function(law, f"conditional of {show(children)}, law")
        return Conditional(children, Case.from_function(ANY, parents, function, drawn))

    def filled(self, known: Mapping[str, Variable]) -> Conditional:
        """The conditional with its tables: itself, unless functions are to fill some."""
        cases = filled_cases(self.cases, known, self.children, self.label)
        return self if cases is self.cases else Conditional(self.children, cases)

    @property
    def label(self) -> str:
        """How error messages name this conditional."""
        return "conditional of " + show_names(self.children)


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """P(children | parents, drawn) with names resolved to positions.

    `parents` are positions of inputs (current values, then action variables), sorted. `drawn` and
    the children are positions among all that is drawn in a step: next values first (same
    positions), then latents.
    """

    parents: Scope
    drawn: Scope
    table: Floats  # (*parent sizes, *drawn sizes, *children sizes)


@dataclass(frozen=True, slots=True, eq=False)
class Mechanism:
    """A conditional with names resolved: what is drawn, and the kernel of each action group."""

    children: tuple[int, ...]
    cases: Cases[Kernel]


@dataclass(frozen=True, slots=True, eq=False)
class Ancestry:
    """The mechanisms, each with its kernel in one action group, that some next values need."""

    mechanisms: tuple[int, ...]
    kernels: tuple[Kernel, ...]
    groups: tuple[int, ...]

    @property
    def parent_scope(self) -> Scope:
        """Every current variable that one of the kernels depends on."""
        return tuple(sorted({parent for kernel in self.kernels for parent in kernel.parents}))


@dataclass(frozen=True, slots=True, eq=False)
class Dynamics:
    """All mechanisms in the order in which they are drawn."""

    mechanisms: tuple[Mechanism, ...]
    drawn_sizes: tuple[int, ...]  # next values, then latents
    drawn_by: tuple[int, ...]  # mechanism that draws each of them
    n_actions: int  # that cases tell apart: one where actions are made of variables

    def ancestry(self, scope: Scope) -> Cases[Ancestry]:
        """What has to be drawn to know the next values of a scope, by action group.

        Only ancestors of the scope are touched, and actions that agree on all of them share a
        group. Cost: ancestors times the actions that are exceptions in one of them.
        """
        if not scope:
            return Cases((Ancestry((), (), ()),))
        possible = self._closure(
            scope, lambda index: [d for k in self.mechanisms[index].cases for d in k.drawn]
        )
        together = common_groups(
            [self.mechanisms[index].cases.map_with_group() for index in possible], self.n_actions
        )
        chosen = together.map(lambda items: dict(zip(possible, items, strict=True)))
        return chosen.map(lambda kernels: self._needed(scope, kernels)).merge_equal(
            lambda ancestry: (ancestry.mechanisms, ancestry.groups)
        )

    def groups(self, n_variables: int) -> tuple[Scope, ...]:
        """Variables that have something drawn in common, under whatever action, together.

        Next values of different groups are independent given the state and the action.
        """
        group_of = list(range(len(self.mechanisms)))

        def root(index: int) -> int:
            while group_of[index] != index:
                index = group_of[index]
            return index

        for index, mechanism in enumerate(self.mechanisms):
            for kernel in mechanism.cases:
                for drawn in kernel.drawn:
                    group_of[root(index)] = root(self.drawn_by[drawn])
        found: dict[int, list[int]] = {}
        for position in range(n_variables):
            found.setdefault(root(self.drawn_by[position]), []).append(position)
        return tuple(map(tuple, found.values()))

    def _closure(self, scope: Scope, drawn_of: Callable[[int], Sequence[int]]) -> tuple[int, ...]:
        """Mechanisms that draw the scope, what those depend on, and so on; in drawing order."""
        seen: set[int] = set()
        waiting = [self.drawn_by[position] for position in scope]
        while waiting:
            index = waiting.pop()
            if index not in seen:
                seen.add(index)
                waiting += [self.drawn_by[drawn] for drawn in drawn_of(index)]
        return tuple(sorted(seen))

    def _needed(self, scope: Scope, kernels: Mapping[int, tuple[int, Kernel]]) -> Ancestry:
        order = self._closure(scope, lambda index: kernels[index][1].drawn)
        return Ancestry(
            order,
            tuple(kernels[index][1] for index in order),
            tuple(kernels[index][0] for index in order),
        )


def resolve_dynamics(
    conditionals: Sequence[Conditional],
    variables: Sequence[Variable],
    latents: Sequence[Variable],
    action_positions: Mapping[str, int],
    action_variables: Sequence[Variable] = (),
) -> Dynamics:
    """Names to positions, with every check that a set of conditionals must pass.

    Parents are current values of state variables or, at the positions after them, the values that
    an action gives to its variables.
    """
    inputs = (*variables, *action_variables)
    current = positions_by_name(inputs)
    positions_by_name((*inputs, *latents))
    everything = (*variables, *latents)
    drawable = positions_by_name(everything)
    drawn_by: dict[int, int] = {}
    mechanisms = []
    for index, conditional in enumerate(conditionals):
        where = conditional.label
        if not conditional.children:
            raise ModelError(
                f"conditional number {index}: it draws nothing; expected at least one child, "
                "name it or remove the conditional."
            )
        children = find_positions(conditional.children, drawable, where)
        for child in children:
            if child in drawn_by:
                raise ModelError(
                    f"{where}: {show(everything[child].name)} is drawn a second time; expected one "
                    "conditional for each variable, remove or join one of them."
                )
        cases = partition(conditional.cases, action_positions, where)
        # Every case is checked, even one for ANY action where no action is left.
        kernels = {
            case: _resolve_kernel(
                case, children, where, current, drawable, drawn_by, everything, inputs
            )
            for case in conditional.cases
        }
        mechanisms.append(Mechanism(children, cases.map(kernels.__getitem__)))
        drawn_by.update(dict.fromkeys(children, index))
    missing = [everything[p].name for p in range(len(everything)) if p not in drawn_by]
    if missing:
        raise ModelError(
            f"no conditional draws {show_names(missing)}; expected one for each of the "
            f"{len(everything)} variables and latents, add it."
        )
    return Dynamics(
        tuple(mechanisms),
        tuple(variable.size for variable in everything),
        tuple(drawn_by[position] for position in range(len(everything))),
        len(action_positions),
    )


def _resolve_kernel(
    case: Case,
    children: tuple[int, ...],
    where: str,
    current: Mapping[str, int],
    drawable: Mapping[str, int],
    drawn_by: Mapping[int, int],
    everything: Sequence[Variable],
    inputs: Sequence[Variable],
) -> Kernel:
    where = f"{where}, {case.label}"
    for name in case.parents:
        if name not in current and name in drawable:
            raise ModelError(
                f"{where}, parents: {show(name)} is a latent, drawn within the step and forgotten; "
                "name it in drawn=, or make it a variable if it is to last."
            )
    parents = find_positions(case.parents, current, f"{where}, parents")
    drawn = find_positions(case.drawn, drawable, f"{where}, drawn")
    for position in drawn:
        if position not in drawn_by:
            raise ModelError(
                f"{where}: uses the value of {show(everything[position].name)} drawn in this step, "
                "which is not drawn yet; expected it among the conditionals before this one, "
                "move its conditional up."
            )
    drawn_sizes = (everything[p].size for p in (*drawn, *children))
    expected = (*(inputs[p].size for p in parents), *drawn_sizes)
    if case.table.shape != expected:
        found = show(case.table.shape) if case.table.size else "no table"
        raise ModelError(
            f"{where}: expected a table of shape {show(expected)} (axes: parents "
            f"{show(list(case.parents))}, drawn {show(list(case.drawn))}, then the children), "
            f"found {found}; reshape it."
        )
    return _with_sorted_axes(parents, drawn, _probabilities(case, len(children), where))


def _probabilities(case: Case, n_axes: int, where: str) -> Floats:
    rows = _rows(case.table, n_axes)
    names = [*case.parents, *case.drawn]
    if rows.min() < 0:
        low = rows.min(axis=-1)
        row = np.unravel_index(int(low.argmin()), low.shape) if low.shape else ()
        raise ModelError(
            f"{where}, {_row_text(names, row)}: a probability is {low.min():.6g}, expected at "
            "least 0; correct the entry."
        )
    with np.errstate(over="ignore"):  # an endless sum is refused below like any other
        sums = rows.sum(axis=-1)
    error = np.abs(sums - 1)
    worst = float(error.max())
    # Less what the sum may be off by: a checker in exact arithmetic accepts what is accepted here.
    if worst > ROW_TOLERANCE - ROW_ROUNDING * rows.shape[-1]:
        row = np.unravel_index(int(error.argmax()), error.shape) if error.shape else ()
        raise ModelError(
            f"{where}, {_row_text(names, row)}: probabilities sum to {float(sums[row]):.10g}, "
            f"expected 1; normalise the row{float32_hint(case.table, worst)}."
        )
    return normalised(case.table, n_axes) if worst else case.table


def _rows(table: Floats, n_axes: int) -> Floats:
    return table.reshape(*table.shape[: table.ndim - n_axes], -1)


def normalised(table: Floats, n_axes: int = 1) -> Floats:
    """The table with every row, the last `n_axes` axes, divided by its sum.

    A row of probabilities means its entries divided by their sum, exactly; rows that sum to 1 up
    to rounding are kept bit by bit, so that a model that is saved and loaded stays the same.
    """
    rows = _rows(table, n_axes)
    sums = rows.sum(axis=-1, keepdims=True)
    off = np.abs(sums - 1) > ROW_ROUNDING * rows.shape[-1]
    if not off.any():
        return table
    return np.where(off, rows / sums, rows).reshape(table.shape)


def float32_hint(table: Floats, error: float) -> str:
    """What to add to a message when rows fail only by the precision in which they were given."""
    if error > FLOAT32_TOLERANCE or (table.astype(np.float32) != table).any():
        return ""
    return " (float32? give float64)"


def _row_text(names: Sequence[str], row: Sequence[SupportsInt]) -> str:
    if not names:
        return "no parents"
    inside = ", ".join(f"{name}={int(value)}" for name, value in zip(names, row, strict=True))
    return f"parents ({clip(inside)})"


def _with_sorted_axes(parents: tuple[int, ...], drawn: tuple[int, ...], table: Floats) -> Kernel:
    parent_axes = sorted(range(len(parents)), key=parents.__getitem__)
    drawn_axes = sorted(range(len(drawn)), key=drawn.__getitem__)
    axes = [
        *parent_axes,
        *(len(parents) + axis for axis in drawn_axes),
        *range(len(parents) + len(drawn), table.ndim),
    ]
    return Kernel(
        tuple(parents[axis] for axis in parent_axes),
        tuple(drawn[axis] for axis in drawn_axes),
        np.transpose(table, axes),
    )
