"""A model as flat arrays: what simulators and searches over reachable states have in common."""

from __future__ import annotations

import math
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from fsmdp.model.conditionals import Kernel
from fsmdp.model.lookup import (
    CompiledConditions,
    Inputs,
    Lookup,
    compile_conditions,
    compile_lookup,
    flatten_cases,
    scope_lookup,
    scopes_of,
)
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.tables import Floats, Integers


class FlatModel(NamedTuple):
    """All but the numbers of kernels. Slots: current values, action, next values, latents.

    Compiled code reads tuples that have these fields and others, all at one level.
    """

    kernels: Lookup
    child_start: Integers  # (n_mechanisms + 1,)
    child_slot: Integers
    child_size: Integers
    rewards: Lookup
    reward_means: Floats
    conditions: CompiledConditions
    n_variables: int
    n_inputs: int  # current values and action variables; next values come after them
    n_slots: int
    n_actions: int  # that rules tell apart


def flatten_model(model: FactoredMDP, by_row: bool) -> tuple[FlatModel, list[Floats]]:
    """The arrays of a model, and each kernel's probabilities, one row an assignment of its inputs.

    The look-up of kernels finds rows `by_row`, or else the first of a row's probabilities.
    Cost: the model's size, once.
    """
    n_inputs, dynamics = len(model.inputs), model.dynamics
    n_actions, sizes = dynamics.n_actions, dynamics.drawn_sizes
    kernels, rows = [], []
    for mechanism in dynamics.mechanisms:
        width = math.prod(sizes[child] for child in mechanism.children)

        def inputs(kernel: Kernel, width: int = 1 if by_row else width) -> Inputs:
            slots = (*kernel.parents, *(n_inputs + drawn for drawn in kernel.drawn))
            return Inputs(slots, kernel.table.shape[: len(slots)], width)

        kernels.append(mechanism.cases.map(inputs))
        rows += [kernel.table.reshape(-1, width) for kernel in mechanism.cases]
    children = [child for mechanism in dynamics.mechanisms for child in mechanism.children]
    flat = FlatModel(
        kernels=compile_lookup(kernels, n_actions),
        child_start=np.array(
            [*accumulate((len(m.children) for m in dynamics.mechanisms), initial=0)], dtype=np.int64
        ),
        child_slot=np.array(children, dtype=np.int64) + n_inputs,
        child_size=np.array([sizes[child] for child in children], dtype=np.int64),
        rewards=scope_lookup(scopes_of(model.reward_means), model.input_sizes, n_actions),
        reward_means=flatten_cases(model.reward_means),
        conditions=compile_conditions(model.conditions),
        n_variables=len(model.variables),
        n_inputs=n_inputs,
        n_slots=n_inputs + len(sizes),
        n_actions=n_actions,
    )
    return flat, rows
