"""`plan`: a policy and a certified bound, by the solver or by the method asked for."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import show
from fsmdp.foundation.registry import Registry
from fsmdp.model.basis import Basis
from fsmdp.model.mdp import FactoredMDP
from fsmdp.planning.bellman import Weights
from fsmdp.planning.bundled import Bundled
from fsmdp.planning.cutting_planes import CuttingPlanes
from fsmdp.planning.ellipsoid import Ellipsoid
from fsmdp.planning.joint import Joint
from fsmdp.planning.plan import Plan
from fsmdp.planning.planner import Planner, Tell
from fsmdp.planning.programs import Programs
from fsmdp.planning.stagewise import Stagewise
from fsmdp.solver.auto import Auto
from fsmdp.solver.fitted import Fitted

METHODS: Registry[type[Planner]] = Registry("method")
"""Planners by name; `METHODS.register(name, planner)` adds one of your own."""

for _name, _planner_type in (
    ("auto", Auto),
    ("fitted", Fitted),
    ("programs", Programs),
    ("stagewise", Stagewise),
    ("joint", Joint),
    ("cutting-planes", CuttingPlanes),
    ("bundled", Bundled),
    ("ellipsoid", Ellipsoid),
):
    METHODS.register(_name, _planner_type)

OF_ELIMINATION = ("limit", "elimination_order", "elimination", "mini_bucket", "invariants")


def plan(
    model: FactoredMDP,
    basis: Basis | None = None,
    method: str | Planner = "auto",
    weights: Weights = "initial",
    *,
    tell: Tell | None = None,
    **options: object,
) -> Plan:
    """A policy for the model and a certified upper bound on what any policy can earn.

    By default the solver looks for the best policy it can find and for the tightest bound, until
    the relative `gap` or the `time_limit` is reached, or nothing is left to try; with a basis it
    stays within it. `tell` is called with each `Line` of its log.

    `method` is another planner, such as `Stagewise(solver="simplex")`, or the name of one:
    "fitted", "programs", "stagewise", "joint", "cutting-planes", "bundled" or "ellipsoid".
    `weights`: which states the bound should be tight at, "initial", "uniform", or a distribution
    for each variable. Further options are those of the method, if it is given by name (`gap`,
    `time_limit`, `rounds`, `seed`, `tolerance`, `w_norm`, `solver`, `epsilon`, ...), and of
    elimination (`limit`, `elimination_order`, `elimination`, `mini_bucket`, `invariants`).
    """
    of_elimination: dict[str, Any] = {
        name: options.pop(name) for name in OF_ELIMINATION if name in options
    }
    planner = _planner(method, options)
    return planner.plan(model, basis, weights, tell=tell, **of_elimination)


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
