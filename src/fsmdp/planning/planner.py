"""Planners: each is its options; `plan` takes a model, `solve` a problem."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from warnings import warn

from fsmdp.elimination.order import DEFAULT_LIMIT
from fsmdp.errors import ModelError, TrivialBoundWarning
from fsmdp.model.basis import Basis
from fsmdp.model.mdp import FactoredMDP, check_model
from fsmdp.planning.bellman import Weights
from fsmdp.planning.clock import Clock, Stopped
from fsmdp.planning.finish import plan_of_constant
from fsmdp.planning.intervals import OPTIMISTIC
from fsmdp.planning.options import Seconds, check_options
from fsmdp.planning.plan import Plan
from fsmdp.planning.problem import Problem, problem_of_model, trivial_problem
from fsmdp.planning.solution import Status

log = logging.getLogger("fsmdp")


class Planner:
    """A way to plan. Derive a frozen dataclass whose fields are options, and write `solve`.

    Options are checked by the types of their fields (`fsmdp.planning.options`).
    """

    __slots__ = ()
    time_limit: Seconds

    def __post_init__(self) -> None:
        check_options(self)

    def solve(self, problem: Problem, clock: Clock) -> Plan:
        """A plan of a problem; `Stopped` if the clock stops before there is anything to certify."""
        raise NotImplementedError

    def plan(
        self,
        model: FactoredMDP,
        basis: Basis | None = None,
        weights: Weights = "initial",
        *,
        limit: int = DEFAULT_LIMIT,
        elimination_order: Sequence[str | int] | None = None,
        elimination: str = "auto",
    ) -> Plan:
        """A policy for the model and a certified upper bound on what any policy can earn.

        The basis is `Basis.singles(model)` unless given. `weights`: which states the bound should
        be tight at, "initial", "uniform", or a distribution for each variable. The others are
        options of elimination.
        """
        check_model(model, "plan")
        options = {
            "limit": limit,
            "elimination_order": elimination_order,
            "elimination": elimination,
        }
        clock = Clock(self.time_limit)
        with clock.listening():
            found = self._in_time(model, basis, weights, options, clock)
        if found.upper_bound >= found.trivial_bound:
            warn(
                f"the plan's bound {found.upper_bound:.6g} is no better than the trivial one, the "
                "largest reward at every step; try a richer basis (Basis.pairs) or more time.",
                TrivialBoundWarning,
                stacklevel=3,
            )
        return found

    def _in_time(
        self,
        model: FactoredMDP,
        basis: Basis | None,
        weights: Weights,
        options: Mapping[str, Any],
        clock: Clock,
    ) -> Plan:
        """The plan, or that of the constant alone if there was no time for more."""
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
            return self.solve(problem, clock)
        except Stopped:
            found = plan_of_constant(alone)
            return replace(
                found, ended=replace(found.ended, status=clock.status or Status.TIME_LIMIT)
            )


def require_optimism(problem: Problem, method: str) -> None:
    """Refuse a view that a joint program cannot take."""
    if problem.view != OPTIMISTIC and not problem.intervals.exact:
        raise ModelError(
            f"method {method!r} plans optimistically; a {problem.view} backup needs the following "
            "step's weights to be known, use method='stagewise'."
        )
