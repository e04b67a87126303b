"""One step's values, fitted to the states of a pool by least squares."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from fsmdp.foundation.threads import in_threads, split
from fsmdp.model.lookup import Integers
from fsmdp.model.tables import Floats
from fsmdp.solver.backups import Backups
from fsmdp.solver.features import Features, add_products, fill_rows, fill_values

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
    later: Floats,
    ridge: float,
) -> Floats:
    """Weights w that minimise sum_s n(s) (w h(s) - target(s))^2 + ridge * sum_s n(s) * |w - v|^2.

    v are the weights of the following step, with the constant that fits best: drawn to 0 instead,
    functions that few states tell apart would lose part of their weight at every step. Cost: of
    `by_states` or `by_functions`, whichever are fewer.
    """
    targets = targets_of(backups, entries, states)
    expected = np.zeros(len(states))
    fill_values(features, later, states, expected)
    targets = targets - expected
    total = float(counts.sum())
    middle = float(counts @ targets) / total
    penalty = np.full(features.n_functions, ridge * total)
    penalty[0] *= FREE
    solve = by_states if len(states) <= features.n_functions else by_functions
    found = solve(features, states, counts, targets - middle, penalty)
    found += later
    found[0] += middle
    return found


def by_functions(
    features: Features, states: Integers, counts: Floats, targets: Floats, penalty: Floats
) -> Floats:
    """Normal equations: (H' N H + D) w = H' N y.

    Cost: for each state the square of its functions, and the cube of all functions.
    """
    parts = split(len(states), WORTH_A_THREAD)
    n_functions = features.n_functions
    products = np.zeros((len(parts), n_functions, n_functions))
    moments = np.zeros((len(parts), n_functions))

    def run(part: int) -> None:
        at = parts[part]
        add_products(features, states[at], counts[at], targets[at], products[part], moments[part])

    in_threads(run, len(parts))
    matrix = products.sum(axis=0)
    matrix[np.diag_indices_from(matrix)] += penalty
    factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
    return np.asarray(cho_solve(factor, moments.sum(axis=0), check_finite=False))


def by_states(
    features: Features, states: Integers, counts: Floats, targets: Floats, penalty: Floats
) -> Floats:
    """The same weights by their dual: w = A' z / sqrt(D) with (A A' + 1) z = sqrt(N) y.

    A = sqrt(N) H / sqrt(D). Cost: the square of the states times the functions.
    """
    roots = np.sqrt(counts)
    scaled = np.zeros((len(states), features.n_functions))
    fill_rows(features, states, scaled)
    scaled *= roots[:, None]
    scaled /= np.sqrt(penalty)
    matrix = scaled @ scaled.T
    matrix[np.diag_indices_from(matrix)] += 1.0
    factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
    solved = cho_solve(factor, roots * targets, check_finite=False)
    return np.asarray((solved @ scaled) / np.sqrt(penalty))
