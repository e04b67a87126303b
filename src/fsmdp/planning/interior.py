"""Clarabel: the only file that imports it. An interior-point method for sparse programs.

The rows of an elimination tree factorise with little fill, so that an iteration costs about as
much as reading the matrix; there is no warm start.
"""

from __future__ import annotations

import time
from functools import cached_property
from typing import Any

import clarabel
import numpy as np
from scipy import sparse

from fsmdp.model.tables import Floats
from fsmdp.planning.clock import NO_LIMIT, Clock, Stopped
from fsmdp.planning.solution import Solution, Status, dual_bound, unsolved

INTERIOR = "interior"

TOLERANCE = 1e-8

SECONDS_TO_SET_UP = 5e-6
"""For each non-zero, roughly: ordering and symbolic factorisation."""

_STATUS = {
    "Solved": Status.OPTIMAL,
    "AlmostSolved": Status.INACCURATE,
    "MaxTime": Status.TIME_LIMIT,
    "CallbackTerminated": Status.TIME_LIMIT,
    "MaxIterations": Status.ITERATION_LIMIT,
    "PrimalInfeasible": Status.INFEASIBLE,
    "AlmostPrimalInfeasible": Status.INFEASIBLE,
    "DualInfeasible": Status.UNBOUNDED,
    "AlmostDualInfeasible": Status.UNBOUNDED,
}


class InteriorProgram:
    """min cost @ x subject to matrix @ x >= lower, x free; new sides keep the symbolic work.

    With `squares`, the sum of squares_j x_j^2 / 2 is added to the cost. `tolerance` is that of
    gap and rows, relative, where less than usual is enough.
    """

    def __init__(
        self,
        cost: Floats,
        matrix: sparse.csr_matrix,
        lower: Floats,
        squares: Floats | None = None,
        tolerance: float = TOLERANCE,
    ) -> None:
        self._cost, self._matrix, self._lower, self._squares = cost, matrix, lower, squares
        self._tolerance = tolerance

    @cached_property
    def _settings(self) -> Any:
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.presolve_enable = False
        # The multi-threaded factorisation is several times slower on such sparse trees.
        settings.direct_solve_method = "qdldl"
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = self._tolerance
        return settings

    @cached_property
    def _solver(self) -> Any:
        cones = [clarabel.NonnegativeConeT(len(self._lower))]
        squares = np.zeros(len(self._cost)) if self._squares is None else self._squares
        curvature = sparse.csc_matrix(sparse.diags(squares))
        curvature.eliminate_zeros()
        rows = sparse.csc_matrix(-self._matrix)
        return clarabel.DefaultSolver(
            curvature, self._cost, rows, -self._lower, cones, self._settings
        )

    @property
    def _is_built(self) -> bool:
        return "_solver" in self.__dict__

    def set_lower(self, lower: Floats) -> None:
        """New right-hand sides for all rows."""
        self._lower = lower
        if self._is_built:
            self._solver.update(b=-lower)

    def set_cost(self, cost: Floats) -> None:
        """New costs for all columns."""
        self._cost = cost
        if self._is_built:
            self._solver.update(q=cost)

    def solve(self, clock: Clock = NO_LIMIT, *, duals: bool = True) -> Solution:
        """Solve from the start; a program that is stopped hands out its last iterate if it can."""
        began = time.perf_counter()
        # Nobody can interrupt Clarabel while it sets up.
        set_up = 0.0 if self._is_built else SECONDS_TO_SET_UP * self._matrix.nnz
        if not clock.has(set_up):
            return unsolved(clock.status or Status.TIME_LIMIT, len(self._cost), 0.0)
        try:
            return clock.run(lambda: self._run(clock, duals))
        except Stopped:
            return unsolved(clock.status, len(self._cost), time.perf_counter() - began)

    def dual_bound(self, found: Solution) -> float:
        """A value below which no solution within reach goes, by the duals of a solve."""
        return dual_bound(self._cost, self._matrix, self._lower, found)

    def _run(self, clock: Clock, duals: bool) -> Solution:
        began = time.perf_counter()
        solver, settings = self._solver, self._settings
        solver.set_termination_callback(lambda _: clock.status is not None)
        # Refining every solve of the factorised system takes nearly half the time, and is
        # needed only where a program is badly conditioned.
        for refine in (False, True):
            settings.iterative_refinement_enable = refine
            solver.update(settings=settings)
            found = solver.solve()
            ended = str(found.status)
            if ended == "Solved" or clock.status is not None:
                break
        status = _STATUS.get(ended, Status.FAILED)
        if status is Status.TIME_LIMIT:
            status = clock.status or status
        return Solution(
            status,
            np.array(found.x),
            float(found.obj_val),
            int(found.iterations),
            time.perf_counter() - began,
            np.array(found.z) if duals else None,
        )
