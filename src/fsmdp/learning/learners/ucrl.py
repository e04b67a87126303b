"""UCRL-Factored: plan for the best model that the counts allow, and follow the plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

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
)
from fsmdp.learning.learners.optimistic import OptimisticFactored
from fsmdp.learning.learners.registry import OPTIMISM, LearnerEntry, Options, builder
from fsmdp.learning.learners.warm import JOINT, METHODS, STAGEWISE
from fsmdp.learning.options import as_choice, check_stated
from fsmdp.model.rewards import Reward
from fsmdp.model.structure import Structure
from fsmdp.planning.intervals import Intervals

PAPER, PRODUCT = "paper", "product"

PRESETS: dict[str, tuple[str, float, str]] = {
    PAPER: ("weissman", EVERY_EPISODE, JOINT),
    "practical": ("chernoff", 0.5, STAGEWISE),
    PRODUCT: ("osband", EVERY_EPISODE, STAGEWISE),
}
"""By name: confidence sets, growth of a cell that calls for a new plan, program."""


class UCRLFactored(OptimisticFactored):
    """Optimism over confidence sets (the paper's Algorithm 1).

    Presets: `paper` (the paper's sets, a plan every episode, the joint program), `practical`
    (Chernoff sets, a plan when some cell has grown by half, the stagewise program) and `product`
    (Osband and Van Roy's UCRL-Factored: L1 balls around the law of each independent part, a plan
    every episode, the stagewise program); every part can be chosen. `replan` is "episode" or the
    growth that calls for a plan (0.5 for half as many visits again). `delta` bounds the chance that
    the truth ever leaves the sets; if there are noisy rewards to learn, transitions and rewards
    have half of it each.
    `scale` multiplies squared radii; anything but 1 makes the learner heuristic.

    Where the structure states independence, sets for functions of several groups are products of
    those of their parts; `independent=False` counts them as they are, as `paper` does by itself.
    """

    name = "UCRLFactored"

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
        sets = as_choice(sets if confidence is None else confidence, "confidence", CONFIDENCE)
        self.confidence = sets
        self.heuristic = CONFIDENCE[sets].heuristic
        if self.preset == PRODUCT:
            check_stated(self.name, structure)
        super().__init__(
            structure,
            delta,
            seed,
            scale=scale,
            method=program if method is None else method,
            replan=growth if replan is None else replan,
            known_rewards=known_rewards,
            independent=self.preset != PAPER if independent is None else bool(independent),
        )

    def bounds(self) -> Intervals:
        """The confidence sets as they stand."""
        found = CONFIDENCE[self.confidence].intervals(
            self.cells,
            self.statistics,
            self.episode,
            self.delta_transitions,
            self.delta_rewards,
            self.scale,
        )
        low, high = found.low, found.high
        if self.products is not None:
            low, high = self.products.ends(low, high, self.first_cell)
        return self.with_known_rewards(replace(found, low=low, high=high))

    def replan(self) -> Planned:
        """Plan over the confidence sets."""
        return self.follow(self.bounds())

    def options(self) -> Sequence[str]:
        """Which sets."""
        return (self.confidence,)


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
