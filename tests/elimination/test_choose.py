from itertools import combinations
from unittest import mock

import numpy as np
import pytest
from elimination_oracles import enumerated_maxima, networks, random_entries, ring
from hypothesis import given

from fsmdp.elimination import Network, best_order, build
from fsmdp.errors import ModelError, WidthError
from fsmdp.model.cases import Cases


def own_parents(n_actions=30, side=6):
    """A grid by default; every action ties four cells anywhere together in its own way."""
    rng = np.random.default_rng(5)
    cells = range(side**2)
    factors = [Cases(((i, i + 1),)) for i in cells if (i + 1) % side]
    factors += [Cases(((i, i + side),)) for i in cells if i + side in cells]
    for action in range(1, n_actions):
        far = tuple(sorted(int(cell) for cell in rng.choice(side**2, 4, replace=False)))
        factors.append(Cases(((int(rng.integers(side**2)),), far), {action: 1}))
    return Network((2,) * side**2, n_actions, tuple(factors))


def one_star_for_each_action(n_variables):
    """All pairs of variables by default, but each action keeps those of one variable only."""
    factors = []
    for i, j in combinations(range(n_variables), 2):
        others = {action: 1 for action in range(n_variables) if action not in (i, j)}
        factors.append(Cases(((i, j), ()), others))
    return Network((2,) * n_variables, n_variables, tuple(factors))


def test_messages_are_shared_where_actions_differ_in_few_places():
    elimination = build(ring(40))
    assert elimination.method == "shared"
    assert elimination.why.startswith("shared messages: 920 table entries in all")
    assert "induced width  2" in elimination.summary()


@pytest.mark.parametrize("method", ["auto", "shared", "separate"])
def test_a_wide_default_that_no_action_has_in_full_costs_nothing(method):
    assert build(one_star_for_each_action(40), method=method).largest_table <= 8


def test_a_tree_of_the_default_scopes_is_used_where_actions_have_parents_of_their_own():
    network = own_parents()
    elimination = build(network)
    assert best_order(network.all_scopes, network.sizes).induced_width > 15
    assert elimination.induced_width <= 8
    assert elimination.why.startswith("shared messages on a tree of the default scopes: ")
    entries = random_entries(network)
    separate = build(network, method="separate").maximise(entries)
    np.testing.assert_allclose(elimination.maximise(entries).values, separate.values)


def test_each_class_gets_a_network_of_its_own_where_only_that_fits():
    elimination = build(own_parents(), limit=2**8)
    assert elimination.method == "separate"
    assert elimination.largest_table == 2**8
    assert "would need 512 at once, beyond the limit 256" in elimination.why


@pytest.mark.parametrize("method", ["auto", "shared", "separate"])
def test_a_network_too_wide_is_refused_before_anything_is_made(method):
    everything = tuple(range(200))
    pairs = [(i, j) for i in everything for j in everything if i < j]
    names = tuple(f"cell-{i}" for i in everything)
    network = Network((2,) * 200, 2, tuple(Cases((pair,)) for pair in pairs), names)
    with pytest.raises(WidthError) as refusal:
        build(network, method=method)
    assert str(refusal.value) == (
        "eliminating 200 variables needs a table of 2^200 entries (2^143 EiB) at 'cell-0' "
        "(induced width 199, limit 2^26); use a smaller basis, pass elimination_order=..., "
        "allow larger tables with limit=..., or bound maxima from above with mini_bucket=...."
    )


def test_messages_that_do_not_fit_together_are_refused():
    with (
        mock.patch("fsmdp.elimination.choose.ALWAYS_ROOM_FOR", 0),
        pytest.raises(WidthError, match="eliminating 40 variables needs messages of 417 entries"),
    ):
        build(ring(40), limit=8)


def test_an_order_of_the_users_own_is_followed_and_checked():
    network = ring(6)
    entries = random_entries(network)
    for method in ("auto", "shared", "separate"):
        maximum = build(network, elimination_order=[3, 1, 5, 0, 2, 4], method=method)
        np.testing.assert_allclose(
            maximum.maximise(entries).values, enumerated_maxima(network, entries)
        )
    with pytest.raises(ModelError, match="elimination_order: expected each position 0 to 5"):
        build(network, elimination_order=[0, 1, 2])


def test_an_unknown_method_is_refused():
    with pytest.raises(ModelError, match="expected 'auto', 'shared' or 'separate'"):
        build(ring(3), method="joint")


@given(networks())
def test_predicted_sizes_are_those_of_the_steps(network):
    elimination = build(network)
    sizes = [
        network.table_size(step.kept) * network.table_size(step.eliminated)
        for step in elimination.schedule.steps
    ]
    assert elimination.largest_table == max(sizes)
    assert elimination.n_rows == sum(sizes)
    kept = sum(network.table_size(step.kept) for step in elimination.schedule.steps)
    assert elimination.schedule.n_messages == kept


@given(networks(most_variables=8, most_factors=10, most_groups=1))
def test_steps_are_never_wider_than_their_order(network):
    order = best_order(network.all_scopes, network.sizes)
    elimination = build(network, method="shared")
    assert elimination.largest_table <= max(order.largest_table, 1)
    assert elimination.induced_width <= order.induced_width
