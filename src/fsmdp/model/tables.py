"""Tables: a scope and one number per assignment of its variables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fsmdp.errors import ModelError
from fsmdp.model.variables import Scope, Variable, find_positions, positions_by_name

Floats = NDArray[np.float64]


def read_only_array(values: ArrayLike, where: str) -> Floats:
    """A read-only copy of finite real numbers; anything else is refused."""
    try:
        array = np.array(values)
    except (ValueError, TypeError, OverflowError) as error:
        raise ModelError(
            f"{where}: expected a rectangular array of numbers, found something else ({error}); "
            "give nested lists of equal length."
        ) from None
    if array.dtype.kind not in "iuf":
        raise ModelError(
            f"{where}: expected numbers, found entries of type {array.dtype}; "
            "give integers or floats."
        )
    array = array.astype(np.float64)
    if not np.isfinite(array).all():
        index = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ModelError(
            f"{where}: entry {index} is {array[index]}, expected a finite number; replace it."
        )
    array.flags.writeable = False
    return array


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A local function of the state: one number for each assignment of the scope.

    A scope may be written with names, Variables or positions, in any order; axes follow it.
    `bind` turns it into sorted positions of a model's variables.
    """

    scope: tuple[Any, ...]
    values: Floats

    def __init__(self, scope: Sequence[str | int | Variable], values: ArrayLike) -> None:
        if isinstance(scope, str):
            scope = (scope,)
        array = read_only_array(values, f"table over {list(scope)}")
        if array.ndim != len(scope):
            raise ModelError(
                f"table over {list(scope)}: expected {len(scope)} axes, one per variable, "
                f"found {array.ndim}; reshape the values."
            )
        object.__setattr__(self, "scope", tuple(scope))
        object.__setattr__(self, "values", array)

    def bind(self, variables: Sequence[Variable]) -> Table:
        """The same table with its scope as sorted positions, its shape checked."""
        where = f"table over {list(self.scope)}"
        found = find_positions(self.scope, positions_by_name(variables), where)
        expected = tuple(variables[position].size for position in found)
        if self.values.shape != expected:
            raise ModelError(
                f"{where}: expected shape {expected}, the sizes of its variables, "
                f"found {self.values.shape}; reshape the values."
            )
        return sorted_table(found, self.values)

    def value(self, state: Sequence[int]) -> float:
        """The entry at a state (a whole state in variable order); the scope must be bound."""
        return float(self.values[tuple(state[position] for position in self.scope)])


def sorted_table(scope: Sequence[int], values: Floats) -> Table:
    """A bound table whose axes are put into the order of positions."""
    axes = tuple(int(axis) for axis in np.argsort(scope, kind="stable"))
    return bound_table(tuple(scope[axis] for axis in axes), np.transpose(values, axes))


def bound_table(scope: Scope, values: Floats) -> Table:
    """A table of already sorted positions and checked values: no copy, no checks."""
    table = object.__new__(Table)
    if values.flags.writeable:
        values = values.view()
        values.flags.writeable = False
    object.__setattr__(table, "scope", scope)
    object.__setattr__(table, "values", values)
    return table
