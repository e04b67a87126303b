"""Charts before they are drawn: one computation that the page and the printed figures share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from fsmdp.model.tables import Floats


ROOM = 1.5
"""Factor by which a log axis extends beyond what it shows."""

NAME_DISTANCE = 0.075
"""From a variable to its name, in a drawing of size 1."""


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
    half_width: Floats | None = None  # (n_points,), the band is y - half_width to y + half_width
    note: str = ""  # what the legend adds to the label in this chart


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

    def band(self, line: Line) -> tuple[Floats, Floats, Floats] | None:
        """Where a line's band runs: x, its lower and its upper end, cut off at a log axis's end."""
        if line.half_width is None:
            return None
        drawn = np.isfinite(line.y)
        x, y, half = line.x[drawn], line.y[drawn], line.half_width[drawn]
        low = np.maximum(y - half, self.log_range[0]) if self.log else y - half
        return x, np.asarray(low), np.asarray(y + half)


@dataclass(frozen=True, slots=True, eq=False)
class Chart:
    """Panels over one horizontal axis, and a caption that says how they were computed."""

    name: str
    title: str
    caption: str
    panels: tuple[Panel, ...]
    x_label: str = "episode"
    log: bool = False

    @property
    def lines(self) -> Iterator[Line]:
        """The lines of all panels."""
        return (line for panel in self.panels for line in panel.lines)


@dataclass(frozen=True, slots=True, eq=False)
class Dot:
    """A mean with its interval; `half_width` is NaN where there is none."""

    label: str
    value: float
    half_width: float
    learner: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class DotChart:
    """One row for each learner, with upright marks for what holds for all of them."""

    name: str
    title: str
    caption: str
    x_label: str
    dots: tuple[Dot, ...]
    marks: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True, eq=False)
class NetworkChart:
    """A cost network laid out in the unit square."""

    name: str
    title: str
    caption: str
    names: tuple[str, ...]
    positions: Floats  # (n_variables, 2)
    edges: tuple[tuple[int, int], ...]
    fill_edges: tuple[tuple[int, int], ...]  # joined while variables were eliminated
    ranks: tuple[int, ...]  # when each variable is eliminated, from 1
    show_names: bool
    show_ranks: bool

    @property
    def name_positions(self) -> Floats:
        """Names stand outside of their nodes, away from the middle of the drawing."""
        outward = self.positions - 0.5
        lengths = np.linalg.norm(outward, axis=1, keepdims=True)
        return np.asarray(self.positions + NAME_DISTANCE * outward / np.maximum(lengths, 1e-9))


AnyChart = Chart | DotChart | NetworkChart
