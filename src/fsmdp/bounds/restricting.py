"""Networks restricted to the states in which invariants hold: factors that are 0 or -infinity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from fsmdp.elimination.counting import Addition, count_along
from fsmdp.elimination.network import Network
from fsmdp.elimination.order import Order, best_order, given_order
from fsmdp.reductions.invariants import Invariant, LocalInvariant, SumInvariant

ROOM, FEW = 2, 2**12
"""A restriction that no table of the network holds may cost so many times the entries of all
tables, or so many entries."""

OF_ACTIONS = -1
"""In place of an invariant: the limit on joint actions."""

QUICK = 1
"""Orders that are tried to tell what a restriction costs."""


@dataclass(frozen=True, slots=True)
class Restriction:
    """An invariant that restricts a network, and for a sum how it is counted there."""

    invariant: int
    additions: tuple[Addition, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Restricted:
    """A network with constraints for some invariants, and which."""

    network: Network
    order: Sequence[int] | None = field(repr=False)
    restrictions: tuple[Restriction, ...]


def restrict(
    network: Network, order: Sequence[int] | None, invariants: Sequence[Invariant]
) -> Restricted:
    """Add what restricts a network without making it much wider.

    Tables over variables that some table of the network looks at cost nothing. Others, and sums,
    are taken one kind after another as long as elimination stays within its room. Positions of
    counters stand after those of all other variables.
    Cost: an order of elimination for each sum, and two more.
    """
    found = Restricted(network, order, ())
    if not invariants:
        return found
    holding: dict[int, list[set[int]]] = {}
    for scope in set(network.all_scopes):
        for position in scope:
            holding.setdefault(position, []).append(set(scope))
    free, others, sums = [], [], []
    for number, one in enumerate(invariants):
        if isinstance(one, SumInvariant):
            sums.append(number)
        elif any(scope.issuperset(one.scope) for scope in holding.get(one.scope[0], ())):
            free.append(number)
        elif all(position in holding for position in one.scope):
            others.append(number)
    found = _with_tables(found, invariants, free)
    if others or sums:
        most = max(FEW, ROOM * _order_of(found).total_entries)
        steps = [partial(_with_tables, invariants=invariants, chosen=others)]
        steps += [partial(_with_sum, invariants=invariants, number=number) for number in sums]
        for widened in steps:
            tried = widened(found)
            if _order_of(tried).total_entries <= most:
                found = tried
    return found


def _order_of(found: Restricted) -> Order:
    network = found.network
    if found.order is not None:
        return given_order(found.order, network.all_scopes, network.sizes)
    return best_order(network.all_scopes, network.sizes, QUICK)


def _with_tables(
    before: Restricted, invariants: Sequence[Invariant], chosen: Sequence[int]
) -> Restricted:
    tables = []
    for number in chosen:
        one = invariants[number]
        assert isinstance(one, LocalInvariant)
        tables.append((one.scope, one.allowed))
    added = tuple(Restriction(number) for number in chosen)
    network = before.network.with_constraints(tables)
    return replace(before, network=network, restrictions=(*before.restrictions, *added))


def _with_sum(before: Restricted, invariants: Sequence[Invariant], number: int) -> Restricted:
    one, network = invariants[number], before.network
    assert isinstance(one, SumInvariant)
    counts = dict(zip(one.scope, one.counts, strict=True))
    counters = count_along(_order_of(before), network.sizes, counts, one.least, one.most)
    if not counters.constraints:
        return before
    return Restricted(
        network.with_constraints(counters.constraints, counters.sizes),
        None if before.order is None else counters.order,
        (*before.restrictions, Restriction(number, counters.additions)),
    )
