"""Candidates are judged by simulation on common random numbers, the winner again on fresh ones."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from fsmdp.bounds.clock import NO_LIMIT, Clock, Stopped
from fsmdp.bounds.gap import Candidate
from fsmdp.bounds.plan import PlannedPolicy
from fsmdp.errors import SizeError
from fsmdp.foundation.checks import plural, show_count, show_memory
from fsmdp.foundation.streams import Purpose, derived_seed, generator
from fsmdp.foundation.threads import cores, in_threads
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.tables import Floats, Integers
from fsmdp.policies.arrays import CompiledPolicy
from fsmdp.policies.joint import decision_work
from fsmdp.simulation.rollout import Averaged, episode_steps, standard_error
from fsmdp.simulation.simulate import (
    CompiledModel,
    check_followed,
    compile_model,
    new_record,
    simulate,
    simulate_each,
)
from fsmdp.solver import parameters as tuned

Check = Callable[[], None]


class _Play(NamedTuple):
    """A policy to follow, the random numbers that it meets, and what may end it by raising."""

    policy: CompiledPolicy
    seed: int
    check: Check

    def rng(self, chunk: int) -> np.random.Generator:
        """The generator of a chunk's episodes."""
        return generator(self.seed, Purpose.SIMULATION, chunk)


@dataclass(frozen=True, slots=True, eq=False)
class Arena:
    """A model, compiled, and how long its episodes are.

    `check` may raise to end an evaluation.
    """

    model: FactoredMDP
    compiled: CompiledModel
    steps: int

    def returns(
        self,
        policy: CompiledPolicy,
        episodes: int,
        seed: int,
        first: int = 0,
        check: Check = NO_LIMIT.check,
    ) -> Floats:
        """Returns of the episodes from number `first` on; the same numbers are the same episodes.

        `first` and `episodes` are multiples of 50. Policies that are tried with one seed meet the
        same random numbers as long as they do the same.
        """
        size, several = tuned.CHUNK_EPISODES, tuned.CHUNKS_TOGETHER
        found, begin, play = np.zeros(episodes), first // size, _Play(policy, seed, check)
        drawn = several * size * self.steps * self.work(policy)
        groups = episodes // (several * size) if drawn <= tuned.DRAWS_BETWEEN_CHECKS else 0
        if groups < cores() + 1:
            groups = 0  # the last would keep one core busy alone

        def run(part: int) -> None:
            if part < groups:
                at = part * several
                self._run_together(play, begin + at, found[at * size :][: several * size])
            else:
                at = part + groups * (several - 1)
                self._run(play, begin + at, found[at * size :][:size])

        in_threads(run, -(-episodes // size) - groups * (several - 1))
        return found

    def returns_in_time(
        self, policy: CompiledPolicy, episodes: int, seed: int, clock: Clock
    ) -> Floats:
        """Returns of as many of the episodes as are finished in time.

        At least as many as are drawn between two checks of the clock, which may be none.
        """
        size, found = tuned.CHUNK_EPISODES, np.full(episodes, np.nan)

        def run(chunk: int) -> None:
            with suppress(Stopped):
                self._run(_Play(policy, seed, clock.check), chunk, found[chunk * size :][:size])

        in_threads(run, -(-episodes // size))
        if np.isnan(found).all():
            few = tuned.DRAWS_BETWEEN_CHECKS // (self.steps * self.work(policy))
            self._run(_Play(policy, seed, NO_LIMIT.check), 0, found[: min(few, size)])
        return np.asarray(found[~np.isnan(found)])

    def states(
        self, policy: CompiledPolicy, episodes: int, seed: int, check: Check = NO_LIMIT.check
    ) -> Integers:
        """States visited in so many episodes: (episodes, steps, n_variables).

        Where they would be more than RECORDED_NUMBERS, episodes are fewer, or, with an infinite
        horizon, end earlier: later steps count for less.
        """
        size, play = tuned.CHUNK_EPISODES, _Play(policy, seed, check)
        episodes, steps = self._recorded(episodes)
        small: Any = np.int32
        found: Integers = np.zeros((episodes, steps, self.compiled.n_variables), dtype=small)
        in_threads(
            lambda chunk: self._record(play, chunk, found[chunk * size :][:size]),
            -(-episodes // size),
        )
        return found

    def _recorded(self, episodes: int) -> tuple[int, int]:
        """Episodes, and steps of each, whose states may be recorded at a time."""
        n, steps = self.compiled.n_variables, self.steps
        if self.model.horizon is None:
            steps = min(steps, max(1, tuned.RECORDED_NUMBERS // (episodes * n)))
        if steps * n > tuned.RECORDED_NUMBERS:
            raise SizeError(
                f"fitting: the states of one episode are {steps} steps x {plural(n, 'variable')} = "
                f"{show_count(steps * n)} numbers ({show_memory(steps * n)}), expected at most "
                f"{show_count(tuned.RECORDED_NUMBERS)}; use a shorter horizon, or "
                "method='programs'."
            )
        return min(episodes, tuned.RECORDED_NUMBERS // (steps * n)), steps

    def _record(self, play: _Play, chunk: int, states: Integers) -> None:
        """Write the states of a chunk's episodes: some episodes at a time, or some steps of one."""
        model, discount, steps = self.compiled, self.model.discount, states.shape[1]
        values, rng = np.zeros(model.n_slots, dtype=np.int64), play.rng(chunk)
        work = self.work(play.policy)
        piece = min(steps, max(1, tuned.DRAWS_BETWEEN_CHECKS // work))
        together = max(1, tuned.DRAWS_BETWEEN_CHECKS // (steps * work))
        record = new_record(model, min(len(states), together), piece)
        for at in range(0, len(states), together):
            some = states[at : at + together]
            returns = np.zeros(len(some))
            for first in range(0, steps, piece):
                play.check()
                met = some[:, first : first + piece]
                where = first == 0, first, met.shape[1]
                found = simulate(model, play.policy, rng, discount, *where, values, returns, record)
                check_followed(self.model, found, values)
                met[:] = record.states[: len(some), : met.shape[1], : met.shape[2]]

    def _run_together(self, play: _Play, chunk: int, returns: Floats) -> None:
        play.check()
        rngs = tuple(play.rng(chunk + i) for i in range(tuned.CHUNKS_TOGETHER))
        parts = self.compiled, play.policy, rngs, self.model.discount, self.steps, returns
        values, found = simulate_each(*parts)
        check_followed(self.model, found, values)

    def _run(self, play: _Play, chunk: int, returns: Floats) -> None:
        model, unrecorded, rng = self.compiled, new_record(self.compiled, 0, 0), play.rng(chunk)
        values = np.zeros(model.n_slots, dtype=np.int64)
        discount, work = self.model.discount, self.work(play.policy)
        # Episodes follow one another in the generator, so that pieces are the same episodes.
        piece = max(1, tuned.DRAWS_BETWEEN_CHECKS // (self.steps * work))
        at_once = min(self.steps, max(1, tuned.DRAWS_BETWEEN_CHECKS // work))
        earned = np.zeros(piece)
        for first in range(0, len(returns), piece):
            part = returns[first : first + piece]
            for step in range(0, self.steps, at_once):
                play.check()
                own = earned[: len(part)]
                where = discount, step == 0, step, min(at_once, self.steps - step)
                found = simulate(model, play.policy, rng, *where, values, own, unrecorded)
                check_followed(self.model, found, values)
                part[:] = own if step == 0 else part + discount**step * own

    def work(self, policy: CompiledPolicy) -> int:
        """What a step takes, in random draws: those of the model, and what a decision takes."""
        return self.compiled.n_slots + decision_work(policy.joint) // tuned.ADDITIONS_PER_DRAW


def arena_of(model: FactoredMDP) -> Arena:
    """Compile a model. Cost: its size."""
    return Arena(model, compile_model(model), episode_steps(model))


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
        check: Check = NO_LIMIT.check,
    ) -> Judged:
        """Judge a candidate, which may become the incumbent."""
        seed = derived_seed(self.seed, Purpose.SCREENING)
        few, many = tuned.SCREENING_EPISODES, tuned.COMPARING_EPISODES
        returns = self.arena.returns(arrays, few, seed, 0, check)
        best = self.incumbent
        if best is None or not _is_behind(returns - best.returns[:few]):
            more = self.arena.returns(arrays, many - few, seed, few, check)
            returns = np.concatenate([returns, more])
        found = Judged(name, policy, arrays, returns)
        error, episodes = found.standard_error, len(returns)
        self.tried.append(Candidate(name, found.mean, error, episodes, seconds))
        if best is None or (len(returns) == many and found.mean > best.mean):
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


def _is_behind(differences: Floats) -> bool:
    return float(differences.mean()) + tuned.SCREENING_ERRORS * standard_error(differences) < 0.0
