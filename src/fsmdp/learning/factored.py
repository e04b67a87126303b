"""What factored learners share: cells, statistics, a live planner, and when to plan again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from fsmdp.errors import ModelError
from fsmdp.learning.acting import Planned
from fsmdp.learning.known import known_reward_means
from fsmdp.learning.layout import cells_of
from fsmdp.learning.live import LivePlanner
from fsmdp.learning.statistics import Statistics
from fsmdp.model.lookup import Integers
from fsmdp.model.rewards import Reward
from fsmdp.model.structure import Structure
from fsmdp.model.tables import Floats
from fsmdp.planning.bellman import network_of_structure

EVERY_EPISODE = 0.0


class FactoredLearner:
    """A learner that is told a Structure, counts per cell and plans with a linear program."""

    name = "FactoredLearner"
    heuristic = False

    def __init__(
        self,
        structure: Structure,
        *,
        seed: int,
        method: str,
        replan: str | float,
        known_rewards: Sequence[Reward] | None,
    ) -> None:
        if not isinstance(structure, Structure):
            raise ModelError(
                f"{self.name}: expected a Structure, found {type(structure).__name__}; use "
                "model.structure(basis) or Structure.from_parents(...)."
            )
        self.growth = _growth(replan)
        self.structure = structure
        network = network_of_structure(structure)
        self.planner = LivePlanner(structure, network, method)
        self.cells = cells_of(structure, network)
        self.statistics = Statistics.empty(self.cells)
        self.term_known, self.known_means = known_reward_means(structure, known_rewards)
        self.cell_known = self.term_known[self.cells.term]
        self.rng = np.random.default_rng(seed)

    def replan(self) -> Planned:
        """A new policy from the statistics as they are."""
        raise NotImplementedError

    def describe(self) -> str:
        """The options that matter, for `repr`."""
        return self.planner.method

    def start_means(self) -> Floats:
        """Means of h_j over the first states seen; over all states alike before the first."""
        if self.statistics.episodes == 0:
            return self.planner.uniform
        network = self.planner.network
        totals = np.bincount(network.value_columns, weights=self.statistics.starts * network.values)
        return np.asarray(totals / self.statistics.episodes)

    def replan_at(self) -> Integers:
        """Visits of each cell from which a new plan is due."""
        n = self.statistics.visits
        if self.growth == EVERY_EPISODE:
            return np.zeros(len(n), dtype=np.int64)
        return np.asarray(np.maximum(n + 1, np.ceil((1 + self.growth) * n)), dtype=np.int64)

    def state(self) -> dict[str, np.ndarray]:
        """Random state and bases: what the next plan depends on besides the statistics."""
        return {
            "rng": np.array(json.dumps(self.rng.bit_generator.state)),
            "bases": self.planner.bases(),
        }

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Take a state back."""
        generator: dict[str, Any] = json.loads(str(state["rng"]))
        self.rng.bit_generator.state = generator
        self.planner.restart_from(state["bases"])

    def __repr__(self) -> str:
        return f"{self.name}({self.describe()}; {self.statistics.episodes} episodes seen)"


def _growth(replan: str | float) -> float:
    if replan == "episode":
        return EVERY_EPISODE
    if isinstance(replan, str) or not replan >= 0:
        raise ModelError(
            f"replan: expected 'episode', or the growth of a cell that calls for a new plan "
            f"(0.5 for half as many visits again), found {replan!r}."
        )
    return float(replan)
