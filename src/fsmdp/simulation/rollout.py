"""Rollouts: whole episodes of a policy, compiled."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import as_whole, plural
from fsmdp.foundation.numbers import facts_table, plain, with_error
from fsmdp.foundation.progress import Report, reporting
from fsmdp.foundation.streams import Purpose, generator
from fsmdp.model.mdp import FactoredMDP, check_model
from fsmdp.model.tables import Integers, Rebuilt, read_only
from fsmdp.policies.arrays import given_action
from fsmdp.policies.resolve import Act, Policy, resolve
from fsmdp.simulation.simulate import (
    CompiledModel,
    Floats,
    Record,
    check_followed,
    compile_model,
    new_record,
    simulate,
)

CHUNK_STEPS = 200_000
PYTHON_STEP = 1000  # one step through Python takes about as long as a thousand compiled ones
ENDLESS_TAIL = 1e-6
LONGEST_EPISODE = 10**6
MOST_EPISODES = 10**9
MOST_RECORDED = 10**5


class Averaged:
    """What is said of the returns of independent episodes by those who hold them."""

    __slots__ = ()
    returns: Floats  # (episodes,)

    @property
    def mean(self) -> float:
        """Average return."""
        return float(self.returns.mean())

    @property
    def standard_error(self) -> float:
        """Standard error of the mean; infinite for a single episode, which says nothing of it."""
        return standard_error(self.returns)


@dataclass(frozen=True, slots=True, eq=False)
class Runs(Averaged, Rebuilt):
    """Returns of independent episodes."""

    returns: Floats  # (episodes,)
    steps: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "returns", read_only(self.returns))

    def _repr_html_(self) -> str:
        return facts_table(
            "Runs",
            (
                ("mean return", f"{with_error(self.mean, self.standard_error)} (standard error)"),
                ("from, to", f"{plain(self.returns.min(), 6)}, {plain(self.returns.max(), 6)}"),
                ("episodes", f"{len(self.returns):,} of {plural(self.steps, 'step')}"),
            ),
        )

    def __repr__(self) -> str:
        episodes = plural(len(self.returns), "episode")
        return f"Runs({with_error(self.mean, self.standard_error)}, {episodes})"


def standard_error(returns: Floats) -> float:
    """Standard error of a mean; infinite for a single episode, which says nothing of it."""
    if len(returns) < 2:
        return math.inf
    unit = float(np.abs(returns).max()) or 1.0  # squares of large returns would overflow
    return float(unit * (returns / unit).std(ddof=1) / math.sqrt(len(returns)))


def rollout(
    model: FactoredMDP,
    policy: Policy,
    episodes: int = 1000,
    seed: int | np.random.Generator = 0,
    steps: int | None = None,
    progress: bool | Report | None = None,
) -> Runs:
    """Returns of episodes that follow a policy from the initial distribution.

    A policy is a plan or an exact solution of this model, a function (state, step) -> action (by
    name or position), the name of an action to repeat, "random", or a table: an integer array of
    positions of actions, of shape (n_states,) or (horizon, n_states) or with one axis per
    variable. A model with an action called "random" repeats that action.

    An episode lasts `steps`, by default the horizon; with an infinite horizon, until what is left
    counts for less than a millionth of a whole return (a discount so near 1 that this takes more
    than 10^6 steps needs `steps`). The same seed gives the same episodes, whether a policy is
    followed by compiled code or through Python. `progress`: True shows a bar once it takes longer
    than two seconds; a function is called with the episodes done and their number in all.
    """
    check_model(model, "rollout")
    episodes = as_whole(episodes, "episodes", 1, MOST_EPISODES)
    steps = episode_steps(model, steps)
    rng = seed
    if not isinstance(rng, np.random.Generator):
        rng = generator(as_whole(rng, "seed", 0), Purpose.EPISODES)
    followed = resolve(model, policy)
    act, arrays = followed.act, followed.arrays
    compiled, discount = compile_model(model), model.discount
    values = np.zeros(compiled.n_slots, dtype=np.int64)
    unrecorded = new_record(compiled, 0, 0)
    returns = np.zeros(episodes)
    cost_of_step = PYTHON_STEP if arrays is None else max(1, len(model.variables) // 100)
    chunk = max(1, CHUNK_STEPS // (steps * cost_of_step))
    with reporting(progress, "simulating", episodes) as report:
        for first in range(0, episodes, chunk):
            part = returns[first : first + chunk]
            if arrays is None:
                _run_in_python(model, compiled, act, steps, rng, values, part)
            else:
                where = discount, True, 0, steps
                found = simulate(compiled, arrays, rng, *where, values, part, unrecorded)
                check_followed(model, found, values)
            if report is not None:
                report(min(first + chunk, episodes), episodes)
    return Runs(returns, steps)


def record(
    model: FactoredMDP,
    policy: Policy,
    episodes: int = 1,
    seed: int = 0,
    steps: int | None = None,
) -> Record:
    """Episodes written down: states, actions and rewards of every step.

    The values of action variables stand after those of the state that they were chosen in.
    """
    check_model(model, "record")
    episodes, steps = as_whole(episodes, "episodes", 1, MOST_RECORDED), episode_steps(model, steps)
    rng = generator(as_whole(seed, "seed", 0), Purpose.EPISODES)
    followed, compiled = resolve(model, policy), compile_model(model)
    values = np.zeros(compiled.n_slots, dtype=np.int64)
    kept, returns = new_record(compiled, episodes, steps), np.zeros(episodes)
    if followed.arrays is None:
        _run_in_python(model, compiled, followed.act, steps, rng, values, returns, kept)
    else:
        discount = model.discount
        where = discount, True, 0, steps
        found = simulate(compiled, followed.arrays, rng, *where, values, returns, kept)
        check_followed(model, found, values)
    return kept


def episode_steps(model: FactoredMDP, steps: int | None = None) -> int:
    """Steps of an episode; without end, until what is left counts for nothing."""
    if steps is not None:
        return as_whole(steps, "steps", 1, model.horizon)
    if model.horizon is not None:
        return model.horizon
    needed = steps_that_count(model.discount)
    if needed > LONGEST_EPISODE:
        raise ModelError(
            f"steps: with discount {model.discount!r} an episode would last {needed} steps until "
            f"what is left counts for nothing, expected at most {LONGEST_EPISODE}; give steps=."
        )
    return needed


def steps_that_count(discount: float) -> int:
    """Steps of an endless episode until what is left counts for nothing."""
    return math.ceil(math.log(ENDLESS_TAIL) / math.log(discount))


def _run_in_python(
    of: FactoredMDP,
    model: CompiledModel,
    act: Act | None,
    steps: int,
    rng: np.random.Generator,
    values: Integers,
    returns: Floats,
    kept: Record | None = None,
) -> None:
    given, unrecorded = given_action(model.n_variables, of.actions), new_record(model, 0, 0)
    policy = given.policy
    moment = unrecorded if kept is None else new_record(model, 1, 1)
    reward, discount = np.zeros(1), of.discount
    assert act is not None  # only the random policy is None, and it is compiled
    for episode in range(len(returns)):
        simulate(model, policy, rng, discount, True, 0, 0, values, reward, unrecorded)
        length = steps
        if kept is not None:
            kept.states[episode, 0, : model.n_variables] = values[: model.n_variables]
        for step in range(steps):
            state = tuple(values[: model.n_variables].tolist())
            if of.terminal and of.is_terminal(state):
                length = step
                break
            chosen = act(state, step + 1)
            given.give(chosen)
            simulate(model, policy, rng, discount, False, step, 1, values, reward, moment)
            returns[episode] += discount**step * reward[0]
            if kept is not None:
                kept.states[episode, step : step + 2] = moment.states[0]
                kept.actions[episode, step] = moment.actions[0, 0]
                kept.rewards[episode, step] = moment.rewards[0, 0]
        if kept is not None:
            kept.lengths[episode] = length
            kept.states[episode, length + 1 :, : model.n_variables] = values[: model.n_variables]
