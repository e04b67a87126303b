"""Folded look-ups: the terms in which actions differ, added up once into few tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import NamedTuple

import numpy as np

from fsmdp.compiled import compiled, unsigned
from fsmdp.model.lookup import Lookup
from fsmdp.model.tables import Floats, Integers
from fsmdp.model.variables import Scope


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


# What a look-up takes, in units of one addition.
OPENING = 4.0
READING = 1.0
ADDING = 1.0

MOST_CANDIDATES = 32
RECENT = 2


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """A scope, and the columns that a table over it needs: one for each function it holds."""

    scope: Scope
    columns: frozenset[int]


@dataclass(slots=True, eq=False)
class Pack:
    """Pieces that share one table, whose scope is the union of theirs."""

    inside: set[int]
    columns: set[int]
    cells: int
    pieces: list[int] = field(default_factory=list)

    @property
    def scope(self) -> Scope:
        """Variables of the table, in order."""
        return tuple(sorted(self.inside))

    @property
    def numbers(self) -> int:
        """Entries of the table."""
        return self.cells * len(self.columns)


def pack(
    pieces: Sequence[Piece], uses: Sequence[int], sizes: Sequence[int], price: float
) -> list[Pack]:
    """Share tables between pieces wherever the time saved is worth the memory.

    A table over variables U with columns C takes OPENING + READING |U| + ADDING sum_{c in C} uses_c
    to look up, and |Val(U)| |C| numbers. Largest first, each piece goes to the pack where the
    time saved less `price` for each further number is largest, or to one of its own if that is
    negative; so nested scopes with the same columns, which cost no number more, go together at
    any price, an infinite one included.
    Cost: the number of pieces, times the packs that share a variable, of which the nearest
    MOST_CANDIDATES are examined.
    """
    cells = [math.prod(sizes[variable] for variable in piece.scope) for piece in pieces]
    packs: list[Pack] = []
    packs_with: dict[int, list[int]] = {}
    for number in sorted(range(len(pieces)), key=lambda p: (-cells[p], pieces[p].scope)):
        piece = pieces[number]
        best, best_gain = -1, 0.0
        for candidate in _candidates(piece.scope, packs_with, len(packs)):
            gain = _gain(packs[candidate], piece, cells[number], uses, sizes, price)
            if gain > best_gain:
                best, best_gain = candidate, gain
        if best < 0:
            best = len(packs)
            packs.append(Pack(set(), set(), 1))
        chosen = packs[best]
        for variable in piece.scope:
            if variable not in chosen.inside:
                chosen.inside.add(variable)
                chosen.cells *= sizes[variable]
                packs_with.setdefault(variable, []).append(best)
        chosen.columns |= piece.columns
        chosen.pieces.append(number)
    return packs


def _candidates(scope: Scope, packs_with: dict[int, list[int]], n_packs: int) -> list[int]:
    """Packs that share most variables with a scope, in the order they were begun, and the last."""
    shared: dict[int, int] = dict.fromkeys(range(max(0, n_packs - RECENT), n_packs), 0)
    for variable in scope:
        for candidate in packs_with.get(variable, ()):
            shared[candidate] = shared.get(candidate, 0) + 1
    nearest = sorted(shared, key=lambda candidate: (-shared[candidate], -candidate))
    return sorted(nearest[:MOST_CANDIDATES])


def _gain(
    into: Pack,
    piece: Piece,
    cells: int,
    uses: Sequence[int],
    sizes: Sequence[int],
    price: float,
) -> float:
    """Time saved by a piece that joins a pack, less the price of the numbers it adds."""
    read_already = sum(variable in into.inside for variable in piece.scope)
    added_already = sum(uses[column] for column in piece.columns if column in into.columns)
    joined = into.cells
    for variable in piece.scope:
        if variable not in into.inside:
            joined *= sizes[variable]
    n_columns = len(into.columns | piece.columns)
    grown = joined * n_columns - into.numbers - cells * len(piece.columns)
    saved = OPENING + READING * read_already + ADDING * added_already
    return saved if grown <= 0 else saved - price * grown


class Filling(NamedTuple):
    """How tables are made from the entries of a Lookup.

    A part is the sum of all terms of one scope and one column; it is added to its table. A term
    is an exception's table less its default's.
    """

    table_size_start: Integers  # (n_tables + 1,)
    table_size: Integers
    table_width: Integers  # (n_tables,)
    part_start: Integers  # (n_tables + 1,)
    part_column: Integers  # (n_parts,)
    part_stride: Integers  # of a part along its table's axes, table after table
    part_size_start: Integers  # (n_parts + 1,)
    part_size: Integers
    term_start: Integers  # (n_parts + 1,)
    plus_at: Integers  # (n_terms,)
    minus_at: Integers
    plus_stride: Integers  # along the part's axes, term after term
    minus_stride: Integers


@compiled()
def fill(
    offset: Integers,
    filling: Filling,
    entries: Floats,
    tables: Floats,
    largest_part: int,
    most_axes: int,
) -> None:
    """Fill tables (n_steps, numbers), which are zero, from entries (n_steps, n_entries).

    Cost: for each step the cells of all terms, and those of each table for each of its parts.
    """
    part_values = np.zeros(largest_part)
    digits = np.zeros(most_axes, dtype=np.int64)
    n_entries = entries.shape[1]
    row = np.zeros(n_entries + 1)
    for step in range(len(entries)):
        row[:n_entries] = entries[step]
        out = tables[step]
        term_axis = 0
        table_axis = 0
        for table in range(len(filling.table_width)):
            sizes = filling.table_size[
                filling.table_size_start[table] : filling.table_size_start[table + 1]
            ]
            width = filling.table_width[table]
            for part in range(filling.part_start[table], filling.part_start[table + 1]):
                part_sizes = filling.part_size[
                    filling.part_size_start[part] : filling.part_size_start[part + 1]
                ]
                n_axes = len(part_sizes)
                cells = 1
                for size in part_sizes:
                    cells *= size
                part_values[:cells] = 0.0
                for term in range(filling.term_start[part], filling.term_start[part + 1]):
                    _add_difference(
                        row,
                        filling.plus_at[term],
                        filling.plus_stride[term_axis : term_axis + n_axes],
                        filling.minus_at[term],
                        filling.minus_stride[term_axis : term_axis + n_axes],
                        part_sizes,
                        digits,
                        part_values,
                    )
                    term_axis += n_axes
                _spread(
                    part_values,
                    filling.part_stride[table_axis : table_axis + len(sizes)],
                    sizes,
                    digits,
                    out[offset[table] + filling.part_column[part] : offset[table + 1]],
                    width,
                )
                table_axis += len(sizes)


@compiled(inner=True)
def _add_difference(
    row: Floats,
    plus: int,
    plus_strides: Integers,
    minus: int,
    minus_strides: Integers,
    sizes: Integers,
    digits: Integers,
    values: Floats,
) -> None:
    """Add row[plus + ...] - row[minus + ...] to values, cell by cell."""
    last = len(sizes) - 1
    if last < 0:
        values[0] += row[plus] - row[minus]
        return
    cells = 1
    for size in sizes:
        cells *= size
    digits[: last + 1] = 0
    inner, plus_step, minus_step = sizes[last], plus_strides[last], minus_strides[last]
    for first in range(0, cells, inner):
        for i in range(inner):
            values[first + i] += row[plus + i * plus_step] - row[minus + i * minus_step]
        axis = last - 1
        while axis >= 0:
            digits[axis] += 1
            plus += plus_strides[axis]
            minus += minus_strides[axis]
            if digits[axis] < sizes[axis]:
                break
            digits[axis] = 0
            plus -= sizes[axis] * plus_strides[axis]
            minus -= sizes[axis] * minus_strides[axis]
            axis -= 1


@compiled()
def _spread(
    values: Floats, strides: Integers, sizes: Integers, digits: Integers, out: Floats, width: int
) -> None:
    """Add values to every `width`th number of a table over a larger scope."""
    last = len(sizes) - 1
    if last < 0:
        out[0] += values[0]
        return
    cells = 1
    for size in sizes:
        cells *= size
    digits[: last + 1] = 0
    at = 0
    inner, step = sizes[last], strides[last]
    for first in range(0, cells, inner):
        for i in range(inner):
            out[(first + i) * width] += values[at + i * step]
        axis = last - 1
        while axis >= 0:
            digits[axis] += 1
            at += strides[axis]
            if digits[axis] < sizes[axis]:
                break
            digits[axis] = 0
            at -= sizes[axis] * strides[axis]
            axis -= 1


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


FOLDED_AT_A_TIME = 2**18
"""Numbers in the tables of steps that are folded by one call of compiled code."""


class FoldedSteps:
    """Tables of all steps within one limit; a step that nobody asks for takes no memory.

    Copies, and what is sent to another process, are made of what was given and fold for themselves.
    """

    def __init__(
        self,
        lookup: Lookup,
        entries: Floats,
        sizes: tuple[int, ...],
        n_actions: int,
        limit: int = NUMBERS_LIMIT,
    ) -> None:
        self._given = (lookup, entries, sizes, n_actions, limit)
        self._lock = Lock()
        self._layout: Layout | None = None
        self._laid_out = False
        self._tables = np.zeros((0, 0))
        self._is_folded = np.zeros(len(entries), dtype=np.bool_)

    @property
    def layout(self) -> Layout | None:
        """How the tables are laid out; None if there is no way within the limit."""
        if not self._laid_out:
            with self._lock:
                self._lay_out()
        return self._layout

    def row(self, step: int) -> Floats:
        """The tables of a step, counted from 0. Cost: that of `fold`, the first time."""
        if not self._is_folded[step]:
            self._fold(step)
        return np.asarray(self._tables[step])

    def all(self) -> Floats:
        """The tables of all steps (n_steps, numbers)."""
        layout = self.layout
        assert layout is not None  # nobody asks for tables that have no layout
        at_a_time = max(1, FOLDED_AT_A_TIME // max(1, layout.numbers))
        with self._lock:
            left = np.flatnonzero(~self._is_folded)
            for first in range(0, len(left), at_a_time):
                steps = left[first : first + at_a_time]
                self._tables[steps] = fold(layout, self._given[1][steps])
                self._is_folded[steps] = True
        return self._tables

    def _lay_out(self) -> None:
        if self._laid_out:
            return
        lookup, entries, sizes, n_actions, limit = self._given
        self._layout = fold_layout(lookup, sizes, n_actions, len(entries), limit)
        if self._layout is not None:
            # Left as it is until it is written to, so that pages are taken step by step.
            self._tables = np.empty((len(entries), max(1, self._layout.numbers)))
        self._laid_out = True

    def _fold(self, step: int) -> None:
        layout = self.layout
        assert layout is not None  # nobody asks for tables that have no layout
        with self._lock:
            if not self._is_folded[step]:
                self._tables[step] = fold(layout, self._given[1][step : step + 1])[0]
                self._is_folded[step] = True

    def __reduce__(self) -> tuple[object, ...]:
        return FoldedSteps, self._given
