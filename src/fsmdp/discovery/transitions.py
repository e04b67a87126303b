"""Transitions: what came before, what was done, what came next."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import as_whole, is_number, plural, show
from fsmdp.foundation.streams import Purpose, derived_seed, generator
from fsmdp.learning.environments import first_action, reader_of
from fsmdp.model.actions import ActionSpace, as_actions
from fsmdp.model.conditions import Conditions
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.tables import Integers
from fsmdp.model.variables import Variable, as_variables
from fsmdp.policies.joint import random_actions
from fsmdp.policies.resolve import RANDOM
from fsmdp.simulation.environment import FactoredEnv, reset_environment, step_environment
from fsmdp.simulation.rollout import MOST_RECORDED, episode_steps, record

LONGEST_EPISODE = 10**5
ANYWHERE = 0.5
"""Share of the episodes that begins in any state, where that can be asked for."""


@dataclass(frozen=True, slots=True, eq=False)
class Transitions:
    """Rows of what happened, in the order in which it did.

    Where actions are made of variables, their values stand after those of the state, and `actions`
    is 0 everywhere.
    """

    variables: tuple[Variable, ...]
    actions: ActionSpace
    inputs: Integers  # (n, n_inputs) state variables, then action variables
    taken: Integers  # (n,) positions of actions
    outcomes: Integers  # (n, n_variables) the next state
    at_random: bool = False  # whether actions were drawn without reading anything else

    def __len__(self) -> int:
        return len(self.taken)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all inputs."""
        return tuple(variable.name for variable in (*self.variables, *self.actions.variables))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Sizes of all inputs."""
        return tuple(variable.size for variable in (*self.variables, *self.actions.variables))

    @property
    def n_actions(self) -> int:
        """Listed actions; 1 where they are made of variables."""
        return self.actions.n_cases


def as_transitions(
    data: object,
    variables: Sequence[Variable] | None,
    actions: Sequence[str] | None,
    episodes: int,
    steps: int | None,
    seed: int,
    anywhere: float | None = None,
) -> Transitions:
    """Transitions of a model or an environment played at random, or those that are given.

    The share `anywhere` of the episodes begins in a state drawn at random: half of them, if it is
    not given, where that can be asked for.
    """
    if isinstance(data, Transitions):
        return data
    most = MOST_RECORDED if isinstance(data, FactoredMDP) else None
    episodes, seed = as_whole(episodes, "episodes", 1, most), as_whole(seed, "seed", 0)
    share = (ANYWHERE if played_model(data) else 0.0) if anywhere is None else anywhere
    placed = round(share * episodes)
    if isinstance(data, FactoredMDP):
        return _of_model(data, episodes, steps, seed, placed)
    if variables is None or actions is None:
        raise ModelError(
            "variables, actions: expected both, since data and environments do not name them; give "
            "[Variable(name, size), ...] and the names of the actions."
        )
    known, named = as_variables(variables, "variables"), as_actions(actions)
    if hasattr(data, "reset") and hasattr(data, "step"):
        return _of_environment(data, known, named, episodes, steps, seed, placed)
    return given_transitions(data, known, named)


def as_share(anywhere: object) -> float | None:
    """A share of the episodes, or None."""
    if anywhere is None or (is_number(anywhere) and 0 <= anywhere <= 1):
        return anywhere
    raise ModelError(
        f"anywhere: expected a share from 0 to 1, found {show(anywhere)}; 0.5 begins half of the "
        "episodes in states drawn at random."
    )


def played_model(data: object) -> FactoredMDP | None:
    """The model that is given, or that of an environment of ours, which begins in any state."""
    if isinstance(data, FactoredMDP):
        return data
    env = getattr(data, "unwrapped", None)
    return env.model if isinstance(env, FactoredEnv) else None


def _of_model(
    model: FactoredMDP, episodes: int, steps: int | None, seed: int, placed: int
) -> Transitions:
    steps, n = episode_steps(model, steps), len(model.variables)
    played_models = []
    if placed < episodes:
        usual = derived_seed(seed, Purpose.DISCOVERY_EPISODES)
        played_models.append((model, episodes - placed, usual))
    if placed:
        starts = derived_seed(seed, Purpose.DISCOVERY_STARTS)
        played_models.append((_from_anywhere(model), placed, starts))
    played = [record(one, RANDOM, some, each, steps) for one, some, each in played_models]
    # Steps that were made: an episode may end before its last.
    made = [np.arange(steps) < one.lengths[:, None] for one in played]
    before = [one.states[:, :-1][real] for one, real in zip(played, made, strict=True)]
    after = [one.states[:, 1:, :n][real] for one, real in zip(played, made, strict=True)]
    taken = [one.actions[real] for one, real in zip(played, made, strict=True)]
    return Transitions(
        model.variables,
        model.actions,
        np.concatenate(before).astype(np.int64),
        np.concatenate(taken),
        np.concatenate(after).astype(np.int64),
        True,
    )


def _from_anywhere(model: FactoredMDP) -> FactoredMDP:
    """The same with a start that is any state, one as likely as another."""
    return model.replace(initial=[np.full(size, 1 / size) for size in model.sizes])


def _of_environment(
    env: Any,
    variables: tuple[Variable, ...],
    actions: ActionSpace,
    episodes: int,
    steps: int | None,
    seed: int,
    placed: int,
) -> Transitions:
    """Play at random, through Gymnasium's spaces, until episodes end or have so many steps."""
    read = reader_of(getattr(env, "observation_space", None), variables)
    first = np.asarray(first_action(getattr(env, "action_space", None), actions))
    rng, most = generator(seed, Purpose.DISCOVERY), LONGEST_EPISODE if steps is None else steps
    own_seed = derived_seed(seed, Purpose.DISCOVERY_EPISODES) % 2**31
    sizes = [variable.size for variable in variables]
    model = played_model(env)
    known = Conditions(actions, (*variables, *actions.variables))
    chance = random_actions(known if model is None else model.conditions)
    before, taken, after = [], [], []
    for episode in range(episodes):
        begin = rng.integers(sizes) if episode >= episodes - placed else None
        options = None if begin is None else {"state": begin.tolist()}
        shown, info = reset_environment(env, own_seed if episode == 0 else None, options)
        state = read(shown)
        if begin is not None and (state != begin).any():
            raise ModelError(
                "anywhere: the environment did not begin in the state that it was given, "
                f"reset(options={options}); give anywhere=0."
            )
        for _ in range(most):
            cases, values = chance.draw(state[None], rng)
            mask = info.get("action_mask")
            if model is None and mask is not None and not actions.variables:
                cases = rng.choice(np.flatnonzero(np.asarray(mask)), size=1)
            before.append(np.concatenate([state, values[0]]))
            taken.append(int(cases[0]))
            seen = step_environment(env, first + actions.choice(taken[-1], values[0]))
            state, info = read(seen.observation), seen.info
            after.append(state)
            if seen.terminated or seen.truncated:
                break
    return Transitions(
        variables, actions, np.array(before), np.array(taken, dtype=np.int64), np.array(after), True
    )


def given_transitions(
    data: Any, variables: tuple[Variable, ...], actions: ActionSpace
) -> Transitions:
    """Three arrays, checked against the variables and actions that they are of."""
    what = "data"
    if not isinstance(data, tuple | list) or len(data) != 3:
        raise ModelError(
            f"{what}: expected a model, a Gymnasium environment, or three arrays (states, actions, "
            f"next states), found {show(data)}."
        )
    inputs = (*variables, *actions.variables)
    states, after = _whole(data[0], "states"), _whole(data[2], "next states")
    if actions.variables:
        chosen = _whole(data[1], "actions")
        before, taken = np.column_stack([states, chosen]), np.zeros(len(states), dtype=np.int64)
    else:
        position = actions.cases
        listed = np.asarray(data[1]).ravel().tolist()
        taken = _whole([position.get(one, one) for one in listed], "actions")
        before = states
    if not len(taken):
        raise ModelError(f"{what}: expected transitions, found none.")
    for name, array, columns in (
        ("states", before, inputs),
        ("next states", after, variables),
    ):
        if array.ndim != 2 or array.shape[1] != len(columns) or len(array) != len(taken):
            raise ModelError(
                f"{what}, {name}: expected shape ({len(taken)}, {len(columns)}), a row for each of "
                f"the {plural(len(taken), 'action')}, found {show(array.shape)}."
            )
        sizes = np.array([variable.size for variable in columns])
        wrong = np.argwhere((array < 0) | (array >= sizes))
        if len(wrong):
            row, column = (int(i) for i in wrong[0])
            raise ModelError(
                f"{what}, {name}: row {row} has {array[row, column]} for "
                f"{show(columns[column].name)}, expected 0 to {sizes[column] - 1}."
            )
    count = actions.n_cases
    if len(taken) and not (taken.min() >= 0 and taken.max() < count):
        raise ModelError(
            f"{what}, actions: expected names, or positions from 0 to {count - 1}, found "
            f"{show(int(taken.max()))}."
        )
    return Transitions(variables, actions, before, taken, after)


def _whole(given: object, name: str) -> Integers:
    try:
        array = np.asarray(given)
    except ValueError:
        array = np.asarray(None)
    if array.dtype.kind not in "iub" and array.size:
        raise ModelError(
            f"data, {name}: expected whole numbers, found {show(given)} (type {array.dtype})."
        )
    return np.ascontiguousarray(array, dtype=np.int64)
