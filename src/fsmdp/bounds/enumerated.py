"""Plain programs with every state, action and sign pattern written out.

No elimination, no messages, no splitting of weights into two parts: what the planners are
compared with.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.optimize import linprog

from fsmdp.errors import PlanningError
from fsmdp.exact.flat import enumerate_states
from fsmdp.model.basis import Basis
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.tables import Floats, Integers


@dataclass(frozen=True, slots=True, eq=False)
class Enumerated:
    """Numbers of every state and action: h_j(s), R(s, a), and bounds on E[h_j(s') | s, a]."""

    states: Integers  # (n_states, n_variables)
    features: Floats  # (n_states, n_functions)
    rewards: Floats  # (n_actions, n_states)
    low: Floats  # (n_actions, n_states, n_functions)
    high: Floats  # (n_actions, n_states, n_functions)
    initial: Floats  # (n_states,)
    horizon: int | None
    discount: float

    @property
    def n_steps(self) -> int:
        """Steps that have weights of their own."""
        return self.horizon or 1

    def means(self, weights: str) -> Floats:
        """E[h_j] under the initial distribution or all states alike."""
        if weights == "uniform":
            return np.asarray(self.features.mean(axis=0))
        return np.asarray(self.initial @ self.features)

    def backup(self, following: Floats, view: str = "optimistic") -> Floats:
        """sum_j w_j * (the end of j's interval that the view takes), (n_actions, n_states)."""
        one, other = following * self.high, following * self.low
        if view == "point":
            return np.asarray(((one + other) / 2).sum(axis=-1))
        taken = np.maximum(one, other) if view == "optimistic" else np.minimum(one, other)
        return np.asarray(taken.sum(axis=-1))

    def following(self, weights: Floats, row: int) -> Floats:
        """Weights of the next step: the same if the horizon is infinite, 0 after the last."""
        if self.horizon is None:
            return np.asarray(weights[row])
        return (
            np.asarray(weights[row + 1]) if row + 1 < len(weights) else np.zeros(weights.shape[1])
        )

    def excess(self, weights: Floats, row: int, view: str = "optimistic") -> Floats:
        """R + discount * backup - V at one step, (n_actions, n_states)."""
        backup = self.backup(self.following(weights, row), view)
        return np.asarray(self.rewards + self.discount * backup - self.features @ weights[row])

    def excesses(self, weights: Floats, view: str = "optimistic") -> Floats:
        """The same at every step, (n_steps, n_actions, n_states)."""
        return np.stack([self.excess(weights, row, view) for row in range(len(weights))])


def enumerate_known(model: FactoredMDP, basis: Basis) -> Enumerated:
    """Numbers of a known model, from its transition matrices."""
    flat = enumerate_states(model)
    bound = basis.bind(model.variables)
    features = np.array([bound.evaluate(state) for state in flat.states])
    means = flat.transitions @ features
    return Enumerated(
        flat.states,
        features,
        flat.rewards,
        means,
        means,
        flat.initial(),
        model.horizon,
        model.discount,
    )


def joint_optimum(numbers: Enumerated, means: Floats, w_norm: float | None = None) -> float | None:
    """min E[V_1] with a row for each step, state, action and choice of ends; None if infeasible.

    V_l(s) - discount * sum_j end_j(s, a) w_j >= R(s, a) for every end_j in {lo_j, hi_j}
    and, with w_norm, sum_j sign_j w_j <= w_norm for every sign_j in {-1, 1}.
    """
    n_functions = numbers.features.shape[1]
    values, ends, rewards = _every_choice_of_ends(numbers)
    blocks, sides = [], []
    for step in range(numbers.n_steps):
        block = np.zeros((len(rewards), numbers.n_steps, n_functions))
        block[:, step] += values
        if numbers.horizon is None:
            block[:, step] -= numbers.discount * ends
        elif step + 1 < numbers.n_steps:
            block[:, step + 1] -= numbers.discount * ends
        blocks.append(block)
        sides.append(rewards)
    if w_norm is not None:
        signs = np.array(list(product((-1.0, 1.0), repeat=n_functions)))
        for step in range(numbers.n_steps):
            block = np.zeros((len(signs), numbers.n_steps, n_functions))
            block[:, step] = -signs
            blocks.append(block)
            sides.append(np.full(len(signs), -w_norm))
    cost = np.zeros((numbers.n_steps, n_functions))
    cost[0] = means
    rows = np.concatenate(blocks).reshape(-1, cost.size)
    return minimum(cost.ravel(), rows, np.concatenate(sides))


def _every_choice_of_ends(numbers: Enumerated) -> tuple[Floats, Floats, Floats]:
    values, ends, rewards = [], [], []
    for action, state in product(*map(range, numbers.rewards.shape)):
        low, high = numbers.low[action, state], numbers.high[action, state]
        uncertain = np.flatnonzero(low != high)
        for choice in product((False, True), repeat=len(uncertain)):
            chosen = high.copy()
            chosen[uncertain] = np.where(choice, high[uncertain], low[uncertain])
            values.append(numbers.features[state])
            ends.append(chosen)
            rewards.append(numbers.rewards[action, state])
    return np.array(values), np.array(ends), np.array(rewards)


def minimum(cost: Floats, rows: Floats, sides: Floats) -> float | None:
    """min cost . x subject to rows x >= sides; None if infeasible."""
    rows, sides = rows[sides > -np.inf], sides[sides > -np.inf]
    rows, kept = np.unique(np.column_stack([rows, sides]), axis=0, return_index=True)
    found = linprog(
        cost,
        A_ub=-rows[:, :-1],
        b_ub=-sides[kept],
        bounds=(None, None),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9},
    )
    if found.status == 2:
        return None
    if found.fun is None or found.status != 0:
        raise PlanningError(f"enumerated program: {found.message}")
    return float(found.fun)
