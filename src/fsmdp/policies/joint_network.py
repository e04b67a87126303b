"""Cost networks in which the variables of a joint action are maximised."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fsmdp.elimination.counting import Addition, count_off_zero
from fsmdp.elimination.network import Network
from fsmdp.elimination.order import best_order, given_order
from fsmdp.model.actions import Actions
from fsmdp.model.cases import Cases
from fsmdp.model.variables import Scope, Variable


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
    if elimination_order is None:
        order = best_order(scopes, sizes)
    else:
        order = given_order(elimination_order, scopes, sizes)
    counters = count_off_zero(order, sizes, range(first, len(inputs)), most)
    network = Network(
        (*sizes, *counters.sizes),
        1,
        tuple(factors),
        (*names, *(f"count {number}" for number in range(len(counters.sizes)))),
        (*constraints, *counters.constraints),
    )
    order_then = None if elimination_order is None else counters.order
    return network, order_then, counters.additions
