"""Options, declared by annotations: what they may be, how text is read, how values are checked."""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from inspect import Parameter, formatannotation, signature
from typing import Annotated, Any, Protocol, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import as_number, as_whole, show, show_names


class Kind(Protocol):
    """What an option may be, written as text or given as a value."""

    @property
    def description(self) -> str:
        """How messages say what is expected."""
        ...

    def read(self, text: str) -> Any:
        """From the text to what it means; a ValueError when the text is of another kind."""
        ...

    def check(self, name: str, value: object) -> None:
        """Refuse, with a ModelError, a value of another kind."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """A kind that is its description and its reader; values are what the reader gives."""

    description: str
    read: Callable[[str], Any]

    def check(self, name: str, value: object) -> None:
        """Refuse a value whose text the reader does not know."""
        try:
            self.read(str(value))
        except ValueError:
            raise ModelError(
                f"{name}: expected {self.description}, found {show(value)}; correct it."
            ) from None


@dataclass(frozen=True, slots=True)
class Number:
    """A finite number above `above` or from `least` on, below `below`; None if `optional`."""

    above: float | None = None
    least: float | None = None
    below: float | None = None
    optional: bool = False

    @property
    def description(self) -> str:
        """The range in words."""
        if self.below is not None:
            return f"a number between {self.above:g} and {self.below:g}"
        if self.least is not None:
            return (
                "a number that is not negative" if self.least == 0 else f"at least {self.least:g}"
            )
        return "a number" if self.above is None else f"a number above {self.above:g}"

    def read(self, text: str) -> float:
        """The number, if it is in the range."""
        number = float(text)
        if not math.isfinite(number) or self._outside(number):
            raise ValueError(text)
        return number

    def check(self, name: str, value: object) -> None:
        """Refuse anything else."""
        if value is None and self.optional:
            return
        remedy = "give a plain one, or leave it out" if self.optional else "give a small one"
        number = as_number(value, name, remedy)
        if self._outside(number):
            limit = (
                f"at least {self.least:g}"
                if self.least is not None
                else f"more than {self.above:g}"
                if self.below is None
                else self.description
            )
            raise ModelError(f"{name}: expected {limit}, found {show(value)}.")

    def _outside(self, number: float) -> bool:
        return (
            (self.least is not None and number < self.least)
            or (self.above is not None and number <= self.above)
            or (self.below is not None and number >= self.below)
        )


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number from `least` on, where there is a least; None if `optional`."""

    least: int | None = None
    optional: bool = False

    @property
    def description(self) -> str:
        """In words."""
        return "a whole number" if self.least is None else f"a whole number from {self.least} on"

    def read(self, text: str) -> int:
        """The number."""
        if not re.fullmatch(r"[+-]?[0-9]+", text):
            raise ValueError(text)
        number = int(text)
        if self.least is not None and number < self.least:
            raise ValueError(text)
        return number

    def check(self, name: str, value: object) -> None:
        """Refuse anything else."""
        if value is None and self.optional:
            return
        as_whole(value, name, -(2**62) if self.least is None else self.least)


@dataclass(frozen=True, slots=True, eq=False)
class OneOf:
    """One of a few names, as they stand when it is asked: a registry's, for one."""

    names: Iterable[str]

    @property
    def description(self) -> str:
        """All names."""
        return f"one of {', '.join(self.names)}"

    def read(self, text: str) -> str:
        """The name itself."""
        if text not in self.names:
            raise ValueError(text)
        return text

    def check(self, name: str, value: object) -> None:
        """Refuse anything else."""
        if not isinstance(value, str) or value not in self.names:
            listed = ", ".join(map(repr, self.names))
            raise ModelError(f"{name}: expected {listed}, found {show(value)}.")


@dataclass(frozen=True, slots=True)
class Switch:
    """True or false, written as two words."""

    yes: str = "true"
    no: str = "false"

    @property
    def description(self) -> str:
        """Both words."""
        return f"{self.yes} or {self.no}"

    def read(self, text: str) -> bool:
        """What the word means."""
        if text not in (self.yes, self.no):
            raise ValueError(text)
        return text == self.yes

    def check(self, name: str, value: object) -> None:
        """Refuse anything else."""
        if not isinstance(value, bool):
            raise ModelError(f"{name}: expected True or False, found {show(value)}.")


def _read_steps(text: str) -> int | None:
    return None if text == "none" else WHOLE.read(text)


def _read_word(text: str) -> str:
    if not re.match(r"[A-Za-z]", text):
        raise ValueError(text)
    return text


WHOLE = Whole()
STEPS = Reading("a whole number, or none for an infinite horizon", _read_steps)
NUMBER = Number()
POSITIVE = Number(above=0)
NOT_NEGATIVE = Number(least=0)
PROBABILITY = Reading("a probability between 0 and 1", Number(above=0, below=1).read)
SWITCH = Switch()
YES_OR_NO = Switch("yes", "no")
WORD = Reading("a word", _read_word)

Positive = Annotated[float, POSITIVE]
PositiveOrChosen = Annotated[float | None, POSITIVE]
Probability = Annotated[float, PROBABILITY]

PLAIN: Mapping[str, Kind] = {
    "int": WHOLE,
    "float": NUMBER,
    "bool": YES_OR_NO,
    "str": WORD,
    "int | None": STEPS,
}
"""Kinds of options that are annotated with a type alone."""


def declared_options(function: Callable[..., Any]) -> dict[str, tuple[Kind, Any]]:
    """Kind and default of each option that a signature declares, as Annotated[type, kind].

    Of a class whose constructor passes further options on, those of its base are options too.
    """
    made = function.__init__ if isinstance(function, type) else function  # type: ignore[misc]
    found: dict[str, tuple[Kind, Any]] = {}
    hints = get_type_hints(made, include_extras=True)
    passes_on = False
    for name, one in signature(made).parameters.items():
        passes_on |= one.kind is Parameter.VAR_KEYWORD
        for kind in getattr(hints.get(name), "__metadata__", ()):
            found[name] = (kind, None if one.default is Parameter.empty else one.default)
    if passes_on and isinstance(function, type):
        return found | {
            name: option
            for name, option in declared_options(function.__mro__[1]).items()
            if name not in found
        }
    return found


def plain_options(function: Callable[..., Any]) -> dict[str, Kind]:
    """Kind of each option of a function, declared as Annotated[type, kind] or by its type alone."""
    declared = declared_options(function)
    found = {}
    for name, one in signature(function).parameters.items():
        annotation = one.annotation
        text = annotation if isinstance(annotation, str) else formatannotation(annotation)
        kind = declared[name][0] if name in declared else PLAIN.get(text)
        if kind is not None:
            found[name] = kind
    return found


def check_options(options: Any) -> None:
    """Refuse options of the wrong kind or out of range, by the types of a dataclass's fields."""
    if not is_dataclass(options):
        return
    hints = get_type_hints(type(options), include_extras=True)
    for field in fields(options):
        for kind in getattr(hints[field.name], "__metadata__", ()):
            kind.check(field.name, getattr(options, field.name))


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
