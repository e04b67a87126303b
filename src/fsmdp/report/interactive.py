"""Charts as plotly figures: plain dictionaries, which the page's own plotly.js draws.

Every trace says in `meta` whose it is (`learner`, an index) and which of the page's colours it
takes (`ink`), so that the page can hide a learner everywhere and repaint for a dark background.
Names are escaped: plotly reads a subset of HTML in every text.
"""

import html
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from fsmdp.model.tables import Floats
from fsmdp.report import charts
from fsmdp.report.curves import Interval

Trace = dict[str, Any]
Numbers = list[float | int | None]
Styles = Mapping[str, charts.Style]

PANEL_HEIGHT = 300
SECOND_PANEL_HEIGHT = 210
DOT_HEIGHT = 34
NETWORK_HEIGHT = 440
GAP_BETWEEN_PANELS = 0.11


def plotly_figure(chart: charts.AnyChart, styles: Styles) -> dict[str, Any]:
    """Traces, layout and legend of one chart."""
    if isinstance(chart, charts.Chart):
        return _curves(chart, styles)
    if isinstance(chart, charts.DotChart):
        return _dots(chart, styles)
    return _network(chart)


def escaped(text: str) -> str:
    """Text that plotly shows as it stands."""
    return html.escape(text, quote=False)


def _curves(chart: charts.Chart, styles: Styles) -> dict[str, Any]:
    traces: list[Trace] = []
    n_panels = len(chart.panels)
    height = PANEL_HEIGHT + SECOND_PANEL_HEIGHT * (n_panels - 1)
    span = (1 - GAP_BETWEEN_PANELS * (n_panels - 1)) / n_panels
    last = max(2.0, max(float(line.x[-1]) for line in chart.lines))
    layout: dict[str, Any] = {
        "height": height,
        "hovermode": "x unified",
        "annotations": [],
        "xaxis": {
            "title": {"text": chart.x_label, "standoff": 6},
            "anchor": _axis("y", n_panels - 1),
            "range": [0, math.log10(last)] if chart.log else [0, last],
        }
        | _scale(chart.log)
        | {"exponentformat": "none"},
    }
    for position, panel in enumerate(chart.panels):
        top = 1 - position * (span + GAP_BETWEEN_PANELS)
        layout["yaxis" + _axis("", position)] = {"domain": [max(0.0, top - span), top]} | _vertical(
            panel
        )
        layout["annotations"].append(_heading(panel.y_label, top))
        bands = [_band(line, styles, position) for line in panel.lines]
        traces += [band for band in bands if band is not None]
        traces += [_line(line, styles, position) for line in panel.lines]
    return {"data": traces, "layout": layout, "legend": _legend(chart, styles)}


def _axis(letter: str, position: int) -> str:
    return letter if position == 0 else f"{letter}{position + 1}"


def _scale(log: bool) -> dict[str, Any]:
    return {"type": "log", "exponentformat": "power", "dtick": 1} if log else {}


def _vertical(panel: charts.Panel) -> dict[str, Any]:
    if not panel.log:
        return {}
    low, high = (math.log10(end) for end in panel.log_range)
    # Within two decades, powers of ten alone would leave an axis almost without ticks.
    ticks = "D2" if high - low < 2 else math.ceil((high - low) / 7)
    return _scale(True) | {"dtick": ticks, "range": [low, high]}


def _heading(text: str, top: float) -> dict[str, Any]:
    return {
        "text": escaped(text),
        "xref": "paper",
        "yref": "paper",
        "x": 0,
        "y": top,
        "xanchor": "left",
        "yanchor": "bottom",
        "showarrow": False,
    }


def _line(line: charts.Line, styles: Styles, panel: int) -> Trace:
    style = None if line.learner is None else styles[line.learner]
    trace: Trace = {
        "type": "scatter",
        "mode": "lines",
        "name": escaped(line.label),
        "x": numbers(line.x, 9),
        "y": numbers(line.y),
        "yaxis": _axis("y", panel),
        "showlegend": False,
        "meta": _meta(style),
        "line": {"width": 2.2, "dash": "solid" if style is None else style.dash},
        "hovertemplate": "%{y:.4~g}",
    }
    if line.half_width is not None:
        trace["customdata"] = numbers(line.half_width, 2)
        trace["hovertemplate"] = "%{y:.4~g} ± %{customdata:.2~g}"
    if line.role is charts.Role.OPTIMISTIC:
        trace["mode"] = "lines+markers"
        trace["name"] = escaped(f"{line.label}, optimistic")
        trace["line"] = {"width": 1, "dash": "solid"}
        trace["marker"] = {"symbol": "triangle-up", "size": 7, "maxdisplayed": 14}
    elif line.role is charts.Role.FIT:
        trace["line"] = {"width": 1, "dash": "solid"}
        trace["hoverinfo"] = "skip"
        del trace["hovertemplate"]
    elif line.role is charts.Role.REFERENCE:
        trace["line"] = {"width": 1.6, "dash": _reference_dash(line.label)}
    return trace


def _reference_dash(label: str) -> str:
    return "dot" if label == "V*" else "dash"


def _band(line: charts.Line, styles: Styles, position: int) -> Trace | None:
    """Around the band: along its upper end, and back along the lower."""
    if line.band is None or line.learner is None:
        return None
    low, high = line.band
    return {
        "type": "scatter",
        "mode": "lines",
        "name": escaped(f"{line.label}, band"),
        "x": numbers(np.concatenate([line.x, line.x[::-1]]), 9),
        "y": numbers(np.concatenate([high, low[::-1]])),
        "yaxis": _axis("y", position),
        "showlegend": False,
        "hoverinfo": "skip",
        "fill": "toself",
        "line": {"width": 0},
        "meta": _meta(styles[line.learner]) | {"band": True},
    }


def _meta(style: charts.Style | None) -> dict[str, Any]:
    if style is None:
        return {"ink": "muted"}
    return {"ink": f"learner-{style.index}", "learner": style.index}


def _legend(chart: charts.Chart, styles: Styles) -> list[dict[str, Any]]:
    """One entry for each learner and each reference: the page draws legends, which wrap."""
    entries: dict[tuple[str | None, str], dict[str, Any]] = {}
    for line in chart.lines:
        key = (line.learner, "" if line.learner else line.label)
        if key in entries:
            continue
        style = None if line.learner is None else styles[line.learner]
        dash = _reference_dash(line.label) if style is None else style.dash
        entries[key] = {"label": line.label, "note": line.note, "dash": dash} | _meta(style)
    return sorted(entries.values(), key=lambda entry: "learner" not in entry)


def _dots(chart: charts.DotChart, styles: Styles) -> dict[str, Any]:
    rows = len(chart.dots)
    traces = [_dot(dot, rows - row, styles) for row, dot in enumerate(chart.dots)]
    shapes, legend = [], []
    for label, value in chart.marks:
        dash = _reference_dash(label)
        shapes.append(
            {
                "type": "line",
                "xref": "x",
                "yref": "paper",
                "x0": value,
                "x1": value,
                "y0": 0,
                "y1": 1,
                "line": {"width": 1.6, "dash": dash},
            }
        )
        legend.append(
            {"label": charts.mark_text(label, value), "note": "", "dash": dash, "ink": "muted"}
        )
    # Marks stand outside of what plotly scales the axis by.
    values = [value for _, value in chart.marks]
    traces.append(
        {
            "type": "scatter",
            "mode": "markers",
            "x": values,
            "y": [1] * len(values),
            "marker": {"opacity": 0},
            "hoverinfo": "skip",
            "showlegend": False,
            "meta": {"ink": "muted"},
        }
    )
    layout = {
        "height": 90 + DOT_HEIGHT * rows,
        "hovermode": "closest",
        "shapes": shapes,
        "annotations": [],
        "xaxis": {"title": {"text": escaped(chart.x_label), "standoff": 6}},
        "yaxis": {
            "tickmode": "array",
            "tickvals": [rows - row for row in range(rows)],
            "ticktext": [escaped(charts.printable(dot.label, 26)) for dot in chart.dots],
            "range": [0.4, rows + 0.6],
            "showgrid": False,
            "zeroline": False,
        },
    }
    return {"data": traces, "layout": layout, "legend": legend}


def _dot(dot: charts.Dot, row: int, styles: Styles) -> Trace:
    style = None if dot.learner is None else styles[dot.learner]
    spread = dot.half_width
    text = str(Interval(dot.value, spread))
    return {
        "type": "scatter",
        "mode": "markers",
        "name": escaped(dot.label),
        "x": [dot.value],
        "y": [row],
        "error_x": {"type": "data", "array": [spread or 0], "thickness": 2, "width": 5},
        "marker": {"size": 10, "symbol": "circle" if style else "diamond"},
        "showlegend": False,
        "hovertemplate": text,
        "meta": _meta(style) if style else {"ink": "ink"},
    }


def _network(chart: charts.NetworkChart) -> dict[str, Any]:
    n = len(chart.names)
    size = float(np.clip(170 / math.sqrt(max(n, 1)), 5, 26))
    hover = [
        f"{escaped(charts.printable(name))}<br>eliminated {rank} of {n}"
        for name, rank in zip(chart.names, chart.ranks, strict=True)
    ]
    nodes: Trace = {
        "type": "scatter",
        "mode": "markers+text" if chart.show_ranks else "markers",
        "x": numbers(chart.positions[:, 0]),
        "y": numbers(chart.positions[:, 1]),
        "marker": {
            "size": size,
            "color": list(chart.ranks),
            "colorscale": "Cividis",
            "cmin": 1,
            "cmax": max(n, 2),
            "line": {"width": 1 if chart.show_ranks else 0.5},
        },
        "text": [str(rank) for rank in chart.ranks],
        "textposition": "middle center",
        "textfont": {
            "size": float(np.clip(size * 0.5, 6, 12)),
            "color": [charts.ink_on_rank(rank, n) for rank in chart.ranks],
        },
        "hovertext": hover,
        "hovertemplate": "%{hovertext}<extra></extra>",
        "showlegend": False,
        "meta": {"ink": "nodes"},
    }
    traces = [
        _edges(chart, chart.edges, "solid"),
        _edges(chart, chart.fill_edges, "dot"),
        nodes,
    ]
    if chart.sides:
        traces.append(_names(chart, size))
    hidden = {"visible": False, "range": [-0.12, 1.12]}
    layout = {
        "height": NETWORK_HEIGHT,
        "hovermode": "closest",
        "annotations": [],
        "xaxis": hidden,
        "yaxis": hidden | {"scaleanchor": "x"},
    }
    return {"data": traces, "layout": layout, "legend": []}


def _edges(chart: charts.NetworkChart, edges: Iterable[tuple[int, int]], dash: str) -> Trace:
    x: Numbers = []
    y: Numbers = []
    for a, b in edges:
        x += [*numbers(chart.positions[[a, b], 0]), None]
        y += [*numbers(chart.positions[[a, b], 1]), None]
    return {
        "type": "scatter",
        "mode": "lines",
        "x": x,
        "y": y,
        "line": {"width": 1.4 if dash == "solid" else 1, "dash": dash},
        "hoverinfo": "skip",
        "showlegend": False,
        "meta": {"ink": "muted"},
    }


def _names(chart: charts.NetworkChart, size: float) -> Trace:
    """Names beside markers that are not seen, whose size keeps them off the nodes."""
    return {
        "type": "scatter",
        "mode": "markers+text",
        "x": numbers(chart.positions[:, 0]),
        "y": numbers(chart.positions[:, 1]),
        "marker": {"size": size, "opacity": 0},
        "text": [escaped(charts.printable(name, charts.SHORT_NAME)) for name in chart.names],
        "textposition": [f"{side} center" for side in chart.sides],
        "textfont": {"size": 11},
        "cliponaxis": False,
        "hoverinfo": "skip",
        "showlegend": False,
        "meta": {"ink": "ink"},
    }


def numbers(values: Floats, figures: int = 4) -> Numbers:
    """Numbers to so many figures, four being finer than a screen; None where there is none."""
    return [_short(float(value), figures) for value in values]


def _short(value: float, figures: int) -> float | int | None:
    if not math.isfinite(value):
        return None
    rounded = float(f"{value:.{figures}g}")
    return int(rounded) if rounded.is_integer() else rounded
