"""Columns that a solver can tell apart: the basis in well-conditioned coordinates.

Functions that are nearly combinations of others need huge weights of opposite signs, which are
beyond a solver's tolerances. Each function is compared with those that depend on a part of its
variables; what is nearly a combination of them is replaced by its remainder, and what is one
exactly is left out. Weights of the user's functions are those of the coordinates times a matrix.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
from scipy import sparse

from fsmdp.bounds.bellman import BellmanNetwork, Intervals
from fsmdp.model.basis import Basis
from fsmdp.model.tables import Floats
from fsmdp.model.variables import Scope

NEARLY = 1e-2
"""A function whose remainder is smaller than this, relative to itself, is replaced by it."""

DEPENDENT = 1e-11
"""A function whose remainder is smaller than this is left out: rounding is all that is left."""

LARGEST_FAMILY = 2**22
"""Numbers in the tables of one family of functions; larger ones are taken as they are."""


@dataclass(frozen=True, slots=True, eq=False)
class Conditioning:
    """weights = matrix @ coordinates, for one step."""

    matrix: sparse.csr_matrix = field(repr=False)  # (n_functions, n_coordinates)

    @property
    def n_coordinates(self) -> int:
        """Coordinates of one step."""
        return int(self.matrix.shape[1])

    def steps(self, n_steps: int) -> sparse.csr_matrix:
        """The matrix of several steps."""
        return sparse.csr_matrix(sparse.kron(sparse.identity(n_steps), self.matrix, format="csr"))

    def weights(self, coordinates: Floats) -> Floats:
        """Weights (..., n_functions) of coordinates (..., n_coordinates)."""
        return np.asarray((self.matrix @ coordinates.reshape(-1, self.n_coordinates).T).T).reshape(
            *coordinates.shape[:-1], self.matrix.shape[0]
        )


def conditioning_of(
    network: BellmanNetwork, intervals: Intervals, *, plain: bool = False
) -> Conditioning:
    """Coordinates for the programs of a problem; `plain` ones are functions to scale.

    Intervals belong to the user's functions, so that only a known model's may be combined. With an
    infinite horizon the constant is worth 1 / (1 - discount) rewards.
    """
    is_known = intervals.exact and not plain
    found = condition(network.basis) if is_known else scaling(network.basis)
    if network.horizon is not None:
        return found
    units = np.ones(found.n_coordinates)
    units[0] = 1 / (1 - network.discount)
    return Conditioning(sparse.csr_matrix(found.matrix @ sparse.diags(units)))


def scaling(basis: Basis) -> Conditioning:
    """Each function in units of its largest value, and no more.

    A basis of tables of very different sizes would otherwise be beyond a solver's tolerances.
    """
    return Conditioning(sparse.csr_matrix(sparse.diags(1 / function_scales(basis))))


def function_scales(basis: Basis) -> Floats:
    """Largest absolute value of each function."""
    return np.array([max(float(np.abs(table.values).max()), 1e-300) for table in basis])


@dataclass(frozen=True, slots=True, eq=False)
class _Coordinate:
    """A function of some variables, and the weights of the user's functions that make it."""

    scope: Scope
    table: Floats
    weights: dict[int, float]


def condition(basis: Basis) -> Conditioning:
    """Coordinates in which no function is nearly a combination of others on its variables.

    A function is measured against the constant and the functions of its own or smaller scopes, in
    the mean square over all states. Nothing depends on the functions' scales.
    Cost: for each scope, its table's size times the square of the functions that live on it; those
    of scopes alike are examined once.
    """
    scales = function_scales(basis)
    by_scope: dict[Scope, list[int]] = {}
    for j, scope in enumerate(basis.scopes):
        by_scope.setdefault(scope, []).append(j)
    kept: dict[Scope, list[_Coordinate]] = {}
    seen_to_be_fine: set[object] = set()
    for scope in sorted(by_scope, key=len):
        own = [
            _Coordinate(scope, basis.tables[j].values / scales[j], {j: 1 / scales[j]})
            for j in by_scope[scope]
        ]
        smaller = [one for part in _parts(scope, kept) for one in kept[part]]
        pattern = _pattern(scope, [*smaller, *own])
        if pattern in seen_to_be_fine or _is_large(own, len(smaller)):
            kept[scope] = own
            continue
        kept[scope] = _distinct(scope, smaller, own)
        if kept[scope] == own:
            seen_to_be_fine.add(pattern)
    return _assembled(basis, [one for scope in by_scope for one in kept[scope]])


def _parts(scope: Scope, kept: Mapping[Scope, object]) -> list[Scope]:
    """The smaller scopes inside one, of those there are."""
    if 2 ** len(scope) > len(kept):
        return [part for part in kept if set(part) < set(scope)]
    sizes = range(len(scope))
    return [part for size in sizes for part in combinations(scope, size) if part in kept]


def _pattern(scope: Scope, family: Sequence[_Coordinate]) -> object:
    """The same for families that differ in the names of their variables only."""
    place = {variable: position for position, variable in enumerate(scope)}
    return tuple(
        (tuple(place[v] for v in one.scope), one.table.shape, one.table.tobytes()) for one in family
    )


def _is_large(own: Sequence[_Coordinate], n_smaller: int) -> bool:
    return bool(own[0].table.size * (len(own) + n_smaller) > LARGEST_FAMILY)


def _distinct(
    scope: Scope, smaller: Sequence[_Coordinate], own: Sequence[_Coordinate]
) -> list[_Coordinate]:
    """The functions of a scope, or their remainders where little of them is new."""
    shape = own[0].table.shape
    family = list(smaller)
    columns = np.empty((own[0].table.size, len(smaller) + len(own)))
    for position, one in enumerate(smaller):
        columns[:, position] = _spread(one, scope, shape)
    directions, _ = np.linalg.qr(columns[:, : len(smaller)])
    found = []
    for one in own:
        function = one.table.ravel()
        size = float(np.linalg.norm(function))
        remainder = function - directions @ (directions.T @ function)
        remainder -= directions @ (directions.T @ remainder)
        new = float(np.linalg.norm(remainder))
        if new <= DEPENDENT * size:
            continue
        if new < NEARLY * size:
            one = _remainder(one, remainder.reshape(shape), family, columns)
        columns[:, len(family)] = one.table.ravel()
        family.append(one)
        found.append(one)
        directions = np.column_stack([directions, remainder / new])
    return found


def _spread(one: _Coordinate, scope: Scope, shape: tuple[int, ...]) -> Floats:
    """The values of a function of some variables of a scope, at every value of all."""
    axes = [size if v in one.scope else 1 for v, size in zip(scope, shape, strict=True)]
    return np.broadcast_to(one.table.reshape(axes), shape).ravel()


def _remainder(
    one: _Coordinate, remainder: Floats, family: Sequence[_Coordinate], columns: Floats
) -> _Coordinate:
    """What is left of a function when its combination of others is taken away, to scale."""
    scale = 1 / float(np.abs(remainder).max())
    explained = (one.table - remainder).ravel()
    shares = np.linalg.lstsq(columns[:, : len(family)], explained, rcond=None)[0]
    weights = {j: scale * weight for j, weight in one.weights.items()}
    for other, share in zip(family, shares, strict=True):
        for j, weight in other.weights.items():
            weights[j] = weights.get(j, 0.0) - scale * share * weight
    return _Coordinate(one.scope, scale * remainder, weights)


def _assembled(basis: Basis, coordinates: Sequence[_Coordinate]) -> Conditioning:
    """Coordinates in the order of the functions they came from."""
    ordered = sorted(coordinates, key=lambda one: next(iter(one.weights)))
    rows = [j for one in ordered for j in one.weights]
    columns = [column for column, one in enumerate(ordered) for _ in one.weights]
    values = [weight for one in ordered for weight in one.weights.values()]
    shape = (len(basis), len(ordered))
    return Conditioning(sparse.csr_matrix((values, (rows, columns)), shape=shape))
