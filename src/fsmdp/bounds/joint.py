"""The joint program: all steps in one linear program, the paper's Fig. 1.

min E[V_1] subject to, for all l, s, a:
    V_l(s) >= R(s, a) + discount * sum_j max(w_j hi_j(s, a), w_j lo_j(s, a)),  w = w^(l+1).

Written with w = p - n, p and n >= 0, the maximum is p hi - n lo: raising p and n together only
raises the right side, since hi >= lo. So the bilevel program of the paper is one linear program,
with no sign to guess; a known model needs no such pair. With an infinite horizon there is one step,
which follows itself.
"""

import time
from dataclasses import dataclass, field, replace

import numpy as np
from scipy import sparse

from fsmdp.bounds.bellman import (
    BellmanNetwork,
    Intervals,
    constant_value,
    reward_scale,
    value_span,
)
from fsmdp.bounds.bundle import Bundled, block_rows, finest_blocks
from fsmdp.bounds.certificate import seconds_of_excesses
from fsmdp.bounds.clock import CONFIRMED, NO_LIMIT, Clock, Solution, Status, Stopped
from fsmdp.bounds.conditioning import Conditioning, conditioning_of
from fsmdp.bounds.costs import SECOND_OPINION_UP_TO, prefers_rows, trusts_rows
from fsmdp.bounds.cutting_planes import CuttingPlanes
from fsmdp.bounds.finish import Solved, finish
from fsmdp.bounds.highs import INTERIOR, SIMPLEX, InteriorProgram, LiveProgram
from fsmdp.bounds.plan import Plan, Record
from fsmdp.bounds.planner import Planner, Seconds, Size, Solver, Tolerance, log, require_optimism
from fsmdp.bounds.problem import Problem
from fsmdp.bounds.stagewise import Stagewise
from fsmdp.errors import ModelError, PlanningError
from fsmdp.model.tables import Booleans, Floats, Integers


@dataclass(frozen=True, slots=True)
class Joint(Planner):
    """All steps in one program: the tightest bound. `w_norm` bounds sum_j |w_j| at each step."""

    w_norm: Size = None
    solver: Solver = "auto"
    time_limit: Seconds = None

    @property
    def normalises(self) -> bool:
        """Not with `w_norm`, which is in the unit of rewards."""
        return self.w_norm is None

    def solve(self, problem: Problem, clock: Clock | None = None) -> Plan:
        """The paper's Fig. 1; the stationary program if the horizon is infinite."""
        clock = clock or self.own_clock
        require_optimism(problem, "joint")
        found = solve_joint(
            problem.network,
            problem.intervals,
            problem.means,
            w_norm=self.w_norm,
            solver=INTERIOR if self.solver == "auto" else self.solver,
            clock=clock.part(seconds_of_excesses(problem.network)),
        )
        solved = Solved(
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
        return finish(problem, solved, clock)


@dataclass(frozen=True, slots=True, eq=False)
class JointProgram:
    """matrix @ x >= lower over columns x that `read_weights` turns into weights."""

    cost: Floats = field(repr=False)
    matrix: sparse.csr_matrix = field(repr=False)
    lower: Floats = field(repr=False)
    free: Integers = field(repr=False)  # coordinates that are a column
    split: Integers = field(repr=False)  # coordinates that are a difference of two columns
    conditioning: Conditioning = field(repr=False)
    n_steps: int
    scale: float

    def read_weights(self, columns: Floats) -> Floats:
        """Weights (n_steps, n_functions) from a solution."""
        n_free, n_split = len(self.free), len(self.split)
        coordinates = np.zeros(n_free + n_split)
        coordinates[self.free] = columns[:n_free]
        plus, minus = columns[n_free : n_free + n_split], columns[n_free + n_split :][:n_split]
        coordinates[self.split] = plus - minus
        return self.scale * self.conditioning.weights(coordinates.reshape(self.n_steps, -1))


def joint_program(
    network: BellmanNetwork,
    intervals: Intervals,
    means: Floats,
    w_norm: float | None = None,
    clock: Clock = NO_LIMIT,
) -> JointProgram:
    """The program of all steps; `w_norm` bounds sum_j |w_j| at each step.

    Raises `Stopped` when the clock says so.
    Cost: horizon times the rows of one step.
    """
    n_steps, n_functions = network.n_weight_rows, len(network.basis)
    conditioning = conditioning_of(network, intervals, plain=w_norm is not None)
    rows = block_rows(network, intervals, finest_blocks(network), conditioning.matrix, clock)
    is_split = _needs_two_columns(network, intervals, w_norm, conditioning.n_coordinates)
    free, split = np.flatnonzero(~is_split), np.flatnonzero(is_split)
    upper_side = rows.values - network.discount * rows.high
    lower_side = network.discount * rows.low - rows.values
    scale = reward_scale(intervals)
    blocks = [upper_side[:, free], upper_side[:, split], lower_side[:, split], rows.messages]
    matrix = sparse.hstack(blocks, format="csr")
    clock.check()
    extra, extra_lower = _sign_rows(len(free), len(split), matrix.shape[1])
    if w_norm is not None:
        ones = sparse.csr_matrix(np.ones((1, n_functions)))
        every_step = sparse.identity(n_steps, format="csr")
        by_step = sparse.kron(every_step, ones @ conditioning.matrix, format="csr")[:, split]
        empty = sparse.csr_matrix((n_steps, matrix.shape[1] - 2 * len(split)))
        extra = sparse.vstack([extra, sparse.hstack([-by_step, -by_step, empty])])
        extra_lower = np.concatenate([extra_lower, np.full(n_steps, -w_norm / scale)])
    cost = np.zeros(n_steps * conditioning.n_coordinates)
    cost[: conditioning.n_coordinates] = means @ conditioning.matrix
    return JointProgram(
        np.concatenate([cost[free], cost[split], -cost[split], np.zeros(rows.messages.shape[1])]),
        sparse.csr_matrix(sparse.vstack([matrix, extra], format="csr")),
        np.concatenate([rows.rewards, extra_lower]),
        free,
        split,
        conditioning,
        n_steps,
        scale,
    )


@dataclass(frozen=True, slots=True, eq=False)
class JointSolution:
    """Weights of every step, and what finding them took."""

    status: Status
    weights: Floats  # (n_steps, n_functions)
    objective: float
    dual_bound: float  # no weights within reach have a smaller objective
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
    clock: Clock = NO_LIMIT,
) -> JointSolution:
    """Solve the joint program by the interior-point method, or the simplex method on request.

    Raises `Stopped` if time is up before there is a program to solve.
    """
    if solver not in (INTERIOR, SIMPLEX):
        raise ModelError(f"solver: expected 'interior' or 'simplex', found {solver!r}.")
    began = time.perf_counter()
    program = joint_program(network, intervals, means, w_norm, clock)
    built = time.perf_counter()
    enough = CONFIRMED * value_span(network, intervals) / program.scale
    found, bound = _solve(program, solver, enough, clock)
    _explain_failure(found, network, intervals, w_norm)
    return JointSolution(
        found.status,
        program.read_weights(found.values),
        program.scale * found.objective,
        program.scale * bound,
        found.iterations,
        *program.matrix.shape,
        built - began,
        time.perf_counter() - built,
    )


def _solve(
    program: JointProgram, solver: str, enough: float, clock: Clock
) -> tuple[Solution, float]:
    """By the solver asked for; the simplex method is asked too where the other found no answer.

    An answer is one whose dual bound is within `enough`. Returns the solution and that bound.
    """
    parts = program.cost, program.matrix, program.lower
    if solver == INTERIOR:
        interior = InteriorProgram(*parts)
        found = interior.solve(clock)
        bound = interior.dual_bound(found)
        answered = found.status is Status.OPTIMAL and found.objective - bound <= enough
        if answered or clock.status is not None or program.matrix.shape[0] > SECOND_OPINION_UP_TO:
            return found, bound
    simplex = LiveProgram(*parts)
    second = simplex.solve(clock, duals=True)
    if solver == INTERIOR and second.status is not Status.OPTIMAL:
        return found, bound
    return second, simplex.dual_bound(second)


def _needs_two_columns(
    network: BellmanNetwork, intervals: Intervals, w_norm: float | None, n_coordinates: int
) -> Booleans:
    """Weights whose sign matters: backed up from an interval of some width, or of bounded norm.

    A pair of columns for any other weight could grow without end and change nothing.
    """
    n_steps, n_functions = network.n_weight_rows, len(network.basis)
    if w_norm is not None:
        return np.ones(n_steps * n_functions, dtype=np.bool_)
    if intervals.exact:
        return np.zeros(n_steps * n_coordinates, dtype=np.bool_)
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


UNSOLVED = (Status.INACCURATE, Status.FAILED, Status.INFEASIBLE)


@dataclass(frozen=True, slots=True)
class Programs(Planner):
    """Policy by the fastest suitable method, bound by the engine that suits the joint program."""

    tolerance: Tolerance = 1e-6
    time_limit: Seconds = None

    def solve(self, problem: Problem, clock: Clock | None = None) -> Plan:
        """Two plans in one: the policy of the first, the tighter bound of both."""
        clock = clock or self.own_clock
        bounding, chosen = _engine(problem, self.tolerance, clock.left())
        log.info(chosen)
        if not isinstance(bounding, Joint) and problem.network.horizon is not None:
            found = bounding.solve(problem, clock)
            return _with_choices(found, chosen, "policy: greedy in the stages")
        if problem.network.horizon is None:
            uniform = replace(problem, means=problem.uniform)
            policy = _unless_stopped(bounding, uniform, clock.share(0.5))
            reason = "policy: greedy in the stationary program that weighs all states alike"
        else:
            policy = _unless_stopped(Stagewise(), problem, clock.share(0.5))
            reason = "policy: greedy in the stages, one program for each step"
        bound = _unless_stopped(bounding, problem, clock)
        if bound is not None and bound.status in UNSOLVED and problem.intervals.exact:
            # A solver that lost its way: the oracle of a bundle cannot.
            other = _unless_stopped(Bundled(self.tolerance), problem, clock)
            if other is not None and other.upper_bound < bound.upper_bound:
                bound, chosen = other, f"{chosen}, and by bundles, since rows ended {bound.status}"
        if policy is None or bound is None:
            only = policy or bound
            if only is None:
                raise Stopped
            status = clock.status or only.status
            only = replace(only, record=replace(only.record, status=status))
            return _with_choices(only, chosen)
        log.info(reason)
        return _with_choices(_joined(policy, bound), chosen, reason)


def _engine(problem: Problem, tolerance: float, left: float | None) -> tuple[Planner, str]:
    """Rows where they are soon solved; else bundles in a known model, and cuts in any other."""
    network = problem.network
    blocks = finest_blocks(network)
    if problem.intervals.exact and not trusts_rows(network, blocks, left):
        return Bundled(tolerance), "bound: the joint program, by bundles"
    if problem.intervals.exact or prefers_rows(network, blocks):
        return Joint(), "bound: the joint program, by rows"
    return CuttingPlanes(tolerance), "bound: the joint program, by cutting planes"


def _unless_stopped(planner: Planner, problem: Problem, clock: Clock) -> Plan | None:
    try:
        return planner.solve(problem, clock)
    except Stopped:
        return None


def _joined(policy: Plan, bound: Plan) -> Plan:
    """The policy of one plan with the bound of the other, or its own if that is tighter."""
    best = bound if bound.upper_bound <= policy.upper_bound else policy
    phases = {f"policy {name}": value for name, value in policy.seconds.items()}
    phases |= {f"bound {name}": value for name, value in bound.seconds.items() if name != "network"}
    phases["network"] = phases.pop("policy network")
    status = policy.status if bound.status is Status.OPTIMAL else bound.status
    weights, program = policy.bound.values.program, bound.bound.values.program
    assert weights is not None
    assert program is not None
    both = replace(
        program,
        rows=max(weights.rows, program.rows),
        columns=max(weights.columns, program.columns),
        iterations=weights.iterations + program.iterations,
        weights=weights.weights,
        weights_certified=weights.weights_certified,
    )
    return replace(
        policy,
        bound=replace(best.bound, values=replace(best.bound.values, program=both)),
        record=Record("programs", status, phases, policy.record.choices),
    )


def _with_choices(found: Plan, *choices: str) -> Plan:
    record = found.record
    return replace(
        found, record=replace(record, method="programs", choices=(*record.choices, *choices))
    )
