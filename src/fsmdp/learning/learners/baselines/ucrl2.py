"""UCRL2 for episodes: optimistic value iteration over L1 balls around every row."""

from __future__ import annotations

import math

import numpy as np

from fsmdp.compiled import compiled
from fsmdp.learning.cells.confidence import mean_in_ball
from fsmdp.learning.learners.baselines.enumerated import (
    Ends,
    EnumeratedLearner,
    Means,
    backward_induction,
)
from fsmdp.learning.learners.learner import Planned
from fsmdp.learning.learners.registry import entry_of
from fsmdp.model.lookup import Integers
from fsmdp.model.tables import Floats


class UCRL2(EnumeratedLearner):
    """Optimism over balls around transition rows; a new plan when visits of some (s, a) double.

    |P - P^|_1 <= sqrt(14 S log(2 A t / delta) / n),
    |r - r^| <= sqrt(7 log(2 S A t / delta) / (2 n)) for rewards of standard deviation up to 1/2,
    t the number of steps taken before the plan, plus one. Noise of another deviation has a radius
    in proportion; rewards without noise are known after one visit. The source plans for an endless
    horizon by extended value iteration and may change its plan at any step; here the same
    inner maximisation is a backward induction, and plans change between episodes. Its regret
    theorem is about average reward and does not carry over; the sets do, and with them optimism.
    `scale` multiplies squared radii; anything but 1 makes the learner heuristic.
    Cost of a plan: horizon |states| (|states| |actions| + log |states|).
    Source: Jaksch, Ortner and Auer (2010), Near-optimal regret bounds for reinforcement learning,
    Figure 1 with equations 3 and 4, and Figure 2.
    """

    name = "UCRL2"

    def radii(self) -> Floats:
        """Radius of the ball around each row; 2, which is everything, where nothing was seen."""
        t = int(self.visits.sum()) + 1
        squared = 14 * self.n_states * math.log(2 * self.n_actions * t / self.optimism.delta)
        found = np.sqrt(self.optimism.scale * squared / np.maximum(self.visits, 1))
        return np.where(self.visits == 0, 2.0, np.minimum(found, 2.0))

    def replan(self) -> Planned:
        """Optimistic values over the balls as they are."""
        visits = self.visits
        t = int(visits.sum()) + 1
        log_term = 7 * math.log(2 * self.n_states * self.n_actions * t / self.optimism.delta)
        solved = backward_induction(
            self.horizon,
            self.structure.discount,
            self.reward_bounds(self.optimism.scale * log_term),
            ball_means(self.outcomes, visits, self.radii()),
        )
        return self.follow(solved, replan_at=np.maximum(1, 2 * visits))


def ball_means(outcomes: Integers, visits: Integers, radii: Floats) -> Means:
    """Extreme means over the ball around what was seen of each (action, state)."""

    def means(following: Floats) -> Ends:
        descending = np.argsort(-following, kind="stable")
        low, high = np.zeros(visits.shape), np.zeros(visits.shape)
        fill_ball_means(outcomes, visits, radii, following, descending, low, high)
        return low, high

    return means


@compiled()
def fill_ball_means(
    outcomes: Integers,
    visits: Integers,
    radii: Floats,
    following: Floats,
    descending: Integers,
    low: Floats,
    high: Floats,
) -> None:
    """Extreme means of the following values over the ball of every (action, state)."""
    n_actions, n_states = visits.shape
    ascending = descending[::-1].copy()
    row = np.zeros(n_states)
    for action in range(n_actions):
        for state in range(n_states):
            n = visits[action, state]
            if n == 0:
                low[action, state] = following[ascending[0]]
                high[action, state] = following[descending[0]]
                continue
            for y in range(n_states):
                row[y] = outcomes[action, state, y] / n
            radius = radii[action, state]
            low[action, state] = mean_in_ball(row, following, ascending, radius)
            high[action, state] = mean_in_ball(row, following, descending, radius)


ENTRY = entry_of(
    UCRL2,
    "ucrl2",
    "UCRL2",
    "optimism over balls around all transition rows; small models only",
    uses_basis=False,
)
