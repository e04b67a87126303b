"""Models whose sizes can be changed one at a time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from fsmdp.foundation.streams import Purpose, generator
from fsmdp.model.cases import ANY, Case
from fsmdp.model.conditionals import Conditional
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.rewards import Reward
from fsmdp.model.variables import Variable


def band_model(
    variables: int,
    *,
    size: int = 2,
    reach: int = 1,
    actions: int = 4,
    horizon: int = 5,
    seed: int = 0,
) -> FactoredMDP:
    """A chain in which each variable looks at itself and `reach` before it.

    Induced width with singles: `reach`. Action a > 0 draws variable a mod `variables` from a
    distribution of its own, whatever its parents; action 0 changes nothing. Rows are uniform on
    the simplex, the reward is the mean of all values, scaled to [0, 1].
    """
    rng = generator(seed, Purpose.REPRODUCTION, "models")
    names = [f"x{i}" for i in range(variables)]
    changed: dict[int, list[int]] = {}
    for action in range(1, actions):
        changed.setdefault(action % variables, []).append(action)
    conditionals = []
    for i, name in enumerate(names):
        parents = names[max(0, i - reach) : i + 1]
        rows = rng.dirichlet(np.ones(size), size=(size,) * len(parents))
        own = [
            Case([f"act-{action}"], [], rng.dirichlet(np.ones(size)))
            for action in changed.get(i, [])
        ]
        conditionals.append(Conditional(name, [*own, Case(ANY, parents, rows)]))
    values = np.linspace(0, 1, size) / variables
    return FactoredMDP(
        variables=[Variable(name, size) for name in names],
        actions=["nothing", *(f"act-{action}" for action in range(1, actions))],
        conditionals=conditionals,
        rewards=[
            Reward(f"of-{name}", [Case(ANY, [name], values)], low=0.0, high=1 / variables)
            for name in names
        ],
        horizon=horizon,
        initial=dict.fromkeys(names, 0),
    )


def fitted_exponent(x: ArrayLike, y: ArrayLike) -> float:
    """The b of y = a x^b, by least squares on logarithms."""
    slope, _ = np.polyfit(np.log(np.asarray(x, float)), np.log(np.asarray(y, float)), 1)
    return float(slope)


Result = TypeVar("Result")


def seconds_of(action: Callable[[], Result], repeats: int = 3) -> tuple[float, Result]:
    """Shortest of several runs, since other processes can only add time, and the last result."""
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        result = action()
        times.append(time.perf_counter() - began)
    return min(times), result
