"""The Bellman inequalities of all steps as the rows of one linear program.

For each step: V_l - discount * backup(w_{l+1}) + messages >= rewards, where by the elimination tree
the messages turn the inequality of every state and action into rows for the cliques alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from fsmdp.elimination import Rows
from fsmdp.errors import WidthError
from fsmdp.model.tables import Floats
from fsmdp.planning.bellman import BellmanNetwork
from fsmdp.planning.intervals import Intervals

LARGEST_PROGRAM = 2_000_000


@dataclass(frozen=True, slots=True, eq=False)
class BellmanRows:
    """Matrices of one step: how values, backups and messages enter its rows."""

    rows: Rows = field(repr=False)
    values: sparse.csr_matrix = field(repr=False)  # (n_rows, n_functions)

    @property
    def n_rows(self) -> int:
        """Rows of one step."""
        return self.rows.n_rows

    def backups(self, network: BellmanNetwork, means: Floats) -> sparse.csr_matrix:
        """Rows times functions: how w_{l+1} enters when its next means are these."""
        at = np.arange(network.backups_at.start, network.backups_at.stop)
        return _gathered(self.rows, network, means, at, network.backup_columns)


def bellman_rows(network: BellmanNetwork, n_steps: int = 1) -> BellmanRows:
    """Rows of one step, refused if so many steps together have too many.

    Cost: one non-zero for each term of each row.
    """
    n_rows = n_steps * network.elimination.n_rows
    if n_rows > LARGEST_PROGRAM:
        raise WidthError(
            f"the linear program would have {n_rows:,} rows (induced width "
            f"{network.elimination.induced_width}, limit {LARGEST_PROGRAM:,}); use "
            "method='cutting-planes', which needs no rows, or a smaller basis."
        )
    rows = network.elimination.rows()
    at = np.arange(len(network.values))
    return BellmanRows(rows, _gathered(rows, network, network.values, at, network.value_columns))


def _gathered(
    rows: Rows,
    network: BellmanNetwork,
    coefficients: Floats,
    entries: NDArray[np.int64],
    columns: NDArray[np.int64],
) -> sparse.csr_matrix:
    shape = (network.elimination.network.n_entries, len(network.basis))
    by_entry = sparse.csr_matrix((coefficients, (entries, columns)), shape=shape)
    product = sparse.csr_matrix(rows.gather @ by_entry)
    product.eliminate_zeros()
    return product


def reward_scale(intervals: Intervals) -> float:
    """Divides right-hand sides so that a solver's absolute tolerances mean what they say."""
    largest = float(np.abs(intervals.rewards).max(initial=0.0))
    return largest if largest > 0 else 1.0
