"""`agent`: a policy of ours as an agent of pyRDDLGym's, for its simulators and its `evaluate`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fsmdp.errors import ModelError, PolicyError
from fsmdp.foundation.checks import show
from fsmdp.io.rddl.sources import INSTALL
from fsmdp.model.actions import NOOP, ActionSpace, Choice
from fsmdp.model.variables import Variable

if TYPE_CHECKING:
    from fsmdp.policies.resolve import Act, Described, Policy


def agent(policy: Policy | Any, model: Described | None = None) -> Any:
    """A pyRDDLGym agent that acts as a policy does, for a problem that `load` made the model of.

    A plan knows its model; for other policies ("random", a function) give `model` as well. Steps
    are counted from each `reset` of the agent, which pyRDDLGym's `evaluate` calls before every
    episode. The environment must not be vectorized. Plan the problem as it is loaded by default:
    variables of `join=True` are none that pyRDDLGym knows (the solver joins by itself).
    """
    try:
        from pyRDDLGym.core.policy import BaseAgent
    except ImportError as error:
        raise ModelError(
            f"agent: agents are pyRDDLGym's, which cannot be imported ({error}); install it with "
            f"{INSTALL}."
        ) from None
    known: Any = model if model is not None else getattr(policy, "policy", policy)
    if not isinstance(getattr(known, "variables", None), tuple):
        raise PolicyError(
            f"agent: {show(policy)} does not know its model; give that too, agent(policy, model)."
        )
    act = _acting(known, policy)
    names = [_their_name(variable.name) for variable in known.variables]
    translate = _translator(known.actions)

    class Agent(BaseAgent):  # type: ignore[misc]
        """Acts as a policy of fsmdp's does."""

        use_tensor_obs = False

        def __init__(self) -> None:
            self.step = 0

        def reset(self) -> None:
            """Begin another episode."""
            self.step = 0

        def sample_action(self, state: Any = None) -> dict[str, Any]:
            """The policy's action in a state of pyRDDLGym's."""
            self.step += 1
            return translate(act(_our_state(state, names, known.variables), self.step))

    return Agent()


def _translator(actions: ActionSpace) -> Callable[[Any], dict[str, Any]]:
    """From our actions to theirs."""
    nothing = f"~{NOOP}" if f"~{NOOP}" in actions else NOOP
    if not actions.variables:
        choices = [_their_action(action, nothing) for action in actions]
        return lambda chosen: dict(choices[chosen])
    if any(size > 2 for size in actions.sizes):
        raise PolicyError(
            "agent: an action variable stands for objects, whose names are known where actions "
            "are listed; load the problem with actions='listed'."
        )
    return lambda chosen: _their_action(actions.name(chosen), nothing)


def _acting(model: Described, policy: Policy) -> Act:
    # What is compiled takes long to import, and most who load a problem ask for no agent.
    from fsmdp.policies.joint import random_actions
    from fsmdp.policies.resolve import conditions_of, resolve

    followed = resolve(model, policy)
    if followed.act is not None:
        return followed.act
    rng = np.random.default_rng()
    chance = random_actions(conditions_of(model))

    def at_random(state: tuple[int, ...], step: int) -> Choice:  # noqa: ARG001
        cases, values = chance.draw(np.array([state], dtype=np.int64), rng)
        return model.actions.choice(cases[0], values[0])

    return at_random


def _their_name(name: str) -> str:
    """`at(x1,y2)` is `at___x1__y2` there."""
    fluent, found, arguments = name.partition("(")
    return f"{fluent}___{arguments[:-1].replace(',', '__')}" if found else name


def _their_action(name: str, nothing: str) -> dict[str, Any]:
    """The fluents that an action sets, by their names: none for the one that does nothing."""
    if name == nothing:
        return {}
    found: dict[str, Any] = {}
    for part in name.split("+"):
        fluent, has_value, value = part.partition("=")
        negated = fluent.startswith("~")
        found[_their_name(fluent.removeprefix("~"))] = value if has_value else not negated
    return found


def _our_state(
    state: Mapping[str, Any], names: list[str], variables: tuple[Variable, ...]
) -> tuple[int, ...]:
    values = []
    for name, variable in zip(names, variables, strict=True):
        if name not in state:
            raise PolicyError(
                f"agent: the environment has no fluent {show(name)}; expected the problem whose "
                "model was planned, loaded without join=True."
            )
        value = np.asarray(state[name])
        if value.dtype.kind not in "biu" or not 0 <= int(value) < variable.size:
            raise PolicyError(
                f"agent: fluent {show(name)} is {show(state[name])}, expected a boolean or a whole "
                f"number from 0 to {variable.size - 1}; the environment must not be vectorized."
            )
        values.append(int(value))
    return tuple(values)
