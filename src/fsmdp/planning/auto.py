"""`plan`: a policy and a certified bound, by the method asked for or the one best suited."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import show
from fsmdp.foundation.registry import Registry
from fsmdp.model.basis import Basis
from fsmdp.model.mdp import FactoredMDP
from fsmdp.planning.bellman import Weights
from fsmdp.planning.clock import NO_LIMIT, Clock, Stopped
from fsmdp.planning.cutting_planes import CuttingPlanes
from fsmdp.planning.ellipsoid import Ellipsoid
from fsmdp.planning.joint import Joint
from fsmdp.planning.options import Seconds, Tolerance
from fsmdp.planning.plan import Effort, Plan
from fsmdp.planning.planner import Planner, log
from fsmdp.planning.problem import Problem
from fsmdp.planning.rows import LARGEST_PROGRAM
from fsmdp.planning.solution import Status
from fsmdp.planning.stagewise import Stagewise


@dataclass(frozen=True, slots=True)
class Auto(Planner):
    """Policy by the fastest suitable method, bound by the joint program or its cutting planes."""

    tolerance: Tolerance = 1e-6
    time_limit: Seconds = None

    def solve(self, problem: Problem, clock: Clock = NO_LIMIT) -> Plan:
        """Two plans in one: the policy of the first, the tighter bound of both."""
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


METHODS: Registry[type[Planner]] = Registry("method")
"""Planners by name; `METHODS.register(name, planner)` adds one of your own."""

for _name, _planner_type in (
    ("auto", Auto),
    ("stagewise", Stagewise),
    ("joint", Joint),
    ("cutting-planes", CuttingPlanes),
    ("ellipsoid", Ellipsoid),
):
    METHODS.register(_name, _planner_type)

OF_ELIMINATION = ("limit", "elimination_order", "elimination")


def plan(
    model: FactoredMDP,
    basis: Basis | None = None,
    method: str | Planner = "auto",
    weights: Weights = "initial",
    **options: object,
) -> Plan:
    """A policy for the model and a certified upper bound on what any policy can earn.

    `method` is a planner, such as `Stagewise(solver="simplex")`, or the name of one: "auto",
    "stagewise", "joint", "cutting-planes" or "ellipsoid". `weights`: which states the bound should
    be tight at, "initial", "uniform", or a distribution for each variable. The basis is
    `Basis.singles(model)` unless given. Further options are those of the method, if it is given by
    name (`time_limit`, `tolerance`, `w_norm`, `solver`, `epsilon`), and of elimination (`limit`,
    `elimination_order`, `elimination`).
    """
    of_elimination: dict[str, Any] = {
        name: options.pop(name) for name in OF_ELIMINATION if name in options
    }
    return _planner(method, options).plan(model, basis, weights, **of_elimination)


def _planner(method: str | Planner, options: dict[str, object]) -> Planner:
    """The planner asked for, with its options."""
    if isinstance(method, Planner):
        if options:
            raise ModelError(
                f"plan: {method!r} has its options already, found {next(iter(options))!r} beside "
                "it; give it to the planner."
            )
        return method
    if not isinstance(method, str) or method not in METHODS:
        raise ModelError(
            f"method: expected a planner or one of {', '.join(METHODS)}, found {show(method)}."
        )
    kind = METHODS[method]
    known = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    for name in options:
        if name not in known:
            raise ModelError(
                f"plan: method {method!r} has no option {name!r}; expected "
                f"{', '.join(sorted((*known, *OF_ELIMINATION)))}."
            )
    return kind(**options)


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
        method="auto",
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
    return replace(found, method="auto", effort=effort)
