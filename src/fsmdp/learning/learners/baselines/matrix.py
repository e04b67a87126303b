"""MatrixRL: a matrix between features of (state, action) and features of the next state."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from fsmdp.errors import ModelError
from fsmdp.foundation.kinds import OneOf, Probability, declared_options
from fsmdp.learning.learners.baselines.enumerated import EnumeratedLearner, SharedOptions
from fsmdp.learning.learners.baselines.lsvi import (
    FEATURES,
    Features,
    feature_rows,
    from_features,
    plan_by_regression,
    state_features,
)
from fsmdp.learning.learners.learner import Learner, Planned
from fsmdp.learning.learners.registry import LearnerContext, LearnerEntry, Options
from fsmdp.model.structure import Structure
from fsmdp.model.tables import Floats, read_only_array


class MatrixRL(EnumeratedLearner):
    """Optimism over matrices M of P(s' | s, a) = phi(s, a)^T M psi(s').

    A = I + sum phi phi^T,  K = sum_s psi(s) psi(s)^T,  M_n = A^-1 (sum phi psi(s')^T) K^-1,
    Q_l = r + phi^T M_n Psi^T V_{l+1} + sqrt(d beta) |phi|_{inverse of A} |Psi^T V_{l+1}|_2,
    the maximum over the ball of M with |A^(1/2) (M - M_n)|_F <= sqrt(d beta), where
    beta = c (1 + max_s |K^-1 psi(s)|^2) log(n H / delta), n the episode, where the source
    fixes the chance of failing. Sums over phi run over what was
    seen, and Psi^T V is the sum of psi(s) V(s) over all states. So values are regressed after they
    are fitted in psi, all states alike: if psi tells every state apart nothing is lost, and with
    one-hot features of both kinds phi^T M_n holds the counts of a row over its visits plus one.
    The theorem asks for an absolute constant and for a norm of M that nobody knows: both are 1
    here, squared bonuses are multiplied by `scale`, and **every result is heuristic**. Rewards
    that are not known are regressed as by `LSVIUCB`, whose options it has. Values are taken from
    the lowest of them on.
    Cost of a plan: that of `LSVIUCB`, and horizon |states| times the features of states.
    Source: Yang and Wang (2020), Reinforcement learning in feature space: matrix bandit, kernels,
    and regret bound.
    """

    name = "MatrixRL"
    heuristic = True

    def __init__(
        self,
        structure: Structure,
        features: Features,
        following: ArrayLike | None = None,
        delta: Probability = 0.05,
        seed: int = 0,
        **options: Unpack[SharedOptions],
    ) -> None:
        super().__init__(structure, delta, seed, **options)
        self.features = feature_rows(self, features)  # (n_actions * n_states, d)
        self.psi = self._check_following(following)  # (n_states, d')
        gram = self.psi.T @ self.psi
        if np.linalg.matrix_rank(gram, hermitian=True) < len(gram):
            raise ModelError(
                f"following: the {len(gram)} features of states depend on one another, so that no "
                "matrix is determined; leave those out that others add up to."
            )
        self._dual = np.linalg.solve(gram, self.psi.T)  # (d', n_states) K^-1 psi

    def given(self) -> list[np.ndarray]:
        """The features too."""
        return [*super().given(), self.features, self.psi]

    def beta(self) -> float:
        """Squared radius of the ball, divided by the number of features."""
        longest = float((self._dual**2).sum(axis=0).max())
        return (
            self.optimism.scale
            * (1 + longest)
            * math.log(self.episode * self.horizon / self.optimism.delta)
        )

    def replan(self) -> Planned:
        """Regress on everything seen, and plan with the bonus."""
        radius = math.sqrt(self.features.shape[1] * self.beta())
        return plan_by_regression(
            self,
            self.features,
            radius * self.reward_span,
            lambda following: radius * float(np.linalg.norm(self.psi.T @ following)),
            lambda following: np.asarray(self.psi @ (self._dual @ following)),
        )

    def options(self) -> Sequence[str]:
        """How many features of either kind there are."""
        return f"{self.features.shape[1]} features", f"{self.psi.shape[1]} of next states"

    def _check_following(self, following: ArrayLike | None) -> Floats:
        if following is None:
            return np.eye(self.n_states)
        array = read_only_array(following, "following")
        if array.ndim != 2 or len(array) != self.n_states or array.shape[1] == 0:
            raise ModelError(
                f"following: expected shape {(self.n_states, 'd')}, states by features, found "
                f"{array.shape}; give psi(s) for every state, the last variable fastest."
            )
        return array


STATES, BASIS = "one-hot", "basis"


def _build(context: LearnerContext, options: Options) -> Learner:
    following = state_features(context.structure) if options["following"] == BASIS else None
    return MatrixRL(following=following, **from_features(context, options))


ENTRY = LearnerEntry(
    "matrix-rl",
    "MatrixRL",
    "a matrix between features of state and action and of the next state; small models only",
    _build,
    {
        "features": (OneOf(FEATURES), "basis"),
        "following": (OneOf((BASIS, STATES)), BASIS),
        **declared_options(MatrixRL),
    },
    uses_basis=True,
    takes_rewards=True,
)
