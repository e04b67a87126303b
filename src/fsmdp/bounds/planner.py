"""Planners: each is its options; `plan` takes a model, `solve` a problem."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar
from warnings import warn

from fsmdp.bounds.bellman import OPTIMISTIC, Weights
from fsmdp.bounds.clock import NO_LIMIT, Clock, Status, Stopped
from fsmdp.bounds.finish import plan_of_constant
from fsmdp.bounds.gap import Line
from fsmdp.bounds.normalise import Normalised, normalise, unchanged
from fsmdp.bounds.plan import Plan
from fsmdp.bounds.problem import Problem, problem_of_model, trivial_problem
from fsmdp.elimination.order import DEFAULT_LIMIT
from fsmdp.errors import ModelError, TrivialBoundWarning
from fsmdp.foundation.checks import show
from fsmdp.foundation.kinds import SWITCH, Number, OneOf, Whole, check_options
from fsmdp.foundation.numbers import upper
from fsmdp.foundation.threads import one_blas_thread
from fsmdp.model.basis import Basis
from fsmdp.model.mdp import FactoredMDP, check_model
from fsmdp.reductions.invariants import Invariant, check_invariants

OnOff = Annotated[bool, SWITCH]
Seconds = Annotated[float | None, Number(least=0, optional=True)]
Tolerance = Annotated[float, Number(above=0)]
Size = Annotated[float | None, Number(above=0, optional=True)]
Fraction = Annotated[float | None, Number(least=0, optional=True)]
Rounds = Annotated[int | None, Whole(0, optional=True)]
Count = Annotated[int, Whole(1)]
Seed = Annotated[int, Whole(0)]
Solver = Annotated[str, OneOf(("auto", "simplex", "interior"))]


log = logging.getLogger("fsmdp")


Callback = Callable[[Line], None]
"""Called with each line of a log as it is written."""


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """What a planner is asked: a model, perhaps a basis, and options of elimination."""

    model: FactoredMDP
    basis: Basis | None
    weights: Weights
    options: Mapping[str, Any]
    units: Normalised
    """How numbers of the model, whose rewards are normalised, are those of the user."""
    policies: tuple[Any, ...] = ()
    """That the caller has, to be judged and improved on."""


class Planner:
    """A way to plan. Derive a frozen dataclass whose fields are options, and write `solve`.

    Options are checked by the types of their fields (`fsmdp.foundation.kinds`).
    """

    __slots__ = ()
    time_limit: Seconds
    keeps_log: ClassVar[bool] = False
    judges_policies: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_options(self)

    @property
    def normalises(self) -> bool:
        """Whether rewards may be moved and scaled first; not if an option is in their unit."""
        return True

    @property
    def own_clock(self) -> Clock:
        """A clock that starts now and stops at the planner's own time limit."""
        return NO_LIMIT if self.time_limit is None else Clock(self.time_limit)

    def solve(self, problem: Problem, clock: Clock | None = None) -> Plan:
        """A plan of a problem, by the clock if one is given, else by the planner's own limit.

        Raises `Stopped` if the clock stops before there is anything to certify.
        """
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
        mini_bucket: int | None = None,
        invariants: Sequence[Invariant] | None = None,
        callback: Callback | None = None,
        policies: Sequence[Any] = (),
    ) -> Plan:
        """A policy for the model and a certified upper bound on what any policy can earn.

        The basis is the planner's choice unless given. `weights`: which states the bound should
        be tight at, "initial", "uniform", or a distribution for each variable. `limit`,
        `elimination_order`, `elimination` and `mini_bucket` are options of elimination: with the
        last, the entries of a table at most, no network is too wide, and bounds are less tight.
        `invariants` of the model restrict the states of the bound; they are proved again, and the
        solver finds its own unless some, or none, are given.
        `callback` is called with each line of the log, if the planner keeps one. `policies` that
        the caller has are judged and improved on, by a planner that does so.
        """
        check_model(model, "plan")
        if callback is not None and not self.keeps_log:
            raise ModelError(
                "callback: only the solver keeps a log; leave it out, or use method='auto'."
            )
        check_callback(callback)
        options: dict[str, Any] = {
            "limit": limit,
            "elimination_order": elimination_order,
            "elimination": elimination,
            "mini_bucket": mini_bucket,
        }
        if invariants is not None:
            options["invariants"] = check_invariants(invariants, model)
        units = normalise(model) if self.normalises else unchanged(model)
        if len(policies) and not self.judges_policies:
            raise ModelError(
                "policies: only the solver judges policies; leave them out, or use method='auto'."
            )
        request = Request(units.model, basis, weights, options, units, tuple(policies))
        self.prepare(request)
        clock = Clock(self.time_limit)
        with clock.listening(), one_blas_thread():
            found = units.plan(self.respond(request, clock, callback))
        warn_if_trivial(found, model.largest_size_of_return)
        return found

    def prepare(self, request: Request) -> None:
        """What is done before the clock starts: nothing, for most."""

    def respond(self, request: Request, clock: Clock, callback: Callback | None) -> Plan:  # noqa: ARG002
        """The plan, or that of the constant alone if there was no time for more.

        By default the problem of the model is made, with singles unless a basis is given, and
        solved.
        """
        model, basis = request.model, request.basis
        alone = trivial_problem(model)
        try:
            problem = problem_of_model(
                model,
                Basis.singles(model) if basis is None else basis,
                request.weights,
                trivial=alone.trivial,
                clock=clock,
                **request.options,
            )
            log.info(problem.network.elimination.why)
            return self.solve(problem, clock)
        except Stopped:
            return plan_of_constant(alone, clock.status or Status.TIME_LIMIT)


def check_callback(callback: object) -> None:
    """Refuse what cannot be called with a line of the log."""
    if callback is not None and not callable(callback):
        raise ModelError(
            f"callback: expected a function of a line of the log, found {show(callback)}."
        )


def warn_if_trivial(found: Plan, scale: float) -> None:
    """Say so if a plan's bound is worth nothing, to whom called its planner.

    A policy that earns as much as the bound needs no better one.
    """
    closed = found.gap is not None and found.gap <= 0
    if found.upper_bound >= found.bound.trivial and not closed:
        warn(
            f"the plan's bound {upper(found.upper_bound, 6, scale)} is no better than the trivial "
            "one, the largest reward at every step; give it more time, or a basis with fewer "
            "functions if time was up (Basis.singles), with more if it was not (Basis.pairs).",
            TrivialBoundWarning,
            stacklevel=4,
        )


def require_optimism(problem: Problem, method: str) -> None:
    """Refuse a view that a joint program cannot take."""
    if problem.view != OPTIMISTIC and not problem.intervals.exact:
        raise ModelError(
            f"method {method!r} plans optimistically; a {problem.view} backup needs the following "
            "step's weights to be known, use method='stagewise'."
        )
