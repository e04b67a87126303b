"""Charts before they are drawn: one computation that the page and the printed figures share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

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
