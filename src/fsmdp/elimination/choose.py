"""Choose how to eliminate: shared messages where they fit, a network per action where not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations_with_replacement
from typing import NoReturn

from numpy.typing import ArrayLike

from fsmdp.elimination.max_sum import Maximum, MaxSum
from fsmdp.elimination.network import Network
from fsmdp.elimination.order import (
    DEFAULT_LIMIT,
    Order,
    best_order,
    check_width,
    given_order,
    size_text,
    variable_text,
    width_error,
)
from fsmdp.elimination.rows import Rows, lp_rows
from fsmdp.elimination.schedule import Room, Schedule, ScheduleBuilder
from fsmdp.elimination.shared import shared_schedule
from fsmdp.errors import ModelError
from fsmdp.foundation.checks import plural
from fsmdp.model.cases import Change
from fsmdp.model.variables import Scope


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


SAMPLED_CLASSES = 8
"""Classes of actions whose own networks are examined to estimate the cost of all."""

MESSAGES_PER_TABLE = 4
"""Messages are stored together, tables are not: so many times the limit for all of them."""

ALWAYS_ROOM_FOR = DEFAULT_LIMIT
"""Messages that fit however low the limit on a table."""


@dataclass(frozen=True, eq=False)
class Elimination:
    """A network with the steps chosen to eliminate it, for max-sum and for LP rows alike."""

    network: Network = field(repr=False)
    schedule: Schedule = field(repr=False)
    method: str
    why: str
    elimination_order: Sequence[int] | None = None  # as it was asked for
    room: Room | None = None  # of its mini-buckets

    @property
    def induced_width(self) -> int:
        """Variables in the largest table, less one."""
        return self.schedule.induced_width

    @property
    def largest_table(self) -> int:
        """Entries of the largest table."""
        return self.schedule.largest_table

    @property
    def is_exact(self) -> bool:
        """Whether maxima are maxima, and not bounds on them from above."""
        return self.schedule.is_exact

    @property
    def n_rows(self) -> int:
        """Number of LP rows, known without building them."""
        return self.schedule.n_rows

    @property
    def n_columns(self) -> int:
        """Number of LP variables that stand for messages."""
        return self.schedule.n_messages - len(self.schedule.finals)

    @cached_property
    def _max_sum(self) -> MaxSum:
        return MaxSum(self.schedule)

    def maximise(self, entries: ArrayLike, check: Callable[[], None] | None = None) -> Maximum:
        """max_x F_a(x) for every action, and maximisers on request; `check` may raise to end it.

        With mini-buckets: numbers that are no less.
        """
        return self._max_sum.maximise(entries, check)

    @cached_property
    def _rows(self) -> Rows:
        return lp_rows(self.schedule)

    def rows(self) -> Rows:
        """The inequalities that hold exactly when no F_a exceeds zero; made once."""
        return self._rows

    def summary(self) -> str:
        """What was chosen, its cost, width and largest table, a line each."""
        return (
            f"{self.why}\n"
            f"induced width  {self.induced_width}\n"
            f"largest table  {size_text(self.largest_table)} entries\n"
            f"all tables     {size_text(self.n_rows)} entries in "
            f"{plural(len(self.schedule.steps), 'step')}\n"
            f"messages       {size_text(self.schedule.n_messages)} numbers"
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Option:
    method: str
    words: str
    schedule: Schedule


def build(
    network: Network,
    limit: int = DEFAULT_LIMIT,
    elimination_order: Sequence[int] | None = None,
    method: str = "auto",
    tries: int | None = None,
    seed: int = 0,
    mini_bucket: int | Room | None = None,
) -> Elimination:
    """Steps with the fewest table entries in all, refused when a table exceeds the limit.

    Three ways are compared by their exact sizes: messages shared on a tree of all scopes, on a
    tree of the default scopes only (narrower where exceptions have parents of their own), and a
    network for each class of actions; `method` "shared" or "separate" rules out the others.
    Nothing of the size of a table is made before the choice. With a `mini_bucket`, of so many
    entries at most or of a `Room`, buckets are split and nothing is too wide: what is found then is
    a bound on the maximum from above.
    Cost: a few elimination orders of the whole network.
    """
    check_method(method)
    room = Room(mini_bucket) if isinstance(mini_bucket, int) else mini_bucket
    options: list[_Option] = []
    orders: list[Order] = []
    if method != "separate":
        options += _shared_options(network, elimination_order, tries, seed, room)
    fitting = [option for option in options if _fits(option.schedule, limit)]
    if method == "separate" or (
        method == "auto" and _separate_may_win(network, fitting, elimination_order)
    ):
        for changes in network.changes:
            orders.append(class_order(network, changes, elimination_order))
            if room is None and orders[-1].largest_table > limit:
                break
        else:
            schedule = separate_schedule(network, orders, room)
            options.append(_Option("separate", "one network for each class of actions", schedule))
            fitting = [option for option in options if _fits(option.schedule, limit)]
    if not fitting:
        _refuse(network, options, orders, limit)
    best = min(fitting, key=lambda option: option.schedule.n_rows)
    why = _why(best, options, limit)
    return Elimination(network, best.schedule, best.method, why, elimination_order, room)


def check_method(method: str) -> None:
    """Refuse a way to eliminate that there is not."""
    if method not in ("auto", "shared", "separate"):
        raise ModelError(
            f"method of elimination: expected 'auto', 'shared' or 'separate', found {method!r}."
        )


def _shared_options(
    network: Network,
    elimination_order: Sequence[int] | None,
    tries: int | None,
    seed: int,
    room: Room | None,
) -> list[_Option]:
    def order(scopes: Sequence[Scope]) -> Order:
        if elimination_order is not None:
            return given_order(elimination_order, scopes, network.sizes)
        return best_order(scopes, network.sizes, tries, seed)

    union = shared_schedule(network, order(network.all_scopes), room)
    options = [_Option("shared", "shared messages", union)]
    if not _joined_pairs(network.all_scopes) <= _joined_pairs(network.default_scopes):
        narrow = shared_schedule(network, order(network.default_scopes), room)
        words = "shared messages on a tree of the default scopes"
        options.append(_Option("shared", words, narrow))
    return options


def _joined_pairs(scopes: Sequence[Scope]) -> set[tuple[int, int]]:
    return {pair for scope in set(scopes) for pair in combinations_with_replacement(scope, 2)}


def _fits(schedule: Schedule, limit: int) -> bool:
    room = max(ALWAYS_ROOM_FOR, MESSAGES_PER_TABLE * limit)
    return schedule.largest_table <= limit and schedule.n_messages <= room


def _separate_may_win(
    network: Network, fitting: Sequence[_Option], elimination_order: Sequence[int] | None
) -> bool:
    """A guess from a few classes, since laying out all of them can be the largest cost."""
    if not fitting:
        return True
    sample = network.changes[:: max(1, network.n_classes // SAMPLED_CLASSES)]
    entries = sum(
        class_order(network, changes, elimination_order).total_entries for changes in sample
    )
    guess = entries * network.n_classes // len(sample)
    # Joining cliques saves at most about half of an order's entries.
    return guess // 2 < min(option.schedule.n_rows for option in fitting)


def _why(best: _Option, options: Sequence[_Option], limit: int) -> str:
    parts = [f"{best.words}: {size_text(best.schedule.n_rows)} table entries in all"]
    if not best.schedule.is_exact:
        parts.append(
            f"buckets split {plural(best.schedule.n_splits, 'time')} into mini-buckets of at most "
            f"{size_text(best.schedule.largest_table)} entries, which bound maxima from above"
        )
    for option in options:
        if option is best:
            continue
        need = size_text(option.schedule.n_rows)
        if not _fits(option.schedule, limit):
            table, messages = option.schedule.largest_table, option.schedule.n_messages
            need = f"{size_text(table if table > limit else messages)} at once"
            need += f", beyond the limit {size_text(limit)}"
        parts.append(f"{option.words} would need {need}")
    if best.method == "shared" and all(option.method == "shared" for option in options):
        parts.append("one network for each class of actions is expected to need more")
    return "; ".join(parts)


def _refuse(
    network: Network, options: Sequence[_Option], orders: Sequence[Order], limit: int
) -> NoReturn:
    """Say what the narrowest way found would have needed."""
    n_variables = len({variable for scope in network.all_scopes for variable in scope})
    schedules = [option.schedule for option in options]
    schedule = min(schedules, key=lambda one: one.largest_table, default=None)
    if orders and orders[-1].largest_table > limit:
        order = orders[-1]
        if schedule is None or order.largest_table < schedule.largest_table:
            check_width(order, limit, network.names)
    assert schedule is not None
    if schedule.largest_table > limit:
        step = schedule.widest
        at = variable_text((step.eliminated or step.kept)[0], network.names)
        entries, what, where = schedule.largest_table, "a table", f" at {at}"
    else:
        entries, what, where = schedule.n_messages, "messages", ""
    raise width_error(n_variables, schedule.induced_width, entries, limit, what, where)
