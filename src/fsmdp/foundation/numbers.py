"""Numbers as people write them: no powers of ten where a few digits do."""

import math
from collections.abc import Iterable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from html import escape

TINY, PLAIN = 1e-6, 1e15
"""Numbers of a size between these are written out; beyond them zeros are not counted by eye."""

DUST = 1e-12
"""What is smaller than this, relative to what was added up, is rounding, and written as 0."""

UNDERFLOW = 1e-250
"""What is smaller than this is an allowance for products that vanish, and written as 0."""

NOISE = 1e-9
"""What a limit may exceed its shown digits by, relative to it."""

ROUNDING = {0: ROUND_HALF_EVEN, 1: ROUND_CEILING, -1: ROUND_FLOOR}
"""How to round: to the nearest, up, or down."""

PLACES = 12
"""Places behind the point that a mean is written to, at most."""

WITHOUT_ERROR = 4
"""Figures of a mean whose error is not known."""

COUNTED = 7
"""Powers of ten up to which states are counted one by one."""

MOST_PERCENT = 1000
"""More per cent of something say nothing but that it is near 0."""

LEAST_PERCENT = 1e-4
"""Less per cent of something say nothing but that it is as good as 0."""


def plain(value: float, digits: int, scale: float = 0.0) -> str:
    """A number to so many significant digits, and to its last whole one: 180.4 to two is 180.

    `scale` is the size of what was added up to it, where that is known: what is rounding beside it
    is written as 0.
    """
    return _rounded(value, digits, scale, 0)


def upper(value: float, digits: int, scale: float = 0.0) -> str:
    """A limit from above, rounded up, so that it holds as it is written: 8.125002 is 8.12501.

    Up to a relative `NOISE`, and a thousandth of the last digit: 8.125 and 1e-12 of rounding is
    written as 8.125, not as the next number of so many digits.
    """
    return _rounded(value, digits, scale, 1)


def lower(value: float, digits: int, scale: float = 0.0) -> str:
    """A limit from below, rounded down; see `upper`."""
    return _rounded(value, digits, scale, -1)


def bound_text(value: float, attained: bool, scale: float = 0.0, digits: int = 6) -> str:
    """What no policy exceeds: rounded up, or as the value that it is where a policy attains it."""
    return (plain if attained else upper)(value, digits, scale)


def _rounded(value: float, digits: int, scale: float, direction: int) -> str:
    if abs(value) <= max(DUST * scale, UNDERFLOW):
        return "0"
    if not math.isfinite(value):
        return f"{value}"
    places = digits - 1 - _magnitude(value)
    written_out = TINY <= abs(value) < PLAIN
    if written_out:
        places = max(0, places)
    exact, unit = Decimal(value), Decimal(1).scaleb(-places)
    slack = min(Decimal(NOISE) * abs(exact), unit / 1000)
    rounded = (exact - direction * slack).quantize(unit, ROUNDING[direction])
    if not written_out:
        return f"{float(rounded):.{digits}g}"
    text = f"{rounded:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _magnitude(value: float) -> int:
    """The power of ten of a number's first figure."""
    return math.floor(math.log10(abs(value)))


def mean_and_error(mean: float, error: float | None, scale: float = 0.0) -> tuple[str, str]:
    """A mean to as many places as its error warrants, and that to two figures: 4.52, 0.13.

    The error is a standard error or half an interval; without one the mean has a few figures. An
    error that is rounding is none, and the mean then is what it is, to six digits.
    """
    if error is None:
        return plain(mean, WITHOUT_ERROR, scale), ""
    if error <= max(NOISE * abs(mean), DUST * scale):
        return plain(mean, 6, scale), "0"
    if not (abs(mean) < PLAIN and error < PLAIN):
        return plain(mean, 6, scale), plain(error, 2)
    places = 1 - _magnitude(float(f"{error:.1e}"))
    if places > PLACES:
        return plain(mean, 6, scale), plain(error, 2)
    return _to_places(mean, places), _to_places(error, places)


def _to_places(value: float, places: int) -> str:
    return f"{round(value, places):z.{max(0, places)}f}"


def with_error(mean: float, error: float, scale: float = 0.0) -> str:
    """A mean and its standard error, or half an interval: 120 ± 180, 1.166 ± 0.031."""
    return " ± ".join(mean_and_error(mean, error, scale))


def percent(fraction: float | None) -> str:
    """A relative gap; a dash where it says nothing."""
    if fraction is None or not math.isfinite(fraction) or 100 * fraction > MOST_PERCENT:
        return "-"
    return f"{100 * fraction:.1f} %" if fraction < 1 else f"{100 * fraction:.0f} %"


def percent_at_most(fraction: float) -> str:
    """A limit on what is lost, relative to something, rounded up: 10.6 %; 0.0001 % or nothing."""
    return f"{upper(max(100 * fraction, LEAST_PERCENT), 3) if fraction else 0} %"


def count_of_states(log10: float) -> str:
    """A number of states from its logarithm: 256, or 10^18.1."""
    return f"{round(10**log10):,}" if log10 < COUNTED else f"10^{log10:.1f}"


LONGEST = 300


def facts_table(title: str, facts: Iterable[tuple[str, object]]) -> str:
    """A titled table with a row for each fact; what is None is left out."""
    rows = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th>'
        f'<td style="text-align:left">{escape(_clipped(str(value)))}</td></tr>'
        for name, value in facts
        if value is not None
    )
    return f"<table>{_caption(title)}<tbody>{rows}</tbody></table>"


def figures_table(title: str, headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A titled table with a line of figures for each thing; what is None is left empty."""
    head = "".join(f"<th>{escape(one)}</th>" for one in headings)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f"<table>{_caption(title)}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: object) -> str:
    return f"<td>{'' if value is None else escape(_clipped(str(value)))}</td>"


def _caption(title: str) -> str:
    return f'<caption style="text-align:left"><b>{escape(title)}</b></caption>'


def _clipped(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
