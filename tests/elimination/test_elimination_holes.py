"""Claims that no other test would notice to be broken: found by putting mistakes in by hand."""

from itertools import pairwise

import numpy as np
import pytest
from elimination_oracles import bucket_elimination, random_entries, ring

from fsmdp.elimination import JunctionTree, Network, best_order, build, min_fill
from fsmdp.elimination.max_sum import flatten
from fsmdp.model.cases import Cases


def two_chains():
    """Two actions with nothing in common: the variables are chained in an order of each's own."""
    shuffled = [3, 0, 2, 4, 1]
    factors = [Cases(((i, i + 1), ()), {1: 1}) for i in range(4)]
    factors += [Cases(((), tuple(sorted(pair))), {1: 1}) for pair in pairwise(shuffled)]
    return Network((2,) * 5, 2, tuple(factors))


def test_a_network_for_each_class_is_taken_where_it_needs_fewer_rows():
    network = two_chains()
    rows = {method: build(network, method=method).n_rows for method in ("shared", "separate")}
    assert rows["separate"] < rows["shared"]
    assert build(network).method == "separate"
    assert build(network).n_rows == rows["separate"]


@pytest.mark.parametrize("exceptions", [{}, {1: 1}], ids=["no action differs", "one differs"])
def test_messages_reach_all_the_way_through_a_deep_tree(exceptions):
    """Where few actions differ, most messages are needed by other messages only."""
    n_variables = 40
    factors = [Cases(((i, i + 1),)) for i in range(n_variables - 1)]
    factors.append(Cases(((0,), (0,)), exceptions))
    network = Network((2,) * n_variables, 2, tuple(factors))
    entries = random_entries(network)
    along = range(n_variables)
    expected = [bucket_elimination(network, entries, action, along)[0] for action in range(2)]
    for order in (along, along[::-1], None):
        elimination = build(network, elimination_order=order, method="shared")
        np.testing.assert_allclose(elimination.maximise(entries).values, expected)


def test_the_reason_names_the_ways_that_were_not_taken():
    assert "one network for each class of actions is expected to need more" in build(ring(40)).why


def test_min_fill_begins_where_no_edge_is_added():
    cycle = [(0, 1), (1, 2), (2, 3), (0, 3)]
    clique = (4, 5, 6, 7, 8)  # more neighbours, but each is already joined to each
    assert min_fill([*cycle, clique], [2] * 9).variables[0] in clique


@pytest.mark.parametrize("sizes", [(3, 2, 4, 5, 2, 3, 2, 4, 3), (2,) * 14, (3, 5000)])
def test_blocks_are_no_larger_than_they_may_be_or_than_one_axis(sizes):
    everything = tuple(range(len(sizes)))
    schedule = build(Network(sizes, 1, (Cases((everything,)),))).schedule
    assert flatten(schedule).largest_block <= max(1024, sizes[-1])


@pytest.mark.parametrize("leaves", [10, 18, 66])
def test_nodes_that_only_join_others_join_two_at_least(leaves):
    scopes = [(0, leaf) for leaf in range(1, leaves + 1)]
    sizes = [2] * (leaves + 1)
    tree = JunctionTree.from_order(best_order(scopes, sizes), sizes)
    joining = [node for node, gone in enumerate(tree.residuals) if not gone]
    assert joining
    assert all(len(tree.children[node]) > 1 for node in joining)
