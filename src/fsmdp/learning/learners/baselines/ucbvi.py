"""UCBVI: value iteration on the empirical model with a bonus for what was seen too little."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Unpack

import numpy as np

from fsmdp.foundation.checks import as_whole
from fsmdp.foundation.kinds import OneOf, Probability
from fsmdp.learning.learners.baselines.enumerated import (
    Ends,
    EnumeratedLearner,
    SharedOptions,
    backward_induction,
)
from fsmdp.learning.learners.learner import Planned
from fsmdp.learning.learners.registry import entry_of
from fsmdp.learning.options import as_choice
from fsmdp.model.structure import Structure
from fsmdp.model.tables import Floats

MOST_EPISODES = 10**18

HOEFFDING, BERNSTEIN = "hoeffding", "bernstein"
BONUSES = (HOEFFDING, BERNSTEIN)


class UCBVI(EnumeratedLearner):
    """Upper confidence bound value iteration, UCBVI-CH ("hoeffding") or UCBVI-BF ("bernstein").

    Q_l = min(Q_l of the last episode, R + P^ V_{l+1} + b), with L = log(5 S A T / delta) and, for
    rewards in [0, 1],
      hoeffding: b = 7 H L / sqrt(n)
      bernstein: b = sqrt(8 L Var(V_{l+1}) / n) + 14 H L / (3 n) + sqrt(8 E[b'] / n),
                 b' = min(100^2 H^3 S^2 A L^2 / n', H^2),
    n' the visits of the next state at the next step. b' is H^2 until n' exceeds
    10^4 H S^2 A L^2, which no run reaches; here it always is, so steps need not be told apart.
    T = H K for the given number K of `episodes`; without it, T = H k in episode k, and delta is
    spread over the episodes as 6 delta / (pi k)^2. Rewards that are noisy and not known take half
    of delta, by the normal tail with a union over (s, a) and visits up to T. No mean with its bonus
    leaves the range of V_{l+1}, where the source caps Q_l by H; values are never above its own.
    `scale` multiplies squared bonuses; anything but 1 makes the learner heuristic.
    Cost of a plan: horizon |states|^2 |actions|.
    Source: Azar, Osband and Munos (2017), Minimax regret bounds for reinforcement learning,
    Algorithms 1 to 4.
    """

    name = "UCBVI"

    def __init__(
        self,
        structure: Structure,
        bonus: Annotated[str, OneOf(BONUSES)] = BERNSTEIN,
        delta: Probability = 0.05,
        seed: int = 0,
        *,
        episodes: int | None = None,
        **options: Unpack[SharedOptions],
    ) -> None:
        self.bonus = as_choice(bonus, "bonus", BONUSES)
        self.episodes = (
            None if episodes is None else as_whole(episodes, "episodes", 1, MOST_EPISODES)
        )
        super().__init__(structure, delta, seed, **options)
        self._last_q: Floats = np.full((self.horizon, self.n_actions, self.n_states), np.inf)

    def log_term(self) -> float:
        """L = log(5 S A T / delta)."""
        steps = self.horizon * (self.episodes or self.episode)
        delta = self.optimism.delta / (2 if self.learnt_sigma > 0 else 1)
        if self.episodes is None:
            delta *= 6 / (math.pi * self.episode) ** 2
        return math.log(5 * self.n_states * self.n_actions * steps / delta)

    def replan(self) -> Planned:
        """Optimistic values from the counts as they are."""
        visits, log_term = self.visits, self.log_term()
        n = np.maximum(visits, 1)
        transitions = self.outcomes / n[:, :, None]
        unseen = visits == 0

        def means(following: Floats) -> Ends:
            middle = transitions @ following
            squares = transitions @ following**2
            variances = np.maximum(squares - middle**2, 0.0)
            bonus = math.sqrt(self.optimism.scale) * self._bonus(variances, n, log_term)
            bonus[unseen] = np.inf
            return middle - bonus, middle + bonus

        solved = backward_induction(
            self.horizon,
            self.structure.discount,
            self.reward_bounds(self.optimism.scale * log_term),
            means,
            at_most=self._last_q,
        )
        self._last_q = solved.q
        return self.follow(solved)

    def _bonus(self, variances: Floats, n: np.ndarray, log_term: float) -> Floats:
        reach = self.horizon * self.reward_span  # H, in units of these rewards
        if self.bonus == HOEFFDING:
            return np.asarray(7 * reach * log_term / np.sqrt(n))
        return np.asarray(
            np.sqrt(8 * log_term * variances / n)
            + 14 * reach * log_term / (3 * n)
            + np.sqrt(8 * reach**2 / n)
        )

    def state(self) -> dict[str, np.ndarray]:
        """The random state, and the values that the next ones may not exceed."""
        return super().state() | {"last_q": self._last_q}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Take a state back."""
        super().restore(state)
        last_q, shape = state["last_q"], self._last_q.shape
        if last_q.shape != shape or last_q.dtype != np.float64 or np.isnan(last_q).any():
            raise ValueError(f"last_q: expected numbers of shape {shape}")
        self._last_q = last_q

    def options(self) -> Sequence[str]:
        """Which bonus, and for how many episodes."""
        made_for = () if self.episodes is None else (f"{self.episodes} episodes",)
        return (self.bonus, *made_for)


ENTRY = entry_of(
    UCBVI,
    "ucbvi",
    "UCBVI",
    "value iteration with bonuses over all states; small models only",
    uses_basis=False,
)
