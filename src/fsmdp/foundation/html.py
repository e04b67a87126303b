"""What notebooks show: a small table of facts."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

LONGEST = 300


def facts_table(title: str, facts: Iterable[tuple[str, object]]) -> str:
    """A titled table with a row for each fact; what is None is left out."""
    rows = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th>'
        f'<td style="text-align:left">{escape(_clipped(str(value)))}</td></tr>'
        for name, value in facts
        if value is not None
    )
    heading = f'<caption style="text-align:left"><b>{escape(title)}</b></caption>'
    return f"<table>{heading}<tbody>{rows}</tbody></table>"


def _clipped(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
