"""Variables, and scopes: sorted positions of variables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import TypeGuard

from fsmdp.errors import ModelError

Scope = tuple[int, ...]
"""Sorted positions of variables in the model's variable order."""

LARGEST_VARIABLE = 2**16


@dataclass(frozen=True, slots=True)
class Variable:
    """A named quantity with finitely many values 0, 1, ..., size - 1."""

    name: str
    size: int

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise ModelError(
                f"variable {self.name!r}: a name is a non-empty string, found {self.name!r}; "
                "name the variable."
            )
        if not is_whole(self.size) or self.size < 1:
            raise ModelError(
                f"variable {self.name!r}: size must be a whole number of at least 1, "
                f"found {self.size!r}; 2 makes it binary."
            )
        if self.size > LARGEST_VARIABLE:
            raise ModelError(
                f"variable {self.name!r}: size {self.size} is above the limit "
                f"{LARGEST_VARIABLE}; split it into several variables."
            )
        object.__setattr__(self, "size", int(self.size))


def is_whole(value: object) -> TypeGuard[int]:
    """Whether something is an integer, numpy's included; truth values are not."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_number(value: object) -> TypeGuard[float]:
    """Whether something is a real number, numpy's included; truth values are not."""
    return isinstance(value, Real) and not isinstance(value, bool)


def positions_by_name(variables: Sequence[Variable]) -> dict[str, int]:
    """Where each name stands, refusing names that stand twice."""
    positions: dict[str, int] = {}
    for position, variable in enumerate(variables):
        if variable.name in positions:
            raise ModelError(
                f"variable {variable.name!r} stands at positions {positions[variable.name]} and "
                f"{position}; expected each name once, rename one of them."
            )
        positions[variable.name] = position
    return positions


def find_positions(
    names: Iterable[str | int | Variable], positions: Mapping[str, int], where: str
) -> tuple[int, ...]:
    """Positions of the variables named, in the order given; a position stands for itself."""
    found: list[int] = []
    for name in names:
        found.append(_find_position(name, positions, where))
    if len(set(found)) != len(found):
        twice = next(
            name for name in names if found.count(_find_position(name, positions, where)) > 1
        )
        raise ModelError(f"{where}: {_text(twice)} is listed twice; list each variable once.")
    return tuple(found)


def _find_position(name: str | int | Variable, positions: Mapping[str, int], where: str) -> int:
    if isinstance(name, Variable):
        name = name.name
    if isinstance(name, str):
        if name in positions:
            return positions[name]
    elif is_whole(name) and 0 <= name < len(positions):
        return int(name)
    known = ", ".join(list(positions)[:8]) + (", ..." if len(positions) > 8 else "")
    raise ModelError(f"{where}: unknown variable {_text(name)}; expected one of {known or 'none'}.")


def _text(name: str | int | Variable) -> str:
    return repr(name.name if isinstance(name, Variable) else name)


def check_state(state: Sequence[int], variables: Sequence[Variable]) -> tuple[int, ...]:
    """The state as a tuple of integers, or a ModelError saying what is wrong with it."""
    if len(state) != len(variables):
        raise ModelError(
            f"state: expected {len(variables)} values, one per variable, found "
            f"{len(state)}; give them in variable order."
        )
    for variable, value in zip(variables, state, strict=True):
        if not is_whole(value) or not 0 <= value < variable.size:
            raise ModelError(
                f"state: {variable.name!r} is {value}, expected a whole number from 0 to "
                f"{variable.size - 1}."
            )
    return tuple(int(value) for value in state)


def table_size(sizes: Iterable[int]) -> int:
    """Number of assignments, as an exact integer of any length."""
    return math.prod(sizes)
