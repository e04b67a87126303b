"""A planning problem: what to plan in, and which states count how much."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from fsmdp.elimination.order import DEFAULT_LIMIT
from fsmdp.errors import ModelError
from fsmdp.model.basis import Basis
from fsmdp.model.checks import as_whole
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.tables import Floats
from fsmdp.planning.bellman import (
    OPTIMISTIC,
    VIEWS,
    BellmanNetwork,
    Intervals,
    Weights,
    network_of_model,
    state_means,
)

LARGEST_LIMIT = 2**33


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """The interval form that every planner takes; a known model has intervals of no width.

    `means` are the objective's means of the basis functions, `start` those at the start of an
    episode (for the bound), `uniform` those over all states (for stages that no state weighs).
    """

    network: BellmanNetwork
    intervals: Intervals = field(repr=False)
    means: Floats = field(repr=False)
    start: Floats = field(repr=False)
    uniform: Floats = field(repr=False)
    view: str = OPTIMISTIC
    seconds: float = 0.0

    def __post_init__(self) -> None:
        if self.view not in VIEWS:
            raise ModelError(f"view: expected one of {', '.join(VIEWS)}, found {self.view!r}.")


def problem_of_model(
    model: FactoredMDP,
    basis: Basis,
    weights: Weights = "initial",
    *,
    limit: int = DEFAULT_LIMIT,
    elimination_order: Sequence[str | int] | None = None,
    elimination: str = "auto",
) -> Problem:
    """The problem of a known model. A WidthError if its network is too wide to eliminate."""
    began = time.perf_counter()
    as_whole(limit, "limit", 1, LARGEST_LIMIT)
    network, intervals = network_of_model(
        model,
        basis,
        limit=limit,
        elimination_order=elimination_order,
        elimination=elimination,
    )
    bound = network.basis
    return Problem(
        network,
        intervals,
        state_means(weights, bound, model),
        state_means("initial", bound, model),
        state_means("uniform", bound, model),
        seconds=time.perf_counter() - began,
    )
