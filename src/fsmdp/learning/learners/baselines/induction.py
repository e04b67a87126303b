"""Backward induction over all states, from bounds on the mean of the following values."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from fsmdp.model.tables import Floats

Ends = tuple[Floats, Floats]
"""Lower and upper ends, one of each for every (action, state)."""

Means = Callable[[Floats], Ends]
"""From values of the following step to bounds on their mean at every (action, state)."""


class Solved(NamedTuple):
    """Values of every step and state; index l belongs to step l + 1."""

    values: Floats  # (horizon, n_states)
    q: Floats  # (horizon, n_actions, n_states)
    widths: Floats  # (horizon, n_actions, n_states) what the bounds leave open about q


def backward_induction(
    horizon: int, discount: float, rewards: Ends, means: Means, at_most: Floats | None = None
) -> Solved:
    """Optimistic values: the upper ends, step by step from the last.

    Q_l(s, a) = R_high(s, a) + discount * min(mean_high(V_{l+1})(s, a), max V_{l+1}),
    V_l(s) = max_a Q_l(s, a), and Q_l never above `at_most`.
    No mean leaves the range of V_{l+1}: this caps values by what can still be earned.
    Cost: horizon times that of `means`.
    """
    reward_low, reward_high = rewards
    shape = (horizon, *reward_high.shape)
    q, widths = np.zeros(shape), np.zeros(shape)
    values = np.zeros((horizon, shape[2]))
    following = np.zeros(shape[2])
    for step in reversed(range(horizon)):
        low, high = means(following)
        lowest, highest = following.min(), following.max()
        q[step] = reward_high + discount * np.clip(high, lowest, highest)
        pessimistic = reward_low + discount * np.clip(low, lowest, highest)
        if at_most is not None:
            np.minimum(q[step], at_most[step], out=q[step])
        widths[step] = np.maximum(q[step] - pessimistic, 0.0)
        following = values[step] = q[step].max(axis=0)
    return Solved(values, q, widths)
