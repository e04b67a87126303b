"""Candidates are judged by simulation on common random numbers, the winner again on fresh ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from fsmdp.foundation.streams import Purpose, derived_seed
from fsmdp.model.tables import Floats
from fsmdp.planning.clock import Clock
from fsmdp.planning.gap import Candidate
from fsmdp.planning.plan import PlannedPolicy
from fsmdp.policies.arrays import CompiledPolicy
from fsmdp.simulation.rollout import Averaged, standard_error
from fsmdp.solver.arena import Arena

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
