"""What factored learners share whose values are upper bounds while their sets hold the truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fsmdp.learning.cells.confidence import reward_bounds
from fsmdp.learning.learners.factored import PROGRAM, FactoredLearner
from fsmdp.learning.learners.warm import STAGEWISE
from fsmdp.learning.options import as_probability, as_scale, heuristic_label
from fsmdp.model.rewards import Reward
from fsmdp.model.structure import Structure
from fsmdp.planning.bellman import Intervals


class OptimisticFactored(FactoredLearner):
    """`delta` bounds the chance that the truth ever leaves the sets.

    If there are noisy rewards to learn, transitions and rewards have half of it each. `scale`
    multiplies squared radii; anything but 1 makes the learner heuristic.
    """

    name = "OptimisticFactored"
    optimistic = True

    def __init__(
        self,
        structure: Structure,
        delta: float,
        seed: int,
        *,
        scale: float,
        method: str,
        replan: str | float,
        known_rewards: Sequence[Reward] | None,
        independent: bool,
        planner: str = PROGRAM,
    ) -> None:
        self.delta, self.scale = as_probability(delta), as_scale(scale)
        self.heuristic = self.heuristic or self.scale != 1.0
        super().__init__(
            structure,
            seed=seed,
            method=method,
            replan=replan,
            known_rewards=known_rewards,
            independent=independent,
            planner=planner,
        )
        noisy = any(
            term.sigma > 0 and not known
            for term, known in zip(structure.rewards, self.term_known, strict=True)
        )
        half = self.delta / 2 if noisy else 0.0
        self.delta_transitions = self.delta - half
        self.delta_rewards = half or self.delta  # without noise there is nothing to pay for

    def with_known_rewards(self, found: Intervals) -> Intervals:
        """Intervals by cell, with the means of rewards that are known."""
        known, means = self.cell_known, self.known_means
        return replace(
            found,
            rewards=np.where(known, means, found.rewards),
            reward_low=np.where(known, means, found.with_lowest_rewards().rewards),
        )

    def options(self) -> Sequence[str]:
        """What a description says before the program and `delta`."""
        return ()

    def describe(self) -> str:
        """The options that matter."""
        label = heuristic_label(self.heuristic, self.scale)
        parts = (*self.options(), self.planner.method, self.when_to_plan())
        return f"{', '.join(parts)}, delta {self.delta:g}{label}"


class LocalOptimism(OptimisticFactored):
    """An optimistic learner that counts by itself what is independent, and plans in stages."""

    name = "LocalOptimism"
    nested = False  # its intervals alone are everything, so that a coarser program knows nothing
    makes_products = True  # of what is counted of independent parts

    def __init__(
        self,
        structure: Structure,
        delta: float = 0.05,
        seed: int = 0,
        *,
        replan: str | float = 0.5,
        scale: float = 1.0,
        known_rewards: Sequence[Reward] | None = None,
    ) -> None:
        super().__init__(
            self.as_counted(structure),
            delta,
            seed,
            scale=scale,
            method=STAGEWISE,
            replan=replan,
            known_rewards=known_rewards,
            independent=self.makes_products,
        )

    def as_counted(self, structure: Structure) -> Structure:
        """The structure in the form that is counted and planned in."""
        return structure

    def nothing_but_rewards(self) -> Intervals:
        """Bounds on mean rewards, and of the functions' means what there is to say without data."""
        cells = self.cells
        low, high = reward_bounds(
            cells, self.statistics, self.episode, self.delta_rewards, self.scale, by_visits=True
        )
        return self.with_known_rewards(Intervals(high, cells.lowest, cells.highest, low))
