"""`plan`: a policy and a certified bound, by the method asked for or the one best suited."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, replace

from fsmdp.errors import ModelError
from fsmdp.model.basis import Basis
from fsmdp.model.checks import show
from fsmdp.model.mdp import FactoredMDP, check_model
from fsmdp.planning.bellman import Weights
from fsmdp.planning.highs import Status
from fsmdp.planning.options import check_options
from fsmdp.planning.plan import Effort, Plan
from fsmdp.planning.planners import CuttingPlanes, Ellipsoid, Joint, Stagewise
from fsmdp.planning.problem import Problem, problem_of_model

log = logging.getLogger("fsmdp")

Planner = Stagewise | Joint | CuttingPlanes | Ellipsoid


@dataclass(frozen=True, slots=True)
class Auto:
    """Policy by the fastest suitable method, bound by the joint program or its cutting planes."""

    tolerance: float = 1e-6
    time_limit: float | None = None

    def __post_init__(self) -> None:
        check_options(self, self.__dataclass_fields__)

    def solve(self, problem: Problem) -> Plan:
        """Two plans in one: the policy of the first, the tighter bound of both."""
        began = time.perf_counter()
        by_rows, by_cuts = seconds_by_rows(problem), seconds_by_cuts(problem)
        bound: Planner = Joint(time_limit=self.time_limit)
        if by_cuts < by_rows:
            bound = CuttingPlanes(self.tolerance, time_limit=self.time_limit)
        name = type(bound).__name__
        choice = (
            f"bound: {name}, expected to take about {min(by_rows, by_cuts):.1g} s "
            f"(rows {by_rows:.1g} s, cuts {by_cuts:.1g} s)"
        )
        log.info(choice)
        found = bound.solve(problem)
        if isinstance(bound, CuttingPlanes) and problem.network.horizon is not None:
            return _with_choices(found, choice, "policy: the stages of the cutting planes")
        left = self.time_limit
        if left is not None:
            left = max(0.0, left - (time.perf_counter() - began))
        if problem.network.horizon is None:
            policy = replace(bound, time_limit=left).solve(replace(problem, means=problem.uniform))
            reason = "policy: the stationary program that weighs all states alike"
        else:
            policy = Stagewise(time_limit=left).solve(problem)
            reason = f"policy: {policy.method}, better than that of the joint program"
        log.info(reason)
        return _with_choices(_joined(policy, found), choice, reason)


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
    problem = problem_of_model(
        model,
        Basis.singles(model) if basis is None else basis,
        weights,
        **{name: options[name] for name in of_network & set(options)},  # type: ignore[arg-type]
    )
    log.info(problem.network.elimination.why)
    return planner.solve(problem)


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
        else (bound.status if policy.status is Status.OPTIMAL else policy.status),
        objective=bound.objective,
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
