"""A bound that tightens: the basis grows where the dual says that the bound is loose."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from fsmdp.bounds.bellman import Weights, reward_scale, value_span
from fsmdp.bounds.bundle import (
    Blocks,
    BundleSolution,
    coarse_blocks,
    minimise,
    minimise_by_rows,
    pairs_of,
    prefers_rows,
    slopes,
)
from fsmdp.bounds.bundled import divided, may_go_by_stages, plan_of
from fsmdp.bounds.certificate import excesses_of
from fsmdp.bounds.clock import Clock, Status, Stopped
from fsmdp.bounds.inequalities import Cuts
from fsmdp.bounds.joint import Joint
from fsmdp.bounds.plan import Plan
from fsmdp.bounds.problem import Problem, Trivial, problem_of_model
from fsmdp.bounds.stagewise import Stagewise
from fsmdp.elimination import Room, widened, with_room
from fsmdp.errors import FsmdpError, WidthError
from fsmdp.foundation.streams import Purpose, derived_seed
from fsmdp.model.basis import Basis
from fsmdp.model.mdp import FactoredMDP, check_model
from fsmdp.model.supports import Booleans, family
from fsmdp.model.tables import Floats
from fsmdp.model.variables import Scope, table_size
from fsmdp.policies.resolve import array_policy
from fsmdp.reductions.invariants import (
    LARGEST_LOCAL,
    LARGEST_TOTAL,
    Invariant,
    States,
    SumInvariant,
    off_zero,
    prove,
)
from fsmdp.reductions.reduction import Reduced
from fsmdp.solver.engine import CandidatePolicy, Finding, Findings, LinearBound, Note
from fsmdp.solver.fitting import MOST_VARIABLES, backup_size, extensions, with_scopes
from fsmdp.solver.judge import arena_of

LARGEST_BACKUP = 2**12
"""Numbers in the backups of a function."""

MOST_CANDIDATES = 400
"""Scopes whose functions are scored in a round."""

GROWTH, LEAST = 3, 3
"""A basis grows by one function for so many that it has, and by so many at least."""

SHARE = 1e-2
"""A program is solved until what it can still gain is less than this share of the gap."""

USELESS = 1e-9
"""A function whose weights are all smaller, times its size in rewards, is dropped."""

PATIENCE = 4
"""Times that a basis may grow, ever faster, without a tighter bound before it is given up."""

FALL = 1e-5
"""A bound that falls by less, relative to itself, has not."""

NOTHING = 1e-7
"""A slope smaller than this, in values of the constant at every step, is rounding."""


MOST_ENTRIES = 2**23
"""Table entries of a step up to which mini-buckets are widened."""


class Tightening:
    """The present basis of one model, with the weights and cuts of its last program.

    `below` says what a policy is known to earn, so that nothing is solved more exactly than makes
    a difference.
    """

    def __init__(
        self,
        model: FactoredMDP,
        basis: Basis,
        problem_of: Callable[[Basis, Clock], Problem],
        below: Callable[[], float] | None = None,
        blocks: Blocks | None = None,
        share: float = SHARE,
        grows: bool = True,
        widens: bool = True,
    ) -> None:
        self.model, self._below, self._share = model, below, share
        self._problem_of = problem_of
        self._first = basis
        self._blocks = blocks
        self.problem: Problem | None = None
        self.found: BundleSolution | None = None
        self._most_variables = MOST_VARIABLES
        self._idle = 0  # times in a row that growth has not made the bound fall
        # How fast the bound fell at the last try, by work and not by time: a seed decides all.
        tries = {"refine": True, "widen": widens, "grow": grows}
        self._rates = {name: np.inf for name, allowed in tries.items() if allowed}
        self._room: Room | None = None  # that mini-buckets have been given

    @property
    def basis(self) -> Basis:
        """Functions at present."""
        return self._first if self.problem is None else self.problem.network.basis

    @property
    def value(self) -> float:
        """The bound at present, before it is certified."""
        assert self.found is not None
        return self.found.value

    @property
    def blocks(self) -> Blocks:
        """How steps share weights at present."""
        assert self._blocks is not None
        return self._blocks

    def begin(self, clock: Clock) -> BundleSolution:
        """The bound of the first basis."""
        self.problem = self._problem_of(self._first, clock)
        if self._blocks is None:
            self._blocks = coarse_blocks(self.problem.network)
        self.found = self._minimised(self.problem, None, None, clock)
        return self.found

    def advance(self, clock: Clock) -> str | None:
        """Grow, refine or widen, whichever made the bound fall fastest; None if nothing is left."""
        assert self.found is not None
        tries = {"grow": self.grow, "refine": self.refine, "widen": self.widen}
        while self._rates:
            choice = max(self._rates, key=self._rates.__getitem__)
            before = self.found.value
            del self._rates[choice]  # and back to the end: of equals, the one not tried last
            if tries[choice](clock):
                self._rates[choice] = max(0.0, before - self.found.value) / self._work()
                return choice
        return None

    def _work(self) -> float:
        """What the last program took, roughly: oracles and masters of all rounds."""
        assert self.problem is not None
        assert self.found is not None
        columns, links = self.found.shared.shape[1], len(self.blocks.links)
        oracle = self.problem.network.elimination.schedule.n_terms
        return float((1 + self.found.rounds) * links * (oracle + 100.0 * columns**2))

    def refine(self, clock: Clock) -> bool:
        """Divide the blocks; False if every step is one already."""
        assert self.problem is not None
        assert self.found is not None
        if self.blocks.is_finest:
            return False
        finer = self.blocks.divided()
        start = divided(self.found, self.blocks, finer)
        self._blocks = finer
        found = self._minimised(self.problem, start.shared, start.cuts, clock)
        # Where rows end badly, what was there before is as good.
        self.found = found if found.value <= start.value else start
        return True

    def widen(self, clock: Clock) -> bool:
        """Larger mini-buckets where these lose most; False if there is no room, or none are split.

        Cuts are of the mini-buckets that they were made with, and are left behind.
        """
        assert self.problem is not None
        assert self.found is not None
        network = self.problem.network
        if network.elimination.is_exact:
            return False
        slack = self._slack(self.problem, clock)
        wider = widened(network.elimination, slack, MOST_ENTRIES)
        if wider is None:
            return False
        problem = replace(self.problem, network=replace(network, elimination=wider))
        found = self._minimised(problem, self.found.shared, None, clock)
        if found.value > self.found.value:
            return False
        self.problem, self.found, self._room = problem, found, wider.room
        return True

    def _slack(self, problem: Problem, clock: Clock) -> Floats:
        """What mini-buckets add to the bound, by the variable that they max out."""
        assert self.found is not None
        network, links = problem.network, self.blocks.links
        slack = np.zeros(network.elimination.network.n_variables)
        pairs = pairs_of(self.blocks, self.found.shared)
        worst = excesses_of(network, problem.intervals, pairs, clock=clock)
        for link, one in zip(links, worst, strict=True):
            slack += link.weight * one.slack(one.action)
        return slack

    def _laid_out(self, basis: Basis, clock: Clock) -> Problem:
        """The problem of another basis, with the room that mini-buckets have been given."""
        problem = self._problem_of(basis, clock)
        elimination = problem.network.elimination
        if self._room is None or elimination.is_exact:
            return problem
        try:
            wider = with_room(elimination, self._room)
        except WidthError:
            return problem
        if wider.n_rows > MOST_ENTRIES:
            return problem
        return replace(problem, network=replace(problem.network, elimination=wider))

    def grow(self, clock: Clock, batch: int | None = None) -> bool:
        """Add the functions of the steepest slopes, and drop useless ones; False if there are none.

        The new program starts from the weights of the last, so that its value is no larger, but for
        what mini-buckets may cost. Then it is given up and the last one stays.
        """
        assert self.problem is not None
        assert self.found is not None
        if self._idle >= PATIENCE:
            return False
        chosen = self.candidates(clock, batch)
        while len(chosen) == 1 and self._most_variables < len(self.model.variables):
            self._most_variables += 1
            chosen = self.candidates(clock, batch)
        if len(chosen) == 1:
            return False
        # Several may be of use together that are of none alone.
        kept = [*range(len(self.basis))] if self._idle else self._useful()
        tables = [self.basis.tables[j] for j in kept]
        basis = Basis([*tables[1:], *chosen.tables[1:]])
        problem = self._laid_out(basis, clock)
        start = np.zeros((self.blocks.n_blocks, len(basis)))
        start[:, : len(kept)] = self.found.shared[:, kept]
        found = self._minimised(problem, start, self.found.held, clock)
        if found.value > self.found.value + FALL * abs(self.found.value):
            return False
        size = max(abs(self.found.value), 1e-3 * value_span(problem.network, problem.intervals))
        fell = self.found.value - found.value > FALL * size
        self._idle = 0 if fell else self._idle + 1
        self.problem, self.found = problem, found
        return True

    def candidates(self, clock: Clock, batch: int | None = None) -> Basis:
        """The functions that extend a scope of the basis and that the dual conserves worst."""
        assert self.found is not None
        scopes = [*dict.fromkeys(self.basis.scopes)]
        wider = extensions(self.model, scopes, LARGEST_BACKUP, self._most_variables)[
            :MOST_CANDIDATES
        ]
        basis = with_scopes(self.model, Basis([]), wider)
        known = {_key(table) for table in self.basis}
        basis = Basis([table for table in basis.tables[1:] if _key(table) not in known])
        if len(basis) == 1:
            return basis
        scores = self.scores(basis, clock)
        if batch is None:
            batch = max(LEAST, len(self.basis) // GROWTH) * 2**self._idle
        order = np.argsort(-scores, kind="stable")[:batch]
        steps = sum(link.weight for link in self.blocks.links)
        chosen = [j for j in order if j > 0 and scores[j] > NOTHING * steps]
        return Basis([basis.tables[j] for j in sorted(chosen)])

    def scores(self, basis: Basis, clock: Clock) -> Floats:
        """How badly the dual conserves the mean of each function."""
        assert self.found is not None
        parts = self.model, basis, self.blocks, self.found.cuts, self.found.measure
        return np.asarray(np.abs(slopes(*parts, clock.check)).sum(axis=0))

    def _minimised(
        self, problem: Problem, start: Floats | None, cuts: Cuts | None, clock: Clock
    ) -> BundleSolution:
        parts = problem.network, problem.intervals, problem.means, self.blocks
        if prefers_rows(problem.network, self.blocks):
            return minimise_by_rows(*parts, clock)
        enough = 0.0
        if self.found is not None:
            value = self.found.value
            below = -np.inf if self._below is None else self._below()
            left = value - below if np.isfinite(below) else abs(value) / 10
            enough = self._share * max(0.0, left)
        return minimise(*parts, start, cuts, enough=enough, clock=clock)

    def _useful(self) -> list[int]:
        """Functions with a weight at some step; the constant always is one."""
        assert self.problem is not None
        assert self.found is not None
        sizes = np.abs(self.found.shared).max(axis=0) * self.problem.network.function_sizes
        useful = sizes > USELESS * reward_scale(self.problem.intervals)
        return [j for j in range(len(self.basis)) if j == 0 or useful[j]]


def _key(table: object) -> tuple[object, ...]:
    return table.scope, table.values.tobytes()  # type: ignore[attr-defined]


EPISODES = 200
"""At random, and as many of doing nothing: what they meet need not be proved impossible."""

MOST_NUMBERS = 2**22
"""Of all states that are met: episodes are fewer where they are long."""

MOST_TABLES = 4000
"""Tables that are looked at: of single variables first, then of pairs."""

MOST_COUNTED, MOST_FAMILIES = 40, 8
"""Variables of a sum, and families of variables of which two are counted together."""


def find_invariants(
    model: FactoredMDP, seed: int = 0, check: Callable[[], None] | None = None
) -> tuple[Invariant, ...]:
    """What holds at the start and after every step, whatever is done: proved, by one step.

    Values that a variable never takes; values of two variables that a mechanism or a reward looks
    at together which never go together; and limits on how many of the variables that are called
    alike are off 0. Those that episodes at random or of doing nothing contradict are left out; the
    strongest of the rest are proved. There may be others. `check` may raise to end it.
    Cost: the episodes, and local eliminations (see `fsmdp.reductions.invariants.prove`).
    """
    check_model(model, "invariants")
    check = check or _go_on
    states = _met(model, seed, check)
    tables = {}
    for scope in _scopes(model):
        check()
        table = np.zeros([model.sizes[p] for p in scope], dtype=np.bool_)
        table[tuple(states[:, p] for p in scope)] = True
        if not table.all():
            tables[scope] = table
    return prove(model, tables, _sums(model, states), check)


def _go_on() -> None:
    """Nothing ends the search early."""


def _met(model: FactoredMDP, seed: int, check: Callable[[], None]) -> States:
    """The states of some episodes, if they are not very long, and one with which they may start."""
    arena = arena_of(model)
    numbers = arena.steps * len(model.sizes)
    episodes = min(EPISODES, MOST_NUMBERS // numbers)
    start = [int(one.argmax()) for one in model.initial_distributions()]
    parts = [np.array([start], dtype=np.int64)]
    if not episodes:
        return parts[0]
    for number, policy in enumerate(("random", model.idle_action())):
        arrays = array_policy(policy, model, policy).compiled()
        assert arrays is not None
        stream = derived_seed(seed, Purpose.INVARIANTS, number)
        met = arena.states(arrays, episodes, stream, check)
        parts.append(met.reshape(-1, met.shape[-1]))
    return np.concatenate(parts)


def _scopes(model: FactoredMDP) -> list[Scope]:
    """Variables, and pairs of them that a mechanism or a reward looks at, of small tables."""
    n_variables, sizes = len(model.sizes), model.sizes
    found: dict[Scope, None] = {(p,): None for p in range(n_variables)}
    scopes = [tuple(sorted({p, *model.parents(p)})) for p in range(n_variables)]
    scopes += [table.scope for means in model.reward_means for table in means]
    for scope in scopes:
        found.update(dict.fromkeys(combinations([p for p in scope if p < n_variables], 2)))
    small = [s for s in found if table_size(sizes[p] for p in s) <= LARGEST_LOCAL]
    return sorted(small, key=len)[:MOST_TABLES]


def _sums(model: FactoredMDP, states: States) -> list[SumInvariant]:
    """Families of variables, and pairs of families, of which never all or none were off 0."""
    families: dict[str, list[int]] = {}
    for position, variable in enumerate(model.variables):
        families.setdefault(family(variable.name), []).append(position)
    groups = [tuple(members) for members in families.values()]
    if len(groups) <= MOST_FAMILIES:
        groups += [tuple(sorted((*a, *b))) for a, b in combinations(groups, 2)]
    found = []
    off: Booleans = states > 0
    for scope in groups:
        counts = off_zero(scope, model.sizes)
        sums = off[:, list(scope)].sum(axis=1)
        one = SumInvariant(scope, counts, int(sums.min()), int(sums.max()))
        few = 1 < len(scope) <= MOST_COUNTED and one.total <= LARGEST_TOTAL
        if few and (one.least > 0 or one.most < one.total):
            found.append(one)
    return found


LARGEST_REGION = 2**8
"""Assignments of a region, and so its functions."""
"""Numbers in the backups of one of them."""

MOST_REGIONS = 64
"""Sets of variables that are looked at."""


def regions_of(model: FactoredMDP) -> list[Scope]:
    """For each set of variables that the same actions move, it and its nearest neighbours.

    Nearest are those that most mechanisms and rewards look at together with what is moved; of
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
    for members in list(moved.values())[:MOST_REGIONS]:
        ties = np.zeros(n_variables, dtype=np.int64)
        for scope in scopes:
            if scope.intersection(members):
                ties[list(scope)] += 1
        region = list(members)
        near = [p for p in np.flatnonzero(ties).tolist() if p not in members]
        for position in sorted(near, key=lambda p: (-ties[p], not is_drawn[p], p)):
            wider = tuple(sorted((*region, position)))
            fits = table_size(sizes[p] for p in wider) <= LARGEST_REGION
            if fits and backup_size(model, wider) <= LARGEST_BACKUP:
                region.append(position)
        whole = tuple(sorted(region))
        if len(whole) > 1 and table_size(sizes[p] for p in whole) <= LARGEST_REGION:
            found[whole] = backup_size(model, whole)
    return sorted(found, key=found.__getitem__)


FIRST_SHARE, BOUNDING_SHARE, REGION_SHARE = 0.6, 0.3, 0.1
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
        share = FIRST_SHARE if self._next == 1 else BOUNDING_SHARE if program.acts else REGION_SHARE
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

            below = self._terms.below
            tightening = Tightening(
                program.reduced.model,
                basis,
                problem_of,
                below,
                grows=program.grows,
                widens=self._terms.options["mini_bucket"] is None,
            )
            tightening.begin(clock)
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
            began, part = time.perf_counter(), clock.share(STAGES_SHARE)
            problem = self._problem_of(program, (), basis, part)
            expected = 0.0
            if may_go_by_stages(problem):
                yield from self._if_solved(program, Stagewise().solve(problem, part))
                expected = STAGES_TO_ALL * (time.perf_counter() - began)
            network, left = problem.network, clock.left()
            few = network.n_weight_rows * network.elimination.n_rows <= MOST_JOINT_ROWS
            if few and (left is None or expected < left):
                plan = Joint().solve(problem, clock.share(STAGES_SHARE))
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
            budget=BUDGET if exact else None,
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
            part = clock.share(INVARIANTS_SHARE)
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
        return bool(self._lowest >= trivial.upper_bound - FLAT * scale)

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
        problem, found = tightening.problem, tightening.found
        assert problem is not None
        assert found is not None
        # What was found in time is certified in what is left of all the time.
        return self._bound(program, plan_of(problem, tightening.blocks, found, self.clock))
