"""Elimination orders: pure functions of scopes and sizes, known before any table is made."""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any

import numpy as np

from fsmdp.errors import ModelError, WidthError
from fsmdp.foundation.checks import plural
from fsmdp.model.variables import Scope

DEFAULT_LIMIT = 2**26
WIDE = 8
FEW_TRIES, TRIES = 4, 16
LARGE, TOO_LARGE = 2**12, 2**30
"""Entries of a table from which more orders are tried, since eliminating takes longer than another
try, and from which no gain is expected."""


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """An order of all variables and what eliminating in it costs.

    `cliques[k]` is the scope of the table made when the k-th variable is eliminated; a variable
    in no scope needs none, stands last and has no clique. All sizes are exact integers.
    """

    variables: tuple[int, ...]
    cliques: tuple[Scope, ...] = field(repr=False)
    induced_width: int
    largest_table: int
    largest_at: int | None
    total_entries: int

    def summary(self) -> str:
        """Cost, width and largest table on a line each."""
        return (
            f"variables eliminated  {len(self.cliques)} of {len(self.variables)}\n"
            f"induced width         {self.induced_width}\n"
            f"largest table         {size_text(self.largest_table)} entries\n"
            f"all tables            {size_text(self.total_entries)} entries"
        )

    def __repr__(self) -> str:
        return (
            f"Order({plural(len(self.variables), 'variable')}, induced width {self.induced_width}, "
            f"largest table {size_text(self.largest_table)} entries, "
            f"total {size_text(self.total_entries)} entries)"
        )


def min_fill(scopes: Iterable[Scope], sizes: Sequence[int], seed: int | None = None) -> Order:
    """Eliminate next the variable that adds the fewest edges between its neighbours.

    Ties go to the variable with the shortest chain of eliminations before it, then to the lowest
    position, or to a random one when a seed is given.
    Cost: about n * d^2 / 64 word operations, d the largest degree that occurs.
    Source: Kjaerulff, Triangulation of graphs (1990).
    """
    return _complete(_greedy(_Graph(scopes, sizes), "fill", seed), len(sizes))


def min_degree(scopes: Iterable[Scope], sizes: Sequence[int], seed: int | None = None) -> Order:
    """Eliminate next the variable whose table is smallest (of fewest neighbours, if sizes agree).

    Cost: about n * d word operations, d the largest degree that occurs.
    Source: Kjaerulff, Triangulation of graphs (1990), there called minimum weight.
    """
    return _complete(_greedy(_Graph(scopes, sizes), "degree", seed), len(sizes))


def sweep(scopes: Iterable[Scope], sizes: Sequence[int]) -> Order:
    """Eliminate along a front that sweeps over the network from one end to the other.

    On grids, where greedy rules wander, the front stays as short as the grid is narrow.
    Cost: sorting the edges.
    Source: Cuthill and McKee, Reducing the bandwidth of sparse symmetric matrices (1969).
    """
    from scipy import sparse
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    scopes = list(dict.fromkeys(scopes))
    pairs = {pair for scope in scopes for pair in permutations(scope, 2)}
    ones = np.ones(len(pairs), dtype=np.int8)
    ends = np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)
    shape = (len(sizes), len(sizes))
    graph: Any = sparse.csr_matrix((ones, (ends[:, 0], ends[:, 1])), shape=shape)
    along = [int(variable) for variable in reverse_cuthill_mckee(graph, symmetric_mode=True)]
    forward, backward = given_order(along, scopes, sizes), given_order(along[::-1], scopes, sizes)
    return min(forward, backward, key=lambda order: order.total_entries)


def best_order(
    scopes: Iterable[Scope], sizes: Sequence[int], tries: int | None = None, seed: int = 0
) -> Order:
    """The order of fewest total table entries among several of min-fill and min-degree.

    The first try of either breaks ties by position, later ones at random from the seed; a try is
    given up as soon as it costs more than the best so far. Unless it is said how many to try, these
    are a few, and more where even the best has a large table. A sweep is tried where these are
    wide; elsewhere their shallow trees are worth more than a few entries.
    Cost: that of min-fill for each try.
    """
    scopes = list(dict.fromkeys(scopes))
    best: Order | None = None
    for number in range(TRIES if tries is None else max(1, tries)):
        is_enough = best is not None and not LARGE <= best.largest_table <= TOO_LARGE
        if tries is None and number >= FEW_TRIES and is_enough:
            break
        rule = ("fill", "degree")[number % 2]
        ties = None if number < 2 else seed + number
        bound = None if best is None else best.total_entries
        found = _greedy(_Graph(scopes, sizes), rule, ties, bound)
        if found is not None:
            best = found
    greedy = _complete(best, len(sizes))
    if greedy.induced_width < WIDE:
        return greedy
    return min(greedy, sweep(scopes, sizes), key=lambda order: order.total_entries)


def given_order(variables: Sequence[int], scopes: Iterable[Scope], sizes: Sequence[int]) -> Order:
    """The cost of the user's own order, which must name every variable once."""
    check_complete(variables, len(sizes))
    graph = _Graph(scopes, sizes)
    for variable in variables:
        if variable in graph.position:
            graph.eliminate(graph.position[variable])
    return _complete(graph.order(), len(sizes))


def check_complete(variables: Sequence[int], n_variables: int) -> None:
    """Refuse an order that does not name every variable exactly once."""
    if sorted(variables) != list(range(n_variables)):
        missing = sorted(set(range(n_variables)) - set(variables))
        found = f"{len(variables)} positions" + (f" without {missing[:4]}" if missing else "")
        raise ModelError(
            f"elimination_order: expected each position 0 to {n_variables - 1} exactly once, "
            f"found {found}; list every variable once."
        )


def greedy_sequence(
    scopes: Iterable[Scope], sizes: Sequence[int], kept: Iterable[int] = ()
) -> tuple[int, ...]:
    """The variables of some scopes, save those kept, in min-fill order."""
    order = _greedy(_Graph(scopes, sizes), "fill", None, kept=frozenset(kept))
    assert order is not None
    return order.variables


def check_width(order: Order, limit: int = DEFAULT_LIMIT, names: Sequence[str] = ()) -> None:
    """Refuse an order whose largest table has more entries than the limit."""
    if order.largest_table > limit:
        raise width_error(
            len(order.cliques),
            order.induced_width,
            order.largest_table,
            limit,
            where=f" at {variable_text(order.largest_at, names)}",
        )


def width_error(
    n_variables: int, width: int, entries: int, limit: int, what: str = "a table", where: str = ""
) -> WidthError:
    """The refusal: what would have been needed, and what to do instead."""
    return WidthError(
        f"eliminating {plural(n_variables, 'variable')} needs {what} of {size_text(entries)} "
        f"entries ({_memory_text(8 * entries)}){where} (induced width {width}, limit "
        f"{size_text(limit)}); use a smaller basis, pass elimination_order=..., allow larger "
        "tables with limit=..., or bound maxima from above with mini_bucket=...."
    )


def variable_text(variable: int | None, names: Sequence[str]) -> str:
    """A variable as messages name it."""
    return repr(names[variable]) if names and variable is not None else f"variable {variable}"


def size_text(entries: int) -> str:
    """A number of entries as people read it: 46,464, 2^31, 5.2e+11."""
    if entries >= 2**14 and entries & (entries - 1) == 0:
        return f"2^{entries.bit_length() - 1}"
    if entries < 10**8:
        return f"{entries:,}"
    exponent = len(str(entries)) - 1
    return f"{entries / 10**exponent:.1f}e+{exponent}"


def _memory_text(n_bytes: int) -> str:
    units = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
    power = min(len(units) - 1, max(0, (n_bytes.bit_length() - 1) // 10))
    amount = n_bytes / 1024**power
    return f"{size_text(int(amount)) if amount >= 10_000 else f'{amount:.3g}'} {units[power]}"


class _Graph:
    """Variables of some scopes joined where they meet, shrinking as they are eliminated.

    Neighbours are the bits of an integer, so that a set operation handles 64 of them at a time.
    """

    def __init__(self, scopes: Iterable[Scope], sizes: Sequence[int]) -> None:
        distinct = set(scopes)
        self.variables = sorted({variable for scope in distinct for variable in scope})
        self.position = {variable: local for local, variable in enumerate(self.variables)}
        self.neighbours = [0] * len(self.variables)
        self.members_of_size: dict[int, int] = {}
        for local, variable in enumerate(self.variables):
            size = sizes[variable]
            self.members_of_size[size] = self.members_of_size.get(size, 0) | 1 << local
        for scope in distinct:
            members = sum(1 << self.position[variable] for variable in scope)
            for variable in scope:
                self.neighbours[self.position[variable]] |= members
        for local in range(len(self.variables)):
            self.neighbours[local] &= ~(1 << local)
        self.eliminated: list[int] = []
        self.cliques: list[int] = []
        self.largest_table = 1
        self.largest_at: int | None = None
        self.total_entries = 0

    def table_size(self, members: int) -> int:
        return math.prod(
            size ** (members & of_size).bit_count()
            for size, of_size in self.members_of_size.items()
        )

    def log_size(self, members: int) -> float:
        return sum(
            math.log(size) * (members & of_size).bit_count()
            for size, of_size in self.members_of_size.items()
        )

    def fill(self, local: int) -> int:
        """Number of pairs of neighbours that are not neighbours of one another."""
        around = self.neighbours[local]
        missing = sum((around & ~self.neighbours[other]).bit_count() for other in _bits(around))
        return (missing - around.bit_count()) // 2

    def eliminate(self, local: int) -> int:
        """Join the neighbours of a variable, remove it; returns those near a new edge."""
        around = self.neighbours[local]
        clique = around | 1 << local
        affected = 0
        for one in _bits(around):
            missing = around & ~self.neighbours[one] & ~(1 << one)
            for other in _bits(missing >> (one + 1)):
                affected |= self.neighbours[one] & self.neighbours[other + one + 1]
        for one in _bits(around):
            self.neighbours[one] = (self.neighbours[one] | around) & ~(1 << one | 1 << local)
        self.eliminated.append(local)
        self.cliques.append(clique)
        entries = self.table_size(clique)
        self.total_entries += entries
        if entries > self.largest_table or self.largest_at is None:
            self.largest_table = entries
            self.largest_at = self.variables[local]
        return affected & ~(1 << local)

    def order(self) -> Order:
        return Order(
            variables=tuple(self.variables[local] for local in self.eliminated),
            cliques=tuple(
                tuple(self.variables[local] for local in _bits(clique)) for clique in self.cliques
            ),
            induced_width=max((clique.bit_count() - 1 for clique in self.cliques), default=0),
            largest_table=self.largest_table,
            largest_at=self.largest_at,
            total_entries=self.total_entries,
        )


def _greedy(
    graph: _Graph,
    rule: str,
    seed: int | None,
    bound: int | None = None,
    kept: frozenset[int] = frozenset(),
) -> Order | None:
    """Eliminate the cheapest variable until none is left; None once the bound is reached."""
    n = len(graph.variables)
    ties = list(range(n))
    if seed is not None:
        random.Random(seed).shuffle(ties)
    by_fill = rule == "fill"
    costs: list[float] = [0.0] * n
    for local in range(n):
        costs[local] = graph.fill(local) if by_fill else graph.log_size(graph.neighbours[local])
    remaining = sum(1 << local for local in range(n) if graph.variables[local] not in kept)
    # Ties by level make a shallow tree: short paths between cliques, and an LP that takes fewer
    # simplex iterations than a chain of as many rows.
    levels = [0] * n
    queue = [(costs[local], 0, ties[local], local) for local in _bits(remaining)]
    heapq.heapify(queue)
    while queue:
        cost, level, _, local = heapq.heappop(queue)
        # A variable is queued again whenever its cost changes; older copies are out of date.
        if not remaining >> local & 1 or (cost, level) != (costs[local], levels[local]):
            continue
        remaining ^= 1 << local
        around = graph.neighbours[local]
        near_new_edges = graph.eliminate(local)
        if bound is not None and graph.total_entries >= bound:
            return None
        for other in _bits((around | near_new_edges) & remaining):
            if not by_fill:
                costs[other] = graph.log_size(graph.neighbours[other])
            elif cost == 0:
                # No edge is new: only the pairs that the variable itself was part of vanish.
                costs[other] -= (graph.neighbours[other] & ~around).bit_count()
            else:
                costs[other] = graph.fill(other)
            if around >> other & 1:
                levels[other] = max(levels[other], level + 1)
            heapq.heappush(queue, (costs[other], levels[other], ties[other], other))
    return graph.order()


def _complete(order: Order | None, n_variables: int) -> Order:
    """The same order with the variables of no scope at its end."""
    assert order is not None
    known = set(order.variables)
    rest = tuple(variable for variable in range(n_variables) if variable not in known)
    return Order(
        order.variables + rest,
        order.cliques,
        order.induced_width,
        order.largest_table,
        order.largest_at,
        order.total_entries,
    )


def _bits(members: int) -> Iterator[int]:
    """Positions of the bits that are set, lowest first."""
    while members:
        lowest = members & -members
        yield lowest.bit_length() - 1
        members ^= lowest
