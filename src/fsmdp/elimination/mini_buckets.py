"""Mini-buckets: how large they can be within a budget of table entries."""

from __future__ import annotations

from collections.abc import Sequence

from fsmdp.elimination.choose import Elimination, build
from fsmdp.elimination.network import Network
from fsmdp.elimination.order import DEFAULT_LIMIT
from fsmdp.errors import WidthError

LARGEST, SMALLEST, STEP = 2**20, 2**4, 4
"""Sizes of mini-buckets that are tried, from the largest on, each so much smaller."""


def build_within(
    network: Network,
    budget: int,
    limit: int = DEFAULT_LIMIT,
    elimination_order: Sequence[int] | None = None,
    method: str = "auto",
) -> Elimination:
    """Exact elimination if all its tables together have no more entries than the budget.

    Otherwise with the largest mini-buckets that keep within it; if none do, with the smallest, so
    that there is always something. Nothing of the size of a table is made.
    Cost: the elimination orders of at most a dozen sizes.
    """
    try:
        exact = build(network, limit, elimination_order, method)
        if exact.n_rows <= budget:
            return exact
    except WidthError:
        pass
    size = LARGEST
    while size > budget:
        size //= STEP
    found = None
    while found is None or (found.n_rows > budget and size >= SMALLEST):
        found = build(network, DEFAULT_LIMIT, elimination_order, method, tries=2, mini_bucket=size)
        size //= STEP
    return found
