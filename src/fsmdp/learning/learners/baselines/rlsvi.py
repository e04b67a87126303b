"""RLSVI: least squares on what was seen, with weights drawn around the fit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import check_size
from fsmdp.foundation.kinds import Positive
from fsmdp.learning.learners.factored import REPLAN, growth_of
from fsmdp.learning.learners.learner import NEVER, Planned, TieBreaker
from fsmdp.learning.learners.memory import RememberingLearner
from fsmdp.learning.learners.registry import entry_of
from fsmdp.learning.options import as_positive, check_structure
from fsmdp.model.lookup import Integers
from fsmdp.model.rewards import Reward
from fsmdp.model.structure import Structure
from fsmdp.policies.arrays import best_actions
from fsmdp.simulation.simulate import Record

MOST_FEATURES = 2**12
"""A plan factorises a square matrix of so many rows: 128 MiB, and some seconds."""

NOISE, PRIOR = 0.03, 0.3

CHUNK = 2**10
"""Transitions whose features are written out at once."""


class RLSVI(RememberingLearner):
    """Randomised least-squares value iteration on indicators of the cells of our basis.

    Q_l(s, a) = R(s, a) + sum over the cells met by (s, a) of theta_l(cell), from the last step on:
    theta_l ~ N(mean, C),  C^-1 = X^T X / sigma^2 + I / tau^2,  mean = C X^T y / sigma^2,
    y = (what is unknown of the reward) + discount max_a' Q_{l+1}(s', a') over all transitions seen,
    X their features. No model is estimated: the maximum over actions is taken at the states that
    followed. Our backed-up values R + sum_j w_j g_j lie in this class, whatever the weights.
    sigma is `noise` and tau `prior` in units of the largest return, tau divided by the square root
    of the number of cells met, so that it is the deviation of Q before anything was seen.
    The source regresses each step on its own transitions, with a prior of mean 0 for rewards from 0
    on; here the process does not change from step to step and all transitions serve all steps, the
    prior's mean is the least that can still be earned, and targets are kept within what can be. Its
    regret bound is for one indicator of each state, action and step: **every result is heuristic**.
    Cost of a plan: d^3 for d cells, and horizon n (cells met + exceptions of all actions) for the n
    transitions so far.
    Source: Osband, Van Roy and Wen (2016), Generalization and exploration via randomized value
    functions, Algorithm 1.
    """

    name = "RLSVI"
    heuristic = True

    def __init__(
        self,
        structure: Structure,
        seed: int = 0,
        *,
        noise: Positive = NOISE,
        prior: Positive = PRIOR,
        replan: Annotated[str | float, REPLAN] = "episode",
        known_rewards: Sequence[Reward] | None = None,
    ) -> None:
        self.noise = as_positive(noise, "noise", "it is in units of the largest return")
        self.prior = as_positive(prior, "prior", "it is in units of the largest return")
        self.growth = growth_of(replan)
        if check_structure(self.name, structure).actions.variables:
            raise ModelError(
                f"{self.name} looks at every action of every state that it remembers, and these "
                "are made of variables; use PSRLFactored, or the structure and environment of "
                "model.listed()."
            )
        super().__init__(structure, seed=seed, known_rewards=known_rewards)
        is_feature = np.concatenate(
            [~self.cell_known, np.ones(self.cells.n_transition_cells, dtype=np.bool_)]
        )
        self._feature = np.where(is_feature, np.cumsum(is_feature) - 1, -1)  # of each cell
        self.n_features = int(is_feature.sum())
        check_size(
            self.n_features,
            MOST_FEATURES,
            f"{self.name} regresses on the cells of all functions and of rewards to be learnt:",
            "use a basis of smaller scopes, or PSRLFactored",
            unit="features",
        )
        self._gram = np.zeros((self.n_features, self.n_features))
        self._n_met = int(self.term_known.size - self.term_known.sum()) + len(structure.basis)
        self._ties = TieBreaker(structure)
        learnt = [
            term
            for term, known in zip(structure.rewards, self.term_known, strict=True)
            if not known
        ]
        self._learnt_low = sum(term.low for term in learnt)
        self._lowest = sum(term.low for term in structure.rewards)
        self._highest = sum(term.high for term in structure.rewards)

    def remember(self, record: Record, steps: int) -> None:
        """Keep an episode, and add it to X^T X."""
        before = len(self.seen.actions)
        super().remember(record, steps)
        self._add_to_gram(before)

    def features_of(self, first: int = 0) -> Integers:
        """The features of each transition from `first` on."""  # (n, n_met)
        seen = self.seen
        entries = self.cells_at(seen.states[first:], seen.actions[first:])
        met = self._feature[self.cells.layout.cell_of[entries]]
        learnt = np.concatenate(
            [~self.term_known, np.ones(len(self.structure.basis), dtype=np.bool_)]
        )
        return np.asarray(met[:, learnt])

    def replan(self) -> Planned:
        """Draw weights around the fit of each step, from the last to the first."""
        seen, met = self.seen, self.features_of()
        largest = self.horizon * (self._highest - self._lowest) or 1.0
        noise, deviation = self.noise * largest, self.prior * largest / math.sqrt(self._n_met)
        precision = self._gram / noise**2 + np.eye(self.n_features) / deviation**2
        factor = cholesky(precision, lower=True, check_finite=False)
        cells, layout = self.cells, self.cells.layout
        entries = np.zeros((self.horizon, len(layout.cell_of)))
        known = np.concatenate([self.known_means, np.zeros(cells.n_transition_cells)])
        is_feature, constant = self._feature >= 0, layout.cell_of[cells.n_reward_cells]
        following, actions = np.zeros(len(met)), np.zeros(len(met), dtype=np.int64)
        low = high = 0.0  # of what can be earned after the step
        discount = self.structure.discount
        for step in reversed(range(self.horizon)):
            least = self._learnt_low + discount * low
            targets = seen.rewards + discount * np.clip(following, low, high) - least
            sums = np.bincount(
                met.ravel(), np.repeat(targets, met.shape[1]), minlength=self.n_features
            )
            theta = cho_solve((factor, True), sums / noise**2, check_finite=False)
            drawn = self.rng.standard_normal(self.n_features)
            theta += solve_triangular(factor, drawn, lower=True, trans="T", check_finite=False)
            numbers = known.copy()
            numbers[is_feature] += theta
            numbers[constant] += least
            entries[step] = numbers[layout.cell_of]
            best_actions(layout.lookup, entries[step], seen.following, following, actions)
            low, high = self._lowest + discount * low, self._highest + discount * high
        policy = self._ties.policy(entries, largest, self.rng, 1 + self.growth * self.episode)
        return self.unclaimed(policy, self.replan_at())

    def replan_at(self) -> Integers:
        """When all steps together have grown: every episode has a step more."""
        due = np.full(len(self.statistics.visits), NEVER, dtype=np.int64)
        constant = self.cells.n_reward_cells
        due[constant] = math.ceil((1 + self.growth) * self.statistics.visits[constant])
        return due

    def describe(self) -> str:
        """The options that matter."""
        when = f"plans at growth {self.growth:g}" if self.growth else "plans every episode"
        return f"noise {self.noise:g}, prior {self.prior:g}, {when}, heuristic"

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Take a state back."""
        super().restore(state)
        self._gram[:] = 0.0
        self._add_to_gram(0)

    def _add_to_gram(self, first: int) -> None:
        met = self.features_of(first)
        for some in np.array_split(met, 1 + len(met) // CHUNK):
            rows = np.zeros((len(some), self.n_features))
            np.put_along_axis(rows, some, 1.0, axis=1)
            self._gram += rows.T @ rows


WHAT = "least squares on the cells of the basis, with weights drawn around the fit"
ENTRY = entry_of(RLSVI, "rlsvi", "RLSVI", WHAT)
