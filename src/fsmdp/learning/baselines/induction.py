"""Backward induction over all states, from bounds on the mean of the following values."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from fsmdp.compiled import compiled
from fsmdp.model.lookup import Integers
from fsmdp.model.tables import Floats

Ends = tuple[Floats, Floats]
"""Lower and upper ends, one of each for every (action, state)."""

Means = Callable[[Floats], Ends]
"""From values of the following step to bounds on their mean at every (action, state)."""


class Solved(NamedTuple):
    """Values of every step and state; row l belongs to step l + 1."""

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
    for row in reversed(range(horizon)):
        low, high = means(following)
        lowest, highest = following.min(), following.max()
        q[row] = reward_high + discount * np.clip(high, lowest, highest)
        pessimistic = reward_low + discount * np.clip(low, lowest, highest)
        if at_most is not None:
            np.minimum(q[row], at_most[row], out=q[row])
        widths[row] = np.maximum(q[row] - pessimistic, 0.0)
        following = values[row] = q[row].max(axis=0)
    return Solved(values, q, widths)


@compiled(inline="always")
def mean_in_ball(probabilities: Floats, values: Floats, order: Integers, radius: float) -> float:
    """The most extreme mean of values over an L1 ball around probabilities.

    `order` sorts the values, best first: half the radius is put on the best, and taken from the
    others, worst first. Reversed, it gives the other extreme.
    Cost: the number of values. Source: Jaksch, Ortner and Auer (2010), Figure 2.
    """
    mean = 0.0
    for y in range(len(values)):
        mean += probabilities[y] * values[y]
    best = order[0]
    left = min(min(2.0, radius) / 2, 1.0 - probabilities[best])
    mean += left * values[best]
    for i in range(len(values) - 1, 0, -1):
        if left <= 0:
            break
        taken = min(left, probabilities[order[i]])
        mean -= taken * values[order[i]]
        left -= taken
    return mean  # type: ignore[no-any-return]
