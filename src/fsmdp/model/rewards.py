"""Rewards: a sum of local terms, each observed by itself."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fsmdp.errors import ModelError
from fsmdp.model.cases import Case, Cases, partition
from fsmdp.model.tables import Table, sorted_table
from fsmdp.model.variables import Variable, find_positions, is_number, positions_by_name

BOUND_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Reward:
    """One term of the reward: its mean by action group, bounds on the mean, normal noise sigma."""

    name: str
    cases: tuple[Case, ...]
    low: float
    high: float
    sigma: float

    def __init__(
        self,
        name: str,
        cases: Sequence[Case],
        low: float = 0.0,
        high: float = 1.0,
        sigma: float = 0.0,
    ) -> None:
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "cases", (cases,) if isinstance(cases, Case) else tuple(cases))
        for field, number in (("low", low), ("high", high), ("sigma", sigma)):
            if not is_number(number):
                raise ModelError(
                    f"reward {name!r}: {field} is {number!r}, expected a number; give one."
                )
            if not math.isfinite(number):
                raise ModelError(
                    f"reward {name!r}: {field} is {number}, expected a finite number; the bounds "
                    "of the mean must be known."
                )
            object.__setattr__(self, field, float(number))
        if self.low > self.high:
            raise ModelError(
                f"reward {name!r}: low {low} is above high {high}; expected low <= high, swap them."
            )
        if self.sigma < 0:
            raise ModelError(
                f"reward {name!r}: sigma is {sigma}, expected at least 0; 0 means no noise."
            )


def resolve_rewards(
    rewards: Sequence[Reward],
    variables: Sequence[Variable],
    action_positions: Mapping[str, int],
) -> tuple[Cases[Table], ...]:
    """The mean of each term as tables over positions, checked against its bounds."""
    positions = positions_by_name(variables)
    seen: set[str] = set()
    resolved = []
    for reward in rewards:
        where = f"reward {reward.name!r}"
        if reward.name in seen:
            raise ModelError(f"{where} is there twice; expected each name once, rename one.")
        seen.add(reward.name)
        cases = partition(reward.cases, action_positions, where)
        resolved.append(
            cases.map(
                lambda case, reward=reward: _resolve_mean(  # type: ignore[misc]
                    case, reward, variables, positions
                )
            )
        )
    return tuple(resolved)


def _resolve_mean(
    case: Case, reward: Reward, variables: Sequence[Variable], positions: Mapping[str, int]
) -> Table:
    where = f"reward {reward.name!r}, {case.label}"
    if case.drawn:
        raise ModelError(
            f"{where}: depends on values drawn in this step {list(case.drawn)}; expected current "
            "values only, give the mean over what is drawn instead."
        )
    parents = find_positions(case.parents, positions, f"{where}, parents")
    expected = tuple(variables[position].size for position in parents)
    if case.table.shape != expected:
        raise ModelError(
            f"{where}: expected a table of shape {expected}, the sizes of {list(case.parents)}, "
            f"found {case.table.shape}; reshape it."
        )
    lowest, highest = float(case.table.min()), float(case.table.max())
    slack = BOUND_TOLERANCE * max(1.0, abs(reward.low), abs(reward.high))
    if lowest < reward.low - slack or highest > reward.high + slack:
        raise ModelError(
            f"{where}: means run from {lowest:.6g} to {highest:.6g}, expected all within "
            f"[{reward.low:.6g}, {reward.high:.6g}]; widen low and high or correct the table."
        )
    return sorted_table(parents, case.table)
