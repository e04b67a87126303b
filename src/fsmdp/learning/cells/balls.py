"""Algorithm 3: the extreme means over an L1 ball of distributions."""

from __future__ import annotations

import math

import numpy as np

from fsmdp.compiled import compiled
from fsmdp.learning.cells.layout import Cells
from fsmdp.model.lookup import Integers
from fsmdp.model.tables import Floats


@compiled(inline="always")
def mean_in_ball(probabilities: Floats, values: Floats, order: Integers, radius: float) -> float:
    """The most extreme mean of values over an L1 ball around probabilities.

    `order` sorts the values, best first: half the radius is put on the best, and taken from the
    others, worst first. Reversed, it gives the other extreme.
    Cost: the number of values.
    Paper: Algorithm 3. Source: Jaksch, Ortner and Auer (2010), Figure 2.
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


@compiled(inline="always")
def sort_descending(values: Floats, order: Integers) -> None:
    """Positions of a few values from the largest to the smallest, without allocating."""
    for y in range(len(values)):
        at = y
        while at > 0 and values[order[at - 1]] < values[y]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = y


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
