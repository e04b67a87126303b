"""Linear programs alone: policy and bound each by the program best suited."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from fsmdp.planning.bundled import Bundled
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

FEW_SECONDS, MOST_SECONDS = 1.0, 60.0
"""That rows may be expected to take: below the first they are always preferred to bundles, above
the second never, since they say nothing before they are done."""

CAUTION = 8.0
"""So many times faster than bundles rows must look to be preferred: where actions are counted they
took fifteen times as long as they look, and bundles a fifth."""

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
            ended = replace(only.ended, status=clock.status or only.status)
            return _with_choices(replace(only, ended=ended), chosen)
        log.info(reason)
        return _with_choices(_joined(policy, bound), chosen, reason)


def _engine(problem: Problem, tolerance: float, left: float | None) -> tuple[Planner, str]:
    """Rows where they are soon solved; otherwise bundles in a known model, and cuts in any other.

    A bundle's masters grow with the basis as those of cuts do, its oracle with the network.
    """
    rows = seconds_by_rows(problem) if rows_fit(problem) else math.inf
    cuts = seconds_by_cuts(problem)
    patience = min(MOST_SECONDS, cuts / CAUTION, math.inf if left is None else left / 2)
    if problem.intervals.exact and rows > max(FEW_SECONDS, patience):
        return Bundled(tolerance), "bound: the joint program, by bundles"
    if rows <= cuts:
        return Joint(), "bound: the joint program, by rows"
    return CuttingPlanes(tolerance), "bound: the joint program, by cutting planes"


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
