"""Posterior sampling over all states."""

from collections.abc import Sequence

import numpy as np

from fsmdp.foundation.checks import as_positive
from fsmdp.foundation.kinds import PositiveOrChosen
from fsmdp.learning.learners.baselines.enumerated import (
    ENTRY_LIMIT,
    EnumeratedLearner,
    backward_induction,
)
from fsmdp.learning.learners.learner import Planned
from fsmdp.learning.learners.registry import entry_of
from fsmdp.model.rewards import Reward
from fsmdp.model.structure import Structure
from fsmdp.model.tables import Floats


class TabularPSRL(EnumeratedLearner):
    """Posterior sampling without structure: each episode follows the optimum of a drawn model.

    P(. | s, a) ~ Dirichlet(prior + counts), by default with the source's prior of 1 / |states| for
    each next state. The mean reward has a normal prior over the middle of its bounds with a
    deviation of half their distance; draws are clipped to the bounds, and without noise it is
    known after one visit. What the history calls optimistic values are those of the samples.
    Cost of a plan: |states|^2 |actions| (horizon + a gamma draw).
    Source: Osband, Russo and Van Roy (2013), (More) efficient reinforcement learning via posterior
    sampling.
    """

    name = "TabularPSRL"
    optimistic = False

    def __init__(
        self,
        structure: Structure,
        seed: int = 0,
        *,
        prior: PositiveOrChosen = None,
        known_rewards: Sequence[Reward] | None = None,
        limit: int = ENTRY_LIMIT,
    ) -> None:
        given = None if prior is None else as_positive(prior, "prior", "1 is uniform")
        super().__init__(structure, seed=seed, known_rewards=known_rewards, limit=limit)
        self.prior = 1 / self.n_states if given is None else given

    def sample_transitions(self) -> Floats:
        """P(s' | s, a) drawn from the posterior."""  # (n_actions, n_states, n_states)
        draws = self.rng.standard_gamma(self.prior + self.outcomes)
        # A small prior can draw nothing but zeros; then all the mass is on one state, at random.
        empty = draws.sum(axis=2) == 0
        draws[empty, self.rng.integers(self.n_states, size=int(empty.sum()))] = 1.0
        return np.asarray(draws / draws.sum(axis=2, keepdims=True))

    def sample_rewards(self) -> Floats:
        """Mean reward of each (action, state) drawn from the posterior."""
        known, seen = self.reward_moments()
        low, high, sigma = self.learnt_low, self.learnt_high, self.learnt_sigma
        deviation = (high - low) / 2
        n = self.visits
        # Share of what was seen in the posterior mean: all of it without noise.
        certain = sigma == 0 or deviation == 0
        share = np.where(n > 0, 1.0, 0.0) if certain else n / (n + (sigma / deviation) ** 2)
        noise = deviation * np.sqrt(1 - share) * self.rng.standard_normal(n.shape)
        drawn = (1 - share) * (low + high) / 2 + share * seen + noise
        return np.asarray(known + np.clip(drawn, low, high))

    def replan(self) -> Planned:
        """Plan for a draw from the posterior."""
        transitions, rewards = self.sample_transitions(), self.sample_rewards()

        def means(following: Floats) -> tuple[Floats, Floats]:
            found = transitions @ following
            return found, found

        return self.follow(backward_induction(self, (rewards, rewards), means))

    def describe(self) -> str:
        """The options that matter."""
        return f"Dirichlet prior {self.prior:g}"


ENTRY = entry_of(
    TabularPSRL,
    "tabular-psrl",
    "tabular PSRL",
    "posterior sampling over all states; small models only",
    uses_basis=False,
)
