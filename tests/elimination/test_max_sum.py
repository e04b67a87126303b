from itertools import permutations
from unittest import mock

import numpy as np
import pytest
from elimination_oracles import (
    all_states,
    bucket_elimination,
    enumerated_maxima,
    networks,
    random_entries,
    ring,
)
from hypothesis import event, given
from hypothesis import strategies as st

from fsmdp.elimination import (
    MaxSum,
    Network,
    best_order,
    build,
    compiled_schedule,
    given_order,
    shared_schedule,
)
from fsmdp.model.cases import Cases


def assert_maximised(network, entries, maximum):
    """The maxima are right and the states attain them."""
    np.testing.assert_allclose(maximum.values, enumerated_maxima(network, entries), atol=1e-12)
    states = maximum.states()
    assert (states >= 0).all()
    assert (states < np.array(network.sizes)).all()
    attained = [network.value(entries, states[a], a) for a in range(network.n_actions)]
    np.testing.assert_allclose(attained, maximum.values, atol=1e-12)


@pytest.mark.parametrize("method", ["auto", "shared", "separate"])
@given(networks(), st.integers(0, 99), st.booleans())
def test_maximum_and_maximiser_equal_enumeration(method, network, seed, with_ties):
    entries = random_entries(network, seed, with_ties)
    maximum = build(network, method=method).maximise(entries)
    assert_maximised(network, entries, maximum)


@given(networks(), st.integers(0, 99))
def test_a_tree_of_the_default_scopes_alone_gives_the_same_maximum(network, seed):
    entries = random_entries(network, seed)
    order = best_order(network.default_scopes, network.sizes)
    assert_maximised(network, entries, MaxSum(shared_schedule(network, order)).maximise(entries))


@pytest.mark.parametrize("variables", list(permutations(range(4))))
@pytest.mark.parametrize("pairs", [False, True])
def test_maximum_does_not_depend_on_the_order(variables, pairs):
    network = ring(4, pairs)
    entries = random_entries(network)
    order = given_order(variables, network.all_scopes, network.sizes)
    assert_maximised(network, entries, MaxSum(shared_schedule(network, order)).maximise(entries))


@given(networks(), st.sampled_from([1, 2, 3, 4, 7]))
def test_maximum_does_not_depend_on_the_blocks_of_a_table(network, block):
    entries = random_entries(network)
    with mock.patch.object(compiled_schedule, "BLOCK", block):
        elimination = build(network)
        maximum = elimination.maximise(entries)
    assert_maximised(network, entries, maximum)


@given(networks(most_factors=10), st.integers(1, 3), st.integers(2, 3))
def test_maximum_does_not_depend_on_what_is_added_up_early(network, terms, children):
    entries = random_entries(network)
    with (
        mock.patch("fsmdp.elimination.shared.MOST_TERMS", terms),
        mock.patch("fsmdp.elimination.junction_tree.MOST_CHILDREN", children),
    ):
        elimination = build(network, method="shared")
    assert_maximised(network, entries, elimination.maximise(entries))


@pytest.mark.parametrize("method", ["shared", "separate"])
@given(networks(most_factors=10), st.integers(0, 99))
def test_maximum_does_not_depend_on_what_is_folded_into_what(method, network, seed):
    entries = random_entries(network, seed)
    plain = build(network, method=method).schedule
    with (
        mock.patch("fsmdp.elimination.schedule.LARGE", 1),
        mock.patch("fsmdp.elimination.schedule.FOLDED", 2),
    ):
        elimination = build(network, method=method)
    event(f"folded: {len(elimination.schedule.steps) > len(plain.steps)}")
    assert_maximised(network, entries, elimination.maximise(entries))


def test_small_tables_are_not_added_to_every_entry_of_a_large_one():
    many = tuple(range(14))
    ends = (*many[:3], *many[11:])
    wide = (Cases((many[:11],)), Cases((many[3:],)), Cases((ends,)))
    factors = (*wide, *(Cases(((at,),)) for at in many))
    network = Network((2,) * 14, 1, factors)
    elimination = build(network)
    assert elimination.largest_table == 2**14
    assert elimination.schedule.n_terms < 5 * 2**14
    entries = random_entries(network)
    assert_maximised(network, entries, elimination.maximise(entries))


def test_a_table_of_many_blocks_is_maximised():
    sizes = (3, 2, 4, 5, 2, 3, 2, 4, 3)
    everything = tuple(range(9))
    factors = (Cases((everything,)), Cases(((2, 7), (0, 8)), {1: 1}), Cases(((4,),)))
    network = Network(sizes, 2, factors)
    entries = random_entries(network)
    assert build(network).largest_table == 17_280 > compiled_schedule.BLOCK
    assert_maximised(network, entries, build(network).maximise(entries))


def test_many_tables_at_one_place_with_an_exception_each_are_maximised():
    factors = tuple(Cases(((0, 1), (1,)), {action: 1}) for action in range(16))
    constants = tuple(Cases(((), ()), {action: 1}) for action in range(6, 20))
    network = Network((2, 3, 2), 20, (*factors, *constants, Cases(((1, 2),))))
    entries = random_entries(network)
    assert_maximised(network, entries, build(network, method="shared").maximise(entries))


def test_actions_that_differ_in_the_same_place_share_all_but_that():
    def network(actions_each):
        chain = [Cases(((i, i + 1),)) for i in range(7)]
        groups = [((i,), *[(i,)] * actions_each) for i in range(8)]
        own = [
            Cases(scopes, {actions_each * i + g: g for g in range(1, actions_each + 1)})
            for i, scopes in enumerate(groups)
        ]
        return Network((3,) * 8, 8 * actions_each + 1, (*chain, *own))

    few, many = build(network(1)), build(network(5))
    assert many.n_rows <= few.n_rows + 8 * 6 * 3
    entries = random_entries(many.network)
    assert_maximised(many.network, entries, many.maximise(entries))


def test_exceptions_over_variables_that_the_default_never_uses_are_maximised():
    factors = (Cases(((0,), (1, 2), (3,)), {1: 1, 2: 2}), Cases(((), (3,)), {2: 1}))
    network = Network((2, 3, 2, 2, 2), 4, factors)
    entries = random_entries(network)
    order = best_order(network.default_scopes, network.sizes)
    assert_maximised(network, entries, MaxSum(shared_schedule(network, order)).maximise(entries))


def test_the_lowest_index_wins_ties():
    network = Network((3, 2), 2, (Cases(((0, 1),)),))
    maximum = build(network).maximise(np.zeros(6))
    assert maximum.action == 0
    assert maximum.state(1).tolist() == [0, 0]


def test_a_network_without_factors_is_zero_everywhere():
    maximum = build(Network((2, 2), 3, ())).maximise([])
    assert maximum.values.tolist() == [0, 0, 0]
    assert maximum.states().tolist() == [[0, 0]] * 3


def test_new_entries_leave_earlier_results_alone():
    network = ring(5)
    elimination = build(network)
    first = random_entries(network, 1)
    maximum = elimination.maximise(first)
    elimination.maximise(random_entries(network, 2))
    assert_maximised(network, first, maximum)


def test_states_are_those_of_the_actions_asked_for():
    network = ring(6)
    entries = random_entries(network)
    maximum = build(network).maximise(entries)
    np.testing.assert_array_equal(maximum.states([4, 2]), maximum.states()[[4, 2]])
    np.testing.assert_array_equal(maximum.state(5), maximum.states()[5])
    assert maximum.value == maximum.values.max()
    assert maximum.action == maximum.values.argmax()


def test_a_ring_of_a_thousand_machines_agrees_with_plain_elimination():
    network = ring(1000)
    entries = random_entries(network)
    elimination = build(network)
    maximum = elimination.maximise(entries)
    assert elimination.induced_width == 2
    for action in (0, 1, 2, 500, 999, 1000):
        variables = range(1000) if action != 1 else range(999, -1, -1)
        value, _ = bucket_elimination(network, entries, action, variables)
        assert maximum.values[action] == pytest.approx(value, abs=1e-9)
        attained = network.value(entries, maximum.state(action), action)
        assert attained == pytest.approx(value, abs=1e-9)


def test_a_star_costs_in_proportion_to_its_leaves():
    def star(n_leaves):
        hub = [Cases(((0,), ()), {1: 1})]
        leaves = [Cases(((0, i), ()), {i + 1: 1}) for i in range(1, n_leaves + 1)]
        return Network((2,) * (n_leaves + 1), n_leaves + 2, (*hub, *leaves))

    small, large = build(star(200)), build(star(400))
    assert large.schedule.n_terms < 2.1 * small.schedule.n_terms
    network = star(400)
    entries = random_entries(network)
    maximum = large.maximise(entries)
    by_leaf = entries[3:].reshape(400, 5)[:, :4].reshape(400, 2, 2).max(axis=2)  # (leaf, hub)
    constants = entries[3:].reshape(400, 5)[:, 4]
    by_hub = entries[:2] + by_leaf.sum(axis=0)
    expected = [by_hub.max(), (by_leaf.sum(axis=0) + entries[2]).max()]
    expected += [(by_hub - by_leaf[i]).max() + constants[i] for i in range(400)]
    np.testing.assert_allclose(maximum.values, expected)


def test_all_states_of_a_small_network_are_never_above_the_maximum():
    network = ring(6, pairs=True)
    entries = random_entries(network, 3)
    maximum = build(network).maximise(entries)
    for action in range(network.n_actions):
        values = network.value(entries, all_states(network), action)
        assert values.max() <= maximum.values[action] + 1e-12
