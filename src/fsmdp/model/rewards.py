"""Rewards: a sum of local terms, each observed by itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import as_name, as_number, show
from fsmdp.foundation.equality import Compared
from fsmdp.foundation.numbers import plain
from fsmdp.model.cases import ANY, Case, Cases, FunctionCase, as_cases, filled_cases, partition
from fsmdp.model.functions import as_function
from fsmdp.model.tables import Table, sorted_table
from fsmdp.model.variables import Variable, find_positions, positions_by_name

BOUND_TOLERANCE = 1e-9
"""Means that miss a bound by less, relative to the larger bound, widen it: they were rounded."""


@dataclass(frozen=True, slots=True, eq=False)
class Reward(Compared):
    """One term of the reward: its mean by action group, bounds on the mean, normal noise sigma.

    A bound that is None is the smallest or the largest mean.
    """

    name: str
    cases: tuple[Case, ...]
    low: float
    high: float
    sigma: float

    def __init__(
        self,
        name: str,
        cases: Case | Sequence[Case],
        low: float | None = 0.0,
        high: float | None = 1.0,
        sigma: float = 0.0,
    ) -> None:
        object.__setattr__(self, "name", as_name(name, "reward"))
        object.__setattr__(self, "cases", as_cases(cases, self.label))
        remedy = "the bounds and the noise of the mean must be known"
        for field, number in (("low", low), ("high", high), ("sigma", sigma)):
            if number is None:
                number = self._extreme(field)
            else:
                number = as_number(number, f"{self.label}: {field}", remedy)
            object.__setattr__(self, field, number)
        if self.low > self.high:
            raise ModelError(
                f"{self.label}: low {show(low)} is above high {show(high)}; expected low <= high, "
                "swap them."
            )
        if self.sigma < 0:
            raise ModelError(
                f"{self.label}: sigma is {show(sigma)}, expected at least 0; 0 means no noise."
            )
        self._widen()

    @staticmethod
    def from_function(
        name: str,
        parents: Sequence[str | Variable] | str | Variable = (),
        mean: Callable[..., object] | None = None,
        low: float | None = None,
        high: float | None = None,
        sigma: float = 0.0,
    ) -> Reward:
        """A term that is the same under all listed actions, from a function of values.

        `mean` is called with a value (or label) for each parent. Bounds that are not given are its
        smallest and largest values. Where listed actions differ, write a `Case.from_function` for
        each group of them.
        """
        function = as_function(mean, f"reward {show(name)}, mean")
        return Reward(name, Case.from_function(ANY, parents, function), low, high, sigma)

    def filled(self, known: Mapping[str, Variable]) -> Reward:
        """The term with its tables: itself, unless functions are to fill some."""
        cases = filled_cases(self.cases, known, (), self.label)
        if cases is self.cases:
            return self
        low, high = (bound if math.isfinite(bound) else None for bound in (self.low, self.high))
        return Reward(self.name, cases, low, high, self.sigma)

    def _extreme(self, field: str) -> float:
        """The smallest or largest mean; not finite while functions have to be called for it."""
        if field == "sigma" or not (self.cases and all(case.table.size for case in self.cases)):
            if field != "sigma" and any(isinstance(case, FunctionCase) for case in self.cases):
                return -math.inf if field == "low" else math.inf
            raise ModelError(
                f"{self.label}: {field} is None, expected a number, since there is no table to "
                "take it from; give it."
            )
        if field == "low":
            return min(float(case.table.min()) for case in self.cases)
        return max(float(case.table.max()) for case in self.cases)

    def _widen(self) -> None:
        """Move bounds to means that rounding has put a little beyond them."""
        slack = BOUND_TOLERANCE * max(abs(self.low), abs(self.high))
        tables = [case.table for case in self.cases if case.table.size]
        lowest = min((float(table.min()) for table in tables), default=self.low)
        highest = max((float(table.max()) for table in tables), default=self.high)
        if self.low - slack <= lowest < self.low:
            object.__setattr__(self, "low", lowest)
        if self.high < highest <= self.high + slack:
            object.__setattr__(self, "high", highest)

    @property
    def label(self) -> str:
        """How error messages name this term."""
        return f"reward {show(self.name)}"


def check_reward_names(rewards: Sequence[Reward]) -> None:
    """Refuse two terms of one name."""
    seen: set[str] = set()
    for reward in rewards:
        if reward.name in seen:
            raise ModelError(f"{reward.label} appears twice; expected each name once, rename one.")
        seen.add(reward.name)


def resolve_rewards(
    rewards: Sequence[Reward],
    variables: Sequence[Variable],
    action_positions: Mapping[str, int],
) -> tuple[Cases[Table], ...]:
    """The mean of each term as tables over positions, checked against its bounds."""
    check_reward_names(rewards)
    positions = positions_by_name(variables)
    resolved = []
    for reward in rewards:
        cases = partition(reward.cases, action_positions, reward.label)
        # Every case is checked, even one for ANY action where no action is left.
        means = {case: resolve_mean(case, reward, variables, positions) for case in reward.cases}
        resolved.append(cases.map(means.__getitem__))
    return tuple(resolved)


def find_parents(case: Case, positions: Mapping[str, int], where: str) -> tuple[int, ...]:
    """Positions of a case's parents, refusing values drawn in this step."""
    if case.drawn:
        raise ModelError(
            f"{where}: depends on values drawn in this step {show(list(case.drawn))}; expected "
            "current values only (the mean, or the parents, over whatever is drawn)."
        )
    return find_positions(case.parents, positions, f"{where}, parents")


def parents_of_table(
    case: Case, variables: Sequence[Variable], positions: Mapping[str, int], where: str
) -> tuple[int, ...]:
    """Positions of the parents of a case over current values, refusing a table of another shape."""
    parents = find_parents(case, positions, where)
    expected = tuple(variables[position].size for position in parents)
    if case.table.shape != expected:
        found = show(case.table.shape) if case.table.size else "no table"
        raise ModelError(
            f"{where}: expected a table of shape {show(expected)}, the sizes of "
            f"{show(list(case.parents))}, found {found}; reshape it."
        )
    return parents


def resolve_mean(
    case: Case, reward: Reward, variables: Sequence[Variable], positions: Mapping[str, int]
) -> Table:
    """The mean of a term in one action group, checked against its bounds."""
    where = f"{reward.label}, {case.label}"
    parents = parents_of_table(case, variables, positions, where)
    lowest, highest = float(case.table.min()), float(case.table.max())
    if lowest < reward.low or highest > reward.high:
        raise ModelError(
            f"{where}: means run from {plain(lowest, 6)} to {plain(highest, 6)}, expected all "
            f"within [{plain(reward.low, 6)}, {plain(reward.high, 6)}]; widen low and high or "
            "correct the table."
        )
    return sorted_table(parents, case.table)
