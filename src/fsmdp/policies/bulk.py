"""Actions in many states at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fsmdp.compiled import compiled
from fsmdp.errors import ModelError
from fsmdp.foundation.checks import as_step, show
from fsmdp.foundation.streams import Purpose, generator
from fsmdp.foundation.threads import in_threads, split
from fsmdp.model.actions import n_listed
from fsmdp.model.lookup import Integers
from fsmdp.model.variables import State, Variable, check_state
from fsmdp.policies.arrays import CompiledPolicy, choose_apart, room_for
from fsmdp.policies.resolve import Described, Policy, resolve

WORTH_A_THREAD = 4096
"""States below which a thread more does not pay."""


def actions_in(
    model: Described, policy: Policy, states: Sequence[State] | Integers, step: int = 1
) -> Integers:
    """Positions of the actions that a policy takes in states at a step, (n_states,).

    Of actions that are made of variables, the values: (n_states, n_action_variables).
    Cost: that of a decision for each state, on all cores where the policy can be compiled.
    """
    values = states_of(states, model.variables)
    row = as_step(step, model.horizon) - 1
    followed = resolve(model, policy)
    if followed.arrays is None:
        act = followed.act
        assert act is not None  # chance alone has no function, and it is compiled
        return np.array([act(tuple(one), step) for one in values.tolist()], dtype=np.int64)
    arrays, parts = followed.arrays, split(len(values), WORTH_A_THREAD)
    chosen = np.zeros(len(values), dtype=np.int64)
    n_variables, n_actions = values.shape[1], n_listed(model.actions)
    n_joint = len(arrays.joint.slots)
    if n_joint:
        values = np.hstack([values, np.zeros((len(values), n_joint), dtype=np.int64)])
    generators = generator(0, Purpose.CHOICES, 1).spawn(len(parts))

    def run(part: int) -> None:
        at = parts[part]
        _choose_all(arrays, values[at], row, n_actions, generators[part], chosen[at])

    in_threads(run, len(parts))
    return values[:, n_variables:] if n_joint else chosen


def states_of(states: Sequence[State] | Integers, variables: Sequence[Variable]) -> Integers:
    """States as an array (n_states, n_variables), checked all at once where that is possible."""
    if isinstance(states, Mapping) or not isinstance(states, Sequence | np.ndarray):
        raise ModelError(
            f"states: expected an array of states, one a row, found {show(states)}; for a single "
            "state use plan.action."
        )
    sizes = np.array([variable.size for variable in variables], dtype=np.int64)
    array: Any = states
    if not isinstance(states, np.ndarray):
        array = np.array([check_state(state, variables) for state in states], dtype=np.int64)
        array = array.reshape(len(states), len(sizes))
    if array.dtype.kind not in "iu" or array.ndim != 2 or array.shape[1] != len(sizes):
        raise ModelError(
            f"states: expected whole numbers of shape (states, {len(sizes)}), found "
            f"{array.dtype} of shape {array.shape}; give one state a row, in variable order."
        )
    wrong = ((array < 0) | (array >= sizes)).any(axis=1)
    if wrong.any():  # a single state's check says which variable it is
        check_state(array[int(wrong.argmax())].tolist(), variables)
    # A copy: compiled code takes arrays that it may write to.
    return np.array(array, dtype=np.int64, order="C")


@compiled()
def _choose_all(
    policy: CompiledPolicy,
    states: Integers,
    step: int,
    n_actions: int,
    rng: np.random.Generator,
    chosen: Integers,
) -> None:
    room = room_for(policy, n_actions)
    for state in range(len(states)):
        chosen[state] = choose_apart(policy, room, states[state], step, n_actions, rng)
