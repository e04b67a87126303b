"""The plain simulator: the definition of a step, in Python, that compiled code must reproduce."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.tables import Floats


def simulate_plainly(
    model: FactoredMDP,
    act: Callable[[tuple[int, ...], int], int],
    episodes: int,
    rng: np.random.Generator,
) -> Floats:
    """Returns of episodes that draw the same random numbers as the compiled loop.

    Cost: about a hundred times that of `rollout`.
    """
    assert model.horizon is not None
    returns = np.zeros(episodes)
    for episode in range(episodes):
        state = tuple(_draw(start, rng) for start in model.initial_distributions())
        for step in range(model.horizon):
            action = act(state, step + 1)
            for reward, means in zip(model.rewards, model.reward_means, strict=True):
                observed = means.at(action).value(state)
                if reward.sigma > 0:
                    observed += reward.sigma * rng.standard_normal()
                returns[episode] += model.discount**step * observed
            state = _draw_next(model, state, action, rng)
    return returns


def _draw_next(
    model: FactoredMDP, state: tuple[int, ...], action: int, rng: np.random.Generator
) -> tuple[int, ...]:
    dynamics = model.dynamics
    drawn = [0] * len(dynamics.drawn_sizes)
    for mechanism in dynamics.mechanisms:
        kernel = mechanism.cases.at(action)
        given = (*(state[p] for p in kernel.parents), *(drawn[d] for d in kernel.drawn))
        sizes = [dynamics.drawn_sizes[child] for child in mechanism.children]
        outcome = _draw(kernel.table[given].ravel(), rng)
        for child, value in zip(mechanism.children, np.unravel_index(outcome, sizes), strict=True):
            drawn[child] = int(value)
    return tuple(drawn[: len(state)])


def _draw(probabilities: Floats, rng: np.random.Generator) -> int:
    below = np.cumsum(probabilities) <= rng.random()
    return min(int(below.sum()), len(probabilities) - 1)
