"""Declarations and given values of a problem, checked where pyRDDLGym does not look."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from fsmdp.foundation.checks import is_number, is_whole, show, show_names
from fsmdp.interop.rddl.errors import InvalidError

PRIMITIVE = ("bool", "int", "real")
LARGEST_NUMBER = 2**53
"""Whole numbers up to here are exact as floating-point numbers."""


def check_declarations(model: Any) -> None:
    """Ranges are types, types have objects, and values given to fluents are of their range."""
    for name, objects in model.type_to_objects.items():
        if not objects:
            raise InvalidError(f"the type {name} has no objects; expected at least one, add some.")
    for name, range_name in model.variable_ranges.items():
        kind = model.variable_types[name]
        if kind != "next-state-fluent" and name.endswith("'"):
            raise InvalidError(f"the {kind} {name} is declared with a prime; remove the prime.")
        if range_name not in PRIMITIVE and range_name not in model.type_to_objects:
            raise InvalidError(
                f"the {kind} {name} has the range {show(range_name)}; expected bool, int, real or "
                f"a type ({show_names(model.type_to_objects)})."
            )
    for section, given in (
        ("init-state", model.state_fluents),
        ("non-fluents", model.non_fluents),
        ("default", _defaults(model)),
    ):
        for name, values in given.items():
            for value in values if isinstance(values, list) else [values]:
                _check_value(model, name, value, section)


def _defaults(model: Any) -> Mapping[str, Any]:
    return {name: value for name, value in model.variable_defaults.items() if value is not None}


def _check_value(model: Any, name: str, value: Any, section: str) -> None:
    range_name = model.variable_ranges[name]
    if range_name == "bool":
        fits, expected = isinstance(value, bool), "true or false"
    elif range_name == "int":
        fits, expected = is_whole(value) or isinstance(value, bool), "a whole number"
    elif range_name == "real":
        fits, expected = is_number(value) or isinstance(value, bool), "a number"
    else:
        objects = model.type_to_objects[range_name]
        fits = isinstance(value, str) and value in objects
        expected = f"one of {show_names(objects)}"
    if not fits:
        raise InvalidError(
            f"{section}: {name} is {show(value)}; expected {expected}, its range is {range_name}."
        )
    if not isinstance(value, str):
        check_number(value, f"{section}: {name}")


def check_number(value: bool | int | float, where: str) -> None:
    """Refuse a number that is not finite, or a whole one too large to be exact."""
    exact = abs(value) <= LARGEST_NUMBER if isinstance(value, int) else math.isfinite(value)
    if not exact:
        raise InvalidError(
            f"{where} is {show(value)}; expected a finite number, and a whole one of at most 2^53; "
            "correct it."
        )
