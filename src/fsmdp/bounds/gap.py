"""How far a policy can be from the best: a number, and the statement that it stands for."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from fsmdp.foundation.numbers import (
    facts_table,
    lower,
    percent,
    percent_at_most,
    plain,
    upper,
    with_error,
)

ROUNDING, ROUNDING_OF_SUMS = 1e-9, 1e-13
"""Differences that say nothing: relative to the span of returns, and to the largest in size."""

SOLVED = 1e-6
"""A policy that is proved to earn the bound less this fraction of the span is called optimal."""

WORTH_SAYING = 10.0
"""A relative gap above this says nothing, but that the bound is near 0."""


class RelativeGap(float):
    """(upper bound - what the policy earns) / |upper bound|, and what that rests on.

    As a number it compares the bound with `mean`, which is an estimate unless `exact`. What is
    established is `relative_limit`, and in words `statement()`: `lower_limit` is below the policy's
    mean with probability at least `level`; it is None where nothing can be promised.
    """

    __slots__ = (
        "exact",
        "level",
        "lower_limit",
        "mean",
        "proof",
        "scale",
        "span",
        "standard_error",
        "upper_bound",
    )
    upper_bound: float
    mean: float
    standard_error: float
    lower_limit: float | None
    level: float
    exact: bool
    proof: str
    scale: float
    span: float

    def __new__(
        cls,
        upper_bound: float,
        mean: float,
        standard_error: float = 0.0,
        lower_limit: float | None = None,
        level: float = 1.0,
        exact: bool = False,
        proof: str = "elimination",
        scale: float = 0.0,
        span: float = 0.0,
    ) -> RelativeGap:
        """Of a bound and what is known of the policy."""
        self = super().__new__(cls, relative_gap(upper_bound, mean, scale, span))
        given = upper_bound, mean, standard_error, lower_limit, level, exact, proof, scale, span
        for name, value in zip(cls.__annotations__, given, strict=True):
            setattr(self, name, value)
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, name) for name in type(self).__annotations__)

    def _repr_html_(self) -> str:
        return facts_table(
            "Relative gap",
            (
                ("gap", percent(self)),
                ("what is established", self.statement()),
                ("bound proved by", self.proof),
            ),
        )

    @property
    def relative_limit(self) -> float | None:
        """The policy loses at most this fraction of the best, with probability `level`.

        None where that cannot be said: no lower limit, or zero lies between it and the bound.
        """
        if self.lower_limit is None:
            return None
        gap = max(0.0, self.upper_bound - self.lower_limit)
        if gap == 0.0:
            return 0.0
        if self.upper_bound == 0.0 or self.lower_limit < 0.0 < self.upper_bound:
            return None
        return gap / abs(self.upper_bound)

    @property
    def proved(self) -> bool:
        """Whether the lower limit is certain, by exact values or a search, and no estimate."""
        return self.lower_limit is not None and self.level == 1

    @property
    def attained(self) -> bool:
        """Whether the policy is proved to earn the bound, up to rounding."""
        return self.proved and self._left() == 0

    @property
    def optimal(self) -> bool:
        """Whether the policy is proved to earn the bound, up to `SOLVED` spans of returns."""
        return self.proved and self._left() <= SOLVED * (self.span or abs(self.upper_bound))

    def _left(self) -> float:
        """What lies between the bound and the lower limit, beside rounding."""
        assert self.lower_limit is not None
        gap = max(0.0, self.upper_bound - self.lower_limit)
        is_rounding = gap <= noise(self.upper_bound, self.lower_limit, self.scale, self.span)
        return 0.0 if is_rounding else gap

    def statement(self) -> str:
        """What is established of the policy, in a sentence."""
        if self.optimal:
            loss = "rounding"
            if not self.attained:
                limit = self.relative_limit
                loss = upper(self._left(), 2) if limit is None else percent_at_most(limit)
            return f"the policy is optimal up to {loss}, by {self.proof}"
        if self.lower_limit is None:
            return "nothing is promised of the policy's mean"
        if not math.isfinite(self.upper_bound - self.mean):
            return "nothing is established: the bound or the policy's mean is not finite"
        sure = f"with probability at least {plain(100 * self.level, 4)} %"
        earns = f"at least {lower(self.lower_limit, 6, self.scale)}"
        if self.exact:
            earns = f"{plain(self.mean, 6, self.scale)} exactly"
        elif self.proved:
            earns = f"{earns}, by {self.proof}"
        else:
            earns = f"{earns} {sure}"
        limit = self.relative_limit
        if limit is None or limit >= 1:
            most = f"no policy more than {upper(self.upper_bound, 6, self.scale)}"
            return f"the policy earns {earns}, {most}"
        if self.proved:
            return f"the policy earns {earns}: within {percent_at_most(limit)} of the best"
        return f"{sure} the policy is within {percent_at_most(limit)} of the best"


def relative_gap(upper_bound: float, mean: float, scale: float = 0.0, span: float = 0.0) -> float:
    """How far a mean is below a bound, as a fraction of it; never below 0, infinite if it is 0."""
    gap = max(0.0, upper_bound - mean)
    if gap <= noise(upper_bound, mean, scale, span):
        return 0.0
    return gap / abs(upper_bound) if upper_bound else math.inf


def noise(upper_bound: float, mean: float, scale: float, span: float) -> float:
    """The largest difference between two returns that says nothing.

    `scale` is the size of the largest return that there can be, and `span` how far returns can be
    apart, where they are known; otherwise the two numbers stand in.
    """
    sizes = max(abs(upper_bound), abs(mean))
    return max(ROUNDING * (span or sizes), ROUNDING_OF_SUMS * scale)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A policy that was tried: its mean return in episodes common to all candidates.

    The best of several such means flatters the one that has it: the incumbent's own is taken from
    fresh episodes.
    """

    name: str
    mean: float
    standard_error: float | None  # None: of a single episode
    episodes: int
    seconds: float  # when it was found


@dataclass(frozen=True, slots=True)
class Incumbent:
    """What the plan's policy earns, in episodes that it was not chosen by, or exactly.

    `lower_limit` is below the policy's mean return with probability at least `level`, for certain
    if that is 1; None where rewards are noisy without bounds, since nothing can be promised then.
    `exact`: the mean is known up to rounding. A search proves a lower limit alone, which stands
    for the mean then.
    """

    name: str
    mean: float
    standard_error: float
    episodes: int
    lower_limit: float | None
    level: float
    exact: bool = False
    scale: float = 0.0
    """Size of the largest return that there can be, which rounding is relative to."""
    span: float = 0.0
    """By how much returns can differ, which "optimal" is relative to."""

    def reported(self) -> Incumbent:
        """The same as a file reports it: an estimate, of which nothing is promised."""
        return replace(self, lower_limit=None, exact=False)

    def __str__(self) -> str:
        if self.exact:
            return f"{plain(self.mean, 6, self.scale)}, exactly"
        if self.level == 1 and self.lower_limit is not None:
            return f"at least {lower(self.lower_limit, 6, self.scale)}"
        return with_error(self.mean, self.standard_error, self.scale)


@dataclass(frozen=True, slots=True)
class Line:
    """A moment of the solver's log: what was just tried, and incumbent and bound then."""

    seconds: float
    what: str
    incumbent: float | None
    standard_error: float | None
    upper_bound: float
    gap: float | None
    """(upper bound - incumbent) / |upper bound|; None as long as there is no incumbent."""
    improved: str = ""
    """What this line improved: "policy", "bound", both, or nothing."""

    @property
    def attained(self) -> bool:
        """Whether the incumbent earns the bound, up to rounding, in every episode or exactly."""
        return self.standard_error == 0 and self.gap == 0
