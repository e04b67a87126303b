"""What a linear program's solver hands back, whichever solver it is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from scipy import sparse

from fsmdp.model.tables import Floats

REACH = 10.0
"""A dual bound speaks of all columns up to so many times those found, or so many units."""


CONFIRMED = 1e-6
"""A program is solved if its dual bound is as close to its certified value, in spans of values."""


class Status(StrEnum):
    """How a solve ended. Only infeasible and unbounded leave nothing to certify.

    `optimal` says that the linear program was solved, confirmed by its dual; it does not say that
    the policy is.
    """

    OPTIMAL = "optimal"
    TIME_LIMIT = "time-limit"
    INTERRUPTED = "interrupted"
    ITERATION_LIMIT = "iteration-limit"
    STALLED = "stalled"
    INFEASIBLE = "infeasible"
    UNBOUNDED = "unbounded"
    INACCURATE = "inaccurate"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """What a solve returned; `values` may be all zeros if it found nothing."""

    status: Status
    values: Floats  # (n_columns,)
    objective: float
    iterations: int
    seconds: float
    duals: Floats | None = None  # (n_rows,), where they were asked for


def unsolved(status: Status | None, n_columns: int, seconds: float) -> Solution:
    """A solve that was stopped before it found anything."""
    return Solution(status or Status.FAILED, np.zeros(n_columns), 0.0, 0, seconds)


def dual_bound(cost: Floats, matrix: sparse.csr_matrix, lower: Floats, found: Solution) -> float:
    """A value that no solution of min cost @ x, matrix @ x >= lower within reach goes below.

    For any z >= 0: cost @ x >= lower @ z - |cost - matrix' z| @ |x|. So it holds whatever the
    solver did, for all x with |x_j| at most REACH times the larger of what was found and 1.
    """
    if found.duals is None or not np.isfinite(found.duals).all():
        return -np.inf
    duals = np.maximum(found.duals, 0.0)
    left_over = np.abs(cost - matrix.T @ duals)
    reach = REACH * np.maximum(np.abs(found.values), 1.0)
    return float(lower @ duals - left_over @ reach)
