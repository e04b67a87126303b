"""The state of a solve: incumbent, bound and log, what engines know of each other, and the plan."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from fsmdp.bounds.bound import StartProof
from fsmdp.bounds.clock import Clock, Status, Stopped
from fsmdp.bounds.finish import plan_of_constant
from fsmdp.bounds.gap import Incumbent, Line, relative_gap
from fsmdp.bounds.plan import Plan, PlannedPolicy, Record
from fsmdp.bounds.planner import Callback, Request
from fsmdp.bounds.problem import trivial_problem
from fsmdp.bounds.proofs import EXACT_VALUES, SEARCH, Box, ReducedProof, StateValues
from fsmdp.errors import PlanningError
from fsmdp.exact.flat import all_assignments
from fsmdp.exact.solve import ExactSolution, expected_seconds
from fsmdp.foundation.streams import Purpose, derived_seed
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.tables import Integers
from fsmdp.policies.arrays import CompiledPolicy
from fsmdp.policies.greedy import Greedy
from fsmdp.policies.resolve import ArrayPolicy
from fsmdp.reductions.actions import ListActions
from fsmdp.reductions.reduction import Reduced, chained, reductions_of, unchanged
from fsmdp.simulation.gap import LEVEL, limit_of_mean
from fsmdp.simulation.rollout import Runs
from fsmdp.solver import parameters as tuned
from fsmdp.solver.engines.given import given_policies
from fsmdp.solver.judge import Judge, Judged, arena_of
from fsmdp.solver.search.graph import Branching, branching
from fsmdp.solver.search.search import Found
from fsmdp.solver.warmup import warm_up

if TYPE_CHECKING:
    from fsmdp.solver.engines.projections import Projection
    from fsmdp.solver.fitting import Fit
    from fsmdp.solver.scheduler import Auto


@dataclass(frozen=True, slots=True)
class Proved:
    """What is proved of an optimal policy: it earns `least` for certain.

    `value` is what it earns up to rounding if `exact`, else `least` once more.
    """

    value: float
    least: float
    exact: bool


class SolverState:
    """The best policy and the tightest bound so far, how they came, and what engines share."""

    def __init__(
        self, request: Request, clock: Clock, options: Auto, callback: Callback | None
    ) -> None:
        self.model, self.basis, units = request.model, request.basis, request.units
        self.request, self.options, self.seed = request, options, options.seed
        self.clock, self.callback, self.units = clock, callback, units
        self.began = time.perf_counter()
        left = clock.left()
        self.timed = left is not None
        """Bounds come from a thread then; otherwise in turn, so that a seed decides all."""
        self.searching = (
            clock
            if left is None
            else clock.branch(left - min(tuned.RESERVE_SHARE * left, tuned.RESERVE_SECONDS))
        )
        self.judge = Judge(arena_of(self.model), self.seed)
        self.alone = trivial_problem(self.model)
        self.bound_plan = plan_of_constant(self.alone)
        self.at_start: StartProof | None = None
        self.provable: tuple[StartProof, Plan | None] | None = None
        """The tightest proof for files, and the plan whose linear values it uses (None: any)."""
        self.size = units.original.largest_size_of_return
        self.span = units.original.span_of_return
        self.proved: Proved | None = None
        self.plain = unchanged(self.model)
        self.best_of_model: dict[str, tuple[float, Greedy]] = {}
        self.plan_of_model: dict[str, Plan] = {}
        """The tightest linear bound of each reduced model, by label; likewise the following."""
        self.fits: list[Fit] = []
        """Of each reduced model, the most promising last."""
        self.projections: dict[str, list[Projection]] = {}
        self.log: list[Line] = []
        self.lock = threading.RLock()

    @cached_property
    def given(self) -> list[ArrayPolicy]:
        """Policies that the caller has."""
        return given_policies(self.model, self.request.policies)

    @cached_property
    def models(self) -> tuple[Reduced, ...]:
        """Reduced models that engines work on, and the model itself, which comes last."""
        return reductions_of(self.model) if self.basis is None else (self.plain,)

    @cached_property
    def listed(self) -> Reduced | None:
        """The equal model of fewest states, with listed actions; None if these are too many."""
        equal = (one for one in self.models if one.relation == "equal")
        smallest = min(equal, key=lambda one: one.model.n_states)
        listed = ListActions().apply(smallest.model)
        return None if listed is None else chained((smallest, listed))

    @cached_property
    def exact_seconds(self) -> float | None:
        """That values of all states of the listed model may take; None if they are too large."""
        return None if self.listed is None else expected_seconds(self.listed.model)

    @cached_property
    def branching(self) -> Branching | None:
        """How many successors states of the listed model have."""
        if self.listed is None:
            return None
        self.compile("successors")
        return branching(self.listed.model, self.searching, self.seed)

    @property
    def upper_bound(self) -> float:
        """The tightest bound so far."""
        known, bound = self.at_start, self.bound_plan.upper_bound
        return bound if known is None else min(bound, known.upper_bound)

    @property
    def gap(self) -> float | None:
        """How far the incumbent is from the bound, by the episodes that chose it."""
        best = self.judge.incumbent
        if best is None:
            return None
        return self._gap(best.mean if self.proved is None else self.proved.value)

    def _gap(self, mean: float) -> float:
        """In the user's unit."""
        bound, mean = self.units.upper(self.upper_bound), self.units.value(mean)
        return relative_gap(bound, mean, self.size, self.span)

    def seconds(self) -> float:
        """Since the call."""
        return time.perf_counter() - self.began

    def note(self, tried: str, improved: str = "", again: Incumbent | None = None) -> None:
        """Write a line of the log, with what the incumbent earned when it was judged `again`."""
        mean = error = None
        best = again or self.judge.incumbent  # before `proved`, without which it has episodes
        if self.proved is not None:
            mean, error = self.proved.value, 0.0
        elif best is not None:
            mean, error = best.mean, best.standard_error
        with self.lock:
            gap = None if mean is None else self._gap(mean)
            line = Line(self.seconds(), tried, mean, error, self.upper_bound, gap, improved)
            self.log.append(line)
        if self.callback is not None:
            self.callback(self.units.line(line))

    def compile(self, *parts: str) -> None:
        """Compile what an engine uses before it is used, which does not count."""
        seconds = sum(map(warm_up, parts))
        for clock in {self.clock, self.searching}:  # one and the same without a limit
            clock.forgive(seconds)
        self.began += seconds

    def lower(self, proof: StartProof, base: Plan | None = None) -> bool:
        """Take a bound at the start; True if it is the tightest.

        Of those that fit into a file the tightest is kept, even where another one is tighter.
        `base` is the plan whose linear values the proof uses; None: any.
        """
        with self.lock:
            better = proof.upper_bound < self.upper_bound
            if better:
                self.at_start = proof
            if proof.fits and (
                self.provable is None or proof.upper_bound < self.provable[0].upper_bound
            ):
                self.provable = proof, base
        return better

    def take_plan(self, plan: Plan, reduced: Reduced) -> bool:
        """Take the linear bound of a reduced model; True if it is the tightest."""
        with self.lock:
            known = self.plan_of_model.get(reduced.label)
            if known is None or plan.upper_bound < known.upper_bound:
                self.plan_of_model[reduced.label] = plan
            before = self.upper_bound
            if not reduced.rewritten and plan.upper_bound < self.bound_plan.upper_bound:
                self.bound_plan = plan
        if reduced.rewritten:
            self.lower(ReducedProof.of(reduced, plan.bound.values))
        return self.upper_bound < before

    def earned(self) -> float:
        """What the best policy so far earns, which no bound is below."""
        best = self.judge.incumbent  # before `proved`, without which it has episodes
        if self.proved is not None:
            return self.proved.value
        return -np.inf if best is None else best.mean

    def share_visited(self, arrays: CompiledPolicy) -> None:
        """Add the states that a policy visits to the pools of all fits."""
        if not self.fits:
            return
        seed, check = derived_seed(self.seed, Purpose.VISITED), self.searching.check
        states = self.judge.arena.states(arrays, tuned.VISITING_EPISODES, seed, check)
        for fit in self.fits:
            fit.fitting.add_states(fit.reduced.states(states))

    def consider(self, name: str, reduced: Reduced, policy: PlannedPolicy) -> Judged:
        """Judge a candidate of a reduced model, which may become the incumbent.

        A PlanningError if that takes more than a share of the time that is left: decisions of some
        policies are slow, and others are to be tried, too. The first candidate has all of it.
        """
        own = reduced.policy(policy)
        arrays = own.compiled()
        assert arrays is not None
        clock = self.searching
        if self.judge.incumbent is not None:
            clock = clock.share(tuned.JUDGING_SHARE)
        try:
            found = self.judge.consider(name, own, arrays, self.seconds(), clock.check)
        except Stopped:
            self.searching.check()
            raise PlanningError(f"{name} is too slow to be judged in time; give more.") from None
        known = self.best_of_model.get(reduced.label)
        if isinstance(policy, Greedy) and (known is None or found.mean > known[0]):
            self.best_of_model[reduced.label] = found.mean, policy
        self.note(name, "policy" if found is self.judge.incumbent else "")
        return found

    @property
    def closed(self) -> bool:
        """Whether the gap is as small as was asked for."""
        if self.proved is not None:
            return True
        wanted, gap, best = self.options.gap, self.gap, self.judge.incumbent
        if wanted or best is None:
            return gap is not None and wanted is not None and gap <= wanted
        # In the unit of the normalised model: beside a large constant all gaps look small.
        size, span = self.model.largest_size_of_return, self.model.span_of_return
        return relative_gap(self.upper_bound, best.mean, size, span) <= 0

    def solved(self, name: str, reduced: Reduced, policy: PlannedPolicy, proved: Proved) -> None:
        """Take a policy that is proved to be optimal."""
        self.proved = proved
        self.judge.take(name, reduced.policy(policy))
        self.note(f"{name}, solved", "policy, bound")

    def plan(self, stopped: Status | None) -> Plan:
        """The plan of incumbent, bound and log; the incumbent is judged once more."""
        base, tightest = self.bound_plan, self.at_start
        proofs: tuple[StartProof, ...] = () if tightest is None else (tightest,)
        if self.provable is not None:
            provable, own = self.provable
            if own is not None and provable.upper_bound < base.upper_bound:
                base = own
            if provable is not tightest:
                proofs = (*proofs, provable)
        if tightest is None or base.upper_bound <= tightest.upper_bound:
            proofs = ()
        best = self.judge.incumbent
        incumbent = None if best is None else self._judged_again(best)
        name = "greedy for the moment" if best is None else best.name
        ended = self._ended(stopped)
        if self.proved is None and incumbent is not None:
            self.note(f"{name}, in fresh episodes; stopped: {ended}", again=incumbent)
        elif self.proved is None:
            self.note(f"stopped: {ended}")
        return Plan(
            base.policy if best is None else best.policy,
            replace(base.bound, at_start=proofs),
            Record(
                "auto",
                self.clock.status or stopped or base.status,
                {"solver": self.seconds()},
                (*(base.record.choices if base.program else ()), f"policy: {name}"),
                tuple(self.judge.tried),
                tuple(self.log),
                ended,
            ),
            incumbent,
        )

    def _ended(self, stopped: Status | None) -> str:
        """Why planning ended, in words."""
        if self.proved is not None:
            return "solved"
        status = self.clock.status if stopped is None else stopped
        if status is not None:
            return "interrupted" if status is Status.INTERRUPTED else "time is up"
        if self.closed:
            return (
                "the gap is as small as asked for" if self.options.gap else "the bound is reached"
            )
        return "nothing is left to try"

    def _judged_again(self, best: Judged) -> Incumbent | None:
        """What the incumbent earns; None if time did not suffice for a single episode."""
        scales = self.size, self.span
        if self.proved is not None:
            value, least, exact = self.proved.value, self.proved.least, self.proved.exact
            return Incumbent(best.name, value, 0.0, 0, least, 1.0, exact, *scales)
        returns = self.judge.judge_again(tuned.FRESH_EPISODES, self.clock)
        if not len(returns):
            return None
        runs = Runs(returns, self.judge.arena.steps)
        limit = limit_of_mean(self.model, runs, LEVEL)
        judged = runs.mean, runs.standard_error, len(returns), limit, LEVEL
        return Incumbent(best.name, *judged, False, *scales)


def proof_by_values(
    model: FactoredMDP, reduced: Reduced, solution: ExactSolution, bound: float
) -> StateValues:
    """Exact values of all states, or of those that can be reached, or that a reduced model has.

    Left out if they are too many for a file, or if there is no way back to states of the model.
    """
    count = solution.values.shape[1]
    all_states = solution.reached is None and not reduced.rewritten
    if count > tuned.FILED_STATES or (
        not all_states and count * len(model.sizes) > tuned.FILED_NUMBERS
    ):
        return StateValues(EXACT_VALUES, bound, fits=False)
    values = solution.values[0] if model.horizon is None else None
    if all_states:
        return StateValues(EXACT_VALUES, bound, model, None, values)
    if solution.reached is not None:
        states = solution.reached.states(reduced.model)
    else:
        states = all_assignments(reduced.model.sizes)
    found = _states(reduced, states)
    return StateValues(EXACT_VALUES, bound, model, found, values, fits=found is not None)


def proof_by_search(
    model: FactoredMDP, reduced: Reduced, found: Found, bound: float
) -> StateValues:
    """States that a search expanded, their upper bounds, and what is irrelevant where.

    Left out if they are too many for a file, or if there is no way back to states of the model.
    """
    few = found.expanded * len(model.sizes) <= tuned.FILED_NUMBERS
    states = _states(reduced, found.proof.states) if few else None
    if states is None:
        return StateValues(SEARCH, bound, fits=False)
    boxes = dict.fromkeys(_box(reduced, box) for box in found.proof.relevance.boxes(reduced.model))
    return StateValues(SEARCH, bound, model, states, found.proof.upper, tuple(boxes))


def _states(reduced: Reduced, states: Integers) -> Integers | None:
    """The original's states, in small numbers."""
    found = reduced.back(states) if reduced.relation == "equal" else None
    if found is None:
        return None
    return found.astype(np.uint8 if max(reduced.original.sizes) <= 2**8 else np.uint16)


def _box(reduced: Reduced, box: Box) -> Box:
    """A box of a reduced model's variables as one of the original's."""
    variables: list[int] = []
    values: list[tuple[int, ...]] = []
    for variable, allowed in zip(box.variables, box.values, strict=True):
        states = np.zeros((len(allowed), len(reduced.model.variables)), dtype=np.int64)
        states[:, variable] = allowed
        back = reduced.back(states)
        assert back is not None
        for member in reduced.state_map.members(variable):
            variables.append(member)
            values.append(tuple(np.unique(back[:, member]).tolist()))
    kept = sorted(member for one in box.kept for member in reduced.state_map.members(one))
    return Box(tuple(variables), tuple(values), tuple(kept))
