"""The joint program: all steps in one linear program, the paper's Fig. 1.

min E[V_1] subject to, for all l, s, a:
    V_l(s) >= R(s, a) + discount * sum_j max(w_j hi_j(s, a), w_j lo_j(s, a)),  w = w^(l+1).

Written with w = p - n, p and n >= 0, the maximum is p hi - n lo: raising p and n together only
raises the right side, since hi >= lo. So the bilevel program of the paper is one linear program,
with no sign to guess; a known model needs no such pair. With an infinite horizon there is one step,
which follows itself.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from fsmdp.errors import ModelError, PlanningError
from fsmdp.model.tables import Floats
from fsmdp.planning.bellman import BellmanNetwork, Intervals
from fsmdp.planning.highs import SIMPLEX, LiveProgram, Solution, Status
from fsmdp.planning.interior import INTERIOR, InteriorProgram
from fsmdp.planning.rows import bellman_rows, function_scales, reward_scale

SECOND_OPINION_UP_TO = 50_000
"""Rows up to which the simplex method decides what the interior-point method left open."""


@dataclass(frozen=True, slots=True, eq=False)
class JointProgram:
    """matrix @ x >= lower over columns x that `read_weights` turns into weights."""

    cost: Floats = field(repr=False)
    matrix: sparse.csr_matrix = field(repr=False)
    lower: Floats = field(repr=False)
    free: NDArray[np.int64] = field(repr=False)  # weights that are a column
    split: NDArray[np.int64] = field(repr=False)  # weights that are a difference of two columns
    scales: Floats = field(repr=False)  # a column's unit in its weight
    n_steps: int
    scale: float

    def read_weights(self, columns: Floats) -> Floats:
        """Weights (n_steps, n_functions) from a solution."""
        n_free, n_split = len(self.free), len(self.split)
        weights = np.zeros(n_free + n_split)
        weights[self.free] = columns[:n_free]
        plus, minus = columns[n_free : n_free + n_split], columns[n_free + n_split :][:n_split]
        weights[self.split] = plus - minus
        return self.scale * weights.reshape(self.n_steps, -1) / self.scales


def joint_program(
    network: BellmanNetwork, intervals: Intervals, means: Floats, w_norm: float | None = None
) -> JointProgram:
    """The program of all steps; `w_norm` bounds sum_j |w_j| at each step.

    Cost: horizon times the rows of one step.
    """
    step = bellman_rows(network, network.n_weight_rows)
    n_steps, n_functions = network.n_weight_rows, len(network.basis)
    every_step = sparse.identity(n_steps, format="csr")
    link = every_step if network.horizon is None else sparse.eye(n_steps, k=1, format="csr")
    values = sparse.kron(every_step, step.values, format="csc")
    high = sparse.kron(link, step.backups(network, intervals.high), format="csc")
    low = high
    if not intervals.exact:
        low = sparse.kron(link, step.backups(network, intervals.low), format="csc")
    scales = function_scales(network)
    units = sparse.diags(np.tile(1 / scales, n_steps))
    values, high, low = (sparse.csc_matrix(part @ units) for part in (values, high, low))
    is_split = _needs_two_columns(network, intervals, w_norm)
    free, split = np.flatnonzero(~is_split), np.flatnonzero(is_split)
    upper_side = values - network.discount * high
    lower_side = network.discount * low - values
    scale = reward_scale(intervals)
    rewards = step.rows.gather @ network.right_side(np.zeros(n_functions), intervals) / scale
    blocks = [
        upper_side[:, free],
        upper_side[:, split],
        lower_side[:, split],
        sparse.kron(every_step, step.rows.messages),
    ]
    matrix = sparse.hstack(blocks, format="csr")
    lower = np.tile(rewards, n_steps)
    extra, extra_lower = _sign_rows(len(free), len(split), matrix.shape[1])
    if w_norm is not None:
        by_step = sparse.kron(every_step, 1 / scales[None, :], format="csr")[:, split]
        empty = sparse.csr_matrix((n_steps, matrix.shape[1] - 2 * len(split)))
        extra = sparse.vstack([extra, sparse.hstack([-by_step, -by_step, empty])])
        extra_lower = np.concatenate([extra_lower, np.full(n_steps, -w_norm / scale)])
    cost = np.zeros(n_steps * n_functions)
    cost[:n_functions] = means / scales
    return JointProgram(
        np.concatenate([cost[free], cost[split], -cost[split], np.zeros(blocks[3].shape[1])]),
        sparse.csr_matrix(sparse.vstack([matrix, extra], format="csr")),
        np.concatenate([lower, extra_lower]),
        free,
        split,
        scales,
        n_steps,
        scale,
    )


@dataclass(frozen=True, slots=True, eq=False)
class JointSolution:
    """Weights of every step, and what finding them took."""

    status: Status
    weights: Floats  # (n_steps, n_functions)
    objective: float
    iterations: int
    n_rows: int
    n_columns: int
    seconds_building: float
    seconds: float


def solve_joint(
    network: BellmanNetwork,
    intervals: Intervals,
    means: Floats,
    *,
    w_norm: float | None = None,
    solver: str = INTERIOR,
    time_limit: float | None = None,
) -> JointSolution:
    """Solve the joint program by the interior-point method, or the simplex method on request."""
    if solver not in (INTERIOR, SIMPLEX):
        raise ModelError(f"solver: expected 'interior' or 'simplex', found {solver!r}.")
    began = time.perf_counter()
    program = joint_program(network, intervals, means, w_norm)
    built = time.perf_counter()
    found = _solve(program, solver, time_limit)
    _explain_failure(found, network, intervals, w_norm)
    return JointSolution(
        found.status,
        program.read_weights(found.values),
        program.scale * found.objective,
        found.iterations,
        *program.matrix.shape,
        built - began,
        time.perf_counter() - built,
    )


def _solve(program: JointProgram, solver: str, time_limit: float | None) -> Solution:
    """By the solver asked for; the simplex method is asked too where the other found no answer."""
    parts = program.cost, program.matrix, program.lower
    if solver == INTERIOR:
        found = InteriorProgram(*parts).solve(time_limit)
        answered = found.status in (Status.OPTIMAL, Status.TIME_LIMIT)
        if answered or program.matrix.shape[0] > SECOND_OPINION_UP_TO:
            return found
    return LiveProgram(*parts).solve(time_limit)


def constant_value(network: BellmanNetwork, intervals: Intervals) -> float:
    """A value that no state exceeds: the largest reward, earned at every step.

    Its weights are feasible and their 1-norm is at most this, so that a bound W of as much
    always leaves a solution.
    """
    nothing = np.zeros(len(network.basis))
    largest = network.elimination.maximise(network.right_side(nothing, intervals)).value
    if network.horizon is None:
        return abs(largest) / (1 - network.discount)
    return abs(largest) * sum(network.discount**step for step in range(network.horizon))


def largest_value(network: BellmanNetwork, intervals: Intervals) -> float:
    """No value is further from zero than this: every reward term at its largest, at every step."""
    largest = 0.0
    begin = 0
    for cases in network.reward_scopes:
        sizes = [network.elimination.network.table_size(scope) for scope in cases]
        end = begin + sum(sizes)
        largest += float(np.abs(intervals.rewards[begin:end]).max(initial=0.0))
        begin = end
    if network.horizon is None:
        return largest / (1 - network.discount)
    return largest * sum(network.discount**step for step in range(network.horizon))


def _needs_two_columns(
    network: BellmanNetwork, intervals: Intervals, w_norm: float | None
) -> NDArray[np.bool_]:
    """Weights whose sign matters: backed up from an interval of some width, or of bounded norm.

    A pair of columns for any other weight could grow without end and change nothing.
    """
    n_steps, n_functions = network.n_weight_rows, len(network.basis)
    if w_norm is not None:
        return np.ones(n_steps * n_functions, dtype=np.bool_)
    uncertain = np.zeros(n_functions, dtype=np.bool_)
    uncertain[network.backup_columns[intervals.low != intervals.high]] = True
    backed_up = np.ones(n_steps, dtype=np.bool_)
    backed_up[0] = network.horizon is None
    return np.outer(backed_up, uncertain).ravel()


def _sign_rows(n_free: int, n_split: int, n_columns: int) -> tuple[sparse.csr_matrix, Floats]:
    rows = np.arange(2 * n_split)
    ones = np.ones(2 * n_split)
    matrix = sparse.csr_matrix((ones, (rows, n_free + rows)), shape=(2 * n_split, n_columns))
    return matrix, np.zeros(2 * n_split)


def _rounded_up(value: float) -> str:
    """Six digits that are not below the value, with room for a solver's tolerance."""
    enough = value * (1 + 1e-6)
    shown = float(f"{enough:.6g}")
    return f"{shown if shown >= enough else shown * (1 + 1e-5):.6g}"


def _explain_failure(
    found: Solution,
    network: BellmanNetwork,
    intervals: Intervals,
    w_norm: float | None,
) -> None:
    if found.status is Status.INFEASIBLE and w_norm is not None:
        raise PlanningError(
            f"no weights with sum_j |w_j| <= {w_norm:.6g} at every step satisfy the Bellman "
            f"inequalities; w_norm={_rounded_up(constant_value(network, intervals))} is enough "
            "(the value of the largest reward at every step), or leave w_norm out."
        )
