"""Fitted values: least squares on the states that policies visit, round by round; bases that grow.

`Fitted` is the planner that does nothing else.
"""

from collections.abc import Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from fsmdp.bounds.clock import Clock, Status, Stopped
from fsmdp.bounds.finish import plan_of_constant
from fsmdp.bounds.plan import Plan
from fsmdp.bounds.planner import Callback, Count, Planner, Request, Seconds, Seed, Tolerance
from fsmdp.bounds.problem import trivial_problem
from fsmdp.errors import FsmdpError
from fsmdp.foundation.checks import plural
from fsmdp.foundation.streams import Purpose, generator
from fsmdp.model.basis import Basis
from fsmdp.model.mdp import FactoredMDP
from fsmdp.reductions.reduction import Reduced, unchanged
from fsmdp.solver import parameters as tuned
from fsmdp.solver.engine import Engine, Findings, Note, Stage
from fsmdp.solver.engines.projections import crossed, functions_of
from fsmdp.solver.fitting import Choices, Fit, Fitting, first_basis
from fsmdp.solver.judge import Judge, arena_of
from fsmdp.solver.state import SolverState


@dataclass(frozen=True, slots=True)
class Fits(Engine):
    """The first fits of a kind of basis on every model."""

    pairs: bool = False
    rounds: int = 1

    def applies(self, state: SolverState) -> str | float:
        """Once, if a basis was given."""
        return "a basis was given" if self.pairs and state.basis is not None else 0.0

    def run(self, state: SolverState, clock: Clock) -> Findings:
        """A candidate for each round; the most promising fit of a model is kept last."""
        for reduced in state.models:
            fit = yield from self._begin(state, reduced, clock)
            if fit is None:
                continue
            fits = [*self._everywhere(state, fit), fit]
            state.fits.extend(fits)
            for one in fits:
                yield from one.rounds(self.rounds)
            state.fits[-len(fits) :] = sorted(fits, key=lambda one: one.best)

    def _begin(
        self, state: SolverState, reduced: Reduced, clock: Clock
    ) -> Generator[Note, Any, Fit | None]:
        """A fit to begin with; none if its tables or its states would be too large."""
        name, basis = "fit of given functions", state.basis
        if basis is None:
            name = f"fit of {reduced.label}{'pairs' if self.pairs else 'singles'}"
            basis = first_basis(reduced.model, self.pairs)
        try:
            fitting = Fitting(reduced.model, basis, Choices(), clock.check)
            left_out = fitting.trim(clock.check)
            fit = Fit(
                name,
                reduced,
                fitting,
                state.judge.arena,
                tuned.VISITING_EPISODES,
                state.seed,
                clock.check,
            )
            fit.begin()
            for number, policy in enumerate(state.given):
                fit.visit(policy.arrays, number)
        except FsmdpError as error:
            yield Note(f"{name}: {str(error).partition(';')[0]}")
            return None
        if left_out:
            yield Note(f"{name}: {plural(left_out, 'function')} left out, of the largest tables")
        return fit

    def _everywhere(self, state: SolverState, fit: Fit) -> Sequence[Fit]:
        """Give a fit the projections' functions; perhaps another that is shown more states.

        If projections are of all that actions move, these may be put where no policy has been,
        while the rest takes its course.
        """
        found = state.projections.get(fit.reduced.label, [])
        tables = functions_of(fit.reduced.model, found)
        if not found or not found[0].whole:
            fit.fitting.add_functions(tables, fit.check)
            return ()
        fitting = fit.fitting.copy()
        fitting.add_functions(tables, fit.check)
        rng = generator(state.seed, Purpose.CROSSING)
        fitting.add_states(crossed(fitting.pool, found[0], tuned.VISITING_EPISODES, rng))
        return (replace(fit, name=f"{fit.name}, everywhere", fitting=fitting),)


@dataclass(frozen=True, slots=True)
class Growth(Engine):
    """Functions that explain most of what the fits leave over, as long as policies improve."""

    def applies(self, state: SolverState) -> str | float:
        """If no basis was given."""
        return 0.0 if state.basis is None else "policies stay within the basis"

    def run(self, state: SolverState, clock: Clock) -> Findings:
        """Candidates of grown bases, the most promising model first."""
        growing = {fit.reduced.label: fit for fit in state.fits}  # the last of each model
        rounds, most = 0, state.options.rounds
        while growing and (most is None or rounds < most):
            state.fits[:] = growing.values()
            rounds += 1
            # One whose last growth was in vain waits for the others.
            name = max(growing, key=lambda one: (growing[one].vain == 0, growing[one].best))
            fit = growing[name]
            batch = max(tuned.LEAST_GROWTH, len(fit.fitting.basis) // tuned.GROWTH_DIVISOR)
            if not fit.fitting.grow(batch, clock.check):
                del growing[name]
                continue
            before = fit.best
            yield from fit.rounds(tuned.GROWN_ROUNDS)
            fit.vain = 0 if fit.best > before else fit.vain + 1
            if fit.vain >= tuned.GROWTH_PATIENCE:
                del growing[name]


SINGLES = Fits(
    "fits-of-singles",
    Stage.QUICK,
    "Least squares backwards in steps over a pool of states that policies visit, with exact "
    "expectations; each round adds what its policy visits.",
    compiles=("fits",),
    rounds=tuned.SINGLES_ROUNDS,
)
PAIRS = Fits(
    "fits-of-pairs",
    Stage.MAIN,
    "Fits with pairs of variables, and with values of projections as functions.",
    compiles=("fits",),
    pairs=True,
    rounds=tuned.PAIRS_ROUNDS,
)
GROWTH = Growth(
    "growth",
    Stage.LAST,
    "Products of variables that explain most of what a fit leaves over are added to its basis, as "
    "long as policies improve.",
    compiles=("fits",),
)


@dataclass(frozen=True, slots=True)
class Fitted(Planner):
    """Values by least squares on a pool of states, backwards in steps, with exact expectations.

    The pool begins with `episodes` episodes at random and some of doing nothing; each round fits
    the values, follows the greedy policy, and adds states it visited. At most `pool` states of a
    step are kept. No elimination: networks may be as wide as they like. The best round's policy is
    the plan's; its bound is the trivial one.
    """

    rounds: Count = 6
    episodes: Count = tuned.VISITING_EPISODES
    pool: Count = tuned.POOL_STATES
    ridge: Tolerance = tuned.RIDGE
    seed: Seed = 0
    time_limit: Seconds = None

    def respond(self, request: Request, clock: Clock, callback: Callback | None) -> Plan:  # noqa: ARG002
        """The best policy of all rounds. The basis is singles and pairs unless it is given.

        Weights are of no matter: the states that policies visit are weighed.
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
        reduced, parts = unchanged(model), (judge.arena, self.episodes, self.seed, clock.check)
        fit = Fit("fitted, round", reduced, fitting, *parts)
        fit.begin()
        fit.judged_by(judge, self.rounds)
