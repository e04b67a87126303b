"""Sets of outcomes: the next values of a scope in one cell, which functions of the scope share."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from fsmdp.learning.cells.layout import Cells
from fsmdp.model.lookup import Integers
from fsmdp.model.tables import Floats


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
