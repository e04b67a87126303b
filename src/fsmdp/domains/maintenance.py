"""Maintenance: units that stand in for one another, and a shock that takes all of them at once."""

import numpy as np

from fsmdp.domains.registry import Domain, check_probability, check_whole, register
from fsmdp.errors import ModelError
from fsmdp.foundation.checks import as_number
from fsmdp.model.cases import ANY, Case
from fsmdp.model.conditionals import Conditional
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.rewards import Reward
from fsmdp.model.variables import Variable

MOST_UNITS = 16  # the reward depends on all of them


def maintenance(
    units: int = 2,
    horizon: int | None = 10,
    shock: float = 0.2,
    alone: float = 0.02,
    cost: float = 0.09,
    discount: float = 1.0,
) -> FactoredMDP:
    """Redundant units with a common cause of failure.

    State: `failed-0`, ..., in {0, 1}; all start at 0. Action `service` has every unit working in
    the next step. Action `run` draws a latent `shock` for all units together: a working unit fails
    with probability 1 in a shock and `alone` otherwise, a failed one stays failed. So
        P(both fail | run) = shock + (1 - shock) alone^2,
    where units that failed independently, each as often, would do so with the square of
    shock + (1 - shock) alone. Rewards: 1 while some unit works, -`cost` for `service`.

    With two units V* is linear in the constant, both variables and their product. By default the
    best is to service at every step but the last, while independent units had better run until
    one has failed.
    Cost: 2^units numbers.
    Source: the common-cause failures of reliability engineering (Fleming 1975).
    """
    check_whole("maintenance", "units", units, 1, MOST_UNITS)
    for name, value in (("shock", shock), ("alone", alone)):
        check_probability("maintenance", name, value)
    cost = as_number(cost, "maintenance, cost", "0 means free")
    if cost < 0:
        raise ModelError(f"maintenance: cost is {cost:g}, expected at least 0; 0 means free.")
    names = [f"failed-{unit}" for unit in range(units)]
    works = np.ones((2,) * units)
    works[(1,) * units] = 0.0
    return FactoredMDP(
        variables=[Variable(name, 2) for name in names],
        actions=["run", "service"],
        latents=[Variable("shock", 2)],
        conditionals=[
            Conditional("shock", [Case(ANY, [], [1 - shock, shock])]),
            *(_unit(name, alone) for name in names),
        ],
        rewards=[
            Reward("works", [Case(ANY, names, works)]),
            Reward(
                "service",
                [Case(["service"], [], 0 - cost), Case(ANY, [], 0.0)],
                low=0 - cost,
                high=0.0,
            ),
        ],
        horizon=horizon,
        discount=discount,
    )


def _unit(name: str, alone: float) -> Conditional:
    # (value, shock, next value)
    table = [[[1 - alone, alone], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]]
    return Conditional(
        name,
        [Case(["service"], [], [1.0, 0.0]), Case(ANY, [name], table, drawn=["shock"])],
    )


register(
    Domain(
        "maintenance",
        maintenance,
        "redundant units that one shock takes all at once",
        positional=1,
        environment="fsmdp/Maintenance-v0",
    )
)
