"""`plan`: a policy and a certified bound, by the method asked for or the one best suited."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from warnings import warn

from fsmdp.errors import ModelError, TrivialBoundWarning
from fsmdp.foundation.checks import show
from fsmdp.model.basis import Basis
from fsmdp.model.mdp import FactoredMDP, check_model
from fsmdp.planning.bellman import Weights
from fsmdp.planning.clock import Clock, Stopped
from fsmdp.planning.options import check_options
from fsmdp.planning.plan import Effort, Plan
from fsmdp.planning.planners import (
    CuttingPlanes,
    Ellipsoid,
    Joint,
    Stagewise,
    plan_of_constant,
)
from fsmdp.planning.problem import Problem, problem_of_model, trivial_problem
from fsmdp.planning.rows import LARGEST_PROGRAM
from fsmdp.planning.solution import Status

log = logging.getLogger("fsmdp")

Planner = Stagewise | Joint | CuttingPlanes | Ellipsoid


@dataclass(frozen=True, slots=True)
class Auto:
    """Policy by the fastest suitable method, bound by the joint program or its cutting planes."""

    tolerance: float = 1e-6
    time_limit: float | None = None

    def __post_init__(self) -> None:
        check_options(self, self.__dataclass_fields__)

    def solve(self, problem: Problem, clock: Clock | None = None) -> Plan:
        """Two plans in one: the policy of the first, the tighter bound of both."""
        clock = Clock(self.time_limit) if clock is None else clock
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
            return _with_choices(replace(only, status=clock.status or only.status), chosen)
        log.info(reason)
        return _with_choices(_joined(policy, bound), chosen, reason)


def _unless_stopped(planner: Planner, problem: Problem, clock: Clock) -> Plan | None:
    try:
        return planner.solve(problem, clock)
    except Stopped:
        return None


METHODS: dict[str, type[Planner] | type[Auto]] = {
    "auto": Auto,
    "stagewise": Stagewise,
    "joint": Joint,
    "cutting-planes": CuttingPlanes,
    "ellipsoid": Ellipsoid,
}


def plan(
    model: FactoredMDP,
    basis: Basis | None = None,
    method: str = "auto",
    weights: Weights = "initial",
    **options: object,
) -> Plan:
    """A policy for the model and a certified upper bound on what any policy can earn.

    `method`: "auto", "stagewise", "joint", "cutting-planes" or "ellipsoid". `weights`: which states
    the bound should be tight at, "initial", "uniform", or a distribution for each variable. The
    basis is `Basis.singles(model)` unless given. Further options are those of the method
    (`time_limit`, `tolerance`, `w_norm`, `solver`, `epsilon`) and of elimination (`limit`,
    `elimination_order`, `elimination`).
    """
    check_model(model, "plan")
    if not isinstance(method, str) or method not in METHODS:
        raise ModelError(f"method: expected one of {', '.join(METHODS)}, found {show(method)}.")
    planner_type = METHODS[method]
    of_planner = set(planner_type.__dataclass_fields__)
    of_network = {"limit", "elimination_order", "elimination"}
    unknown = set(options) - of_planner - of_network
    if unknown:
        raise ModelError(
            f"plan: method {method!r} has no option {sorted(unknown)[0]!r}; expected "
            f"{', '.join(sorted(of_planner | of_network))}."
        )
    planner = planner_type(**{name: options[name] for name in of_planner & set(options)})  # type: ignore[arg-type]
    of_problem = {name: options[name] for name in of_network & set(options)}
    clock = Clock(planner.time_limit)
    with clock.listening():
        return _solved(planner, model, basis, weights, of_problem, clock)


def _solved(
    planner: Planner | Auto,
    model: FactoredMDP,
    basis: Basis | None,
    weights: Weights,
    options: Mapping[str, Any],
    clock: Clock,
) -> Plan:
    """The planner's plan, or that of the constant alone if there was no time for more."""
    alone = trivial_problem(model)
    try:
        problem = problem_of_model(
            model,
            Basis.singles(model) if basis is None else basis,
            weights,
            trivial=alone.trivial,
            clock=clock,
            **options,
        )
        log.info(problem.network.elimination.why)
        found = planner.solve(problem, clock)
    except Stopped:
        found = replace(plan_of_constant(alone), status=clock.status or Status.TIME_LIMIT)
    if found.upper_bound >= found.trivial_bound:
        warn(
            f"the plan's bound {found.upper_bound:.6g} is no better than the trivial one, the "
            "largest reward at every step; try a richer basis (Basis.pairs) or more time.",
            TrivialBoundWarning,
            stacklevel=3,
        )
    return found


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
    both_done = policy.status is Status.OPTIMAL and bound.status is Status.OPTIMAL
    return replace(
        policy,
        method="auto",
        status=Status.OPTIMAL
        if both_done
        else (policy.status if bound.status is Status.OPTIMAL else bound.status),
        objective=bound.objective,
        dual_bound=bound.dual_bound,
        certified_objective=bound.certified_objective,
        certificate=best.certificate,
        bound_weights=best.bound_weights,
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
