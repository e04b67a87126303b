"""Least squares on features of (state, action): LSVI-UCB, MatrixRL and RLSVI."""

import math
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Unpack

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cho_solve, cholesky, solve_triangular

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import as_positive, check_size
from fsmdp.foundation.kinds import OneOf, Positive, Probability, declared_options
from fsmdp.learning.cells.layout import cell_lookup
from fsmdp.learning.learners.baselines.enumerated import (
    ENTRY_LIMIT,
    Ends,
    EnumeratedLearner,
    SharedOptions,
    all_states,
    backward_induction,
    count_states,
)
from fsmdp.learning.learners.factored import REPLAN, growth_of
from fsmdp.learning.learners.learner import NEVER, Learner, Planned, TieBreaker, check_structure
from fsmdp.learning.learners.memory import RememberingLearner
from fsmdp.learning.learners.registry import LearnerContext, LearnerEntry, Options, entry_of
from fsmdp.model.rewards import Reward
from fsmdp.model.structure import Structure
from fsmdp.model.tables import Floats, Integers, read_only_array
from fsmdp.policies.arrays import best_actions
from fsmdp.simulation.simulate import Record


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
    return learner.follow(backward_induction(learner, rewards, means))


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


def _build_lsvi(context: LearnerContext, options: Options) -> Learner:
    return LSVIUCB(**from_features(context, options))


LSVI_ENTRY = LearnerEntry(
    "lsvi-ucb",
    "LSVI-UCB",
    "least squares on features of state and action; small models only",
    _build_lsvi,
    {"features": (OneOf(FEATURES), "basis"), **declared_options(LSVIUCB)},
    uses_basis=True,
    takes_rewards=True,
)


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


def _build_matrix(context: LearnerContext, options: Options) -> Learner:
    following = state_features(context.structure) if options["following"] == BASIS else None
    return MatrixRL(following=following, **from_features(context, options))


MATRIX_ENTRY = LearnerEntry(
    "matrix-rl",
    "MatrixRL",
    "a matrix between features of state and action and of the next state; small models only",
    _build_matrix,
    {
        "features": (OneOf(FEATURES), "basis"),
        "following": (OneOf((BASIS, STATES)), BASIS),
        **declared_options(MatrixRL),
    },
    uses_basis=True,
    takes_rewards=True,
)


MOST_FEATURES = 2**12
"""A plan factorises a square matrix of so many rows: 128 MiB, and some seconds."""

NOISE, PRIOR = 0.03, 0.3

CHUNK = 2**10
"""Transitions whose features are written out at once."""


class RLSVI(RememberingLearner):
    """Randomised least-squares value iteration on indicators of the cells of our basis.

    Q_l(s, a) = R(s, a) + sum over the cells of (s, a) of theta_l(cell), from the last step on:
    theta_l ~ N(mean, C),  C^-1 = X^T X / sigma^2 + I / tau^2,  mean = C X^T y / sigma^2,
    y = (what is unknown of the reward) + discount max_a' Q_{l+1}(s', a') over all transitions seen,
    X their features. No model is estimated: the maximum over actions is taken at the states that
    followed. Our backed-up values R + sum_j w_j g_j lie in this class, whatever the weights.
    sigma is `noise` and tau `prior` in units of the largest return, tau divided by the square root
    of the number of cells visited, so that it is the deviation of Q before anything was seen.
    The source regresses each step on its own transitions, with a prior of mean 0 for rewards from 0
    on; here the process does not change from step to step and all transitions serve all steps, the
    prior's mean is the least that can still be earned, and targets are kept within what can be. Its
    regret bound is for one indicator of each state, action and step: **every result is heuristic**.
    Cost of a plan: d^3 for d cells, and horizon n (cells visited + exceptions of all actions) for
    the n transitions so far.
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
                f"{self.name} evaluates every action of every state that it remembers, and these "
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
        self._with_allowed = cell_lookup(structure, *structure.conditions.scopes)
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
        discount, conditions = self.structure.discount, self.structure.conditions
        allowed, over = conditions.entries, conditions.is_terminal(seen.following)
        for step in reversed(range(self.horizon)):
            least = self._learnt_low + discount * low
            later = np.where(over, 0.0, np.clip(following, low, high))
            targets = seen.rewards + discount * later - least
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
            q = np.concatenate([entries[step], allowed])
            best_actions(self._with_allowed, q, seen.following, following, actions)
            low, high = self._lowest + discount * low, self._highest + discount * high
        every = np.broadcast_to(allowed, (len(entries), len(allowed)))
        q = np.hstack([entries, every])
        policy = self._ties.policy(q, largest, self.rng, 1 + self.growth * self.episode)
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
RLSVI_ENTRY = entry_of(RLSVI, "rlsvi", "RLSVI", WHAT)
