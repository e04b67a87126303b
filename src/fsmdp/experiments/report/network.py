"""The cost network of a model, laid out for drawing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np

from fsmdp.experiments.report.charts import NetworkChart
from fsmdp.experiments.report.style import SHORT_NAME
from fsmdp.model.tables import Floats

Edge = tuple[int, int]

MOST_RANKED = 150
MOST_SPRING = 400

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
        found, how = nx.spring_layout(graph, seed=0), "by springs"
    else:
        found, how = nx.kamada_kawai_layout(graph, pos=circle), "by graph distance"
    positions = np.array([found[v] for v in range(n_variables)], dtype=np.float64)
    positions -= (positions.max(axis=0) + positions.min(axis=0)) / 2
    reach = 2 * np.abs(positions).max()
    return positions / (reach if reach > 0 else 1) + 0.5, how


def name_sides(positions: Floats, names: Sequence[str]) -> tuple[str, ...]:
    """Whether each name stands above or below its node; none if something would be covered."""
    sides = tuple("top" if y >= 0.5 else "bottom" for _, y in positions)
    nodes = [_box(x, y, NODE_RADIUS, NODE_RADIUS) for x, y in positions]
    labels = []
    for (x, y), name, side in zip(positions, names, sides, strict=True):
        away = NODE_RADIUS + LETTER_HEIGHT / 2
        half_width = LETTER_WIDTH * min(len(name), SHORT_NAME) / 2
        y += away if side == "top" else -away
        labels.append(_box(x, y, half_width, LETTER_HEIGHT / 2))
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
    if added:
        caption += f"Dashed: {len(added)} edges that elimination adds. "
    if small:
        caption += "Numbers and colours give the order of elimination. "
        caption += "" if sides else "Names do not fit and appear under the pointer. "
    else:
        caption += (
            f"With {len(names)} variables, names and numbers are left out; colours run with the "
            "order of elimination. "
        )
    return NetworkChart(
        name="network",
        title="Cost network",
        caption=caption + f"Placed {how}.",
        names=tuple(names),
        positions=positions,
        edges=tuple((int(a), int(b)) for a, b in edges),
        fill_edges=added,
        ranks=tuple(rank.get(v, 0) for v in range(len(names))),
        sides=sides,
        show_ranks=small,
    )
