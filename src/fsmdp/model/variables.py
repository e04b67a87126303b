"""Variables, and scopes: sorted positions of variables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from operator import mul

import numpy as np
from numpy.typing import NDArray

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import as_items, as_name, as_tuple, is_whole, show, show_names

Scope = tuple[int, ...]
"""Sorted positions of variables in the model's variable order."""

LARGEST_VARIABLE = 2**16


@dataclass(frozen=True, slots=True)
class Variable:
    """A named quantity with finitely many values 0, 1, ..., size - 1.

    `labels` say what each value stands for, if they are given. They change nothing: variables that
    differ in them alone are equal.
    """

    name: str
    size: int
    labels: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        where = f"variable {show(self.name)}"
        object.__setattr__(self, "name", as_name(self.name, where))
        if not is_whole(self.size) or self.size < 1:
            raise ModelError(
                f"{where}: size must be a whole number of at least 1, found {show(self.size)}; "
                "2 makes it binary."
            )
        if self.size > LARGEST_VARIABLE:
            raise ModelError(
                f"{where}: size {show(self.size)} is above the limit {LARGEST_VARIABLE}; split it "
                "into several variables."
            )
        object.__setattr__(self, "size", int(self.size))
        if self.labels:
            labels = as_items(
                self.labels, f"{where}, labels", "a list of texts", "give them in order"
            )
            if len(labels) != self.size or len(set(labels)) < self.size:
                raise ModelError(
                    f"{where}: expected {self.size} different labels, one for each value, found "
                    f"{show(list(labels))}."
                )
            object.__setattr__(self, "labels", tuple(as_name(one, where) for one in labels))


def as_variables(value: object, where: str) -> tuple[Variable, ...]:
    """Variables in order, no name twice."""
    variables = as_tuple(value, Variable, where, "give [Variable(name, size), ...]")
    positions_by_name(variables)
    return variables


def as_names(value: object, where: str) -> tuple[str, ...]:
    """Names of variables in order; a Variable stands for its name, a single one for a list."""
    if isinstance(value, str | Variable):
        value = (value,)
    names = as_items(value, where, "a list of names", "give them in a fixed order, as a list")
    if all(type(name) is str and name.isascii() and name for name in names):
        return names  # as in nearly all of the many lists of a model
    return tuple(_as_variable_name(name, where) for name in names)


def _as_variable_name(name: object, where: str) -> str:
    if isinstance(name, Variable):
        return name.name
    if is_whole(name):
        raise ModelError(
            f"{where}: expected the name of a variable, found the number {show(name)}; write its "
            "name (positions stand only in the scope of a Table or of a Basis)."
        )
    return as_name(name, where)


def positions_by_name(variables: Sequence[Variable]) -> dict[str, int]:
    """Where each name stands, refusing names that stand twice."""
    positions: dict[str, int] = {}
    for position, variable in enumerate(variables):
        if variable.name in positions:
            raise ModelError(
                f"variable {show(variable.name)} stands at positions {positions[variable.name]} "
                f"and {position}; expected each name once, rename one of them."
            )
        positions[variable.name] = position
    return positions


def find_positions(
    names: Iterable[str | int | Variable], positions: Mapping[str, int], where: str
) -> tuple[int, ...]:
    """Positions of the variables named, in the order given; a position stands for itself."""
    found: dict[int, None] = {}
    for name in names:
        known = positions.get(name) if type(name) is str else None
        position = _find_position(name, positions, where) if known is None else known
        if position in found:
            raise ModelError(f"{where}: {_text(name)} is listed twice; list each variable once.")
        found[position] = None
    return tuple(found)


def _find_position(name: str | int | Variable, positions: Mapping[str, int], where: str) -> int:
    if isinstance(name, Variable):
        name = name.name
    if isinstance(name, str):
        if name in positions:
            return positions[name]
    elif is_whole(name) and 0 <= name < len(positions):
        return int(name)
    raise ModelError(
        f"{where}: unknown variable {_text(name)}; expected one of {show_names(positions)}."
    )


def _text(name: str | int | Variable) -> str:
    return show(name.name if isinstance(name, Variable) else name)


State = Sequence[int] | Mapping[str, int]
"""Values in the order of the variables, or by their names."""


def check_state(state: State, variables: Sequence[Variable]) -> tuple[int, ...]:
    """The state as a tuple of integers, or a ModelError saying what is wrong with it."""
    if isinstance(state, Mapping):
        state = _in_order(state, variables)
    values = as_items(
        state, "state", f"{len(variables)} values, one per variable", "give them in variable order"
    )
    if len(values) != len(variables):
        raise ModelError(
            f"state: expected {len(variables)} values, one per variable, found "
            f"{len(values)}; give them in variable order."
        )
    for variable, value in zip(variables, values, strict=True):
        if not is_whole(value) or not 0 <= value < variable.size:
            raise ModelError(
                f"state: {show(variable.name)} is {show(value)}, expected a whole number from 0 to "
                f"{variable.size - 1}."
            )
    return tuple(int(value) for value in values)


def _in_order(state: Mapping[str, int], variables: Sequence[Variable]) -> list[int]:
    """Values by name in the order of the variables; each must stand there, and no other."""
    names = [variable.name for variable in variables]
    for found, expected, what in ((state, set(names), "unknown"), (names, state, "no value for")):
        for name in found:
            if name not in expected:
                raise ModelError(
                    f"state: {what} variable {show(name)}; expected a value for each of "
                    f"{show_names(names)}."
                )
    return [state[name] for name in names]


def table_size(sizes: Iterable[int]) -> int:
    """Number of assignments, as an exact integer of any length."""
    return math.prod(sizes)


def state_strides(sizes: Sequence[int]) -> NDArray[np.int64]:
    """What each variable's value counts for in the number of a state, the last one fastest.

    For models whose states can be numbered; others have no tables by state.
    """
    return np.array([*accumulate(reversed(sizes[1:]), mul, initial=1)][::-1], dtype=np.int64)
