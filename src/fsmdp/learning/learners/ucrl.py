"""UCRL-Factored: plan for the best model that the counts allow, and follow the plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fsmdp.errors import ModelError
from fsmdp.foundation.kinds import OneOf
from fsmdp.learning.cells.confidence import CONFIDENCE
from fsmdp.learning.learners.acting import Planned
from fsmdp.learning.learners.factored import (
    EVERY_EPISODE,
    PLANNERS,
    PROGRAM,
    REPLAN,
    SOLVER,
    FactoredLearner,
)
from fsmdp.learning.learners.registry import OPTIMISM, LearnerEntry, Options, builder
from fsmdp.learning.learners.warm import JOINT, METHODS, STAGEWISE
from fsmdp.learning.options import as_choice, as_probability, as_scale, heuristic_label
from fsmdp.model.rewards import Reward
from fsmdp.model.structure import Structure
from fsmdp.planning.intervals import Intervals

PAPER = "paper"

PRESETS: dict[str, tuple[str, float, str]] = {
    PAPER: ("weissman", EVERY_EPISODE, JOINT),
    "practical": ("chernoff", 0.5, STAGEWISE),
}
"""By name: confidence sets, growth of a cell that calls for a new plan, program."""


class UCRLFactored(FactoredLearner):
    """Optimism over confidence sets (the paper's Algorithm 1).

    Presets: `paper` (the paper's sets, a plan every episode, the joint program) and `practical`
    (Chernoff sets, a plan when some cell has grown by half, the stagewise program);
    every part can be chosen. `replan` is "episode" or the growth that calls for a plan (0.5 for
    half as many visits again). `delta` bounds the chance that the truth ever leaves the sets; if
    there are noisy rewards to learn, transitions and rewards have half of it each.
    `scale` multiplies squared radii; anything but 1 makes the learner heuristic.

    Where the structure states independence, sets for functions of several groups are products of
    those of their parts; `independent=False` counts them as they are, as `paper` does by itself.
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
        independent: bool | None = None,
        planner: str = PROGRAM,
    ) -> None:
        if as_choice(planner, "planner", PLANNERS) == SOLVER:
            raise ModelError(
                "planner='solver' follows the best policy for one model, which is not optimistic; "
                "use PSRLFactored(structure, planner='solver'), or planner='program'."
            )
        self.preset = as_choice(preset, "preset", PRESETS)
        sets, growth, program = PRESETS[self.preset]
        self.delta, self.scale = as_probability(delta), as_scale(scale)
        sets = as_choice(sets if confidence is None else confidence, "confidence", CONFIDENCE)
        self.confidence = sets
        self.heuristic = self.scale != 1.0 or CONFIDENCE[sets].heuristic
        super().__init__(
            structure,
            seed=seed,
            method=program if method is None else method,
            replan=growth if replan is None else replan,
            known_rewards=known_rewards,
            independent=self.preset != PAPER if independent is None else bool(independent),
        )
        noisy = any(
            term.sigma > 0 and not known
            for term, known in zip(structure.rewards, self.term_known, strict=True)
        )
        self.delta_rewards = self.delta / 2 if noisy else 0.0
        self.delta_transitions = self.delta - self.delta_rewards

    def bounds(self) -> Intervals:
        """The confidence sets as they stand."""
        found = CONFIDENCE[self.confidence].intervals(
            self.cells,
            self.statistics,
            self.episode,
            self.delta_transitions,
            self.delta_rewards or self.delta,  # without noise there is nothing to pay for
            self.scale,
        )
        known, means = self.cell_known, self.known_means
        low, high = found.low, found.high
        if self.products is not None:
            low, high = self.products.ends(low, high, self.first_cell)
        return replace(
            found,
            low=low,
            high=high,
            rewards=np.where(known, means, found.rewards),
            reward_low=np.where(known, means, found.with_lowest_rewards().rewards),
        )

    def replan(self) -> Planned:
        """Plan over the confidence sets."""
        return self.follow(self.bounds())

    def describe(self) -> str:
        """The options that matter."""
        label = heuristic_label(self.heuristic, self.scale)
        parts = (self.confidence, self.planner.method, self.when_to_plan())
        return f"{', '.join(parts)}, delta {self.delta:g}{label}"


def _fill_from_preset(options: Options) -> Options:
    """Say what a preset stands for, so that results tell which sets and program were used."""
    confidence, growth, method = PRESETS[options["preset"]]
    replan = "episode" if growth == EVERY_EPISODE else growth
    filled = {"confidence": confidence, "replan": replan, "method": method}
    return {name: filled.get(name) if value is None else value for name, value in options.items()}


ENTRY = LearnerEntry(
    "ucrl",
    "UCRL-Factored",
    "optimism over confidence sets, the paper's algorithm",
    builder(UCRLFactored),
    {
        "preset": (OneOf(PRESETS), "practical"),
        "confidence": (OneOf(CONFIDENCE), None),
        "method": (OneOf(METHODS), None),
        "replan": (REPLAN, None),
        **OPTIMISM,
    },
    uses_basis=True,
    takes_rewards=True,
    complete=_fill_from_preset,
)
