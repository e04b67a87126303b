"""How far the law of a scope may be from what was seen: bounds that other systems plan with."""

from __future__ import annotations

import math

import numpy as np

from fsmdp.learning.cells.layout import Cells
from fsmdp.model.lookup import Integers
from fsmdp.model.tables import Floats


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
