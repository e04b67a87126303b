"""HiGHS: the only file that imports it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from enum import StrEnum

import highspy
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from fsmdp.model.tables import Floats

SIMPLEX = "simplex"


class Status(StrEnum):
    """How a solve ended. Only infeasible and unbounded leave nothing to certify."""

    OPTIMAL = "optimal"
    TIME_LIMIT = "time-limit"
    ITERATION_LIMIT = "iteration-limit"
    INFEASIBLE = "infeasible"
    UNBOUNDED = "unbounded"
    INACCURATE = "inaccurate"
    FAILED = "failed"


Basis = highspy.HighsBasis

_STATUS = {
    highspy.HighsModelStatus.kOptimal: Status.OPTIMAL,
    highspy.HighsModelStatus.kTimeLimit: Status.TIME_LIMIT,
    highspy.HighsModelStatus.kIterationLimit: Status.ITERATION_LIMIT,
    highspy.HighsModelStatus.kInfeasible: Status.INFEASIBLE,
    highspy.HighsModelStatus.kUnbounded: Status.UNBOUNDED,
    highspy.HighsModelStatus.kUnboundedOrInfeasible: Status.INFEASIBLE,
}


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """What a solve returned; `values` may be all zeros if it found nothing."""

    status: Status
    values: Floats  # (n_columns,)
    objective: float
    iterations: int
    seconds: float
    duals: Floats | None = None  # (n_rows,), of the interior method only


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
        self._limited = False
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
        self._highs.changeColsCost(len(cost), columns, cost)

    def basis(self) -> Basis:
        """The last basis."""
        return self._highs.getBasis()

    def restart_from(self, basis: Basis) -> None:
        """Forget all but a basis: the next solve depends on it alone."""
        self._highs.clearSolver()
        self._highs.setBasis(basis)

    def solve(self, time_limit: float | None = None) -> Solution:
        """Run from wherever the last run ended."""
        began = time.perf_counter()
        if time_limit is not None or self._limited:
            limit = highspy.kHighsInf if time_limit is None else max(time_limit, 0.0)
            # HiGHS counts time from the first run of an object.
            self._highs.setOptionValue("time_limit", self._highs.getRunTime() + limit)
            self._limited = time_limit is not None
        self._highs.run()
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
        )


def pack_basis(basis: Basis) -> NDArray[np.int64]:
    """How every column, and then every row, stands in a basis."""
    return np.array([int(one) for one in (*basis.col_status, *basis.row_status)])


def unpack_basis(packed: NDArray[np.int64], n_columns: int) -> Basis:
    """The inverse of `pack_basis`."""
    statuses = [highspy.HighsBasisStatus(int(one)) for one in packed]
    basis = Basis()
    basis.col_status, basis.row_status = statuses[:n_columns], statuses[n_columns:]
    basis.valid = True
    return basis
