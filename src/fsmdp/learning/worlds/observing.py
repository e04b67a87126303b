"""Reading states and rewards off what an environment shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import is_number, show
from fsmdp.learning.worlds.matching import check_sizes
from fsmdp.model.lookup import Integers
from fsmdp.model.variables import Variable, table_size

Reader = Callable[[Any], Integers]
"""From an observation to a state, or a ModelError."""


def reader_of(space: Any, variables: Sequence[Variable]) -> Reader:
    """How to read a state off an observation of a space; a ModelError if they do not fit."""
    kind = type(space).__name__
    if kind == "MultiDiscrete" and len(space.shape or ()) == 1:
        check_sizes("the environment", [int(size) for size in space.nvec], variables)
        first = np.asarray(space.start, dtype=np.int64)
        return _Reader(variables, first.shape, lambda seen: seen - first)
    if kind == "Discrete":
        return _Reader(variables, (), _digits(int(space.start), int(space.n), variables))
    raise ModelError(
        f"the environment's observations are {show(space)}; expected MultiDiscrete (one number for "
        "each variable) or Discrete, wrap it (gymnasium.ObservationWrapper)."
    )


def _digits(first: int, n: int, variables: Sequence[Variable]) -> Callable[[Integers], Integers]:
    """From one number to the values of several variables, the last one fastest."""
    sizes = [variable.size for variable in variables]
    if table_size(sizes) != n:
        raise ModelError(
            f"the environment has {n} states in one number, the structure's variables have "
            f"{show(table_size(sizes))} joint values; use one variable of size {n}, or several "
            "whose sizes multiply to it (the last one runs fastest)."
        )
    strides = np.cumprod([1, *reversed(sizes[1:])])[::-1]
    inner = np.array(sizes[1:], dtype=np.int64)

    def split(seen: Integers) -> Integers:
        digits: Integers = (seen - first) // strides
        digits[1:] %= inner  # the first is left whole, so that what is out of range shows there
        return digits

    return split


class _Reader:
    """Reads whole numbers of one shape, and checks them against the variables."""

    def __init__(
        self,
        variables: Sequence[Variable],
        shape: tuple[int, ...],
        to_state: Callable[[Integers], Integers],
    ) -> None:
        self._variables = variables
        self._sizes = np.array([variable.size for variable in variables])
        self._shape, self._to_state = shape, to_state

    def __call__(self, observation: Any) -> Integers:
        state = self._to_state(self._whole_numbers(observation))
        wrong = (state < 0) | (state >= self._sizes)
        if wrong.any():
            at = int(wrong.argmax())
            variable = self._variables[at]
            raise ModelError(
                f"the environment shows value {state[at]} of {show(variable.name)}, the structure "
                f"expects 0 to {variable.size - 1}; enlarge the variable or shift the values."
            )
        return state

    def _whole_numbers(self, observation: Any) -> Integers:
        try:
            seen = np.asarray(observation)
            whole = seen if seen.dtype.kind in "iu" else np.asarray(seen, dtype=np.float64)
            if whole.shape == self._shape and (np.rint(whole) == whole).all():
                return whole.astype(np.int64)
        except (TypeError, ValueError, OverflowError):
            pass
        expected = f"{self._shape[0]} whole numbers" if self._shape else "one whole number"
        raise ModelError(
            f"the environment shows {show(observation)}, expected {expected} as its observation "
            "space says; round or wrap it (gymnasium.ObservationWrapper)."
        )


def read_number(value: Any, what: str) -> float:
    """A finite number, or a ModelError."""
    scalar = value.item() if isinstance(value, np.ndarray) and value.size == 1 else value
    if is_number(scalar) and np.isfinite(scalar):
        return float(scalar)
    raise ModelError(
        f"the environment's {what} is {show(value)}, expected a finite number; fix it or wrap it."
    )
