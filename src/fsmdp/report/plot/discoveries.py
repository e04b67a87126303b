"""What was discovered of a structure: edges, draws together, and what stays undecided."""

from __future__ import annotations

from typing import Any

from fsmdp.discovery.discover import Discovery
from fsmdp.foundation.checks import plural
from fsmdp.report.charts import COLORS
from fsmdp.report.network import MOST_RANKED, name_sides, place
from fsmdp.report.plot.axes import checked, square_for
from fsmdp.report.plot.models import (
    DASHED,
    LETTERS,
    draw_arrows,
    explain,
    legend_line,
    legend_node,
)
from fsmdp.report.print_figures import INK, draw_names, node_size

DRAWN_TOGETHER = (0, (1, 1.5))


def discovery(one: Discovery, ax: Any = None) -> Any:
    """Draw what was found in data and return the axes.

    Arrows are edges beyond doubt, dashed where data cannot tell the parent from others; dotted
    lines join variables whose next values are drawn together; squares move otherwise under some
    actions. A hollow variable has undecided edges.
    """
    checked(one, Discovery)
    names = [variable.name for variable in one.variables]
    at = {name: position for position, name in enumerate(names)}
    edges = {(at[e.parent], at[e.child]): e.instead for e in one.evidence if e.parent in at}
    pairs = [(at[pair.one], at[pair.other]) for pair in one.together]
    joined = sorted({(min(e), max(e)) for e in (*edges, *pairs) if e[0] != e[1]})
    positions, _ = place(len(names), joined)
    undecided = {edge.child for edge in one.undecided}
    with square_for(ax) as axes:
        size = node_size(len(names))
        sure = [edge for edge, instead in edges.items() if not instead]
        draw_arrows(axes, positions, sure, "solid", size)
        draw_arrows(axes, positions, sorted({*edges} - {*sure}), DASHED, size)
        for first, second in pairs:
            axes.plot(
                *positions[[first, second]].T,
                color=COLORS[1][0],
                linewidth=1.2,
                linestyle=DRAWN_TOGETHER,
                zorder=1,
            )
        for name, (x, y) in zip(names, positions, strict=True):
            axes.plot(
                [x],
                [y],
                marker="s" if one.apart[name] else "o",
                markersize=size,
                color="#ffffff" if name in undecided else COLORS[0][0],
                markeredgecolor=INK,
                markeredgewidth=0.6,
                zorder=2,
            )
        if len(names) <= MOST_RANKED:
            draw_names(axes, positions, names, name_sides(positions, names, LETTERS), size)
        axes.set_title(
            f"{plural(len(one.evidence), 'edge')} from {one.n_transitions:,} transitions, "
            f"{len(one.undecided)} undecided",
            fontsize=9,
            loc="left",
        )
        explain(
            axes,
            legend_node("s", "actions change it"),
            legend_node("o", "some edges undecided"),
            legend_line("drawn together", DRAWN_TOGETHER, COLORS[1][0]),
            legend_line("cannot be told from others", DASHED),
        )
    return axes
