"""`agent`: a policy of ours as an agent of pyRDDLGym's, for its simulators and its `evaluate`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fsmdp.errors import ModelError, PolicyError
from fsmdp.foundation.checks import show, show_names
from fsmdp.io.rddl.action_groups import NONE
from fsmdp.io.rddl.sources import INSTALL
from fsmdp.io.rddl.splitting import MARK
from fsmdp.io.rddl.translation import Ground, States, ground_of, is_joined
from fsmdp.model.actions import ActionSpace, Choice
from fsmdp.model.mdp import FactoredMDP

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
    ours = _OurStates(known)
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
            return translate(act(ours.state(state), self.step))

    return Agent()


def _translator(actions: ActionSpace) -> Callable[[Any], dict[str, Any]]:
    """From our actions to theirs."""
    if not actions.variables:
        choices = [_their_action(ground_of(actions, at)) for at in range(len(actions))]
        return lambda chosen: dict(choices[chosen])
    return lambda chosen: _their_action(ground_of(actions, chosen))


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


def _their_action(ground: Ground) -> dict[str, Any]:
    """The fluents that an action sets, by their names."""
    return {_their_name(fluent): _their_value(value) for fluent, value in ground.items()}


def _their_value(value: bool | str) -> bool | str | int:
    if isinstance(value, str) and value.removeprefix("-").isdigit():
        return int(value)
    return value


class _OurStates:
    """States of ours from those of an environment."""

    def __init__(self, model: Any) -> None:
        self.labels: dict[str, tuple[str, ...]] = {}  # of each fluent; none for a boolean
        for variable in model.variables:
            if is_joined(variable):
                self.labels |= dict.fromkeys((one for one in variable.labels if one != NONE), ())
            elif MARK not in variable.name:
                plain = tuple(map(str, range(variable.size))) if variable.size > 2 else ()
                self.labels[variable.name] = variable.labels or plain
        self.names = {name: _their_name(name) for name in self.labels}
        if len(self.labels) == len(model.variables):
            self.states = None
        elif isinstance(model, FactoredMDP):
            self.states = States(model)
        else:
            raise PolicyError(
                "agent: some variables of the model are computed from others; give the model too, "
                "agent(policy, model)."
            )

    def state(self, state: Mapping[str, Any]) -> tuple[int, ...]:
        values = {name: self._value(name, state) for name in self.labels}
        return tuple(values.values()) if self.states is None else self.states.state(values)

    def _value(self, name: str, state: Mapping[str, Any]) -> int:
        their, labels = self.names[name], self.labels[name]
        if their not in state:
            raise PolicyError(
                f"agent: the environment has no fluent {show(their)}; expected the problem "
                "whose model was planned, loaded without join=True."
            )
        value = np.asarray(state[their])
        text = str(value).removeprefix("@")
        if value.ndim == 0 and text in labels:
            return labels.index(text)
        if labels or value.dtype.kind not in "biu" or not 0 <= int(value) < 2:
            raise PolicyError(
                f"agent: fluent {show(their)} is {show(state[their])}, expected "
                f"{'one of ' + show_names(labels) if labels else 'a boolean'}; the environment "
                "must not be vectorized."
            )
        return int(value)
