"""The cost network: fill-in against networkx, layouts that repeat, names that do not collide."""

from itertools import combinations

import networkx as nx
import numpy as np
import pytest

from fsmdp.report.charts import fill_in, name_sides, network_chart, place, printable


@pytest.mark.parametrize("seed", range(5))
def test_with_its_fill_in_a_network_is_chordal(seed):
    graph = nx.gnp_random_graph(12, 0.25, seed=seed)
    order = np.random.default_rng(seed).permutation(12).tolist()
    added = fill_in(graph.edges, order)
    assert not any(graph.has_edge(*edge) for edge in added)
    graph.add_edges_from(added)
    assert nx.is_chordal(graph)


def test_eliminating_a_ring_in_order_joins_the_first_to_all_that_follow():
    ring = [(i, (i + 1) % 5) for i in range(5)]
    assert fill_in(ring, range(5)) == ((1, 4), (2, 4))


def test_a_tree_eliminated_from_its_leaves_needs_no_fill_in():
    star = [(0, i) for i in range(1, 6)]
    assert fill_in(star, [1, 2, 3, 4, 5, 0]) == ()


@pytest.mark.parametrize("n", [1, 2, 9, 160, 500])
def test_places_repeat_and_lie_in_the_unit_square(n):
    ring = [(i, (i + 1) % n) for i in range(n)] if n > 1 else []
    first, _ = place(n, ring)
    second, _ = place(n, ring)
    np.testing.assert_array_equal(first, second)
    assert first.min() >= -1e-9
    assert first.max() <= 1 + 1e-9
    if n > 1:
        assert len(np.unique(first.round(6), axis=0)) == n


def test_names_are_shown_where_they_fit_and_left_out_where_they_would_collide():
    def sides(n, name="machine-{}"):
        positions, _ = place(n, [(i, (i + 1) % n) for i in range(n)])
        return name_sides(positions, [name.format(i) for i in range(n)])

    assert set(sides(8)) == {"top", "bottom"}
    assert sides(40) == ()
    assert sides(16, "m{}")
    assert sides(16, "a much longer name {}") == ()


def test_a_large_network_says_that_names_and_numbers_are_left_out():
    n = 200
    ring = [(i, (i + 1) % n) for i in range(n)]
    chart = network_chart([f"m{i}" for i in range(n)], ring, range(n), 2)
    assert not chart.show_ranks
    assert chart.sides == ()
    assert chart.fill_edges == ()
    assert (
        "With 200 variables, names, numbers and the 197 edges that elimination adds are left out"
        in chart.caption
    )


def test_ranks_follow_the_order_of_elimination():
    chart = network_chart(["a", "b", "c"], [(0, 1), (1, 2)], [2, 0, 1], 1)
    assert chart.ranks == (2, 3, 1)
    assert "induced width 1" in chart.caption


def test_parts_that_are_not_connected_stand_apart():
    squares = [(4 * part + i, 4 * part + (i + 1) % 4) for part in range(3) for i in range(4)]
    positions, _ = place(14, squares)
    assert positions.min() >= 0
    assert positions.max() <= 1
    apart = np.linalg.norm(positions[:, np.newaxis] - positions, axis=-1)[np.triu_indices(14, 1)]
    assert apart.min() > 0.1
    parts = [positions[4 * part : 4 * part + 4] for part in range(3)]
    for one, other in combinations(parts, 2):
        low, high = np.maximum(one.min(0), other.min(0)), np.minimum(one.max(0), other.max(0))
        assert (low > high).any(), "their boxes overlap"
    names = [f"cell-{i // 4}-{i % 4}" for i in range(14)]
    assert len(name_sides(positions, names, 0.45)) == 14
    assert not name_sides(positions, names, 3.0)


def test_long_names_lose_their_middle():
    """Of names that begin alike, the ends say which is which."""
    shown = [printable(f"person-waiting-up(f{floor})", 16) for floor in range(3)]
    assert shown[0] == "person-w…-up(f0)"
    assert len(set(shown)) == 3
    assert all(len(one) == 16 for one in shown)
    assert printable("machine-12", 16) == "machine-12"
