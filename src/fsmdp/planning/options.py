"""Options of planners, checked before anything is built."""

from __future__ import annotations

from collections.abc import Iterable

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import as_number, as_whole, show

SOLVERS = ("auto", "simplex", "interior")


def check_options(planner: object, names: Iterable[str]) -> None:
    """Refuse options of the wrong kind or out of range."""
    for name in names:
        value = getattr(planner, name)
        if name in ("max_rounds", "iteration_limit"):
            as_whole(value, name, 1)
        elif name == "solver" and value not in SOLVERS:
            raise ModelError(f"solver: expected {_listed(SOLVERS)}, found {show(value)}.")
        elif name in ("time_limit", "w_norm", "radius", "tolerance", "epsilon"):
            _check_number(name, value)


def _check_number(name: str, value: object) -> None:
    may_be_left_out = name in ("time_limit", "w_norm", "radius")
    if value is None and may_be_left_out:
        return
    number = as_number(value, name, "leave it out" if may_be_left_out else "give a small one")
    if number < 0 or (number == 0 and name != "time_limit"):
        least = "at least 0" if name == "time_limit" else "more than 0"
        raise ModelError(f"{name}: expected {least}, found {show(value)}.")


def _listed(words: Iterable[str]) -> str:
    return ", ".join(repr(word) for word in words)
