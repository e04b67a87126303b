"""Notes 3 and 6: deviations of counts, for a random number of visits and for several values."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import polars
from scipy.stats import binom, binomtest

from fsmdp.foundation.streams import Purpose, generator
from fsmdp.model.tables import Floats
from fsmdp.reproduction.claim import Finding

CHANCE = 0.05
CONFIDENCE = 0.99
STEPS_AN_EPISODE = 10
ONE, ALL, PAPER = "one number of visits", "all numbers of visits", "the paper's, by episodes"


def radii(visits: Floats) -> dict[str, Floats]:
    """Radii on the chance of one side of a coin, after each number of visits.

    An L1 ball of two values has twice this radius. The paper's has k^2 in its logarithm, k the
    episode, which is at least the number of visits over the steps of an episode.
    """
    episode = np.ceil(visits / STEPS_AN_EPISODE)
    ball = 4 * math.log(2)
    return {
        ONE: np.sqrt((ball - 2 * math.log(CHANCE)) / visits) / 2,
        PAPER: np.sqrt((ball - 2 * np.log(CHANCE / (2 * episode**2))) / visits) / 2,
        ALL: np.sqrt(np.log(2 * math.pi**2 * visits**2 / (6 * CHANCE)) / (2 * visits)),
    }


def coverage(most: int, runs: int, seed: int) -> polars.DataFrame:
    """The fraction of runs that have left a radius after some number of visits so far.

    Whoever stops visiting when the mean is off leaves a set that does not hold the truth, and
    the number of visits may depend on what was seen.
    """
    rng = generator(seed, Purpose.REPRODUCTION, "deviations")
    visits = np.arange(1, most + 1, dtype=np.float64)
    limits = radii(visits)
    first = {name: np.full(runs, most + 1) for name in limits}
    at_the_end = dict.fromkeys(limits, 0)
    for run in range(runs):
        deviation = np.abs(np.cumsum(rng.integers(2, size=most)) / visits - 0.5)
        for name, radius in limits.items():
            outside = deviation > radius
            at_the_end[name] += int(outside[-1])
            if outside.any():
                first[name][run] = int(outside.argmax()) + 1
    rows = []
    for name, left in first.items():
        failures = int((left <= most).sum())
        interval = binomtest(failures, runs).proportion_ci(CONFIDENCE)
        rows.append(
            {
                "radius": name,
                "visits": most,
                "runs": runs,
                "at_the_end": at_the_end[name] / runs,
                "at_some_time": failures / runs,
                "low": float(interval.low),
                "high": float(interval.high),
            }
        )
    return polars.DataFrame(rows)


def random_visits(table: polars.DataFrame) -> Finding:
    """Note 3: a radius for one number of visits is left too often when the number is random."""
    by_name = {row["radius"]: row for row in table.iter_rows(named=True)}
    one, every, paper = by_name[ONE], by_name[ALL], by_name[PAPER]
    return Finding(
        note=3,
        says="a deviation inequality for a fixed number of visits and a union over episodes cover "
        "the random number of visits at the start of an episode",
        truth="the union has to run over the numbers of visits",
        measured=f"a fair coin and chance {CHANCE:g}: a radius for one number of visits fails for "
        f"{one['at_the_end']:.1%} of {one['runs']:,} runs after {one['visits']:,} visits, but "
        f"for {one['at_some_time']:.1%} at some time (interval {one['low']:.1%} to "
        f"{one['high']:.1%}); a union over all numbers fails for {every['at_some_time']:.1%}, "
        f"and the paper's own radius, which is loose, for {paper['at_some_time']:.1%}",
        wrong=one["low"],
        wrong_above=CHANCE,
        remaining=every["low"],
        remaining_up_to=CHANCE,
    )


def osband_radius(sizes: Sequence[int], chances: Sequence[float]) -> Finding:
    """Note 6: squared radii of Osband and Van Roy over the paper's, times the visits."""
    ratios = {
        (size, chance): (2 * size * math.log(2 / chance))
        / (2 * size * math.log(2) - 2 * math.log(chance))
        for size in sizes
        for chance in chances
    }
    least = min(ratio for (size, _), ratio in ratios.items() if size > 1)
    for_one = max(abs(ratios[1, chance] - 1) for chance in chances)
    left = max(
        chance_of_leaving(visits, chance) / chance
        for visits in (10, 100, 1000)
        for chance in chances
    )
    return Finding(
        note=6,
        says="Osband and Van Roy's radius √(2 S log(2/δ')/n) is too tight, since "
        "exp(S log δ') is more than δ'",
        truth="exp(S log δ') is at most δ', so theirs is valid and looser; the paper's is better",
        measured=f"their squared radius is {least:.2f} to {max(ratios.values()):.2f} times the "
        f"paper's for S from 2 to {max(sizes)} and the same for S = 1 (to {for_one:.0e}); the "
        f"paper's is left with at most {left:.2f} of its chance by a coin, computed exactly",
        wrong=least,
        wrong_above=1.0,
        remaining=left,
        remaining_up_to=1.0,
    )


def chance_of_leaving(visits: int, chance: float) -> float:
    """Exact chance that a fair coin leaves the paper's ball after a number of visits."""
    radius = math.sqrt((4 * math.log(2) - 2 * math.log(chance)) / visits) / 2
    counts = np.arange(visits + 1)
    outside = np.abs(counts / visits - 0.5) >= radius
    return float(binom.pmf(counts[outside], visits, 0.5).sum())
