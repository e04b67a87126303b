"""What all learners share: a structure, cells, what was counted in them, and a random generator."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from fsmdp.foundation.checks import plural
from fsmdp.foundation.streams import Purpose, generator
from fsmdp.learning.cells.known import known_reward_means
from fsmdp.learning.cells.layout import cells_of
from fsmdp.learning.cells.statistics import Statistics
from fsmdp.learning.learners.acting import Acting, Planned
from fsmdp.learning.options import as_seed, check_structure
from fsmdp.model.lookup import Integers
from fsmdp.model.rewards import Reward
from fsmdp.model.structure import Structure
from fsmdp.policies.arrays import CompiledPolicy


class CountingLearner:
    """A `Learner`; a subclass says how to plan, and perhaps what to count."""

    name = "CountingLearner"
    heuristic = False
    optimistic = False

    def __init__(
        self, structure: Structure, *, seed: int = 0, known_rewards: Sequence[Reward] | None = None
    ) -> None:
        self.structure = check_structure(self.name, structure)
        self.seed = as_seed(seed)
        self.rng = generator(self.seed, Purpose.LEARNER)
        counted = self.counted_structure()
        self.cells = cells_of(counted)
        self.statistics = Statistics.empty(self.cells)
        self.term_known, self.known_means = known_reward_means(counted, known_rewards)
        self.cell_known = self.term_known[self.cells.term]

    def counted_structure(self) -> Structure:
        """The structure whose cells are counted: the one that was told, unless overridden."""
        return self.structure

    def given(self) -> list[np.ndarray]:
        """Known rewards; what else a learner is given, a subclass adds."""
        return [self.term_known, self.known_means]

    @property
    def horizon(self) -> int:
        """Steps of an episode."""
        assert self.structure.horizon is not None
        return self.structure.horizon

    @property
    def episode(self) -> int:
        """k: the number of the episode that comes next, from 1."""
        return self.statistics.episodes + 1

    def unclaimed(self, policy: CompiledPolicy, replan_at: Integers) -> Planned:
        """A policy of whose values nothing is claimed: they are NaN."""
        layout = self.cells.layout
        n_entries, n_values = len(layout.cell_of), int(layout.value_start[-1])
        acting = Acting(
            policy,
            np.full((self.horizon, n_values), np.nan),
            np.zeros((self.horizon, n_entries)),
            np.full((self.horizon, n_entries), np.nan),
            replan_at,
        )
        return Planned(acting, 0.0, np.nan)

    def replan(self) -> Planned:
        """A new policy from the statistics as they are."""
        raise NotImplementedError

    def describe(self) -> str:
        """The options that matter."""
        raise NotImplementedError

    def state(self) -> dict[str, np.ndarray]:
        """The random state; what else the next plan depends on, a subclass adds."""
        return {"rng": np.array(json.dumps(self.rng.bit_generator.state))}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Take a state back."""
        generator: dict[str, Any] = json.loads(str(state["rng"]))
        self.rng.bit_generator.state = generator

    def __repr__(self) -> str:
        return f"{self.name}({self.describe()}; {plural(self.statistics.episodes, 'episode')} seen)"
