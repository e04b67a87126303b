"""UCRL-Factored for product transitions: every variable is drawn on its own, from its parents."""

from __future__ import annotations

import numpy as np

from fsmdp.compiled import compiled
from fsmdp.learning.cells.confidence import mean_in_ball, sort_descending
from fsmdp.learning.learners.baselines.enumerated import (
    Ends,
    EnumeratedLearner,
    backward_induction,
)
from fsmdp.learning.learners.learner import Planned
from fsmdp.learning.learners.registry import entry_of
from fsmdp.model.lookup import Integers
from fsmdp.model.tables import Floats


class UCRLProduct(EnumeratedLearner):
    """Optimism over products of balls: P(s' | s, a) = prod_i P_i(s'_i | parents of i, a).

    |P_i - P^_i|_1 <= sqrt(d / n),  d = 4 |Val(i)| log(4 m |X_i| k / delta),
    |r_i - r^_i| <= sqrt(4 sigma^2 log(4 l |X_i| k / delta) / n),
    k the episode, |X_i| the cells of a variable or reward term, m and l the numbers of both. The
    source leaves the best product to an oracle; here variables are chosen one after another, from
    the last to the first, the ball's best distribution for each value of those before it. That
    allows more than products, so values stay optimistic.
    **If variables are correlated given their parents no product is right**, however much is
    counted: that is what this baseline is there to show.
    `scale` multiplies squared radii; anything but 1 makes the learner heuristic.
    Cost of a plan: horizon |states|^2 |actions|.
    Source: Osband and Van Roy (2014), Near-optimal reinforcement learning in factored MDPs,
    Algorithm 2; its radii are looser than they need be (docs/paper_notes.md, note 6).
    """

    name = "UCRLProduct"
    counts_by_variable = True

    def radii(self) -> Floats:
        """Radius of the ball of each transition cell; 2, which is everything, where unseen."""
        cells, n = self.cells, self.statistics.transition_visits
        cells_of_function = np.bincount(cells.function)[cells.function]
        events = 4 * len(self.structure.variables) * cells_of_function * self.episode
        squared = 4 * cells.n_values * np.log(events / self.optimism.delta)
        found = np.sqrt(self.optimism.scale * squared / np.maximum(n, 1))
        return np.where(n == 0, 2.0, np.minimum(found, 2.0))

    def replan(self) -> Planned:
        """Optimistic values over the balls as they are."""
        cell_at, layout = self.variables.transitions, self.cells.layout
        visits, outcomes = self.statistics.transition_visits, self.statistics.outcomes
        radii = self.radii()
        sizes = np.array([v.size for v in self.structure.variables], dtype=np.int64)

        def means(following: Floats) -> Ends:
            low, high = (np.zeros((self.n_actions, self.n_states)) for _ in range(2))
            for found, sign in ((high, 1.0), (low, -1.0)):
                fill_product_means(
                    cell_at,
                    sizes,
                    layout.outcome_start,
                    outcomes,
                    visits,
                    radii,
                    sign * following,
                    found,
                )
            return -low, high

        return self.follow(
            backward_induction(
                self.horizon,
                self.structure.discount,
                self.variables.rewards(self.optimism.delta),
                means,
            )
        )


@compiled()
def fill_product_means(
    cell_at: Integers,
    sizes: Integers,
    outcome_start: Integers,
    outcomes: Integers,
    visits: Integers,
    radii: Floats,
    following: Floats,
    means: Floats,
) -> None:
    """Best mean of the following values when each variable is drawn from its own ball.

    W_m = V;  W_{i-1}(y_1 .. y_{i-1}) = max over P_i of sum_y P_i(y) W_i(y_1 .. y_{i-1}, y)
    Cost: about 2 |states| for each (action, state), for binary variables.
    """
    n_actions, n_states, n_variables = cell_at.shape
    left = np.zeros(n_states)
    row = np.zeros(sizes.max())
    order = np.zeros(sizes.max(), dtype=np.int64)
    for action in range(n_actions):
        for state in range(n_states):
            left[:] = following
            n_left = n_states
            for variable in range(n_variables - 1, -1, -1):
                size = sizes[variable]
                cell = cell_at[action, state, variable]
                n = max(visits[cell], 1)
                for y in range(size):
                    row[y] = outcomes[outcome_start[cell] + y] / n
                n_left //= size
                for prefix in range(n_left):
                    values = left[prefix * size : (prefix + 1) * size]
                    if visits[cell] == 0:
                        left[prefix] = values.max()
                    else:
                        sort_descending(values, order)
                        left[prefix] = mean_in_ball(row, values, order, radii[cell])
            means[action, state] = left[0]


WHAT = "optimism over products of transitions; small models only"
ENTRY = entry_of(UCRLProduct, "ucrl-product", "UCRL-Factored, product form", WHAT)
