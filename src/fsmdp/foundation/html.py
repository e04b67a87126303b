"""What notebooks show: a small table of facts, or of figures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
