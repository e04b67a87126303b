"""What a user may pass as a policy, resolved once: how to follow it, in Python and compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import mul
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from fsmdp.compiled import compiled
from fsmdp.errors import ModelError, PolicyError
from fsmdp.foundation.checks import as_step, is_sound, show, show_count, sound, suggest
from fsmdp.foundation.streams import Purpose, generator
from fsmdp.foundation.threads import in_threads, split
from fsmdp.model.actions import ActionSpace, Choice
from fsmdp.model.conditions import Conditions
from fsmdp.model.tables import Integers
from fsmdp.model.variables import State, Variable, check_state, state_strides, table_size
from fsmdp.policies.arrays import (
    BY_TABLE,
    CompiledPolicy,
    act,
    by_chance,
    check_policy,
    choose_apart,
    given_action,
    idle_where_allowed,
    policy_arrays,
    room_for,
)
from fsmdp.policies.joint import listed_joint, nothing_joint
from fsmdp.reductions.reduction import compose

if TYPE_CHECKING:
    from fsmdp.model.mdp import FactoredMDP
    from fsmdp.reductions.reduction import Reduced


@runtime_checkable
class ActsByState(Protocol):
    """Anything with an action for each state and step: an exact solution, a plan."""

    def action(self, state: State, step: int = 1) -> Any:
        """Name or position of the action to take, or the values of a joint one."""
        ...


@runtime_checkable
class Compiles(ActsByState, Protocol):
    """A policy that compiled code can follow, too."""

    def compiled(self) -> CompiledPolicy | None:
        """The policy as arrays; None where only Python can follow it.

        They are checked at every call unless the method is marked as `sound`.
        """
        ...


PolicyFunction = Callable[[tuple[int, ...], int], Any]
Policy = ActsByState | PolicyFunction | str | NDArray[Any] | Sequence[Any]
"""A solution or plan, a function (state, step) -> action, an action's name, "random", or a table.

A table holds positions of actions: an integer array of shape (n_states,) or (horizon, n_states),
states in the order of `FlatMDP.states` (the last variable fastest), or with one axis per variable
instead of one for all states.
"""

RANDOM = "random"

EXPECTED = (
    "a plan, an exact solution, a function (state, step) -> action, an integer table by state, "
    'the name of an action to repeat, or "random"'
)


class Described(Protocol):
    """What a policy is for, be it a model or a structure."""

    @property
    def variables(self) -> tuple[Variable, ...]:
        """State variables, in order."""
        ...

    @property
    def actions(self) -> ActionSpace:
        """What can be done."""
        ...

    @property
    def horizon(self) -> int | None:
        """Steps of an episode; None without end."""
        ...


def conditions_of(model: Described) -> Conditions:
    """The conditions of a model or structure; a policy by itself has none."""
    found = getattr(model, "conditions", None)
    return found or Conditions(model.actions, (*model.variables, *model.actions.variables))


Act = Callable[[tuple[int, ...], int], Choice]
"""From a state and a step, counted from 1, to an action's position, or the values of a joint one.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Followed:
    """How to follow a policy: a state at a time (None: by chance), and compiled where possible."""

    act: Act | None
    arrays: CompiledPolicy | None


def resolve(model: Described, policy: Policy) -> Followed:
    """How to follow whatever a user passed as a policy, or a PolicyError.

    An action by itself is the policy that always takes it. What knows joint actions by position,
    such as a table or a policy of the listed model, means their positions in `model.listed()`.
    Compiled code reads arrays without checking their ends, so all that it is given is checked.
    """
    actions, n_variables, conditions = model.actions, len(model.variables), conditions_of(model)
    if isinstance(policy, str) and policy not in actions:
        if policy == RANDOM:
            return Followed(None, by_chance(conditions))
        if not actions.variables:
            close = suggest(policy, (*actions, RANDOM))
            hint = close if close.startswith("did") else f"expected {EXPECTED}."
            raise PolicyError(f"unknown policy {show(policy)}; {hint}")
    if isinstance(policy, str) or (isinstance(policy, Mapping) and actions.variables):
        always = actions.read(policy)
        given = given_action(n_variables, actions)
        given.give(always)
        return Followed(_checked(lambda state, step: always, conditions), given.policy)  # noqa: ARG005
    if is_table(policy):
        act, by_table = _by_table(model, policy_table(model, policy))
        return Followed(_checked(act, conditions), _with_actions(by_table, model))
    check_origin(model, policy)
    chooses = _chooses(policy)

    def chosen(state: tuple[int, ...], step: int) -> Choice:
        try:
            return actions.read(chooses(state, step))
        except PolicyError as error:
            where = f"the policy in state {show(state)} at step {step}"
            raise PolicyError(f"{where}: {error}") from None

    arrays = policy.compiled() if isinstance(policy, Compiles) else None
    if isinstance(policy, Compiles) and arrays is not None and not is_sound(policy.compiled):
        _check_arrays(arrays, model)
    compiled = None if arrays is None else _with_actions(arrays, model)
    return Followed(_checked(chosen, conditions), compiled)


def _checked(act: Act, conditions: Conditions) -> Act:
    """The same function, refusing what is not allowed in a state."""
    if not conditions:
        return act

    def allowed(state: tuple[int, ...], step: int) -> Choice:
        choice = act(state, step)
        try:
            conditions.check(state, choice)
        except PolicyError as error:
            raise PolicyError(f"the policy at step {step}: {error}") from None
        return choice

    return allowed


def _with_actions(arrays: CompiledPolicy, model: Described) -> CompiledPolicy | None:
    """Arrays for the form in which a model has its actions; None if there are none.

    Those that give positions get the list of joint actions. Those of joint actions would write to
    slots that a model with a list does not have.
    """
    n_slots, actions = len(arrays.joint.slots), model.actions
    if bool(n_slots) == bool(actions.variables):
        return arrays
    if actions.variables:
        return arrays._replace(joint=listed_joint(actions, len(model.variables)))
    known = len(arrays.joint.rows) == len(actions)
    return arrays._replace(joint=nothing_joint()) if known else None


def _check_arrays(arrays: CompiledPolicy, model: Described) -> None:
    """Refuse arrays that would lead compiled code out of bounds."""
    sizes = [variable.size for variable in model.variables]
    try:
        if not isinstance(arrays, CompiledPolicy):
            raise ValueError(f"expected a CompiledPolicy, found {show(arrays)}")
        check_policy(arrays, sizes, model.actions)
    except (ValueError, TypeError, AttributeError) as error:
        raise PolicyError(
            f"policy: compiled() is wrong: {error}; make it with policy_arrays."
        ) from None


def _chooses(policy: Any) -> PolicyFunction:
    chooses = policy.action if isinstance(policy, ActsByState) else policy
    if isinstance(policy, type) or not callable(chooses):
        what = f"the class {policy.__name__}" if isinstance(policy, type) else show(policy)
        raise PolicyError(f"{what} is not a policy; expected {EXPECTED}.")
    return chooses


def _by_table(model: Described, table: Integers) -> tuple[Act, CompiledPolicy]:
    strides = state_strides([variable.size for variable in model.variables])
    listed, actions = strides.tolist(), model.actions

    def act(state: tuple[int, ...], step: int) -> Choice:
        return actions.read(int(table[min(step, len(table)) - 1, sum(map(mul, state, listed))]))

    return act, policy_arrays(BY_TABLE, strides, table)


def check_origin(model: Described, policy: object) -> None:
    """Refuse a solution or plan of another model: its tables would be read at the wrong places."""
    origin: Any = getattr(policy, "model", getattr(policy, "policy", policy))
    if origin is model or isinstance(policy, type):
        return
    variables, actions = getattr(origin, "variables", None), getattr(origin, "actions", None)
    if not isinstance(variables, tuple) or not isinstance(actions, tuple | ActionSpace):
        return  # not made for a model: nothing to compare
    if actions == model.actions:
        actions = model.actions
    horizon = getattr(origin, "horizon", model.horizon)
    what = f"the policy, a {type(policy).__name__}, is of another model"
    remedy = "solve or plan this model"
    for noun, found, expected in (
        ("variable", variables, model.variables),
        ("action", actions, model.actions),
    ):
        if found is expected:
            continue
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


def policy_table(model: Described, policy: object) -> Integers:
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
    sizes = tuple(variable.size for variable in model.variables)
    n_states = table_size(sizes)
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
    kind = np.min_scalar_type(len(model.actions) - 1)
    return np.ascontiguousarray(array.reshape(-1, n_states), dtype=kind)


@dataclass(frozen=True, slots=True, eq=False)
class ArrayPolicy:
    """Acts as its arrays say; one that acts by chance draws with a generator of its own."""

    name: str
    variables: tuple[Variable, ...]
    actions: ActionSpace
    horizon: int | None
    arrays: CompiledPolicy = field(repr=False)
    _rng: np.random.Generator = field(
        init=False, repr=False, default_factory=lambda: generator(0, Purpose.CHOICES)
    )

    def action(self, state: State, step: int = 1) -> str:
        """The action to take."""
        slots = [*check_state(state, self.variables), *(0 for _ in self.arrays.joint.slots)]
        values = np.array(slots, dtype=np.int64)
        row = as_step(step, self.horizon) - 1
        chosen = act(self.arrays, values, row, self.actions.n_cases, self._rng)
        return self.actions.name(self.actions.choice(chosen, values[len(self.variables) :]))

    @sound
    def compiled(self) -> CompiledPolicy:
        """The policy as arrays."""
        return self.arrays

    def __repr__(self) -> str:
        return f"ArrayPolicy({self.name})"


def array_policy(name: str, model: Described, policy: Policy) -> ArrayPolicy:
    """Anything that compiled code can follow, by itself."""
    arrays = resolve(model, policy).arrays
    assert arrays is not None, "only for policies that can be compiled"
    return ArrayPolicy(name, model.variables, model.actions, model.horizon, arrays)


def idle_policy(model: FactoredMDP) -> Policy:
    """Doing nothing: the idle action, or where that is not allowed, the first that is."""
    idle = model.idle_action()
    if model.conditions.always_allows(idle):
        return idle
    arrays = idle_where_allowed(model.conditions, idle)
    return ArrayPolicy("doing nothing", model.variables, model.actions, model.horizon, arrays)


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
    n_variables, n_actions = values.shape[1], model.actions.n_cases
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


@dataclass(frozen=True, slots=True, eq=False)
class ReducedPolicy:
    """Acts in a model as a policy of a reduced one does in the reduced states."""

    reduced: Reduced = field(repr=False)
    reduced_policy: Policy
    _followed: Followed = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_followed", resolve(self.reduced.model, self.reduced_policy))

    @property
    def name(self) -> str:
        """What the reduced model's policy is called."""
        return getattr(self.reduced_policy, "name", "greedy")

    @property
    def model(self) -> FactoredMDP:
        """The model in whose states it acts."""
        return self.reduced.original

    @property
    def variables(self) -> tuple[Variable, ...]:
        """Variables of the model in which it acts."""
        return self.model.variables

    @property
    def actions(self) -> ActionSpace:
        """Actions, the same in both models."""
        return self.model.actions

    @property
    def horizon(self) -> int | None:
        """Steps of an episode."""
        return self.model.horizon

    def action(self, state: State, step: int = 1) -> str:
        """The action that the reduced model's policy takes in the reduced state."""
        act = self._followed.act
        assert act is not None  # chance alone has no function, and it is the same in both models
        values = np.array(check_state(state, self.variables), dtype=np.int64)
        return self.actions.name(act(tuple(self.reduced.states(values).tolist()), step))

    @sound
    def compiled(self) -> CompiledPolicy | None:
        """The policy as arrays; None where only Python can follow it."""
        arrays = self._followed.arrays
        if arrays is None:
            return None
        return arrays._replace(state_map=compose(self.reduced.state_map, arrays.state_map))
