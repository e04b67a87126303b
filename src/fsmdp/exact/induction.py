"""Induction over steps: values of all steps from a way to go one step back, and their accuracy.

Accuracy is relative to the model's own returns, never to 1, so that neither the unit of rewards
nor a constant that is added to them decides anything.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fsmdp.model.marginals import EPSILON
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.structure import sum_of_discounts
from fsmdp.model.tables import Floats

Actions = NDArray[np.unsignedinteger]
BackUp = Callable[[Floats, Floats, Actions, float, int], None]
"""(later, values, actions, tie, row): write values and actions of a row from the later values.

The action is the first whose value is within `tie` of the best.
"""

TOLERANCE = 1e-12
"""Value iteration stops this close to the optimum, relative to the span of returns."""
RESIDUAL_ROUNDING = 64 * EPSILON
"""It also stops where residuals are below this, relative to the largest return."""
PATIENCE = 100
"""Sweeps without progress after which rounding is all that is left."""


@dataclass(frozen=True, slots=True)
class Accuracy:
    """|V - V*| <= `error` at every state and step; the policy earns at least V* - `loss` there."""

    error: float
    loss: float


def backup_rounding(model: FactoredMDP, summed: int) -> float:
    """More than rounding can change one backup of values: R(s, a) + discount * E[V(s') | s, a].

    A backup multiplies rows of kernels, and adds up rewards and at most `summed` products beside
    the values of what is drawn. Each operation is off by less than EPSILON times the largest
    return.
    """
    terms = sum(model.dynamics.drawn_sizes) + len(model.reward_means) + summed + 8
    return float(8 * EPSILON * terms * model.largest_size_of_return)


def accuracy_of_steps(model: FactoredMDP, rounding: float) -> Accuracy:
    """Of backward induction whose backups round by at most `rounding`.

    Each step adds its rounding to those of the steps after it, and the mean over the start one
    more. An action counts as the best within twice the rounding.
    """
    steps = sum_of_discounts(model.horizon, model.discount)
    return Accuracy((steps + 1) * rounding, 4 * steps * rounding)


def accuracy_of_residual(
    model: FactoredMDP, rounding: float, least: float, most: float, tie: float
) -> Accuracy:
    """Of stationary values V with `least` <= TV - V <= `most`, and actions within `tie` of best.

    V + least / (1 - discount) <= V* <= V + most / (1 - discount), and the policy's value is not
    below the left side by more than tie / (1 - discount). Each backup may be off by `rounding`.
    """
    steps = sum_of_discounts(None, model.discount)
    error = steps * (max(abs(least), abs(most)) + rounding) + rounding
    loss = steps * (max(0.0, most) - min(0.0, least) + tie + 3 * rounding)
    return Accuracy(error, loss)


def action_type(model: FactoredMDP) -> np.dtype[np.unsignedinteger]:
    """The smallest integers that hold every action's position."""
    return np.min_scalar_type(len(model.actions) - 1)


def induct_backward(
    model: FactoredMDP, n_columns: int, keep_all: bool, back_up: BackUp, rounding: float
) -> tuple[Floats, Actions, Accuracy]:
    """Values and actions of every step of a finite horizon; perhaps values of the first alone."""
    assert model.horizon is not None
    n_rows = model.horizon + 1
    values = np.full((n_rows if keep_all else 2, n_columns), np.nan)
    actions = np.zeros((model.horizon, n_columns), dtype=action_type(model))
    values[model.horizon % len(values)] = 0.0
    for row in reversed(range(model.horizon)):
        later, now = values[(row + 1) % len(values)], values[row % len(values)]
        back_up(later, now, actions[row], 2 * rounding, row)
    accuracy = accuracy_of_steps(model, rounding)
    return (values if keep_all else values[:1].copy()), actions, accuracy


def iterate_values(
    model: FactoredMDP, n_columns: int, back_up: BackUp, rounding: float
) -> tuple[Floats, Actions, Accuracy]:
    """Values and actions of an infinite horizon by value iteration.

    With c(s) = (TV)(s) - V(s), the optimum lies between TV + discount / (1 - discount) * min c and
    the same with max c (MacQueen 1966); each sweep ends in the middle. It stops when that is within
    `TOLERANCE`, or when only rounding is left. Cost: a sweep for each factor
    `discount` in accuracy.
    """
    weight = model.discount / (1 - model.discount)
    enough = max(
        TOLERANCE * model.span_of_return,
        weight * RESIDUAL_ROUNDING * model.largest_size_of_return,
    )
    values, after = np.zeros(n_columns), np.zeros(n_columns)
    actions = np.zeros(n_columns, dtype=action_type(model))
    smallest, waited = np.inf, 0
    while True:
        back_up(values, after, actions, 2 * rounding, 0)
        values -= after
        low, high = -float(values.max()), -float(values.min())
        after += weight * (low + high) / 2
        values, after = after, values
        error = weight * (high - low) / 2
        waited = 0 if error < smallest else waited + 1
        smallest = min(smallest, error)
        if error <= enough or waited == PATIENCE:
            break
    # Values that are off by `error` tell actions apart by twice as much at most.
    tie = 2 * model.discount * error + 2 * rounding
    back_up(values, after, actions, tie, 0)
    after -= values
    accuracy = accuracy_of_residual(model, rounding, float(after.min()), float(after.max()), tie)
    return values[None, :], actions[None, :], accuracy
