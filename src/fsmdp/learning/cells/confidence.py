"""Confidence sets: what counts say about the next mean of each basis function, and of rewards.

Only the mean of h_j after a step enters planning, so each cell's set is an interval of means:
[min h_j, max h_j] as long as nothing was seen, and exactly [1, 1] for the constant h_0. `scale`
multiplies squared radii; with anything but 1 the guarantee is lost.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.special import betaln, xlog1py, xlogy

from fsmdp.bounds.bellman import Intervals
from fsmdp.compiled import compiled
from fsmdp.errors import ModelError
from fsmdp.foundation.checks import show
from fsmdp.foundation.registry import Registry
from fsmdp.learning.cells.layout import Cells
from fsmdp.learning.cells.statistics import Statistics
from fsmdp.model.extremes import mean_in_ball
from fsmdp.model.tables import Floats, Integers

BISECTIONS = 50


@compiled()
def fill_divergence_ends(shares: Floats, allowed: Floats, low: Floats, high: Floats) -> None:
    """Outermost q on both sides of each share p with kl(p, q) at most what is allowed."""
    for cell in range(len(shares)):
        p = shares[cell]
        for side in range(2):
            end = float(side)
            inside, outside = p, end
            for _ in range(BISECTIONS):
                q = (inside + outside) / 2
                # Halving can reach an end: as far as numbers go, nothing is between it and p then.
                divergence = np.inf if (p > 0 and q <= 0) or (p < 1 and q >= 1) else 0.0
                if p > 0 and q > 0:
                    divergence += p * np.log(p / q)
                if p < 1 and q < 1:
                    divergence += (1 - p) * np.log((1 - p) / (1 - q))
                if divergence <= allowed[cell]:
                    inside = q
                else:
                    outside = q
            # The outer end of the last bracket, so that rounding keeps the truth inside.
            if side == 0:
                low[cell] = outside
            else:
                high[cell] = outside


def lowest_shares(
    shares: Floats, visits: Integers, events: float, delta: float, scale: float
) -> Floats:
    """P^ - min(P^, sqrt(18 P^ L / n) + 18 L / n), L = log(6 events / delta); 0 if nothing was seen.

    `events` count values, cells, factors and steps. By Chernoff's inequality a share exceeds its
    probability by more than sqrt(2 P^ x / n) with probability e^-x at most; x is 9 L here, so that
    the truth is below in some cell at some time with probability delta at most.
    Source: Xu and Tewari (2020), as far as the form goes.
    """
    log_term = scale * 18 * math.log(6 * events / delta) / np.maximum(visits, 1)
    width = np.sqrt(shares * log_term) + log_term
    return np.where(visits > 0, np.maximum(shares - width, 0.0), 0.0)


def total_variations(
    cells: Cells, visits: Integers, events: int, delta: float, scale: float
) -> Floats:
    """How far, in total variation, the law of each cell may be from its average; 1 if unseen.

    min(1, sqrt((log(2^|Val| - 2) + log(events pi^2 n^2 / (6 delta))) / (2 n))), events all cells
    that are counted: in no cell and after no number of visits is it ever farther, with probability
    1 - delta at least. Source: Weissman and others (2003), with a union over cells and visits.
    """
    n = np.maximum(visits, 1).astype(np.float64)
    sizes = np.maximum(cells.n_values, 2).astype(np.float64)
    subsets = sizes * math.log(2) + np.log1p(-(2.0 ** (1 - sizes)))  # log(2^sizes - 2)
    logs = scale * (subsets + np.log(events * math.pi**2 * n**2 / (6 * delta)))
    found = np.where(visits > 0, np.minimum(1.0, np.sqrt(logs / (2 * n))), 1.0)
    return np.where(cells.n_values > 1, found, 0.0)


Ends = tuple[Floats, Floats]
"""Lower and upper ends, one of each for every cell."""

Means = Callable[[Cells, Statistics, int, float, float], Ends]
"""From cells, statistics, episode, delta and scale to the ends of every transition cell's mean."""


@dataclass(frozen=True, slots=True, eq=False)
class ConfidenceSet:
    """Intervals from counts: with probability 1 - `delta` all of them hold the truth, always.

    `by_visits` says over what the union runs for rewards: the visits of a cell, or episodes.
    A set without a proof is `heuristic`, and so is every learner that uses it.
    """

    name: str
    means: Means = field(repr=False)
    by_visits: bool = True
    heuristic: bool = False

    def intervals(
        self,
        cells: Cells,
        statistics: Statistics,
        episode: int,
        delta: float,
        delta_rewards: float,
        scale: float = 1.0,
    ) -> Intervals:
        """What is known of every cell. Cost: the number of outcomes."""
        low, high = self._means(cells, statistics, episode, delta, scale)
        reward_low, reward_high = reward_bounds(
            cells, statistics, episode, delta_rewards, scale, by_visits=self.by_visits
        )
        return Intervals(reward_high, low, high, reward_low)

    def _means(
        self, cells: Cells, statistics: Statistics, episode: int, delta: float, scale: float
    ) -> Ends:
        found = self.means(cells, statistics, episode, delta, scale)
        shape = (2, cells.n_transition_cells)
        try:
            ends = np.asarray(found, dtype=np.float64)
        except (TypeError, ValueError):
            ends = np.zeros(0)
        if ends.shape != shape or not np.isfinite(ends).all():
            raise ModelError(
                f"confidence set {show(self.name)}: expected two arrays of {shape[1]} finite "
                f"numbers, the lower and upper end of each cell, found {show(found)}; start from "
                "cells.lowest and cells.highest."
            )
        return ends[0], ends[1]


CONFIDENCE: Registry[ConfidenceSet] = Registry("confidence set", entries=ConfidenceSet)
"""Every confidence set by name: the only list of them."""


def register(confidence: ConfidenceSet) -> ConfidenceSet:
    """Add a confidence set, so that learners, specifications and the command line know its name."""
    return CONFIDENCE.add(confidence)


def weissman(
    cells: Cells, statistics: Statistics, episode: int, delta: float, scale: float = 1.0
) -> Ends:
    """The paper's sets: an L1 ball around the empirical distribution of the scope's values.

    d = 2 |Val(Z_j)| log 2 - 2 log(delta / (2 N |Pa| k^2)),  radius min(2, sqrt(d / n))
    Ends of the mean over the ball by Algorithm 3, for both signs. Functions of the same scope and
    parents share a ball, which N counts once.
    Cost: the number of outcomes. Paper: Algorithms 1 and 3.
    """
    squared = 2 * cells.n_values * math.log(2) - 2 * np.log(
        delta / (2 * cells.n_sets * cells.n_parents * float(episode) ** 2)
    )
    return ball_ends(cells, statistics, scale * squared)


def ball_ends(cells: Cells, statistics: Statistics, squared: Floats) -> Ends:
    """Ends of every mean over L1 balls of squared radius `squared` / n."""
    low, high = cells.lowest.copy(), cells.highest.copy()
    fill_ball_ends(
        cells.layout.outcome_start,
        cells.layout.value_start,
        cells.n_values,
        cells.function,
        cells.values,
        cells.descending,
        statistics.transition_visits,
        statistics.outcomes,
        squared,
        low,
        high,
    )
    return low, high


def hoeffding(
    cells: Cells, statistics: Statistics, _episode: int, delta: float, scale: float = 1.0
) -> Ends:
    """Hoeffding's inequality on the mean of h_j itself: no price for the size of its scope.

    radius = (max h_j - min h_j) sqrt(log(2 N pi^2 n^2 / (6 delta)) / (2 n))
    The union runs over cells and numbers of visits n, so it holds although n is random.
    """
    n = np.maximum(statistics.transition_visits, 1)
    means, _ = empirical_moments(cells, statistics)
    radius = (cells.highest - cells.lowest) * np.sqrt(
        scale * _visits_log(2 * cells.n_learnt, n, delta) / (2 * n)
    )
    return _around(cells, statistics, means, radius)


def bernstein(
    cells: Cells, statistics: Statistics, episode: int, delta: float, scale: float = 1.0
) -> Ends:
    """Empirical Bernstein sets on the mean of h_j, intersected with `hoeffding`; delta is halved.

    radius = sqrt(2 v log(4 / delta') / n) + 7 range log(4 / delta') / (3 (n - 1)),  n >= 2,
    delta' = 6 (delta / 2) / (pi^2 n^2 N), v the sample variance.
    Source: Maurer and Pontil (2009), Theorem 4, on both sides.
    """
    low, high = hoeffding(cells, statistics, episode, delta / 2, scale)
    n = np.maximum(statistics.transition_visits, 2)
    means, variances = empirical_moments(cells, statistics)
    logs = _visits_log(4 * cells.n_learnt, n, delta / 2)
    ranges = cells.highest - cells.lowest
    radius = math.sqrt(scale) * (
        np.sqrt(2 * variances * logs / n) + 7 * ranges * logs / (3 * (n - 1))
    )
    seen_twice = statistics.transition_visits >= 2
    low[seen_twice] = np.maximum(low, means - radius)[seen_twice]
    high[seen_twice] = np.minimum(high, means + radius)[seen_twice]
    return low, high


def chernoff(
    cells: Cells, statistics: Statistics, _episode: int, delta: float, scale: float = 1.0
) -> Ends:
    """Chernoff's inequality on the mean of h_j: the means m with n kl(mean, m) <= L.

    kl(p, q) = p log(p / q) + (1 - p) log((1 - p) / (1 - q)) of means scaled to [0, 1],
    L = log(2 N pi^2 n^2 / (6 delta)). It holds for every variable in [0, 1], with the union of
    `hoeffding`, inside whose sets it lies (Pinsker); it is far smaller where means are near an end.
    Cost: a bisection in each cell. Source: Garivier and Cappe (2011), Lemma 9.
    """
    n = np.maximum(statistics.transition_visits, 1)
    shares = _shares(cells, statistics)
    allowed = scale * _visits_log(2 * cells.n_learnt, n, delta) / n
    return _divergence_ends(cells, statistics, shares, allowed)


def _shares(cells: Cells, statistics: Statistics) -> Floats:
    """Averages, scaled to [0, 1]."""
    ranges = np.maximum(cells.highest - cells.lowest, 1e-300)
    means, _ = empirical_moments(cells, statistics)
    return np.asarray(np.clip((means - cells.lowest) / ranges, 0.0, 1.0))


def _divergence_ends(cells: Cells, statistics: Statistics, shares: Floats, allowed: Floats) -> Ends:
    """Ends of the means m with kl(share, m) <= allowed, shares being means scaled to [0, 1]."""
    low, high = np.zeros(len(shares)), np.ones(len(shares))
    fill_divergence_ends(shares, allowed, low, high)
    ranges = cells.highest - cells.lowest
    seen = (statistics.transition_visits > 0) & (ranges > 0)
    return (
        np.where(seen, cells.lowest + ranges * low, cells.lowest),
        np.where(seen, cells.lowest + ranges * high, cells.highest),
    )


def mixture(
    cells: Cells, statistics: Statistics, _episode: int, delta: float, scale: float = 1.0
) -> Ends:
    """The means m that a mixture of all means does not refute: a bet against m pays N / delta.

    With S the sum of n values scaled to [0, 1], and F a distribution of means x, half of it
    Beta(1/2, 1/2) and a quarter on each end,

        log int x^S (1 - x)^(n - S) dF(x) - S log m - (n - S) log(1 - m) <= log(N / delta).

    If m is the mean, the left side's exponential is a supermartingale that starts at 1: for values
    0 and 1 it is a ratio of likelihoods, and for others x^v (1 - x)^(1 - v) is below what is linear
    in v (means of two numbers). By Ville's inequality it ever exceeds N / delta with probability
    delta / N at most, so that no union over visits is paid for; where a value never occurs, m is at
    most log(4 N / delta) / n.
    Cost: a bisection in each cell. Sources: Robbins (1970), Statistical methods related to the law
    of the iterated logarithm; Krichevsky and Trofimov (1981) for the Beta distribution.
    """
    n = statistics.transition_visits.astype(np.float64)
    shares = _shares(cells, statistics)
    some = np.maximum(n, 1.0)
    sums = shares * some
    with np.errstate(divide="ignore"):
        entropy = some * (xlogy(shares, shares) + xlog1py(1 - shares, -shares))
    middle = betaln(sums + 0.5, some - sums + 0.5) - math.log(math.pi) - math.log(2)
    ends = np.where((shares == 0) | (shares == 1), -math.log(4), -np.inf)
    # The divergence n kl(share, m) that is allowed: what m = share leaves of the limit.
    allowed = math.log(cells.n_learnt / delta) - np.logaddexp(middle, ends) + entropy
    return _divergence_ends(cells, statistics, shares, scale * allowed / some)


def osband(
    cells: Cells, statistics: Statistics, episode: int, delta: float, scale: float = 1.0
) -> Ends:
    """L1 balls of squared radius 4 |Val(i)| log(4 m |X_i| k / delta) / n around each scope's law.

    |X_i| are the cells of scope i, m the number of scopes that are counted. Where independence is
    stated these are the independent parts, and sets of products are made from theirs.
    Source: Osband and Van Roy (2014), Algorithm 2.
    """
    events = 4 * cells.n_scopes * np.bincount(cells.function)[cells.function] * float(episode)
    return ball_ends(cells, statistics, scale * 4 * cells.n_values * np.log(events / delta))


register(ConfidenceSet("weissman", weissman, by_visits=False))
register(ConfidenceSet("hoeffding", hoeffding))
register(ConfidenceSet("bernstein", bernstein))
register(ConfidenceSet("chernoff", chernoff))
register(ConfidenceSet("osband", osband, by_visits=False))
register(ConfidenceSet("mixture", mixture))


def reward_bounds(
    cells: Cells,
    statistics: Statistics,
    episode: int,
    delta: float,
    scale: float = 1.0,
    by_visits: bool = False,
) -> Ends:
    """Bounds on the mean of every reward cell, clipped to what is known of its term.

    radius = sqrt(4 sigma^2 log(4 l |X_i| k / delta) / n), the paper's, or with the union over the
    visits: sqrt(2 sigma^2 log(2 N pi^2 n^2 / (6 delta)) / n), N all reward cells together.
    A term without noise is known after one visit.
    """
    n = np.maximum(statistics.reward_visits, 1)
    means = statistics.reward_sums / n
    if by_visits:
        squared = 2 * cells.sigma**2 * _visits_log(2 * cells.n_reward_cells, n, delta)
    else:
        l = cells.layout.n_terms  # noqa: E741
        squared = 4 * cells.sigma**2 * np.log(4 * l * cells.n_term_cells * float(episode) / delta)
    radius = np.sqrt(scale * squared / n)
    unseen = statistics.reward_visits == 0
    low = np.clip(means - radius, cells.reward_low, cells.reward_high)
    high = np.clip(means + radius, cells.reward_low, cells.reward_high)
    return np.where(unseen, cells.reward_low, low), np.where(unseen, cells.reward_high, high)


def empirical_moments(cells: Cells, statistics: Statistics) -> Ends:
    """Mean and sample variance of h_j in every cell; zero where too little was seen."""
    return _moments(cells, statistics.transition_visits, statistics.outcomes)


def weighted_means(cells: Cells, totals: Floats, outcomes: Floats) -> Floats:
    """Mean of h_j in every cell when its outcomes have these weights, which add up to `totals`."""
    return _moments(cells, totals, outcomes)[0]


def _moments(cells: Cells, totals: np.ndarray, outcomes: np.ndarray) -> Ends:
    means, variances = np.zeros(cells.n_transition_cells), np.zeros(cells.n_transition_cells)
    fill_moments(
        cells.layout.outcome_start,
        cells.layout.value_start,
        cells.n_values,
        cells.function,
        cells.values,
        totals,
        outcomes,
        means,
        variances,
    )
    return means, variances


def _visits_log(events: int, n: Integers, delta: float) -> Floats:
    """log(events pi^2 n^2 / (6 delta)): a union over events and over n = 1, 2, ..."""
    return np.asarray(np.log(events * math.pi**2 * n.astype(np.float64) ** 2 / (6 * delta)))


def _around(cells: Cells, statistics: Statistics, means: Floats, radius: Floats) -> Ends:
    seen = statistics.transition_visits > 0
    low = np.where(seen, np.maximum(means - radius, cells.lowest), cells.lowest)
    high = np.where(seen, np.minimum(means + radius, cells.highest), cells.highest)
    return low, high


@compiled()
def fill_moments(
    outcome_start: Integers,
    value_start: Integers,
    n_values: Integers,
    function: Integers,
    values: Floats,
    visits: Integers,
    outcomes: Integers,
    means: Floats,
    variances: Floats,
) -> None:
    """Mean and sample variance of h_j, cell by cell."""
    for cell in range(len(function)):
        n = visits[cell]
        if n == 0:
            continue
        first, at = outcome_start[cell], value_start[function[cell]]
        total = 0.0
        for y in range(n_values[cell]):
            total += outcomes[first + y] * values[at + y]
        mean = total / n
        means[cell] = mean
        if n > 1:
            spread = 0.0
            for y in range(n_values[cell]):
                spread += outcomes[first + y] * (values[at + y] - mean) ** 2
            variances[cell] = spread / (n - 1)


@compiled()
def fill_ball_ends(
    outcome_start: Integers,
    value_start: Integers,
    n_values: Integers,
    function: Integers,
    values: Floats,
    descending: Integers,
    visits: Integers,
    outcomes: Integers,
    squared: Floats,
    low: Floats,
    high: Floats,
) -> None:
    """Extreme means of h_j over L1 balls of squared radius squared / n."""
    shares = np.zeros(n_values.max())
    for cell in range(len(function)):
        n = visits[cell]
        if n == 0:
            continue
        first, at = outcome_start[cell], value_start[function[cell]]
        end = at + n_values[cell]
        for y in range(n_values[cell]):
            shares[y] = outcomes[first + y] / n
        radius = np.sqrt(squared[cell] / n)
        own, order = values[at:end], descending[at:end]
        high[cell] = min(mean_in_ball(shares, own, order, radius), high[cell])
        low[cell] = max(mean_in_ball(shares, own, order[::-1], radius), low[cell])
