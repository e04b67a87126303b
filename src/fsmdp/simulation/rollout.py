"""Rollouts: whole episodes of a policy, compiled."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fsmdp.errors import ModelError
from fsmdp.model.lookup import Integers
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.policies import Policy, follow
from fsmdp.simulation.compiled import CompiledModel, Floats, compile_model
from fsmdp.simulation.policies import compile_policy, given_action
from fsmdp.simulation.simulate import new_record, simulate

Progress = Callable[[int, int], None]
"""Called with the number of episodes done and the number in all."""

CHUNK_STEPS = 200_000
PYTHON_STEP = 1000  # one step through Python takes about as long as a thousand compiled ones
ENDLESS_TAIL = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """Returns of independent episodes."""

    returns: Floats  # (episodes,)
    steps: int

    @property
    def mean(self) -> float:
        """Average return."""
        return float(self.returns.mean())

    @property
    def standard_error(self) -> float:
        """Standard error of the mean; infinite for a single episode, which says nothing of it."""
        if len(self.returns) < 2:
            return math.inf
        return float(self.returns.std(ddof=1) / math.sqrt(len(self.returns)))

    def __repr__(self) -> str:
        return f"Runs({self.mean:.6g} ± {self.standard_error:.2g}, {len(self.returns)} episodes)"


def rollout(
    model: FactoredMDP,
    policy: Policy,
    episodes: int = 1000,
    seed: int | np.random.Generator = 0,
    steps: int | None = None,
    progress: Progress | None = None,
) -> Runs:
    """Returns of episodes that follow a policy from the initial distribution.

    An episode lasts `steps`, by default the horizon; with an infinite horizon, until what is left
    counts for less than a millionth of a whole return. The same seed gives the same episodes,
    whether a policy is followed by compiled code or through Python.
    """
    if episodes < 1:
        raise ModelError(f"episodes: expected at least 1, found {episodes}.")
    if steps is None:
        steps = model.horizon or math.ceil(math.log(ENDLESS_TAIL) / math.log(model.discount))
    elif steps < 1 or (model.horizon is not None and steps > model.horizon):
        raise ModelError(
            f"steps: expected 1 to {model.horizon or 'any number'} (the horizon), found {steps}."
        )
    rng = np.random.default_rng(seed)
    compiled, arrays, discount = compile_model(model), compile_policy(model, policy), model.discount
    values = np.zeros(compiled.n_slots, dtype=np.int64)
    unrecorded = new_record(compiled, 0, 0)
    returns = np.zeros(episodes)
    act = follow(model, policy)
    cost_of_step = PYTHON_STEP if arrays is None else max(1, len(model.variables) // 100)
    chunk = max(1, CHUNK_STEPS // (steps * cost_of_step))
    for first in range(0, episodes, chunk):
        part = returns[first : first + chunk]
        if arrays is None:
            _run_in_python(compiled, act, steps, discount, rng, values, part)
        else:
            simulate(compiled, arrays, rng, discount, True, 0, steps, values, part, unrecorded)
        if progress is not None:
            progress(min(first + chunk, episodes), episodes)
    return Runs(returns, steps)


def _run_in_python(
    model: CompiledModel,
    act: Callable[[tuple[int, ...], int], int] | None,
    steps: int,
    discount: float,
    rng: np.random.Generator,
    values: Integers,
    returns: Floats,
) -> None:
    given, unrecorded = given_action(model), new_record(model, 0, 0)
    reward = np.zeros(1)
    assert act is not None  # only the random policy is None, and it is compiled
    for episode in range(len(returns)):
        simulate(model, given, rng, discount, True, 0, 0, values, reward, unrecorded)
        for step in range(steps):
            given.table[0, 0] = act(tuple(values[: model.n_variables].tolist()), step + 1)
            simulate(model, given, rng, discount, False, step, 1, values, reward, unrecorded)
            returns[episode] += discount**step * reward[0]
