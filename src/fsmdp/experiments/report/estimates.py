"""Moving means, slopes, and which points to draw."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fsmdp.model.tables import Floats

MOST_POINTS = 250
"""Points a curve is drawn with; more cannot be seen."""

FIT_POINTS = 50
FEWEST_TO_FIT = 16


def smoothing_window(n_episodes: int) -> int:
    """How many episodes a smoothed curve averages over."""
    return max(1, n_episodes // 20)


def moving_mean(samples: Floats, window: int) -> Floats:
    """Mean of each entry and those before it, `window` in all or as many as there are."""
    sums = np.cumsum(samples, axis=-1)
    sums[..., window:] = sums[..., window:] - sums[..., :-window]
    return np.asarray(sums / np.minimum(np.arange(1, samples.shape[-1] + 1), window))


def thinned(n_points: int, log: bool) -> NDArray[np.int64]:
    """Indices to draw, evenly spaced on the axis; the first and the last are among them."""
    if n_points <= MOST_POINTS:
        return np.arange(n_points)
    if log:
        chosen = np.geomspace(1, n_points, MOST_POINTS) - 1
    else:
        chosen = np.linspace(0, n_points - 1, MOST_POINTS)
    return np.unique(np.rint(chosen).astype(np.int64))


@dataclass(frozen=True, slots=True, eq=False)
class Slope:
    """A straight line on log axes: y = exp(intercept) * x^slope, from `start` to `end`."""

    slope: float
    intercept: float
    start: float
    end: float

    def at(self, x: Floats) -> Floats:
        """The line's height."""
        return np.asarray(np.exp(self.intercept) * x**self.slope)


def fit_slope(values: Floats) -> Slope | None:
    """Least squares on log axes over the last half of log-time.

    log y = slope * log k + c at log-spaced k from sqrt(K) to K, so that each part of log-time
    weighs the same. None where some value there is not positive, or there are too few episodes.
    """
    n_episodes = len(values)
    if n_episodes < FEWEST_TO_FIT or not positive_in_last_half(values):
        return None
    k = np.geomspace(math.sqrt(n_episodes), n_episodes, FIT_POINTS)
    y = np.interp(k, np.arange(1, n_episodes + 1), values)
    slope, intercept = np.polyfit(np.log(k), np.log(y), 1)
    return Slope(float(slope), float(intercept), float(k[0]), float(n_episodes))


def positive_in_last_half(values: Floats) -> bool:
    """Whether a log axis can show all values of the last half of log-time, from sqrt(K) on."""
    return bool((values[math.isqrt(len(values)) - 1 :] > 0).all())
