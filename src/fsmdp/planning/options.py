"""Kinds of options: a planner's fields are of these types, and are checked by them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Annotated, Any, get_type_hints

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import as_number, as_whole, show


@dataclass(frozen=True, slots=True)
class Number:
    """A finite number above `above`, or from `least` on; None where it may be left out."""

    above: float | None = None
    least: float | None = None
    optional: bool = False

    def check(self, name: str, value: object) -> None:
        """Refuse anything else."""
        if value is None and self.optional:
            return
        number = as_number(
            value,
            name,
            "give a plain one, or leave it out" if self.optional else "give a small one",
        )
        if self.least is not None and number < self.least:
            raise ModelError(f"{name}: expected at least {self.least:g}, found {show(value)}.")
        if self.above is not None and number <= self.above:
            raise ModelError(f"{name}: expected more than {self.above:g}, found {show(value)}.")


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number from `least` on; None where it may be left out."""

    least: int
    optional: bool = False

    def check(self, name: str, value: object) -> None:
        """Refuse anything else."""
        if value is None and self.optional:
            return
        as_whole(value, name, self.least)


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of a few words."""

    words: Sequence[str]

    def check(self, name: str, value: object) -> None:
        """Refuse anything else."""
        if value not in self.words:
            listed = ", ".join(map(repr, self.words))
            raise ModelError(f"{name}: expected {listed}, found {show(value)}.")


@dataclass(frozen=True, slots=True)
class Switch:
    """True or false."""

    def check(self, name: str, value: object) -> None:
        """Refuse anything else."""
        if not isinstance(value, bool):
            raise ModelError(f"{name}: expected True or False, found {show(value)}.")


OnOff = Annotated[bool, Switch()]
Seconds = Annotated[float | None, Number(least=0, optional=True)]
Tolerance = Annotated[float, Number(above=0)]
Size = Annotated[float | None, Number(above=0, optional=True)]
Fraction = Annotated[float | None, Number(least=0, optional=True)]
Rounds = Annotated[int | None, Whole(0, optional=True)]
Count = Annotated[int, Whole(1)]
Seed = Annotated[int, Whole(0)]
Solver = Annotated[str, OneOf(("auto", "simplex", "interior"))]


def check_options(planner: Any) -> None:
    """Refuse options of the wrong kind or out of range, by the types of a planner's fields."""
    if not is_dataclass(planner):
        return
    hints = get_type_hints(type(planner), include_extras=True)
    for field in fields(planner):
        for kind in getattr(hints[field.name], "__metadata__", ()):
            kind.check(field.name, getattr(planner, field.name))
