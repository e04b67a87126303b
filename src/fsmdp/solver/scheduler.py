"""The loop: policies from several engines beside bounds from linear programs, until time is up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from fsmdp.bounds.clock import Clock, Stopped
from fsmdp.bounds.finish import plan_of_constant
from fsmdp.bounds.plan import Plan
from fsmdp.bounds.planner import Callback, Request
from fsmdp.bounds.proofs import ReducedProof
from fsmdp.errors import FsmdpError, SizeError
from fsmdp.exact.solve import Exact, expected_seconds
from fsmdp.foundation.checks import plural
from fsmdp.foundation.streams import Purpose, derived_seed, generator
from fsmdp.model.actions import Actions
from fsmdp.model.basis import Basis
from fsmdp.model.lookup import Integers
from fsmdp.policies.arrays import CompiledPolicy
from fsmdp.policies.resolve import array_policy, resolve
from fsmdp.reductions.actions import ListActions
from fsmdp.reductions.reduction import Reduced, chained, reductions_of, unchanged
from fsmdp.simulation.gap import idle_action
from fsmdp.solver.fitted import begin
from fsmdp.solver.fitting import Choices, Fitting, first_basis
from fsmdp.solver.projecting import (
    Projection,
    crossed,
    frequencies_of,
    functions_of,
    policy_of,
    projections_of,
)
from fsmdp.solver.search.graph import MOST_SUCCESSORS, branching
from fsmdp.solver.search.search import search
from fsmdp.solver.state import (
    Proved,
    SolverState,
    proof_by_search,
    proof_by_values,
)
from fsmdp.solver.tightening import Bounding, BoundingContext, Program

EPISODES = 400
"""Of each policy, whose states join the pools."""

QUICK_ROUNDS, FIRST_ROUNDS, GROWING_ROUNDS = 2, 4, 2
"""Fits of singles, of pairs, and of each basis that has grown."""

PATIENCE = 3
"""Times that a basis may grow without a better policy before it is given up."""

GROWTH = 3
"""A basis grows by one function for so many that it has, at least by twenty."""

LONG_EPISODE = 2000
"""Steps beyond which baselines are simulated after exact values were tried."""

QUICKLY = 2.0
"""Seconds that exact values may be expected to take to be tried before anything else."""

EXACT_SHARE, EXACT_SECONDS = 0.6, 600.0
"""Exact values are tried if they are expected within this share of the time, or these seconds."""

REACHABLE_SHARE, FIRST_SEARCH, SEARCH_SHARE = 0.1, 0.2, 0.5
"""For engines that may come to nothing; the first search has the trivial bound alone."""

PROJECTION_SHARE = 0.1

FEW_SUCCESSORS = 64.0
"""Successors of an action, on average, up to which states are searched."""

SEARCH_TRIALS = 10**5
"""Without a time limit."""

UNTIMED_GROWTH = 2
"""Times that the basis or the steps of a bound are refined without a time limit."""

LEFT_BEHIND = 0.25
"""Seconds that the thread of bounds has to end by itself; then what it finds comes too late."""


@dataclass(frozen=True, slots=True)
class SolverOptions:
    """What the caller asks of the loop."""

    gap: float | None = None
    rounds: int | None = None
    seed: int = 0
    tolerance: float = 1e-6
    exact: bool = True


@dataclass(slots=True)
class Engine:
    """A fit on one reduced model, with what has come of it."""

    name: str
    reduced: Reduced
    fitting: Fitting
    best: float = -np.inf
    idle: int = 0  # times it has grown without a better policy
    n_fits: int = 0


class Loop:
    """One call of the solver: what is in hand, and what is tried next."""

    def __init__(
        self,
        request: Request,
        clock: Clock,
        settings: SolverOptions,
        callback: Callback | None,
    ) -> None:
        self.model, self.basis = request.model, request.basis
        self.weights, self.options = request.weights, request.options
        self.settings = settings
        self.solver_state = SolverState(request.units, clock, settings.seed, callback)
        self.offers: list[tuple[Program, Plan]] = []
        self.bound_of_model: dict[str, Plan] = {}
        self.projections: dict[str, list[Projection]] = {}
        self.bounding: Bounding | None = None
        self.over = False
        """Nobody waits for bounds any more."""

    def run(self) -> Plan:
        """Try things in turn until the gap is closed, time is up, or nothing is left."""
        stopped = None
        try:
            for _ in self._steps():
                if self.solver_state.closed(self.settings.gap):
                    break
        except Stopped:
            stopped = self.solver_state.searching.status
        finally:
            bounding, self.bounding = self.bounding, None  # which knows the loop
            if bounding is not None:
                bounding.clock.interrupt()
                if self.solver_state.timed:
                    bounding.join(LEFT_BEHIND)
                    self.over = True
                else:
                    bounding.let_go()
        if bounding is not None and bounding.errors:
            raise bounding.errors[0]
        return self.solver_state.plan(stopped)

    def _steps(self) -> Iterator[None]:
        """After each step, what is in hand is looked at."""
        model = self.model
        plain = unchanged(model)
        # Long episodes take longer to simulate than exact values of few states to compute.
        is_long = self.solver_state.judge.arena.steps > LONG_EPISODE
        if not is_long:
            yield from self._baselines(plain)
        found = reductions_of(model) if self.basis is None else (plain,)
        smallest = _listed(
            min(
                (one for one in found if one.relation == "equal"),
                key=lambda one: one.model.n_states,
            )
        )
        needed = None
        if smallest is not None and self.basis is None and self.settings.exact:
            needed = expected_seconds(smallest.model)
            self.solver_state.compile("exact solver")
            quick = needed is not None and needed <= QUICKLY
            self._solve_exactly(smallest, "auto" if quick else True, REACHABLE_SHARE)
            yield
        if is_long:
            yield from self._baselines(plain)
        # Compiled before anything runs beside it, and only what is used.
        for name in ("linear programs", "fits"):
            self.solver_state.compile(name)
        searched = smallest if self.basis is None and self._may_search(smallest) else None
        if searched is not None:
            self.solver_state.compile("search")
        self.bounding = bounding = self._start_bounding(found)
        engines: list[Engine] = []
        yield from self._fit_each("singles", QUICK_ROUNDS, found, engines)
        if searched is not None:
            trivial = plan_of_constant(self.solver_state.alone)
            self._search(searched, trivial, "the trivial bound", FIRST_SEARCH)
            yield
        if self.basis is None:
            for engine in list(engines):
                self._project(engine, engines)
                yield
            yield from self._fit_each("pairs", FIRST_ROUNDS, found, engines)
        if searched is not None:
            while self.solver_state.timed and not bounding.first.wait(0.1):
                self.solver_state.searching.check()
            known = self.bound_of_model.get(searched.name)
            if known is not None:
                self._search(searched, known, "the bound", SEARCH_SHARE)
                yield
        if self.basis is None:
            if smallest is not None and self._has_time_for(needed):
                self._solve_exactly(smallest, "auto", EXACT_SHARE)
                yield
            for _ in self._grow(engines):
                yield
        while self.solver_state.timed and bounding.is_alive():
            bounding.join(0.1)
            self.solver_state.searching.check()
            self._take_offers(engines)
            yield
        self._take_offers(engines)
        yield

    def _baselines(self, plain: Reduced) -> Iterator[None]:
        """Two policies that need no planning."""
        model = self.model
        for name, policy in (("doing nothing", idle_action(model)), ("at random", "random")):
            self.solver_state.consider(name, plain, array_policy(name, model, policy))
            yield

    def _has_time_for(self, needed: float | None) -> bool:
        """Whether exact values of all states are worth a try."""
        if needed is None or needed <= QUICKLY:
            return False
        left = self.solver_state.searching.left()
        return needed <= (EXACT_SECONDS if left is None else EXACT_SHARE * left)

    def _solve_exactly(
        self, reduced: Reduced, reachable: bool | Literal["auto"], share: float
    ) -> None:
        """Exact values, if they can be had in a share of the time: nothing is left to do then."""
        left, model = self.solver_state.searching.left(), reduced.model
        clock = self.solver_state.searching.branch(None if left is None else share * left)
        try:
            solution = Exact(reachable=reachable).solve(model, clock.check)
        except SizeError:
            return
        except Stopped:
            self.solver_state.searching.check()
            return
        value = solution.start_value
        bound = reduced.bound(value + solution.error)
        self.solver_state.lower(proof_by_values(self.model, reduced, solution, bound))
        acting = array_policy("exact values", model, solution)
        least = value - solution.error - solution.loss - reduced.slack
        self.solver_state.solved(
            f"{reduced.label}exact values", reduced, acting, Proved(value, least, exact=True)
        )

    def _start_bounding(self, models: Sequence[Reduced]) -> Bounding:
        """Programs of singles on every model that bounds this one, itself last; then of pairs."""
        models = [one for one in models if one.relation != "heuristic"]
        if not isinstance(self.weights, str):
            models = models[-1:]  # weights speak of the model's own variables
        if self.basis is not None:
            given = partial(_same, self.basis)
            programs = [Program("given functions", models[-1], given, grows=False)]
        else:
            programs = [
                Program(f"{one.label}{kind}", one, partial(make, one.model), rich=kind == "pairs")
                for kind, make in (("singles", Basis.singles), ("pairs", Basis.pairs))
                for one in models
            ]
        terms = BoundingContext(
            self.weights,
            self.options,
            self.solver_state.alone.trivial,
            self.settings.seed,
            self._earned,
            self._offer,
            self._skip,
        )
        bounding = Bounding(programs, terms, self.solver_state.searching.branch())
        if self.solver_state.timed:
            bounding.start()
        return bounding

    def _earned(self) -> float:
        """What the best policy so far earns, which no bound is below."""
        best = self.solver_state.judge.incumbent
        return -np.inf if best is None else best.mean

    def _skip(self, program: Program, why: str) -> None:
        if self.over:
            return
        self.solver_state.note(f"program of {program.name}: {why.partition(';')[0]}")

    def _offer(self, program: Program, plan: Plan, acts: bool) -> None:
        """Called by the thread of bounds: take the bound, keep the policy for later."""
        if self.over:
            return
        with self.solver_state.lock:
            known = self.bound_of_model.get(program.reduced.name)
            if known is None or plan.upper_bound < known.upper_bound:
                self.bound_of_model[program.reduced.name] = plan
            before = self.solver_state.upper_bound
            tighter = plan.upper_bound < self.solver_state.bound_plan.upper_bound
            if tighter and not program.reduced.rewritten:
                self.solver_state.bound_plan = plan
            if acts:
                self.offers.append((program, plan))
        if program.reduced.rewritten:
            self.solver_state.lower(ReducedProof.of(program.reduced, plan.bound.values))
        self.solver_state.note(
            f"program of {program.name}, {plural(len(plan.basis), 'function')}",
            "bound" if self.solver_state.upper_bound < before else "",
        )

    def _take_offers(self, engines: list[Engine]) -> None:
        """Judge the policies of the programs that were solved meanwhile."""
        if self.solver_state.proved is not None:
            return
        with self.solver_state.lock:
            offers, self.offers = self.offers, []
        for program, plan in offers:
            name = f"policy of program of {program.name}"
            self._show(
                engines, self.solver_state.consider(name, program.reduced, plan.policy).arrays
            )

    def _show(self, engines: list[Engine], arrays: CompiledPolicy) -> None:
        """Let all fits know the states that a policy meets."""
        if not engines:
            return
        states = self._states(arrays, derived_seed(self.settings.seed, Purpose.VISITED))
        for engine in engines:
            engine.fitting.meet(engine.reduced.states(states))

    def _states(self, arrays: CompiledPolicy, seed: int) -> Integers:
        """States that a policy meets."""
        return self.solver_state.judge.arena.states(
            arrays, EPISODES, seed, self.solver_state.searching.check
        )

    def _engine(self, reduced: Reduced, kind: str) -> Engine | None:
        """A fit to begin with; none if its tables or its states would be too large."""
        name = f"fit of {reduced.label}{kind}"
        basis = self.basis
        if basis is None:
            basis = first_basis(reduced.model, kind == "pairs")
        else:
            name = "fit of given functions"
        try:
            fitting = Fitting(reduced.model, basis, Choices(), self.solver_state.searching.check)
            left_out = fitting.trim(self.solver_state.searching.check)
            arena, check = self.solver_state.judge.arena, self.solver_state.searching.check
            begin(fitting, reduced, arena, EPISODES, self.settings.seed, check)
        except FsmdpError as error:
            self.solver_state.note(f"{name}: {str(error).partition(';')[0]}")
            return None
        if left_out:
            self.solver_state.note(
                f"{name}: {plural(left_out, 'function')} left out, of the largest tables"
            )
        return Engine(name, reduced, fitting)

    def _fit(self, engine: Engine) -> None:
        """One round: fit, judge, and meet more states."""
        policy = engine.fitting.fit(self.solver_state.searching.check)
        engine.n_fits += 1
        name = f"{engine.name}, {plural(len(engine.fitting.basis), 'function')}"
        judged = self.solver_state.consider(name, engine.reduced, policy)
        engine.best = max(engine.best, judged.mean)
        seed = derived_seed(self.settings.seed, Purpose.VISITED, engine.n_fits)
        states = self._states(judged.arrays, seed)
        engine.fitting.meet(engine.reduced.states(states))

    def _fit_each(
        self, kind: str, rounds: int, models: Sequence[Reduced], engines: list[Engine]
    ) -> Iterator[None]:
        """The first fits of a kind of basis on every model, the most promising of a model last."""
        bounding = self.bounding
        assert bounding is not None
        for reduced in models:
            engine = self._engine(reduced, kind)
            if engine is None:
                continue
            fits = [*self._everywhere(engine), engine]
            for one in fits:
                for _ in range(rounds):
                    self._fit(one)
                    self._take_offers([*engines, *fits])
                    yield
            engines.extend(sorted(fits, key=lambda one: one.best))
        if not self.solver_state.timed:
            for _ in range(min(bounding.left(), len(models))):
                bounding.solve_next()
                self._take_offers(engines)
                yield
            for _ in range(0 if bounding.left() else UNTIMED_GROWTH):
                if bounding.tighten():
                    self._take_offers(engines)
                    yield

    def _project(self, engine: Engine, engines: list[Engine]) -> None:
        """Exact values of a few variables, all others as they are met, give a policy."""
        reduced, fitting, left = engine.reduced, engine.fitting, self.solver_state.searching.left()
        if isinstance(reduced.model.actions, Actions):
            return
        clock = self.solver_state.searching.branch(
            None if left is None else PROJECTION_SHARE * left
        )
        try:
            frequencies = frequencies_of(fitting.pool, reduced.model.sizes)
            found = projections_of(reduced.model, frequencies, clock.check)
        except Stopped:
            self.solver_state.searching.check()
            return
        if not found:
            return
        self.projections[reduced.label] = found
        kept = len({position for one in found for position in one.kept})
        name = f"{reduced.label}projections onto {plural(kept, 'variable')}"
        judged = self.solver_state.consider(
            name, reduced, policy_of(fitting, found, self.settings.seed)
        )
        self._show(engines, judged.arrays)

    def _everywhere(self, engine: Engine) -> list[Engine]:
        """Give a fit the projections' functions; perhaps another that is shown all places.

        If projections are of all that actions move, these may be put where no policy has been,
        while the rest takes its course.
        """
        found = self.projections.get(engine.reduced.name, [])
        tables = functions_of(engine.reduced.model, found)
        if not found or not found[0].whole:
            engine.fitting.take(tables, self.solver_state.searching.check)
            return []
        fitting = engine.fitting.copy()
        fitting.take(tables, self.solver_state.searching.check)
        rng = generator(self.settings.seed, Purpose.CROSSING)
        fitting.meet(crossed(fitting.pool, found[0], EPISODES, rng))
        return [Engine(f"{engine.name}, everywhere", engine.reduced, fitting)]

    def _grow(self, engines: list[Engine]) -> Iterator[None]:
        """Let bases grow where the fit leaves most over, the most promising model first."""
        growing = {}
        for engine in engines:  # the last of each model has the richest basis
            growing[engine.reduced.name] = engine
        rounds = 0
        while growing and (self.settings.rounds is None or rounds < self.settings.rounds):
            rounds += 1
            # One whose last growth was in vain waits for the others.
            name = max(growing, key=lambda one: (growing[one].idle == 0, growing[one].best))
            engine = growing[name]
            batch = max(20, len(engine.fitting.basis) // GROWTH)
            if not engine.fitting.grow(batch, self.solver_state.searching.check):
                del growing[name]
                continue
            better = False
            for _ in range(GROWING_ROUNDS):
                before = engine.best
                self._fit(engine)
                better |= engine.best > before
                self._take_offers([*growing.values()])
                yield
            engine.idle = 0 if better else engine.idle + 1
            if engine.idle >= PATIENCE:
                del growing[name]

    def _may_search(self, reduced: Reduced | None) -> bool:
        """Whether actions are listed, and states have few successors, so that they can be, too."""
        if reduced is None:
            return False
        self.solver_state.compile("successors")
        few = branching(reduced.model, self.solver_state.searching, self.settings.seed)
        return few.largest <= MOST_SUCCESSORS and few.mean <= FEW_SUCCESSORS

    def _search(self, reduced: Reduced, base: Plan, what: str, share: float) -> None:
        """Search from the start below a bound: a bound at the start, and policies as candidates.

        The trivial bound leads a search astray where it says nothing, but nobody waits for it.
        """
        left = self.solver_state.searching.left()
        clock = self.solver_state.searching.branch(None if left is None else share * left)
        _, guide = self.solver_state.best_of_model.get(reduced.label, (0.0, None))
        if guide is not None and resolve(reduced.model, guide).arrays is None:
            guide = None  # it finds joint actions, and a search looks at listed ones
        try:
            found = search(
                reduced.model,
                base.bound.basis,
                base.bound.weights,
                clock,
                fallback=guide,
                seed=self.settings.seed,
                trials=SEARCH_TRIALS if left is None else None,
            )
        except SizeError:
            return
        bound = reduced.bound(found.upper_bound)
        proof = proof_by_search(self.model, reduced, found, bound)
        # The linear bound of a reduced model is none that a file can prove.
        better = self.solver_state.lower(proof, None if reduced.rewritten else base)
        name = f"{reduced.label}search below {what}, {plural(found.expanded, 'state')}"
        if found.solved:
            least = found.lower_bound - reduced.slack
            self.solver_state.solved(name, reduced, found.policy, Proved(least, least, exact=False))
            return
        self.solver_state.note(name, "bound" if better else "")
        self.solver_state.consider(name, reduced, found.policy)
        if found.optimistic is not found.policy:
            self.solver_state.consider(f"{name}, hopeful", reduced, found.optimistic)


def _listed(reduced: Reduced) -> Reduced | None:
    """The same with a list of actions; None if these are too many to list for engines."""
    listed = ListActions().apply(reduced.model)
    return None if listed is None else chained((reduced, listed))


def _same(basis: Basis) -> Basis:
    return basis
