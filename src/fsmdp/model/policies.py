"""Policies: what may be followed, and how to follow it one state at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

from fsmdp.errors import PolicyError
from fsmdp.model.mdp import FactoredMDP


@runtime_checkable
class ActsByState(Protocol):
    """Anything with an action for each state and step: an exact solution, a plan."""

    def action(self, state: Sequence[int], step: int = 1) -> str | int:
        """Name or position of the action to take."""
        ...


PolicyFunction = Callable[[tuple[int, ...], int], str | int]
Policy = ActsByState | PolicyFunction | str
"""A solution or plan, a function (state, step) -> action, an action's name, or "random"."""

RANDOM = "random"


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
        raise PolicyError(
            f"unknown policy {policy!r}; expected a plan, an exact solution, a function "
            '(state, step) -> action, the name of an action to repeat, or "random".'
        )
    chooses = policy.action if isinstance(policy, ActsByState) else policy
    if not callable(chooses):
        raise PolicyError(
            f"a {type(policy).__name__} is no policy; expected a plan, an exact solution, a "
            'function (state, step) -> action, the name of an action, or "random".'
        )
    return lambda state, step: model.action_index(chooses(state, step))
