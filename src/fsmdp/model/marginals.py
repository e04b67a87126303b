"""Marginals: the distribution of the next values of a scope, everything else summed out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush

import numpy as np

from fsmdp.errors import WidthError
from fsmdp.foundation.checks import check_size, plural, show
from fsmdp.model.basis import Basis
from fsmdp.model.cases import Cases
from fsmdp.model.conditionals import Ancestry, Dynamics, Kernel
from fsmdp.model.tables import Floats, Rebuilt, Table, bound_table, read_only
from fsmdp.model.variables import Scope, table_size

EPSILON = float(np.finfo(np.float64).eps)
UNDERFLOW = 1e-290
"""More than all that is lost where products of probabilities fall below the smallest number."""

LARGEST_MARGINAL = 2**26
LARGEST_SHARED, MOST_SHARED = 2**8, 2**16
"""How large, and how many, the messages are that are kept for the scopes to come."""


@dataclass(frozen=True, slots=True, eq=False)
class Marginal(Rebuilt):
    """P(next values of `scope` | current values of `parent_scope`) in one action group."""

    parent_scope: Scope
    scope: Scope
    probabilities: Floats  # (*parent sizes, *scope sizes)
    rounding: float = 0.0  # relative error of a probability, at most

    def __post_init__(self) -> None:
        object.__setattr__(self, "probabilities", read_only(self.probabilities))


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

    def roundings(self) -> tuple[Cases[Table], ...]:
        """How far each number of `backprojections` can be from that of the rational model."""
        return tuple(
            cases.map(lambda marginal, table=table: backprojection_rounding(marginal, table))  # type: ignore[misc]
            for cases, table in zip(self.cases, self.basis.tables, strict=True)
        )

    def __len__(self) -> int:
        return len(self.cases)

    def __repr__(self) -> str:
        largest = max(found.probabilities.size for cases in self.cases for found in cases)
        return f"Marginals({plural(len(self), 'function')}, tables of up to {largest} entries)"


def backproject(marginal: Marginal, function: Table) -> Table:
    """Expected value of a basis function after one step, for every parent assignment.

    g(z) = sum_y h(y) P(y | z)
    Cost: |Val(parents)| * |Val(scope)|.
    Paper: eq. 2.
    """
    axes = len(marginal.scope)
    values = np.tensordot(marginal.probabilities, function.values, axes=axes)
    return bound_table(marginal.parent_scope, np.asarray(values))


def backprojection_rounding(marginal: Marginal, function: Table) -> Table:
    """A bound on the error of `backproject`, for every parent assignment.

    All probabilities are sums of products of numbers that are not negative, so that their errors
    are relative: |error of g(z)| <= (rounding + |Val(scope)| eps) sum_y |h(y)| P(y | z).
    """
    size = np.abs(function.values)
    sizes = backproject(marginal, bound_table(function.scope, size))
    relative = 2 * marginal.rounding + 2 * (size.size + 2) * EPSILON
    return bound_table(sizes.scope, relative * sizes.values + UNDERFLOW * float(size.sum()))


def compute_marginals(
    basis: Basis,
    dynamics: Dynamics,
    variable_sizes: Sequence[int],
    check: Callable[[], None] | None = None,
) -> Marginals:
    """Marginals of all basis functions; functions of one scope share theirs.

    `check` is called from scope to scope, and may raise to end it.
    """
    by_scope: dict[Scope, Cases[Marginal]] = {}
    messages: Messages = {}
    for scope in basis.scopes:
        if check is not None:
            check()
        if scope not in by_scope:
            by_scope[scope] = compute_marginal(scope, dynamics, variable_sizes, messages)
    return Marginals(basis, tuple(by_scope[scope] for scope in basis.scopes))


@dataclass(frozen=True, slots=True, eq=False)
class _Factor:
    axes: tuple[int, ...]
    table: Floats


Messages = dict[object, _Factor]
"""Small factors made from others: scopes with common ancestors eliminate them but once."""


def compute_marginal(
    scope: Scope,
    dynamics: Dynamics,
    variable_sizes: Sequence[int],
    messages: Messages | None = None,
) -> Cases[Marginal]:
    """The marginal of one scope in each action group.

    P(y | z, a) = sum over what else is drawn of the product of the ancestors' kernels.
    A parent on which nothing depends, up to rounding, is dropped; groups with equal tables are
    merged. Both differences are relative to the probability itself and go into `rounding`, so that
    no rare event is taken for one that never happens.
    Cost: sum-product elimination over the ancestors that matter.
    """
    shared: Messages = {} if messages is None else messages
    return _merge_equal(
        dynamics.ancestry(scope).map(
            lambda ancestry: _sum_out(scope, ancestry, dynamics, variable_sizes, shared)
        )
    )


def _merge_equal(cases: Cases[Marginal]) -> Cases[Marginal]:
    """One group for those whose tables agree up to their rounding."""
    if len(cases) == 1:
        return cases
    # Equal tables have equal sums of any kind: those with other neighbours need no comparison.
    order = sorted(range(len(cases)), key=lambda group: _sort_key(cases.groups[group]))
    first = [0] * len(cases)
    kept: dict[int, Marginal] = {}
    last = order[0]
    for group in order:
        one, other = kept.get(last, cases.groups[last]), cases.groups[group]
        difference = np.inf
        if one.parent_scope == other.parent_scope:
            difference = _relative_difference(one.probabilities, other.probabilities)
        if difference > one.rounding + other.rounding:
            last, one, difference = group, other, 0.0
        kept[last] = replace(one, rounding=max(one.rounding, other.rounding + difference))
        first[group] = last
    merged = cases.map_with_group().merge_equal(lambda numbered: first[numbered[0]])
    return merged.map(lambda numbered: kept[first[numbered[0]]])


def _sort_key(marginal: Marginal) -> tuple[Scope, float]:
    flat = marginal.probabilities.ravel()
    return marginal.parent_scope, float(flat @ (2 + np.cos(np.arange(len(flat)))))


def _relative_difference(one: Floats, other: Floats) -> float:
    larger = np.maximum(one, other)
    apart = np.abs(one - other)
    return float((apart[apart > 0] / larger[apart > 0]).max(initial=0.0)) * (1 + 4 * EPSILON)


def _sum_out(
    scope: Scope,
    ancestry: Ancestry,
    dynamics: Dynamics,
    variable_sizes: Sequence[int],
    messages: Messages,
) -> Marginal:
    # One numbering for all axes: current values keep their positions, what is drawn follows.
    # Axes of size 1 are left out: they change no number, and arrays have few axes.
    shift = len(variable_sizes)
    sizes = (*variable_sizes, *dynamics.drawn_sizes)
    factors = [
        _kernel_factor(dynamics.mechanisms[mechanism].children, kernel, shift, messages)
        for mechanism, kernel in zip(ancestry.mechanisms, ancestry.kernels, strict=True)
    ]
    kept = tuple(shift + position for position in scope)
    unwanted = {a for factor in factors for a in factor.axes if a >= shift} - set(kept)
    factors = _eliminate(factors, unwanted, sizes, scope, messages)
    parents = tuple(parent for parent in ancestry.parent_scope if sizes[parent] > 1)
    result_axes = (*parents, *kept)
    _refuse_if_huge(result_axes, sizes, scope)
    table = _multiply(factors, tuple(axis for axis in result_axes if sizes[axis] > 1))
    shape = tuple(sizes[axis] for axis in result_axes)
    # Of each kernel: its row's sum, which is 1 up to rounding, and a product; of each axis a sum.
    outcomes = [
        table_size(sizes[shift + child] for child in dynamics.mechanisms[index].children)
        for index in ancestry.mechanisms
    ]
    rounded = sum(8 * count + 4 for count in outcomes) + sum(2 * sizes[axis] for axis in unwanted)
    found = Marginal(parents, scope, table.reshape(shape), rounding=(rounded + 8) * EPSILON)
    return _drop_idle_parents(found)


def _kernel_factor(
    children: tuple[int, ...], kernel: Kernel, shift: int, messages: Messages
) -> _Factor:
    """A kernel as a factor, always the same one, so that what is made of it can be shared."""
    if kernel not in messages:
        drawn = (shift + d for d in (*kernel.drawn, *children))
        sized = zip((*kernel.parents, *drawn), kernel.table.shape, strict=True)
        axes = tuple(axis for axis, size in sized if size > 1)
        messages[kernel] = _Factor(axes, kernel.table.squeeze())
    return messages[kernel]


def _eliminate(
    factors: Sequence[_Factor],
    unwanted: set[int],
    sizes: Sequence[int],
    scope: Scope,
    messages: Messages,
) -> list[_Factor]:
    """Sum axes out, cheapest first; each step touches only the factors of one axis.

    Cost: the tables multiplied, and the neighbours of each axis that is summed out.
    """
    # Factors by identity in dictionaries, which keep their order and forget in no time.
    left = dict.fromkeys(factors)
    touching: dict[int, dict[_Factor, None]] = {axis: {} for axis in unwanted}
    for factor in factors:
        for axis in touching.keys() & set(factor.axes):
            touching[axis][factor] = None
    cost: dict[int, int] = {}
    waiting: list[tuple[int, int]] = []

    def rate(axis: int) -> None:
        union = {other for factor in touching[axis] for other in factor.axes}
        cost[axis] = table_size(sizes[other] for other in union)
        heappush(waiting, (cost[axis], axis))

    for axis in unwanted:
        rate(axis)
    while waiting:
        rated, axis = heappop(waiting)
        if cost.get(axis) != rated:  # gone, or rated again since
            continue
        del cost[axis]
        gone = tuple(touching.pop(axis))
        union = sorted({other for factor in gone for other in factor.axes})
        _refuse_if_huge(union, sizes, scope)
        rest = tuple(other for other in union if other != axis)
        message = messages.get((axis, gone)) or _Factor(rest, _multiply(gone, rest))
        if rated <= LARGEST_SHARED and len(messages) < MOST_SHARED:
            messages[axis, gone] = message
        for factor in gone:
            left.pop(factor, None)
        left[message] = None
        for other in cost.keys() & set(rest):
            for factor in gone:
                touching[other].pop(factor, None)
            touching[other][message] = None
            rate(other)
    return list(left)


def _multiply(factors: Sequence[_Factor], kept: tuple[int, ...]) -> Floats:
    """Product of factors, two at a time, summed over every axis that is not kept."""
    if not factors:
        return np.ones(())
    first, *others = factors
    axes, table = first.axes, first.table
    for position, factor in enumerate(others):
        last = position == len(others) - 1
        union = kept if last else tuple(dict.fromkeys((*axes, *factor.axes)))
        table = _contract([(axes, table), (factor.axes, factor.table)], union)
        axes = union
    return table if axes == kept else _contract([(axes, table)], kept)


def _contract(factors: list[tuple[tuple[int, ...], Floats]], kept: tuple[int, ...]) -> Floats:
    labels: dict[int, int] = {}
    operands: list[object] = []
    for axes, table in factors:
        operands += [table, [labels.setdefault(axis, len(labels)) for axis in axes]]
    return np.asarray(np.einsum(*operands, [labels[axis] for axis in kept]))  # type: ignore[call-overload]


def _refuse_if_huge(axes: Sequence[int], sizes: Sequence[int], scope: Scope) -> None:
    check_size(
        table_size(sizes[axis] for axis in axes),
        LARGEST_MARGINAL,
        f"the marginal of the variables at positions {show(list(scope))}, with {len(axes)} parents "
        "and drawn values, needs a table of",
        "use a basis of smaller scopes, or conditionals with fewer parents",
        error=WidthError,
    )


def _drop_idle_parents(marginal: Marginal) -> Marginal:
    """Without the parents on which no probability depends by more than its own rounding."""
    table, kept = marginal.probabilities, list(marginal.parent_scope)
    tolerance = 2 * marginal.rounding
    for position in marginal.parent_scope:
        axis = kept.index(position)
        low, high = table.min(axis=axis), table.max(axis=axis)
        if bool((high - low <= tolerance * low).all()):
            table = np.take(table, 0, axis=axis)
            kept.pop(axis)
    dropped = len(marginal.parent_scope) - len(kept)
    table = np.ascontiguousarray(table).reshape(table.shape)  # numpy makes a scalar a vector
    rounding = marginal.rounding + dropped * tolerance
    return Marginal(tuple(kept), marginal.scope, table, rounding)
