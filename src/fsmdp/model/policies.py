"""Policies: what may be followed, and how to follow it one state at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from operator import mul
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from fsmdp.errors import PolicyError
from fsmdp.foundation.checks import show, show_count
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.variables import Variable

Integers = NDArray[np.int64]


@runtime_checkable
class ActsByState(Protocol):
    """Anything with an action for each state and step: an exact solution, a plan."""

    def action(self, state: Sequence[int], step: int = 1) -> str | int:
        """Name or position of the action to take."""
        ...


PolicyFunction = Callable[[tuple[int, ...], int], str | int]
Policy = ActsByState | PolicyFunction | str | NDArray[Any] | Sequence[Any]
"""A solution or plan, a function (state, step) -> action, an action's name, "random", or a table.

A table holds positions of actions: an integer array of shape (n_states,) or (horizon, n_states),
states in the order of `FlatMDP.states` (the last variable fastest), or with one axis per variable
instead of one for all states.
"""

RANDOM = "random"
SMALL_TABLE = 2**22

EXPECTED = (
    "a plan, an exact solution, a function (state, step) -> action, an integer table by state, "
    'the name of an action to repeat, or "random"'
)


def follow(model: FactoredMDP, policy: Policy) -> Callable[[tuple[int, ...], int], int] | None:
    """The policy as a function from (state, step) to an action's position; None for "random".

    An action's name is the policy that always takes it.
    """
    if isinstance(policy, str):
        if policy in model.actions:
            always = model.action_index(policy)
            return lambda state, step: always  # noqa: ARG005
        if policy == RANDOM:
            return None
        raise PolicyError(f"unknown policy {show(policy)}; expected {EXPECTED}.")
    if is_table(policy):
        table = policy_table(model, policy)
        strides = state_strides(model.sizes).tolist()
        return lambda state, step: int(
            table[min(step, len(table)) - 1, sum(map(mul, state, strides))]
        )
    check_origin(model, policy)
    chooses = policy.action if isinstance(policy, ActsByState) else policy
    if isinstance(policy, type) or not callable(chooses):
        what = f"the class {policy.__name__}" if isinstance(policy, type) else show(policy)
        raise PolicyError(f"{what} is no policy; expected {EXPECTED}.")
    return lambda state, step: model.action_index(chooses(state, step))


class Described(Protocol):
    """What a policy is for, be it a model or a structure."""

    @property
    def variables(self) -> tuple[Variable, ...]:
        """State variables, in order."""
        ...

    @property
    def actions(self) -> tuple[str, ...]:
        """Actions, in order."""
        ...

    @property
    def horizon(self) -> int | None:
        """Steps of an episode; None without end."""
        ...


def check_origin(model: Described, policy: object) -> None:
    """Refuse a solution or plan of another model: its tables would be read at the wrong places."""
    origin: Any = getattr(policy, "model", policy)
    if origin is model or isinstance(policy, type):
        return
    variables, actions = getattr(origin, "variables", None), getattr(origin, "actions", None)
    if not isinstance(variables, tuple) or not isinstance(actions, tuple):
        return  # not made for a model: nothing to compare
    horizon = getattr(origin, "horizon", model.horizon)
    what = f"the policy, a {type(policy).__name__}, is of another model"
    remedy = "solve or plan this model"
    for noun, found, expected in (
        ("variable", variables, model.variables),
        ("action", actions, model.actions),
    ):
        if len(found) != len(expected):
            raise PolicyError(
                f"{what}: it has {len(found)} {noun}s, expected {len(expected)}; {remedy}."
            )
        for position, (one, other) in enumerate(zip(found, expected, strict=True)):
            if one != other:
                raise PolicyError(
                    f"{what}: its {noun} number {position} is {show(one)}, expected "
                    f"{show(other)}; {remedy}."
                )
    if horizon != model.horizon:
        raise PolicyError(f"{what}: its horizon is {horizon}, expected {model.horizon}; {remedy}.")


def is_table(policy: object) -> bool:
    """Whether a policy is given as an array, or as what numpy makes one of."""
    return isinstance(policy, np.ndarray | list | tuple)


def policy_table(model: FactoredMDP, policy: object) -> Integers:
    """A policy given as a table: positions of actions, shape (1 or horizon, n_states)."""
    try:
        array = np.asarray(policy)
    except ValueError:
        array = np.asarray(None)
    if array.dtype.kind not in "iu" or isinstance(policy, np.ma.MaskedArray):
        raise PolicyError(
            f"policy table: expected whole numbers, the positions of actions, found "
            f"{show(policy)} (type {array.dtype}); give an integer array."
        )
    n_states, sizes = model.n_states, model.sizes
    steps = {1, model.horizon or 1}
    by_state = array.shape in ((n_states,), sizes)
    by_step = array.shape[:1] in {(n,) for n in steps} and array.shape[1:] in ((n_states,), sizes)
    if not (by_state or by_step):
        ends = "" if model.horizon is None else f" or ({model.horizon}, {show_count(n_states)})"
        raise PolicyError(
            f"policy table: expected shape ({show_count(n_states)},){ends}, one action for each "
            f"state, or one axis per variable, found {show(array.shape)}; reshape it."
        )
    if array.min() < 0 or array.max() >= len(model.actions):
        wrong = (array < 0) | (array >= len(model.actions))
        index = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise PolicyError(
            f"policy table: entry {show(index)} is {array[index]}, expected the position of an "
            f"action, 0 to {len(model.actions) - 1}; correct it."
        )
    # Small tables are all of one kind, so that little has to be compiled; large ones are compact.
    large = array.size > SMALL_TABLE
    kind = np.min_scalar_type(len(model.actions) - 1) if large else np.dtype(np.int64)
    return np.ascontiguousarray(array.reshape(-1, n_states), dtype=kind)


def state_strides(sizes: Sequence[int]) -> Integers:
    """What each variable's value counts for in the number of a state, the last one fastest.

    For models whose states can be numbered; others have no tables by state.
    """
    return np.array([*accumulate(reversed(sizes[1:]), mul, initial=1)][::-1], dtype=np.int64)
