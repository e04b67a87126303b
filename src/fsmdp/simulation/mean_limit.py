"""A lower limit for a mean, with a stated probability and no assumption but bounded samples."""

from __future__ import annotations

import math

import numpy as np

from fsmdp.model.tables import Floats

LARGEST_BET = 0.75
STEPS = 60
"""Halvings of the interval: more digits than a float has."""


def lower_limit(samples: Floats, low: float, high: float, level: float) -> float:
    """A number below the mean of the samples' distribution with probability at least `level`.

    A gambler with capital 1 bets, before each sample x (moved to [0, 1]), that the mean is above m:

        K_t(m) = product of 1 + bet_i(m) (x_i - m),  0 <= bet_i(m) <= 3/4 / m.

    If the mean is m or below, K is a supermartingale, so that by Ville's inequality it ever
    reaches 1 / (1 - level) with probability 1 - level at most. K falls with m: the limit is the
    largest m at which it got there. Bets look at earlier samples only.
    Source: Waudby-Smith and Ramdas, Estimating means of bounded random variables by betting (2024),
    with their predictable plug-in bets.
    """
    if high <= low:
        return low
    x = (np.asarray(samples, dtype=np.float64) - low) / (high - low)
    goal = math.log(1 / (1 - level))
    bets = _bets(x, goal)
    outside, inside = 0.0, 1.0
    for _ in range(STEPS):
        m = (outside + inside) / 2
        capital = np.cumsum(np.log1p(np.minimum(bets, LARGEST_BET / m) * (x - m)))
        if capital.max() >= goal:
            outside = m
        else:
            inside = m
    return low + (high - low) * outside


def _bets(x: Floats, goal: float) -> Floats:
    """sqrt(2 log(1 / (1 - level)) / (n variance)), by the samples before each."""
    counts = np.arange(1, len(x) + 1)
    means = (0.5 + np.cumsum(x)) / (counts + 1)
    variances = (0.25 + np.cumsum((x - means) ** 2)) / (counts + 1)
    before = np.concatenate([[0.25], variances[:-1]])
    return np.asarray(np.sqrt(2 * goal / (len(x) * before)))
