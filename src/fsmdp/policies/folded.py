"""Acting by folded look-ups: few tables, each read once for all the actions it tells apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fsmdp.compiled import compiled, unsigned
from fsmdp.model.lookup import Integers
from fsmdp.model.tables import Floats


class Folded(NamedTuple):
    """Tables that several actions share, as flat arrays that compiled code reads.

    A table's row holds a number for each of its columns; each member adds one of them to the
    total of an action. The total is Q(s, a) less what is the same for every action.
    """

    input_start: Integers  # (n_tables + 1,)
    input_slot: Integers
    input_stride: Integers
    member_start: Integers  # (n_tables + 1,)
    member_column: Integers
    member_action: Integers
    offset: Integers  # (n_tables + 1,) first number of each table; the last is their count


def nothing_folded() -> Folded:
    """No table at all."""
    starts, nothing = np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int64)
    return Folded(starts, nothing, nothing, starts, nothing, nothing, starts)


def check_folded(folded: Folded, sizes: Sequence[int], n_actions: int, n_numbers: int) -> None:
    """Refuse, with a ValueError, arrays that would lead compiled code out of `n_numbers` numbers.

    As for a Lookup, nothing is added up in integers, which wrap.
    """
    check_folded_vectors(folded)
    n_tables = len(folded.offset) - 1
    for starts, parts in (
        (folded.input_start, (folded.input_slot, folded.input_stride)),
        (folded.member_start, (folded.member_column, folded.member_action)),
        (folded.offset, ()),
    ):
        if len(starts) != n_tables + 1 or n_tables < 0:
            raise ValueError("folded look-up: expected a start for each table")
        if starts[0] != 0 or (starts[1:] < starts[:-1]).any():
            raise ValueError("folded look-up: expected starts from 0 that do not fall")
        if any(len(part) != starts[-1] for part in parts):
            raise ValueError("folded look-up: expected as many entries as the starts say")
    # A row without numbers would be an array without an address.
    if max(1, folded.offset[-1]) != n_numbers:
        raise ValueError(f"folded look-up: expected tables of {n_numbers} numbers in all")
    for part, below in ((folded.input_slot, len(sizes)), (folded.member_action, n_actions)):
        if len(part) and not 0 <= part.min() <= part.max() < below:
            raise ValueError("folded look-up: expected positions of what is there")
    if (folded.input_stride < 0).any() or (folded.member_column < 0).any():
        raise ValueError("folded look-up: expected strides and columns from 0 on")
    furthest = np.array(sizes, dtype=np.float64)[folded.input_slot] - 1
    table_of_input = np.repeat(np.arange(n_tables), np.diff(folded.input_start))
    table_of_member = np.repeat(np.arange(n_tables), np.diff(folded.member_start))
    last = np.bincount(table_of_input, furthest * folded.input_stride, n_tables)
    columns = np.zeros(n_tables)
    np.maximum.at(columns, table_of_member, folded.member_column)
    if (last + columns >= np.diff(folded.offset)).any():
        raise ValueError("folded look-up: expected tables that end where the next begins")


def check_folded_vectors(folded: Folded) -> None:
    """Refuse, with a ValueError, arrays of other kinds than compiled code is compiled for."""
    if any(part.dtype != np.int64 or part.ndim != 1 for part in folded):
        raise ValueError("folded look-up: expected vectors of 64-bit integers")


@compiled(inline="always")
def fill_totals(folded: Folded, tables: Floats, values: Integers, totals: Floats) -> None:
    """Q(s, a) less what all actions have in common; that comes last if it was folded, too."""
    for action in range(len(totals)):
        totals[action] = 0.0
    for table in range(len(folded.offset) - 1):
        at = folded.offset[table]
        for i in range(folded.input_start[table], folded.input_start[table + 1]):
            slot = folded.input_slot[unsigned(i)]
            at += values[unsigned(slot)] * folded.input_stride[unsigned(i)]
        for member in range(folded.member_start[table], folded.member_start[table + 1]):
            chosen = unsigned(folded.member_action[unsigned(member)])
            totals[chosen] += tables[unsigned(at + folded.member_column[unsigned(member)])]


@compiled(inline="always")
def folded_action(folded: Folded, tables: Floats, values: Integers, totals: Floats) -> int:
    """Action of largest Q; the lowest index wins ties, so a plan is reproducible."""
    fill_totals(folded, tables, values, totals)
    best = 0
    best_total = -np.inf
    for action in range(len(totals)):
        if totals[action] > best_total:
            best_total = totals[action]
            best = action
    return best


@compiled()
def folded_best_actions(
    folded: Folded,
    tables: Floats,
    n_actions: int,
    states: Integers,
    values: Floats,
    actions: Integers,
) -> None:
    """max_a Q(s, a) and the lowest action that attains it, for each of many states.

    Expects a layout with totals.
    """
    totals = np.zeros(n_actions + 1)
    for row in range(len(states)):
        fill_totals(folded, tables, states[row], totals)
        best = 0
        for action in range(1, n_actions):
            if totals[action] > totals[best]:
                best = action
        actions[row] = best
        values[row] = totals[best] + totals[n_actions]
