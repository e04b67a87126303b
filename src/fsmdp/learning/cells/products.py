"""Products: means of functions of several independent groups, from counts of each group.

Given the state and the action, P(y) = prod_f P_f(y_f) over the parts of a scope that lie in
different groups. A part is counted by itself, in cells of its own parents: an interval for each
probability P_f(v), from the set that a learner uses, makes a box of distributions. The extremes of

    sum_y h(y) prod_f P_f(y_f)

are taken part after part, from the last to the first, the best distribution of the box for each
value of the parts before it. That allows more than products, so the interval holds the truth when
all boxes do; for a product of indicators it is the product of the intervals.

Indicators of one scope are bounded together, too: their means are probabilities of values, of which
one occurs, so that the extreme of a weighted sum puts what is left of the mass on the best value
first, then on the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from fsmdp.compiled import compiled
from fsmdp.learning.cells.layout import Cells, functions_alike
from fsmdp.model.basis import Basis
from fsmdp.model.cases import Cases
from fsmdp.model.extremes import best_in_box, sort_descending
from fsmdp.model.structure import Structure
from fsmdp.model.tables import Floats, Integers, Table, bound_table
from fsmdp.model.variables import Scope, table_size

Ends = tuple[Floats, Floats]


@dataclass(frozen=True, slots=True, eq=False)
class Factor:
    """A part of a scope, counted by itself: an indicator for each of its values but the first."""

    scope: Scope
    parents: Cases[Scope]
    contexts: Integers | None
    functions: tuple[int, ...]  # of the counted structure, by value
    first_box: int  # where its boxes begin, cell after cell
    n_values: int
    n_cells: int

    def rows(self, boxes: Floats) -> Floats:
        """One end of its boxes, a row for each assignment of its parents."""
        n = self.n_cells * self.n_values
        rows = boxes[self.first_box : self.first_box + n].reshape(self.n_cells, self.n_values)
        return rows if self.contexts is None else rows[self.contexts]


@dataclass(frozen=True, slots=True, eq=False)
class Product:
    """A function whose scope has several parts."""

    function: int
    table: Floats = field(repr=False)  # values, parts as axes, flat
    sizes: Integers = field(repr=False)  # (n_parts,)
    box_at: Integers = field(repr=False)  # (n_parts, n_cells) first number of each part's box


@dataclass(frozen=True, slots=True, eq=False)
class Products:
    """What is counted instead of products, and how they follow."""

    counted: Structure = field(repr=False)  # the functions that were given, then those of factors
    factors: tuple[Factor, ...] = field(repr=False)
    products: tuple[Product, ...] = field(repr=False)
    is_learnt: np.ndarray = field(repr=False)  # (n_functions,) whose means come from counts
    n_boxes: int  # numbers in all boxes

    def ends(self, low: Floats, high: Floats, first_cell: Integers) -> Ends:
        """The ends of all functions' means, those of products made from those of factors.

        Cost: the cells of products times the values of their scopes.
        """
        boxes_low, boxes_high = self.boxes(low, high, first_cell)
        low, high = low.copy(), high.copy()
        for sign, found in ((1.0, high), (-1.0, low)):
            self._fill(boxes_low, boxes_high, first_cell, sign, found)
        return low, high

    def boxes(self, low: Floats, high: Floats, first_cell: Integers) -> Ends:
        """The ends of the probabilities of all factors' values, cell after cell."""
        boxes_low, boxes_high = np.zeros(self.n_boxes), np.ones(self.n_boxes)
        for factor in self.factors:
            cells = np.arange(factor.n_cells)
            shape = (factor.n_cells, factor.n_values)
            end = factor.first_box + factor.n_cells * factor.n_values
            own_low = boxes_low[factor.first_box : end].reshape(shape)
            own_high = boxes_high[factor.first_box : end].reshape(shape)
            for value, function in enumerate(factor.functions, 1):
                own_low[:, value] = low[first_cell[function] + cells]
                own_high[:, value] = high[first_cell[function] + cells]
            # The first value has the rest, whatever that is.
            own_low[:, 0] = np.maximum(0.0, 1 - own_high[:, 1:].sum(axis=1))
            own_high[:, 0] = np.clip(1 - own_low[:, 1:].sum(axis=1), 0.0, 1.0)
        return boxes_low, boxes_high

    def factors_of(self, groups: Sequence[Scope]) -> tuple[Factor, ...]:
        """The factors that are whole groups."""
        by_scope = {factor.scope: factor for factor in self.factors}
        return tuple(by_scope[group] for group in groups)

    def means(
        self, means: Floats, shares: Floats, outcome_start: Integers, first_cell: Integers
    ) -> Floats:
        """All functions' means, those of products under these distributions of the factors.

        `shares` are probabilities in the place of outcomes.
        """
        boxes = np.zeros(self.n_boxes)
        for factor in self.factors:
            starts = outcome_start[first_cell[factor.functions[0]] + np.arange(factor.n_cells)]
            own = shares[starts[:, None] + np.arange(factor.n_values)]
            boxes[factor.first_box : factor.first_box + own.size] = own.ravel()
        found = means.copy()
        self._fill(boxes, boxes, first_cell, 1.0, found)
        return found

    def spread_over_boxes(self, numbers: Floats, first_cell: Integers) -> Floats:
        """A number for each cell, at all values of its factor's boxes."""
        boxes = np.zeros(self.n_boxes)
        for factor in self.factors:
            own = numbers[first_cell[factor.functions[0]] + np.arange(factor.n_cells)]
            end = factor.first_box + factor.n_cells * factor.n_values
            boxes[factor.first_box : end] = np.repeat(own, factor.n_values)
        return boxes

    def _fill(
        self, low: Floats, high: Floats, first_cell: Integers, sign: float, found: Floats
    ) -> None:
        for product in self.products:
            first = first_cell[product.function]
            own = found[first : first + product.box_at.shape[1]]
            fill_extremes(product.table, product.sizes, product.box_at, low, high, sign, own)


def products_of(structure: Structure, groups_too: bool = False) -> Products | None:
    """What to count where independence is stated; None if no function depends on several groups.

    A function whose cells do not tell the cells of its parts apart is counted as it is. With
    `groups_too` every group is a factor, whether functions depend on several or not.
    """
    group_of = {p: number for number, group in enumerate(structure.independent) for p in group}
    found = _Builder(structure)
    for number, table in enumerate(structure.basis):
        parts: dict[int, list[int]] = {}
        for position in table.scope:
            if group_of:
                parts.setdefault(group_of[position], []).append(position)
        if len(parts) > 1:
            found.add(number, [tuple(part) for part in parts.values()], tuple(parts))
    if groups_too:
        found.add_groups()
    return found.products()


class _Builder:
    """Collects factors, which functions share."""

    def __init__(self, structure: Structure) -> None:
        self._structure = structure
        self._sizes = [variable.size for variable in structure.inputs]
        self._factors: dict[Scope, Factor] = {}
        self._tables: list[Table] = list(structure.basis.tables[1:])
        self._parents = list(structure.parents)
        self._contexts = list(structure.contexts)
        self._products: list[Product] = []
        self._n_boxes = 0

    def add(self, number: int, parts: Sequence[Scope], groups: Sequence[int]) -> None:
        """Make a function a product, if its cells tell those of its parts apart."""
        structure = self._structure
        stated = [self._stated(part, group) for part, group in zip(parts, groups, strict=True)]
        contexts = structure.contexts[number] if structure.contexts else None
        cells = [
            _cells_of_part(structure.parents[number], contexts, *one, structure, self._sizes)
            for one in stated
        ]
        if any(one is None for one in cells):
            return
        factors = [self._factor(part, *one) for part, one in zip(parts, stated, strict=True)]
        table = structure.basis.tables[number]
        axes = [table.scope.index(position) for part in parts for position in part]
        self._products.append(
            Product(
                number,
                np.ascontiguousarray(table.values.transpose(axes)).ravel(),
                np.array([factor.n_values for factor in factors]),
                np.stack(
                    [
                        factor.first_box + factor.n_values * np.asarray(one)
                        for factor, one in zip(factors, cells, strict=True)
                    ]
                ),
            )
        )

    def add_groups(self) -> None:
        """Make every group a factor."""
        for number, group in enumerate(self._structure.independent):
            self._factor(group, *self._stated(group, number))

    def products(self) -> Products | None:
        """All that was added."""
        if not self._factors:
            return None
        counted = replace(
            self._structure,
            basis=Basis(self._tables),
            parents=tuple(self._parents),
            contexts=tuple(self._contexts),
        )
        is_learnt = np.ones(len(self._parents), dtype=np.bool_)
        is_learnt[[0, *(product.function for product in self._products)]] = False
        return Products(
            counted,
            tuple(self._factors.values()),
            tuple(self._products),
            is_learnt,
            self._n_boxes,
        )

    def _stated(self, part: Scope, group: int) -> tuple[Cases[Scope], Integers | None]:
        """Parents of a part: of a function that depends on it alone, or of the whole group."""
        structure = self._structure
        for number, scope in enumerate(structure.basis.scopes):
            if scope == part:
                return (
                    structure.parents[number],
                    structure.contexts[number] if structure.contexts else None,
                )
        contexts = structure.group_contexts
        return structure.group_parents[group], contexts[group] if contexts else None

    def _factor(self, part: Scope, parents: Cases[Scope], contexts: Integers | None) -> Factor:
        if part in self._factors:
            return self._factors[part]
        shape = tuple(self._sizes[position] for position in part)
        n_values = table_size(shape)
        if contexts is None:
            n_cells = sum(table_size(self._sizes[p] for p in scope) for scope in parents)
        else:
            n_cells = int(contexts.max()) + 1
        functions = []
        for value in range(1, n_values):
            indicator = np.zeros(n_values)
            indicator[value] = 1.0
            functions.append(self._function(part, indicator.reshape(shape), parents, contexts))
        factor = Factor(part, parents, contexts, tuple(functions), self._n_boxes, n_values, n_cells)
        self._n_boxes += n_cells * n_values
        self._factors[part] = factor
        return factor

    def _function(
        self, part: Scope, values: Floats, parents: Cases[Scope], contexts: Integers | None
    ) -> int:
        """The function with these values: one that was given, or one more."""
        for number, table in enumerate(self._structure.basis):
            if table.scope == part and np.array_equal(table.values, values):
                return number
        self._tables.append(bound_table(part, values))
        self._parents.append(parents)
        if self._contexts:
            self._contexts.append(contexts)
        return len(self._tables)


def _cells_of_part(
    parents: Cases[Scope],
    contexts: Integers | None,
    part_parents: Cases[Scope],
    part_contexts: Integers | None,
    structure: Structure,
    sizes: Sequence[int],
) -> Integers | None:
    """The part's cell in each cell of a function; None if it is not the same all over a cell."""
    actions = range(len(structure.actions)) if len(parents) > 1 or len(part_parents) > 1 else (0,)
    together: dict[int, set[int]] = {group: set() for group in range(len(parents))}
    for action in actions:
        together[parents.group(action)].add(part_parents.group(action))
    offsets = np.cumsum([0, *(table_size(sizes[p] for p in scope) for scope in part_parents)])
    found = []
    for group, scope in enumerate(parents):
        shape = tuple(sizes[position] for position in scope)
        if not together[group]:  # a default that no action is left for
            found.append(np.zeros(table_size(shape), dtype=np.int64))
            continue
        if len(together[group]) > 1:
            return None
        own_group = together[group].pop()
        own = part_parents.groups[own_group]
        if not set(own) <= set(scope):
            return None
        spread = [sizes[position] if position in own else 1 for position in scope]
        entries = np.arange(table_size(sizes[p] for p in own)).reshape(spread)
        found.append(offsets[own_group] + np.broadcast_to(entries, shape).ravel())
    cells = np.concatenate(found)
    if part_contexts is not None:
        cells = part_contexts[cells]
    if contexts is None:
        return cells
    _, first = np.unique(contexts, return_index=True)
    return cells[first] if (cells == cells[first][contexts]).all() else None


@compiled()
def fill_extremes(
    table: Floats,
    sizes: Integers,
    box_at: Integers,
    low: Floats,
    high: Floats,
    sign: float,
    found: Floats,
) -> None:
    """The largest mean of sign * table, times sign, with each part's distribution in its box."""
    left = np.zeros(len(table))
    order, law = np.zeros(sizes.max(), dtype=np.int64), np.zeros(sizes.max())
    for cell in range(box_at.shape[1]):
        left[:] = sign * table
        n_left = len(table)
        for part in range(len(sizes) - 1, -1, -1):
            size = sizes[part]
            at = box_at[part, cell]
            n_left //= size
            for prefix in range(n_left):
                values = left[prefix * size : (prefix + 1) * size]
                sort_descending(values, order)
                left[prefix] = best_in_box(low, high, at, values, order, law)
        found[cell] = sign * left[0]


@dataclass(frozen=True, slots=True, eq=False)
class Indicators:
    """Blocks of functions that are indicators of different values of one scope."""

    columns: Integers = field(repr=False)  # (n_entries,) j of each entry
    first_entry: Integers = field(repr=False)  # (n_functions,)
    n_entries: Integers = field(repr=False)  # (n_functions,)
    block_start: Integers = field(repr=False)
    members: Integers = field(repr=False)  # functions, block after block
    is_covered: np.ndarray = field(repr=False)  # (n_blocks,) every value has its indicator

    def means(self, weights: Floats, low: Floats, high: Floats, sign: float) -> Floats:
        """Means that are best for sign * weights. Cost: the number of entries."""
        found = np.where(sign * weights[self.columns] > 0, high, low)
        fill_best_means(
            self.block_start,
            self.members,
            self.is_covered,
            self.first_entry,
            self.n_entries,
            sign * weights,
            low,
            high,
            found,
        )
        return found


def indicators_of(structure: Structure) -> Indicators | None:
    """The blocks of indicators of a basis; None if no scope has two of them."""
    sizes = [variable.size for variable in structure.inputs]
    n_entries = [
        sum(table_size(sizes[position] for position in scope) for scope in cases)
        for cases in structure.parents
    ]
    blocks = [
        block
        for block in functions_alike(structure)
        if len(block) > 1 and _are_indicators(structure, block)
    ]
    if not blocks:
        return None
    return Indicators(
        np.repeat(np.arange(len(n_entries)), n_entries),
        np.cumsum([0, *n_entries[:-1]]),
        np.array(n_entries),
        np.cumsum([0, *map(len, blocks)]),
        np.concatenate(blocks),
        np.array([structure.basis.tables[b[0]].values.size == len(b) for b in blocks]),
    )


def _are_indicators(structure: Structure, block: Sequence[int]) -> bool:
    tables = [structure.basis.tables[number].values.ravel() for number in block]
    if any(np.count_nonzero(table) != 1 or table.max() != 1.0 for table in tables):
        return False
    return len({int(table.argmax()) for table in tables}) == len(tables)


@compiled()
def fill_best_means(
    block_start: Integers,
    members: Integers,
    is_covered: np.ndarray,
    first_entry: Integers,
    n_entries: Integers,
    weights: Floats,
    low: Floats,
    high: Floats,
    means: Floats,
) -> None:
    """Means of the indicators of each block that maximise their weighted sum."""
    for block in range(len(block_start) - 1):
        own = members[block_start[block] : block_start[block + 1]]
        # First all values without an indicator, which are worth 0 and may have the rest.
        ends = np.zeros((3, len(own) + 1))
        own_low, own_high, law = ends[0], ends[1], ends[2]
        own_high[0] = 0.0 if is_covered[block] else 1.0
        values = np.zeros(len(own) + 1)
        values[1:] = weights[own]
        order = np.argsort(-values, kind="mergesort")
        for entry in range(n_entries[own[0]]):
            for y, function in enumerate(own, 1):
                own_low[y] = low[first_entry[function] + entry]
                own_high[y] = high[first_entry[function] + entry]
            best_in_box(own_low, own_high, 0, values, order, law)
            for y, function in enumerate(own, 1):
                means[first_entry[function] + entry] = law[y]


@dataclass(frozen=True, slots=True, eq=False)
class OutcomeSets:
    """Where each set of outcomes begins, how large it is, and which cells read it."""

    starts: Integers = field(repr=False)  # (n_sets,)
    sizes: Integers = field(repr=False)
    of_cell: Integers = field(repr=False)  # (n_transition_cells,)

    def totals(self, weights: Floats) -> Floats:
        """Sum of the weights of each set's outcomes."""
        return np.asarray(np.add.reduceat(weights, self.starts))

    def shares(self, weights: Floats) -> Floats:
        """Weights of outcomes divided by their set's sum; all alike where that is zero."""
        totals = self.totals(weights)
        empty = np.repeat(totals == 0, self.sizes)
        alike = np.repeat(1 / self.sizes, self.sizes)
        divided = weights / np.repeat(np.where(totals == 0, 1.0, totals), self.sizes)
        return np.where(empty, alike, divided)


def sets_of(cells: Cells) -> OutcomeSets:
    """The sets of all cells."""
    starts, first_cell, of_cell = np.unique(
        cells.layout.outcome_start, return_index=True, return_inverse=True
    )
    return OutcomeSets(starts, cells.n_values[first_cell], of_cell)
