from itertools import permutations

import pytest
from elimination_oracles import bucket_elimination, networks, random_entries, ring
from hypothesis import given
from hypothesis import strategies as st

from fsmdp.elimination import best_order, check_width, given_order, min_degree, min_fill
from fsmdp.errors import ModelError, WidthError

RULES = [min_fill, min_degree, best_order]


def chain(n):
    return [(i, i + 1) for i in range(n - 1)]


def cycle(n):
    return [tuple(sorted((i, (i + 1) % n))) for i in range(n)]


def grid(k):
    across = [(i * k + j, i * k + j + 1) for i in range(k) for j in range(k - 1)]
    down = [(i * k + j, i * k + j + k) for i in range(k - 1) for j in range(k)]
    return across + down


@pytest.mark.parametrize("rule", RULES)
def test_a_chain_has_width_one_and_a_cycle_width_two(rule):
    assert rule(chain(12), [2] * 12).induced_width == 1
    assert rule(cycle(12), [2] * 12).induced_width == 2


@pytest.mark.parametrize("k", [2, 3, 4])
def test_a_small_grid_has_the_width_of_its_side(k):
    assert best_order(grid(k), [2] * k**2, tries=8).induced_width == k


@pytest.mark.parametrize("rule", RULES)
def test_a_scope_of_all_variables_is_one_table(rule):
    order = rule([(0, 1, 2)], [2, 3, 5])
    assert order.largest_table == 30
    assert order.induced_width == 2


@pytest.mark.parametrize("rule", RULES)
def test_variables_in_no_scope_stand_last_and_cost_nothing(rule):
    order = rule([(1, 3)], [2] * 5)
    assert sorted(order.variables) == list(range(5))
    assert set(order.variables[2:]) == {0, 2, 4}
    assert order.total_entries == 4 + 2
    assert rule([], [2, 2]).largest_table == 1


@given(networks(), st.sampled_from(RULES))
def test_predicted_sizes_are_those_of_the_tables_made(network, rule):
    scopes = [factor.at(0) for factor in network.factors]
    order = rule(scopes, network.sizes)
    _, made = bucket_elimination(network, random_entries(network), 0, order.variables)
    assert order.total_entries == sum(table.size for table in made)
    assert order.largest_table == max((table.size for table in made), default=1)
    assert order.induced_width == max((table.ndim - 1 for table in made), default=0)


@pytest.mark.parametrize("variables", list(permutations(range(4))))
def test_an_order_of_the_users_own_is_costed_as_given(variables):
    network = ring(4)
    order = given_order(variables, network.default_scopes, network.sizes)
    _, made = bucket_elimination(network, random_entries(network), 0, variables)
    assert order.variables == variables
    assert order.total_entries == sum(table.size for table in made)


@pytest.mark.parametrize("variables", [(0, 1), (0, 1, 1), (0, 1, 3), (0, 1, 2, 3)])
def test_an_order_that_is_no_permutation_is_refused(variables):
    with pytest.raises(ModelError, match="expected each position 0 to 2 exactly once"):
        given_order(variables, [(0, 1)], [2, 2, 2])


def test_ties_are_broken_by_the_seed():
    scopes, sizes = cycle(30), [2] * 30
    assert min_fill(scopes, sizes, seed=1).variables == min_fill(scopes, sizes, seed=1).variables
    assert min_fill(scopes, sizes, seed=1).variables != min_fill(scopes, sizes, seed=2).variables


def test_more_tries_never_cost_more():
    totals = [best_order(grid(6), [2] * 36, tries=tries).total_entries for tries in (1, 2, 6)]
    assert totals == sorted(totals, reverse=True)


def test_a_thousand_variables_and_a_dense_graph_are_ordered():
    assert best_order(cycle(1000), [2] * 1000).largest_table == 8
    complete = [(i, j) for i in range(100) for j in range(i)]
    order = best_order([tuple(sorted(pair)) for pair in complete], [3] * 100)
    assert order.largest_table == 3**100


def test_a_table_above_the_limit_is_refused_with_advice():
    order = best_order([tuple(range(31))], [2] * 64)
    with pytest.raises(WidthError) as refusal:
        check_width(order, limit=2**26)
    assert str(refusal.value) == (
        "eliminating 31 variables needs a table of 2^31 entries (16 GiB) at variable 0 "
        "(induced width 30, limit 2^26); use a smaller basis, pass elimination_order=..., "
        "allow larger tables with limit=..., or bound maxima from above with mini_bucket=...."
    )
    with pytest.raises(WidthError, match="at 'cell-0'"):
        check_width(order, names=[f"cell-{i}" for i in range(64)])
    check_width(order, limit=2**31)


def test_an_order_prints_its_cost():
    order = best_order(cycle(12), [2] * 12)
    assert repr(order) == (
        "Order(12 variables, induced width 2, largest table 8 entries, total 86 entries)"
    )
    assert "induced width         2" in order.summary()
