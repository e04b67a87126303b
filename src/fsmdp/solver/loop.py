"""The loop: policies from several engines beside bounds from linear programs, until time is up."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np

from fsmdp.errors import FsmdpError, SizeError
from fsmdp.exact.solve import Exact, expected_seconds
from fsmdp.model.basis import Basis
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.structure import sum_of_discounts
from fsmdp.planning.bound import Bound
from fsmdp.planning.clock import Clock, Stopped
from fsmdp.planning.finish import plan_of_constant
from fsmdp.planning.incumbent import Incumbent, Line
from fsmdp.planning.plan import Effort, Plan, PlannedPolicy, relative_gap
from fsmdp.planning.planner import Request, Tell
from fsmdp.planning.problem import trivial_problem
from fsmdp.planning.solution import Status
from fsmdp.policies.arrays import CompiledPolicy
from fsmdp.policies.followed import array_policy
from fsmdp.policies.greedy import Greedy
from fsmdp.simulation.gap import LEVEL, idle_action, limit_of_mean
from fsmdp.simulation.rollout import Runs
from fsmdp.solver.arena import arena_of
from fsmdp.solver.bounding import Bounding, Program
from fsmdp.solver.fitted import begin
from fsmdp.solver.fitting import Choices, Fitting, first_basis
from fsmdp.solver.judge import Judge, Judged
from fsmdp.solver.search.search import search
from fsmdp.solver.search.successors import MOST_SUCCESSORS, branching
from fsmdp.solver.view import View, views_of
from fsmdp.solver.warm import warm

EPISODES = 400
"""Of each policy, whose states join the pools."""

QUICK_ROUNDS, FIRST_ROUNDS, GROWING_ROUNDS = 2, 4, 2
"""Fits of singles, of pairs, and of each basis that has grown."""

PATIENCE = 3
"""Times that a basis may grow without a better policy before it is given up."""

GROWTH = 3
"""A basis grows by one function for so many that it has, at least by twenty."""

QUICKLY = 2.0
"""Seconds that exact values may be expected to take to be tried before anything else."""

EXACT_SHARE, EXACT_SECONDS = 0.6, 600.0
"""Exact values are tried if they are expected within this share of the time, or these seconds."""

REACHABLE_SHARE, REACHABLE_SECONDS = 0.1, 60.0
FIRST_SEARCH, SEARCH_SHARE, SEARCH_SECONDS = 0.2, 0.5, 300.0
"""For engines that may come to nothing; the first search has the trivial bound alone."""

FEW_SUCCESSORS = 64.0
"""Successors of an action, on average, up to which states are searched."""

SEARCH_TRIALS = 10**5
"""Without a time limit."""

RESERVE, ENOUGH = 0.1, 2.0
"""Of the time limit, and in seconds, at most: for judging the winner again."""

FRESH_EPISODES = 1000

LEFT_BEHIND = 0.25
"""Seconds that the thread of bounds has to end by itself; then what it finds comes too late."""

ROUNDING = 1e-10
"""More than sums of products can be off, relative to the largest values on the way."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the caller asks of the loop."""

    gap: float | None = None
    rounds: int | None = None
    seed: int = 0
    tolerance: float = 1e-6
    exact: bool = True


@dataclass(slots=True)
class Engine:
    """A fit on one view, with what has come of it."""

    name: str
    view: View
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
        wishes: Wishes,
        tell: Tell | None,
    ) -> None:
        model = request.model
        self.model, self.basis = model, request.basis
        self.weights, self.options = request.weights, request.options
        self.clock, self.wishes, self.tell = clock, wishes, tell
        self.began = time.perf_counter()
        left = clock.left()
        self.timed = left is not None
        """Bounds come from a thread then; otherwise in turn, so that a seed decides all."""
        self.searching = clock if left is None else clock.part(min(RESERVE * left, ENOUGH))
        self.judge = Judge(arena_of(model), wishes.seed)
        self.alone = trivial_problem(model)
        self.bound_plan = plan_of_constant(self.alone)
        self.at_start, self.proof = np.inf, "elimination"
        self.log: list[Line] = []
        self.offers: list[tuple[Program, Plan]] = []
        self.bound_of_view: dict[str, Plan] = {}
        self.exact: float | None = None
        self.best_of_view: dict[str, tuple[float, Greedy]] = {}
        self.bounding: Bounding | None = None
        self.over = False
        """Nobody waits for bounds any more."""
        self.stopped: Status | None = None
        self.lock = threading.RLock()

    # What is in hand

    @property
    def upper_bound(self) -> float:
        """The tightest bound so far."""
        return min(self.bound_plan.upper_bound, self.at_start)

    @property
    def gap(self) -> float | None:
        """How far the incumbent is from the bound, by the episodes that chose it."""
        best = self.judge.incumbent
        if best is None:
            return None
        return relative_gap(self.upper_bound, best.mean if self.exact is None else self.exact)

    def seconds(self) -> float:
        """Since the call."""
        return time.perf_counter() - self.began

    def note(self, tried: str, improved: str = "") -> None:
        """Write a line of the log."""
        best = self.judge.incumbent
        exact = self.exact is not None
        with self.lock:
            line = Line(
                self.seconds(),
                tried,
                None if best is None else (self.exact if exact else best.mean),
                None if best is None else (0.0 if exact else best.standard_error),
                self.upper_bound,
                self.gap,
                improved,
            )
            self.log.append(line)
        if self.tell is not None:
            self.tell(line)

    def compile(self, engine: str) -> None:
        """Compile an engine before it is used, which does not count."""
        seconds = warm(engine)
        for clock in {self.clock, self.searching}:  # one and the same without a limit
            clock.forgive(seconds)
        self.began += seconds

    def lower(self, bound: float, proof: str) -> bool:
        """Take a bound at the start; True if it is the tightest."""
        with self.lock:
            better = bound < self.upper_bound
            if better:
                self.at_start, self.proof = bound, proof
        return better

    def consider(self, name: str, view: View, policy: PlannedPolicy) -> bool:
        """Judge a candidate of a view; True if it is the incumbent now."""
        own = view.policy(policy)
        arrays = own.compiled()
        assert arrays is not None
        better = self.judge.consider(name, own, arrays, self.seconds(), self.searching.check)
        mean = self.judge.judged[-1].mean
        known = self.best_of_view.get(view.name)
        if isinstance(policy, Greedy) and (known is None or mean > known[0]):
            self.best_of_view[view.name] = mean, policy
        self.note(name, "policy" if better else "")
        return better

    def closed(self) -> bool:
        """Whether the gap is as small as was asked for."""
        if self.exact is not None:
            return True
        gap = self.gap
        return gap is not None and gap <= (self.wishes.gap or 0.0)

    # What is tried

    def run(self) -> Plan:
        """Try things in turn until the gap is closed, time is up, or nothing is left."""
        try:
            for _ in self._steps():
                if self.closed():
                    break
        except Stopped:
            self.stopped = self.searching.status
        finally:
            if self.bounding is not None:
                self.bounding.clock.interrupt()
                if self.timed:
                    self.bounding.join(LEFT_BEHIND)
                    self.over = True
        if self.bounding is not None and self.bounding.errors:
            raise self.bounding.errors[0]
        return self._finish()

    def _steps(self) -> Iterator[None]:
        """After each step, what is in hand is looked at."""
        model, seed = self.model, self.wishes.seed
        plain = View("", model)
        for name, policy in (("doing nothing", idle_action(model)), ("at random", "random")):
            self.consider(name, plain, array_policy(name, model, policy))
            yield
        views = views_of(model) if self.basis is None else (plain,)
        smallest = min(views, key=lambda view: view.model.n_states)
        solvable = self.basis is None and self.wishes.exact
        needed = expected_seconds(smallest.model) if solvable else None
        if solvable:
            self.compile("exact solver")
            quick = needed is not None and needed <= QUICKLY
            self._solve_exactly(smallest, "auto" if quick else True, REACHABLE_SHARE)
            yield
        for name in ("linear programs", "fits", *(("search",) if self.basis is None else ())):
            self.compile(name)  # before anything runs beside it
        self.bounding = bounding = self._start_bounding(views)
        engines: list[Engine] = []
        searched = False
        for kind, rounds in (("singles", QUICK_ROUNDS), ("pairs", FIRST_ROUNDS)):
            for view in views:
                engine = self._engine(view, kind)
                if engine is None:
                    continue
                engines.append(engine)
                begin(engine.fitting, view, self.judge.arena, EPISODES, seed)
                for _ in range(rounds):
                    self._fit(engine)
                    self._take_offers(engines)
                    yield
            if not self.timed:
                for _ in range(min(bounding.left(), len(views))):
                    bounding.solve_next()
                    self._take_offers(engines)
                    yield
            if self.basis is not None:
                break
            if kind == "singles" and self._may_search(smallest):
                trivial = plan_of_constant(self.alone).bound
                self._search(smallest, trivial, "the trivial bound", FIRST_SEARCH)
                searched = True
                yield
        if searched:
            while self.timed and not bounding.first.wait(0.1):
                self.searching.check()
            known = self.bound_of_view.get(smallest.name)
            if known is not None:
                self._search(smallest, known.bound, "the bound", SEARCH_SHARE)
                yield
        if self.basis is None:
            if self._has_time_for(needed):
                self._solve_exactly(smallest, "auto", EXACT_SHARE)
                yield
            for _ in self._grow(engines):
                yield
        while self.timed and bounding.is_alive():
            bounding.join(0.1)
            self.searching.check()
            self._take_offers(engines)
            yield
        self._take_offers(engines)
        yield

    def _has_time_for(self, needed: float | None) -> bool:
        """Whether exact values of all states are worth a try."""
        if needed is None or needed <= QUICKLY:
            return False
        left = self.searching.left()
        return needed <= (EXACT_SECONDS if left is None else EXACT_SHARE * left)

    def _solve_exactly(self, view: View, reachable: bool | Literal["auto"], share: float) -> None:
        """Exact values, if they can be had in a share of the time: nothing is left to do then."""
        left, model = self.searching.left(), view.model
        clock = self.searching.branch(REACHABLE_SECONDS if left is None else share * left)
        if reachable == "auto" and left is None:
            clock = self.searching
        try:
            solution = Exact(reachable=reachable).solve(model, clock.check)
        except SizeError:
            return
        except Stopped:
            self.searching.check()
            return
        value = self.exact = solution.start_value
        slack = solution.error + ROUNDING * _largest_return(model)
        self.lower(value + slack, "exact values")
        acting = array_policy("exact values", model, solution)
        self.judge.take("exact values", view.policy(acting), self.seconds())
        self.note(f"{view.name}exact values", "policy, bound")

    def _start_bounding(self, views: Sequence[View]) -> Bounding:
        """Programs of singles on every view, the joined one first; then of pairs."""
        if not isinstance(self.weights, str):
            views = views[-1:]  # weights speak of the model's own variables
        if self.basis is not None:
            programs = [Program("given functions", views[-1], partial(_same, self.basis))]
        else:
            programs = [
                Program(f"{view.name}{kind}", view, partial(make, view.model))
                for kind, make in (("singles", Basis.singles), ("pairs", Basis.pairs))
                for view in views
            ]
        bounding = Bounding(
            programs,
            self.weights,
            self.options,
            self.alone.trivial,
            self.wishes.tolerance,
            self.searching.branch(),
            self._offer,
            self._skip,
        )
        if self.timed:
            bounding.start()
        return bounding

    def _skip(self, program: Program, why: str) -> None:
        if self.over:
            return
        self.note(f"program of {program.name}: {why.partition(';')[0]}")

    def _offer(self, program: Program, plan: Plan) -> None:
        """Called by the thread of bounds: take the bound, keep the policy for later."""
        if self.over:
            return
        with self.lock:
            known = self.bound_of_view.get(program.view.name)
            if known is None or plan.upper_bound < known.upper_bound:
                self.bound_of_view[program.view.name] = plan
            before = self.upper_bound
            if program.view.joined is None and plan.upper_bound < self.bound_plan.upper_bound:
                self.bound_plan = plan
            self.offers.append((program, plan))
        if program.view.joined is not None:
            slack = ROUNDING * _largest_return(self.model)  # of the joined tables
            self.lower(plan.upper_bound + slack, "elimination, with exclusive variables joined")
        self.note(f"program of {program.name}", "bound" if self.upper_bound < before else "")

    def _take_offers(self, engines: list[Engine]) -> None:
        """Judge the policies of the programs that were solved meanwhile."""
        if self.exact is not None:
            return
        with self.lock:
            offers, self.offers = self.offers, []
        for program, plan in offers:
            self.consider(f"policy of program of {program.name}", program.view, plan.policy)
            self._show(engines, self.judge.judged[-1].arrays)

    def _show(self, engines: list[Engine], arrays: CompiledPolicy) -> None:
        """Let all fits know the states that a policy meets."""
        states = self.judge.arena.states(arrays, EPISODES, self.wishes.seed + 1)
        for engine in engines:
            engine.fitting.meet(engine.view.states(states))

    def _engine(self, view: View, kind: str) -> Engine | None:
        """A fit to begin with; none if its tables would be too large."""
        name = f"fit of {view.name}{kind}"
        basis = self.basis
        if basis is None:
            basis = first_basis(view.model, kind == "pairs")
        else:
            name = "fit of given functions"
        try:
            fitting = Fitting(view.model, basis, Choices(), self.searching.check)
        except FsmdpError as error:
            self.note(f"{name}: {str(error).partition(';')[0]}")
            return None
        return Engine(name, view, fitting)

    def _fit(self, engine: Engine) -> bool:
        """One round: fit, judge, and meet more states."""
        policy = engine.fitting.fit(self.searching.check)
        engine.n_fits += 1
        name = f"{engine.name}, {len(engine.fitting.basis)} functions"
        better = self.consider(name, engine.view, policy)
        judged = self.judge.judged[-1]
        engine.best = max(engine.best, judged.mean)
        states = self.judge.arena.states(
            judged.arrays, EPISODES, self.wishes.seed + 2 + engine.n_fits
        )
        engine.fitting.meet(engine.view.states(states))
        return better

    def _grow(self, engines: list[Engine]) -> Iterator[None]:
        """Let bases grow where the fit leaves most over, the most promising view first."""
        growing = {}
        for engine in engines:  # the last of each view has the richest basis
            growing[engine.view.name] = engine
        rounds = 0
        while growing and (self.wishes.rounds is None or rounds < self.wishes.rounds):
            rounds += 1
            # An engine that has not grown yet is tried first; then the best.
            name = max(growing, key=lambda one: (growing[one].idle == 0, growing[one].best))
            engine = growing[name]
            batch = max(20, len(engine.fitting.basis) // GROWTH)
            if not engine.fitting.grow(batch, self.searching.check):
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

    def _may_search(self, view: View) -> bool:
        """Whether states have few successors, so that they can be listed."""
        few = branching(view.model, self.searching, self.wishes.seed)
        return few.largest <= MOST_SUCCESSORS and few.mean <= FEW_SUCCESSORS

    def _search(self, view: View, bound: Bound, what: str, share: float) -> None:
        """Search from the start below a bound: a bound at the start, and policies as candidates.

        The trivial bound leads a search astray where it says nothing, but nobody waits for it.
        """
        left = self.searching.left()
        clock = self.searching.branch(SEARCH_SECONDS if left is None else share * left)
        guide = self.best_of_view.get(view.name)
        try:
            found = search(
                view.model,
                bound.basis,
                bound.weights,
                clock,
                fallback=None if guide is None else guide[1],
                seed=self.wishes.seed,
                trials=SEARCH_TRIALS if clock.left() is None else None,
            )
        except SizeError:
            return
        slack = ROUNDING * _largest_return(self.model) if view.joined else 0.0
        better = self.lower(found.upper_bound + slack, "search from the start")
        name = f"{view.name}search below {what}, {found.expanded} states"
        if found.solved:
            self.exact = found.lower_bound - slack
            self.judge.take(name, view.policy(found.policy), self.seconds())
            self.note(f"{name}, solved", "policy, bound")
            return
        self.note(name, "bound" if better else "")
        self.consider(name, view, found.policy)
        if found.hopeful is not found.policy:
            self.consider(f"{name}, hopeful", view, found.hopeful)

    # The end

    def _finish(self) -> Plan:
        """A plan of what is in hand, the incumbent judged once more."""
        base = self.bound_plan
        best = self.judge.incumbent
        incumbent = None if best is None else self._judged_again(best)
        bound = replace(base.bound, at_start=float(self.at_start), proof=self.proof)
        if base.upper_bound <= self.at_start:
            bound = base.bound
        status = self.clock.status or self.stopped or base.status
        name = "greedy for the moment" if best is None else best.name
        if self.exact is None and incumbent is not None:
            self.note(f"{name}, in fresh episodes")
        return replace(
            base,
            method="auto",
            policy=base.policy if best is None else best.policy,
            bound=bound,
            ended=replace(base.ended, status=status),
            effort=Effort(
                base.rows,
                base.columns,
                base.iterations,
                {"solver": self.seconds()},
                (*base.effort.choices, f"policy: {name}"),
            ),
            incumbent=incumbent,
            candidates=self.judge.candidates(),
            log=tuple(self.log),
        )

    def _judged_again(self, best: Judged) -> Incumbent:
        if self.exact is not None:
            value = self.exact
            return Incumbent(best.name, value, 0.0, 0, value, 1.0, exact=True)
        returns = self.judge.judge_again(FRESH_EPISODES, self.clock)
        runs = Runs(returns, self.judge.arena.steps)
        limit = limit_of_mean(self.model, runs, LEVEL)
        return Incumbent(best.name, runs.mean, runs.standard_error, len(returns), limit, LEVEL)


def _same(basis: Basis) -> Basis:
    return basis


def _largest_return(model: FactoredMDP) -> float:
    """More than any return, in size."""
    largest = sum(
        max(float(np.abs(table.values).max()) for table in means) for means in model.reward_means
    )
    return largest * sum_of_discounts(model.horizon, model.discount)
