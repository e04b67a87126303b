"""Planners: each is its options; `solve` takes the data and gives a plan with its certificate."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from fsmdp.errors import ModelError, PlanningError
from fsmdp.model.tables import Floats
from fsmdp.planning.bellman import OPTIMISTIC
from fsmdp.planning.certificate import certify
from fsmdp.planning.cutting_planes import solve_joint_by_cuts, solve_stages_by_cuts
from fsmdp.planning.ellipsoid import ITERATION_LIMIT, solve_ellipsoid
from fsmdp.planning.highs import Status
from fsmdp.planning.interior import INTERIOR
from fsmdp.planning.joint import solve_joint
from fsmdp.planning.options import check_options
from fsmdp.planning.plan import Effort, Plan, finish_plan
from fsmdp.planning.problem import Problem
from fsmdp.planning.stagewise import StagewiseProgram

CONFIRMED = 1e-5
"""Relative difference between a program's value and its certified one that counts as rounding."""


@dataclass(frozen=True, slots=True)
class Stagewise:
    """One program per step, last step first: the fast planner, and the better policy."""

    solver: str = "auto"
    time_limit: float | None = None

    def __post_init__(self) -> None:
        check_options(self, self.__dataclass_fields__)

    def solve(self, problem: Problem) -> Plan:
        """Stages weigh all states alike, save the first, which weighs them as the problem does."""
        network = problem.network
        if network.horizon is None:
            raise ModelError(
                "stagewise planning goes through the steps of a finite horizon and this one is "
                "infinite; use method='joint', 'cutting-planes' or 'auto'."
            )
        program = StagewiseProgram(network, problem.uniform, self.solver)
        found = program.solve(problem.intervals, problem.view, problem.means, self.time_limit)
        return _finish(
            problem,
            f"stagewise ({program.solver})",
            found.status,
            found.weights,
            found.objective,
            rows=program.n_rows,
            columns=program.n_columns,
            iterations=sum(found.iterations),
            seconds={"rows": program.seconds_building, "solve": found.seconds},
        )


@dataclass(frozen=True, slots=True)
class Joint:
    """All steps in one program: the tightest bound. `w_norm` bounds sum_j |w_j| at each step."""

    w_norm: float | None = None
    solver: str = "auto"
    time_limit: float | None = None

    def __post_init__(self) -> None:
        check_options(self, self.__dataclass_fields__)

    def solve(self, problem: Problem) -> Plan:
        """The paper's Fig. 1; the stationary program if the horizon is infinite."""
        _require_optimism(problem, "joint")
        found = solve_joint(
            problem.network,
            problem.intervals,
            problem.means,
            w_norm=self.w_norm,
            solver=INTERIOR if self.solver == "auto" else self.solver,
            time_limit=self.time_limit,
        )
        return _finish(
            problem,
            "joint",
            found.status,
            found.weights,
            found.objective,
            rows=found.n_rows,
            columns=found.n_columns,
            iterations=found.iterations,
            seconds={"rows": found.seconds_building, "solve": found.seconds},
        )


@dataclass(frozen=True, slots=True)
class CuttingPlanes:
    """Cuts by an oracle in place of rows: for networks whose rows are too many.

    With a finite horizon the policy comes from a stagewise run, the bound from the joint program
    that starts from its active cuts.
    """

    tolerance: float = 1e-6
    max_rounds: int = 1000
    time_limit: float | None = None

    def __post_init__(self) -> None:
        check_options(self, self.__dataclass_fields__)

    def solve(self, problem: Problem) -> Plan:
        """Stage by stage, then jointly, until the certified gap is within the tolerance."""
        _require_optimism(problem, "cutting-planes")
        network, began = problem.network, time.perf_counter()
        start, near, seconds = None, None, {}
        if network.horizon is not None:
            stages, start = solve_stages_by_cuts(
                network,
                problem.intervals,
                problem.uniform,
                first_means=problem.means,
                tolerance=self.tolerance,
                max_rounds=self.max_rounds,
                time_limit=None if self.time_limit is None else self.time_limit / 2,
            )
            near, seconds = stages.weights, {"stages": stages.seconds}
        spent = time.perf_counter() - began
        found = solve_joint_by_cuts(
            network,
            problem.intervals,
            problem.means,
            start,
            near,
            tolerance=self.tolerance,
            max_rounds=self.max_rounds,
            time_limit=None if self.time_limit is None else self.time_limit - spent,
        )
        return _finish(
            problem,
            "cutting-planes",
            found.status,
            found.weights,
            found.certified,
            policy_weights=near,
            rows=found.n_cuts,
            columns=found.weights.size,
            iterations=found.iterations,
            seconds=seconds | {"joint": found.seconds},
            choices=(f"{found.rounds} rounds of cuts; lower bound {found.objective:.6g}",),
        )


@dataclass(frozen=True, slots=True)
class Ellipsoid:
    """The paper's Algorithm 2, as a reference for small problems."""

    epsilon: float = 1e-3
    radius: float | None = None
    deep_cuts: bool = False
    iteration_limit: int = ITERATION_LIMIT
    time_limit: float | None = None

    def __post_init__(self) -> None:
        check_options(self, self.__dataclass_fields__)

    def solve(self, problem: Problem) -> Plan:
        """The joint program to within epsilon."""
        _require_optimism(problem, "ellipsoid")
        found = solve_ellipsoid(
            problem.network,
            problem.intervals,
            problem.means,
            epsilon=self.epsilon,
            radius=self.radius,
            deep_cuts=self.deep_cuts,
            iteration_limit=self.iteration_limit,
            time_limit=self.time_limit,
        )
        return _finish(
            problem,
            "ellipsoid",
            found.status,
            found.weights,
            found.objective,
            rows=0,
            columns=found.weights.size,
            iterations=found.iterations,
            seconds={"solve": found.seconds},
            choices=(f"lower bound {found.lower_bound:.6g}",),
        )


def _confirmed(status: Status, objective: float, certified: float) -> Status:
    """A solver's word that it found the optimum counts if its weights are worth as much."""
    if status is Status.INFEASIBLE:
        return Status.FAILED  # the constant always is feasible: the solver lost its way
    if status is Status.OPTIMAL and certified - objective > CONFIRMED * max(1.0, abs(certified)):
        return Status.INACCURATE
    return status


def _require_optimism(problem: Problem, method: str) -> None:
    if problem.view != OPTIMISTIC and not problem.intervals.exact:
        raise ModelError(
            f"method {method!r} plans optimistically; a {problem.view} backup needs the following "
            "step's weights to be known, use method='stagewise'."
        )


def _finish(
    problem: Problem,
    method: str,
    status: Status,
    weights: Floats,
    objective: float,
    *,
    rows: int,
    columns: int,
    iterations: int,
    seconds: dict[str, float],
    policy_weights: Floats | None = None,
    choices: tuple[str, ...] = (),
) -> Plan:
    """Certify, lift, and hand out; a solve that found no numbers falls back on the constant."""
    began = time.perf_counter()
    network, intervals = problem.network, problem.intervals
    if status is Status.UNBOUNDED:
        raise PlanningError(
            "the objective has no minimum: no distribution over states has the means that the "
            "weights ask for; use weights='initial', 'uniform', or a distribution by variable."
        )
    if not np.isfinite(weights).all():
        weights = np.zeros(weights.shape)
    certificate, lifted = certify(network, intervals, weights, problem.start, problem.view)
    status = _confirmed(status, objective, float(problem.means @ lifted[0]))
    policy = lifted
    if policy_weights is not None:
        _, policy = certify(network, intervals, policy_weights, problem.start, problem.view)
    seconds = {"network": problem.seconds} | seconds
    seconds["certificate"] = time.perf_counter() - began
    return finish_plan(
        network,
        intervals,
        method=method,
        status=status,
        weights=policy,
        bound_weights=lifted,
        objective=objective,
        certificate=certificate,
        effort=Effort(rows, columns, iterations, seconds, (network.elimination.why, *choices)),
        view=problem.view,
    )
