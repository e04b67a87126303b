"""A bound that tightens: the basis grows where the dual says that the bound is loose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from fsmdp.elimination import Room, widened, with_room
from fsmdp.errors import WidthError
from fsmdp.model.basis import Basis
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.tables import Floats
from fsmdp.planning.bellman import reward_scale, value_span
from fsmdp.planning.bundle import (
    Blocks,
    BundleSolution,
    coarse_blocks,
    minimise,
    minimise_by_rows,
    pairs_of,
    prefers_rows,
    slopes,
)
from fsmdp.planning.bundled import divided
from fsmdp.planning.certificate import excesses_of
from fsmdp.planning.clock import Clock
from fsmdp.planning.inequalities import Cuts
from fsmdp.planning.problem import Problem
from fsmdp.solver.growth import MOST_VARIABLES, extensions, with_scopes

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
