"""`Auto`: the best policy that can be found in the time, and how far from the best it can be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fsmdp.errors import ModelError
from fsmdp.model.mdp import FactoredMDP
from fsmdp.planning.clock import Clock
from fsmdp.planning.plan import Plan
from fsmdp.planning.planner import (
    Fraction,
    OnOff,
    Planner,
    Request,
    Rounds,
    Seconds,
    Seed,
    Tell,
    Tolerance,
)
from fsmdp.planning.problem import check_options_of_problem
from fsmdp.simulation.rollout import LONGEST_EPISODE, steps_that_count
from fsmdp.solver.loop import Loop, Wishes
from fsmdp.solver.warm import warm


@dataclass(frozen=True, slots=True)
class Auto(Planner):
    """Several engines for a policy, linear programs for the bound, and a gap that closes.

    Stops at a relative `gap`, at the time limit, after `rounds` rounds in which bases grow, or when
    nothing is left to try. With a basis given, policies and bounds stay within it. Without `exact`
    no model is solved by its states, however few. The same seed gives the same plan unless time
    decides.
    """

    keeps_log: ClassVar[bool] = True
    gap: Fraction = None
    time_limit: Seconds = None
    rounds: Rounds = None
    seed: Seed = 0
    tolerance: Tolerance = 1e-6
    exact: OnOff = True

    def prepare(self, request: Request) -> None:
        """Refuse mistakes of the caller, and compile what is needed at once."""
        # A program that is refused is only noted in the log: a mistake is found here.
        _check_episodes(request.model)
        check_options_of_problem(request.model, request.basis, request.weights, **request.options)
        warm("simulator")

    def respond(self, request: Request, clock: Clock, tell: Tell | None) -> Plan:
        """The best policy and bound that were found."""
        wishes = Wishes(self.gap, self.rounds, self.seed, self.tolerance, self.exact)
        return Loop(request, clock, wishes, tell).run()


def _check_episodes(model: FactoredMDP) -> None:
    """Refuse a discount so near 1 that policies cannot be judged by episodes."""
    if model.horizon is None and steps_that_count(model.discount) > LONGEST_EPISODE:
        raise ModelError(
            f"plan: with discount {model.discount!r} policies cannot be judged by simulation, "
            f"since an episode counts for {steps_that_count(model.discount)} steps; use "
            "method='programs', or solve_exactly for a small model."
        )
