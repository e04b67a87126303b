"""Linear programs alone: policy and bound each by the program best suited."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fsmdp.planning.clock import Clock, Stopped
from fsmdp.planning.cutting_planes import CuttingPlanes
from fsmdp.planning.joint import Joint
from fsmdp.planning.options import Seconds, Tolerance
from fsmdp.planning.plan import Effort, Plan
from fsmdp.planning.planner import Planner, log
from fsmdp.planning.problem import Problem
from fsmdp.planning.rows import LARGEST_PROGRAM
from fsmdp.planning.solution import Status
from fsmdp.planning.stagewise import Stagewise


@dataclass(frozen=True, slots=True)
class Programs(Planner):
    """Policy by the fastest suitable method, bound by the joint program or its cutting planes."""

    tolerance: Tolerance = 1e-6
    time_limit: Seconds = None

    def solve(self, problem: Problem, clock: Clock | None = None) -> Plan:
        """Two plans in one: the policy of the first, the tighter bound of both."""
        clock = clock or self.own_clock
        bounding: Planner = Joint()
        chosen = "bound: the joint program, by rows"
        if not rows_fit(problem) or seconds_by_cuts(problem) < seconds_by_rows(problem):
            bounding = CuttingPlanes(self.tolerance)
            chosen = "bound: the joint program, by cutting planes"
        log.info(chosen)
        if isinstance(bounding, CuttingPlanes) and problem.network.horizon is not None:
            found = bounding.solve(problem, clock)
            return _with_choices(
                found, chosen, "policy: greedy in the stages of the cutting planes"
            )
        if problem.network.horizon is None:
            uniform = replace(problem, means=problem.uniform)
            policy = _unless_stopped(bounding, uniform, clock.share(0.5))
            reason = "policy: greedy in the stationary program that weighs all states alike"
        else:
            policy = _unless_stopped(Stagewise(), problem, clock.share(0.5))
            reason = "policy: greedy in the stages, one program for each step"
        bound = _unless_stopped(bounding, problem, clock)
        if policy is None or bound is None:
            only = policy or bound
            if only is None:
                raise Stopped
            ended = replace(only.ended, status=clock.status or only.status)
            return _with_choices(replace(only, ended=ended), chosen)
        log.info(reason)
        return _with_choices(_joined(policy, bound), chosen, reason)


def _unless_stopped(planner: Planner, problem: Problem, clock: Clock) -> Plan | None:
    try:
        return planner.solve(problem, clock)
    except Stopped:
        return None


def seconds_by_rows(problem: Problem) -> float:
    """What the joint program by rows takes, roughly: fill grows with the width of the network."""
    network = problem.network
    rows = network.n_weight_rows * network.elimination.n_rows
    return rows * 2e-5 * (1 + 2.0**network.elimination.induced_width / 32)


def seconds_by_cuts(problem: Problem) -> float:
    """What cutting planes take, roughly: some dozen masters and oracles."""
    network = problem.network
    functions, steps = len(network.basis), network.n_weight_rows
    master = 4e-8 * (steps * functions) ** 2 * functions
    oracle = 1e-8 * steps * network.elimination.n_rows
    return 30 * (master + oracle)


def rows_fit(problem: Problem) -> bool:
    """Whether the rows of the joint program are few enough to be written down."""
    network = problem.network
    return network.n_weight_rows * network.elimination.n_rows <= LARGEST_PROGRAM


def _joined(policy: Plan, bound: Plan) -> Plan:
    """The policy of one plan with the bound of the other, or its own if that is tighter."""
    best = bound if bound.upper_bound <= policy.upper_bound else policy
    phases = {f"policy {name}": value for name, value in policy.seconds.items()}
    phases |= {f"bound {name}": value for name, value in bound.seconds.items() if name != "network"}
    phases["network"] = phases.pop("policy network")
    status = policy.status if bound.status is Status.OPTIMAL else bound.status
    return replace(
        policy,
        method="programs",
        bound=best.bound,
        ended=replace(bound.ended, status=status),
        effort=Effort(
            max(policy.rows, bound.rows),
            max(policy.columns, bound.columns),
            policy.iterations + bound.iterations,
            phases,
            policy.effort.choices,
        ),
    )


def _with_choices(found: Plan, *choices: str) -> Plan:
    effort = replace(found.effort, choices=(*found.effort.choices, *choices))
    return replace(found, method="programs", effort=effort)
