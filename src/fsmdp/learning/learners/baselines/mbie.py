"""Model-based interval estimation: optimism over balls whose width goes by a pair's own visits."""

from __future__ import annotations

import math

import numpy as np

from fsmdp.learning.learners.baselines.enumerated import EnumeratedLearner, backward_induction
from fsmdp.learning.learners.baselines.ucrl2 import ball_means
from fsmdp.learning.learners.learner import Planned
from fsmdp.learning.learners.registry import entry_of
from fsmdp.model.tables import Floats


class MBIE(EnumeratedLearner):
    """The best transition row of an L1 ball around what was seen of each (s, a).

    |P - P^|_1 <= sqrt(2 (log(2^S - 2) - log delta_n) / n),
    |r - r^| <= sigma sqrt(2 log(2 / delta_n) / n),  delta_n = 6 delta / (2 S A (pi n)^2).
    The source divides delta by 2 S A m, where m visits are all that is counted of a pair; here
    visits are counted on and the union runs over their number. Its rewards lie in [0, 1], which
    are of deviation 1/2 at most; here noise has its own. It plans at every step for a discounted
    future; here before every episode, backwards from the horizon. The maximum over a ball is found
    as in the source, and as in Algorithm 3 of Deng, Devic and Juba: half the radius goes to the
    best next state and is taken from the worst.
    `scale` multiplies squared radii; anything but 1 makes the learner heuristic.
    Cost of a plan: horizon |states| (|states| |actions| + log |states|).
    Source: Strehl and Littman (2008), An analysis of model-based interval estimation for Markov
    decision processes.
    """

    name = "MBIE"

    def log_terms(self) -> Floats:
        """- log delta_n of each (action, state)."""
        pairs = self.n_states * self.n_actions
        n = np.maximum(self.visits, 1)
        return np.asarray(np.log(2 * pairs * (math.pi * n) ** 2 / (6 * self.optimism.delta)))

    def radii(self) -> Floats:
        """Radius of the ball around each row; 2, which is everything, where nothing was seen."""
        if self.n_states == 1:
            return np.zeros(self.visits.shape)
        subsets = self.n_states * math.log(2) + math.log1p(-(2.0 ** (1 - self.n_states)))
        squared = 2 * (subsets + self.log_terms()) / np.maximum(self.visits, 1)
        return np.where(
            self.visits == 0, 2.0, np.minimum(np.sqrt(self.optimism.scale * squared), 2.0)
        )

    def replan(self) -> Planned:
        """Optimistic values over the balls as they are."""
        means = ball_means(self.outcomes, self.visits, self.radii())
        rewards = self.reward_bounds(self.optimism.scale * (math.log(2) + self.log_terms()))
        return self.follow(
            backward_induction(self.horizon, self.structure.discount, rewards, means)
        )


ENTRY = entry_of(
    MBIE,
    "mbie",
    "MBIE",
    "optimism over balls around all transition rows, by visits of each; small models only",
    uses_basis=False,
)
