"""What is known of a plan's policy, of the candidates that it was chosen from, and how it came."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fsmdp.foundation.numbers import lower, plain, with_error


@dataclass(frozen=True, slots=True)
class Candidate:
    """A policy that was tried: its mean return in episodes that all candidates met.

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
    """A moment of the solver's log: what was just tried, and what was in hand then."""

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
