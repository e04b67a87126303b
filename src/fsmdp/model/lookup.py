"""Look-up: many local tables, told apart by action, as flat arrays that compiled code reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from fsmdp.compiled import compiled, unsigned
from fsmdp.model.cases import Cases
from fsmdp.model.conditions import Conditions
from fsmdp.model.tables import Floats, Integers, Table
from fsmdp.model.variables import Scope


class Inputs(NamedTuple):
    """Slots that a table depends on, in axis order, and how many numbers stand at each row."""

    slots: tuple[int, ...]
    sizes: tuple[int, ...]
    width: int = 1


class Lookup(NamedTuple):
    """Items (kernels, reward terms, factors) with one table per action group.

    Tables stand one after another in a vector of numbers kept elsewhere. `defaults` names each
    item's table under most actions; exceptions are listed by action. Costs follow the exceptions
    of the action taken, not the number of actions.
    """

    defaults: Integers  # (n_items,) table
    exception_start: Integers  # (n_actions + 1,)
    exception_item: Integers
    exception_table: Integers
    input_start: Integers  # (n_tables + 1,)
    input_slot: Integers
    input_stride: Integers
    offset: Integers  # (n_tables + 1,) first number of each table; the last is their count


def compile_lookup(items: Sequence[Cases[Inputs]], n_actions: int) -> Lookup:
    """Lay the tables of all items out, group after group."""
    defaults = []
    exceptions: list[list[tuple[int, int]]] = [[] for _ in range(n_actions)]
    input_start, slots, strides, offset = [0], [], [], [0]
    tables = 0
    for item, cases in enumerate(items):
        defaults.append(tables)
        for action, group in cases.exceptions.items():
            exceptions[action].append((item, tables + group))
        for inputs in cases:
            stride = inputs.width * int(np.prod(inputs.sizes, dtype=np.int64))
            offset.append(offset[-1] + stride)
            for slot, size in zip(inputs.slots, inputs.sizes, strict=True):
                stride //= size
                slots.append(slot)
                strides.append(stride)
            input_start.append(len(slots))
        tables += len(cases)
    flat = [pair for listed in exceptions for pair in listed]

    def integers(values: Sequence[int]) -> Integers:
        return np.array(values, dtype=np.int64)

    return Lookup(
        integers(defaults),
        integers(np.cumsum([0, *map(len, exceptions)]).tolist()),
        integers([item for item, _ in flat]),
        integers([table for _, table in flat]),
        integers(input_start),
        integers(slots),
        integers(strides),
        integers(offset),
    )


def with_constant(lookup: Lookup) -> Lookup:
    """One more item: a single number, the same under all actions, after all others."""
    return lookup._replace(
        defaults=np.append(lookup.defaults, len(lookup.offset) - 1),
        input_start=np.append(lookup.input_start, lookup.input_start[-1]),
        offset=np.append(lookup.offset, lookup.offset[-1] + 1),
    )


def scope_lookup(scopes: Iterable[Cases[Scope]], sizes: Sequence[int], n_actions: int) -> Lookup:
    """A look-up of tables over current values, by the variables that they depend on."""

    def inputs(scope: Scope) -> Inputs:
        return Inputs(scope, tuple(sizes[position] for position in scope))

    return compile_lookup([cases.map(inputs) for cases in scopes], n_actions)


def scopes_of(tables: Sequence[Cases[Table]]) -> list[Cases[Scope]]:
    """The scope of every table."""
    return [cases.map(lambda table: table.scope) for cases in tables]


def flatten_cases(cases: Sequence[Cases[Table]]) -> Floats:
    """All tables of all groups, one after another."""
    return np.concatenate([np.zeros(0), *(table.values.ravel() for one in cases for table in one)])


def check_lookup(lookup: Lookup, sizes: Sequence[int], n_actions: int, n_numbers: int) -> None:
    """Refuse, with a ValueError, arrays that would lead compiled code out of `n_numbers` numbers.

    Nothing is added up in integers, which wrap: starts are compared with their neighbours, and
    reaches are sums of non-negative floats, which are exact up to 2^53, more than any memory
    holds, and never fall.
    """
    check_vectors(lookup)
    n_tables = len(lookup.offset) - 1
    if len(lookup.exception_start) != n_actions + 1 or len(lookup.input_start) != n_tables + 1:
        raise ValueError("look-up: expected a start for each action and each table")
    for starts, parts in (
        (lookup.exception_start, (lookup.exception_item, lookup.exception_table)),
        (lookup.input_start, (lookup.input_slot, lookup.input_stride)),
        (lookup.offset, ()),
    ):
        if not len(starts) or starts[0] != 0 or (starts[1:] < starts[:-1]).any():
            raise ValueError("look-up: expected starts from 0 that do not fall")
        if any(len(part) != starts[-1] for part in parts):
            raise ValueError("look-up: expected as many entries as the starts say")
    if lookup.offset[-1] != n_numbers:
        raise ValueError(f"look-up: expected tables of {n_numbers} numbers in all")
    for part, below in (
        (lookup.defaults, n_tables),
        (lookup.exception_table, n_tables),
        (lookup.exception_item, len(lookup.defaults)),
        (lookup.input_slot, len(sizes)),
    ):
        if len(part) and not 0 <= part.min() <= part.max() < below:
            raise ValueError("look-up: expected positions of what is there")
    if (lookup.input_stride < 0).any():
        raise ValueError("look-up: expected strides from 0 on")
    furthest = np.array(sizes, dtype=np.float64)[lookup.input_slot] - 1
    table_of_input = np.repeat(np.arange(n_tables), np.diff(lookup.input_start))
    last = np.bincount(table_of_input, furthest * lookup.input_stride, n_tables)
    if (last >= np.diff(lookup.offset)).any():
        raise ValueError("look-up: expected tables that end where the next begins")


def check_vectors(lookup: Lookup) -> None:
    """Refuse, with a ValueError, arrays of other kinds than compiled code is compiled for."""
    if any(part.dtype != np.int64 or part.ndim != 1 for part in lookup):
        raise ValueError("look-up: expected vectors of 64-bit integers")


@compiled(inline="always")
def locate(lookup: Lookup, table: int, values: Integers) -> int:
    """Where a table's row for these slot values begins."""
    at = lookup.offset[unsigned(table)]
    first, end = lookup.input_start[unsigned(table)], lookup.input_start[unsigned(table + 1)]
    for i in range(first, end):
        slot = lookup.input_slot[unsigned(i)]
        at += values[unsigned(slot)] * lookup.input_stride[unsigned(i)]
    return at  # type: ignore[no-any-return]


@compiled(inline="always")
def select(lookup: Lookup, action: int, tables: Integers) -> None:
    """Write the action's exceptions over `tables`, which held the defaults."""
    for e in range(lookup.exception_start[action], lookup.exception_start[action + 1]):
        tables[unsigned(lookup.exception_item[e])] = lookup.exception_table[e]


@compiled(inline="always")
def deselect(lookup: Lookup, action: int, tables: Integers) -> None:
    """Put the defaults back."""
    for e in range(lookup.exception_start[action], lookup.exception_start[action + 1]):
        item = unsigned(lookup.exception_item[e])
        tables[item] = lookup.defaults[item]


class CompiledConditions(NamedTuple):
    """Conditions as arrays; without tables, every action is allowed and no state is terminal."""

    allowed: Lookup
    allowed_entries: Floats  # 0 where allowed
    terminal: Lookup
    terminal_entries: Floats  # not 0 where an episode is over


def compile_conditions(conditions: Conditions) -> CompiledConditions:
    """What compiled code reads of conditions. Cost: the tables, once."""
    terminal = [Cases((table,)) for table in conditions.terminal]
    return CompiledConditions(
        scope_lookup(conditions.scopes, conditions.sizes, conditions.actions.n_cases),
        conditions.entries if len(conditions.entries) else np.zeros(1),
        scope_lookup(scopes_of(terminal), conditions.sizes, 1),
        flatten_cases(terminal) if terminal else np.zeros(1),
    )


@compiled(inline="always")
def is_over(conditions: CompiledConditions, values: Integers) -> bool:
    """Whether an episode is over in the state that the first slots hold."""
    lookup = conditions.terminal
    for table in lookup.defaults:
        if conditions.terminal_entries[locate(lookup, table, values)] != 0.0:
            return True
    return False


@compiled(inline="always")
def is_allowed(conditions: CompiledConditions, action: int, values: Integers) -> bool:
    """Whether an action, by its case and the slots of its variables, is allowed in a state."""
    lookup, entries = conditions.allowed, conditions.allowed_entries
    for e in range(lookup.exception_start[action], lookup.exception_start[action + 1]):
        if entries[locate(lookup, lookup.exception_table[e], values)] != 0.0:
            return False
    if lookup.exception_start[-1] == 0:  # actions made of variables: one group
        for table in lookup.defaults:
            if entries[locate(lookup, table, values)] != 0.0:
                return False
    return True
