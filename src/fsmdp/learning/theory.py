"""Regret bounds: the paper's general and symmetric theorems, and the one that `hoeffding` gives.

T = K * horizon is the number of steps of K episodes, W bounds the 1-norm of every step's weights,
G bounds |h_j|. Cells stand where the paper counts assignments of parents and actions: with action
groups there are fewer of them.
"""

import math
from dataclasses import dataclass, fields

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import as_number, as_probability, as_whole, show
from fsmdp.foundation.numbers import upper
from fsmdp.learning.learners.learner import check_stated, check_structure
from fsmdp.model.structure import Structure, sum_of_discounts
from fsmdp.model.variables import table_size

MOST_EPISODES = 10**18


@dataclass(frozen=True, slots=True, eq=False)
class RegretBound:
    """Terms of a bound that holds with the stated probability."""

    planning: float
    martingale: float
    rewards: float
    transitions: float
    slack: float
    probability: float

    @property
    def total(self) -> float:
        """All terms together."""
        return self.planning + self.martingale + self.rewards + self.transitions + self.slack

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{field.name} {upper(getattr(self, field.name), 6)}" for field in fields(self)[:-1]
        )
        return f"RegretBound({upper(self.total, 6)}: {shown}; probability {self.probability:g})"


@dataclass(frozen=True, slots=True, eq=False)
class SymmetricRegretBound:
    """30 phi horizon W G sqrt(T J (J log 2 + log(2 N zeta T^2 / delta)))."""

    total: float
    probability: float
    n_values: int  # J
    n_parents: int  # zeta
    unmet: tuple[str, ...]  # assumptions of the theorem that the structure does not meet

    def __repr__(self) -> str:
        unmet = f"; NOT MET: {', '.join(self.unmet)}" if self.unmet else ""
        total = upper(self.total, 6)
        return f"SymmetricRegretBound({total}; probability {self.probability:g}{unmet})"


def regret_bound(
    structure: Structure,
    *,
    episodes: int,
    delta: float = 0.05,
    w_norm: float | None = None,
    h_max: float | None = None,
    slack: float = 0.0,
) -> RegretBound:
    """The general theorem, each term by itself, with the paper's constants.

    planning     2 sqrt(K)
    martingale   W G sqrt(2 T log(2 / delta))
    rewards      sum_i 5 horizon C_i |X_i| + 8 sigma_i sqrt(|X_i| T log(4 l |X_i| T^2 / delta))
    transitions  W G sum_j 5 horizon |Val(Z_j)|
                     + 4 sqrt(4 |X_j| T (|Val(Z_j)| log 2 - log(delta / (2 N |Pa_j| T^2))))

    The paper takes the program to be tight along the trajectory; `slack` adds what it was not
    (`history.slacks.sum()`). `w_norm` is horizon times the largest reward unless given (a bound
    that feasible weights always attain), `h_max` the largest |h_j|.
    Two sets and a martingale may fail, each with probability delta.
    Paper: the general theorem of the appendix.
    """
    facts = _facts(structure, episodes, delta, w_norm, h_max)
    k, t, tau, wg = episodes, facts.steps, facts.horizon, facts.wg
    n_terms = len(structure.rewards)
    return RegretBound(
        planning=2 * math.sqrt(k),
        martingale=wg * math.sqrt(2 * t * math.log(2 / delta)),
        rewards=math.fsum(
            5 * tau * (term.high - term.low) * x
            + 8 * term.sigma * math.sqrt(x * t * math.log(4 * n_terms * x * t**2 / delta))
            for term, x in zip(structure.rewards, facts.reward_cells, strict=True)
        ),
        transitions=wg
        * math.fsum(
            5 * tau * values
            + 4
            * math.sqrt(
                4
                * x
                * t
                * (values * math.log(2) - math.log(delta / (2 * facts.n * parents * t**2)))
            )
            for values, x, parents in facts.functions
        ),
        slack=at_least_zero(slack, "slack", "give history.slacks.sum()"),
        probability=1 - 3 * delta,
    )


def symmetric_regret_bound(
    structure: Structure,
    *,
    episodes: int,
    delta: float = 0.05,
    w_norm: float | None = None,
    h_max: float | None = None,
) -> SymmetricRegretBound:
    """The theorem of the paper's main text, for structures in which everything is alike.

    J is the largest number of cells of a function or term, or of values of a scope; zeta the
    largest number of parents. Assumptions that do not hold are listed in `unmet`; where all hold
    the bound is never below the general one.
    """
    facts = _facts(structure, episodes, delta, w_norm, h_max)
    n_functions = len(facts.functions)
    largest = max(
        1, *(max(values, x) for values, x, _ in facts.functions), *facts.reward_cells, *(1,)
    )
    zeta = max(1, *(parents for _, _, parents in facts.functions), *(1,))
    t = facts.steps
    assumptions = {
        "l + 1 <= phi": len(structure.rewards) + 1 <= n_functions,
        "C <= 1": all(term.high - term.low <= 1 for term in structure.rewards),
        "sigma <= 1": all(term.sigma <= 1 for term in structure.rewards),
        "W G >= 1": facts.wg >= 1,
        "zeta N >= 2 phi J": zeta * facts.n >= 2 * n_functions * largest,
    }
    return SymmetricRegretBound(
        total=30
        * n_functions
        * facts.horizon
        * facts.wg
        * math.sqrt(
            t * largest * (largest * math.log(2) + math.log(2 * facts.n * zeta * t**2 / delta))
        ),
        probability=1 - 3 * delta,
        n_values=largest,
        n_parents=zeta,
        unmet=tuple(text for text, holds in assumptions.items() if not holds),
    )


def hoeffding_regret_bound(
    structure: Structure,
    *,
    episodes: int,
    delta: float = 0.05,
    w_norm: float | None = None,
    h_max: float | None = None,
    growth: float = 0.0,
    slack: float = 0.0,
) -> RegretBound:
    """What the `hoeffding` sets give: no term for the number of values of a scope.

    planning     2 sqrt(K)
    martingale   B sqrt(T log(1 / delta) / 2),  B = W G + horizon * sum_i max(0, -low_i)
    rewards      sum_i C_i (2 + g) horizon |X_i| + 4 sqrt(2 (1 + g) d_i |X_i| T),
                 d_i = 2 sigma_i^2 log(2 N_R pi^2 T^2 / (6 delta))
    transitions  W sum_j range_j ((2 + g) horizon |X_j| + 4 sqrt((1 + g) |X_j| T L)),
                 L = log(2 N pi^2 T^2 / (6 delta))

    g is the growth that calls for a new plan (0: every episode), N_R the number of reward cells.
    Derived in docs/learning.md; assumes what is said there.
    """
    facts = _facts(structure, episodes, delta, w_norm, h_max)
    t, tau, rewards = facts.steps, facts.horizon, structure.rewards
    growth = at_least_zero(growth, "growth", "0 is a plan every episode")
    below_zero = sum(max(0.0, -term.low) for term in rewards)
    union = math.pi**2 * t**2 / (6 * delta)
    n_rewards = max(1, sum(facts.reward_cells))
    ranges = [float(table.values.max() - table.values.min()) for table in structure.basis][1:]

    def reward_term(reach: float, sigma: float, x: int) -> float:
        d = 2 * sigma**2 * math.log(2 * n_rewards * union)
        return (2 + growth) * tau * reach * x + 4 * math.sqrt(2 * (1 + growth) * d * x * t)

    logs = math.log(2 * facts.n * union)
    return RegretBound(
        planning=2 * math.sqrt(episodes),
        martingale=(facts.wg + tau * below_zero) * math.sqrt(t * math.log(1 / delta) / 2),
        rewards=math.fsum(
            reward_term(term.high - term.low, term.sigma, x)
            for term, x in zip(rewards, facts.reward_cells, strict=True)
        ),
        transitions=facts.w
        * math.fsum(
            reach * ((2 + growth) * tau * x + 4 * math.sqrt((1 + growth) * x * t * logs))
            for reach, (_, x, _) in zip(ranges, facts.functions, strict=True)
        ),
        slack=at_least_zero(slack, "slack", "give history.slacks.sum()"),
        probability=1 - 3 * delta,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Facts:
    horizon: int
    steps: int  # T
    w: float
    wg: float
    n: int  # N
    functions: tuple[tuple[int, int, int], ...]  # |Val(Z_j)|, |X_j|, |Pa_j|; without h_0
    reward_cells: tuple[int, ...]  # |X_i|


def _facts(
    structure: Structure, episodes: int, delta: float, w_norm: float | None, h_max: float | None
) -> _Facts:
    structure = check_structure("regret bound", structure)
    assert structure.horizon is not None
    as_whole(episodes, "episodes", 1, MOST_EPISODES)
    as_probability(delta)
    sizes = [variable.size for variable in structure.variables]

    def count(scope: tuple[int, ...]) -> int:
        return table_size(sizes[position] for position in scope)

    if w_norm is None:
        largest = sum(max(abs(term.low), abs(term.high)) for term in structure.rewards)
        w_norm = structure.horizon * largest
    w_norm = at_least_zero(w_norm, "w_norm", "history.w_norms shows norms that plans had")
    if h_max is None:
        h_max = max(float(abs(table.values).max()) for table in structure.basis)
    h_max = at_least_zero(h_max, "h_max", "leave it out for the largest |h_j|")
    return _Facts(
        structure.horizon,
        episodes * structure.horizon,
        float(w_norm),
        float(w_norm * h_max),
        max(1, structure.cells),
        tuple(
            (
                count(table.scope),
                sum(count(scope) for scope in cases),
                max(1, max(len(scope) for scope in cases)),
            )
            for table, cases in list(zip(structure.basis, structure.parents, strict=True))[1:]
        ),
        tuple(sum(count(scope) for scope in term.parents) for term in structure.rewards),
    )


def at_least_zero(value: object, where: str, remedy: str) -> float:
    """A number that is not negative."""
    number = as_number(value, where, remedy)
    if number < 0:
        raise ModelError(f"{where}: expected at least 0, found {show(value)}; {remedy}.")
    return number


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
