"""Folded look-ups: the terms in which actions differ, added up once into few tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fsmdp.model.lookup import Lookup
from fsmdp.model.tables import Floats
from fsmdp.model.variables import Scope
from fsmdp.policies.filling import Filling, fill
from fsmdp.policies.folded import Folded
from fsmdp.policies.packing import Pack, Piece, pack

NUMBERS_LIMIT = 2**26
"""Numbers in the tables of all steps (512 MiB)."""

ATTEMPTS = ((4, 1 / 4), (4, math.inf), (0, math.inf))
"""Ways to fold, of which the first that keeps to the limit is taken.

A term and its default are kept apart if one table for both is more than so many times larger; a
further number has to save so many additions a look-up. (Less, and rings of 1,000 machines read
tables that no longer fit into the processor's cache: twice as slow.)
"""

FILLING = 2
"""Time to fill a number in, in readings of a look-up, as measured."""

NOTHING = -1


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Which terms are folded into which tables: structure only, for any entries."""

    folded: Folded
    filling: Filling
    largest_part: int  # cells
    acting_cost: int  # numbers read for an action
    filling_cost: int  # numbers read and written for the tables of a step

    @property
    def numbers(self) -> int:
        """Numbers in the tables of a step."""
        return int(self.folded.offset[-1])

    def pays(self, times: float, plain_cost: int) -> bool:
        """Whether a step's tables that are read so many times are worth filling.

        `plain_cost` is what is read without them (`lookup_cost`).
        """
        return FILLING * self.filling_cost < times * (plain_cost - self.acting_cost)


@dataclass(frozen=True, slots=True)
class _Term:
    """Table `plus` less table `minus`, for the actions of a column; either may be missing."""

    plus: int
    minus: int
    scope: Scope
    column: int


def fold_layout(
    lookup: Lookup,
    sizes: Sequence[int],
    n_actions: int,
    n_steps: int,
    limit: int = NUMBERS_LIMIT,
    totals: bool = False,
) -> Layout | None:
    """Tables that give the terms in which actions differ; None if `limit` numbers are too few.

    Exceptions that hold under the same actions and have the same scope become one function.
    Functions of nested or overlapping scopes share a table as long as it pays (`pack`), so that
    an index is found once for all of them. With `totals`, the default terms are folded as well,
    as those of one action more: the last total is what all actions have in common.
    Cost: the exceptions, and the scopes times those they overlap.
    """
    for apart, price in ATTEMPTS:
        terms, uses = _terms(lookup, sizes, n_actions, apart, totals)
        grouped: dict[Scope, list[_Term]] = {}
        for term in terms:
            grouped.setdefault(term.scope, []).append(term)
        pieces = [
            Piece(scope, frozenset(term.column for term in members))
            for scope, members in grouped.items()
        ]
        packs = pack(pieces, [len(actions) for actions in uses], sizes, price)
        if n_steps * sum(shared.numbers for shared in packs) <= limit:
            return _lay_out(lookup, sizes, packs, list(grouped.values()), uses)
    return None


def lookup_cost(lookup: Lookup, totals: bool = False) -> int:
    """Numbers read for the terms in which actions differ, as they stand in a Lookup.

    With `totals`, for what all actions have in common as well.
    """
    reads = np.diff(lookup.input_start) + 2
    defaults = lookup.defaults[lookup.exception_item]
    cost = reads[lookup.exception_table].sum() + reads[defaults].sum()
    return int(cost + reads[lookup.defaults].sum() if totals else cost)


def _terms(
    lookup: Lookup, sizes: Sequence[int], n_actions: int, apart: float, totals: bool
) -> tuple[list[_Term], list[tuple[int, ...]]]:
    """The terms, and the actions of each column."""
    columns: dict[tuple[int, ...], int] = {}

    def column(actions: Sequence[int]) -> int:
        return columns.setdefault(tuple(actions), len(columns))

    order = np.argsort(lookup.exception_table, kind="stable")
    actions = np.repeat(np.arange(n_actions), np.diff(lookup.exception_start))[order].tolist()
    tables, first = np.unique(lookup.exception_table[order], return_index=True)
    defaults = lookup.defaults[lookup.exception_item[order[first]]].tolist()
    ends = [*first.tolist(), len(actions)][1:]
    terms: list[_Term] = []
    alone: dict[int, list[int]] = {}
    for table, default, begin, end in zip(
        tables.tolist(), defaults, first.tolist(), ends, strict=True
    ):
        if table == default:
            continue
        scope, usual = _scope(lookup, table), _scope(lookup, default)
        union = tuple(sorted({*scope, *usual}))
        if _cells(union, sizes) <= apart * (_cells(scope, sizes) + _cells(usual, sizes)):
            terms.append(_Term(table, default, union, column(actions[begin:end])))
            continue
        terms.append(_Term(table, NOTHING, tuple(sorted(scope)), column(actions[begin:end])))
        alone.setdefault(default, []).extend(actions[begin:end])
    for default, left in alone.items():
        usual = tuple(sorted(_scope(lookup, default)))
        terms.append(_Term(NOTHING, default, usual, column(sorted(left))))
    if totals:
        for default in lookup.defaults.tolist():
            usual = tuple(sorted(_scope(lookup, default)))
            terms.append(_Term(default, NOTHING, usual, column([n_actions])))
    return terms, list(columns)


def _scope(lookup: Lookup, table: int) -> Scope:
    return tuple(
        lookup.input_slot[lookup.input_start[table] : lookup.input_start[table + 1]].tolist()
    )


def _cells(scope: Scope, sizes: Sequence[int]) -> int:
    return math.prod(sizes[variable] for variable in scope)


def _lay_out(
    lookup: Lookup,
    sizes: Sequence[int],
    packs: Sequence[Pack],
    terms_of_piece: Sequence[Sequence[_Term]],
    uses: Sequence[Sequence[int]],
) -> Layout:
    """Packs as arrays."""
    lists: dict[str, list[int]] = {
        name: [0] if name.endswith("_start") or name == "offset" else []
        for name in (*Folded._fields, *Filling._fields)
    }
    filling_cost = 0
    for shared in packs:
        scope, columns = shared.scope, sorted(shared.columns)
        position = {column: at for at, column in enumerate(columns)}
        strides = _strides([sizes[variable] for variable in scope], len(columns))
        lists["input_slot"] += scope
        lists["input_stride"] += strides
        lists["input_start"].append(len(lists["input_slot"]))
        for column in columns:
            lists["member_column"] += [position[column]] * len(uses[column])
            lists["member_action"] += uses[column]
        lists["member_start"].append(len(lists["member_column"]))
        lists["offset"].append(lists["offset"][-1] + shared.numbers)
        lists["table_size"] += (sizes[variable] for variable in scope)
        lists["table_size_start"].append(len(lists["table_size"]))
        lists["table_width"].append(len(columns))
        for piece in shared.pieces:
            filling_cost += _lay_out_piece(
                lookup, sizes, shared, terms_of_piece[piece], position, lists
            )
        lists["part_start"].append(len(lists["part_column"]))
    arrays = {name: np.array(values, dtype=np.int64) for name, values in lists.items()}
    return Layout(
        Folded(**{name: arrays[name] for name in Folded._fields}),
        Filling(**{name: arrays[name] for name in Filling._fields}),
        max((_cells(terms[0].scope, sizes) for terms in terms_of_piece), default=1),
        2 * len(packs) + len(lists["input_slot"]) + len(lists["member_column"]),
        filling_cost,
    )


def _lay_out_piece(
    lookup: Lookup,
    sizes: Sequence[int],
    shared: Pack,
    terms: Sequence[_Term],
    position: dict[int, int],
    lists: dict[str, list[int]],
) -> int:
    """Add a piece's parts and terms to the lists; the numbers that filling them reads or writes."""
    scope = terms[0].scope
    part_sizes = [sizes[variable] for variable in scope]
    stride_of = dict(zip(scope, _strides(part_sizes, 1), strict=True))
    cost = 0
    by_column: dict[int, list[_Term]] = {}
    for term in terms:
        by_column.setdefault(term.column, []).append(term)
    for column, added in by_column.items():
        lists["part_column"].append(position[column])
        lists["part_stride"] += (stride_of.get(variable, 0) for variable in shared.scope)
        lists["part_size"] += part_sizes
        lists["part_size_start"].append(len(lists["part_size"]))
        for term in added:
            for name, table in (("plus", term.plus), ("minus", term.minus)):
                at, strides = _axes(lookup, table, scope)
                lists[f"{name}_at"].append(at)
                lists[f"{name}_stride"] += strides
        lists["term_start"].append(len(lists["plus_at"]))
        cost += shared.cells + len(added) * _cells(scope, sizes)
    return cost


def _axes(lookup: Lookup, table: int, scope: Scope) -> tuple[int, list[int]]:
    """Where a table begins, and its strides along a scope; no table is a zero after the entries."""
    if table == NOTHING:
        return int(lookup.offset[-1]), [0] * len(scope)
    begin, end = lookup.input_start[table], lookup.input_start[table + 1]
    found = dict(
        zip(
            lookup.input_slot[begin:end].tolist(),
            lookup.input_stride[begin:end].tolist(),
            strict=True,
        )
    )
    return int(lookup.offset[table]), [found.get(variable, 0) for variable in scope]


def _strides(sizes: Sequence[int], width: int) -> list[int]:
    """Strides of a table's axes, the last varying fastest, with `width` numbers in a row."""
    strides = []
    stride = width
    for size in reversed(sizes):
        strides.append(stride)
        stride *= size
    return strides[::-1]


def fold(layout: Layout, entries: Floats) -> Floats:
    """Folded tables (n_steps, numbers) of entries (n_steps, n_entries).

    A term's difference from its default is taken before anything is added to it, so an action
    that changes nothing in a state has a total of exactly 0 there.
    Cost: for each step the cells of all terms, and those of each table for each part.
    """
    # A row without numbers would be an array without an address.
    tables = np.zeros((len(entries), max(1, layout.numbers)))
    most_axes = int(np.diff(layout.filling.table_size_start).max(initial=1))
    fill(layout.folded.offset, layout.filling, entries, tables, layout.largest_part, most_axes)
    return tables
