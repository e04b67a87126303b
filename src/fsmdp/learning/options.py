"""Options of learners, checked before anything is built."""

from __future__ import annotations

from collections.abc import Iterable

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import as_whole, is_number, show
from fsmdp.model.structure import Structure

LARGEST = 1e12
"""The largest number that makes sense as an option."""

LARGEST_SEED = 2**128


def check_structure(name: str, structure: object) -> Structure:
    """Refuse anything but a Structure with a finite horizon."""
    if not isinstance(structure, Structure):
        raise ModelError(
            f"{name}: expected a Structure, found {type(structure).__name__} {show(structure)}; "
            "use model.structure(basis) or Structure.from_parents(...)."
        )
    if structure.horizon is None:
        raise ModelError(
            f"{name}: a learner works through episodes of a finite horizon and this structure's is "
            "None; give a horizon."
        )
    return structure


def check_stated(name: str, structure: object) -> Structure:
    """Refuse a structure that states no independence."""
    found = check_structure(name, structure)
    if not found.independent:
        raise ModelError(
            f"{name}: it counts groups of variables that are drawn independently, and the "
            "structure states none; state them (independent=...), or use another learner."
        )
    return found


def as_seed(seed: object) -> int:
    """A seed of a random generator."""
    return as_whole(seed, "seed", 0, LARGEST_SEED)


def as_probability(value: object, where: str = "delta") -> float:
    """A number strictly between 0 and 1: how often something may fail."""
    if is_number(value) and 0 < value < 1:
        return float(value)
    raise ModelError(
        f"{where}: expected a probability between 0 and 1, found {show(value)}; 0.05 is usual."
    )


def as_positive(value: object, where: str, remedy: str) -> float:
    """A number above 0, small enough to be multiplied and added without overflow."""
    if is_number(value) and 0 < value <= LARGEST:
        return float(value)
    raise ModelError(
        f"{where}: expected a number above 0 and at most {LARGEST:g}, found {show(value)}; "
        f"{remedy}."
    )


def as_not_negative(value: object, where: str, remedy: str) -> float:
    """A number that is 0 or above, and as small as for `as_positive`."""
    if is_number(value) and 0 <= value <= LARGEST:
        return float(value)
    raise ModelError(
        f"{where}: expected a number from 0 to {LARGEST:g}, found {show(value)}; {remedy}."
    )


def as_scale(scale: object) -> float:
    """What squared radii are multiplied by."""
    return as_positive(scale, "scale", "1 is the theory's")


def as_choice(value: object, where: str, choices: Iterable[str]) -> str:
    """One of a few names."""
    names = list(choices)
    if isinstance(value, str) and value in names:
        return value
    raise ModelError(
        f"{where}: expected one of {', '.join(names)}, found {show(value)}; choose one."
    )


def heuristic_label(heuristic: bool, scale: float) -> str:
    """How a description says that the theory does not cover a learner: nothing if it does."""
    if not heuristic:
        return ""
    return ", heuristic" if scale == 1.0 else f", heuristic: scale {scale:g}"
