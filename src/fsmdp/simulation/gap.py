"""The certified gap: what no policy can exceed, against what the plan's policy earns."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from warnings import warn

import numpy as np

from fsmdp.bounds.gap import RelativeGap
from fsmdp.bounds.plan import Plan
from fsmdp.errors import ModelError, PoorPolicyWarning
from fsmdp.foundation.checks import as_number, plural, show
from fsmdp.foundation.numbers import facts_table, upper, with_error
from fsmdp.foundation.progress import Report
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.structure import sum_of_discounts
from fsmdp.model.tables import Floats
from fsmdp.policies.resolve import Policy, idle_policy
from fsmdp.simulation.rollout import Runs, rollout

LARGEST_BET = 0.75
STEPS = 60
"""Halvings of the interval: more digits than a float has."""


def lower_limit(samples: Floats, low: float, high: float, level: float) -> float:
    """A number below the mean of the samples' distribution with probability at least `level`.

    A gambler with capital 1 bets, before each sample x (moved to [0, 1]), that the mean is above m:

        K_t(m) = product of 1 + bet_i(m) (x_i - m),  0 <= bet_i(m) <= 3/4 / m.

    If the mean is m or below, K is a supermartingale, so that by Ville's inequality it ever
    reaches 1 / (1 - level) with probability 1 - level at most. K falls with m: the limit is the
    largest m at which it got there. Bets depend on earlier samples only.
    Source: Waudby-Smith and Ramdas, Estimating means of bounded random variables by betting (2024),
    with their predictable plug-in bets.
    """
    if high <= low:
        return low
    x = (np.asarray(samples, dtype=np.float64) - low) / (high - low)
    goal = math.log(1 / (1 - level))
    bets = _bets(x, goal)
    outside, inside = 0.0, 1.0
    for _ in range(STEPS):
        m = (outside + inside) / 2
        capital = np.cumsum(np.log1p(np.minimum(bets, LARGEST_BET / m) * (x - m)))
        if capital.max() >= goal:
            outside = m
        else:
            inside = m
    return low + (high - low) * outside


def _bets(x: Floats, goal: float) -> Floats:
    """sqrt(2 log(1 / (1 - level)) / (n variance)), by the samples before each."""
    counts = np.arange(1, len(x) + 1)
    means = (0.5 + np.cumsum(x)) / (counts + 1)
    variances = (0.25 + np.cumsum((x - means) ** 2)) / (counts + 1)
    before = np.concatenate([[0.25], variances[:-1]])
    return np.asarray(np.sqrt(2 * goal / (len(x) * before)))


LEVEL = 0.99

CLEARLY = 1.645
"""Standard errors by which a policy must be ahead of another to be called better."""


@dataclass(frozen=True, slots=True, eq=False)
class Gap:
    """An upper bound on the best return, and what is known of the policy's.

    `lower_limit` is below the policy's mean return with probability at least `level`; it is None
    where rewards are noisy without bounds, since nothing can be promised then.
    """

    upper_bound: float
    runs: Runs
    lower_limit: float | None = None
    level: float = LEVEL
    baselines: Mapping[str, Runs] = field(default_factory=dict)
    scale: float = 0.0
    """Size of the largest return that there can be, which rounding is relative to."""
    span: float = 0.0
    """By how much returns can differ."""

    @property
    def gap(self) -> float:
        """The bound less the estimated mean: how far the policy is from the best, at most, if the
        estimate were the truth.

        Never below 0: a mean above the bound is the error of the mean.
        """
        return max(0.0, self.upper_bound - self.runs.mean)

    @property
    def relative(self) -> RelativeGap:
        """The gap as a fraction of the bound; infinite if the bound is zero and the gap is not."""
        runs = self.runs
        judged = runs.mean, runs.standard_error, self.lower_limit, self.level
        return RelativeGap(self.upper_bound, *judged, scale=self.scale, span=self.span)

    @property
    def relative_limit(self) -> float | None:
        """The policy loses at most this fraction of the best, with probability `level`."""
        return self.relative.relative_limit

    @property
    def no_better_than(self) -> tuple[str, ...]:
        """Baselines that the policy is not clearly ahead of."""
        return tuple(name for name, runs in self.baselines.items() if not self._is_ahead_of(runs))

    def _is_ahead_of(self, other: Runs) -> bool:
        error = float(np.hypot(self.runs.standard_error, other.standard_error))
        return self.runs.mean - other.mean > CLEARLY * error

    def statement(self) -> str:
        """What was established, in a sentence."""
        return self.relative.statement()

    def _repr_html_(self) -> str:
        return facts_table(
            "Gap",
            (
                ("no policy earns more than", upper(self.upper_bound, 6, self.scale)),
                ("policy earns", f"{self._earned(self.runs)} (standard error)"),
                *((f"{name} earns", self._earned(runs)) for name, runs in self.baselines.items()),
                ("established", self.statement()),
            ),
        )

    def __repr__(self) -> str:
        return (
            f"Gap(policy earns {self._earned(self.runs)}, no policy more than "
            f"{upper(self.upper_bound, 6, self.scale)}; {self.statement()})"
        )

    def _earned(self, runs: Runs) -> str:
        return with_error(runs.mean, runs.standard_error, self.scale)


def certified_gap(
    model: FactoredMDP,
    plan: Plan,
    episodes: int = 1000,
    seed: int = 0,
    progress: bool | Report | None = None,
    *,
    level: float = LEVEL,
    baselines: bool = True,
    policy: Policy | None = None,
) -> Gap:
    """Roll the plan's policy out and set its mean against the plan's certified bound.

    With `policy`, another one is rolled out instead: `plan.online(model)`, or one of your own.

    The policy's mean has a lower limit that holds with probability `level`. With `baselines`, doing
    nothing and acting at random are rolled out as well, and a `PoorPolicyWarning` says so if the
    policy is not clearly better than both.
    """
    if not 0 < as_number(level, "level", "give a probability such as 0.99") < 1:
        raise ModelError(f"level: expected a probability between 0 and 1, found {level!r}.")
    if not isinstance(plan, Plan):
        raise ModelError(
            f"certified_gap: expected a plan, which has a certified bound, found {show(plan)}; use "
            "fsmdp.plan(model), and policy= for what else is to be followed."
        )
    followed = plan if policy is None else policy
    runs = rollout(model, followed, episodes, seed, progress=progress)
    others: dict[str, Runs] = {}
    if baselines:
        others = {
            "doing nothing": rollout(model, idle_policy(model), episodes, seed),
            "acting at random": rollout(model, "random", episodes, seed),
        }
    limit = limit_of_mean(model, runs, level)
    scales = model.largest_size_of_return, model.span_of_return
    gap = Gap(plan.upper_bound, runs, limit, level, others, *scales)
    if gap.no_better_than:
        warn(poor_policy_text(gap), PoorPolicyWarning, stacklevel=2)
    return gap


def poor_policy_text(gap: Gap) -> str:
    """Which baselines the policy is no better than, with the numbers."""
    found = "; ".join(
        f"{name} {with_error(gap.baselines[name].mean, gap.baselines[name].standard_error)}"
        for name in gap.no_better_than
    )
    return (
        f"the policy earns {with_error(gap.runs.mean, gap.runs.standard_error)}, which "
        f"{plural(len(gap.runs.returns), 'episode')} cannot tell to be better than {found}; try "
        "another basis (Basis.pairs) or method."
    )


def limit_of_mean(model: FactoredMDP, runs: Runs, level: float) -> float | None:
    """A lower limit for the mean return of whole episodes, which are bounded without noise."""
    if any(reward.sigma > 0 for reward in model.rewards):
        return None
    low = sum(min(float(t.values.min()) for t in means) for means in model.reward_means)
    high = sum(max(float(t.values.max()) for t in means) for means in model.reward_means)
    if model.terminal:  # an episode that ends early earns nothing in the steps that are left
        low, high = min(low, 0.0), max(high, 0.0)
    worth = sum_of_discounts(runs.steps, model.discount)
    limit = lower_limit(runs.returns, low * worth, high * worth, level)
    if model.horizon is None:  # what comes after the last step that was simulated
        limit += model.discount**runs.steps * low / (1 - model.discount)
    return limit
