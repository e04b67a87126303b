"""The regret bound of the product form: groups of variables that are drawn independently."""

from __future__ import annotations

import math

from fsmdp.foundation.checks import as_whole
from fsmdp.learning.options import as_probability, check_stated, check_structure
from fsmdp.learning.theory.bounds import MOST_EPISODES, RegretBound, at_least_zero
from fsmdp.model.structure import Structure, sum_of_discounts
from fsmdp.model.variables import table_size


def product_regret_bound(
    structure: Structure, *, episodes: int, delta: float = 0.05, growth: float = 0.0
) -> RegretBound:
    """What `UCRLFactored(structure, "product", planner="solver")` loses at most.

    martingale   B sqrt(T log(1 / delta) / 2),  B = horizon * sum_i (high_i - low_i)
    rewards      sum_i C_i (2 + g) horizon |X_i| + 4 sqrt(2 (1 + g) d_i |X_i| T),
                 d_i = 4 sigma_i^2 log(8 l |X_i| K / delta)
    transitions  B sum_i (2 + g) horizon |X_i| + |Val(i)| sqrt(2 (1 + g) d_i |X_i| T),
                 d_i = 4 |Val(i)| log(8 m |X_i| K / delta)

    The last sum runs over independent groups: |X_i| are assignments of a group's parents, |Val(i)|
    its values; m counts scopes, g is the growth that calls for a new plan. Logarithms have 8 where
    radii have 4, since half of delta may go to rewards. No number of states or functions occurs.
    All states have to be swept: then there is no slack, and nothing is added for planning.
    Source: Osband and Van Roy (2014), Near-optimal reinforcement learning in factored MDPs, the
    theorem on UCRL-Factored, whose form and sets these are; the constants are derived in
    docs/learning.md, where the horizon's largest return stands for the source's diameter.
    """
    structure = check_stated("regret bound", check_structure("regret bound", structure))
    assert structure.horizon is not None
    as_whole(episodes, "episodes", 1, MOST_EPISODES)
    as_probability(delta)
    growth = at_least_zero(growth, "growth", "0 is a plan every episode")
    tau, steps = structure.horizon, episodes * structure.horizon
    terms, sizes = structure.rewards, [variable.size for variable in structure.inputs]
    reach = sum_of_discounts(tau, structure.discount) * sum(t.high - t.low for t in terms)

    def count(scope: tuple[int, ...]) -> int:
        return table_size(sizes[position] for position in scope)

    n_scopes = len({*structure.basis.scopes[1:], *structure.independent})

    def reward(low: float, high: float, sigma: float, cells: int) -> float:
        d = 4 * sigma**2 * math.log(8 * len(terms) * cells * episodes / delta)
        early = (2 + growth) * tau * (high - low) * cells
        return early + 4 * math.sqrt(2 * (1 + growth) * d * cells * steps)

    def group(values: int, cells: int) -> float:
        d = 4 * values * math.log(8 * n_scopes * cells * episodes / delta)
        late = values * math.sqrt(2 * (1 + growth) * d * cells * steps)
        return (2 + growth) * tau * cells + late

    return RegretBound(
        planning=0.0,
        martingale=reach * math.sqrt(steps * math.log(1 / delta) / 2),
        rewards=math.fsum(
            reward(term.low, term.high, term.sigma, sum(map(count, term.parents))) for term in terms
        ),
        transitions=reach
        * math.fsum(
            group(count(scope), sum(map(count, parents)))
            for scope, parents in zip(structure.independent, structure.group_parents, strict=True)
        ),
        slack=0.0,
        probability=1 - 3 * delta,
    )
