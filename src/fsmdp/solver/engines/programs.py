"""Linear programs: certified bounds, ever tighter, and the policies of their values.

Programs of singles and pairs are solved one after another; then techniques (`TECHNIQUES`) tighten
the best of them.
"""

import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from fsmdp.bounds.bellman import Weights
from fsmdp.bounds.bundle import plan_of
from fsmdp.bounds.clock import Clock, Status, Stopped
from fsmdp.bounds.costs import MOST_JOINT_ROWS, has_stages
from fsmdp.bounds.joint import Joint
from fsmdp.bounds.plan import Plan
from fsmdp.bounds.problem import Problem, Trivial, problem_of_model
from fsmdp.bounds.stagewise import Stagewise
from fsmdp.errors import FsmdpError
from fsmdp.model.basis import Basis
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.variables import Scope, table_size
from fsmdp.reductions.invariants import Invariant
from fsmdp.reductions.reduction import Reduced
from fsmdp.solver import parameters as tuned
from fsmdp.solver.engine import (
    CandidatePolicy,
    Engine,
    Finding,
    Findings,
    LinearBound,
    Note,
    Stage,
)
from fsmdp.solver.fitting import backup_size
from fsmdp.solver.state import SolverState
from fsmdp.solver.techniques import Tightening, find_invariants


def regions_of(model: FactoredMDP) -> list[Scope]:
    """For each set of variables that the same actions move, it and its nearest neighbours.

    Nearest are those that most mechanisms and rewards depend on together with what is moved; of
    equals, those that are drawn at random and not determined by others. The cheapest come first.
    Cost: a pass over the mechanisms for each region.
    """
    n_variables, sizes = len(model.sizes), model.sizes
    moved: dict[frozenset[int], list[int]] = {}
    is_drawn = np.zeros(n_variables, dtype=np.bool_)
    scopes: list[set[int]] = []
    for child in range(n_variables):
        cases = model.dynamics.ancestry((child,))
        inputs = {p for ancestry in cases for p in ancestry.parent_scope}
        movers = frozenset({p for p in inputs if p >= n_variables} | {*cases.exceptions})
        if movers:
            moved.setdefault(movers, []).append(child)
        scopes.append({child, *(p for p in inputs if p < n_variables)})
        is_drawn[child] = any(
            ((kernel.table > 0) & (kernel.table < 1)).any()
            for ancestry in cases
            for kernel in ancestry.kernels
        )
    scopes += [
        {p for p in t.scope if p < n_variables} for means in model.reward_means for t in means
    ]
    found: dict[Scope, int] = {}
    for members in list(moved.values())[: tuned.REGIONS]:
        ties = np.zeros(n_variables, dtype=np.int64)
        for scope in scopes:
            if scope.intersection(members):
                ties[list(scope)] += 1
        region = list(members)
        near = [p for p in np.flatnonzero(ties).tolist() if p not in members]
        for position in sorted(near, key=lambda p: (-ties[p], not is_drawn[p], p)):
            wider = tuple(sorted((*region, position)))
            fits = table_size(sizes[p] for p in wider) <= tuned.REGION_ASSIGNMENTS
            if fits and backup_size(model, wider) <= tuned.BOUND_BACKUP_NUMBERS:
                region.append(position)
        whole = tuple(sorted(region))
        if len(whole) > 1 and table_size(sizes[p] for p in whole) <= tuned.REGION_ASSIGNMENTS:
            found[whole] = backup_size(model, whole)
    return sorted(found, key=found.__getitem__)


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """What is to be bounded: a reduced model and a basis, which may grow."""

    name: str
    reduced: Reduced
    basis: Callable[[], Basis]
    grows: bool = True
    acts: bool = True  # whether its policy is worth a look
    rich: bool = False  # regions are tried before it, where nothing else has helped


@dataclass(frozen=True, slots=True, eq=False)
class BoundingContext:
    """What all programs are solved with."""

    weights: Weights
    options: Mapping[str, Any]
    trivial: Trivial | None
    seed: int
    below: Callable[[], float]  # what the best policy earns


class Bounding:
    """Solves programs one after another, then refines the tightest of them."""

    def __init__(self, programs: Sequence[Program], terms: BoundingContext, clock: Clock) -> None:
        self.clock = clock
        self._programs, self._terms = programs, terms
        self._next = 0
        self._lowest = np.inf  # of all bounds that were offered
        self._growing: list[tuple[Program, Tightening]] = []
        self._invariants: dict[str, tuple[Invariant, ...]] = {}  # by label of the reduced model
        self._may_add = all(program.grows for program in programs)

    def run(self) -> Findings:
        """Until nothing is left to try or the clock stops."""
        while self.left():
            if self._programs[self._next].rich:
                self._add_regions()
            yield from self.solve_next()
        while (yield from self.tighten()):
            pass

    def free(self) -> None:
        """Forget the programs, gigabytes of them, which know this object and would outlive it."""
        self._growing.clear()

    def left(self) -> int:
        """How many programs were not tried yet."""
        return len(self._programs) - self._next

    def solve_next(self) -> Findings:
        """Solve one program. `Stopped` if there is no time for another."""
        program, self._next = self._programs[self._next], self._next + 1
        share = (
            tuned.FIRST_PROGRAM_SHARE
            if self._next == 1
            else tuned.PROGRAM_SHARE
            if program.acts
            else tuned.REGION_SHARE
        )
        clock = self.clock.share(share)
        try:
            basis = program.basis()
            built = None
            if program.acts:
                built = yield from self._solve_by_rows(program, basis, clock)
            invariants = self._invariants_of(program.reduced, clock)

            def problem_of(asked: Basis, clock: Clock) -> Problem:
                if built is not None and asked is basis and not invariants:
                    return built
                return self._problem_of(program, invariants, asked, clock)

            tightening = Tightening(
                program.reduced.model,
                basis,
                problem_of,
                clock,
                self._terms.below,
                grows=program.grows,
                widens=self._terms.options["mini_bucket"] is None,
            )
            yield self._tighter(program, tightening)
            self._growing.append((program, tightening))
        except Stopped:
            self.clock.check()
        except FsmdpError as error:
            yield self._failed(program, error)
        yield Finding()

    def _solve_by_rows(
        self, program: Program, basis: Basis, clock: Clock
    ) -> Generator[Finding, Any, Problem | None]:
        """First bounds, and policies: stage by stage, then all steps in one, if that is quick.

        Their values are good everywhere, not at the start alone, so that invariants are left out.
        Hands back the problem, if there was time to lay it out.
        """
        problem = None
        with suppress(Stopped):
            began, part = time.perf_counter(), clock.share(tuned.STAGES_SHARE)
            problem = self._problem_of(program, (), basis, part)
            expected = 0.0
            if has_stages(problem.network):
                yield from self._if_solved(program, Stagewise().solve(problem, part))
                expected = tuned.JOINT_TO_STAGES * (time.perf_counter() - began)
            network, left = problem.network, clock.left()
            few = network.n_weight_rows * network.elimination.n_rows <= MOST_JOINT_ROWS
            if few and (left is None or expected < left):
                plan = Joint().solve(problem, clock.share(tuned.STAGES_SHARE))
                yield from self._if_solved(program, plan)
        return problem

    def _if_solved(self, program: Program, plan: Plan) -> Iterator[Finding]:
        solved = plan.bound.values.program
        assert solved is not None
        if solved.weights_certified and plan.status is not Status.TIME_LIMIT:
            yield self._bound(program, plan)
            name = f"policy of program of {program.name}"
            yield CandidatePolicy(name, plan.policy, program.reduced, shared=True, more=True)

    def _bound(self, program: Program, plan: Plan) -> LinearBound:
        self._lowest = min(self._lowest, plan.upper_bound)
        return LinearBound(f"program of {program.name}", plan, program.reduced, more=True)

    def _failed(self, program: Program, error: FsmdpError) -> Note:
        return Note(f"program of {program.name}: {str(error).partition(';')[0]}", more=True)

    def _problem_of(
        self, program: Program, invariants: tuple[Invariant, ...], basis: Basis, clock: Clock
    ) -> Problem:
        terms = self._terms
        exact = terms.options["mini_bucket"] is None
        return problem_of_model(
            program.reduced.model,
            basis,
            terms.weights,
            budget=tuned.EXACT_ENTRIES if exact else None,
            trivial=None if program.reduced.rewritten else terms.trivial,
            clock=clock,
            **{**terms.options, "invariants": invariants},
        )

    def _invariants_of(self, reduced: Reduced, clock: Clock) -> tuple[Invariant, ...]:
        """Those that were given, or those that are found in a share of the time; found once."""
        given = self._terms.options.get("invariants")
        if given is not None:
            return () if reduced.rewritten else tuple(given)
        if not isinstance(self._terms.weights, str) or self._terms.weights != "initial":
            return ()
        if reduced.label not in self._invariants:
            part = clock.share(tuned.INVARIANTS_SHARE)
            try:
                found = find_invariants(reduced.model, self._terms.seed, part.check)
            except Stopped:
                clock.check()
                found = ()
            self._invariants[reduced.label] = found
        return self._invariants[reduced.label]

    def tighten(self) -> Generator[Finding, Any, bool]:
        """Refine the tightest bound: its basis, its blocks of steps; False if none can be.

        Where no program has said more than the trivial bound does, there is nothing that growth
        could follow: then regions are tried, one after another.
        """
        self._add_regions()
        if self.left():
            yield from self.solve_next()
            return True
        while self._growing:
            at = min(range(len(self._growing)), key=lambda one: self._growing[one][1].value)
            program, tightening = self._growing[at]
            before = tightening.value
            try:
                if tightening.advance(self.clock) is not None:
                    if tightening.value < before:
                        yield self._tighter(program, tightening)
                    yield Finding()
                    return True
            except FsmdpError as error:
                yield self._failed(program, error)
            del self._growing[at]
        return False

    def _add_regions(self) -> None:
        """Once, and only where it is called for."""
        if self._may_add and self._is_flat():
            at = self._next
            self._programs = [
                *self._programs[:at],
                *self._region_programs(),
                *self._programs[at:],
            ]
        self._may_add = False

    def _is_flat(self) -> bool:
        trivial = self._terms.trivial
        if trivial is None:
            return False
        scale = self._programs[-1].reduced.model.largest_size_of_return
        return bool(self._lowest >= trivial.upper_bound - tuned.FLAT_BOUND * scale)

    def _region_programs(self) -> list[Program]:
        reduced = self._programs[-1].reduced
        return [
            Program(
                f"region of {reduced.model.variables[scope[0]].name}",
                reduced,
                partial(Basis.blocks, reduced.model, [scope]),
                acts=False,
            )
            for scope in regions_of(reduced.model)
        ]

    def _tighter(self, program: Program, tightening: Tightening) -> LinearBound:
        # What was found in time is certified in what is left of all the time.
        return self._bound(
            program, plan_of(tightening.problem, tightening.blocks, tightening.found, self.clock)
        )


@dataclass(frozen=True, slots=True)
class Programs(Engine):
    """Programs of singles on every model that bounds this one, then of pairs; then refined."""

    def applies(self, state: SolverState) -> str | float:  # noqa: ARG002
        """Always."""
        return 0.0

    def run(self, state: SolverState, clock: Clock) -> Findings:
        """Bounds and policies; without a time limit, as many programs a turn as models."""
        context = BoundingContext(
            state.request.weights,
            state.request.options,
            state.alone.trivial,
            state.seed,
            state.earned,
        )
        bounding = Bounding(self._programs(state), context, clock)
        try:
            if state.timed:
                yield from bounding.run()
                return
            for _ in range(tuned.UNTIMED_TURNS if state.basis is None else 1):
                for _ in range(min(bounding.left(), len(state.models))):
                    yield from bounding.solve_next()
                for _ in range(0 if bounding.left() else tuned.UNTIMED_REFINEMENTS):
                    yield from bounding.tighten()
                yield Finding(ends_turn=True)
        finally:
            bounding.free()

    def _programs(self, state: SolverState) -> list[Program]:
        """Of a rewritten model before the model itself."""
        models, given = [one for one in state.models if one.relation != "heuristic"], state.basis
        if not isinstance(state.request.weights, str):
            models = models[-1:]  # weights are of the model's own variables
        if given is not None:
            return [Program("given functions", models[-1], lambda: given, grows=False)]
        return [
            Program(f"{one.label}{kind}", one, partial(make, one.model), rich=kind == "pairs")
            for kind, make in (("singles", Basis.singles), ("pairs", Basis.pairs))
            for one in models
        ]


PROGRAMS = Programs(
    "linear-programs",
    Stage.QUICK,
    "Certified bounds from linear programs with singles, then pairs, and one policy each; then the "
    "tightest is refined ([Bounds](bounds.md)). Runs beside all others.",
    compiles=("linear programs",),
    beside=True,
)
