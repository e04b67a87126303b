"""A model's network: what depends on what, what actions change, what is rewarded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fsmdp.elimination.order import best_order
from fsmdp.foundation.checks import plural
from fsmdp.model.basis import Basis
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.tables import Floats
from fsmdp.model.variables import Scope
from fsmdp.report.charts import COLORS
from fsmdp.report.network import MOST_RANKED, name_sides, place
from fsmdp.report.plot.axes import checked, square_for
from fsmdp.report.print_figures import INK, MUTED, draw_names, node_size

Edge = tuple[int, int]

LETTERS = 0.45
"""Size of letters and nodes in a square picture, beside those of the smallest drawing."""

DASHED = (0, (3, 2))


@dataclass(frozen=True, slots=True, eq=False)
class Dependencies:
    """Arrows from parents to variables, by position, and what else a picture shows of each."""

    always: tuple[Edge, ...]  # under the usual actions
    sometimes: tuple[Edge, ...]  # under some actions only
    acted_on: frozenset[int]  # variables whose law some action changes
    rewarded: frozenset[int]  # variables that some reward looks at
    order: tuple[int, ...]  # of elimination, for singles
    induced_width: int


def dependencies(model: FactoredMDP) -> Dependencies:
    """What a picture of the model shows. Cost: the marginals of singles, and an order."""
    structure, n = model.structure(Basis.singles(model)), len(model.variables)
    always: set[Edge] = set()
    sometimes: set[Edge] = set()
    acted_on: set[int] = set()
    scopes: list[Scope] = []
    for scope, parents in zip(structure.basis.scopes, structure.parents, strict=True):
        for child in scope:
            usual = {parent for parent in parents.groups[0] if parent < n}
            always |= {(parent, child) for parent in usual}
            others = {parent for each in parents for parent in each if parent < n} - usual
            sometimes |= {(parent, child) for parent in others}
            if parents.exceptions or len(usual) < len(parents.groups[0]):
                acted_on.add(child)
        scopes += [tuple(sorted({*scope, *each})) for each in parents]
    rewards = [scope for term in structure.rewards for scope in term.parents]
    order = best_order([one for one in (*scopes, *rewards) if one], model.input_sizes)
    return Dependencies(
        tuple(sorted(always)),
        tuple(sorted(sometimes - always)),
        frozenset(acted_on),
        frozenset(position for scope in rewards for position in scope if position < n),
        tuple(position for position in order.variables if position < n),
        order.induced_width,
    )


def model(one: FactoredMDP, ax: Any = None) -> Any:
    """Draw the network of a model and return the axes.

    Arrows lead from what a variable's next value depends on, dashed where only some actions make
    it so. Squares are variables that actions change, thick rims are rewarded; colours and numbers
    give the order in which variables are eliminated.
    """
    from matplotlib import colormaps

    checked(one, FactoredMDP)
    found = dependencies(one)
    names = [variable.name for variable in one.variables]
    joined = sorted({(min(e), max(e)) for e in (*found.always, *found.sometimes) if e[0] != e[1]})
    positions, _ = place(len(names), joined)
    small = len(names) <= MOST_RANKED
    with square_for(ax) as axes:
        size = node_size(len(names))
        for edges, style in ((found.always, "solid"), (found.sometimes, DASHED)):
            draw_arrows(axes, positions, edges, style, size)
        _draw_variables(axes, positions, found, size, numbers=small)
        if small:
            sides = name_sides(positions, names, LETTERS)
            draw_names(axes, positions, names, sides, size)
        axes.set_title(
            f"{plural(len(names), 'variable')}, {one.actions.text}, "
            f"induced width {found.induced_width}",
            fontsize=9,
            loc="left",
        )
        shown = "number and colour" if small else "colour"
        explain(
            axes,
            legend_node("s", "actions change it"),
            legend_node("o", "rewarded", COLORS[1][0], 2.0),
            legend_line("some actions only", DASHED),
            legend_node("o", f"{shown}: order of elimination", face=colormaps["cividis"](0.5)),
        )
    return axes


def draw_arrows(axes: Any, at: Floats, edges: Any, style: Any, size: float) -> None:
    """Arrows from parents to children, by position."""
    for parent, child in edges:
        if parent != child:  # almost every variable depends on itself
            axes.annotate(
                "",
                at[child],
                at[parent],
                arrowprops={
                    "arrowstyle": "-|>",
                    "color": MUTED,
                    "linewidth": 0.9,
                    "linestyle": style,
                    "shrinkA": size / 2,
                    "shrinkB": size / 2 + 1,
                    "connectionstyle": "arc3,rad=0.08",
                },
                zorder=1,
            )


def _draw_variables(axes: Any, at: Floats, found: Dependencies, size: float, numbers: bool) -> None:
    from matplotlib import colormaps

    rank = {variable: position for position, variable in enumerate(found.order)}
    last = max(1, len(at) - 1)
    for variable, (x, y) in enumerate(at):
        share = rank.get(variable, last) / last
        rewarded = variable in found.rewarded
        axes.plot(
            [x],
            [y],
            marker="s" if variable in found.acted_on else "o",
            markersize=size,
            color=colormaps["cividis"](share),
            markeredgecolor=COLORS[1][0] if rewarded else INK,
            markeredgewidth=2.0 if rewarded else 0.6,
            zorder=2,
        )
        if numbers:
            ink = "#ffffff" if share < 0.55 else "#10131a"
            text = str(rank.get(variable, last) + 1)
            axes.text(x, y, text, ha="center", va="center", fontsize=size * 0.42, color=ink)


def explain(axes: Any, *handles: Any) -> None:
    """A legend below a network."""
    axes.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, 0.02), ncols=2)


def legend_node(
    marker: str, label: str, edge: str = INK, width: float = 0.6, face: Any = "#ffffff"
) -> Any:
    """What a kind of node means."""
    from matplotlib.lines import Line2D

    return Line2D(
        [],
        [],
        linestyle="",
        marker=marker,
        markersize=8,
        markerfacecolor=face,
        markeredgecolor=edge,
        markeredgewidth=width,
        label=label,
    )


def legend_line(label: str, style: Any, color: str = MUTED) -> Any:
    """What a kind of line means."""
    from matplotlib.lines import Line2D

    return Line2D([], [], color=color, linewidth=0.9, linestyle=style, label=label)
