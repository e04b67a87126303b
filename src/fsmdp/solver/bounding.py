"""Bounds beside the search for a policy, in their own thread: bases given, then bases that grow."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from fsmdp.errors import FsmdpError
from fsmdp.model.basis import Basis
from fsmdp.model.invariants import Invariant
from fsmdp.planning.bellman import Weights
from fsmdp.planning.bundled import may_go_by_stages, plan_of
from fsmdp.planning.clock import Clock, Status, Stopped
from fsmdp.planning.joint import Joint
from fsmdp.planning.plan import Plan
from fsmdp.planning.problem import Problem, Trivial, problem_of_model
from fsmdp.planning.stagewise import Stagewise
from fsmdp.solver.invariants import find_invariants
from fsmdp.solver.regions import regions_of
from fsmdp.solver.tightening import Tightening
from fsmdp.solver.view import View

FIRST_SHARE, SHARE, REGION_SHARE = 0.6, 0.3, 0.1
"""Of the time that is left: for the first program, without which there is no bound worth reading,
for each other one before bases grow, and for each region."""

STAGES_SHARE = 0.6
"""Of the time for a program, to solve it by rows: stage by stage, and of the rest all in one."""

STAGES_TO_ALL = 3.0
"""All steps in one take about so much longer than stages."""

MOST_JOINT_ROWS = 500_000
"""Rows of all steps in one, beyond which it is left to cuts."""

INVARIANTS_SHARE = 0.2
"""Of the time for a program, to prove invariants of its model."""

FLAT = 1e-9
"""A bound that is below the trivial one by less, in largest returns, says no more."""

BUDGET = 2**20
"""Table entries of one step, up to which elimination is exact; beyond, mini-buckets keep to it."""


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """What is to be bounded: a view and a basis, which may grow."""

    name: str
    view: View
    basis: Callable[[], Basis]
    grows: bool = True
    acts: bool = True  # whether its policy is worth a look
    rich: bool = False  # regions are tried before it, where nothing else has helped


@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    """On which all programs are solved: what is known beforehand, and who hears of them."""

    weights: Weights
    options: Mapping[str, Any]
    trivial: Trivial | None
    seed: int
    below: Callable[[], float]  # what the best policy earns
    offer: Callable[[Program, Plan, bool], None]  # and whether its policy is worth a look
    skip: Callable[[Program, str], None]


class Bounding(threading.Thread):
    """Solves programs one after another, then lets the best of them grow.

    Each plan is handed to `offer`, what fails to `skip`.
    """

    def __init__(self, programs: Sequence[Program], terms: Terms, clock: Clock) -> None:
        super().__init__(name="fsmdp bounds", daemon=False)
        self.clock = clock
        self.first = threading.Event()
        """Set when the first program has been solved, or never will be."""
        self.errors: list[BaseException] = []
        self._programs, self._terms = programs, terms
        self._next = 0
        self._lowest = np.inf  # of all bounds that were offered
        self._growing: list[tuple[Program, Tightening]] = []
        self._invariants: dict[str, tuple[Invariant, ...]] = {}  # by view
        self._may_add = all(program.grows for program in programs)

    def run(self) -> None:
        """Until nothing is left to try or the clock stops."""
        try:
            while self.left():
                if self._programs[self._next].rich:
                    self._add_regions()
                self.solve_next()
            while self.tighten():
                pass
        except Stopped:
            pass
        except BaseException as error:
            self.errors.append(error)
        finally:
            self.first.set()
            self.let_go()

    def let_go(self) -> None:
        """Forget the programs, gigabytes of them, which know this thread and would outlive it."""
        self._growing.clear()

    def left(self) -> int:
        """How many programs were not tried yet."""
        return len(self._programs) - self._next

    def solve_next(self) -> None:
        """Solve one program. `Stopped` if there is no time for another."""
        program, self._next = self._programs[self._next], self._next + 1
        share = FIRST_SHARE if self._next == 1 else SHARE if program.acts else REGION_SHARE
        clock = self.clock.share(share)
        try:
            basis = program.basis()
            built = self._solve_by_rows(program, basis, clock) if program.acts else None
            invariants = self._invariants_of(program.view, clock)

            def problem_of(asked: Basis, clock: Clock) -> Problem:
                if built is not None and asked is basis and not invariants:
                    return built
                return self._problem_of(program, invariants, asked, clock)

            below = self._terms.below
            tightening = Tightening(
                program.view.model,
                basis,
                problem_of,
                below,
                grows=program.grows,
                widens=self._terms.options["mini_bucket"] is None,
            )
            tightening.begin(clock)
            self._hand_out(program, tightening)
            self._growing.append((program, tightening))
        except Stopped:
            self.clock.check()
        except FsmdpError as error:
            self._terms.skip(program, str(error))
        finally:
            self.first.set()

    def _solve_by_rows(self, program: Program, basis: Basis, clock: Clock) -> Problem | None:
        """First bounds, and policies: stage by stage, then all steps in one, if that is quick.

        Their values are good everywhere, not at the start alone, so that invariants are left out.
        Hands back the problem, if there was time to lay it out.
        """
        problem = None
        with suppress(Stopped):
            began, part = time.perf_counter(), clock.share(STAGES_SHARE)
            problem = self._problem_of(program, (), basis, part)
            expected = 0.0
            if may_go_by_stages(problem):
                self._offer_if_solved(program, Stagewise().solve(problem, part))
                expected = STAGES_TO_ALL * (time.perf_counter() - began)
            network, left = problem.network, clock.left()
            few = network.n_weight_rows * network.elimination.n_rows <= MOST_JOINT_ROWS
            if few and (left is None or expected < left):
                self._offer_if_solved(program, Joint().solve(problem, clock.share(STAGES_SHARE)))
        return problem

    def _offer_if_solved(self, program: Program, plan: Plan) -> None:
        if plan.weights_certified and plan.status is not Status.TIME_LIMIT:
            self._offer(program, plan, acts=True)
            self.first.set()

    def _offer(self, program: Program, plan: Plan, *, acts: bool) -> None:
        self._lowest = min(self._lowest, plan.upper_bound)
        self._terms.offer(program, plan, acts)

    def _problem_of(
        self, program: Program, invariants: tuple[Invariant, ...], basis: Basis, clock: Clock
    ) -> Problem:
        terms = self._terms
        exact = terms.options["mini_bucket"] is None
        return problem_of_model(
            program.view.model,
            basis,
            terms.weights,
            budget=BUDGET if exact else None,
            trivial=None if program.view.joined else terms.trivial,
            clock=clock,
            **{**terms.options, "invariants": invariants},
        )

    def _invariants_of(self, view: View, clock: Clock) -> tuple[Invariant, ...]:
        """Those that were given, or those that are found in a share of the time; found once."""
        given = self._terms.options.get("invariants")
        if given is not None:
            return () if view.joined else tuple(given)
        if not isinstance(self._terms.weights, str) or self._terms.weights != "initial":
            return ()
        if view.name not in self._invariants:
            part = clock.share(INVARIANTS_SHARE)
            try:
                found = find_invariants(view.model, self._terms.seed, part.check)
            except Stopped:
                clock.check()
                found = ()
            self._invariants[view.name] = found
        return self._invariants[view.name]

    def tighten(self) -> bool:
        """Let the basis of the tightest bound grow, or its blocks of steps; False if none can.

        Where no program has said more than the trivial bound does, there is nothing that growth
        could follow: then regions are tried, one after another.
        """
        self._add_regions()
        if self.left():
            self.solve_next()
            return True
        while self._growing:
            at = min(range(len(self._growing)), key=lambda one: self._growing[one][1].value)
            program, tightening = self._growing[at]
            before = tightening.value
            try:
                if tightening.advance(self.clock) is not None:
                    if tightening.value < before:
                        self._hand_out(program, tightening)
                    return True
            except FsmdpError as error:
                self._terms.skip(program, str(error))
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
        scale = self._programs[-1].view.model.largest_size_of_return
        return bool(self._lowest >= trivial.upper_bound - FLAT * scale)

    def _region_programs(self) -> list[Program]:
        view = self._programs[-1].view
        return [
            Program(
                f"region of {view.model.variables[scope[0]].name}",
                view,
                partial(Basis.blocks, view.model, [scope]),
                acts=False,
            )
            for scope in regions_of(view.model)
        ]

    def _hand_out(self, program: Program, tightening: Tightening) -> None:
        problem, found = tightening.problem, tightening.found
        assert problem is not None
        assert found is not None
        # What was found in time is certified in what is left of all the time.
        plan = plan_of(problem, tightening.blocks, found, self.clock)
        self._offer(program, plan, acts=False)
