"""Policies that compiled code follows: at random, one action, or a table over all states."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fsmdp.compiled import compiled
from fsmdp.model.flat import ExactSolution
from fsmdp.model.lookup import Integers
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.policies import RANDOM, Policy
from fsmdp.simulation.compiled import CompiledModel

BY_CHANCE = 0
BY_TABLE = 1


class CompiledPolicy(NamedTuple):
    """How to act, in arrays. A table of one row serves every step."""

    kind: int
    strides: Integers  # (n_variables,) of the table's columns
    table: Integers  # (n_steps, n_states)


def compile_policy(model: FactoredMDP, policy: Policy) -> CompiledPolicy | None:
    """The policy as arrays, or None when only Python can follow it."""
    nothing = np.zeros(len(model.variables), dtype=np.int64)
    if isinstance(policy, ExactSolution):
        strides = np.cumprod([1, *reversed(model.sizes[1:])])[::-1].astype(np.int64)
        return CompiledPolicy(BY_TABLE, np.ascontiguousarray(strides), policy.actions)
    if isinstance(policy, str) and policy in model.actions:
        always = np.array([[model.action_index(policy)]], dtype=np.int64)
        return CompiledPolicy(BY_TABLE, nothing, always)
    if policy == RANDOM:
        return CompiledPolicy(BY_CHANCE, nothing, np.zeros((1, 1), dtype=np.int64))
    return None


def given_action(model: CompiledModel) -> CompiledPolicy:
    """The policy that takes the action written at table[0, 0], whatever the state."""
    nothing = np.zeros(model.n_variables, dtype=np.int64)
    return CompiledPolicy(BY_TABLE, nothing, np.zeros((1, 1), dtype=np.int64))


@compiled(inline="always")
def choose(
    policy: CompiledPolicy, values: Integers, step: int, n_actions: int, rng: np.random.Generator
) -> int:
    """Action in the state held by the first slots; `step` counts from 0 here."""
    if policy.kind == BY_CHANCE:
        return min(int(rng.random() * n_actions), n_actions - 1)
    column = 0
    for variable in range(len(policy.strides)):
        column += values[variable] * policy.strides[variable]
    return policy.table[min(step, len(policy.table) - 1), column]  # type: ignore[no-any-return]
