"""LSVI-UCB: least squares on given features of (state, action), with an elliptical bonus."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from fsmdp.errors import ModelError
from fsmdp.foundation.kinds import OneOf, Probability, declared_options
from fsmdp.learning.learners.baselines.enumerated import (
    ENTRY_LIMIT,
    Ends,
    EnumeratedLearner,
    SharedOptions,
    all_states,
    backward_induction,
    count_states,
)
from fsmdp.learning.learners.learner import Learner, Planned
from fsmdp.learning.learners.registry import LearnerContext, LearnerEntry, Options
from fsmdp.model.structure import Structure
from fsmdp.model.tables import Floats, read_only_array


def action_features(structure: Structure, limit: int = ENTRY_LIMIT) -> Floats:
    """The basis once for each action: phi(s, a) = e_a x h(s) / max_s |h(s)|.

    Shape (n_states, n_actions, n_actions * n_functions). Q linear in these features means that
    every action has weights of its own in the basis.
    """
    basis = state_features(structure, limit)
    basis /= np.sqrt((basis**2).sum(axis=1)).max()
    n_actions = len(structure.actions)
    each = np.einsum("sj,ab->sabj", basis, np.eye(n_actions))
    return np.asarray(each.reshape(len(basis), n_actions, -1))


def state_features(structure: Structure, limit: int = ENTRY_LIMIT) -> Floats:
    """The basis at every state."""  # (n_states, n_functions)
    count_states("state_features", structure, limit)
    return np.array([structure.basis.evaluate(state) for state in all_states(structure)])


def one_hot_features(structure: Structure, limit: int = ENTRY_LIMIT) -> Floats:
    """One feature for each (state, action), in which everything is linear."""
    n_actions = len(structure.actions)
    n_states = count_states("one_hot_features", structure, limit // n_actions)
    return np.eye(n_states * n_actions).reshape(n_states, n_actions, -1)


Features = ArrayLike | Callable[[tuple[int, ...], str], ArrayLike]
"""phi as an array (n_states, n_actions, d), or a function of (state, action's name)."""

NORM_TOLERANCE = 1e-9


class LSVIUCB(EnumeratedLearner):
    """Least-squares value iteration with upper confidence bounds on features phi(s, a).

    Q_l(s, a) = phi . w_l + beta |phi|_{inverse of Lambda},  Lambda = I + sum phi phi^T,
    w_l = Lambda^-1 sum phi (r + V_{l+1}(s')),  beta = c d H sqrt(log(2 d T / delta)),
    for rewards in [0, 1] and |phi| <= 1; sums run over all that was seen. 1 / H of the bonus is
    for the reward, which is not regressed if it is known, and means are kept within the range
    of what they are means of, where the source caps Q_l by H. The source lets the process change
    from step to step and regresses each by itself; here it does not change, and steps share what
    was seen. T = H k in episode k. The theorem asks for some constant c without naming it: c = 1
    here, squared bonuses are multiplied by `scale`, and **every result is heuristic**.
    States with their features are enumerated.
    Cost of a plan: |states| |actions| d^2 + d^3 + horizon |states| |actions| (|states| + d).
    Source: Jin, Yang, Wang and Jordan (2020), Provably efficient reinforcement learning with linear
    function approximation, Algorithm 1 and Theorem 3.1 (lambda = 1).
    """

    name = "LSVIUCB"
    heuristic = True

    def __init__(
        self,
        structure: Structure,
        features: Features,
        delta: Probability = 0.05,
        seed: int = 0,
        **options: Unpack[SharedOptions],
    ) -> None:
        super().__init__(structure, delta, seed, **options)
        self.features = feature_rows(self, features)  # (n_actions * n_states, d)

    def given(self) -> list[np.ndarray]:
        """The features too."""
        return [*super().given(), self.features]

    def beta(self) -> float:
        """Factor of the bonus, for rewards in [0, 1]."""
        d, steps = self.features.shape[1], self.horizon * self.episode
        log_term = math.log(2 * d * steps / self.optimism.delta)
        return math.sqrt(self.optimism.scale * log_term) * int(d) * self.horizon

    def replan(self) -> Planned:
        """Regress on everything seen, and plan with the bonus."""
        width = self.beta() * self.reward_span / self.horizon
        return plan_by_regression(
            self, self.features, width, lambda _: (self.horizon - 1) * width, lambda v: v
        )

    def options(self) -> Sequence[str]:
        """How many features there are."""
        return (f"{self.features.shape[1]} features",)


def plan_by_regression(
    learner: EnumeratedLearner,
    phi: Floats,
    reward_width: float,
    following_width: Callable[[Floats], float],
    represented: Callable[[Floats], Floats],
) -> Planned:
    """Backward induction on regressed means, each with a multiple of |phi| as its bonus.

    `following_width` gives the factor of the bonus of the following values, which lie above 0;
    `represented` what is regressed of them.
    """
    n, visits = learner.visits.ravel(), learner.visits
    inverse = np.linalg.inv(np.eye(phi.shape[1]) + (phi * n[:, None]).T @ phi)
    shape, counts = visits.shape, learner.outcomes.reshape(len(phi), -1)
    # |phi| in the norm of the inverse, at every (action, state)
    lengths = np.sqrt(np.einsum("id,de,ie->i", phi, inverse, phi, optimize=True)).reshape(shape)
    smoother = phi @ inverse

    def means(following: Floats) -> Ends:
        lowest = following.min()  # regression shrinks towards 0, here the lowest value
        above = following - lowest
        targets = counts @ represented(above)
        middle = lowest + (smoother @ (phi.T @ targets)).reshape(shape)
        width = following_width(above) * lengths
        return middle - width, middle + width

    known, seen = learner.reward_moments()
    low, high = learner.learnt_low, learner.learnt_high
    sums = ((seen - low) * visits).ravel()
    middle = low + (smoother @ (phi.T @ sums)).reshape(shape)
    bonus = reward_width * lengths
    rewards = (
        known + np.clip(middle - bonus, low, high),
        known + np.clip(middle + bonus, low, high),
    )
    structure = learner.structure
    return learner.follow(backward_induction(learner.horizon, structure.discount, rewards, means))


def feature_rows(learner: EnumeratedLearner, features: Features) -> Floats:
    """Features as checked rows, one for each (action, state)."""
    if isinstance(features, type):
        raise ModelError(
            f"features: expected an array or a function (state, action), found the class "
            f"{features.__name__}; make one."
        )
    if callable(features):
        states = [tuple(map(int, state)) for state in all_states(learner.structure)]
        rows = [[np.asarray(features(s, a)) for a in learner.structure.actions] for s in states]
        array = read_only_array(rows, "features")
    else:
        array = read_only_array(features, "features")
    expected = (learner.n_states, learner.n_actions)
    if array.ndim != 3 or array.shape[:2] != expected or array.shape[2] == 0:
        raise ModelError(
            f"features: expected shape {(*expected, 'd')}, states by actions by features, "
            f"found {array.shape}; give phi(s, a) for every state, the last variable fastest."
        )
    longest = float(np.sqrt((array**2).sum(axis=2)).max())
    if longest > 1 + NORM_TOLERANCE:
        raise ModelError(
            f"features: the longest has norm {longest:.6g}, expected at most 1; divide by it."
        )
    return array.transpose(1, 0, 2).reshape(-1, array.shape[2])


FEATURES = {"basis": action_features, "one-hot": one_hot_features}


def from_features(context: LearnerContext, options: Options) -> dict[str, Any]:
    """Arguments of learners that are linear in features of state and action."""
    return {
        "structure": context.structure,
        "features": FEATURES[options["features"]](context.structure),
        "delta": options["delta"],
        "seed": context.seed,
        "scale": options["scale"],
        "known_rewards": context.known_rewards,
    }


def _build(context: LearnerContext, options: Options) -> Learner:
    return LSVIUCB(**from_features(context, options))


ENTRY = LearnerEntry(
    "lsvi-ucb",
    "LSVI-UCB",
    "least squares on features of state and action; small models only",
    _build,
    {"features": (OneOf(FEATURES), "basis"), **declared_options(LSVIUCB)},
    uses_basis=True,
    takes_rewards=True,
)
