import numpy as np
import pytest
from elimination_oracles import all_states, enumerated_maxima, networks, random_entries, ring
from hypothesis import given, settings
from hypothesis import strategies as st
from test_rows import smallest_feasible_shift, with_constant

from fsmdp.elimination import Network, build, build_within, widened
from fsmdp.errors import WidthError
from fsmdp.model.cases import Cases

METHODS = ["shared", "separate", "auto"]


def complete(n_variables, n_actions=3):
    """All pairs of variables; each action changes the tables of one variable."""
    factors = []
    for i in range(n_variables):
        for j in range(i):
            exceptions = {a: 1 for a in range(1, n_actions) if a in (i, j)}
            factors.append(Cases(((j, i), (j, i)), exceptions))
    return Network((2,) * n_variables, n_actions, tuple(factors))


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=40)
@given(networks(), st.integers(1, 12), st.integers(0, 99))
def test_mini_buckets_never_stay_below_the_maximum(method, network, size, seed):
    entries = random_entries(network, seed)
    found = build(network, method=method, mini_bucket=size)
    exact = enumerated_maxima(network, entries)
    values = found.maximise(entries).values
    assert (values >= exact - 1e-9).all()
    if found.is_exact:
        np.testing.assert_allclose(values, exact, atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("size", [4, 8, 32, 256])
def test_mini_buckets_keep_to_their_size_on_a_complete_network(method, size):
    network = complete(8)
    found = build(network, method=method, mini_bucket=size)
    assert found.largest_table <= size
    assert found.is_exact == (size == 256)
    entries = random_entries(network, 3)
    exact = enumerated_maxima(network, entries)
    values = found.maximise(entries).values
    assert (values >= exact - 1e-9).all()
    if not found.is_exact:
        assert "mini-buckets" in found.why
        assert values.max() > exact.max()  # there is a price


@settings(max_examples=30)
@given(networks(most_variables=4), st.integers(1, 9), st.integers(0, 99))
def test_rows_of_mini_buckets_have_the_optimum_of_their_max_sum(network, size, seed):
    network = with_constant(network)
    entries = random_entries(network, seed)
    found = build(network, mini_bucket=size)
    shift, exact = smallest_feasible_shift(network, found.rows(), entries)
    entries[-1] = 0.0
    assert shift == pytest.approx(found.maximise(entries).values.max(), abs=1e-7)
    assert shift >= exact - 1e-7


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=40)
@given(networks(), st.sampled_from([None, 2, 4, 9]), st.integers(0, 99))
def test_picked_entries_add_up_to_the_value_found(method, network, size, seed):
    entries = random_entries(network, seed)
    maximum = build(network, method=method, mini_bucket=size).maximise(entries)
    picked = maximum.picked()
    np.testing.assert_allclose(picked @ entries, maximum.values, atol=1e-9)
    # At one and the same state everywhere, what is picked is one entry of each factor.
    counts = np.asarray(picked.sum(axis=1)).ravel()
    np.testing.assert_allclose(counts, len(network.factors))


def test_picked_entries_of_an_exact_elimination_are_those_of_its_maximiser():
    network = ring(5, pairs=True)
    maximum = build(network).maximise(random_entries(network))
    picked = maximum.picked([2]).toarray()[0]
    state = maximum.state(2)
    others = np.random.default_rng(1).normal(size=network.n_entries)
    assert picked @ others == pytest.approx(float(network.value(others, state, 2)))
    assert len(all_states(network)) == 32


def test_a_budget_is_kept_by_the_largest_mini_buckets_that_fit():
    network = complete(12)
    assert build_within(network, 10**5).is_exact
    sizes = []
    for budget in (3000, 1500, 1000):
        found = build_within(network, budget)
        assert not found.is_exact
        assert found.n_rows <= budget
        sizes.append(found.largest_table)
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[-1]


def test_what_no_exact_elimination_can_do_has_a_bound_within_any_budget():
    network = complete(60)
    with pytest.raises(WidthError):
        build(network)
    entries = random_entries(network)
    values = [build_within(network, b).maximise(entries).value for b in (10**4, 10**6)]
    states = np.random.default_rng(0).integers(2, size=(1000, 60))
    assert min(values) >= network.value(entries, states, 0).max()
    assert values[1] < values[0]  # a larger budget, a tighter bound


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=40)
@given(networks(), st.sampled_from([None, 2, 4, 9]), st.integers(0, 99))
def test_slack_is_what_a_bound_exceeds_its_state_by(method, network, size, seed):
    entries = random_entries(network, seed)
    found = build(network, method=method, mini_bucket=size)
    maximum = found.maximise(entries)
    for action in range(network.n_actions):
        slack = maximum.slack(action)
        earned = float(network.value(entries, maximum.state(action), action))
        assert slack.min(initial=0.0) >= -1e-9
        assert slack.sum() == pytest.approx(maximum.values[action] - earned, abs=1e-8)
        if found.is_exact:
            assert np.abs(slack).sum() < 1e-8


@pytest.mark.parametrize("method", METHODS)
def test_wider_mini_buckets_where_slack_is_largest_lead_to_the_maximum(method):
    network = complete(9)
    entries = random_entries(network, 1)
    exact = enumerated_maxima(network, entries).max()
    found, budget = build(network, method=method, mini_bucket=8), 10**6
    values, largest = [], []
    while True:
        maximum = found.maximise(entries)
        values.append(maximum.value)
        assert maximum.value >= exact - 1e-9
        wider = widened(found, maximum.slack(maximum.action), budget)
        if wider is None:
            break
        largest.append(wider.n_rows)
        found = wider
    assert len(values) > 2
    assert values[-1] == pytest.approx(exact)
    assert widened(build(network, mini_bucket=8), np.ones(9), 10) is None
    assert max(largest) <= budget


def test_room_goes_to_the_variables_of_most_slack():
    network = complete(10)
    found = build(network, method="separate", mini_bucket=16)
    slack = np.zeros(10)
    slack[[2, 7]] = 1.0
    wider = widened(found, slack, 10**6)
    assert wider.room.more == {2: 64, 7: 64}
    assert wider.room.most == 16
