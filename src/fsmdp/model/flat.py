"""Enumeration of every state: exact values of small models, the oracle of small tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fsmdp.errors import ModelError, SizeError
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.policies import Policy, follow
from fsmdp.model.tables import Floats

Integers = NDArray[np.int64]

ENTRY_LIMIT = 2**28


@dataclass(frozen=True, slots=True, eq=False)
class FlatMDP:
    """Every state written out: transition matrices and mean rewards by action."""

    model: FactoredMDP
    states: Integers  # (n_states, n_variables), last variable fastest
    transitions: Floats  # (n_actions, n_states, n_states)
    rewards: Floats  # (n_actions, n_states)

    def index(self, state: Sequence[int]) -> int:
        """Row of a state."""
        return int(np.ravel_multi_index(self.model.check_state(state), self.model.sizes))

    def initial(self) -> Floats:
        """Probability of each state at the start."""
        probabilities = np.ones(1)
        for distribution in self.model.initial_distributions():
            probabilities = np.outer(probabilities, distribution).ravel()
        return probabilities


@dataclass(frozen=True, slots=True, eq=False)
class ExactSolution:
    """Optimal values and actions of every state and step (one step stands for all if infinite)."""

    flat: FlatMDP
    values: Floats  # (horizon + 1, n_states), last row 0; (1, n_states) if infinite
    actions: Integers  # (horizon, n_states); (1, n_states) if infinite

    def value(self, state: Sequence[int], step: int = 1) -> float:
        """Expected return from a state at a step, acting optimally."""
        row = self._row(step, last=self.flat.model.horizon)
        return float(self.values[row, self.flat.index(state)])

    def action(self, state: Sequence[int], step: int = 1) -> str:
        """An optimal action; the first in the model's order where several are."""
        row = self._row(step, last=self.flat.model.horizon)
        return self.flat.model.actions[int(self.actions[row, self.flat.index(state)])]

    @property
    def start_value(self) -> float:
        """Expected return from the initial distribution."""
        return float(self.flat.initial() @ self.values[0])

    @property
    def uniform_value(self) -> float:
        """Mean over all states of the value at the first step."""
        return float(self.values[0].mean())

    def _row(self, step: int, last: int | None) -> int:
        if step < 1 or (last is not None and step > last):
            raise ModelError(f"step {step}: expected 1 to {last or 'any number'}.")
        return 0 if last is None else step - 1

    def __repr__(self) -> str:
        return f"ExactSolution({len(self.flat.states)} states, start value {self.start_value:.6g})"


def enumerate_states(model: FactoredMDP, limit: int = ENTRY_LIMIT) -> FlatMDP:
    """Transition matrices and rewards over all states.

    P(s' | s, a) = sum over latents of the product of all kernels.
    Cost: |actions| * |states|^2 entries, refused above `limit`.
    """
    entries = len(model.actions) * model.n_states**2
    if entries > limit:
        count = str(model.n_states) if model.n_states < 10**7 else f"10^{model.log10_states:.1f}"
        raise SizeError(
            f"enumeration needs {len(model.actions)} x ({count} states)^2 = "
            f"{_power_of_two(entries)} entries, the limit is {_power_of_two(limit)}; use a smaller "
            "model, a larger limit=, or a planner that does not enumerate (fsmdp.plan)."
        )
    states = np.indices(model.sizes).reshape(len(model.sizes), -1).T
    return FlatMDP(
        model,
        states,
        np.stack([_transition_matrix(model, states, a) for a in range(len(model.actions))]),
        np.stack([_mean_rewards(model, states, a) for a in range(len(model.actions))]),
    )


def solve_exactly(model: FactoredMDP, limit: int = ENTRY_LIMIT) -> ExactSolution:
    """Optimal values by backward induction; by policy iteration when the horizon is None.

    V_l(s) = max_a R(s, a) + discount * sum_s' P(s' | s, a) V_{l+1}(s')
    Cost: horizon * |actions| * |states|^2.
    """
    flat = enumerate_states(model, limit)
    if model.horizon is None:
        return _solve_stationary(flat)
    values = np.zeros((model.horizon + 1, len(flat.states)))
    actions = np.zeros((model.horizon, len(flat.states)), dtype=np.int64)
    for row in reversed(range(model.horizon)):
        q_values = flat.rewards + model.discount * flat.transitions @ values[row + 1]
        actions[row] = q_values.argmax(axis=0)
        values[row] = q_values.max(axis=0)
    return ExactSolution(flat, values, actions)


def evaluate_exactly(model: FactoredMDP, policy: Policy, limit: int = ENTRY_LIMIT) -> Floats:
    """Expected return of a policy from every state at the first step.

    The same shapes and cost as `solve_exactly`; states in the order of `FlatMDP.states`.
    """
    flat = enumerate_states(model, limit)
    every = np.arange(len(flat.states))
    choose = follow(model, policy)

    def backup(step: int) -> tuple[Floats, Floats]:
        if choose is None:
            return flat.rewards.mean(axis=0), flat.transitions.mean(axis=0)
        chosen = np.array([choose(tuple(map(int, state)), step) for state in flat.states])
        return flat.rewards[chosen, every], flat.transitions[chosen, every]

    if model.horizon is None:
        rewards, transitions = backup(1)
        system = np.eye(len(every)) - model.discount * transitions
        return np.asarray(np.linalg.solve(system, rewards), dtype=np.float64)
    values = np.zeros(len(every))
    for step in reversed(range(1, model.horizon + 1)):
        rewards, transitions = backup(step)
        values = rewards + model.discount * transitions @ values
    return values


def _solve_stationary(flat: FlatMDP) -> ExactSolution:
    model, every = flat.model, np.arange(len(flat.states))
    chosen = flat.rewards.argmax(axis=0)
    while True:
        values = np.linalg.solve(
            np.eye(len(every)) - model.discount * flat.transitions[chosen, every],
            flat.rewards[chosen, every],
        )
        q_values = flat.rewards + model.discount * flat.transitions @ values
        # A change must pay more than rounding, or two equal actions would alternate for ever.
        better = q_values.max(axis=0) > q_values[chosen, every] + 1e-12 * (1 + np.abs(values))
        if not better.any():
            return ExactSolution(flat, values[None, :], chosen[None, :])
        chosen = np.where(better, q_values.argmax(axis=0), chosen)


def _transition_matrix(model: FactoredMDP, states: Integers, action: int) -> Floats:
    """P(s' | s, a) for all s and s', drawing one mechanism after the other."""
    dynamics = model.dynamics
    # joint[s, i]: probability that what is drawn so far has the values drawn[i]
    joint = np.ones((len(states), 1))
    drawn = np.zeros((1, len(dynamics.drawn_sizes)), dtype=np.int64)
    for index, mechanism in enumerate(dynamics.mechanisms):
        kernel = mechanism.cases.at(action)
        sizes = [dynamics.drawn_sizes[child] for child in mechanism.children]
        outcomes = np.indices(sizes).reshape(len(sizes), -1).T
        current = tuple(states[:, None, p] for p in kernel.parents)
        earlier = tuple(drawn[None, :, d] for d in kernel.drawn)
        rows = kernel.table[(*current, *earlier)]
        shape = (len(states), len(drawn), len(outcomes))
        rows = np.broadcast_to(rows.reshape(*rows.shape[: rows.ndim - len(sizes)], -1), shape)
        joint = (joint[:, :, None] * rows).reshape(len(states), -1)
        drawn = np.repeat(drawn, len(outcomes), axis=0)
        drawn[:, mechanism.children] = np.tile(outcomes, (shape[1], 1))
        joint, drawn = _forget_unneeded(model, joint, drawn, index, action)
    order = np.ravel_multi_index(tuple(drawn[:, : len(model.sizes)].T), model.sizes)
    matrix = np.zeros((len(states), len(states)))
    matrix[:, order] = joint
    return matrix


def _forget_unneeded(
    model: FactoredMDP, joint: Floats, drawn: Integers, done: int, action: int
) -> tuple[Floats, Integers]:
    """Sum out the latents that no later mechanism looks at."""
    dynamics, first_latent = model.dynamics, len(model.sizes)
    needed = {d for m in dynamics.mechanisms[done + 1 :] for d in m.cases.at(action).drawn}
    drawn_now = {child for m in dynamics.mechanisms[: done + 1] for child in m.children}
    unneeded = [d for d in range(first_latent, drawn.shape[1]) if d in drawn_now - needed]
    if not drawn[:, unneeded].any():
        return joint, drawn
    drawn = drawn.copy()
    drawn[:, unneeded] = 0
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


def _power_of_two(count: int) -> str:
    return f"2^{(count - 1).bit_length()}"
