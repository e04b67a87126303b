"""FMDP-BF and F-UCBVI: value iteration on an empirical product, with a bonus for each factor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Unpack

import numpy as np

from fsmdp.compiled import compiled
from fsmdp.foundation.kinds import OneOf, Probability
from fsmdp.learning.cells.confidence import total_variations
from fsmdp.learning.learners.baselines.enumerated import (
    Ends,
    EnumeratedLearner,
    SharedOptions,
    all_states,
    backward_induction,
)
from fsmdp.learning.learners.baselines.ucbvi import BERNSTEIN, BONUSES, HOEFFDING
from fsmdp.learning.learners.learner import Planned
from fsmdp.learning.learners.registry import entry_of
from fsmdp.learning.options import as_choice
from fsmdp.model.lookup import Integers
from fsmdp.model.structure import Structure
from fsmdp.model.tables import Floats


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
            lower = (rewards[0] + structure.discount * low).max(axis=0)
            # Of the upper values, which depend on what was counted, only distances bound the mean.
            return upper_means - np.ptp(following) * farthest, upper_means + bonus

        return self.follow(backward_induction(self.horizon, structure.discount, rewards, means))

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


WHAT = "value iteration with bonuses by factor over all states; small models only"
ENTRY = entry_of(FMDPBF, "fmdp-bf", "FMDP-BF", WHAT)
