"""The cost network of a model, laid out for drawing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from fsmdp.model.tables import Floats
from fsmdp.report.charts import SHORT_NAME, NetworkChart

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
