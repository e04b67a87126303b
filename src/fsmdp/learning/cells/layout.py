"""The cells that a learner counts: where they stand, and what is known of them beforehand.

A cell is (reward term or basis function, action group, parent assignment). First come those of the
reward terms, then those of the functions: the order of `Intervals`, in which a planner takes them.
Functions of the same scope and parents see the same next values: their cells share what is counted.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from fsmdp.bounds.bellman import Intervals
from fsmdp.foundation.checks import check_size
from fsmdp.model.cases import Cases
from fsmdp.model.lookup import Lookup, scope_lookup
from fsmdp.model.structure import Structure
from fsmdp.model.tables import Booleans, Floats, Integers
from fsmdp.model.variables import Scope, table_size

MOST_CELLS, MOST_OUTCOMES = 2**23, 2**26
"""Of all basis functions: some dozens of bytes for each cell, eight for each outcome."""


class CellLayout(NamedTuple):
    """Flat arrays that compiled code counts with."""

    lookup: Lookup  # items: reward terms, then basis functions
    n_terms: int
    n_reward_cells: int
    scope_start: Integers  # (n_functions + 1,) into the two that follow
    scope_slot: Integers
    scope_stride: Integers
    value_start: Integers  # (n_functions + 1,) first value of each function's scope
    outcome_start: Integers  # (n_transition_cells,) first outcome of each cell: several may share
    n_outcomes: int
    is_counting: Booleans  # (n_functions,) first of those that share outcomes
    cell_of: Integers  # (n_entries,) cell of each number of the look-up: several may share one


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Cells of a structure: their layout, and the facts that confidence sets need."""

    layout: CellLayout = field(repr=False)
    n_learnt: int  # N: transition cells that are estimated, which those of h_0 are not
    n_sets: int  # of these, the ones that share outcomes counted once
    n_scopes: int  # m: scopes whose next values are counted
    function: Integers = field(repr=False)  # (n_transition_cells,) j of each
    values: Floats = field(repr=False)  # h_j at each value of its scope, function after function
    descending: Integers = field(repr=False)  # per function: its values from largest to smallest
    lowest: Floats = field(repr=False)  # (n_transition_cells,) min h_j
    highest: Floats = field(repr=False)
    n_values: Integers = field(repr=False)  # (n_transition_cells,) |Val(Z_j)|
    n_parents: Integers = field(repr=False)  # (n_transition_cells,) |Pa|, at least 1
    term: Integers = field(repr=False)  # (n_reward_cells,) i of each
    reward_low: Floats = field(repr=False)  # (n_reward_cells,)
    reward_high: Floats = field(repr=False)
    sigma: Floats = field(repr=False)
    n_term_cells: Integers = field(repr=False)  # (n_reward_cells,) cells of the term

    def spread(self, intervals: Intervals) -> Intervals:
        """Numbers by cell as numbers of the look-up, in which a planner takes them."""
        n_reward_cells, n_entries = self.n_reward_cells, len(self.layout.cell_of)
        if n_entries == n_reward_cells + self.n_transition_cells:
            return intervals
        at = self.layout.cell_of[n_reward_cells:] - n_reward_cells
        return replace(intervals, low=intervals.low[at], high=intervals.high[at])

    def first_cells(self) -> Integers:
        """The first transition cell of each function."""
        functions = np.arange(len(self.layout.value_start) - 1)
        return np.asarray(np.searchsorted(self.function, functions))

    @property
    def n_transition_cells(self) -> int:
        """Cells of all basis functions, the constant's included."""
        return len(self.function)

    @property
    def n_reward_cells(self) -> int:
        """Cells of all reward terms."""
        return len(self.term)


def cells_of(structure: Structure) -> Cells:
    """Lay the cells of a structure out; a SizeError if there are too many. Cost: their number."""
    check_cells(structure)
    sizes = tuple(variable.size for variable in structure.inputs)

    def count(scope: Scope) -> int:
        return table_size(sizes[position] for position in scope)

    def count_all(cases: Cases[Scope]) -> int:
        return sum(count(scope) for scope in cases)

    slots: list[int] = []
    strides: list[int] = []
    scope_start, value_start = [0], [0]
    for scope in structure.basis.scopes:
        stride = count(scope)
        value_start.append(value_start[-1] + stride)
        for position in scope:
            stride //= sizes[position]
            slots.append(position)
            strides.append(stride)
        scope_start.append(len(slots))
    widths = np.diff(value_start)
    n_cells = [structure.cells_of(number) for number in range(len(structure.parents))]
    function = np.repeat(np.arange(len(structure.parents)), n_cells)
    n_values = widths[function]
    tables = [table.values.ravel() for table in structure.basis]
    terms = structure.rewards
    n_term_cells = [count_all(term.parents) for term in terms]
    term = np.repeat(np.arange(len(terms)), n_term_cells)
    first_like = _first_like(structure)
    is_counting = first_like == np.arange(len(first_like))
    outcome_start, n_outcomes = _outcome_starts(n_cells, widths, first_like)
    layout = CellLayout(
        cell_lookup(structure),
        len(terms),
        len(term),
        _integers(scope_start),
        _integers(slots),
        _integers(strides),
        _integers(value_start),
        outcome_start,
        n_outcomes,
        is_counting,
        _cell_of(structure, len(term), n_cells, [*map(count_all, structure.parents)]),
    )
    return Cells(
        layout=layout,
        n_learnt=max(1, structure.cells),
        n_sets=max(1, int(np.array(n_cells)[1:][is_counting[1:]].sum())),
        n_scopes=max(1, int(is_counting[1:].sum())),
        function=function,
        values=np.concatenate(tables),
        descending=np.concatenate([np.argsort(-table, kind="stable") for table in tables]),
        lowest=np.array([table.min() for table in tables])[function],
        highest=np.array([table.max() for table in tables])[function],
        n_values=n_values,
        n_parents=_n_parents(structure, count),
        term=term,
        reward_low=np.array([t.low for t in terms], dtype=np.float64)[term],
        reward_high=np.array([t.high for t in terms], dtype=np.float64)[term],
        sigma=np.array([t.sigma for t in terms], dtype=np.float64)[term],
        n_term_cells=_integers(n_term_cells)[term],
    )


def check_cells(structure: Structure) -> None:
    """Refuse more cells, or more outcomes to be counted in them, than there is room for."""
    sizes = tuple(variable.size for variable in structure.inputs)
    first_like = _first_like(structure)
    n_cells = [structure.cells_of(number) for number in range(len(structure.parents))]
    remedy = "use a basis of smaller scopes, or state fewer parents"
    check_size(sum(n_cells), MOST_CELLS, "the basis functions have", remedy, unit="cells")
    check_size(
        sum(
            cells * table_size(sizes[position] for position in scope)
            for number, (cells, scope) in enumerate(
                zip(n_cells, structure.basis.scopes, strict=True)
            )
            if first_like[number] == number
        ),
        MOST_OUTCOMES,
        "the cells of the basis functions have",
        remedy,
        unit="next values to be counted",
    )


def _first_like(structure: Structure) -> Integers:
    """For each function the first one of the same scope and parents, of which it may be itself."""
    first: dict[object, int] = {}
    found = []
    for number, (scope, cases) in enumerate(
        zip(structure.basis.scopes, structure.parents, strict=True)
    ):
        contexts = structure.contexts[number] if structure.contexts else None
        contexts_key = None if contexts is None else contexts.tobytes()
        key = (scope, cases.groups, tuple(sorted(cases.exceptions.items())), contexts_key)
        found.append(first.setdefault(key, number))
    return _integers(found)


def functions_alike(structure: Structure) -> list[list[int]]:
    """Functions of the same scope and parents, which share what is counted."""
    blocks: dict[int, list[int]] = {}
    for number, first in enumerate(_first_like(structure).tolist()):
        blocks.setdefault(first, []).append(number)
    return list(blocks.values())


def _outcome_starts(
    n_cells: list[int], widths: Integers, first_like: Integers
) -> tuple[Integers, int]:
    """First outcome of each cell, and how many outcomes there are."""
    parts: list[Integers] = []
    last = 0
    for number, cells in enumerate(n_cells):
        first = first_like[number]
        if first < number:
            parts.append(parts[first])
            continue
        parts.append(last + widths[number] * np.arange(cells))
        last += int(widths[number]) * cells
    return _integers(np.concatenate(parts)), last


def _cell_of(
    structure: Structure, n_reward_cells: int, n_cells: list[int], n_entries: list[int]
) -> Integers:
    parts = [np.arange(n_reward_cells)]
    first = n_reward_cells
    for number, (cells, entries) in enumerate(zip(n_cells, n_entries, strict=True)):
        contexts = structure.contexts[number] if structure.contexts else None
        parts.append(first + (np.arange(entries) if contexts is None else contexts))
        first += cells
    return _integers(np.concatenate(parts))


def _n_parents(structure: Structure, count: Callable[[Scope], int]) -> Integers:
    """|Pa| of each transition cell, at least 1."""
    parts = []
    for number, cases in enumerate(structure.parents):
        if structure.contexts and structure.contexts[number] is not None:
            parts.append(np.full(structure.cells_of(number), max(1, len(cases.groups[0]))))
        else:
            parts += [np.full(count(scope), max(1, len(scope))) for scope in cases]
    return _integers(np.concatenate(parts))


def cell_lookup(structure: Structure, *more: Cases[Scope]) -> Lookup:
    """Look-up of the cells of reward terms and functions, and of what else depends on scopes."""
    sizes = tuple(variable.size for variable in structure.inputs)
    scopes = (*(term.parents for term in structure.rewards), *structure.parents, *more)
    return scope_lookup(scopes, sizes, structure.actions.n_cases)


def _integers(values: list[int] | Integers) -> Integers:
    return np.asarray(values, dtype=np.int64)
