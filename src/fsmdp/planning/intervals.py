"""What is known of a model: intervals for mean rewards and for the next means of functions."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Protocol

from fsmdp.model.tables import Floats

OPTIMISTIC, POINT, PESSIMISTIC = "optimistic", "point", "pessimistic"
VIEWS = (OPTIMISTIC, POINT, PESSIMISTIC)


class Together(Protocol):
    """Sets of several functions' means at once, inside the product of their intervals."""

    def means(self, weights: Floats, low: Floats, high: Floats, sign: float) -> Floats:
        """The means in the set that are best for `sign` times the weights, (n_backup_entries,)."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Intervals:
    """Both ends of mean rewards, and of each basis function's mean after one step.

    Flat vectors in the layout of a `BellmanNetwork`. A known model has low = high, up to
    `rounding`; a learner's confidence set has intervals of some width.
    """

    rewards: Floats  # (n_reward_entries,) upper ends
    low: Floats  # (n_backup_entries,)
    high: Floats  # (n_backup_entries,)
    reward_low: Floats | None = None  # (n_reward_entries,) lower ends; None if they are the same
    rounding: Floats | None = None  # (n_backup_entries,) error of low and high, if any
    together: Together | None = None  # what means of several functions cannot be at once
    exact: bool = field(init=False)  # whether the ends of all functions' means agree

    def __post_init__(self) -> None:
        agree = self.low is self.high or bool((self.low == self.high).all())
        object.__setattr__(self, "exact", agree)

    def with_lowest_rewards(self) -> Intervals:
        """The same with rewards at their lower ends."""
        return self if self.reward_low is None else replace(self, rewards=self.reward_low)
