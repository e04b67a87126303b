"""Charts before they are drawn: one computation that the page and the printed figures share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from html import escape
from importlib.resources import files
from string import Template

import numpy as np

from fsmdp.foundation.numbers import plain, upper
from fsmdp.model.tables import Floats

ROOM = 1.5
"""Factor by which a log axis extends beyond what it shows."""


class Role(StrEnum):
    """What a line says, which decides how it is drawn."""

    MEASURED = "measured"
    OPTIMISTIC = "optimistic"  # what a learner believed, beside what it measured
    FIT = "fit"
    REFERENCE = "reference"  # belongs to the model, not to a learner


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """A curve, with a band where several seeds were run; NaN where there is nothing to draw."""

    label: str
    x: Floats  # (n_points,)
    y: Floats  # (n_points,)
    learner: str | None = None  # None for references
    role: Role = Role.MEASURED
    half_width: Floats | None = None  # (n_points,), of the band around y
    note: str = ""  # what the legend adds to the label in this chart

    @property
    def band(self) -> tuple[Floats, Floats] | None:
        """Lower and upper end of the band, where there is one."""
        if self.half_width is None:
            return None
        return self.y - self.half_width, self.y + self.half_width


@dataclass(frozen=True, slots=True, eq=False)
class Panel:
    """Lines over one vertical axis."""

    y_label: str
    lines: tuple[Line, ...]
    log: bool = False
    least: float | None = None  # on a log axis, where the axis ends

    @property
    def log_range(self) -> tuple[float, float]:
        """Both ends of a log axis, with some room around what is drawn."""
        values = np.concatenate([line.y for line in self.lines])
        least = float(np.nanmin(values)) if self.least is None else self.least
        return least / ROOM, float(np.nanmax(values)) * ROOM


@dataclass(frozen=True, slots=True, eq=False)
class Captioned:
    """A figure's name, its title, and a caption that says how it was computed."""

    name: str
    title: str
    caption: str


@dataclass(frozen=True, slots=True, eq=False)
class Chart(Captioned):
    """Panels over one horizontal axis."""

    panels: tuple[Panel, ...]
    x_label: str = "episode"
    log: bool = False

    @property
    def lines(self) -> Iterator[Line]:
        """The lines of all panels."""
        return (line for panel in self.panels for line in panel.lines)


@dataclass(frozen=True, slots=True, eq=False)
class Dot:
    """A mean, with its interval where it has one."""

    label: str
    value: float
    half_width: float | None
    learner: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class DotChart(Captioned):
    """One row for each learner, with upright marks for what holds for all of them."""

    x_label: str
    dots: tuple[Dot, ...]
    marks: tuple[tuple[str, float], ...]


def mark_text(label: str, value: float) -> str:
    """A mark in words: an optimal value, or a bound, which is rounded up."""
    shown = plain(value, 5) if label == "V*" else upper(value, 5)
    return f"{label} = {shown}"


@dataclass(frozen=True, slots=True, eq=False)
class NetworkChart(Captioned):
    """A cost network laid out in the unit square."""

    names: tuple[str, ...]
    positions: Floats  # (n_variables, 2)
    edges: tuple[tuple[int, int], ...]
    fill_edges: tuple[tuple[int, int], ...]  # joined while variables were eliminated
    ranks: tuple[int, ...]  # when each variable is eliminated, from 1
    sides: tuple[str, ...]  # of each node, where its name stands: top, bottom; () for no names
    show_ranks: bool


AnyChart = Chart | DotChart | NetworkChart


# After Okabe and Ito, whose palette colour-blind readers can tell apart; the second of each pair
# is the same hue, lightened until it stands out from a dark page.
COLORS = (
    ("#0072b2", "#5db7f0"),
    ("#d55e00", "#ff9350"),
    ("#00805d", "#35cfa2"),
    ("#a8447f", "#ee8fc6"),
    ("#9a7400", "#f0c94f"),
    ("#4b4bb8", "#a7a6ff"),
    ("#5f6673", "#b4bcc9"),
)

DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")

# Lengths of strokes and gaps in units of the line's width.
PATTERNS: dict[str, tuple[float, ...]] = {
    "solid": (),
    "dash": (4, 2),
    "dot": (1, 1.6),
    "dashdot": (5, 1.6, 1, 1.6),
    "longdash": (8, 2.4),
    "longdashdot": (9, 2, 1, 2),
}

BAND_OPACITY = 0.16
SHORT_NAME = 16
"""Letters of a variable's name in a drawing of the network."""


@dataclass(frozen=True, slots=True, eq=False)
class Style:
    """How a learner is drawn."""

    index: int
    color: str
    dark_color: str
    dash: str

    @property
    def pattern(self) -> tuple[float, ...]:
        """Lengths of strokes and gaps, none for a solid line."""
        return PATTERNS[self.dash]


def learner_styles(learners: Sequence[str]) -> dict[str, Style]:
    """A style for each learner, by its place in the list; the first 42 are all different."""
    return {
        learner: Style(index, *COLORS[index % len(COLORS)], DASHES[index % len(DASHES)])
        for index, learner in enumerate(learners)
    }


def printable(text: str, longest: int = 64) -> str:
    """A name as figures show it: one line, no control characters, of bounded length.

    What is left out is left out of the middle: names that differ often do so at their ends.
    """
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    if len(shown) <= longest:
        return shown
    end = (longest - 1) // 2
    return f"{shown[: longest - 1 - end]}…{shown[len(shown) - end :]}"


def ink_on_rank(rank: int, n_ranks: int) -> str:
    """Ink that can be read on the Cividis scale, whose first half is dark."""
    return "#ffffff" if rank < 0.55 * n_ranks else "#10131a"


REPORT = "fsmdp.report"


def asset(package: str, name: str) -> str:
    """A file of a package's `assets`."""
    return (files(package) / "assets" / name).read_text("utf-8")


def document(title: str, body: str, styles: str, allowed: str) -> str:
    """A page of a title, markup and styles; `allowed` is what its content policy lets in."""
    return Template(asset(REPORT, "page.html")).substitute(
        title=escape(title),
        allowed=allowed,
        styles=asset(REPORT, "base.css") + styles,
        body=body,
    )
