"""Kinds of options that are written as text: what messages expect, and how it is read."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol


class Kind(Protocol):
    """What the text of an option may be."""

    @property
    def description(self) -> str:
        """How messages say what is expected."""
        ...

    @property
    def read(self) -> Callable[[str], object]:
        """From the text to what it means; a ValueError when the text is of another kind."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """A kind that is its description and its reader."""

    description: str
    read: Callable[[str], object]


@dataclass(frozen=True, slots=True, eq=False)
class OneOf:
    """One of a few names, as they stand when it is asked: a registry's, for one."""

    names: Iterable[str]

    @property
    def description(self) -> str:
        """All names."""
        return f"one of {', '.join(self.names)}"

    @property
    def read(self) -> Callable[[str], str]:
        """The name itself."""
        return self._read

    def _read(self, text: str) -> str:
        if text not in self.names:
            raise ValueError(text)
        return text


def _read_number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def _read_positive(text: str) -> float:
    number = _read_number(text)
    if number <= 0:
        raise ValueError(text)
    return number


def _read_probability(text: str) -> float:
    number = _read_positive(text)
    if number >= 1:
        raise ValueError(text)
    return number


def _read_switch(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError(text)
    return text == "true"


POSITIVE = Reading("a number above 0", _read_positive)
PROBABILITY = Reading("a probability between 0 and 1", _read_probability)
SWITCH = Reading("true or false", _read_switch)
