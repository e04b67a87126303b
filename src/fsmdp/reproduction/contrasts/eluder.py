"""Eluder dimension of the Q-functions of Proposition 1, from below."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import polars

from fsmdp.domains.proposition import RISKY_REWARDS, proposition_one
from fsmdp.model.basis import Basis
from fsmdp.model.tables import Floats
from fsmdp.model.variables import table_size
from fsmdp.report.charts import Line, Panel, Role
from fsmdp.reproduction.claim import GROWS, Contrast, Judged, Verdict, growth

EPSILON = 0.25
"""Of the independence; two members differ by 0.5 at a state where they differ."""

TABLE = "eluder"


def independent_length(n_points: int, difference: Callable[[int], Floats], epsilon: float) -> int:
    """How many of the first points are each epsilon-independent of those before it.

    Point k is, if two functions of the class differ by more than epsilon there while the root of
    the sum of their squared differences at the points before it is at most epsilon.
    `difference(k)` is that of two functions at points 0 .. k. The sequence ends with the first
    point for which its two functions do not show this: the count is a bound from below.
    Source: Russo and Van Roy (2013), Eluder dimension and the sample complexity of optimistic
    exploration.
    """
    for k in range(n_points):
        values = difference(k)
        if np.sqrt((values[:k] ** 2).sum()) > epsilon or abs(values[k]) <= epsilon:
            return k
    return n_points


def member_rewards(bits: int, seed: int) -> Floats:
    """Q*(s, risky) of a member: its reward, since V* = 0 wherever it leads."""
    model = proposition_one(bits, seed=seed)
    return np.asarray(model.reward_means[0].at(1).values.ravel())


def lower_bound(bits: int, seed: int) -> int:
    """Length of the sequence of all (state, risky), each with a member and its neighbour.

    The neighbour has the other reward at that state and the same everywhere else: it is a member
    too, for the family holds every choice of rewards.
    """
    rewards = member_rewards(bits, seed)
    other = sum(RISKY_REWARDS) - rewards

    def difference(k: int) -> Floats:
        neighbour = rewards.copy()
        neighbour[k] = other[k]
        return rewards[: k + 1] - neighbour[: k + 1]

    return independent_length(len(rewards), difference, EPSILON)


def measure(sizes: Sequence[int], seed: int) -> polars.DataFrame:
    """The bound, beside the cells that our own learner counts in."""
    return polars.DataFrame([_row(bits, seed) for bits in sizes])


def _row(bits: int, seed: int) -> dict[str, Any]:
    structure = proposition_one(bits, seed=seed).structure(Basis([]))
    scopes = [scope for term in structure.rewards for scope in term.parents]
    sizes = [variable.size for variable in structure.variables]
    return {
        "variables": bits,
        "eluder_at_least": lower_bound(bits, seed),
        "our_transition_cells": sum(
            structure.cells_of(number) for number in range(1, len(structure.basis))
        ),
        "our_reward_cells": sum(table_size(sizes[i] for i in scope) for scope in scopes),
    }


def judge(table: polars.DataFrame) -> Judged:
    """Holds if the dimension grows and our cells do not; with a correction if they do as well."""
    found, ours = growth(table, "eluder_at_least"), growth(table, "our_reward_cells")
    last = table.sort("variables").row(-1, named=True)
    measured = (
        f"at least {last['eluder_at_least']} with {last['variables']} bits, {found:.2f} times as "
        f"many with each; our learner has {last['our_reward_cells']} reward cells there, "
        f"{ours:.2f} times as many with each, and {last['our_transition_cells']} of transitions"
    )
    if found < GROWS:
        return Judged(Verdict.FAILS, measured)
    return Judged(Verdict.CORRECTED if ours >= GROWS else Verdict.HOLDS, measured)


def panel(table: polars.DataFrame) -> Panel:
    """Both, against the number of bits."""
    x = table["variables"].to_numpy().astype(float)
    dimension, cells = (
        table[name].to_numpy().astype(float) for name in ("eluder_at_least", "our_reward_cells")
    )
    return Panel(
        "Eluder dimension",
        (
            Line("Proposition 1, at least", x, dimension, "proposition"),
            Line("reward cells of our learner", x, cells, None, Role.REFERENCE),
        ),
        log=True,
    )


CONTRAST = Contrast(
    "Eluder dimension",
    "general Q-functions, with regret that grows with their Eluder dimension",
    TABLE,
    judge,
    panel,
    "Eluder dimension of Proposition 1's Q-functions, from below, by the number of bits, and the "
    "number of reward cells of our own learner.",
)
