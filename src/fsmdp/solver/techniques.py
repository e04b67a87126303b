"""Techniques that tighten the bound of a linear program, and what they work on.

A `Tightening` is the present basis of one model, with the weights and cuts of its last program. A
technique changes one thing about it (functions are added to the basis, blocks of steps are divided,
mini-buckets are widened) and solves again. To add one, derive from `BoundTechnique` and register
the class in `TECHNIQUES`; each `Tightening` has instances of its own.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from warnings import warn

import numpy as np

from fsmdp.bounds.bellman import reward_scale, value_span
from fsmdp.bounds.bundle import (
    Blocks,
    BundleSolution,
    coarse_blocks,
    divided,
    minimise,
    minimise_by_rows,
    pairs_of,
    slopes,
)
from fsmdp.bounds.certificate import excesses_of
from fsmdp.bounds.clock import NO_LIMIT, Clock, Stopped
from fsmdp.bounds.costs import prefers_rows
from fsmdp.bounds.inequalities import Cuts
from fsmdp.bounds.problem import Problem
from fsmdp.elimination import Room, widened, with_room
from fsmdp.errors import FsmdpError, FsmdpWarning, WidthError
from fsmdp.foundation.checks import clip
from fsmdp.foundation.registry import Registry
from fsmdp.foundation.streams import Purpose, derived_seed
from fsmdp.model.basis import Basis
from fsmdp.model.mdp import FactoredMDP, check_model
from fsmdp.model.projecting import Booleans
from fsmdp.model.supports import family
from fsmdp.model.tables import Floats, Table
from fsmdp.model.variables import Scope, table_size
from fsmdp.policies.resolve import array_policy, idle_policy
from fsmdp.reductions.invariants import (
    LARGEST_LOCAL,
    LARGEST_TOTAL,
    Invariant,
    States,
    SumInvariant,
    count_each_nonzero,
    prove,
)
from fsmdp.solver import parameters as tuned
from fsmdp.solver.fitting import extensions, with_scopes
from fsmdp.solver.judge import arena_of

log = logging.getLogger("fsmdp")


class BoundTechnique(ABC):
    """A way to a tighter bound; an instance belongs to one `Tightening` and may remember things."""

    @abstractmethod
    def applies(self, to: Tightening) -> bool:
        """Whether it can change anything; it is not asked again after a False."""

    @abstractmethod
    def run(self, to: Tightening, clock: Clock) -> bool:
        """Change one thing, solve, and `take` what was found; False if nothing is left to try.

        Raises `Stopped` when the clock says so.
        """

    def work(self, to: Tightening) -> float:
        """What the last run took, roughly, in additions: by default that of its program.

        By work and not by time, so that a seed decides which technique is next.
        """
        columns, links = to.found.shared.shape[1], len(to.blocks.links)
        oracle = to.problem.network.elimination.schedule.n_terms
        return float((1 + to.found.rounds) * links * (oracle + 100.0 * columns**2))


TECHNIQUES: Registry[type[BoundTechnique]] = Registry("bound technique")
"""By name, in the order in which they are tried first; then the fastest comes first."""


class Tightening:
    """The bound of one model at present: basis, blocks of steps, and the solution of its program.

    `below` says what a policy is known to earn, so that nothing is solved more exactly than makes
    a difference. `grows`: whether functions may be added; `widens`: whether mini-buckets may.
    """

    problem: Problem
    blocks: Blocks
    found: BundleSolution

    def __init__(
        self,
        model: FactoredMDP,
        basis: Basis,
        problem_of: Callable[[Basis, Clock], Problem],
        clock: Clock,
        below: Callable[[], float] | None = None,
        blocks: Blocks | None = None,
        share: float = tuned.BOUND_ACCURACY,
        grows: bool = True,
        widens: bool = True,
    ) -> None:
        self.model, self._below, self._share = model, below, share
        self._problem_of = problem_of
        self.grows, self.widens = grows, widens
        self.room: Room | None = None  # that mini-buckets have been given
        self.problem = problem_of(basis, clock)
        self.blocks = blocks or coarse_blocks(self.problem.network)
        self.found = self._minimised(self.problem, None, None, clock, 0.0)
        TECHNIQUES.installed()
        self.techniques = {name: technique() for name, technique in TECHNIQUES.items()}
        # How fast the bound fell at the last try; before the first, faster than anything.
        self._rates = dict.fromkeys(self.techniques, np.inf)

    @property
    def basis(self) -> Basis:
        """Functions at present."""
        return self.problem.network.basis

    @property
    def value(self) -> float:
        """The bound at present, before it is certified."""
        return self.found.value

    def advance(self, clock: Clock) -> str | None:
        """Run the technique that made the bound fall fastest; its name, None if nothing is left."""
        while self._rates:
            name = max(self._rates, key=self._rates.__getitem__)
            technique, before = self.techniques[name], self.value
            del self._rates[name]  # and back to the end: of equals, the one not tried last
            held = self.problem, self.found, self.blocks
            try:
                done = technique.applies(self) and technique.run(self, clock)
            except (Stopped, FsmdpError):
                raise
            except Exception as error:  # of a plug-in: what was there before still holds
                self.problem, self.found, self.blocks = held
                text = f"bound technique {name}: {type(error).__name__}: {clip(str(error))}"
                warn(f"plan: {text}; the bound is that of the others.", FsmdpWarning, stacklevel=2)
                continue
            if done:
                log.debug("bound technique %s: %g, then %g", name, before, self.value)
                self._rates[name] = max(0.0, before - self.value) / technique.work(self)
                return name
        return None

    def take(self, problem: Problem, found: BundleSolution) -> None:
        """Go on from another problem and its solution."""
        self.problem, self.found = problem, found

    def minimised(
        self, problem: Problem, start: Floats | None, cuts: Cuts | None, clock: Clock
    ) -> BundleSolution:
        """Solve a problem with the present blocks, as exactly as makes a difference.

        `start` are weights of the blocks, (n_blocks, n_functions), and `cuts` those to begin with.
        """
        below = -np.inf if self._below is None else self._below()
        left = self.value - below if np.isfinite(below) else abs(self.value) / 10
        return self._minimised(problem, start, cuts, clock, self._share * max(0.0, left))

    def _minimised(
        self,
        problem: Problem,
        start: Floats | None,
        cuts: Cuts | None,
        clock: Clock,
        enough: float,
    ) -> BundleSolution:
        parts = problem.network, problem.intervals, problem.means, self.blocks
        if prefers_rows(problem.network, self.blocks):
            return minimise_by_rows(*parts, clock)
        return minimise(*parts, start, cuts, enough=enough, clock=clock)

    def laid_out(self, basis: Basis, clock: Clock) -> Problem:
        """The problem of another basis, with the room that mini-buckets have been given."""
        problem = self._problem_of(basis, clock)
        elimination = problem.network.elimination
        if self.room is None or elimination.is_exact:
            return problem
        try:
            wider = with_room(elimination, self.room)
        except WidthError:
            return problem
        if wider.n_rows > tuned.WIDENED_ENTRIES:
            return problem
        return replace(problem, network=replace(problem.network, elimination=wider))


class DivideBlocks(BoundTechnique):
    """Every block of steps in two, so that more steps have weights of their own."""

    def applies(self, to: Tightening) -> bool:
        """Unless every step is a block already."""
        return not to.blocks.is_finest

    def run(self, to: Tightening, clock: Clock) -> bool:
        """From the weights and cuts of the undivided blocks."""
        finer = to.blocks.divided()
        start = divided(to.found, to.blocks, finer)
        to.blocks = finer
        found = to.minimised(to.problem, start.shared, start.cuts, clock)
        # Where rows end badly, what was there before is as good.
        to.take(to.problem, found if found.value <= start.value else start)
        return True


class WidenMiniBuckets(BoundTechnique):
    """Larger mini-buckets where these lose most.

    Cuts are of the mini-buckets that they were made with, and are left behind.
    """

    def applies(self, to: Tightening) -> bool:
        """Where elimination is not exact, and the size of mini-buckets is the solver's choice."""
        return to.widens and not to.problem.network.elimination.is_exact

    def run(self, to: Tightening, clock: Clock) -> bool:
        """False if there is no room."""
        network = to.problem.network
        wider = widened(network.elimination, self._slack(to, clock), tuned.WIDENED_ENTRIES)
        if wider is None:
            return False
        problem = replace(to.problem, network=replace(network, elimination=wider))
        found = to.minimised(problem, to.found.shared, None, clock)
        if found.value > to.value:
            return False
        to.take(problem, found)
        to.room = wider.room
        return True

    def _slack(self, to: Tightening, clock: Clock) -> Floats:
        """What mini-buckets add to the bound, by the variable that they max out."""
        network, links = to.problem.network, to.blocks.links
        slack = np.zeros(network.elimination.network.n_variables)
        pairs = pairs_of(to.blocks, to.found.shared)
        worst = excesses_of(network, to.problem.intervals, pairs, clock=clock)
        for link, one in zip(links, worst, strict=True):
            slack += link.weight * one.slack(one.action)
        return slack


class GrowBasis(BoundTechnique):
    """Functions of the steepest slopes are added, and useless ones dropped.

    The new program starts from the weights of the last, so that its value is no larger, but for
    what mini-buckets may cost. Then it is given up and the last one stays.
    """

    def __init__(self) -> None:
        self._most_variables = tuned.SCOPE_VARIABLES
        self._idle = 0  # times in a row that growth has not made the bound fall

    def applies(self, to: Tightening) -> bool:
        """Unless the basis is given, or has grown in vain too often."""
        return to.grows and self._idle < tuned.BOUND_PATIENCE

    def run(self, to: Tightening, clock: Clock, batch: int | None = None) -> bool:
        """False if no function would help."""
        chosen = self.candidates(to, clock, batch)
        while len(chosen) == 1 and self._most_variables < len(to.model.variables):
            self._most_variables += 1
            chosen = self.candidates(to, clock, batch)
        if len(chosen) == 1:
            return False
        # Several may be of use together that are of none alone.
        kept = [*range(len(to.basis))] if self._idle else self._useful(to)
        tables = [to.basis.tables[j] for j in kept]
        basis = Basis([*tables[1:], *chosen.tables[1:]])
        problem = to.laid_out(basis, clock)
        start = np.zeros((to.blocks.n_blocks, len(basis)))
        start[:, : len(kept)] = to.found.shared[:, kept]
        found = to.minimised(problem, start, to.found.held, clock)
        if found.value > to.value + tuned.BOUND_FALL * abs(to.value):
            return False
        size = max(abs(to.value), 1e-3 * value_span(problem.network, problem.intervals))
        fell = to.value - found.value > tuned.BOUND_FALL * size
        self._idle = 0 if fell else self._idle + 1
        to.take(problem, found)
        return True

    def candidates(self, to: Tightening, clock: Clock, batch: int | None = None) -> Basis:
        """The functions that extend a scope of the basis and that the dual conserves worst."""
        scopes = [*dict.fromkeys(to.basis.scopes)]
        wider = extensions(to.model, scopes, tuned.BOUND_BACKUP_NUMBERS, self._most_variables)[
            : tuned.BOUND_CANDIDATES
        ]
        basis = with_scopes(to.model, Basis([]), wider)
        known = {_key(table) for table in to.basis}
        basis = Basis([table for table in basis.tables[1:] if _key(table) not in known])
        if len(basis) == 1:
            return basis
        parts = to.model, basis, to.blocks, to.found.cuts, to.found.measure
        scores = np.abs(slopes(*parts, clock.check)).sum(axis=0)
        if batch is None:
            batch = (
                max(tuned.BOUND_LEAST_GROWTH, len(to.basis) // tuned.BOUND_GROWTH_DIVISOR)
                * 2**self._idle
            )
        order = np.argsort(-scores, kind="stable")[:batch]
        steps = sum(link.weight for link in to.blocks.links)
        chosen = [j for j in order if j > 0 and scores[j] > tuned.ROUNDED_SLOPE * steps]
        return Basis([basis.tables[j] for j in sorted(chosen)])

    def _useful(self, to: Tightening) -> list[int]:
        """Functions with a weight at some step; the constant always is one."""
        sizes = np.abs(to.found.shared).max(axis=0) * to.problem.network.function_sizes
        useful = sizes > tuned.USELESS_WEIGHT * reward_scale(to.problem.intervals)
        return [j for j in range(len(to.basis)) if j == 0 or useful[j]]


def _key(table: Table) -> tuple[object, ...]:
    return table.scope, table.values.tobytes()


for _name, _technique in (
    ("divide-blocks", DivideBlocks),
    ("widen-mini-buckets", WidenMiniBuckets),
    ("grow-basis", GrowBasis),
):
    TECHNIQUES.register(_name, _technique)


def find_invariants(
    model: FactoredMDP, seed: int = 0, check: Callable[[], None] | None = None
) -> tuple[Invariant, ...]:
    """What holds at the start and after every step, whatever is done: proved, by one step.

    Values that a variable never takes; values of two variables that a mechanism or a reward looks
    at together which never go together; and limits on how many of the variables that are called
    alike are nonzero. Those that episodes at random or of doing nothing contradict are left out;
    the strongest of the rest are proved. There may be others. `check` may raise to end it.
    Cost: the episodes, and local eliminations (see `fsmdp.reductions.invariants.prove`).
    """
    check_model(model, "invariants")
    check = check or NO_LIMIT.check
    states = _met(model, seed, check)
    tables = {}
    for scope in _scopes(model):
        check()
        table = np.zeros([model.sizes[p] for p in scope], dtype=np.bool_)
        table[tuple(states[:, p] for p in scope)] = True
        if not table.all():
            tables[scope] = table
    return prove(model, tables, _sums(model, states), check)


def _met(model: FactoredMDP, seed: int, check: Callable[[], None]) -> States:
    """The states of some episodes, if they are not very long, and one with which they may start."""
    arena = arena_of(model)
    numbers = arena.steps * len(model.sizes)
    episodes = min(tuned.INVARIANT_EPISODES, tuned.INVARIANT_NUMBERS // numbers)
    start = [int(one.argmax()) for one in model.initial_distributions()]
    parts = [np.array([start], dtype=np.int64)]
    if not episodes:
        return parts[0]
    for number, policy in enumerate(("random", idle_policy(model))):
        arrays = array_policy("visiting", model, policy).compiled()
        assert arrays is not None
        stream = derived_seed(seed, Purpose.INVARIANTS, number)
        visited = arena.states(arrays, episodes, stream, check)
        parts.append(visited.reshape(-1, visited.shape[-1]))
    return np.concatenate(parts)


def _scopes(model: FactoredMDP) -> list[Scope]:
    """Variables, and pairs of them that a mechanism or a reward depends on, of small tables."""
    n_variables, sizes = len(model.sizes), model.sizes
    found: dict[Scope, None] = {(p,): None for p in range(n_variables)}
    scopes = [tuple(sorted({p, *model.parents(p)})) for p in range(n_variables)]
    scopes += [table.scope for means in model.reward_means for table in means]
    for scope in scopes:
        found.update(dict.fromkeys(combinations([p for p in scope if p < n_variables], 2)))
    small = [s for s in found if table_size(sizes[p] for p in s) <= LARGEST_LOCAL]
    return sorted(small, key=len)[: tuned.INVARIANT_TABLES]


def _sums(model: FactoredMDP, states: States) -> list[SumInvariant]:
    """Families of variables, and pairs of families, of which never all or none were nonzero."""
    families: dict[str, list[int]] = {}
    for position, variable in enumerate(model.variables):
        families.setdefault(family(variable.name), []).append(position)
    groups = [tuple(members) for members in families.values()]
    if len(groups) <= tuned.SUM_FAMILIES:
        groups += [tuple(sorted((*a, *b))) for a, b in combinations(groups, 2)]
    found = []
    off: Booleans = states > 0
    for scope in groups:
        counts = count_each_nonzero(scope, model.sizes)
        sums = off[:, list(scope)].sum(axis=1)
        one = SumInvariant(scope, counts, int(sums.min()), int(sums.max()))
        few = 1 < len(scope) <= tuned.SUM_VARIABLES and one.total <= LARGEST_TOTAL
        if few and (one.least > 0 or one.most < one.total):
            found.append(one)
    return found
