"""Where something can happen in a step: the assignments that give it a positive probability."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fsmdp.model.conditionals import Ancestry, Dynamics
from fsmdp.model.variables import Scope, table_size

Booleans = NDArray[np.bool_]

MOST_SUPPORT_ENTRIES = 2**18
"""A larger table is not made: what it would tell counts as possible everywhere."""

MOST_AXES = 40
"""Arrays have few axes."""

MOST_CUBES = 2**12


@dataclass(frozen=True, slots=True)
class Cube:
    """A set of assignments: some variables at given values, all others free."""

    scope: Scope
    values: tuple[int, ...]


Factor = tuple[tuple[int, ...], Booleans]
"""Axes, and which of their assignments are possible."""

Cubes = tuple[Cube, ...]
EVERYWHERE: Cubes = (Cube((), ()),)


def where_off_zero(
    scope: Scope, ancestry: Ancestry, dynamics: Dynamics, sizes: Sequence[int]
) -> Cubes:
    """Current values from which all variables of a scope can be off 0 after a step.

    Zero probabilities alone count as impossible, whatever is multiplied: the arithmetic is that of
    truth values, in which nothing underflows. Above a limit the answer is EVERYWHERE, a superset.
    Cost: elimination of what is drawn, each table of at most MOST_SUPPORT_ENTRIES.
    """
    every_size = (*sizes, *dynamics.drawn_sizes)
    factors = step_factors(ancestry, dynamics, len(sizes))
    for position in scope:
        factors.append(((len(sizes) + position,), np.arange(sizes[position]) > 0))
    found = project(factors, every_size, lambda axis: axis < len(sizes))
    if found is None:
        return EVERYWHERE
    return as_cubes(*found)


def step_factors(ancestry: Ancestry, dynamics: Dynamics, n_inputs: int) -> list[Factor]:
    """What can be drawn in a step, as truth values; axes are inputs, then what is drawn."""
    factors = []
    for index, kernel in zip(ancestry.mechanisms, ancestry.kernels, strict=True):
        drawn = (n_inputs + d for d in (*kernel.drawn, *dynamics.mechanisms[index].children))
        factors.append(((*kernel.parents, *drawn), kernel.table > 0))
    return factors


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
        together = _all_of([f for f in factors if axis in f[0]], (*rest, axis))
        factors = [f for f in factors if axis not in f[0]] + [
            (rest, np.asarray(together.any(axis=-1)))
        ]
        for other in unwanted.intersection(rest):
            unions[other] = {a for axes, _ in factors if other in axes for a in axes}
            cost[other] = table_size(sizes[a] for a in unions[other])
    kept = tuple(sorted({axis for axes, _ in factors for axis in axes}))
    if table_size(sizes[p] for p in kept) > MOST_SUPPORT_ENTRIES or len(kept) > MOST_AXES:
        return None
    return kept, _all_of(factors, kept)


def as_cubes(scope: Scope, possible: Booleans) -> Cubes:
    """Disjoint cubes that cover a set of assignments; EVERYWHERE if they would be very many."""
    found: list[Cube] = []
    if not _split(scope, possible, (), (), found):
        return EVERYWHERE
    return tuple(found)


def _split(
    scope: Scope, possible: Booleans, fixed: Scope, values: tuple[int, ...], found: list[Cube]
) -> bool:
    """Add the cubes of a table to those found; False if there are too many."""
    if not possible.any():
        return True
    if possible.all():
        found.append(Cube(fixed, values))
        return len(found) < MOST_CUBES
    axis = _axis_to_split(possible)
    rest = scope[:axis] + scope[axis + 1 :]
    here = (*fixed, scope[axis])
    slices = np.moveaxis(possible, axis, 0)
    if (slices == slices[0]).all():
        return _split(rest, slices[0], fixed, values, found)
    return all(
        _split(rest, part, here, (*values, value), found) for value, part in enumerate(slices)
    )


def _axis_to_split(possible: Booleans) -> int:
    """An idle axis, or else one with the most slices that need no further splitting."""
    best, settled = 0, -1
    for axis in range(possible.ndim):
        slices = np.moveaxis(possible, axis, 0)
        if (slices == slices[0]).all():
            return axis
        flat = slices.reshape(len(slices), -1)
        done = int((flat.all(axis=1) | ~flat.any(axis=1)).sum())
        if done > settled:
            best, settled = axis, done
    return best


def _all_of(factors: Sequence[Factor], axes: Sequence[int]) -> Booleans:
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
