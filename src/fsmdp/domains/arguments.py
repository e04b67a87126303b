"""Checks of what a domain's builder is given."""

from __future__ import annotations

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import is_number, is_whole, show


def check_whole(domain: str, name: str, value: object, least: int, most: int | None = None) -> None:
    """Refuse anything but a whole number of at least `least` and at most `most`."""
    if is_whole(value):
        if value >= least and (most is None or value <= most):
            return
        remedy = f"use {least} or more" if value < least else f"use {most} or fewer"
    else:
        remedy = f"give {name} as an integer"
    span = f"of at least {least}" if most is None else f"from {least} to {most}"
    raise ModelError(
        f"{domain}: {name} is {show(value)}, expected a whole number {span}; {remedy}."
    )


def check_probability(domain: str, name: str, value: object) -> None:
    """Refuse anything but a number from 0 to 1."""
    # The comparison also refuses NaN.
    if is_number(value) and 0 <= value <= 1:
        return
    raise ModelError(
        f"{domain}: {name} is {show(value)}, expected a probability from 0 to 1; correct it."
    )


def check_switch(domain: str, name: str, value: object) -> None:
    """Refuse anything but True and False."""
    if not isinstance(value, bool):
        raise ModelError(f"{domain}: {name} is {show(value)}, expected True or False; correct it.")
