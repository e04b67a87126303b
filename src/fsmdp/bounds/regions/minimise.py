"""The least bound over prices and regions: subgradient steps, larger regions, more steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from fsmdp.bounds.regions.choose import cover
from fsmdp.bounds.regions.layout import Parts
from fsmdp.bounds.regions.prices import PricedRegions
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.tables import Integers

LEVELS = tuple(
    (2.0**inner, 2.0**most) for inner, most in ((4, 9), (6, 11), (8, 13), (10, 15), (11, 17))
)
"""Assignments of an interior, and of all axes times cases, from the first regions to the last."""

PHASE_STEPS = 200
"""Iterations in which the size of a step falls linearly to zero; short phases gain less."""

TRIED_SHARE = 5
"""The first size of a step is chosen from so many times fewer iterations."""

CERTIFIED_STEPS = 50
"""Iterations after which a better bound is certified, without waiting for the end of the phase."""

LADDER = 3.0
"""Ratio of two sizes of a step that are tried."""

LARGEST_LADDER, LEAST_LADDER = 1, -6
"""Powers of it, times the largest span of a reward term, that are tried."""

FIRST_PHASE, NEXT_PHASE = 0.5, 0.7
"""Size of the first step of a phase: of the one that was best in few iterations, and of the last
phase's."""

STALLED = 0.002
"""Of all that was gained: after two such phases of the largest regions it ends."""

MEAN_DECAY, SQUARE_DECAY = 0.9, 0.99
"""Of Adam's moving averages of subgradients and of their squares."""

SMALLEST_SCALE = 1e-8
"""Added to the root of the mean square, as usual with Adam."""


@dataclass(frozen=True, slots=True, eq=False)
class RegionBound:
    """A certified bound: the regions, and their prices as whole numbers of a unit."""

    upper_bound: float
    regions: PricedRegions
    prices: Integers  # (entries, steps)
    unit: float


def descend(
    regions: PricedRegions, step: float, iterations: int, check: Callable[[], None]
) -> Iterator[float]:
    """Subgradient steps with moving averages (Adam), of falling size; yields the least bound.

    `regions.theta` are the prices of the least bound. The first steps may go up.
    """
    theta, best = regions.theta, np.inf
    mean, square = np.zeros_like(theta), np.zeros_like(theta)
    for number in range(1, iterations + 1):
        check()
        value, slope = regions.evaluate(theta)
        if value < best:
            best, regions.theta = value, theta
        yield best
        mean = MEAN_DECAY * mean + (1 - MEAN_DECAY) * slope
        square = SQUARE_DECAY * square + (1 - SQUARE_DECAY) * slope * slope
        scale = np.sqrt(square / (1 - SQUARE_DECAY**number)) + SMALLEST_SCALE
        size = step * (1 - (number - 1) / iterations)
        theta = regions.project(theta - size * mean / (1 - MEAN_DECAY**number) / scale)


class Minimisation:
    """Regions and prices at present, and the least bound that was certified.

    Regions grow no further than to `most_work` additions of an evaluation, so that there are many
    evaluations; a phase has `iterations` of them.
    """

    def __init__(
        self,
        model: FactoredMDP,
        check: Callable[[], None],
        most_work: float,
        iterations: int = PHASE_STEPS,
    ) -> None:
        self._check, self._most_work, self._iterations = check, most_work, iterations
        parts = Parts(model)
        self.regions = PricedRegions(parts, cover(parts, *LEVELS[0]), check)
        self.least = np.inf
        self._step = 0.0

    def run(self) -> Iterator[RegionBound | None]:
        """Certified bounds, each below the one before; None at the end of a phase.

        Ends when larger regions and more steps gain next to nothing.
        """
        yield from self._certified()
        yield from self._first_step()
        step = FIRST_PHASE * self._step
        first, level, stalled = self.least, 0, 0
        while stalled < 2:
            last = level + 1 == len(LEVELS)
            if not last:
                larger = self.regions.grown(*LEVELS[level + 1], self._most_work)
                if larger is None:
                    last = True
                else:
                    self.regions, level = larger, level + 1
            before = self.least
            yield from self._phase(step)
            yield None
            stalled += last and before - self.least <= STALLED * (first - self.least)
            step *= NEXT_PHASE

    def _first_step(self) -> Iterator[RegionBound]:
        """Find the size of a step that lowers the bound most in few iterations; keep its prices."""
        regions, iterations = self.regions, self._iterations // TRIED_SHARE
        spans = (
            max(float(table.values.max()) for table in means)
            - min(float(table.values.min()) for table in means)
            for means in regions.parts.model.reward_means
        )
        span = max(spans, default=0.0)
        nothing = prices = regions.theta
        best, since = np.inf, 0
        for power in range(LARGEST_LADDER, LEAST_LADDER - 1, -1):
            regions.theta, step = nothing, span * LADDER**power
            *_, value = descend(regions, step, iterations, self._check)
            if value < best:
                best, prices, self._step, since = value, regions.theta, step, 0
                yield from self._certified()
            elif value > best:  # equal: nothing was gained yet, since the step is too long
                since += 1
                if since == 2:
                    break
        regions.theta = prices

    def _phase(self, step: float) -> Iterator[RegionBound]:
        steps = descend(self.regions, step, self._iterations, self._check)
        for number, value in enumerate(steps, start=1):
            ends = number == self._iterations
            if (ends or number % CERTIFIED_STEPS == 0) and value < self.least:
                yield from self._certified()

    def _certified(self) -> Iterator[RegionBound]:
        bound, prices, unit = self.regions.certified(self.regions.theta)
        if bound < self.least:
            self.least = bound
            yield RegionBound(bound, self.regions, prices, unit)
