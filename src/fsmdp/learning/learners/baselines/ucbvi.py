"""Value iteration with bonuses: UCBVI on all states, FMDP-BF and F-UCBVI on products of factors."""

import math
from collections.abc import Sequence
from typing import Annotated, Unpack

import numpy as np

from fsmdp.compiled import compiled
from fsmdp.foundation.checks import as_choice, as_whole
from fsmdp.foundation.kinds import OneOf, Probability
from fsmdp.learning.cells.confidence import total_variations
from fsmdp.learning.learners.baselines.enumerated import (
    Ends,
    EnumeratedLearner,
    SharedOptions,
    all_states,
    backward_induction,
)
from fsmdp.learning.learners.learner import Planned
from fsmdp.learning.learners.registry import entry_of
from fsmdp.model.structure import Structure
from fsmdp.model.tables import Floats, Integers

MOST_EPISODES = 10**18

HOEFFDING, BERNSTEIN = "hoeffding", "bernstein"
BONUSES = (HOEFFDING, BERNSTEIN)


class UCBVI(EnumeratedLearner):
    """Upper confidence bound value iteration, UCBVI-CH ("hoeffding") or UCBVI-BF ("bernstein").

    Q_l = min(Q_l of the last episode, R + P^ V_{l+1} + b), with L = log(5 S A T / delta) and, for
    rewards in [0, 1],
      hoeffding: b = 7 H L / sqrt(n)
      bernstein: b = sqrt(8 L Var(V_{l+1}) / n) + 14 H L / (3 n) + sqrt(8 E[b'] / n),
                 b' = min(100^2 H^3 S^2 A L^2 / n', H^2),
    n' the visits of the next state at the next step. b' is H^2 until n' exceeds
    10^4 H S^2 A L^2, which no run reaches; here it always is, so steps need not be distinguished.
    T = H K for the given number K of `episodes`; without it, T = H k in episode k, and delta is
    spread over the episodes as 6 delta / (pi k)^2. Rewards that are noisy and not known take half
    of delta, by the normal tail with a union over (s, a) and visits up to T. No mean with its bonus
    leaves the range of V_{l+1}, where the source caps Q_l by H; values are never above its own.
    `scale` multiplies squared bonuses; anything but 1 makes the learner heuristic.
    Cost of a plan: horizon |states|^2 |actions|.
    Source: Azar, Osband and Munos (2017), Minimax regret bounds for reinforcement learning,
    Algorithms 1 to 4.
    """

    name = "UCBVI"

    def __init__(
        self,
        structure: Structure,
        bonus: Annotated[str, OneOf(BONUSES)] = BERNSTEIN,
        delta: Probability = 0.05,
        seed: int = 0,
        *,
        episodes: int | None = None,
        **options: Unpack[SharedOptions],
    ) -> None:
        self.bonus = as_choice(bonus, "bonus", BONUSES)
        self.episodes = (
            None if episodes is None else as_whole(episodes, "episodes", 1, MOST_EPISODES)
        )
        super().__init__(structure, delta, seed, **options)
        self._last_q: Floats = np.full((self.horizon, self.n_actions, self.n_states), np.inf)

    def log_term(self) -> float:
        """L = log(5 S A T / delta)."""
        steps = self.horizon * (self.episodes or self.episode)
        delta = self.optimism.delta / (2 if self.learnt_sigma > 0 else 1)
        if self.episodes is None:
            delta *= 6 / (math.pi * self.episode) ** 2
        return math.log(5 * self.n_states * self.n_actions * steps / delta)

    def replan(self) -> Planned:
        """Optimistic values from the counts as they are."""
        visits, log_term = self.visits, self.log_term()
        n = np.maximum(visits, 1)
        transitions = self.outcomes / n[:, :, None]
        unseen = visits == 0

        def means(following: Floats) -> Ends:
            middle = transitions @ following
            squares = transitions @ following**2
            variances = np.maximum(squares - middle**2, 0.0)
            bonus = math.sqrt(self.optimism.scale) * self._bonus(variances, n, log_term)
            bonus[unseen] = np.inf
            return middle - bonus, middle + bonus

        rewards = self.reward_bounds(self.optimism.scale * log_term)
        solved = backward_induction(self, rewards, means, at_most=self._last_q)
        self._last_q = solved.q
        return self.follow(solved)

    def _bonus(self, variances: Floats, n: np.ndarray, log_term: float) -> Floats:
        reach = self.horizon * self.reward_span  # H, in units of these rewards
        if self.bonus == HOEFFDING:
            return np.asarray(7 * reach * log_term / np.sqrt(n))
        return np.asarray(
            np.sqrt(8 * log_term * variances / n)
            + 14 * reach * log_term / (3 * n)
            + np.sqrt(8 * reach**2 / n)
        )

    def state(self) -> dict[str, np.ndarray]:
        """The random state, and the values that the next ones may not exceed."""
        return super().state() | {"last_q": self._last_q}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Take a state back."""
        super().restore(state)
        last_q, shape = state["last_q"], self._last_q.shape
        if last_q.shape != shape or last_q.dtype != np.float64 or np.isnan(last_q).any():
            raise ValueError(f"last_q: expected numbers of shape {shape}")
        self._last_q = last_q

    def options(self) -> Sequence[str]:
        """Which bonus, and for how many episodes."""
        made_for = () if self.episodes is None else (f"{self.episodes} episodes",)
        return (self.bonus, *made_for)


UCBVI_ENTRY = entry_of(
    UCBVI,
    "ucbvi",
    "UCBVI",
    "value iteration with bonuses over all states; small models only",
    uses_basis=False,
)


class FMDPBF(EnumeratedLearner):
    """Values with bonuses over products, FMDP-BF ("bernstein") or F-UCBVI ("hoeffding").

    Q_l = R + P^ V_{l+1} + sum_i b_i, P^ = prod_i P^_i over variables, with lower values V' beside
    the upper ones V, D = max V - min V', d_i a bound on the total variation between P_i and P^_i,
    and L = log(4 m S A H pi^2 n^2 / (6 delta')):
      hoeffding: c_i = D sqrt(L / (2 n_i))
      bernstein: c_i = sqrt(2 L / (n_i - 1)) (s_i + u + D sum_{j != i} d_j) + 7 D L / (3 (n_i - 1)),
                 s_i^2 = Var of E[V | y_i] under P^_i, u^2 = E^[(V - V')^2]
      b_i = min(D d_i, c_i + 2 D d_i sum_{j < i} d_j).
    Factors are exchanged one after another; c_i bounds what exchanging P_i for P^_i does to the
    mean of V*, a fixed function, the last term what the exchanges before it do to that. The
    deviation of the mean of V* is at most that of V, plus what V is off by (u), plus what the other
    factors are. Noisy rewards that are not known take half of delta, d_i and c_i half of the rest.
    No mean with its bonus leaves the range of V_{l+1}. If variables are correlated no product is
    right, however much is counted.
    `scale` multiplies d_i^2 and L; anything but 1 makes the learner heuristic.
    Cost of a plan: horizon |states|^2 |actions| times the number of variables.
    Source: Chen, Hu, Li and Wang (2021), Efficient reinforcement learning in factored MDPs with
    application to constrained RL, and Tian, Qian and Sra (2020), Towards minimax optimal
    reinforcement learning in factored Markov decision processes, for what a bonus consists of; the
    constants are ours, as derived above.
    """

    name = "FMDPBF"
    counts_by_variable = True

    def __init__(
        self,
        structure: Structure,
        bonus: Annotated[str, OneOf(BONUSES)] = BERNSTEIN,
        delta: Probability = 0.05,
        seed: int = 0,
        **options: Unpack[SharedOptions],
    ) -> None:
        self.bonus = as_choice(bonus, "bonus", BONUSES)
        super().__init__(structure, delta, seed, **options)
        self._delta_transitions = self.optimism.delta / (4 if self.learnt_sigma > 0 else 2)

    def distances(self) -> Floats:
        """d_i of each transition cell; 1 where nothing was seen."""
        of_variables = np.unique(self.variables.transitions)
        return total_variations(
            self.cells,
            self.statistics.transition_visits,
            len(of_variables),
            self._delta_transitions,
            self.optimism.scale,
        )

    def log_terms(self) -> Floats:
        """L of each transition cell."""
        n = np.maximum(self.statistics.transition_visits, 1).astype(np.float64)
        pairs = self.n_states * self.n_actions * self.horizon * len(self.structure.variables)
        logs = np.log(4 * pairs * math.pi**2 * n**2 / (6 * self._delta_transitions))
        return np.asarray(self.optimism.scale * logs)

    def replan(self) -> Planned:
        """Upper and lower values from the counts as they are."""
        structure, statistics = self.structure, self.statistics
        rewards = self.variables.rewards(self.optimism.delta / 2)
        sizes = np.array([v.size for v in structure.variables], dtype=np.int64)
        shape = (self.n_actions, self.n_states)
        distances, log_terms = self.distances(), self.log_terms()
        farthest = distances[self.variables.transitions].sum(axis=2)
        lower, states = np.zeros(self.n_states), all_states(structure)

        def means(following: Floats) -> Ends:
            nonlocal lower
            upper_means, lower_means, bonus = (np.zeros(shape) for _ in range(3))
            fill_bonus_means(
                self.variables.transitions,
                sizes,
                states,
                self.cells.layout.outcome_start,
                statistics.outcomes,
                statistics.transition_visits,
                distances,
                log_terms,
                self.bonus == HOEFFDING,
                following,
                lower,
                upper_means,
                lower_means,
                bonus,
            )
            low = np.clip(lower_means - bonus, lower.min(), lower.max())
            lowest = np.where(self.allowed, rewards[0] + structure.discount * low, -np.inf)
            lower = np.where(self.over, 0.0, lowest.max(axis=0))
            # Of the upper values, which depend on what was counted, only distances bound the mean.
            return upper_means - np.ptp(following) * farthest, upper_means + bonus

        return self.follow(backward_induction(self, rewards, means))

    def options(self) -> Sequence[str]:
        """Which bonus."""
        return (self.bonus,)


@compiled()
def fill_bonus_means(
    cell_at: Integers,
    sizes: Integers,
    states: Integers,
    outcome_start: Integers,
    outcomes: Integers,
    visits: Integers,
    distances: Floats,
    log_terms: Floats,
    is_hoeffding: bool,
    upper: Floats,
    lower: Floats,
    upper_means: Floats,
    lower_means: Floats,
    bonus: Floats,
) -> None:
    """Means of upper and lower values under the empirical product, and the sum of bonuses."""
    n_actions, n_states, n_variables = cell_at.shape
    reach = upper.max() - lower.min()
    laws = np.zeros((n_variables, sizes.max()))
    parts = np.zeros((n_variables, sizes.max()))
    for action in range(n_actions):
        for state in range(n_states):
            cells = cell_at[action, state]
            all_distances = 0.0
            for variable in range(n_variables):
                cell = cells[variable]
                all_distances += distances[cell]
                for y in range(sizes[variable]):
                    if visits[cell] == 0:  # whatever it is: its distance is 1
                        laws[variable, y] = 1 / sizes[variable]
                    else:
                        laws[variable, y] = outcomes[outcome_start[cell] + y] / visits[cell]
            parts[:] = 0.0
            mean, low_mean, squares = 0.0, 0.0, 0.0
            for following in range(n_states):
                chance = 1.0
                for variable in range(n_variables):
                    chance *= laws[variable, states[following, variable]]
                mean += chance * upper[following]
                low_mean += chance * lower[following]
                squares += chance * (upper[following] - lower[following]) ** 2
                for variable in range(n_variables):
                    parts[variable, states[following, variable]] += chance * upper[following]
            total, before = 0.0, 0.0
            for variable in range(n_variables):
                cell = cells[variable]
                n, distance = visits[cell], distances[cell]
                first = np.inf
                if is_hoeffding and n > 0:
                    first = reach * np.sqrt(log_terms[cell] / (2 * n))
                elif n > 1:
                    variance = -(mean**2)
                    for y in range(sizes[variable]):
                        if laws[variable, y] > 0:
                            variance += parts[variable, y] ** 2 / laws[variable, y]
                    deviation = np.sqrt(max(variance, 0.0)) + np.sqrt(squares)
                    deviation += reach * (all_distances - distance)
                    first = np.sqrt(2 * log_terms[cell] / (n - 1)) * deviation
                    first += 7 * reach * log_terms[cell] / (3 * (n - 1))
                total += min(reach * distance, first + 2 * reach * distance * before)
                before += distance
            upper_means[action, state] = mean
            lower_means[action, state] = low_mean
            bonus[action, state] = total


BY_FACTOR = "value iteration with bonuses by factor over all states; small models only"
FMDP_BF_ENTRY = entry_of(FMDPBF, "fmdp-bf", "FMDP-BF", BY_FACTOR)
