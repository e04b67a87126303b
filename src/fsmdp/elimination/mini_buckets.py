"""Mini-buckets: how large they can be within a budget of table entries, and which should be."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fsmdp.elimination.choose import Elimination, build
from fsmdp.elimination.network import Network
from fsmdp.elimination.order import DEFAULT_LIMIT
from fsmdp.elimination.schedule import Room
from fsmdp.errors import WidthError
from fsmdp.model.tables import Floats

LARGEST, SMALLEST, STEP = 2**20, 2**4, 4
"""Sizes of mini-buckets that are tried, from the largest on, each so much smaller."""

NOTHING = 1e-3
"""Of the largest slack: variables with less are left as they are."""


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


def widened(elimination: Elimination, slack: Floats, budget: int) -> Elimination | None:
    """Mini-buckets of the variables of most slack, each `STEP` times as large as before.

    As many variables as the budget of table entries has room for; None if that is not even one.
    Cost: the elimination orders of a few sizes.
    """
    room = elimination.room
    if room is None or elimination.is_exact:
        return None
    finite = slack[np.isfinite(slack)]
    slack = np.nan_to_num(slack, posinf=2 * float(finite.max(initial=0.0)) or 1.0)
    wanted = [int(v) for v in np.argsort(-slack, kind="stable") if slack[v] > NOTHING * slack.max()]
    while wanted:
        more = {**room.more, **{v: min(LARGEST, STEP * room.of(v)) for v in wanted}}
        wanted = wanted[: len(wanted) // 2]
        try:
            found = with_room(elimination, Room(room.most, more))
        except WidthError:  # more messages than there is room for
            continue
        if found.n_rows <= budget and found.n_rows != elimination.n_rows:
            return found
    return None


def with_room(elimination: Elimination, room: Room) -> Elimination:
    """The same network, eliminated with other mini-buckets."""
    order, method = elimination.elimination_order, elimination.method
    return build(elimination.network, DEFAULT_LIMIT, order, method, tries=2, mini_bucket=room)
