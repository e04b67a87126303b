from itertools import combinations

from elimination_oracles import networks
from hypothesis import given
from hypothesis import strategies as st

from fsmdp.elimination import JunctionTree, best_order
from fsmdp.elimination.junction_tree import MOST_CHILDREN


def tree_of(scopes, sizes):
    return JunctionTree.from_order(best_order(scopes, sizes), sizes)


def is_connected(tree, nodes):
    """All but one of the nodes have their parent among them."""
    return sum(tree.parents[node] not in nodes for node in nodes) <= 1


@given(networks(most_variables=8, most_factors=10))
def test_the_nodes_of_any_variable_are_connected(network):
    tree = tree_of(network.all_scopes, network.sizes)
    for variable in range(network.n_variables):
        nodes = {node for node, scope in enumerate(tree.scopes) if variable in scope}
        assert is_connected(tree, nodes)


@given(networks(most_variables=8, most_factors=10))
def test_every_variable_of_a_scope_is_eliminated_once_and_every_scope_has_a_node(network):
    tree = tree_of(network.all_scopes, network.sizes)
    eliminated = [variable for residual in tree.residuals for variable in residual]
    assert sorted(eliminated) == sorted({v for scope in network.all_scopes for v in scope})
    for scope in filter(None, network.all_scopes):
        top = tree.top(scope)
        assert set(scope) <= set(tree.scopes[top])
        holders = [node for node, held in enumerate(tree.scopes) if set(scope) <= set(held)]
        assert tree.depths[top] == min(tree.depths[node] for node in holders)


@given(networks(most_variables=8, most_factors=10))
def test_no_clique_lies_inside_its_parent(network):
    tree = tree_of(network.all_scopes, network.sizes)
    for node, parent in enumerate(tree.parents):
        if parent >= 0 and tree.residuals[parent]:
            assert not set(tree.scopes[parent]) <= set(tree.scopes[node])


@given(networks(most_variables=7, most_factors=8), st.data())
def test_the_smallest_subtree_holds_the_scopes_in_the_fewest_nodes(network, data):
    tree = tree_of(network.all_scopes, network.sizes)
    possible = [scope for scope in network.all_scopes if scope]
    if not possible or len(tree.scopes) > 10:
        return
    scopes = data.draw(st.lists(st.sampled_from(possible), min_size=1, max_size=3))

    def holds(nodes):
        return all(any(set(s) <= set(tree.scopes[node]) for node in nodes) for s in scopes)

    nodes = tree.smallest_subtree(scopes)
    assert holds(nodes)
    assert is_connected(tree, nodes)
    for n_nodes in range(1, len(nodes)):
        for fewer in combinations(range(len(tree.scopes)), n_nodes):
            assert not (is_connected(tree, set(fewer)) and holds(fewer))


def test_a_scope_that_no_node_holds_is_reached_by_its_variables():
    tree = tree_of([(i, i + 1) for i in range(9)], [2] * 10)
    nodes = tree.smallest_subtree([(0, 9)])
    assert {0, 9} <= {variable for node in nodes for variable in tree.scopes[node]}
    assert is_connected(tree, nodes)


@given(networks(most_variables=8, most_factors=10))
def test_the_smallest_node_holds_the_scope_in_the_smallest_table(network):
    tree = tree_of(network.all_scopes, network.sizes)
    for scope in filter(None, network.all_scopes):
        node = tree.smallest_node(scope, tree.top(scope))
        sizes = [network.table_size(held) for held in tree.scopes if set(scope) <= set(held)]
        assert set(scope) <= set(tree.scopes[node])
        assert tree.table_sizes[node] == min(sizes)


def test_the_tree_of_a_long_ring_is_shallow():
    ring = [tuple(sorted((i, (i + 1) % 1000))) for i in range(1000)]
    assert max(tree_of(ring, [2] * 1000).depths) <= 12


def test_a_hub_never_has_many_children():
    star = tree_of([(0, leaf) for leaf in range(1, 300)], [2] * 300)
    islands = tree_of([(island,) for island in range(300)], [2] * 300)
    for tree in (star, islands):
        assert max(map(len, tree.children)) <= MOST_CHILDREN
        assert max(tree.depths) <= 5
