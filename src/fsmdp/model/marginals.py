"""Marginals: the distribution of the next values of a scope, everything else summed out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fsmdp.errors import WidthError
from fsmdp.model.basis import Basis
from fsmdp.model.cases import Cases
from fsmdp.model.conditionals import Ancestry, Dynamics
from fsmdp.model.tables import Floats, Table, bound_table
from fsmdp.model.variables import Scope, table_size

EQUAL = 1e-12
"""Probabilities closer than this are the same number up to rounding."""

LARGEST_MARGINAL = 2**26


@dataclass(frozen=True, slots=True, eq=False)
class Marginal:
    """P(next values of `scope` | current values of `parent_scope`) in one action group."""

    parent_scope: Scope
    scope: Scope
    probabilities: Floats  # (*parent sizes, *scope sizes)


@dataclass(frozen=True, slots=True, eq=False)
class Marginals:
    """For each basis function, the marginal of its scope by action group."""

    basis: Basis
    cases: tuple[Cases[Marginal], ...]

    def backprojections(self) -> tuple[Cases[Table], ...]:
        """Backprojection of every basis function."""
        return tuple(
            cases.map(lambda marginal, table=table: backproject(marginal, table))  # type: ignore[misc]
            for cases, table in zip(self.cases, self.basis.tables, strict=True)
        )

    def __len__(self) -> int:
        return len(self.cases)


def backproject(marginal: Marginal, function: Table) -> Table:
    """Expected value of a basis function after one step, for every parent assignment.

    g(z) = sum_y h(y) P(y | z)
    Cost: |Val(parents)| * |Val(scope)|.
    Paper: eq. 2.
    """
    axes = len(marginal.scope)
    values = np.tensordot(marginal.probabilities, function.values, axes=axes)
    return bound_table(marginal.parent_scope, np.asarray(values))


def compute_marginals(basis: Basis, dynamics: Dynamics, variable_sizes: Sequence[int]) -> Marginals:
    """Marginals of all basis functions; functions of one scope share theirs."""
    by_scope: dict[Scope, Cases[Marginal]] = {}
    for scope in basis.scopes:
        if scope not in by_scope:
            by_scope[scope] = compute_marginal(scope, dynamics, variable_sizes)
    return Marginals(basis, tuple(by_scope[scope] for scope in basis.scopes))


def compute_marginal(
    scope: Scope, dynamics: Dynamics, variable_sizes: Sequence[int]
) -> Cases[Marginal]:
    """The marginal of one scope in each action group.

    P(y | z, a) = sum over what else is drawn of the product of the ancestors' kernels.
    A parent on which nothing depends is dropped; groups with equal tables are merged.
    Cost: sum-product elimination over the ancestors that matter.
    """
    return (
        dynamics.ancestry(scope)
        .map(lambda ancestry: _sum_out(scope, ancestry, dynamics, variable_sizes))
        .merge_equal(
            lambda marginal: (
                marginal.parent_scope,
                (np.round(marginal.probabilities / EQUAL) + 0.0).tobytes(),
            )
        )
    )


def _sum_out(
    scope: Scope, ancestry: Ancestry, dynamics: Dynamics, variable_sizes: Sequence[int]
) -> Marginal:
    # One numbering for all axes: current values keep their positions, what is drawn follows.
    shift = len(variable_sizes)
    sizes = (*variable_sizes, *dynamics.drawn_sizes)
    factors: list[tuple[tuple[int, ...], Floats]] = []
    for mechanism, kernel in zip(ancestry.mechanisms, ancestry.kernels, strict=True):
        children = dynamics.mechanisms[mechanism].children
        drawn = (*kernel.drawn, *children)
        factors.append(((*kernel.parents, *(shift + d for d in drawn)), kernel.table))
    kept = tuple(shift + position for position in scope)
    unwanted = {a for axes, _ in factors for a in axes if a >= shift} - set(kept)
    while unwanted:
        axis, union = min(
            ((a, _union(factors, a)) for a in unwanted),
            key=lambda pair: (table_size(sizes[u] for u in pair[1]), pair[0]),
        )
        _refuse_if_huge(union, sizes, scope)
        unwanted.discard(axis)
        touching = [factor for factor in factors if axis in factor[0]]
        factors = [factor for factor in factors if axis not in factor[0]]
        rest = tuple(u for u in union if u != axis)
        factors.append((rest, _multiply(touching, rest)))
    parents = ancestry.parent_scope
    result_axes = (*parents, *kept)
    _refuse_if_huge(result_axes, sizes, scope)
    table = _multiply(factors, result_axes)
    return _drop_idle_parents(Marginal(parents, scope, table))


def _union(factors: list[tuple[tuple[int, ...], Floats]], axis: int) -> tuple[int, ...]:
    return tuple(sorted({other for axes, _ in factors if axis in axes for other in axes}))


def _multiply(factors: list[tuple[tuple[int, ...], Floats]], kept: tuple[int, ...]) -> Floats:
    if not factors:
        return np.ones(())
    if len(factors) == 1 and factors[0][0] == kept:
        return factors[0][1]
    names: dict[int, int] = {}
    operands: list[object] = []
    for axes, table in factors:
        operands += [table, [names.setdefault(axis, len(names)) for axis in axes]]
    return np.asarray(np.einsum(*operands, [names[axis] for axis in kept], optimize="greedy"))  # type: ignore[call-overload]


def _refuse_if_huge(axes: Sequence[int], sizes: Sequence[int], scope: Scope) -> None:
    entries = table_size(sizes[axis] for axis in axes)
    if entries > LARGEST_MARGINAL:
        raise WidthError(
            f"the marginal of the variables at positions {list(scope)} needs a table of {entries} "
            f"entries (limit {LARGEST_MARGINAL}) over {len(axes)} parents and drawn values; use a "
            "basis of smaller scopes, or conditionals with fewer parents."
        )


def _drop_idle_parents(marginal: Marginal) -> Marginal:
    table, kept = marginal.probabilities, list(marginal.parent_scope)
    for position in marginal.parent_scope:
        axis = kept.index(position)
        if float(np.ptp(table, axis=axis).max()) <= EQUAL:
            table = np.take(table, 0, axis=axis)
            kept.pop(axis)
    table = np.ascontiguousarray(table).reshape(table.shape)  # numpy makes a scalar a vector
    table.flags.writeable = False
    return Marginal(tuple(kept), marginal.scope, table)
