"""Growing a basis for a policy: the products of variables that explain what the fit leaves over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np

from fsmdp.compiled import compiled
from fsmdp.model.basis import Basis
from fsmdp.model.lookup import Integers
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.tables import Floats, bound_table
from fsmdp.model.variables import Scope, table_size
from fsmdp.solver.backups import backup_size

MOST_VARIABLES = 4
"""Of a scope: the number of scopes, and of functions of each, grows quickly."""

MOST_CANDIDATES = 2000
"""Scopes that are looked at before some are chosen."""

OBSERVATIONS = 5.0
"""So many states' worth of doubt that a difference is more than chance."""


def neighbours(model: FactoredMDP) -> list[set[int]]:
    """For each variable, those that are looked at together with it: by a mechanism or a reward."""
    found: list[set[int]] = [set() for _ in model.variables]

    def join(scope: Sequence[int]) -> None:
        for one in scope:
            found[one].update(scope)

    for child in range(len(model.variables)):
        join(sorted({child, *model.parents(child)}))
    for means in model.reward_means:
        for table in means:
            join([position for position in table.scope if position < len(found)])
    for position, near in enumerate(found):
        near.discard(position)
    return found


def extensions(
    model: FactoredMDP,
    scopes: Sequence[Scope],
    largest: int,
    most_variables: int = MOST_VARIABLES,
) -> list[Scope]:
    """Scopes that extend one of these by a neighbour of one of its variables, and are affordable.

    Of more candidates than can be looked at, those are kept that have the fewest variables, that
    most of them are neighbours of, and that are cheapest.
    """
    near, present = neighbours(model), set(scopes)
    found: dict[Scope, tuple[int, int, int]] = {}
    for scope in sorted(scopes, key=len):
        if not scope or len(scope) >= most_variables or len(found) >= 4 * MOST_CANDIDATES:
            continue
        for position in sorted(set.union(*(near[one] for one in scope)) - set(scope)):
            wider = tuple(sorted((*scope, position)))
            if wider in present or wider in found:
                continue
            price = backup_size(model, wider)
            if price <= largest:
                shared = sum(position in near[one] for one in scope)
                found[wider] = len(wider), len(scope) - shared, price
    return sorted(found, key=found.__getitem__)[:MOST_CANDIDATES]


@compiled()
def explained(
    scope_start: Integers,
    slots: Integers,
    strides: Integers,
    sizes: Integers,
    states: Integers,
    left: Floats,
    counts: Floats,
    gains: Floats,
) -> None:
    """Add to each scope's gain what the means of its assignments explain of what is left over.

    sum over assignments of (sum_s n(s) r(s))^2 / sum_s n(s): the drop of the squared error if every
    assignment had a function of its own.
    Cost: a look-up for each scope and state.
    """
    for scope in range(len(gains)):
        sums = np.zeros(sizes[scope])
        weights = np.zeros(sizes[scope])
        for row in range(len(states)):
            at = 0
            for i in range(scope_start[scope], scope_start[scope + 1]):
                at += states[row, slots[i]] * strides[i]
            sums[at] += counts[row] * left[row]
            weights[at] += counts[row]
        for at in range(sizes[scope]):
            if weights[at] > 0.0:
                gains[scope] += sums[at] * sums[at] / (weights[at] + OBSERVATIONS)


def with_scopes(model: FactoredMDP, basis: Basis, scopes: Sequence[Scope]) -> Basis:
    """The basis with the indicators of all assignments of these scopes that have no zero."""
    tables = []
    for scope in scopes:
        shape = tuple(model.sizes[position] for position in scope)
        for assignment in product(*(range(1, size) for size in shape)):
            values = np.zeros(shape)
            values[assignment] = 1.0
            tables.append(bound_table(scope, values))
    return Basis([*basis.tables[1:], *tables])


def gains_of(
    model: FactoredMDP,
    scopes: Sequence[Scope],
    states: Sequence[Integers],
    left: Sequence[Floats],
    counts: Sequence[Floats],
    check: Callable[[], None] = lambda: None,
) -> Floats:
    """What each scope explains of what the fits of several steps leave over; steps count alike."""
    slots: list[int] = []
    strides: list[int] = []
    start, sizes = [0], []
    for scope in scopes:
        stride = table_size(model.sizes[p] for p in scope)
        sizes.append(stride)
        for position in scope:
            stride //= model.sizes[position]
            slots.append(position)
            strides.append(stride)
        start.append(len(slots))
    starts, at, by, shape = (
        np.array(part, dtype=np.int64) for part in (start, slots, strides, sizes)
    )
    gains = np.zeros(len(scopes))
    for one, residual, count in zip(states, left, counts, strict=True):
        check()
        scale = float(count @ residual**2) or 1.0
        explained(starts, at, by, shape, one, residual / np.sqrt(scale), count, gains)
    return gains
