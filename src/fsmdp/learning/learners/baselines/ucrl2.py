"""Optimism over L1 balls: UCRL2 and MBIE around every row, UCRL-Factored around every factor."""

import math

import numpy as np

from fsmdp.compiled import compiled
from fsmdp.learning.learners.baselines.enumerated import (
    Ends,
    EnumeratedLearner,
    Means,
    backward_induction,
)
from fsmdp.learning.learners.learner import Planned
from fsmdp.learning.learners.registry import entry_of
from fsmdp.model.extremes import mean_in_ball, sort_descending
from fsmdp.model.tables import Floats, Integers


class UCRL2(EnumeratedLearner):
    """Optimism over balls around transition rows; a new plan when visits of some (s, a) double.

    |P - P^|_1 <= sqrt(14 S log(2 A t / delta) / n),
    |r - r^| <= sqrt(7 log(2 S A t / delta) / (2 n)) for rewards of standard deviation up to 1/2,
    t the number of steps taken before the plan, plus one. Noise of another deviation has a radius
    in proportion; rewards without noise are known after one visit. The source plans for an endless
    horizon by extended value iteration and may change its plan at any step; here the same
    inner maximisation is a backward induction, and plans change between episodes. Its regret
    theorem is about average reward and does not carry over; the sets do, and with them optimism.
    `scale` multiplies squared radii; anything but 1 makes the learner heuristic.
    Cost of a plan: horizon |states| (|states| |actions| + log |states|).
    Source: Jaksch, Ortner and Auer (2010), Near-optimal regret bounds for reinforcement learning,
    Figure 1 with equations 3 and 4, and Figure 2.
    """

    name = "UCRL2"

    def radii(self) -> Floats:
        """Radius of the ball around each row; 2, which is everything, where nothing was seen."""
        t = int(self.visits.sum()) + 1
        squared = 14 * self.n_states * math.log(2 * self.n_actions * t / self.optimism.delta)
        found = np.sqrt(self.optimism.scale * squared / np.maximum(self.visits, 1))
        return np.where(self.visits == 0, 2.0, np.minimum(found, 2.0))

    def replan(self) -> Planned:
        """Optimistic values over the balls as they are."""
        visits = self.visits
        t = int(visits.sum()) + 1
        log_term = 7 * math.log(2 * self.n_states * self.n_actions * t / self.optimism.delta)
        rewards = self.reward_bounds(self.optimism.scale * log_term)
        means = ball_means(self.outcomes, visits, self.radii())
        solved = backward_induction(self, rewards, means)
        return self.follow(solved, replan_at=np.maximum(1, 2 * visits))


def ball_means(outcomes: Integers, visits: Integers, radii: Floats) -> Means:
    """Extreme means over the ball around what was seen of each (action, state)."""

    def means(following: Floats) -> Ends:
        descending = np.argsort(-following, kind="stable")
        low, high = np.zeros(visits.shape), np.zeros(visits.shape)
        fill_ball_means(outcomes, visits, radii, following, descending, low, high)
        return low, high

    return means


@compiled()
def fill_ball_means(
    outcomes: Integers,
    visits: Integers,
    radii: Floats,
    following: Floats,
    descending: Integers,
    low: Floats,
    high: Floats,
) -> None:
    """Extreme means of the following values over the ball of every (action, state)."""
    n_actions, n_states = visits.shape
    ascending = descending[::-1].copy()
    row = np.zeros(n_states)
    for action in range(n_actions):
        for state in range(n_states):
            n = visits[action, state]
            if n == 0:
                low[action, state] = following[ascending[0]]
                high[action, state] = following[descending[0]]
                continue
            for y in range(n_states):
                row[y] = outcomes[action, state, y] / n
            radius = radii[action, state]
            low[action, state] = mean_in_ball(row, following, ascending, radius)
            high[action, state] = mean_in_ball(row, following, descending, radius)


UCRL2_ENTRY = entry_of(
    UCRL2,
    "ucrl2",
    "UCRL2",
    "optimism over balls around all transition rows; small models only",
    uses_basis=False,
)


class MBIE(EnumeratedLearner):
    """The best transition row of an L1 ball around what was seen of each (s, a).

    |P - P^|_1 <= sqrt(2 (log(2^S - 2) - log delta_n) / n),
    |r - r^| <= sigma sqrt(2 log(2 / delta_n) / n),  delta_n = 6 delta / (2 S A (pi n)^2).
    The source divides delta by 2 S A m, where m visits are all that is counted of a pair; here
    visits are counted on and the union runs over their number. Its rewards lie in [0, 1], which
    are of deviation 1/2 at most; here noise has its own. It plans at every step for a discounted
    future; here before every episode, backwards from the horizon. The maximum over a ball is found
    as in the source, and as in Algorithm 3 of Deng, Devic and Juba: half the radius goes to the
    best next state and is taken from the worst.
    `scale` multiplies squared radii; anything but 1 makes the learner heuristic.
    Cost of a plan: horizon |states| (|states| |actions| + log |states|).
    Source: Strehl and Littman (2008), An analysis of model-based interval estimation for Markov
    decision processes.
    """

    name = "MBIE"

    def log_terms(self) -> Floats:
        """- log delta_n of each (action, state)."""
        pairs = self.n_states * self.n_actions
        n = np.maximum(self.visits, 1)
        return np.asarray(np.log(2 * pairs * (math.pi * n) ** 2 / (6 * self.optimism.delta)))

    def radii(self) -> Floats:
        """Radius of the ball around each row; 2, which is everything, where nothing was seen."""
        if self.n_states == 1:
            return np.zeros(self.visits.shape)
        subsets = self.n_states * math.log(2) + math.log1p(-(2.0 ** (1 - self.n_states)))
        squared = 2 * (subsets + self.log_terms()) / np.maximum(self.visits, 1)
        return np.where(
            self.visits == 0, 2.0, np.minimum(np.sqrt(self.optimism.scale * squared), 2.0)
        )

    def replan(self) -> Planned:
        """Optimistic values over the balls as they are."""
        means = ball_means(self.outcomes, self.visits, self.radii())
        rewards = self.reward_bounds(self.optimism.scale * (math.log(2) + self.log_terms()))
        return self.follow(backward_induction(self, rewards, means))


MBIE_ENTRY = entry_of(
    MBIE,
    "mbie",
    "MBIE",
    "optimism over balls around all transition rows, by visits of each; small models only",
    uses_basis=False,
)


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

        rewards = self.variables.rewards(self.optimism.delta)
        return self.follow(backward_induction(self, rewards, means))


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


PRODUCTS = "optimism over products of transitions; small models only"
UCRL_PRODUCT_ENTRY = entry_of(UCRLProduct, "ucrl-product", "UCRL-Factored, product form", PRODUCTS)
