"""Candidates are judged by simulation on common random numbers, the winner again on fresh ones."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fsmdp.bounds.clock import Clock, Stopped
from fsmdp.bounds.gap import Candidate
from fsmdp.bounds.plan import PlannedPolicy
from fsmdp.errors import SizeError
from fsmdp.foundation.checks import plural, show_count, show_memory
from fsmdp.foundation.streams import Purpose, derived_seed, generator
from fsmdp.foundation.threads import cores, in_threads
from fsmdp.model.lookup import Integers
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.tables import Floats
from fsmdp.policies.arrays import CompiledPolicy
from fsmdp.simulation.rollout import Averaged, episode_steps, standard_error
from fsmdp.simulation.simulate import (
    CompiledModel,
    compile_model,
    new_record,
    simulate,
    simulate_each,
)

CHUNK = 50
"""Episodes that share a generator: small enough that time limits are noticed between them."""

TOGETHER = 8  # chunks of short episodes that one call of compiled code runs, if there are many

LOOK_AFTER = 5_000_000
"""Variables drawn between looks at the clock, roughly."""

MOST_RECORDED = 2**24
"""Numbers in the states of all episodes that are recorded at a time: 64 MiB."""


@dataclass(frozen=True, slots=True, eq=False)
class Arena:
    """A model, compiled, and how long its episodes are."""

    model: FactoredMDP
    compiled: CompiledModel
    steps: int

    def returns(
        self,
        policy: CompiledPolicy,
        episodes: int,
        seed: int,
        first: int = 0,
        check: Callable[[], None] | None = None,
    ) -> Floats:
        """Returns of the episodes from number `first` on; the same numbers are the same episodes.

        `first` and `episodes` are multiples of 50. Policies that are tried with one seed meet the
        same random numbers as long as they do the same. `check` may raise to end it.
        """
        found, begin = np.zeros(episodes), first // CHUNK
        chunks = -(-episodes // CHUNK)
        drawn = TOGETHER * CHUNK * self.steps * self.compiled.n_slots
        groups = episodes // (TOGETHER * CHUNK) if drawn <= LOOK_AFTER else 0
        if groups < cores() + 1:
            groups = 0  # the last would keep one core busy alone

        def run(part: int) -> None:
            if part < groups:
                returns = found[part * TOGETHER * CHUNK :][: TOGETHER * CHUNK]
                self._run_together(policy, seed, begin + part * TOGETHER, returns, check)
            else:
                chunk = part + groups * (TOGETHER - 1)
                self._run(policy, seed, begin + chunk, found[chunk * CHUNK :][:CHUNK], check)

        in_threads(run, chunks - groups * (TOGETHER - 1))
        return found

    def returns_in_time(
        self, policy: CompiledPolicy, episodes: int, seed: int, clock: Clock
    ) -> Floats:
        """Returns of as many of the episodes as are finished in time.

        At least as many as are drawn between two looks at the clock, which may be none.
        """
        found = np.full(episodes, np.nan)

        def run(chunk: int) -> None:
            with suppress(Stopped):
                self._run(policy, seed, chunk, found[chunk * CHUNK :][:CHUNK], clock.check)

        in_threads(run, -(-episodes // CHUNK))
        if np.isnan(found).all():
            few = LOOK_AFTER // (self.steps * self.compiled.n_slots)
            self._run(policy, seed, 0, found[: min(few, CHUNK)], None)
        return np.asarray(found[~np.isnan(found)])

    def states(
        self,
        policy: CompiledPolicy,
        episodes: int,
        seed: int,
        check: Callable[[], None] | None = None,
    ) -> Integers:
        """States met in so many episodes: (episodes, steps, n_variables).

        Where they would be more than MOST_RECORDED numbers, episodes are fewer, or, with an
        infinite horizon, end earlier: later steps count for less. `check` may raise to end it.
        """
        n = self.compiled.n_variables
        episodes, steps = self._recorded(episodes)
        small: Any = np.int32
        found: Integers = np.zeros((episodes, steps, n), dtype=small)

        def run(part: int) -> None:
            self._record(policy, seed, part, found[part * CHUNK :][:CHUNK], check)

        in_threads(run, -(-episodes // CHUNK))
        return found

    def _recorded(self, episodes: int) -> tuple[int, int]:
        """Episodes, and steps of each, whose states may be recorded at a time."""
        n, steps = self.compiled.n_variables, self.steps
        if self.model.horizon is None:
            steps = min(steps, max(1, MOST_RECORDED // (episodes * n)))
        if steps * n > MOST_RECORDED:
            raise SizeError(
                f"fitting: the states of one episode are {steps} steps x {plural(n, 'variable')} = "
                f"{show_count(steps * n)} numbers ({show_memory(steps * n)}), expected at most "
                f"{show_count(MOST_RECORDED)}; use a shorter horizon, or method='programs'."
            )
        return min(episodes, MOST_RECORDED // (steps * n)), steps

    def _record(
        self,
        policy: CompiledPolicy,
        seed: int,
        chunk: int,
        states: Integers,
        check: Callable[[], None] | None,
    ) -> None:
        """Write the states of a chunk's episodes: some episodes at a time, or some steps of one."""
        model, discount, steps = self.compiled, self.model.discount, states.shape[1]
        values = np.zeros(model.n_slots, dtype=np.int64)
        rng = generator(seed, Purpose.SIMULATION, chunk)
        piece = min(steps, max(1, LOOK_AFTER // len(values)))
        together = min(len(states), max(1, LOOK_AFTER // (steps * len(values))))
        record = new_record(model, together, piece)
        for at in range(0, len(states), together):
            some = states[at : at + together]
            returns = np.zeros(len(some))
            for first in range(0, steps, piece):
                if check is not None:
                    check()
                met = some[:, first : first + piece]
                count, begins = met.shape[1], first == 0
                simulate(
                    model, policy, rng, discount, begins, first, count, values, returns, record
                )
                met[:] = record.states[: len(some), :count, : met.shape[2]]

    def _run_together(
        self,
        policy: CompiledPolicy,
        seed: int,
        chunk: int,
        returns: Floats,
        check: Callable[[], None] | None,
    ) -> None:
        if check is not None:
            check()
        rngs = tuple(generator(seed, Purpose.SIMULATION, chunk + i) for i in range(TOGETHER))
        simulate_each(self.compiled, policy, rngs, self.model.discount, self.steps, returns)

    def _run(
        self,
        policy: CompiledPolicy,
        seed: int,
        chunk: int,
        returns: Floats,
        check: Callable[[], None] | None,
    ) -> None:
        unrecorded = new_record(self.compiled, 0, 0)
        values = np.zeros(self.compiled.n_slots, dtype=np.int64)
        rng = generator(seed, Purpose.SIMULATION, chunk)
        discount, steps = self.model.discount, self.steps
        # Episodes follow one another in the generator, so that pieces are the same episodes.
        piece = max(1, LOOK_AFTER // (steps * len(values)))
        for first in range(0, len(returns), piece):
            if check is not None:
                check()
            part = returns[first : first + piece]
            simulate(self.compiled, policy, rng, discount, True, 0, steps, values, part, unrecorded)


def arena_of(model: FactoredMDP) -> Arena:
    """Compile a model. Cost: its size."""
    return Arena(model, compile_model(model), episode_steps(model))


SCREENING = 200
"""Episodes after which a candidate that is behind is given up."""

COMPARING = 1000
"""Episodes on which a candidate must be ahead to become the incumbent."""

HOPELESS = 2.0
"""Standard errors of the paired difference by which a candidate may be behind after screening."""


@dataclass(frozen=True, slots=True, eq=False)
class Judged(Averaged):
    """A candidate and what it was seen to earn."""

    name: str
    policy: PlannedPolicy = field(repr=False)
    arrays: CompiledPolicy = field(repr=False)
    returns: Floats = field(repr=False)


class Judge:
    """Keeps the best candidate so far. All meet the same episodes, so differences are paired.

    Of the others it keeps what they earned, and no policies, which can be large.
    """

    def __init__(self, arena: Arena, seed: int) -> None:
        self.arena = arena
        self.seed = seed
        self.tried: list[Candidate] = []
        self.incumbent: Judged | None = None

    def consider(
        self,
        name: str,
        policy: PlannedPolicy,
        arrays: CompiledPolicy,
        seconds: float,
        check: Callable[[], None] | None = None,
    ) -> Judged:
        """Judge a candidate, which may become the incumbent."""
        seed = derived_seed(self.seed, Purpose.SCREENING)
        returns = self.arena.returns(arrays, SCREENING, seed, 0, check)
        best = self.incumbent
        if best is None or not _is_hopeless(returns - best.returns[:SCREENING]):
            more = self.arena.returns(arrays, COMPARING - SCREENING, seed, SCREENING, check)
            returns = np.concatenate([returns, more])
        found = Judged(name, policy, arrays, returns)
        error, episodes = found.standard_error, len(returns)
        self.tried.append(Candidate(name, found.mean, error, episodes, seconds))
        if best is None or (len(returns) == COMPARING and found.mean > best.mean):
            self.incumbent = found
        return found

    def take(self, name: str, policy: PlannedPolicy) -> None:
        """Make a candidate the incumbent whose value is known without episodes."""
        arrays = policy.compiled()
        assert arrays is not None
        self.incumbent = Judged(name, policy, arrays, np.zeros(0))

    def judge_again(self, episodes: int, clock: Clock) -> Floats:
        """Returns of the incumbent in fresh episodes, which did not help to choose it.

        Fewer if time is up; perhaps none.
        """
        assert self.incumbent is not None
        seed = derived_seed(self.seed, Purpose.FRESH)
        return self.arena.returns_in_time(self.incumbent.arrays, episodes, seed, clock)


def _is_hopeless(differences: Floats) -> bool:
    return float(differences.mean()) + HOPELESS * standard_error(differences) < 0.0
