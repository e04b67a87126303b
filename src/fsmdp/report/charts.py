"""Charts before they are drawn: one computation that the page and the printed figures share.

Among them is the cost network of a model, which is laid out here.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from html import escape
from importlib.resources import files
from itertools import combinations
from string import Template
from typing import Any

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


Edge = tuple[int, int]

MOST_RANKED = 150
MOST_SPRING = 400

WIDER = 1.3
"""Shelves of parts are wider than the square of their sizes, since some of them stay unfilled."""

# Of the smallest drawing, on a phone, in units of its size.
LETTER_WIDTH, LETTER_HEIGHT, NODE_RADIUS = 0.027, 0.05, 0.055


def fill_in(edges: Iterable[Edge], order: Sequence[int]) -> tuple[Edge, ...]:
    """The edges that eliminating variables in this order adds.

    Eliminating a variable joins all of its remaining neighbours to one another.
    Cost: n * width^2.
    """
    neighbours: dict[int, set[int]] = {variable: set() for variable in order}
    for a, b in edges:
        neighbours.setdefault(a, set()).add(b)
        neighbours.setdefault(b, set()).add(a)
    added: list[Edge] = []
    for variable in order:
        joined = sorted(neighbours.pop(variable))
        for other in joined:
            neighbours[other].discard(variable)
        for a, b in combinations(joined, 2):
            if b not in neighbours[a]:
                neighbours[a].add(b)
                neighbours[b].add(a)
                added.append((a, b))
    return tuple(added)


def place(n_variables: int, edges: Sequence[Edge]) -> tuple[Floats, str]:
    """Positions in the unit square, the same in every run, and how they were found."""
    import networkx as nx

    graph = nx.Graph()
    graph.add_nodes_from(range(n_variables))
    graph.add_edges_from(edges)
    circle = nx.circular_layout(graph)
    if n_variables > MOST_SPRING:
        found, how = circle, "on a circle in the model's order"
    elif n_variables > MOST_RANKED:
        # The first two eigenvectors untangle what springs alone would leave knotted.
        start = nx.spectral_layout(graph) if nx.is_connected(graph) else circle
        found, how = nx.spring_layout(graph, pos=start, seed=0), "by springs"
    else:
        found, how = _part_by_part(graph), "by graph distance"
    positions = np.array([found[v] for v in range(n_variables)], dtype=np.float64)
    positions -= (positions.max(axis=0) + positions.min(axis=0)) / 2
    reach = 2 * np.abs(positions).max()
    return positions / (reach if reach > 0 else 1) + 0.5, how


def _part_by_part(graph: Any) -> dict[int, Any]:
    """Each connected part by itself, on shelves: distance says nothing of what is not connected."""
    import networkx as nx

    parts = sorted(nx.connected_components(graph), key=lambda part: (-len(part), min(part)))
    sides = [math.sqrt(len(part)) for part in parts]
    width = max(sides[0], WIDER * math.sqrt(sum(side**2 for side in sides)))
    found: dict[int, Any] = {}
    x = y = height = 0.0
    for part, side in zip(parts, sides, strict=True):
        if x and x + side > width + 1e-9:
            x, y, height = 0.0, y - height, 0.0
        inner = graph.subgraph(sorted(part))
        at = nx.kamada_kawai_layout(inner, pos=nx.circular_layout(inner))
        middle = np.array([x + side / 2, y - side / 2])
        for variable, where in at.items():
            found[variable] = middle + 0.3 * side * np.asarray(where)
        x, height = x + side, max(height, side)
    return found


def name_sides(positions: Floats, names: Sequence[str], unit: float = 1.0) -> tuple[str, ...]:
    """Whether each name stands above or below its node; none if something would be covered.

    `unit` is the size of nodes and letters beside those of the smallest drawing.
    """
    sides = tuple("top" if y >= 0.5 else "bottom" for _, y in positions)
    radius, height = unit * NODE_RADIUS, unit * LETTER_HEIGHT
    nodes = [_box(x, y, radius, radius) for x, y in positions]
    labels = []
    for (x, y), name, side in zip(positions, names, sides, strict=True):
        away = radius + height / 2
        half_width = unit * LETTER_WIDTH * min(len(name), SHORT_NAME) / 2
        y += away if side == "top" else -away
        labels.append(_box(x, y, half_width, height / 2))
    apart = not any(_overlap(a, b) for a, b in combinations(labels, 2))
    clear = not any(
        _overlap(label, node)
        for n, label in enumerate(labels)
        for node in nodes[:n] + nodes[n + 1 :]
    )
    return sides if apart and clear else ()


def _box(x: float, y: float, half_width: float, half_height: float) -> tuple[float, ...]:
    return x - half_width, x + half_width, y - half_height, y + half_height


def _overlap(a: Sequence[float], b: Sequence[float]) -> bool:
    return a[0] < b[1] and b[0] < a[1] and a[2] < b[3] and b[2] < a[3]


def network_chart(
    names: Sequence[str], edges: Sequence[Edge], order: Sequence[int], induced_width: int
) -> NetworkChart:
    """A model's cost network, with the order of elimination."""
    positions, how = place(len(names), edges)
    rank = {variable: position for position, variable in enumerate(order, start=1)}
    added = fill_in(edges, order)
    small = len(names) <= MOST_RANKED
    sides = name_sides(positions, names) if small else ()
    caption = (
        f"Variables that some reward, basis function or backprojection needs together are joined; "
        f"induced width {induced_width}, {len(edges)} edges. "
    )
    if small:
        caption += f"Dashed: {len(added)} edges that elimination adds. " if added else ""
        caption += "Numbers and colours give the order of elimination. "
        caption += "" if sides else "Names do not fit and appear under the pointer. "
    else:
        caption += (
            f"With {len(names)} variables, names, numbers and the {len(added)} edges that "
            "elimination adds are left out; colours run with the order of elimination. "
        )
    return NetworkChart(
        name="network",
        title="Cost network",
        caption=caption + f"Placed {how}.",
        names=tuple(names),
        positions=positions,
        edges=tuple((int(a), int(b)) for a, b in edges),
        fill_edges=added if small else (),
        ranks=tuple(rank.get(v, 0) for v in range(len(names))),
        sides=sides,
        show_ranks=small,
    )
