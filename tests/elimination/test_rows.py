import numpy as np
import pytest
from elimination_oracles import enumerated_maxima, networks, random_entries, ring
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import linprog

from fsmdp.elimination import Network, build, given_order, lp_rows, shared_schedule
from fsmdp.model.cases import Cases


def with_constant(network):
    """The same network and a constant, through which the LP below lowers every F_a alike."""
    return Network(network.sizes, network.n_actions, (*network.factors, Cases(((),))))


def smallest_feasible_shift(network, rows, entries):
    """min t such that messages @ u >= gather @ (entries - t * constant) for some u."""
    constant = np.zeros(network.n_entries)
    constant[-1] = 1.0
    entries = np.where(constant, 0.0, entries)
    matrix = sparse.hstack([sparse.csc_matrix((rows.gather @ constant)[:, None]), rows.messages])
    cost = np.eye(1, matrix.shape[1])[0]
    bound = -(rows.gather @ entries)
    solution = linprog(cost, A_ub=-matrix, b_ub=bound, bounds=(None, None), method="highs")
    assert solution.status == 0
    return solution.fun, enumerated_maxima(network, entries).max()


@pytest.mark.parametrize("method", ["shared", "separate"])
@settings(max_examples=30)
@given(networks(most_variables=4), st.integers(0, 99))
def test_the_rows_hold_exactly_when_no_sum_exceeds_zero(method, network, seed):
    network = with_constant(network)
    elimination = build(network, method=method)
    rows = elimination.rows()
    found, expected = smallest_feasible_shift(network, rows, random_entries(network, seed))
    assert found == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("pairs", [False, True])
def test_shared_and_separate_rows_have_the_same_optimum_on_a_ring(pairs):
    network = with_constant(ring(7, pairs))
    entries = random_entries(network)
    for method in ("shared", "separate"):
        rows = build(network, method=method).rows()
        found, expected = smallest_feasible_shift(network, rows, entries)
        assert found == pytest.approx(expected, abs=1e-7)


@given(networks(), st.sampled_from(["shared", "separate", "auto"]))
def test_the_number_of_rows_and_columns_is_known_before_they_are_built(network, method):
    elimination = build(network, method=method)
    rows = elimination.rows()
    assert rows.n_rows == elimination.n_rows == rows.messages.shape[0]
    assert rows.n_messages == elimination.n_columns
    assert rows.gather.shape[1] == network.n_entries
    assert rows.gather.nnz + rows.messages.nnz <= elimination.schedule.n_terms + rows.n_rows


@given(networks(), st.integers(0, 99))
def test_true_messages_are_feasible_and_every_one_is_tight_somewhere(network, seed):
    entries = random_entries(network, seed)
    entries -= 10.0  # enough for no F_a to exceed zero, when there is any factor at all
    elimination = build(network)
    rows = elimination.rows()
    buffer = elimination.maximise(entries)._buffer[network.n_entries :]
    finals = {elimination.schedule.steps[step].output for step in elimination.schedule.finals}
    messages = np.array([value for at, value in enumerate(buffer) if at not in finals])
    slack = rows.messages @ messages - rows.gather @ entries
    made_in_row = rows.messages.maximum(0)
    for column in range(rows.n_messages):
        smallest = slack[made_in_row[:, [column]].nonzero()[0]].min()
        assert smallest == pytest.approx(0.0, abs=1e-9)


def test_a_ring_of_forty_needs_fewer_rows_than_one_pass_each_way_and_one_clique_per_action():
    assert build(ring(40)).n_rows <= 920
    assert build(ring(40, pairs=True)).n_rows <= 4_700
    assert build(ring(40), method="separate").n_rows > 6_000


def test_rows_grow_in_proportion_to_the_ring():
    assert build(ring(400)).n_rows <= 10 * 960
    assert build(ring(1000)).rows().n_rows <= 25 * 960


@given(networks(most_factors=25), st.sampled_from(["shared", "separate"]))
def test_every_message_is_used(network, method):
    rows = build(network, method=method).rows()
    assert (rows.messages.minimum(0).sum(axis=0) < 0).all()


def test_messages_go_one_way_where_no_action_differs():
    network = Network((2,) * 6, 1, tuple(Cases(((i, i + 1),)) for i in range(5)))
    order = given_order(range(6), network.all_scopes, network.sizes)
    rows = lp_rows(shared_schedule(network, order))
    assert rows.n_rows == 5 * 4  # one clique for each pair, upward only
