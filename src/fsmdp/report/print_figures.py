"""Charts for papers: PNG and SVG, drawn by matplotlib without a display."""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fsmdp.model.tables import Floats
from fsmdp.report import charts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

Styles = Mapping[str, charts.Style]

INK, MUTED, GRID = "#1c2330", "#6b7280", "#e3e6eb"
WIDTH = 6.4
DOTS_PER_INCH = 200

SETTINGS: Any = {
    "font.size": 9,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "text.color": INK,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "text.parse_math": False,  # a dollar sign in a name is a dollar sign
    "svg.hashsalt": "fsmdp",  # the same chart gives the same file
}


def printed(chart: charts.AnyChart, styles: Styles) -> dict[str, bytes]:
    """A chart as the bytes of a PNG and of an SVG file."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(SETTINGS), warnings.catch_warnings():
        # A name may hold letters that the font lacks; a box in their place is no reason to stop.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure = Figure((WIDTH, _height(chart)), DOTS_PER_INCH, layout="constrained")
        if isinstance(chart, charts.Chart):
            _draw_curves(figure, chart, styles)
        elif isinstance(chart, charts.DotChart):
            _draw_dots(figure, chart, styles)
        else:
            _draw_network(figure, chart)
        return _files(figure)


def _files(figure: Figure) -> dict[str, bytes]:
    """A figure as PNG and SVG; laid out once, which takes longer than drawing."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    png, svg = io.BytesIO(), io.BytesIO()
    agg: Any = FigureCanvasAgg(figure)
    agg.print_png(png, metadata={"Software": None})
    vector: Any = FigureCanvasSVG(figure)
    vector.print_svg(svg, metadata={"Date": None, "Creator": None})
    return {"png": png.getvalue(), "svg": svg.getvalue()}


def _height(chart: charts.AnyChart) -> float:
    if isinstance(chart, charts.Chart):
        return 2.2 + 1.7 * len(chart.panels)
    return 1.0 + 0.32 * len(chart.dots) if isinstance(chart, charts.DotChart) else 5.6


def _draw_curves(figure: Figure, chart: charts.Chart, styles: Styles) -> None:
    grid = figure.subplots(len(chart.panels), 1, sharex=True, squeeze=False)
    entries: dict[tuple[str | None, str], tuple[Any, str]] = {}
    for axes, panel in zip(grid[:, 0], chart.panels, strict=True):
        _scale_axes(axes, panel, chart.log)
        for line in panel.lines:
            handle = draw_line(axes, line, styles)
            key = (line.learner, "" if line.learner else line.label)
            entries.setdefault(key, (handle, line.label + (f", {line.note}" if line.note else "")))
    grid[-1, 0].set_xlabel(chart.x_label)
    _legend(figure, list(entries.values()))


def _scale_axes(axes: Axes, panel: charts.Panel, log: bool) -> None:
    axes.set_title(panel.y_label, loc="left", fontsize=9, color=INK)
    if log:
        axes.set_xscale("log")
        x = np.concatenate([line.x for line in panel.lines])
        _plain_powers(axes.xaxis, float(np.nanmin(x)), float(np.nanmax(x)))
    if panel.log:
        axes.set_yscale("log")
        axes.set_ylim(*panel.log_range)
        _plain_powers(axes.yaxis, *panel.log_range)


def _plain_powers(axis: Axis, low: float, high: float) -> None:
    """Ticks at powers of ten, written without the markup that names are kept from.

    Where fewer than three would be seen, also at twice and five times each.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    few = math.floor(math.log10(high)) - math.ceil(math.log10(low)) < 2
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if few else (1.0,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: power_of_ten(value)))
    axis.set_minor_locator(NullLocator())


def power_of_ten(value: float) -> str:
    """1, 2, 5, 10, 100, 1,000, and then 10⁴."""
    exponent = round(math.log10(value))
    if not math.isclose(value, 10.0**exponent, rel_tol=1e-6):
        return f"{value:g}"
    if 0 <= exponent <= 3:
        return f"{10**exponent:,}"
    return "10" + str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def draw_line(axes: Axes, line: charts.Line, styles: Styles) -> Any:
    """Draw a line with its band, and return what a legend shows of it."""
    style = None if line.learner is None else styles[line.learner]
    color = MUTED if style is None else style.color
    width = 1.7 if line.role is charts.Role.MEASURED else 0.8
    (handle,) = axes.plot(line.x, line.y, color=color, linewidth=width)
    if line.role is charts.Role.MEASURED and style is not None and style.pattern:
        handle.set_dashes(style.pattern)
    elif line.role is charts.Role.OPTIMISTIC:
        handle.set_marker("^")
        handle.set_markersize(4)
        handle.set_markevery(max(1, len(line.x) // 14))
    elif line.role is charts.Role.REFERENCE:
        handle.set_linewidth(1.1)
        handle.set_dashes((1, 1.6) if line.label == "V*" else (4, 2))
    if line.band is not None:
        axes.fill_between(line.x, *line.band, color=color, alpha=charts.BAND_OPACITY, linewidth=0)
    return handle


def _legend(figure: Figure, entries: Sequence[tuple[Any, str]]) -> None:
    if not entries:
        return
    # matplotlib leaves out entries whose text starts with an underscore.
    labels = [f" {label}" if label.startswith("_") else label for _, label in entries]
    longest = max(map(len, labels))
    columns = 3 if longest <= 26 else 2 if longest <= 42 else 1
    figure.legend(
        [handle for handle, _ in entries],
        labels,
        loc="outside lower left",
        ncols=columns,
        handlelength=3.2,
    )


def _draw_dots(figure: Figure, chart: charts.DotChart, styles: Styles) -> None:
    axes = figure.subplots()
    rows = len(chart.dots)
    for row, dot in enumerate(chart.dots):
        style = None if dot.learner is None else styles[dot.learner]
        color, marker = (INK, "D") if style is None else (style.color, "o")
        spread = dot.half_width
        axes.errorbar(
            [dot.value], [rows - row], xerr=spread, fmt=marker, color=color, markersize=5, capsize=3
        )
    handles = []
    for label, value in chart.marks:
        handle = axes.axvline(value, color=MUTED, linewidth=1.1)
        handle.set_dashes((1, 1.6) if label == "V*" else (4, 2))
        handles.append((handle, charts.mark_text(label, value)))
    axes.set_yticks(
        [rows - row for row in range(rows)],
        [charts.printable(dot.label, 40) for dot in chart.dots],
        color=INK,
    )
    axes.set_ylim(0.4, rows + 0.6)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel(chart.x_label)
    _legend(figure, handles)


def _draw_network(figure: Figure, chart: charts.NetworkChart) -> None:
    from matplotlib.collections import LineCollection

    axes = figure.subplots()
    axes.set_axis_off()
    axes.set_aspect("equal")
    axes.set_xlim(-0.12, 1.12)
    axes.set_ylim(-0.12, 1.12)
    at = chart.positions
    for edges, dashes in ((chart.edges, "solid"), (chart.fill_edges, (0, (2, 2)))):
        segments = [at[[a, b]] for a, b in edges]
        axes.add_collection(
            LineCollection(segments, colors=MUTED, linewidths=0.9, linestyles=dashes, zorder=1)
        )
    n = len(chart.names)
    size = node_size(n)
    axes.scatter(
        at[:, 0],
        at[:, 1],
        s=size**2,
        c=chart.ranks,
        cmap="cividis",
        vmin=1,
        vmax=max(n, 2),
        edgecolors=INK,
        linewidths=min(0.6, size / 15),
        zorder=2,
    )
    if chart.show_ranks:
        for (x, y), rank in zip(at, chart.ranks, strict=True):
            ink = charts.ink_on_rank(rank, n)
            axes.text(x, y, str(rank), ha="center", va="center", fontsize=size * 0.42, color=ink)
    draw_names(axes, at, chart.names, chart.sides, size)


def node_size(n_nodes: int) -> float:
    """Points across a node of a network."""
    return float(np.clip(130 / math.sqrt(max(n_nodes, 1)), 2, 20))


def draw_names(
    axes: Axes, at: Floats, names: Sequence[str], sides: Sequence[str], size: float
) -> None:
    """Write names above or below their nodes; none without sides."""
    for (x, y), name, side in zip(at, names, sides, strict=bool(sides)):
        above = side == "top"
        axes.annotate(
            charts.printable(name, charts.SHORT_NAME),
            (x, y),
            (0, (size / 2 + 2) * (1 if above else -1)),
            textcoords="offset points",
            ha="center",
            va="bottom" if above else "top",
            fontsize=7.5,
        )
