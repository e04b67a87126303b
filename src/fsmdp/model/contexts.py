"""Contexts: parents that do not matter under some values of the action variables.

A machine that is rebooted comes up whatever its neighbours do. In a list of actions that is said by
a case without parents; with action variables it is read off the table, so that a learner need not
tell apart what the model says is the same.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fsmdp.model.conditionals import Ancestry, Kernel
from fsmdp.model.variables import table_size

Integers = NDArray[np.int64]


def contexts_of(ancestry: Ancestry, sizes: Sequence[int], n_variables: int) -> Integers | None:
    """A number for each assignment of the parents: equal where no kernel can tell them apart.

    None if all are different. `sizes` are those of state variables and action variables.
    Cost: the kernels' tables, and the assignments of all parents once for each of them.
    """
    scope = ancestry.parent_scope
    shape = tuple(sizes[position] for position in scope)
    columns = []
    for kernel in ancestry.kernels:
        rows = _rows(kernel, n_variables)
        spread = [sizes[p] if p in kernel.parents else 1 for p in scope]
        columns.append(np.broadcast_to(rows.reshape(spread), shape).ravel())
    distinct, number = np.unique(np.stack(columns), axis=1, return_inverse=True)
    if distinct.shape[1] == table_size(shape):
        return None
    return np.asarray(number, dtype=np.int64).ravel()


def _rows(kernel: Kernel, n_variables: int) -> Integers:
    """A number for each assignment of a kernel's parents, the same where a parent is idle.

    Under given values of action variables a state variable is idle if nothing depends on it.
    """
    n_parents = len(kernel.parents)
    shape = kernel.table.shape[:n_parents]
    n_state = sum(parent < n_variables for parent in kernel.parents)
    found = np.zeros(shape, dtype=np.int64)
    first = 0
    for chosen in np.ndindex(*shape[n_state:]):
        at = (slice(None),) * n_state + chosen
        part = kernel.table[at]
        kept = [
            1 if (np.diff(part, axis=axis) == 0).all() else size
            for axis, size in enumerate(shape[:n_state])
        ]
        count = table_size(kept)
        found[at] = first + np.arange(count).reshape(kept)
        first += count
    return found
