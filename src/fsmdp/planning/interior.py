"""Clarabel: the only file that imports it. An interior-point method for sparse programs.

The rows of an elimination tree factorise with little fill, so that an iteration costs about as
much as reading the matrix; there is no warm start.
"""

from __future__ import annotations

import time

import clarabel
import numpy as np
from scipy import sparse

from fsmdp.model.tables import Floats
from fsmdp.planning.highs import Solution, Status

INTERIOR = "interior"

_STATUS = {
    "Solved": Status.OPTIMAL,
    "AlmostSolved": Status.INACCURATE,
    "MaxTime": Status.TIME_LIMIT,
    "MaxIterations": Status.ITERATION_LIMIT,
    "PrimalInfeasible": Status.INFEASIBLE,
    "AlmostPrimalInfeasible": Status.INFEASIBLE,
    "DualInfeasible": Status.UNBOUNDED,
    "AlmostDualInfeasible": Status.UNBOUNDED,
}


class InteriorProgram:
    """min cost @ x subject to matrix @ x >= lower, x free; new sides keep the symbolic work."""

    def __init__(self, cost: Floats, matrix: sparse.csr_matrix, lower: Floats) -> None:
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.presolve_enable = False
        # The multi-threaded factorisation is several times slower on such sparse trees.
        settings.direct_solve_method = "qdldl"
        nothing = sparse.csc_matrix((len(cost), len(cost)))
        cones = [clarabel.NonnegativeConeT(len(lower))]
        self._settings = settings
        self._solver = clarabel.DefaultSolver(
            nothing, cost, sparse.csc_matrix(-matrix), -lower, cones, settings
        )

    def set_lower(self, lower: Floats) -> None:
        """New right-hand sides for all rows."""
        self._solver.update(b=-lower)

    def set_cost(self, cost: Floats) -> None:
        """New costs for all columns."""
        self._solver.update(q=cost)

    def solve(self, time_limit: float | None = None) -> Solution:
        """Solve from the start."""
        began = time.perf_counter()
        self._settings.time_limit = np.inf if time_limit is None else max(time_limit, 1e-3)
        # Refining every solve of the factorised system takes nearly half the time, and is
        # needed only where a program is badly conditioned.
        for refine in (False, True):
            self._settings.iterative_refinement_enable = refine
            self._solver.update(settings=self._settings)
            found = self._solver.solve()
            if str(found.status) in ("Solved", "MaxTime"):
                break
        return Solution(
            _STATUS.get(str(found.status), Status.FAILED),
            np.array(found.x),
            float(found.obj_val),
            int(found.iterations),
            time.perf_counter() - began,
            np.array(found.z),
        )
