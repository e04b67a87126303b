"""Every state of a structure in one number: the last variable runs fastest."""

from __future__ import annotations

import numpy as np

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import check_size, show_count
from fsmdp.model import variables
from fsmdp.model.actions import Actions
from fsmdp.model.lookup import Integers
from fsmdp.model.structure import Structure
from fsmdp.model.variables import table_size

ENTRY_LIMIT = 2**25
"""Most transition counts, |states|^2 |actions|, of a learner that enumerates: 256 MiB of them."""


def count_states(name: str, structure: Structure, limit: int) -> int:
    """Number of states, or a SizeError when their transitions are too many to count."""
    if isinstance(structure.actions, Actions):
        raise ModelError(
            f"{name} counts every action by itself, and these are made of variables; use "
            "UCRLFactored or PSRLFactored, or the structure and environment of model.listed()."
        )
    n_states = table_size(variable.size for variable in structure.variables)
    count, actions = show_count(n_states), len(structure.actions)
    check_size(
        n_states**2 * actions,
        limit,
        f"{name} writes every state out: ({count} states)^2 x {actions} actions =",
        f"use UCRLFactored or PSRLFactored, which count {structure.cells} cells here, a smaller "
        "model, or a larger limit=",
        unit="transition counts",
    )
    return n_states


def state_strides(structure: Structure) -> Integers:
    """What each variable's value counts for in the number of a state."""
    return variables.state_strides([variable.size for variable in structure.variables])


def all_states(structure: Structure) -> Integers:
    """Every state, in the order of their numbers."""  # (n_states, n_variables)
    sizes = [variable.size for variable in structure.variables]
    return np.ascontiguousarray(np.indices(sizes).reshape(len(sizes), -1).T, dtype=np.int64)
