"""Elimination of truth values: which assignments of some variables go with any of all others."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from fsmdp.model.variables import Scope, table_size

Booleans = NDArray[np.bool_]

MOST_SUPPORT_ENTRIES = 2**18
"""A larger table is not made: what it would tell counts as possible everywhere."""

MOST_AXES = 40
"""Arrays have few axes."""

Factor = tuple[tuple[int, ...], Booleans]
"""Axes, and which of their assignments are possible."""


def project(
    factors: Sequence[Factor], sizes: Sequence[int], keep: Callable[[int], bool]
) -> tuple[Scope, Booleans] | None:
    """Assignments of the axes that are kept which some values of all others go with.

    None if a table would have more than MOST_SUPPORT_ENTRIES.
    Cost: elimination, the axis whose table is smallest first.
    """
    factors = list(factors)
    unwanted = {axis for axes, _ in factors for axis in axes if not keep(axis)}
    unions: dict[int, set[int]] = {axis: set() for axis in unwanted}
    for axes, _ in factors:
        for axis in unwanted.intersection(axes):
            unions[axis].update(axes)
    cost = {a: table_size(sizes[other] for other in unions[a]) for a in unwanted}
    while unwanted:
        axis = min(unwanted, key=lambda one: (cost[one], one))
        if cost[axis] > MOST_SUPPORT_ENTRIES or len(unions[axis]) > MOST_AXES:
            return None
        unwanted.remove(axis)
        rest = tuple(sorted(unions[axis] - {axis}))
        together = all_of([f for f in factors if axis in f[0]], (*rest, axis))
        factors = [f for f in factors if axis not in f[0]] + [
            (rest, np.asarray(together.any(axis=-1)))
        ]
        for other in unwanted.intersection(rest):
            unions[other] = {a for axes, _ in factors if other in axes for a in axes}
            cost[other] = table_size(sizes[a] for a in unions[other])
    kept = tuple(sorted({axis for axes, _ in factors for axis in axes}))
    if table_size(sizes[p] for p in kept) > MOST_SUPPORT_ENTRIES or len(kept) > MOST_AXES:
        return None
    return kept, all_of(factors, kept)


def all_of(factors: Sequence[Factor], axes: Sequence[int]) -> Booleans:
    """The conjunction of tables, over the axes given."""
    place = {axis: at for at, axis in enumerate(axes)}
    whole: Booleans = np.ones((1,) * len(axes), dtype=bool)
    for scope, table in factors:
        order = sorted(range(len(scope)), key=lambda at: place[scope[at]])
        shape = [1] * len(axes)
        for at in order:
            shape[place[scope[at]]] = table.shape[at]
        whole = whole & np.transpose(table, order).reshape(shape)
    return whole
