"""Variables, and scopes: sorted positions of variables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from operator import mul
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import as_items, as_name, as_tuple, clip, is_whole, show, show_names

Scope = tuple[int, ...]
"""Sorted positions of variables in the model's variable order."""

LARGEST_VARIABLE = 2**16


@dataclass(frozen=True, slots=True, init=False)
class Variable:
    """A named quantity with finitely many values 0, 1, ..., size - 1.

    A list of labels may stand in place of the size: `Variable("tank", ["empty", "half", "full"])`.
    They say what the values stand for, in messages, files and functions that fill tables. They
    change nothing else: variables that differ in them alone are equal.
    """

    name: str
    size: int
    labels: tuple[str, ...] = field(compare=False)

    def __init__(self, name: str, size: int | Sequence[str], labels: Sequence[str] = ()) -> None:
        where = f"variable {show(name)}"
        object.__setattr__(self, "name", as_name(name, where))
        if isinstance(size, list | tuple) and not labels:
            labels = size
            size = len(labels)
        if not is_whole(size) or size < 1:
            raise ModelError(
                f"{where}: size must be a whole number of at least 1, found {show(size)}; 2 makes "
                "it binary, a list of labels names its values."
            )
        if size > LARGEST_VARIABLE:
            raise ModelError(
                f"{where}: size {show(size)} is above the limit {LARGEST_VARIABLE}; split it "
                "into several variables."
            )
        object.__setattr__(self, "size", int(size))
        object.__setattr__(self, "labels", _as_labels(labels, int(size), where))

    def text(self, value: int) -> str:
        """A value as messages write it: its label, if it has one."""
        return self.labels[value] if self.labels else str(int(value))

    def find(self, value: object) -> int | None:
        """The value that a whole number or a label stands for; None if there is none."""
        if is_whole(value):
            return int(value) if 0 <= value < self.size else None
        known = isinstance(value, str) and value in self.labels
        return self.labels.index(value) if known else None

    def as_json(self) -> dict[str, Any]:
        """Plain values, as they stand in files; labels where it has some."""
        found: dict[str, Any] = {"name": self.name, "size": self.size}
        return found | ({"labels": list(self.labels)} if self.labels else {})

    @property
    def expected(self) -> str:
        """What messages say the values are."""
        numbers = f"a whole number from 0 to {self.size - 1}"
        return f"{numbers} or one of {show_names(self.labels)}" if self.labels else numbers


def _as_labels(labels: object, size: int, where: str) -> tuple[str, ...]:
    if not labels:
        return ()
    given = as_items(labels, f"{where}, labels", "a list of texts", "give them in order")
    names = tuple(as_name(one, f"{where}, labels") for one in given)
    if len(names) != size or len(set(names)) < size:
        raise ModelError(
            f"{where}: expected {size} different labels, one for each value, found "
            f"{show(list(names))}."
        )
    return names


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


Value = int | str
"""A value of a variable: its number or its label."""

State = Sequence[Value] | Mapping[str, Value]
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
    found = []
    for variable, given in zip(variables, values, strict=True):
        value = variable.find(given)
        if value is None:
            raise ModelError(
                f"state: {show(variable.name)} is {show(given)}, expected {variable.expected}."
            )
        found.append(value)
    return tuple(found)


def show_state(state: Sequence[int], variables: Sequence[Variable]) -> str:
    """How messages write a state: its values, with names where some of them have labels."""
    values = [int(value) for value in state]
    if not any(variable.labels for variable in variables):
        return show(tuple(values))
    return f"({clip(show_assignment(values, variables))})"


def show_assignment(values: Iterable[int], variables: Iterable[Variable]) -> str:
    """Values with the names of their variables: tank=full, pump=1."""
    pairs = zip(variables, values, strict=True)
    return ", ".join(f"{variable.name}={variable.text(value)}" for variable, value in pairs)


def _in_order(state: Mapping[str, Value], variables: Sequence[Variable]) -> list[Value]:
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
