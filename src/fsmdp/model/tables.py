"""Tables: a scope and one number per assignment of its variables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import as_items, as_name, clip, is_whole, show
from fsmdp.foundation.equality import Compared
from fsmdp.model.functions import as_function, filled
from fsmdp.model.variables import Scope, Variable, find_positions, positions_by_name

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]
AnyArray = NDArray[Any]


class Rebuilt:
    """Pickled and copied through its constructor, so that copies of arrays are read-only too."""

    __slots__ = ()

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        given = [field for field in fields(self) if field.init]  # type: ignore[arg-type]
        values = tuple(getattr(self, field.name) for field in given if not field.kw_only)
        named = {field.name: getattr(self, field.name) for field in given if field.kw_only}
        return (partial(type(self), **named) if named else type(self)), values


NOT_FILLED: Floats = np.zeros(0)
"""Values of a table that a function is still to fill."""
NOT_FILLED.flags.writeable = False


def read_only(array: AnyArray) -> AnyArray:
    """The same numbers as a view that cannot be written to."""
    if not array.flags.writeable:
        return array
    view = array.view()
    view.flags.writeable = False
    return view


def read_only_array(values: ArrayLike, where: str) -> Floats:
    """A read-only copy of finite real numbers, truth values being 0 and 1; all else is refused."""
    if isinstance(values, np.ma.MaskedArray):
        raise ModelError(
            f"{where}: expected numbers, found a masked array, whose hidden entries would count; "
            "fill it with .filled(...)."
        )
    try:
        array = np.array(values)
    except (ValueError, TypeError, OverflowError) as error:
        raise ModelError(
            f"{where}: expected a rectangular array of numbers, found something else "
            f"({clip(str(error))}); give nested lists of equal length."
        ) from None
    if array.dtype.kind not in "biuf":
        raise ModelError(
            f"{where}: expected numbers, found {show(values)} (entries of type {array.dtype}); "
            "give integers or floats."
        )
    array = array.astype(np.float64)
    if not np.isfinite(array).all():
        index = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ModelError(
            f"{where}: entry {show(index)} is {array[index]}, expected a finite number; replace it."
        )
    array.flags.writeable = False
    return array


@dataclass(frozen=True, slots=True, eq=False)
class Table(Rebuilt, Compared):
    """A local function of the state: one number for each assignment of the scope.

    A scope may be written with names, Variables or positions, in any order; axes follow it.
    `bind` turns it into sorted positions of a model's variables.
    """

    scope: tuple[Any, ...]
    values: Floats

    def __init__(
        self, scope: Sequence[str | int | Variable] | str | int | Variable, values: ArrayLike
    ) -> None:
        entries = as_scope(scope, "scope of a table")
        where = f"table over {show(list(entries))}"
        array = read_only_array(values, where)
        if array.ndim != len(entries):
            raise ModelError(
                f"{where}: expected {len(entries)} axes, one per variable, found {array.ndim}; "
                "reshape the values."
            )
        if not array.size:
            raise ModelError(
                f"{where}: expected a number for each assignment, found none (shape "
                f"{show(array.shape)}); give the values."
            )
        object.__setattr__(self, "scope", entries)
        object.__setattr__(self, "values", array)

    @staticmethod
    def from_function(
        scope: Sequence[str | int | Variable] | str | int | Variable,
        function: Callable[..., object],
    ) -> FunctionTable:
        """The table of a function, called with a value (or label) for each variable of the scope.

        It returns a number or a truth value. Filled when it is bound to variables, as in a model.
        """
        return FunctionTable(scope, function)

    def bind(self, variables: Sequence[Variable]) -> Table:
        """The same table with its scope as sorted positions, its shape checked."""
        where = f"table over {show(list(self.scope))}"
        found = find_positions(self.scope, positions_by_name(variables), where)
        expected = tuple(variables[position].size for position in found)
        if self.values.shape != expected:
            raise ModelError(
                f"{where}: expected shape {show(expected)}, the sizes of its variables, "
                f"found {show(self.values.shape)}; reshape the values."
            )
        return sorted_table(found, self.values)

    def value(self, state: Sequence[int]) -> float:
        """The entry at a state (a whole state in variable order); the scope must be bound."""
        if not isinstance(state, tuple | list):
            state = as_items(state, "state", "one value per variable", "give them in order")
        index = []
        for position, size in zip(self.scope, self.values.shape, strict=True):
            if type(position) is not int:
                raise ModelError(
                    f"table over {show(list(self.scope))}: its scope has names, expected positions "
                    "to find the values in a state; call bind(model.variables) first."
                )
            if position >= len(state):
                raise ModelError(
                    f"state: expected a value at position {position}, found {len(state)} values; "
                    "give the whole state in variable order."
                )
            value = state[position]
            if not is_whole(value) or not 0 <= value < size:
                raise ModelError(
                    f"state: the value at position {position} is {show(value)}, expected a whole "
                    f"number from 0 to {size - 1}; correct it."
                )
            index.append(value)
        return float(self.values[tuple(index)])


@dataclass(frozen=True, slots=True, eq=False)
class FunctionTable(Table):
    """A table that is filled when it is bound, by a function of the values of its scope."""

    values: Floats = field(init=False)
    function: Callable[..., object]

    def __init__(self, scope: object, function: Callable[..., object]) -> None:
        object.__setattr__(self, "scope", as_scope(scope, "scope of a table"))
        object.__setattr__(self, "values", NOT_FILLED)
        object.__setattr__(self, "function", as_function(function, "table"))

    def bind(self, variables: Sequence[Variable]) -> Table:
        """The table itself, one number for each assignment of the scope."""
        where = f"table over {show(list(self.scope))}"
        found = find_positions(self.scope, positions_by_name(variables), where)
        return sorted_table(found, filled(self.function, [variables[p] for p in found], (), where))

    def value(self, state: Sequence[int]) -> float:
        """Refused: there are no entries before it is bound."""
        raise ModelError(
            f"table over {show(list(self.scope))}: it is not filled yet, expected a bound table to "
            f"look {show(state)} up; call bind(model.variables) first."
        )


def as_scope(scope: object, where: str) -> tuple[str | int, ...]:
    """Names and positions in order; a Variable stands for its name, a single entry for a list."""
    if isinstance(scope, str | Variable) or is_whole(scope):
        scope = (scope,)
    entries = as_items(
        scope, where, "a list of names, Variables or positions", "give them in the order of axes"
    )
    return tuple(_as_scope_entry(entry, where) for entry in entries)


def _as_scope_entry(entry: object, where: str) -> str | int:
    if isinstance(entry, Variable):
        return entry.name
    return int(entry) if is_whole(entry) else as_name(entry, where)


def sorted_table(scope: Sequence[int], values: Floats) -> Table:
    """A bound table whose axes are put into the order of positions."""
    axes = sorted(range(len(scope)), key=scope.__getitem__)
    return bound_table(tuple(scope[axis] for axis in axes), np.transpose(values, axes))


def bound_table(scope: Scope, values: Floats) -> Table:
    """A table of already sorted positions and checked values: no copy, no checks."""
    table = object.__new__(Table)
    object.__setattr__(table, "scope", scope)
    object.__setattr__(table, "values", read_only(values))
    return table
