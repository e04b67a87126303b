"""One network for each class of actions: for when a shared one is too wide."""

from __future__ import annotations

from collections.abc import Sequence

from fsmdp.elimination.network import Network
from fsmdp.elimination.order import Order, best_order, given_order
from fsmdp.elimination.schedule import Room, Schedule, ScheduleBuilder
from fsmdp.model.cases import Change


def separate_schedule(
    network: Network, orders: Sequence[Order], room: Room | None = None
) -> Schedule:
    """Steps that eliminate the network of each class of actions in an order of its own.

    With a `room` buckets are split into mini-buckets.

    Cost: the number of classes times the entries of one network.
    Source: Guestrin, Koller, Parr and Venkataraman, Efficient solution algorithms for factored
    MDPs (2003), section 4.
    """
    builder = ScheduleBuilder(network, room)
    finals = []
    for changes, order in zip(network.changes, orders, strict=True):
        replaced = dict(changes)
        terms = [
            builder.table(factor, replaced.get(factor, 0)) for factor in range(len(network.factors))
        ]
        finals.append(builder.finish(terms, order.variables))
    return builder.build(finals)


def class_order(
    network: Network,
    changes: tuple[Change, ...],
    elimination_order: Sequence[int] | None = None,
    tries: int = 1,
) -> Order:
    """The order for one class of actions: the user's own, or the best found for its scopes."""
    replaced = dict(changes)
    scopes = [
        factor.groups[replaced.get(position, 0)] for position, factor in enumerate(network.factors)
    ]
    if elimination_order is not None:
        return given_order(elimination_order, scopes, network.sizes)
    return best_order(scopes, network.sizes, tries)
