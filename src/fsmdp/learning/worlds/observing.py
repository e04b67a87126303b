"""Reading states off what an environment shows, and how it counts actions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import is_whole, show
from fsmdp.learning.worlds.matching import check_actions, check_sizes
from fsmdp.model.actions import Actions
from fsmdp.model.lookup import Integers
from fsmdp.model.variables import Variable, table_size

LARGEST = 2**53
"""Whole numbers below are the same as floats; values and states of environments are far below."""

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


def first_action(space: Any, actions: Sequence[str]) -> Any:
    """What to add to positions of actions, or to the values of action variables, in a space.

    A ModelError if the space has others.
    """
    if isinstance(actions, Actions):
        sizes = getattr(space, "nvec", None)
        if sizes is None or np.asarray(sizes).tolist() != list(actions.sizes):
            raise ModelError(
                f"the environment's actions are {show(space)}; expected MultiDiscrete with the "
                f"{len(actions.sizes)} sizes of the action variables, wrap it "
                "(gymnasium.ActionWrapper)."
            )
        return np.asarray(getattr(space, "start", 0))
    n_actions = getattr(space, "n", None)
    if not is_whole(n_actions):
        raise ModelError(
            f"the environment's actions are {show(space)}; expected Discrete, wrap it "
            "(gymnasium.ActionWrapper)."
        )
    check_actions("the environment", int(n_actions), actions)
    return int(getattr(space, "start", 0))


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
            small = (abs(whole) < LARGEST).all()  # and no NaN
            if whole.shape == self._shape and small and (np.rint(whole) == whole).all():
                return whole.astype(np.int64)
        except Exception:  # an object that is no array may raise anything when it is made one
            whole = None
        expected = f"{self._shape[0]} whole numbers" if self._shape else "one whole number"
        raise ModelError(
            f"the environment shows {show(observation)}, expected {expected} as its observation "
            "space says; round or wrap it (gymnasium.ObservationWrapper)."
        )
