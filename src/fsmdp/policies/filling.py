"""Filling folded tables: every term's difference from its default, spread over its table."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fsmdp.compiled import compiled
from fsmdp.model.lookup import Integers
from fsmdp.model.tables import Floats


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
