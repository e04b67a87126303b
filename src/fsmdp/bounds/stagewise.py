"""Stagewise planning: one linear program per step, from the last step to the first.

min E[V_l] subject to V_l(s) >= R(s, a) + discount * backup of w_{l+1} at (s, a), all s and a.

w_{l+1} is known when V_l is sought, so its backup is a table of numbers and only the right-hand
side changes from step to step, and from one call to the next: one live model, which the dual
simplex restarts in a few iterations. V_l >= V*_l by induction.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from fsmdp.bounds.bellman import OPTIMISTIC, BellmanNetwork, Intervals, bellman_rows, reward_scale
from fsmdp.bounds.certificate import seconds_of_excesses
from fsmdp.bounds.clock import NO_LIMIT, Clock, Status
from fsmdp.bounds.conditioning import Conditioning, conditioning_of, scaling
from fsmdp.bounds.costs import INTERIOR_FROM
from fsmdp.bounds.finish import Solved, finish
from fsmdp.bounds.highs import (
    INTERIOR,
    SIMPLEX,
    InteriorProgram,
    LiveProgram,
    SimplexBasis,
    pack_basis,
    unpack_basis,
)
from fsmdp.bounds.plan import Plan
from fsmdp.bounds.planner import Planner, Seconds, Solver
from fsmdp.bounds.problem import Problem
from fsmdp.errors import ModelError
from fsmdp.model.basis import Basis
from fsmdp.model.tables import Floats

HEADROOM = 1.5
"""With 1, values would be flattened where they are to tell states apart, for the sum over scopes is
above the largest value: on a ring of 8, regret doubles. From 1.5 on it does not change."""


@dataclass(frozen=True, slots=True, eq=False)
class Ceiling:
    """t_Z >= sum_j w_j h_j(y) for each scope Z and its values y, and -w_0 - sum_Z t_Z >= -M."""

    weights: sparse.csr_matrix = field(repr=False)  # (n_rows, n_functions)
    largest: sparse.csr_matrix = field(repr=False)  # (n_rows, n_scopes) columns t_Z

    def lower(self, ceiling: float) -> Floats:
        """Right-hand sides, the ceiling's last."""
        sides = np.zeros(self.weights.shape[0])
        sides[-1] = -ceiling
        return sides


def ceiling_rows(basis: Basis) -> Ceiling:
    """Rows for one step. Cost: the values of all scopes."""
    scopes = {scope: at for at, scope in enumerate(dict.fromkeys(basis.scopes[1:]))}
    values: list[tuple[int, int, float]] = []
    first_row: dict[int, int] = {}
    n_rows = 0
    largest: list[tuple[int, int]] = []
    for number, table in enumerate(basis):
        if number == 0:
            continue
        at = scopes[table.scope]
        if at not in first_row:
            first_row[at] = n_rows
            largest += [(n_rows + y, at) for y in range(table.values.size)]
            n_rows += table.values.size
        flat = table.values.ravel()
        values += [(first_row[at] + int(y), number, -float(flat[y])) for y in np.flatnonzero(flat)]
    values.append((n_rows, 0, -1.0))
    rows, columns, numbers = zip(*values, strict=True)
    above = [(row, at, 1.0) for row, at in largest] + [
        (n_rows, at, -1.0) for at in range(len(scopes))
    ]
    t_rows, t_columns, t_numbers = zip(*above, strict=True) if above else ((), (), ())
    return Ceiling(
        sparse.csr_matrix((numbers, (rows, columns)), shape=(n_rows + 1, len(basis))),
        sparse.csr_matrix((t_numbers, (t_rows, t_columns)), shape=(n_rows + 1, len(scopes))),
    )


def left_to_earn(network: BellmanNetwork, intervals: Intervals) -> Floats:
    """C_l, from the largest and the least reward of a step. Cost: two max-sums."""
    assert network.horizon is not None
    nothing = np.zeros(len(network.basis))
    right = network.right_side(nothing, intervals)
    most = network.elimination.maximise(right).value
    least = -network.elimination.maximise(-right).value
    most = least + HEADROOM * (most - least)
    ceilings = np.zeros(network.horizon)
    after = 0.0
    for step in reversed(range(network.horizon)):
        ceilings[step] = after = most + network.discount * after
    return ceilings


MOST_ITERATIONS = 100
"""For each row and column: where numbers span many orders of magnitude, simplex steps may go round
for ever. The iterate then is no solution; a capped stage falls back on its ceiling."""


@dataclass(frozen=True, slots=True)
class Stagewise(Planner):
    """One program per step, last step first: the fast planner."""

    solver: Solver = "auto"
    time_limit: Seconds = None

    def solve(self, problem: Problem, clock: Clock | None = None) -> Plan:
        """Stages weigh all states alike, save the first, which weighs them as the problem does."""
        clock = clock or self.own_clock
        network = problem.network
        if network.horizon is None:
            raise ModelError(
                "stagewise planning goes through the steps of a finite horizon and this one is "
                "infinite; use method='joint', 'cutting-planes' or 'auto'."
            )
        conditioning = conditioning_of(network, problem.intervals)
        program = clock.run(
            lambda: StagewiseProgram(network, problem.uniform, self.solver, conditioning)
        )
        found = program.solve(
            problem.intervals,
            problem.view,
            problem.means,
            clock.part(seconds_of_excesses(network)),
            confirm=True,
        )
        solved = Solved(
            f"stagewise ({program.solver})",
            found.status,
            found.weights,
            found.objective,
            found.dual_bound,
            rows=program.n_rows,
            columns=program.n_columns,
            iterations=sum(found.iterations),
            seconds={"rows": program.seconds_building, "solve": found.seconds},
        )
        return finish(problem, solved, clock)


@dataclass(frozen=True, slots=True, eq=False)
class StagewiseSolution:
    """Weights of every step, and what finding them took."""

    status: Status
    weights: Floats  # (horizon, n_functions)
    objective: float
    dual_bound: float  # the objective less what the duals of all stages leave open
    iterations: tuple[int, ...]  # by solve, last step first
    seconds: float


class StagewiseProgram:
    """The live program of one step, reused for all steps and all calls.

    A stage's optimal weights need not be unique: which of them a restarted simplex method ends at
    depends on where it starts, so a second call may give other weights of the same value.

    `solver` is "simplex" (HiGHS, warm), "interior" (Clarabel, cold but linear in the rows), or
    "auto": interior for large programs that have never been solved, simplex for the others.
    If it is `capped`, no step's values are above what is left to earn (see `ceiling`).
    """

    def __init__(
        self,
        network: BellmanNetwork,
        means: Floats,
        solver: str = "auto",
        conditioning: Conditioning | None = None,
        *,
        capped: bool = False,
    ) -> None:
        if solver not in ("auto", SIMPLEX, INTERIOR):
            raise ModelError(f"solver: expected 'auto', 'simplex' or 'interior', found {solver!r}.")
        began = time.perf_counter()
        self.network = network
        self.means = means
        step = bellman_rows(network)
        self._gather = step.rows.gather
        self._conditioning = conditioning or scaling(network.basis)
        values = step.values @ self._conditioning.matrix
        matrix = sparse.hstack([values, step.rows.messages], format="csr")
        costs = means @ self._conditioning.matrix
        cost = np.concatenate([costs, np.zeros(step.rows.n_messages)])
        self._ceiling = ceiling_rows(network.basis) if capped else None
        if self._ceiling is not None:
            capped_values = self._ceiling.weights @ self._conditioning.matrix
            matrix = sparse.bmat(
                [
                    [values, step.rows.messages, None],
                    [capped_values, None, self._ceiling.largest],
                ],
                format="csr",
            )
            cost = np.concatenate([cost, np.zeros(self._ceiling.largest.shape[1])])
        if solver == "auto":
            solver = INTERIOR if step.n_rows >= INTERIOR_FROM else SIMPLEX
        self.solver = solver
        kind = InteriorProgram if solver == INTERIOR else LiveProgram
        self._program = kind(cost, matrix, np.zeros(matrix.shape[0]))
        if isinstance(self._program, LiveProgram):
            # Devex weights need no start-up, which steepest edge pays at every restart.
            most = MOST_ITERATIONS * sum(matrix.shape)
            self._program.set_options(
                simplex_dual_edge_weight_strategy=1, simplex_iteration_limit=most
            )
        self._cost = cost
        self._bases: dict[int, SimplexBasis] = {}  # by step, from the last call
        self._settled: tuple[Floats, Floats] | None = None  # the last step: right side, weights
        self.n_rows, self.n_columns = matrix.shape
        self.seconds_building = time.perf_counter() - began

    def solve(
        self,
        intervals: Intervals,
        view: str = OPTIMISTIC,
        first_means: Floats | None = None,
        clock: Clock = NO_LIMIT,
        *,
        confirm: bool = False,
    ) -> StagewiseSolution:
        """Weights for all steps; zero for those that time did not suffice for.

        A program that was stopped is not to be used again.

        `first_means` replaces the objective at step 1, on which the policy does not depend.
        `confirm` computes what every stage's dual leaves open.
        """
        began = time.perf_counter()
        network, n_functions = self.network, len(self.network.basis)
        assert network.horizon is not None
        weights = np.zeros((network.horizon, n_functions))
        following = np.zeros(n_functions)
        iterations = []
        status = Status.OPTIMAL
        objective = left_open = 0.0
        scale = reward_scale(intervals)
        n_coordinates = self._conditioning.n_coordinates
        ceilings = None if self._ceiling is None else left_to_earn(network, intervals)
        for step in reversed(range(network.horizon)):
            right_side = network.right_side(following, intervals, view)
            lower = self._gather @ (right_side / scale)
            if self._ceiling is not None and ceilings is not None:
                lower = np.concatenate([lower, self._ceiling.lower(ceilings[step] / scale)])
            is_last = step == network.horizon - 1 > 0
            if is_last and self._settled is not None and np.array_equal(lower, self._settled[0]):
                weights[step] = following = scale * self._settled[1]
                iterations.append(0)
                continue
            self._program.set_lower(lower)
            if step == 0 and first_means is not None:
                self._program.set_cost(self._with_means(first_means))
            restarted = step in self._bases
            if restarted and isinstance(self._program, LiveProgram):
                self._program.restart_from(self._bases[step])
            found = self._program.solve(clock, duals=confirm)
            if found.status is not Status.OPTIMAL:
                status = found.status
            if found.status in (Status.TIME_LIMIT, Status.INTERRUPTED):
                break
            if confirm:
                left_open += scale * (found.objective - self._program.dual_bound(found))
            unscaled = self._conditioning.weights(found.values[:n_coordinates])
            if ceilings is not None and not (
                found.status is Status.OPTIMAL and np.isfinite(unscaled).all()
            ):
                # The ceiling itself is a solution, whatever the solver made of it.
                unscaled = np.zeros(n_functions)
                unscaled[0] = ceilings[step] / scale
            weights[step] = following = scale * unscaled
            objective = scale * found.objective
            iterations.append(found.iterations)
            # The last two steps and the first (with its own objective) differ less from
            # themselves in the last call than from the step after; the others do not.
            if isinstance(self._program, LiveProgram) and (
                step >= network.horizon - 2 or (step == 0 and first_means is not None)
            ):
                self._bases[step] = self._program.basis()
            # A solve that left its starting basis as it was would give the same numbers again, to
            # the last bit, so that a run that is resumed without them does not differ.
            if is_last and restarted and found.iterations == 0:
                self._settled = lower, unscaled
        if first_means is not None and clock.status is None:
            self._program.set_cost(self._cost)
        seconds = time.perf_counter() - began
        return StagewiseSolution(
            status, weights, objective, objective - left_open, tuple(iterations), seconds
        )

    def stage_bases(self) -> NDArray[np.int64]:
        """Bases from which steps start in the next call: the step's step, then its statuses.

        A new program that is given them finds the same weights as this one would, bit for bit.
        """
        packed = [np.append([step], pack_basis(basis)) for step, basis in self._bases.items()]
        width = 1 + self.n_columns + self.n_rows
        return np.array(packed, dtype=np.int64).reshape(len(packed), width)

    def set_stage_bases(self, packed: NDArray[np.int64]) -> None:
        """Start from bases that `stage_bases` gave."""
        self._settled = None
        self._bases = {int(one[0]): unpack_basis(one[1:], self.n_columns) for one in packed}

    def _with_means(self, means: Floats) -> Floats:
        cost = self._cost.copy()
        cost[: self._conditioning.n_coordinates] = means @ self._conditioning.matrix
        return cost
