"""Episodes that end early, made to last: where they ended they stay, and earn nothing more."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from fsmdp.foundation.checks import as_whole
from fsmdp.simulation.gymnasium_calls import step_environment


class Absorbing(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment whose last state absorbs: V = 0 after the end of an episode.

    A learner counts what it sees, and after an early end it sees nothing: an optimistic one would
    go on hoping for the best there. Here an episode that terminates goes on with the observation it
    ended with and rewards of 0, until it is truncated after `horizon` steps, so that learners find
    out. The state has to show that the episode is over (a goal that is left only by ending will
    do), and bounds of rewards have to include 0.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], horizon: int) -> None:
        super().__init__(env)
        self._horizon = as_whole(horizon, "horizon", 1)
        self._steps = 0
        self._last: tuple[Any, dict[str, Any]] | None = None

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        self._steps, self._last = 0, None
        return self.env.reset(**options)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """A step of the environment, or of the rest that follows its end."""
        self._steps += 1
        over = self._steps >= self._horizon
        if self._last is not None:
            observation, info = self._last
            return observation, 0.0, False, over, info
        seen = step_environment(self.env, action)
        if seen.terminated:
            has_terms = "rewards" in seen.info
            zeros = {"rewards": np.zeros(np.shape(seen.info["rewards"]))} if has_terms else {}
            self._last = seen.observation, zeros
        return seen.observation, seen.reward, False, over or seen.truncated, dict(seen.info)
