"""Numbers as people write them: no powers of ten where a few digits do."""

from __future__ import annotations

import math

PLAIN = 1e15
"""Numbers below this are written out; above it digits are noise."""

COUNTED = 7
"""Powers of ten up to which states are counted one by one."""

MOST_PERCENT = 1000
"""More per cent of something say nothing but that it is near 0."""


def plain(value: float, digits: int) -> str:
    """A number to so many significant digits: 180 to two, never 1.8e+02."""
    text = f"{value:.{digits}g}"
    if "e+" in text and abs(value) < PLAIN:
        return f"{float(text):.0f}"
    return text


def with_error(mean: float, error: float) -> str:
    """A mean and its standard error, or half an interval: 117.4 ± 180."""
    return f"{plain(mean, 6)} ± {plain(error, 2)}"


def percent(fraction: float | None) -> str:
    """A relative gap; a dash where it says nothing."""
    if fraction is None or not math.isfinite(fraction) or 100 * fraction > MOST_PERCENT:
        return "-"
    return f"{100 * fraction:.1f} %" if fraction < 1 else f"{100 * fraction:.0f} %"


def count_of_states(log10: float) -> str:
    """A number of states from its logarithm: 256, or 10^18.1."""
    return f"{round(10**log10):,}" if log10 < COUNTED else f"10^{log10:.1f}"
