"""Kinds of options that are written as text: what messages expect, and how it is read."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from fsmdp.foundation.checks import show, show_names


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


def _read_whole(text: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        raise ValueError(text)
    return int(text)


def _read_steps(text: str) -> int | None:
    return None if text == "none" else _read_whole(text)


def _read_word(text: str) -> str:
    if not re.match(r"[A-Za-z]", text):
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


def read_not_negative(text: str) -> float:
    """A number that is 0 or above; a ValueError if it is none."""
    number = _read_number(text)
    if number < 0:
        raise ValueError(text)
    return number


def _read_probability(text: str) -> float:
    number = _read_positive(text)
    if number >= 1:
        raise ValueError(text)
    return number


def _switch(yes: str, no: str) -> Reading:
    words = {yes: True, no: False}

    def read(text: str) -> bool:
        if text not in words:
            raise ValueError(text)
        return words[text]

    return Reading(f"{yes} or {no}", read)


WHOLE = Reading("a whole number", _read_whole)
STEPS = Reading("a whole number, or none for an infinite horizon", _read_steps)
NUMBER = Reading("a number", _read_number)
POSITIVE = Reading("a number above 0", _read_positive)
NOT_NEGATIVE = Reading("a number that is not negative", read_not_negative)
PROBABILITY = Reading("a probability between 0 and 1", _read_probability)
SWITCH = _switch("true", "false")
YES_OR_NO = _switch("yes", "no")
WORD = Reading("a word", _read_word)


class Document(BaseModel):
    """Keys and kinds as declared, nothing else."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown_keys(cls, data: Any) -> Any:
        # One message for the first unknown key; pydantic would make one for each of a million.
        if isinstance(data, dict) and cls.model_config.get("extra") == "forbid":
            for key in data:
                if key not in cls.model_fields:
                    known = show_names(cls.model_fields)
                    raise ValueError(f"unknown key {show(key)}; expected {known}")
        return data


def explain(error: ValidationError, nothing: str = "file") -> str:
    """Where a document is wrong, what was expected and what was found."""
    first = error.errors(include_url=False, include_context=False)[0]
    where = "".join(
        f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"]
    ).lstrip(".")
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] == "model_type":
        message = "expected an object"
    shown = "" if first["type"] in ("value_error", "missing") else f", found {show(first['input'])}"
    count = error.error_count() - 1
    more = f" ({count} more)" if count else ""
    return f"{where or nothing}: {message}{shown}{more}."
