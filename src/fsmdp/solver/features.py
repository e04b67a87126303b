"""Basis functions at many states: which are not zero, by scope, in arrays that compiled code reads.

Functions of one scope are mostly indicators, of which a state meets one: looking a scope up costs
its variables, not its functions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fsmdp.compiled import compiled
from fsmdp.model.basis import Basis
from fsmdp.model.lookup import Integers
from fsmdp.model.tables import Floats
from fsmdp.model.variables import Scope


class Features(NamedTuple):
    """For each scope and assignment, the functions that are not zero there, and their values."""

    scope_start: Integers  # (n_scopes + 1,) of slots and strides
    slot: Integers
    stride: Integers
    row_of_scope: Integers  # (n_scopes,) row of the assignment of zeros
    row_start: Integers  # (n_rows + 1,)
    function: Integers
    value: Floats
    n_functions: int


def compile_features(basis: Basis) -> Features:
    """Lay a bound basis out. Cost: its tables."""
    by_scope: dict[Scope, list[int]] = {}
    for function, table in enumerate(basis):
        by_scope.setdefault(table.scope, []).append(function)
    scope_start, slots, strides, first_rows, row_start = [0], [], [], [], [np.zeros(1, np.int64)]
    functions, values = [], []
    rows = numbers = 0
    for scope, members in by_scope.items():
        shape = basis.tables[members[0]].values.shape
        stacked = np.stack([basis.tables[member].values.ravel() for member in members], axis=1)
        size = len(stacked)
        stride = size
        for position, axis in zip(scope, shape, strict=True):
            stride //= axis
            slots.append(position)
            strides.append(stride)
        scope_start.append(len(slots))
        first_rows.append(rows)
        at, which = np.nonzero(stacked)
        functions.append(np.array(members, dtype=np.int64)[which])
        values.append(stacked[at, which])
        row_start.append(numbers + np.cumsum(np.bincount(at, minlength=size)))
        rows += size
        numbers += len(at)
    return Features(
        np.array(scope_start, dtype=np.int64),
        np.array(slots, dtype=np.int64),
        np.array(strides, dtype=np.int64),
        np.array(first_rows, dtype=np.int64),
        np.concatenate(row_start).astype(np.int64),
        np.concatenate(functions),
        np.concatenate(values),
        len(basis),
    )


@compiled(inline="always")
def row_at(features: Features, scope: int, state: Integers) -> int:
    """The row of a scope's functions in a state."""
    row = features.row_of_scope[scope]
    for at in range(features.scope_start[scope], features.scope_start[scope + 1]):
        row += state[features.slot[at]] * features.stride[at]
    return row  # type: ignore[no-any-return]


@compiled()
def add_products(
    features: Features,
    states: Integers,
    counts: Floats,
    targets: Floats,
    products: Floats,
    moments: Floats,
) -> None:
    """Add sum_s n(s) h(s) h(s)' to the lower triangle of `products`, n(s) h(s) y(s) to `moments`.

    Cost: for each state, the square of the functions that are not zero there.
    """
    active = np.empty(features.n_functions, dtype=np.int64)
    numbers = np.empty(features.n_functions)
    for row in range(len(states)):
        found = 0
        for scope in range(len(features.row_of_scope)):
            at = row_at(features, scope, states[row])
            for entry in range(features.row_start[at], features.row_start[at + 1]):
                active[found] = features.function[entry]
                numbers[found] = features.value[entry]
                found += 1
        for one in range(found):
            scaled = counts[row] * numbers[one]
            moments[active[one]] += scaled * targets[row]
            for other in range(one + 1):
                high, low = active[one], active[other]
                if high < low:
                    high, low = low, high
                products[high, low] += scaled * numbers[other]


@compiled()
def fill_rows(features: Features, states: Integers, rows: Floats) -> None:
    """Add h_j(s) to `rows`, a row for each state."""
    for row in range(len(states)):
        for scope in range(len(features.row_of_scope)):
            at = row_at(features, scope, states[row])
            for entry in range(features.row_start[at], features.row_start[at + 1]):
                rows[row, features.function[entry]] += features.value[entry]


@compiled()
def fill_values(features: Features, weights: Floats, states: Integers, values: Floats) -> None:
    """sum_j w_j h_j(s) for each state."""
    for row in range(len(states)):
        total = 0.0
        for scope in range(len(features.row_of_scope)):
            at = row_at(features, scope, states[row])
            for entry in range(features.row_start[at], features.row_start[at + 1]):
                total += weights[features.function[entry]] * features.value[entry]
        values[row] = total
