"""`Fitted`: a policy by values that are fitted where policies go; of bounds the trivial one."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

from fsmdp.bounds.clock import Clock, Status, Stopped
from fsmdp.bounds.finish import plan_of_constant
from fsmdp.bounds.plan import Plan
from fsmdp.bounds.planner import Callback, Count, Planner, Request, Seconds, Seed, Tolerance
from fsmdp.bounds.problem import trivial_problem
from fsmdp.foundation.streams import Purpose, derived_seed
from fsmdp.model.basis import Basis
from fsmdp.model.mdp import FactoredMDP
from fsmdp.policies.resolve import resolve
from fsmdp.reductions.reduction import Reduced, unchanged
from fsmdp.simulation.gap import idle_action
from fsmdp.solver.fitting import Check, Choices, Fitting, first_basis
from fsmdp.solver.judge import Arena, Judge, arena_of

IDLE_SHARE = 4
"""Doing nothing meets few states: a fraction of the episodes suffices."""


@dataclass(frozen=True, slots=True)
class Fitted(Planner):
    """Values by least squares on a pool of states, backwards in steps, with exact expectations.

    The pool begins with `episodes` episodes at random and some of doing nothing; each round fits
    the values, follows the greedy policy, and adds the states it met. At most `pool` states of a
    step are kept. No elimination: networks may be as wide as they like. The best round's policy is
    the plan's; its bound is the trivial one.
    """

    rounds: Count = 6
    episodes: Count = 400
    pool: Count = 20_000
    ridge: Tolerance = 1e-3
    seed: Seed = 0
    time_limit: Seconds = None

    def respond(self, request: Request, clock: Clock, callback: Callback | None) -> Plan:  # noqa: ARG002
        """The best policy of all rounds. The basis is singles and pairs unless it is given.

        Weights are of no matter: the states that policies meet are weighed.
        """
        model = request.model
        judge = Judge(arena_of(model), self.seed)
        with suppress(Stopped):
            self._rounds(model, request.basis, judge, clock)
        found = plan_of_constant(trivial_problem(model), clock.status or Status.OPTIMAL)
        record = replace(found.record, method="fitted", candidates=tuple(judge.tried))
        policy = found.policy if judge.incumbent is None else judge.incumbent.policy
        return replace(found, policy=policy, record=record)

    def _rounds(self, model: FactoredMDP, basis: Basis | None, judge: Judge, clock: Clock) -> None:
        chosen = first_basis(model, pairs=True) if basis is None else basis
        fitting = Fitting(model, chosen, Choices(self.ridge, self.pool), clock.check)
        fitting.trim(clock.check)
        begin(fitting, unchanged(model), judge.arena, self.episodes, self.seed, clock.check)
        for number in range(self.rounds):
            policy = fitting.fit(clock.check)
            arrays = policy.compiled()
            judge.consider(f"fitted, round {number + 1}", policy, arrays, 0.0, clock.check)
            if number + 1 < self.rounds:
                seed = derived_seed(self.seed, Purpose.VISITED, number + 1)
                fitting.meet(judge.arena.states(arrays, self.episodes, seed, clock.check))


def begin(
    fitting: Fitting, reduced: Reduced, arena: Arena, episodes: int, seed: int, check: Check
) -> None:
    """Put the states into a pool that acting at random and doing nothing meet."""
    model, seed = arena.model, derived_seed(seed, Purpose.VISITED)
    for policy, count in (("random", episodes), (idle_action(model), episodes // IDLE_SHARE)):
        arrays = resolve(model, policy).arrays
        assert arrays is not None
        fitting.meet(reduced.states(arena.states(arrays, max(1, count), seed, check)))
