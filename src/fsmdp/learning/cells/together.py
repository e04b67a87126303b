"""Indicators of one scope: their means are probabilities of values, of which one occurs.

Each mean has an interval of its own, and together they are at most 1: the extreme of a weighted sum
puts what is left of the mass on the best value first, then on the next.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from fsmdp.compiled import compiled
from fsmdp.learning.cells.layout import Cells, functions_alike
from fsmdp.model.structure import Structure
from fsmdp.model.tables import Floats, Integers
from fsmdp.model.variables import table_size


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
        order = own[np.argsort(-weights[own])]
        for entry in range(n_entries[own[0]]):
            left = 1.0
            for function in own:
                at = first_entry[function] + entry
                means[at] = low[at]
                left -= low[at]
            for function in order:
                if left <= 0 or (weights[function] <= 0 and not is_covered[block]):
                    break
                at = first_entry[function] + entry
                added = min(left, high[at] - low[at])
                means[at] += added
                left -= added


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
