"""HiGHS: the only file that imports it."""

import time
from functools import cached_property
from typing import Any

import clarabel
import highspy
import numpy as np
from scipy import sparse

from fsmdp.bounds.clock import NO_LIMIT, Clock, Solution, Status, Stopped, dual_bound, unsolved
from fsmdp.model.tables import Floats, Integers

SIMPLEX = "simplex"


SimplexBasis = highspy.HighsBasis

_STATUS = {
    highspy.HighsModelStatus.kOptimal: Status.OPTIMAL,
    highspy.HighsModelStatus.kTimeLimit: Status.TIME_LIMIT,
    highspy.HighsModelStatus.kInterrupt: Status.INTERRUPTED,
    highspy.HighsModelStatus.kIterationLimit: Status.ITERATION_LIMIT,
    highspy.HighsModelStatus.kInfeasible: Status.INFEASIBLE,
    highspy.HighsModelStatus.kUnbounded: Status.UNBOUNDED,
    highspy.HighsModelStatus.kUnboundedOrInfeasible: Status.INFEASIBLE,
}


class LiveProgram:
    """min cost @ x subject to matrix @ x >= lower; kept alive so that solves restart warm."""

    def __init__(
        self,
        cost: Floats,
        matrix: sparse.csr_matrix,
        lower: Floats,
    ) -> None:
        n_rows, n_columns = matrix.shape
        self._lower = np.array(lower, dtype=np.float64)
        self._infinite = np.full(n_rows, highspy.kHighsInf)
        self._limited = self._listens = False
        self._clock = NO_LIMIT
        self._cost, self._matrix = np.array(cost, dtype=np.float64), matrix
        program = highspy.HighsLp()
        program.num_col_, program.num_row_ = n_columns, n_rows
        program.col_cost_ = cost
        free = np.full(n_columns, highspy.kHighsInf)
        program.col_lower_ = -free
        program.col_upper_ = free
        program.row_lower_ = lower
        program.row_upper_ = self._infinite
        by_row = sparse.csr_matrix(matrix)
        program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        program.a_matrix_.start_ = by_row.indptr.astype(np.int32)
        program.a_matrix_.index_ = by_row.indices.astype(np.int32)
        program.a_matrix_.value_ = by_row.data
        self._highs = highspy.Highs()
        self._highs.silent()
        self._highs.passModel(program)

    @property
    def n_rows(self) -> int:
        """Rows at present."""
        return int(self._highs.getNumRow())

    def set_options(self, **options: bool | int | float | str) -> None:
        """HiGHS options by their own names."""
        for name, value in options.items():
            self._highs.setOptionValue(name, value)

    def set_lower(self, lower: Floats) -> None:
        """New right-hand sides for all rows; the last basis stays dual feasible."""
        changed = np.flatnonzero(lower != self._lower).astype(np.int32)
        infinite = self._infinite[: len(changed)]
        self._highs.changeRowsBounds(len(changed), changed, lower[changed], infinite)  # type: ignore[attr-defined]
        self._lower = lower

    def set_cost(self, cost: Floats) -> None:
        """New costs for the first columns; the last basis stays primal feasible."""
        columns = np.arange(len(cost), dtype=np.int32)
        self._cost[: len(cost)] = cost
        self._highs.changeColsCost(len(cost), columns, cost)

    def basis(self) -> SimplexBasis:
        """The last basis."""
        return self._highs.getBasis()

    def restart_from(self, basis: SimplexBasis) -> None:
        """Forget all but a basis: the next solve depends on it alone."""
        self._highs.clearSolver()
        self._highs.setBasis(basis)

    def solve(self, clock: Clock = NO_LIMIT, *, duals: bool = False) -> Solution:
        """Run from wherever the last run ended."""
        began = time.perf_counter()
        self._set_time_limit(clock.left())
        self._clock = clock
        if clock is not NO_LIMIT and not self._listens:
            self._listen()
        try:
            clock.run(self._highs.run)
        except Stopped:
            return unsolved(clock.status, len(self._cost), time.perf_counter() - began)
        info = self._highs.getInfo()
        solution = self._highs.getSolution()
        iterations = (
            info.simplex_iteration_count + info.ipm_iteration_count + info.crossover_iteration_count
        )
        return Solution(
            _STATUS.get(self._highs.getModelStatus(), Status.FAILED),
            np.array(solution.col_value),
            float(info.objective_function_value),
            max(0, int(iterations)),
            time.perf_counter() - began,
            np.array(solution.row_dual) if duals else None,
        )

    def dual_bound(self, found: Solution) -> float:
        """A value below which no solution within reach goes, by the duals of a solve."""
        return dual_bound(self._cost, self._matrix, self._lower, found)

    def _set_time_limit(self, left: float | None) -> None:
        if left is None and not self._limited:
            return
        # HiGHS counts time from the first run of an object.
        limit = highspy.kHighsInf if left is None else self._highs.getRunTime() + left
        self._highs.setOptionValue("time_limit", limit)
        self._limited = left is not None

    def _listen(self) -> None:
        """Let the simplex method stop when the clock of a solve does."""

        def look(event: Any) -> None:
            if self._clock.status is not None:
                event.interrupt()

        self._highs.cbSimplexInterrupt += look
        self._listens = True


def pack_basis(basis: SimplexBasis) -> Integers:
    """How every column, and then every row, stands in a basis."""
    return np.array([int(one) for one in (*basis.col_status, *basis.row_status)])


def unpack_basis(packed: Integers, n_columns: int) -> SimplexBasis:
    """The inverse of `pack_basis`."""
    statuses = [highspy.HighsBasisStatus(int(one)) for one in packed]
    basis = SimplexBasis()
    basis.col_status, basis.row_status = statuses[:n_columns], statuses[n_columns:]
    basis.valid = True
    return basis


INTERIOR = "interior"

TOLERANCE = 1e-8

SECONDS_TO_SET_UP = 5e-6
"""For each non-zero, roughly: ordering and symbolic factorisation."""

INTERIOR_STATUS = {
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
        status = INTERIOR_STATUS.get(ended, Status.FAILED)
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
