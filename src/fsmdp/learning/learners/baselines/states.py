"""Every state of a structure in one number: the last variable runs fastest."""

from __future__ import annotations

import numpy as np

from fsmdp.errors import SizeError
from fsmdp.model import variables
from fsmdp.model.lookup import Integers
from fsmdp.model.structure import Structure
from fsmdp.model.variables import table_size

ENTRY_LIMIT = 2**25
"""Most transition counts, |states|^2 |actions|, of a learner that enumerates: 256 MiB of them."""


def count_states(name: str, structure: Structure, limit: int) -> int:
    """Number of states, or a SizeError when their transitions are too many to count."""
    n_states = table_size(variable.size for variable in structure.variables)
    entries = n_states**2 * len(structure.actions)
    if entries > limit:
        count = str(n_states) if n_states < 10**7 else f"2^{n_states.bit_length() - 1}"
        raise SizeError(
            f"{name} writes every state out: ({count} states)^2 x {len(structure.actions)} actions "
            f"= 2^{(entries - 1).bit_length()} transition counts, the limit is "
            f"2^{(limit - 1).bit_length()}; use UCRLFactored or PSRLFactored, which count "
            f"{structure.cells} cells here, a smaller model, or a larger limit=."
        )
    return n_states


def state_strides(structure: Structure) -> Integers:
    """What each variable's value counts for in the number of a state."""
    return variables.state_strides([variable.size for variable in structure.variables])


def all_states(structure: Structure) -> Integers:
    """Every state, in the order of their numbers."""  # (n_states, n_variables)
    sizes = [variable.size for variable in structure.variables]
    return np.ascontiguousarray(np.indices(sizes).reshape(len(sizes), -1).T, dtype=np.int64)
