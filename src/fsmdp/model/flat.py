"""Enumeration of every state: exact values of small models, the oracle of small tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fsmdp.errors import SizeError
from fsmdp.foundation.checks import as_step, as_whole, plural, show_count
from fsmdp.model.mdp import FactoredMDP, check_model
from fsmdp.model.policies import Policy, follow, is_table, policy_table, state_strides
from fsmdp.model.tables import Floats, Rebuilt, read_only
from fsmdp.model.variables import table_size

Integers = NDArray[np.int64]

ENTRY_LIMIT = 2**28
TIE = 1e-12
"""Actions whose values differ by less, relative to the value or to 1, count as equal."""


@dataclass(frozen=True, slots=True, eq=False)
class FlatMDP(Rebuilt):
    """Every state written out: transition matrices and mean rewards by action."""

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


@dataclass(frozen=True, slots=True, eq=False)
class ExactSolution(Rebuilt):
    """Optimal values and actions of every state and step (one step stands for all if infinite)."""

    flat: FlatMDP
    values: Floats  # (horizon + 1, n_states), last row 0; (1, n_states) if infinite
    actions: Integers  # (horizon, n_states); (1, n_states) if infinite

    def __post_init__(self) -> None:
        for name in ("values", "actions"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    @property
    def model(self) -> FactoredMDP:
        """The model that was solved."""
        return self.flat.model

    def value(self, state: Sequence[int], step: int = 1) -> float:
        """Expected return from a state at a step, acting optimally."""
        return float(self.values[self._row(step), self.flat.index(state)])

    def action(self, state: Sequence[int], step: int = 1) -> str:
        """An optimal action; the first in the model's order where several are, up to rounding."""
        return self.model.actions[int(self.actions[self._row(step), self.flat.index(state)])]

    @property
    def start_value(self) -> float:
        """Expected return from the initial distribution."""
        return float(self.flat.initial() @ self.values[0])

    @property
    def uniform_value(self) -> float:
        """Mean over all states of the value at the first step."""
        return float(self.values[0].mean())

    def _row(self, step: int) -> int:
        number = as_step(step, self.model.horizon)
        return 0 if self.model.horizon is None else number - 1

    def __repr__(self) -> str:
        states = plural(len(self.flat.states), "state")
        return f"ExactSolution({states}, start value {self.start_value:.6g})"


def enumerate_states(model: FactoredMDP, limit: int = ENTRY_LIMIT) -> FlatMDP:
    """Transition matrices and rewards over all states.

    P(s' | s, a) = sum over latents of the product of all kernels.
    Cost: |actions| * |states|^2 entries, and |states| times the largest joint of what is drawn in
    a step (next values and the latents still needed); each refused above `limit`.
    """
    check_model(model, "enumeration")
    limit = as_whole(limit, "limit", 1)
    many = model.n_states >= 10**7
    count = f"10^{model.log10_states:.1f}" if many else str(model.n_states)
    entries = len(model.actions) * model.n_states**2
    _refuse_if_huge(entries, f"{len(model.actions)} x ({count} states)^2", limit)
    for action in range(len(model.actions)):
        joint = max(table_size(sizes) for sizes, _ in _draws(model, action))
        drawn = f"({count} states) x ({show_count(joint)} joint values drawn in a step)"
        _refuse_if_huge(joint * max(model.n_states, len(model.dynamics.drawn_sizes)), drawn, limit)
    states = _assignments(model.sizes)
    return FlatMDP(
        model,
        states,
        np.stack([_transition_matrix(model, states, a) for a in range(len(model.actions))]),
        np.stack([_mean_rewards(model, states, a) for a in range(len(model.actions))]),
    )


def solve_exactly(model: FactoredMDP, limit: int = ENTRY_LIMIT) -> ExactSolution:
    """Optimal values by backward induction; by policy iteration when the horizon is None.

    V_l(s) = max_a R(s, a) + discount * sum_s' P(s' | s, a) V_{l+1}(s')
    Actions whose values are equal up to rounding (1e-12) are ties, and the first one wins.
    Cost: horizon * |actions| * |states|^2.
    """
    flat = enumerate_states(model, limit)
    if model.horizon is None:
        return _solve_stationary(flat)
    every_step = f"{model.horizon} steps x {len(flat.states)} states"
    _refuse_if_huge((model.horizon + 1) * len(flat.states), every_step, int(limit))
    values = np.zeros((model.horizon + 1, len(flat.states)))
    actions = np.zeros((model.horizon, len(flat.states)), dtype=np.int64)
    for row in reversed(range(model.horizon)):
        q_values = flat.rewards + model.discount * flat.transitions @ values[row + 1]
        actions[row] = _first_best(q_values)
        values[row] = q_values.max(axis=0)
    return ExactSolution(flat, values, actions)


def evaluate_exactly(model: FactoredMDP, policy: Policy, limit: int = ENTRY_LIMIT) -> Floats:
    """Expected return of a policy from every state at the first step.

    The same shapes and cost as `solve_exactly`; states in the order of `FlatMDP.states`. With an
    infinite horizon the policy is taken at step 1 and followed for ever: one that depends on the
    step is not what is evaluated then.
    """
    choose = follow(check_model(model, "evaluate_exactly"), policy)
    table = None
    if isinstance(policy, ExactSolution) or is_table(policy):
        given = policy.actions if isinstance(policy, ExactSolution) else policy
        table = policy_table(model, given)
    flat = enumerate_states(model, limit)
    every = np.arange(len(flat.states))

    def backup(step: int) -> tuple[Floats, Floats]:
        if choose is None:
            return flat.rewards.mean(axis=0), flat.transitions.mean(axis=0)
        if table is not None:
            chosen = table[min(step, len(table)) - 1]
        else:
            chosen = np.array([choose(state, step) for state in map(tuple, flat.states.tolist())])
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
    tried: set[bytes] = set()
    while True:
        tried.add(chosen.tobytes())
        values = np.linalg.solve(
            np.eye(len(every)) - model.discount * flat.transitions[chosen, every],
            flat.rewards[chosen, every],
        )
        q_values = flat.rewards + model.discount * flat.transitions @ values
        # A change must pay more than rounding, or two equal actions would alternate for ever.
        better = q_values.max(axis=0) > q_values[chosen, every] + TIE * (1 + np.abs(values))
        chosen = np.where(better, q_values.argmax(axis=0), chosen)
        if chosen.tobytes() in tried:
            return ExactSolution(flat, values[None, :], _first_best(q_values)[None, :])


def _first_best(q_values: Floats) -> Integers:
    """The lowest action whose value is the largest, up to rounding; q_values[action, state]."""
    best = q_values.max(axis=0)
    equal = q_values >= best - TIE * np.maximum(1.0, np.abs(best))
    return np.asarray(equal.argmax(axis=0), dtype=np.int64)


def _assignments(sizes: Sequence[int]) -> Integers:
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
        outcomes = _assignments(sizes)
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
    if entries > limit:
        raise SizeError(
            f"enumeration needs {what} = {_power_of_two(entries)} entries, the limit is "
            f"{_power_of_two(limit)}; use a smaller model, a larger limit=, or a planner that does "
            "not enumerate (fsmdp.plan)."
        )


def _power_of_two(count: int) -> str:
    return f"2^{(count - 1).bit_length()}"
