"""UCRL-Factored: plan for the best model that the counts allow, and follow the plan."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

import numpy as np

from fsmdp.bounds.bellman import Intervals
from fsmdp.bounds.finish import q_entries_of
from fsmdp.errors import ModelError
from fsmdp.foundation.checks import as_choice, as_not_negative
from fsmdp.foundation.kinds import NOT_NEGATIVE, OneOf, Positive, Probability
from fsmdp.learning.cells.confidence import CONFIDENCE
from fsmdp.learning.cells.products import Ends
from fsmdp.learning.learners.factored import (
    EVERY_EPISODE,
    JOINT,
    METHODS,
    PLANNERS,
    PROGRAM,
    REPLAN,
    SOLVER,
    STAGEWISE,
    FactoredLearner,
    Warm,
)
from fsmdp.learning.learners.learner import Acting, Optimism, Planned, check_stated
from fsmdp.learning.learners.registry import Options, entry_of
from fsmdp.learning.sampled import (
    OptimisticSweep,
    assemble,
    best_policy,
    initial_of,
    optimistic_rows,
    optimistic_sweep_of,
)
from fsmdp.model.rewards import Reward
from fsmdp.model.structure import Structure
from fsmdp.model.tables import Floats
from fsmdp.model.variables import state_strides

PAPER, PRODUCT = "paper", "product"

Preset = tuple[str, float, str, float]
"""Confidence sets, growth of a cell that calls for a new plan, program, empirical weight."""

PRESETS: dict[str, Preset] = {
    PAPER: ("weissman", EVERY_EPISODE, JOINT, 0.0),
    "practical": ("chernoff", 0.5, STAGEWISE, 4.0),
    PRODUCT: ("osband", EVERY_EPISODE, STAGEWISE, 0.0),
}

BY_SOLVER: Preset = ("mixture", 1.0, STAGEWISE, 0.0)
"""What `practical` stands for with the solver: the tightest sets, plans when a cell has doubled."""

NO_WEIGHT = "0 is optimism alone"

STEPS_GROWN = 0.2
"""Of all steps, until there is a new plan, where states are too many to be swept."""


class UCRLFactored(FactoredLearner):
    """Optimism over confidence sets (the paper's Algorithm 1).

    Presets: `paper` (the paper's sets, a plan every episode, the joint program), `practical`
    (Chernoff sets, a plan when some cell has grown by half, the stagewise program) and `product`
    (Osband and Van Roy's UCRL-Factored: L1 balls around the law of each independent part, a plan
    every episode, the stagewise program); every part can be chosen. `replan` is "episode" or the
    growth that calls for a plan (0.5 for half as many visits again). `delta` bounds the chance that
    the truth ever leaves the sets; if there are noisy rewards to learn, transitions and rewards
    have half of it each.
    `scale` multiplies squared radii; anything but 1 makes the learner heuristic.

    Sets are wide for long, and optimistic values then tell actions apart by little.
    `empirical_weight` (4 for `practical` with the program, else 0) adds the empirical Q-values:
    plans of episode k choose actions by Q + min(1, weight sqrt(horizon / k)) Q', with Q' of the
    program of the mean of what was seen. V_1 is the same upper bound. What a step loses by it,
    at most that factor times what actions differ by in Q', is part of its slack: of the order
    of sqrt(K) in K episodes while Q' is of the order of what can be earned.

    Where the structure states independence, sets for functions of several groups are products of
    those of their parts; `independent=False` counts them as they are, as `paper` does by itself.

    With `planner="solver"` the structure must state independence, and `practical` has mixture sets
    and plans when some cell has doubled. Where all states can be swept, values are the best that
    boxes around the law of each group allow, at every state: V_1 is an upper bound, nothing is lost
    to a basis, and slacks are 0. Elsewhere the program's V_1 is the upper bound, and what is
    followed is the best policy found for one model in the boxes, or the program's; a plan is made
    when the steps of all episodes have grown by a fifth. Regret is at most what
    `observable_regret_bound` says in both cases; that it vanishes is known of the first alone.
    """

    name = "UCRLFactored"

    def __init__(
        self,
        structure: Structure,
        preset: Annotated[str, OneOf(PRESETS)] = "practical",
        delta: Probability = 0.05,
        seed: int = 0,
        *,
        confidence: Annotated[str | None, OneOf(CONFIDENCE)] = None,
        replan: Annotated[str | float | None, REPLAN] = None,
        method: Annotated[str | None, OneOf(METHODS)] = None,
        scale: Positive = 1.0,
        known_rewards: Sequence[Reward] | None = None,
        independent: bool | None = None,
        planner: Annotated[str, OneOf(PLANNERS)] = PROGRAM,
        empirical_weight: Annotated[float | None, NOT_NEGATIVE] = None,
    ) -> None:
        as_choice(planner, "planner", PLANNERS)
        self.preset = as_choice(preset, "preset", PRESETS)
        sets, growth, program, preset_weight = _stands_for(preset, planner)
        sets = as_choice(sets if confidence is None else confidence, "confidence", CONFIDENCE)
        self.confidence = sets
        self.heuristic = CONFIDENCE[sets].heuristic
        independent = self.preset != PAPER if independent is None else bool(independent)
        if self.preset == PRODUCT:
            check_stated(self.name, structure)
        if planner == SOLVER:
            check_stated(f"{self.name}, planner='solver'", structure)
            if not independent:
                raise ModelError(
                    "planner='solver' plans with the law of each group that is independent, and "
                    "independent=False (or the preset 'paper') leaves groups out; leave that out, "
                    "or use planner='program'."
                )
            if empirical_weight:
                raise ModelError(
                    f"planner='solver' has no empirical weight, and empirical_weight is "
                    f"{empirical_weight!r}; leave that out, or use planner='program'."
                )
        super().__init__(
            structure,
            seed=seed,
            method=program if method is None else method,
            replan=growth if replan is None else replan,
            known_rewards=known_rewards,
            independent=independent,
            planner=planner,
            optimism=Optimism(delta, scale),
        )
        self.empirical_weight = as_not_negative(
            preset_weight if empirical_weight is None else empirical_weight,
            "empirical_weight",
            NO_WEIGHT,
        )
        self.empirical = Warm(capped=True).start(self.network) if self.empirical_weight else None
        self.optimistic_sweep: OptimisticSweep | None = None
        if self.planned_by == SOLVER:
            assert self.products is not None
            self.optimistic_sweep = optimistic_sweep_of(self.structure, self.products, self.cells)
            if self.optimistic_sweep is None and replan is None:
                self.growth = STEPS_GROWN

    @property
    def grows_by_steps(self) -> bool:
        """Whether all steps, and not some cell, are to have grown before there is a plan."""
        return self.planned_by == SOLVER and self.optimistic_sweep is None

    def cell_bounds(self) -> Intervals:
        """The confidence sets as they stand, of what is counted."""
        return CONFIDENCE[self.confidence].intervals(
            self.cells,
            self.statistics,
            self.episode,
            self.delta_transitions,
            self.delta_rewards,
            self.optimism.scale,
        )

    def bounds(self) -> Intervals:
        """The confidence sets as they stand."""
        found = self.cell_bounds()
        low, high = found.low, found.high
        if self.products is not None:
            low, high = self.products.ends(low, high, self.first_cell)
        return self.with_known_rewards(replace(found, low=low, high=high))

    def empirical_part(self) -> Floats | float:
        """Q of the program of what was seen on average, the less the more episodes there were."""
        if self.empirical is None:
            return 0.0
        share = min(1.0, self.empirical_weight * math.sqrt(self.horizon / self.episode))
        seen = self.estimate()
        weights = self.empirical.plan(seen, self.start_means(), math.inf).weights
        return share * q_entries_of(self.network, seen, weights)

    def state(self) -> dict[str, np.ndarray]:
        """And the bases of the program of what was seen."""
        empirical = {} if self.empirical is None else {"empirical bases": self.empirical.bases()}
        return super().state() | empirical

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Take a state back."""
        super().restore(state)
        if self.empirical is not None:
            self.empirical.restart_from(state["empirical bases"])

    def replan(self) -> Planned:
        """Plan over the confidence sets."""
        if self.planned_by == PROGRAM:
            return self.follow(self.bounds())
        assert self.products is not None
        found = self.with_known_rewards(self.cell_bounds())
        boxes = self.products.boxes(found.low, found.high, self.first_cell)
        if self.optimistic_sweep is not None:
            return self._follow_sweep(self.optimistic_sweep, found, boxes)
        return self._follow_candidates(found, boxes)

    def _follow_sweep(
        self, optimistic_sweep: OptimisticSweep, found: Intervals, boxes: Ends
    ) -> Planned:
        """The greedy policy of the best values that boxes allow; they have a table of their own."""
        solution = optimistic_sweep.solve(self.cells, boxes, found.rewards)
        layout, steps, policy = self.cells.layout, self.horizon, solution.compiled()
        assert policy is not None
        acting = Acting(
            policy,
            np.zeros((steps, int(layout.value_start[-1]))),
            np.zeros((steps, len(layout.cell_of))),
            np.full((steps, len(layout.cell_of)), np.nan),
            self.replan_at(),
            solution.values[0] + solution.error,
            state_strides([variable.size for variable in self.structure.variables]),
        )
        return Planned(acting, 0.0, np.nan)

    def _follow_candidates(self, found: Intervals, boxes: Ends) -> Planned:
        """The program's values, and the best policy found for an optimistic model in the boxes."""
        assert self.groups is not None
        assert self.products is not None
        planned = self.follow(self.bounds())
        values = planned.acting.values.mean(axis=0)
        rows = optimistic_rows(self.counted_structure(), self.products, boxes, values)
        initial = initial_of(self.structure, self.groups, self.cells, self.statistics)
        model = assemble(self.structure, self.cells, rows, found.rewards, initial)
        own = [("linear program", planned.acting.policy)]
        _, policy = best_policy(model, lambda: own, int(self.rng.integers(2**31)))
        return replace(planned, acting=planned.acting._replace(policy=policy))

    def options(self) -> Sequence[str]:
        """Which sets, and whose values they are if the solver plans."""
        if self.planned_by == PROGRAM:
            return (
                (self.confidence, f"empirical weight {self.empirical_weight:g}")
                if self.empirical_weight
                else (self.confidence,)
            )
        whose = "a model in the sets" if self.optimistic_sweep is None else "all states in the sets"
        return self.confidence, whose


def _stands_for(preset: str, planner: str) -> Preset:
    """Sets, growth, program and empirical weight of a preset."""
    return BY_SOLVER if (preset, planner) == ("practical", SOLVER) else PRESETS[preset]


def _fill_from_preset(options: Options) -> Options:
    """Say what a preset stands for, so that results tell which sets and program were used."""
    confidence, growth, method, empirical_weight = _stands_for(
        options["preset"], options["planner"]
    )
    replan = "episode" if growth == EVERY_EPISODE else growth
    filled = {
        "confidence": confidence,
        "replan": replan,
        "method": method,
        "empirical_weight": empirical_weight,
    }
    return {name: filled.get(name) if value is None else value for name, value in options.items()}


ENTRY = entry_of(
    UCRLFactored,
    "ucrl",
    "UCRL-Factored",
    "optimism over confidence sets, the paper's algorithm",
    complete=_fill_from_preset,
    before={"empirical_weight": 0.0},
)
