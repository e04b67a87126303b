"""Cost networks in which the variables of a joint action are maximised."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from fsmdp.elimination.counting import Addition, Counters, count_off_zero
from fsmdp.elimination.network import Network
from fsmdp.elimination.order import LARGE, TRIES, best_order, given_order
from fsmdp.model.actions import Actions
from fsmdp.model.cases import Cases
from fsmdp.model.variables import Scope, Variable

TREES = 4
"""Orders along which variables that are limited together are counted, to choose the cheapest."""


def joint_network(
    variables: Sequence[Variable],
    actions: Actions,
    factors: Sequence[Cases[Scope]],
    elimination_order: Sequence[int] | None = None,
) -> tuple[Network, Sequence[int] | None, tuple[Addition, ...]]:
    """One sum over other variables and action variables, with what is not allowed as constraints.

    Positions: the variables given, action variables, counters. An order that was given comes back
    with the counters in their places, and at last how these add up.
    """
    first = len(variables)
    inputs = (*variables, *actions.variables)
    sizes = tuple(variable.size for variable in inputs)
    names = tuple(variable.name for variable in inputs)
    constraints = tuple(
        (tuple(first + position for position in table.scope), np.asarray(table.values == 0))
        for table in actions.forbidden
    )
    most = actions.most_off_idle
    if most is None:
        return Network(sizes, 1, tuple(factors), names, constraints), elimination_order, ()
    scopes = [*(scope for factor in factors for scope in factor), *(s for s, _ in constraints)]
    counted = range(first, len(inputs))
    if elimination_order is None:
        counters = _cheapest(scopes, sizes, counted, most)
    else:
        order = given_order(elimination_order, scopes, sizes)
        counters = count_off_zero(order, sizes, counted, most)
    network = Network(
        (*sizes, *counters.sizes),
        1,
        tuple(factors),
        (*names, *(f"count {number}" for number in range(len(counters.sizes)))),
        (*constraints, *counters.constraints),
    )
    order_then = None if elimination_order is None else counters.order
    return network, order_then, counters.additions


def _cheapest(
    scopes: Sequence[Scope], sizes: tuple[int, ...], counted: Sequence[int], most: int
) -> Counters:
    """Counters along that order, of several where tables are large, which costs least with them.

    Orders that cost the same without counters may differ by a factor of three with them.
    """
    best, cost = None, math.inf
    for seed in range(TREES):
        order = best_order(scopes, sizes, seed=TRIES * seed)
        counters = count_off_zero(order, sizes, counted, most)
        if order.largest_table * (most + 1) ** 3 < LARGE:
            return counters  # with the three counters of an addition no table is large either
        together = [*scopes, *(scope for scope, _ in counters.constraints)]
        found = best_order(together, (*sizes, *counters.sizes))
        if found.total_entries < cost:
            best, cost = counters, found.total_entries
        if found.largest_table < LARGE:
            break
    assert best is not None
    return best
