"""Where policies are tried: a model compiled once, episodes on all cores, the same for a seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fsmdp.foundation.streams import Purpose, generator
from fsmdp.foundation.threads import cores, in_threads
from fsmdp.model.lookup import Integers
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.tables import Floats
from fsmdp.policies.arrays import CompiledPolicy
from fsmdp.simulation.compiled import CompiledModel, compile_model
from fsmdp.simulation.rollout import episode_steps
from fsmdp.simulation.simulate import Record, new_record, simulate, simulate_each

CHUNK = 50
"""Episodes that share a generator: small enough that time limits are noticed between them."""

TOGETHER = 8  # chunks of short episodes that one call of compiled code runs, if there are many

LOOK_AFTER = 5_000_000
"""Variables drawn between looks at the clock, roughly."""


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
                self._run(policy, seed, begin + chunk, found[chunk * CHUNK :][:CHUNK], 0, check)

        in_threads(run, chunks - groups * (TOGETHER - 1))
        return found

    def states(self, policy: CompiledPolicy, episodes: int, seed: int) -> Integers:
        """States met in so many episodes: (episodes, steps, n_variables)."""
        records: list[Record | None] = [None] * -(-episodes // CHUNK)

        def run(part: int) -> None:
            count = min(CHUNK, episodes - part * CHUNK)
            records[part] = self._run(policy, seed, part, np.zeros(count), count)

        in_threads(run, len(records))
        n = self.compiled.n_variables
        return np.concatenate([one.states[:, :-1, :n] for one in records if one is not None])

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
        recorded: int,
        check: Callable[[], None] | None = None,
    ) -> Record:
        record = new_record(self.compiled, recorded, self.steps if recorded else 0)
        values = np.zeros(self.compiled.n_slots, dtype=np.int64)
        rng = generator(seed, Purpose.SIMULATION, chunk)
        discount, steps = self.model.discount, self.steps
        # Episodes follow one another in the generator, so that pieces are the same episodes.
        piece = len(returns) if recorded else max(1, LOOK_AFTER // (steps * len(values)))
        for first in range(0, len(returns), piece):
            if check is not None:
                check()
            part = returns[first : first + piece]
            simulate(self.compiled, policy, rng, discount, True, 0, steps, values, part, record)
        return record


def arena_of(model: FactoredMDP) -> Arena:
    """Compile a model. Cost: its size."""
    return Arena(model, compile_model(model), episode_steps(model))
