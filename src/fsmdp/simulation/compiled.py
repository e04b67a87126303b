"""A model as flat arrays that compiled code reads."""

from __future__ import annotations

from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fsmdp.model.conditionals import Kernel
from fsmdp.model.lookup import (
    Inputs,
    Integers,
    Lookup,
    compile_lookup,
    flatten_cases,
    scope_lookup,
    scopes_of,
)
from fsmdp.model.mdp import FactoredMDP

Floats = NDArray[np.float64]


class CompiledModel(NamedTuple):
    """Everything needed to simulate. Slots: current values, action, next values, latents."""

    kernels: Lookup
    cumulative: Floats  # cumulative probabilities of all kernels
    child_start: Integers  # (n_mechanisms + 1,)
    child_slot: Integers
    child_size: Integers
    outcomes: Integers  # (n_mechanisms,)
    coin: Integers  # (n_mechanisms,) slot of the only child if it has two values, or -1
    rewards: Lookup
    reward_means: Floats
    reward_sigmas: Floats  # (n_terms,)
    initial_start: Integers  # (n_variables + 1,)
    initial_cumulative: Floats
    n_variables: int
    n_inputs: int  # current values and action variables; next values come after them
    n_slots: int
    n_actions: int  # that rules tell apart


def compile_model(model: FactoredMDP) -> CompiledModel:
    """Flatten a model. Cost: its size, once."""
    n_inputs, dynamics = len(model.inputs), model.dynamics
    n_actions = dynamics.n_actions
    kernels, cumulative = [], []
    for mechanism in dynamics.mechanisms:
        sizes = [dynamics.drawn_sizes[child] for child in mechanism.children]
        width = int(np.prod(sizes))

        def inputs(kernel: Kernel, width: int = width) -> Inputs:
            slots = (*kernel.parents, *(n_inputs + drawn for drawn in kernel.drawn))
            return Inputs(slots, kernel.table.shape[: len(slots)], width)

        kernels.append(mechanism.cases.map(inputs))
        cumulative += [
            np.cumsum(kernel.table.reshape(-1, width), axis=1).ravel() for kernel in mechanism.cases
        ]

    def coin_slot(children: tuple[int, ...]) -> int:
        alone = len(children) == 1 and dynamics.drawn_sizes[children[0]] == 2
        return n_inputs + children[0] if alone else -1

    children = [child for mechanism in dynamics.mechanisms for child in mechanism.children]
    child_counts = [len(mechanism.children) for mechanism in dynamics.mechanisms]
    child_sizes = [dynamics.drawn_sizes[child] for child in children]
    return CompiledModel(
        kernels=compile_lookup(kernels, n_actions),
        cumulative=np.concatenate(cumulative),
        child_start=np.cumsum([0, *child_counts]),
        child_slot=np.array(children) + n_inputs,
        child_size=np.array(child_sizes),
        outcomes=np.array(
            [
                int(np.prod([dynamics.drawn_sizes[child] for child in mechanism.children]))
                for mechanism in dynamics.mechanisms
            ]
        ),
        coin=np.array([coin_slot(mechanism.children) for mechanism in dynamics.mechanisms]),
        rewards=scope_lookup(scopes_of(model.reward_means), model.input_sizes, n_actions),
        reward_means=flatten_cases(model.reward_means),
        reward_sigmas=np.array([reward.sigma for reward in model.rewards], dtype=np.float64),
        initial_start=np.array(list(accumulate(model.sizes, initial=0))),
        initial_cumulative=np.concatenate([np.cumsum(d) for d in model.initial_distributions()]),
        n_variables=len(model.variables),
        n_inputs=n_inputs,
        n_slots=n_inputs + len(dynamics.drawn_sizes),
        n_actions=n_actions,
    )
