"""Exogenous block: a small controllable block among many uncontrolled, correlated factors."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from fsmdp.domains.registry import (
    Domain,
    check_probability,
    check_whole,
    realizable_start_value,
    register,
)
from fsmdp.exact.solve import ExactSolution, solve_exactly
from fsmdp.model.basis import Basis
from fsmdp.model.cases import ANY, Case
from fsmdp.model.conditionals import Conditional
from fsmdp.model.mdp import FactoredMDP, check_model
from fsmdp.model.rewards import Reward
from fsmdp.model.structure import check_horizon
from fsmdp.model.tables import Floats
from fsmdp.model.variables import Variable

if TYPE_CHECKING:
    from fsmdp.policies.resolve import PolicyFunction

ACTIONS = ("wait", "fill", "repair")
BLOCK = ("pump", "tank")
COSTS = (0.0, 0.25, 0.4)
WORTH_OF_TANK = (0.0, 0.5, 1.0)
PUMP_SURVIVES = {"wait": 0.95, "fill": 0.8}
DEMAND = (0.3, 0.7)  # calm, shock
LARGEST_NUMBER_OF_FACTORS = 100_000


@dataclass(frozen=True, slots=True, eq=False)
class ExogenousBlock:
    """Parameters of an exogenous-block model, and its optimal value function at any size.

    Each step draws a latent `shock` (1 with probability `shock`) seen by the tank and every factor.
    `pump` (0 broken, 1 working): works after `repair`; otherwise a working pump survives with
    probability 0.95 (`wait`) or 0.8 (`fill`) and a broken one stays broken;
    `tank` (0, 1, 2): next = tank + filled - demanded, kept within 0 to 2, where filled is 1 under
    `fill` with a working pump, and demanded is 1 with probability 0.3, or 0.7 in a shock;
    `factor-i` (0, 1): P(1 next) = p_i(value), times the resilience of factor i in a shock.
    No action reaches the factors. By `seed`, p_i(0) is drawn from [0.1, 0.5], p_i(1) from
    [0.7, 0.95], the resilience from [0.1, 0.6]. Rewards: 0, 0.5 or 1 for the tank's level, -0.25
    for `fill`, -0.4 for `repair`, and r_i for factor i at 1, with r_i drawn from [0.5, 1.5] and
    then divided by their sum. The pump starts working, the tank full, every factor at 1.

    Next values are correlated through the shock, yet rewards are additive, so
    V*_l(s) = V*_l(pump, tank) + c_l + sum_i w_l,i factor_i: linear in `exogenous_basis`.
    """

    factors: int = 8
    horizon: int | None = 10
    shock: float = 0.3
    discount: float = 1.0
    seed: int = 0
    calm: Floats = field(init=False, repr=False)  # (factors, 2): P(1 next | value, no shock)
    resilience: Floats = field(init=False, repr=False)  # (factors,)
    worths: Floats = field(init=False, repr=False)  # (factors,)

    def __post_init__(self) -> None:
        check_whole("exogenous block", "factors", self.factors, 0, LARGEST_NUMBER_OF_FACTORS)
        check_whole("exogenous block", "seed", self.seed, 0)
        check_probability("exogenous block", "shock", self.shock)
        check_horizon(self.horizon, self.discount)
        rng = np.random.default_rng(self.seed)
        calm = rng.uniform((0.1, 0.7), (0.5, 0.95), (self.factors, 2))
        resilience = rng.uniform(0.1, 0.6, self.factors)
        worths = rng.uniform(0.5, 1.5, self.factors)
        derived = {"calm": calm, "resilience": resilience, "worths": worths / worths.sum()}
        for name, array in derived.items():
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    def model(self) -> FactoredMDP:
        """The factored MDP."""
        names = [f"factor-{factor}" for factor in range(self.factors)]
        return FactoredMDP(
            variables=[
                Variable("pump", 2),
                Variable("tank", len(WORTH_OF_TANK)),
                *(Variable(name, 2) for name in names),
            ],
            actions=ACTIONS,
            latents=[Variable("shock", 2)],
            conditionals=[
                Conditional("shock", [Case(ANY, [], [1 - self.shock, self.shock])]),
                _pump(),
                _tank(),
                *(self._factor(factor, name) for factor, name in enumerate(names)),
            ],
            rewards=[
                Reward("tank", [Case(ANY, ["tank"], WORTH_OF_TANK)]),
                Reward(
                    "action",
                    [Case([a], [], 0 - cost) for a, cost in zip(ACTIONS, COSTS, strict=True)],
                    low=-max(COSTS),
                    high=0.0,
                ),
                *(
                    Reward(name, [Case(ANY, [name], [0, worth])], 0, worth)
                    for name, worth in zip(names, self.worths.tolist(), strict=True)
                ),
            ],
            horizon=self.horizon,
            discount=self.discount,
            initial={"pump": 1, "tank": len(WORTH_OF_TANK) - 1, **dict.fromkeys(names, 1)},
        )

    def basis(self, model: FactoredMDP) -> Basis:
        """The basis in which V* is linear: see exogenous_basis."""
        return exogenous_basis(model)

    def optimal_weights(self) -> Floats:
        """Weights of V* in `exogenous_basis`: (horizon + 1, len(basis)), one row if infinite.

        The block is solved by enumeration (6 states); for factor i, with
        E[f_i'] = e_i0 (1 - f_i) + e_i1 f_i,
        w_l,i = r_i + discount (e_i1 - e_i0) w_{l+1,i},  c_l = discount (c_{l+1} + e_0 . w_{l+1}).
        Cost: horizon * factors.
        """
        values = self._solved_block().values
        rows = len(values)
        slopes, constants = np.zeros((rows, self.factors)), np.zeros(rows)
        # e[i, value]: chance that factor i is 1 next, the shock averaged out
        e = self.calm * (1 - self.shock * (1 - self.resilience))[:, None]
        if self.horizon is None:
            slopes[0] = self.worths / (1 - self.discount * (e[:, 1] - e[:, 0]))
            constants[0] = self.discount * (e[:, 0] @ slopes[0]) / (1 - self.discount)
        else:
            for row in reversed(range(self.horizon)):
                later = slopes[row + 1]
                slopes[row] = self.worths + self.discount * (e[:, 1] - e[:, 0]) * later
                constants[row] = self.discount * (constants[row + 1] + e[:, 0] @ later)
        block = values[:, 1:] - values[:, :1]
        return np.hstack([values[:, :1] + constants[:, None], block, slopes])

    def optimal_policy(self) -> PolicyFunction:
        """The optimal policy, which depends on the block only."""
        solved = self._solved_block()
        return lambda state, step: solved.action(state[: len(BLOCK)], step)

    def _solved_block(self) -> ExactSolution:
        return solve_exactly(replace(self, factors=0).model())

    def _factor(self, factor: int, name: str) -> Conditional:
        one = self.calm[factor][:, None] * np.array([1.0, self.resilience[factor]])
        table = np.stack([1 - one, one], axis=-1)  # (value, shock, next value)
        return Conditional(name, [Case(ANY, [name], table, drawn=["shock"])])


def exogenous_block(
    factors: int = 8,
    horizon: int | None = 10,
    shock: float = 0.3,
    discount: float = 1.0,
    seed: int = 0,
) -> FactoredMDP:
    """A pump and a tank among uncontrolled factors; see ExogenousBlock, which also knows V*."""
    return ExogenousBlock(factors, horizon, shock, discount, seed).model()


def exogenous_basis(model: FactoredMDP) -> Basis:
    """All indicators of the block (pump, tank), and one indicator for each factor."""
    check_model(model, "exogenous_basis")
    others = [variable.name for variable in model.variables if variable.name not in BLOCK]
    return Basis.blocks(model, [BLOCK, *((name,) for name in others)])


def _pump() -> Conditional:
    return Conditional(
        "pump",
        [
            Case(["repair"], [], [0.0, 1.0]),
            *(
                Case([action], ["pump"], [[1.0, 0.0], [1 - survives, survives]])
                for action, survives in PUMP_SURVIVES.items()
            ),
        ],
    )


def _tank() -> Conditional:
    idle = _levels(filled=0)
    return Conditional(
        "tank",
        [
            Case(["fill"], ["pump", "tank"], [idle, _levels(filled=1)], drawn=["shock"]),
            Case(ANY, ["tank"], idle, drawn=["shock"]),
        ],
    )


def _levels(filled: int) -> Floats:
    """P(next level | level, shock): axes level, shock, next level."""
    full = len(WORTH_OF_TANK) - 1
    table = np.zeros((full + 1, len(DEMAND), full + 1))
    for level in range(full + 1):
        for demanded in (0, 1):
            after = min(max(level + filled - demanded, 0), full)
            table[level, :, after] += [p if demanded else 1 - p for p in DEMAND]
    return table


register(
    Domain(
        "exogenous-block",
        exogenous_block,
        "a controllable block among uncontrolled, correlated factors; V* is linear in blocks",
        positional=1,
        start_value=realizable_start_value(ExogenousBlock),
        environment="fsmdp/ExogenousBlock-v0",
    )
)
