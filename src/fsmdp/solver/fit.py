"""One step's values, fitted to the states of a pool by least squares."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from fsmdp.foundation.threads import in_threads, split
from fsmdp.model.lookup import Integers
from fsmdp.model.tables import Floats
from fsmdp.solver.backups import Backups
from fsmdp.solver.features import Features, add_products

WORTH_A_THREAD = 256
"""States below which a thread more does not pay."""

FREE = 1e-3
"""The constant is drawn to the targets' mean by so much less than the others to 0."""


def targets_of(backups: Backups, entries: Floats, states: Integers) -> Floats:
    """max_a R(s, a) + discount * E[V(s') | s, a] for each state. Cost: look-ups of all actions."""
    return backups.best(entries, states)[0]


def fit_step(
    backups: Backups,
    features: Features,
    states: Integers,
    counts: Floats,
    entries: Floats,
    ridge: float,
) -> Floats:
    """Weights w that minimise sum_s n(s) (w h(s) - target(s))^2 + ridge * sum_s n(s) * |w|^2.

    Targets are centred first, so that the penalty draws values to their mean.
    """
    targets = targets_of(backups, entries, states)
    total = float(counts.sum())
    middle = float(counts @ targets) / total
    parts = split(len(states), WORTH_A_THREAD)
    n_functions = features.n_functions
    products = np.zeros((len(parts), n_functions, n_functions))
    moments = np.zeros((len(parts), n_functions))
    centred = targets - middle

    def run(part: int) -> None:
        at = parts[part]
        add_products(features, states[at], counts[at], centred[at], products[part], moments[part])

    in_threads(run, len(parts))
    matrix = products.sum(axis=0)
    penalty = np.full(n_functions, ridge * total)
    penalty[0] *= FREE
    matrix[np.diag_indices_from(matrix)] += penalty
    factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
    found = np.asarray(cho_solve(factor, moments.sum(axis=0), check_finite=False))
    found[0] += middle
    return found
