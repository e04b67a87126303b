"""UCRL-Factored: plan for the best model that the counts allow, and follow the plan."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fsmdp.learning.acting import Planned
from fsmdp.learning.confidence import CONFIDENCE, ConfidenceBounds, reward_bounds
from fsmdp.learning.factored import EVERY_EPISODE, FactoredLearner
from fsmdp.learning.live import JOINT, STAGEWISE, Beliefs
from fsmdp.learning.options import as_choice, as_probability, as_scale, heuristic_label
from fsmdp.model.rewards import Reward
from fsmdp.model.structure import Structure
from fsmdp.planning.intervals import Intervals

PRESETS: dict[str, tuple[str, float, str]] = {
    "paper": ("weissman", EVERY_EPISODE, JOINT),
    "practical": ("bernstein", 0.5, STAGEWISE),
}
"""By name: confidence sets, growth of a cell that calls for a new plan, program."""

_SETS = ("confidence", tuple(CONFIDENCE))
_METHODS = ("method", (STAGEWISE, JOINT))


class UCRLFactored(FactoredLearner):
    """Optimism over confidence sets (the paper's Algorithm 1).

    Presets: `paper` (the paper's sets, a plan every episode, the joint program) and `practical`
    (empirical Bernstein sets, a plan when some cell has grown by half, the stagewise program);
    every part can be chosen. `replan` is "episode" or the growth that calls for a plan (0.5 for
    half as many visits again). `delta` bounds the chance that the truth ever leaves the sets; if
    there are noisy rewards to learn, transitions and rewards have half of it each.
    `scale` multiplies squared radii; anything but 1 makes the learner heuristic.
    """

    name = "UCRLFactored"
    optimistic = True

    def __init__(
        self,
        structure: Structure,
        preset: str = "practical",
        delta: float = 0.05,
        seed: int = 0,
        *,
        confidence: str | None = None,
        replan: str | float | None = None,
        method: str | None = None,
        scale: float = 1.0,
        known_rewards: Sequence[Reward] | None = None,
    ) -> None:
        self.preset = as_choice(preset, "preset", PRESETS)
        sets, growth, program = PRESETS[self.preset]
        self.delta, self.scale = as_probability(delta), as_scale(scale)
        self.confidence = as_choice(sets if confidence is None else confidence, *_SETS)
        self.heuristic = self.scale != 1.0
        super().__init__(
            structure,
            seed=seed,
            method=as_choice(program if method is None else method, *_METHODS),
            replan=growth if replan is None else replan,
            known_rewards=known_rewards,
        )
        self._transitions = CONFIDENCE[self.confidence]
        noisy = any(
            term.sigma > 0 and not known
            for term, known in zip(structure.rewards, self.term_known, strict=True)
        )
        self.delta_rewards = self.delta / 2 if noisy else 0.0
        self.delta_transitions = self.delta - self.delta_rewards

    def bounds(self) -> ConfidenceBounds:
        """The confidence sets as they stand."""
        low, high = self._transitions(
            self.cells, self.statistics, self.episode, self.delta_transitions, self.scale
        )
        reward_low, reward_high = reward_bounds(
            self.cells,
            self.statistics,
            self.episode,
            self.delta_rewards or self.delta,  # without noise there is nothing to pay for
            self.scale,
            by_visits=self.confidence != "weissman",
        )
        known = self.cell_known
        reward_low[known] = reward_high[known] = self.known_means[known]
        return ConfidenceBounds(low, high, reward_low, reward_high)

    def replan(self) -> Planned:
        """Plan over the confidence sets, to within epsilon = sqrt(1 / k)."""
        bounds = self.bounds()
        beliefs = Beliefs(
            Intervals(bounds.reward_high, bounds.low, bounds.high),
            bounds.reward_low,
            self.start_means(),
            self.replan_at(),
        )
        return self.planner.plan(beliefs, math.sqrt(1 / self.episode), self.rng)

    def describe(self) -> str:
        """The options that matter."""
        label = heuristic_label(self.heuristic, self.scale)
        parts = (self.confidence, self.planner.method, self.when_to_plan())
        return f"{', '.join(parts)}, delta {self.delta:g}{label}"
