"""Enumeration of every state: exact values of small models, the oracle of small tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fsmdp.errors import SizeError
from fsmdp.foundation.checks import as_whole, check_size, plural, show_count
from fsmdp.model.marginals import EPSILON
from fsmdp.model.mdp import FactoredMDP, backup_rounding, check_model
from fsmdp.model.structure import sum_of_discounts
from fsmdp.model.tables import Floats, Rebuilt, read_only
from fsmdp.model.variables import state_strides, table_size

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


def back_up_all(
    model: FactoredMDP, n_columns: int, back_up: BackUp, rounding: float, keep_all: bool = True
) -> tuple[Floats, Actions, Accuracy]:
    """Values and actions by backups of all states, of every step or of the only one."""
    if model.horizon is None:
        return iterate_values(model, n_columns, back_up, rounding)
    return induct_backward(model, n_columns, keep_all, back_up, rounding)


def iterate_values(
    model: FactoredMDP, n_columns: int, back_up: BackUp, rounding: float
) -> tuple[Floats, Actions, Accuracy]:
    """Values and actions of an infinite horizon by value iteration.

    With c(s) = (TV)(s) - V(s), the optimum lies between TV + discount / (1 - discount) * min c and
    the same with max c (MacQueen 1966); each sweep ends in the middle. It stops when that is within
    `TOLERANCE`, or when only rounding is left. Cost: a sweep for each factor
    `discount` in accuracy. Terminal states keep the value 0, so that the bounds with them are those
    with 0 among the residuals, and no constant is added.
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
        if model.terminal:
            error = weight * max(0.0, high, -low)
        else:
            after += weight * (low + high) / 2
            error = weight * (high - low) / 2
        values, after = after, values
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


Integers = NDArray[np.int64]

ENTRY_LIMIT = 2**28


@dataclass(frozen=True, slots=True, eq=False)
class FlatMDP(Rebuilt):
    """Every state written out: transition matrices and mean rewards by action.

    Rows of terminal states are 0, and rewards of actions that are not allowed minus infinity.
    """

    model: FactoredMDP
    states: Integers  # (n_states, n_variables), last variable fastest
    transitions: Floats  # (n_actions, n_states, n_states)
    rewards: Floats  # (n_actions, n_states)

    def __post_init__(self) -> None:
        for name in ("states", "transitions", "rewards"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    def index(self, state: Sequence[int]) -> int:
        """Row of a state."""
        return int(np.array(self.model.check_state(state)) @ state_strides(self.model.sizes))

    def initial(self) -> Floats:
        """Probability of each state at the start."""
        probabilities = np.ones(1)
        for distribution in self.model.initial_distributions():
            probabilities = np.outer(probabilities, distribution).ravel()
        return probabilities

    def __repr__(self) -> str:
        return f"FlatMDP({plural(len(self.states), 'state')}, {self.model!r})"


def enumerate_states(model: FactoredMDP, limit: int = ENTRY_LIMIT) -> FlatMDP:
    """Transition matrices and rewards over all states.

    P(s' | s, a) = sum over latents of the product of all kernels.
    Cost: |actions| * |states|^2 entries, and |states| times the largest joint of what is drawn in
    a step (next values and the latents still needed); each refused above `limit`.
    """
    model = check_model(model, "enumeration").listed()
    limit = as_whole(limit, "limit", 1)
    _check_size(model, limit)
    states = all_assignments(model.sizes)
    transitions = np.stack(
        [_transition_matrix(model, states, a) for a in range(len(model.actions))]
    )
    rewards = np.stack([_mean_rewards(model, states, a) for a in range(len(model.actions))])
    if model.conditions:
        over = model.conditions.is_terminal(states)
        rewards[~model.conditions.mask(states).T] = -np.inf
        rewards[:, over], transitions[:, over] = 0.0, 0.0
    return FlatMDP(model, states, transitions, rewards)


def can_enumerate(model: FactoredMDP, limit: int) -> bool:
    """Whether `enumerate_states` would stay within a limit."""
    try:
        _check_size(model, limit)
    except SizeError:
        return False
    return True


def _check_size(model: FactoredMDP, limit: int) -> None:
    many = model.n_states >= 10**7
    count = f"10^{model.log10_states:.1f}" if many else str(model.n_states)
    entries = len(model.actions) * model.n_states**2
    _refuse_if_huge(entries, f"{len(model.actions)} x ({count} states)^2", limit)
    for action in range(len(model.actions)):
        joint = max(table_size(sizes) for sizes, _ in _draws(model, action))
        drawn = f"({count} states) x ({show_count(joint)} joint values drawn in a step)"
        _refuse_if_huge(joint * max(model.n_states, len(model.dynamics.drawn_sizes)), drawn, limit)


def solve_flat(
    flat: FlatMDP, check: Callable[[], None] = lambda: None
) -> tuple[Floats, Integers, Accuracy]:
    """Optimal values and actions by backward induction, or by policy iteration if infinite.

    Shapes (horizon + 1, n_states) and (horizon, n_states); (1, n_states) both if infinite.
    `check` is called before each step or sweep, and may raise to end it.
    """
    model, rounding = flat.model, backup_rounding(flat.model, len(flat.states))
    if model.horizon is None:
        return _solve_stationary(flat, rounding, check)
    values = np.zeros((model.horizon + 1, len(flat.states)))
    actions = np.zeros((model.horizon, len(flat.states)), dtype=np.int64)
    for row in reversed(range(model.horizon)):
        check()
        q_values = flat.rewards + model.discount * flat.transitions @ values[row + 1]
        actions[row] = _first_best(q_values, 2 * rounding)
        values[row] = q_values.max(axis=0)
    return values, actions, accuracy_of_steps(model, rounding)


def _solve_stationary(
    flat: FlatMDP, rounding: float, check: Callable[[], None]
) -> tuple[Floats, Integers, Accuracy]:
    """Policy iteration; how close it came is judged by the last Bellman residual.

    With c = TV - V, V* lies within max |c| / (1 - discount) of V.
    """
    model, every = flat.model, np.arange(len(flat.states))
    chosen = flat.rewards.argmax(axis=0)
    tried: set[bytes] = set()
    while True:
        check()
        tried.add(chosen.tobytes())
        values = np.linalg.solve(
            np.eye(len(every)) - model.discount * flat.transitions[chosen, every],
            flat.rewards[chosen, every],
        )
        q_values = flat.rewards + model.discount * flat.transitions @ values
        # A change must pay more than rounding, or two equal actions would alternate forever.
        better = q_values.max(axis=0) > q_values[chosen, every] + 2 * rounding
        chosen = np.where(better, q_values.argmax(axis=0), chosen)
        if chosen.tobytes() in tried:
            break
    residual = q_values.max(axis=0) - values
    accuracy = accuracy_of_residual(
        model, rounding, float(residual.min()), float(residual.max()), 2 * rounding
    )
    return values[None, :], _first_best(q_values, 2 * rounding)[None, :], accuracy


def _first_best(q_values: Floats, tie: float) -> Integers:
    """The lowest action whose value is within `tie` of the largest; q_values[action, state]."""
    return np.asarray((q_values >= q_values.max(axis=0) - tie).argmax(axis=0), dtype=np.int64)


def all_assignments(sizes: Sequence[int]) -> Integers:
    """Every assignment, one per row, the last variable fastest; for any number of variables."""
    rows = np.arange(table_size(sizes), dtype=np.int64)[:, None]
    return np.asarray(rows // state_strides(sizes) % np.array(sizes, dtype=np.int64))


def _draws(model: FactoredMDP, action: int) -> list[tuple[list[int], list[int]]]:
    """For each mechanism: sizes of all that is held once it is drawn, and latents to forget then.

    A latent is forgotten after the last mechanism that looks at it.
    """
    dynamics, first_latent = model.dynamics, len(model.sizes)
    kernels = [mechanism.cases.at(action) for mechanism in dynamics.mechanisms]
    last_use: dict[int, int] = {}
    for index, mechanism in enumerate(dynamics.mechanisms):
        for drawn in (*mechanism.children, *kernels[index].drawn):
            last_use[drawn] = index
    held: set[int] = set()
    draws = []
    for index, mechanism in enumerate(dynamics.mechanisms):
        held |= set(mechanism.children)
        idle = [d for d in held if d >= first_latent and last_use[d] == index]
        draws.append(([dynamics.drawn_sizes[d] for d in held], sorted(idle)))
        held -= set(idle)
    return draws


def _transition_matrix(model: FactoredMDP, states: Integers, action: int) -> Floats:
    """P(s' | s, a) for all s and s', drawing one mechanism after the other."""
    dynamics = model.dynamics
    # joint[s, i]: probability that what is drawn so far has the values drawn[i]
    joint = np.ones((len(states), 1))
    drawn = np.zeros((1, len(dynamics.drawn_sizes)), dtype=np.int64)
    for mechanism, (_, idle) in zip(dynamics.mechanisms, _draws(model, action), strict=True):
        kernel = mechanism.cases.at(action)
        sizes = [dynamics.drawn_sizes[child] for child in mechanism.children]
        outcomes = all_assignments(sizes)
        current = tuple(states[:, None, p] for p in kernel.parents)
        earlier = tuple(drawn[None, :, d] for d in kernel.drawn)
        rows = kernel.table[(*current, *earlier)]
        shape = (len(states), len(drawn), len(outcomes))
        rows = np.broadcast_to(rows.reshape(*rows.shape[: rows.ndim - len(sizes)], -1), shape)
        joint = (joint[:, :, None] * rows).reshape(len(states), -1)
        drawn = np.repeat(drawn, len(outcomes), axis=0)
        drawn[:, mechanism.children] = np.tile(outcomes, (shape[1], 1))
        joint, drawn = _forget(idle, joint, drawn)
    order = drawn[:, : len(model.sizes)] @ state_strides(model.sizes)
    matrix = np.zeros((len(states), len(states)))
    matrix[:, order] = joint
    return matrix


def _forget(idle: Sequence[int], joint: Floats, drawn: Integers) -> tuple[Floats, Integers]:
    """Sum out some latents."""
    if not drawn[:, idle].any():
        return joint, drawn
    drawn = drawn.copy()
    drawn[:, idle] = 0
    distinct, where = np.unique(drawn, axis=0, return_inverse=True)
    summed = np.zeros((joint.shape[0], len(distinct)))
    np.add.at(summed.T, where.ravel(), joint.T)
    return summed, distinct


def _mean_rewards(model: FactoredMDP, states: Integers, action: int) -> Floats:
    total = np.zeros(len(states))
    for means in model.reward_means:
        table = means.at(action)
        total += table.values[tuple(states[:, position] for position in table.scope)]
    return total


def _refuse_if_huge(entries: int, what: str, limit: int) -> None:
    remedy = (
        "use a smaller model, a larger limit=, or a planner that does not enumerate (fsmdp.plan)"
    )
    check_size(entries, limit, f"enumeration needs {what} =", remedy)
