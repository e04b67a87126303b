"""Induction over steps: values of all steps from a way to go one step back."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.tables import Floats

Actions = NDArray[np.unsignedinteger]
BackUp = Callable[[Floats, Floats, Actions, float, int], None]
"""(later, values, actions, slack, row): write values and actions of a row from the later values.

Actions whose values differ by `slack` or less, or by rounding, count as equal.
"""

TOLERANCE = 1e-12
"""Values of an infinite horizon are this close to the optimum, relative to the largest or to 1."""
ROUNDING = 64 * float(np.finfo(np.float64).eps)
PATIENCE = 100
"""Sweeps without progress after which rounding is all that is left."""


def action_type(model: FactoredMDP) -> np.dtype[np.unsignedinteger]:
    """The smallest integers that hold every action's position."""
    return np.min_scalar_type(len(model.actions) - 1)


def induct_backward(
    model: FactoredMDP, n_columns: int, keep_all: bool, back_up: BackUp
) -> tuple[Floats, Actions]:
    """Values and actions of every step of a finite horizon; perhaps values of the first alone."""
    assert model.horizon is not None
    n_rows = model.horizon + 1
    values = np.full((n_rows if keep_all else 2, n_columns), np.nan)
    actions = np.zeros((model.horizon, n_columns), dtype=action_type(model))
    values[model.horizon % len(values)] = 0.0
    for row in reversed(range(model.horizon)):
        later, now = values[(row + 1) % len(values)], values[row % len(values)]
        back_up(later, now, actions[row], 0.0, row)
    return (values if keep_all else values[:1].copy()), actions


def iterate_values(
    model: FactoredMDP, n_columns: int, back_up: BackUp
) -> tuple[Floats, Actions, float]:
    """Values and actions of an infinite horizon by value iteration, and how far off they may be.

    With c(s) = (TV)(s) - V(s), the optimum lies between TV + discount / (1 - discount) * min c and
    the same with max c (MacQueen 1966); each sweep ends in the middle. It stops when that is within
    `TOLERANCE`, or when only rounding is left. Cost: a sweep for each factor
    `discount` in accuracy.
    """
    weight = model.discount / (1 - model.discount)
    values, after = np.zeros(n_columns), np.zeros(n_columns)
    actions = np.zeros(n_columns, dtype=action_type(model))
    smallest, waited = np.inf, 0
    while True:
        back_up(values, after, actions, 0.0, 0)
        values -= after
        low, high = -float(values.max()), -float(values.min())
        after += weight * (low + high) / 2
        values, after = after, values
        error = weight * (high - low) / 2
        scale = max(1.0, float(np.abs(values).max()))
        waited = 0 if error < smallest else waited + 1
        smallest = min(smallest, error)
        if error <= max(TOLERANCE, weight * ROUNDING) * scale or waited == PATIENCE:
            break
    # Values that are off by `error` tell actions apart by twice as much at most.
    back_up(values, after, actions, 2 * model.discount * error, 0)
    return values[None, :], actions[None, :], error
