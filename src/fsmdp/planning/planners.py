"""Planners: each is its options; `solve` takes the data and gives a plan with its certificate."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from fsmdp.errors import ModelError, PlanningError
from fsmdp.model.tables import Floats
from fsmdp.planning.certificate import Certificate, certify
from fsmdp.planning.clock import NO_LIMIT, Clock, Stopped
from fsmdp.planning.conditioning import conditioning_of
from fsmdp.planning.cutting_planes import solve_joint_by_cuts, solve_stages_by_cuts
from fsmdp.planning.ellipsoid import ITERATION_LIMIT, solve_ellipsoid
from fsmdp.planning.interior import INTERIOR
from fsmdp.planning.intervals import OPTIMISTIC
from fsmdp.planning.joint import solve_joint
from fsmdp.planning.options import check_options
from fsmdp.planning.oracle import seconds_of_excesses
from fsmdp.planning.plan import Effort, Plan, finish_plan
from fsmdp.planning.problem import Problem
from fsmdp.planning.solution import CONFIRMED, Status
from fsmdp.planning.stagewise import StagewiseProgram
from fsmdp.planning.values import value_span


@dataclass(frozen=True, slots=True)
class Stagewise:
    """One program per step, last step first: the fast planner, and the better policy."""

    solver: str = "auto"
    time_limit: float | None = None

    def __post_init__(self) -> None:
        check_options(self, self.__dataclass_fields__)

    def solve(self, problem: Problem, clock: Clock | None = None) -> Plan:
        """Stages weigh all states alike, save the first, which weighs them as the problem does."""
        clock = Clock(self.time_limit) if clock is None else clock
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
        return _finish(
            problem,
            clock,
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


@dataclass(frozen=True, slots=True)
class Joint:
    """All steps in one program: the tightest bound. `w_norm` bounds sum_j |w_j| at each step."""

    w_norm: float | None = None
    solver: str = "auto"
    time_limit: float | None = None

    def __post_init__(self) -> None:
        check_options(self, self.__dataclass_fields__)

    def solve(self, problem: Problem, clock: Clock | None = None) -> Plan:
        """The paper's Fig. 1; the stationary program if the horizon is infinite."""
        _require_optimism(problem, "joint")
        clock = Clock(self.time_limit) if clock is None else clock
        found = solve_joint(
            problem.network,
            problem.intervals,
            problem.means,
            w_norm=self.w_norm,
            solver=INTERIOR if self.solver == "auto" else self.solver,
            clock=clock.part(seconds_of_excesses(problem.network)),
        )
        return _finish(
            problem,
            clock,
            "joint",
            found.status,
            found.weights,
            found.objective,
            found.dual_bound,
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

    def solve(self, problem: Problem, clock: Clock | None = None) -> Plan:
        """Stage by stage, then jointly, until the certified gap is within the tolerance."""
        _require_optimism(problem, "cutting-planes")
        clock = Clock(self.time_limit) if clock is None else clock
        network, solving = problem.network, clock.part(seconds_of_excesses(problem.network))
        start, near, policy_weights, seconds = None, None, None, {}
        if network.horizon is not None:
            with suppress(Stopped):
                stages, near, start = solve_stages_by_cuts(
                    network,
                    problem.intervals,
                    problem.uniform,
                    first_means=problem.means,
                    tolerance=self.tolerance,
                    max_rounds=self.max_rounds,
                    clock=solving.share(0.5),
                )
                policy_weights, seconds = stages.weights, {"stages": stages.seconds}
        found = solve_joint_by_cuts(
            network,
            problem.intervals,
            problem.means,
            start,
            near,
            tolerance=self.tolerance,
            max_rounds=self.max_rounds,
            clock=solving,
        )
        return _finish(
            problem,
            clock,
            "cutting-planes",
            found.status,
            found.weights,
            found.certified,
            found.objective,
            policy_weights=policy_weights,
            rows=found.n_cuts,
            columns=found.weights.size,
            iterations=found.iterations,
            seconds=seconds | {"joint": found.seconds},
            choices=(f"{found.rounds} rounds of cuts",),
            tolerance=self.tolerance,
        )


@dataclass(frozen=True, slots=True)
class Ellipsoid:
    """The paper's Algorithm 2, as a reference for small problems; `epsilon` in spans of values."""

    epsilon: float = 1e-3
    radius: float | None = None
    deep_cuts: bool = False
    iteration_limit: int = ITERATION_LIMIT
    time_limit: float | None = None

    def __post_init__(self) -> None:
        check_options(self, self.__dataclass_fields__)

    def solve(self, problem: Problem, clock: Clock | None = None) -> Plan:
        """The joint program to within epsilon spans of values."""
        _require_optimism(problem, "ellipsoid")
        clock = Clock(self.time_limit) if clock is None else clock
        found = solve_ellipsoid(
            problem.network,
            problem.intervals,
            problem.means,
            epsilon=self.epsilon * value_span(problem.network, problem.intervals),
            radius=self.radius,
            deep_cuts=self.deep_cuts,
            iteration_limit=self.iteration_limit,
            clock=clock,
        )
        return _finish(
            problem,
            clock,
            "ellipsoid",
            found.status,
            found.weights,
            found.objective,
            found.lower_bound,
            tolerance=self.epsilon,
            rows=0,
            columns=found.weights.size,
            iterations=found.iterations,
            seconds={"solve": found.seconds},
        )


def plan_of_constant(problem: Problem) -> Plan:
    """What can be said at once of any model: the trivial bound, and the greedy policy for now."""
    assert problem.trivial is not None
    bound = problem.trivial.upper_bound
    return _finish(
        problem,
        NO_LIMIT,
        "none",
        Status.OPTIMAL,
        problem.trivial.weights(1),
        bound,
        bound,
        rows=0,
        columns=0,
        iterations=0,
        seconds={},
    )


def _confirmed(status: Status, left_open: float, enough: float) -> Status:
    """A solver's word that it found the optimum counts if a dual bound leaves little open."""
    if status is Status.INFEASIBLE:
        return Status.FAILED  # the constant always is feasible: the solver lost its way
    if status is Status.OPTIMAL and not left_open <= enough:
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
    clock: Clock,
    method: str,
    status: Status,
    weights: Floats,
    objective: float,
    dual_bound: float,
    *,
    rows: int,
    columns: int,
    iterations: int,
    seconds: dict[str, float],
    policy_weights: Floats | None = None,
    choices: tuple[str, ...] = (),
    tolerance: float = CONFIRMED,
) -> Plan:
    """Certify, lift, and hand out the best bound there is, which may be the trivial one.

    What time does not suffice to certify makes a policy all the same.
    """
    began = time.perf_counter()
    network = problem.network
    if status is Status.UNBOUNDED:
        raise PlanningError(
            "the objective has no minimum: no distribution over states has the means that the "
            "weights ask for; use weights='initial', 'uniform', or a distribution by variable."
        )
    bounds = [] if problem.trivial is None else [_trivial_bound(problem)]
    found = _certified(problem, weights, clock)
    if found is not None:
        bounds.append(found)
    policy = found if policy_weights is None else _certified(problem, policy_weights, clock)
    if not bounds:
        raise PlanningError(
            "time was too short to certify a bound; give more of it (time_limit=...)."
        )
    certificate, lifted = min(bounds, key=lambda bound: bound[0].upper_bound)
    certified_objective = float(problem.means @ (lifted if found is None else found[1])[0])
    enough = 5 * max(tolerance, CONFIRMED) * value_span(network, problem.intervals)
    status = clock.status or _confirmed(status, certified_objective - dual_bound, enough)
    seconds = {"network": problem.seconds} | seconds
    seconds["certificate"] = time.perf_counter() - began
    followed = weights if policy_weights is None else policy_weights
    return finish_plan(
        network,
        problem.intervals,
        method=method,
        status=status,
        weights=np.nan_to_num(followed) if policy is None else policy[1],
        weights_certified=policy is not None,
        bound_weights=lifted,
        objective=objective,
        dual_bound=dual_bound,
        certified_objective=certified_objective,
        certificate=certificate,
        trivial_bound=np.inf if problem.trivial is None else problem.trivial.upper_bound,
        effort=Effort(rows, columns, iterations, seconds, (network.elimination.why, *choices)),
        view=problem.view,
    )


def _certified(
    problem: Problem, weights: Floats, clock: Clock
) -> tuple[Certificate, Floats] | None:
    """Weights lifted to be feasible, or nothing if there are none or time is up."""
    if not np.isfinite(weights).all() or not clock.has(seconds_of_excesses(problem.network) / 2):
        return None
    parts = problem.network, problem.intervals, weights, problem.start, problem.view
    try:
        return certify(*parts, clock)
    except Stopped:
        return None


def _trivial_bound(problem: Problem) -> tuple[Certificate, Floats]:
    assert problem.trivial is not None
    return problem.trivial.certificate, problem.trivial.weights(len(problem.network.basis))
