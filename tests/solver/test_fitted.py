"""Fitted values: exact where the basis and the pool allow it, and no worse than their baselines."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fsmdp
from fsmdp import Basis, Fitted, domains, evaluate_exactly, solve_exactly
from fsmdp.bounds.clock import NO_LIMIT, Clock, Stopped
from fsmdp.errors import SizeError
from fsmdp.policies.resolve import resolve
from fsmdp.solver.fitting import (
    Choices,
    Fitting,
    add_products,
    backup_size,
    backups_of,
    by_functions,
    by_states,
    compile_features,
    empty_pool,
    extensions,
    fill_values,
    first_basis,
    fit_step,
    gains_of,
    targets_of,
    with_states,
)
from fsmdp.solver.judge import arena_of

PATIENT = settings(max_examples=25, deadline=None)


def random_model(seed, horizon=4):
    return domains.random_model(seed, horizon=horizon)


def every_state(model):
    return np.ascontiguousarray(np.indices(model.sizes).reshape(len(model.sizes), -1).T)


@PATIENT
@given(st.integers(0, 10**6))
def test_targets_are_exact_backups(seed):
    model = random_model(seed)
    basis = Basis.pairs(model)
    backups, features = backups_of(model, basis), compile_features(basis.bind(model.variables))
    weights = np.random.default_rng(seed).normal(size=len(basis))
    states = every_state(model)
    values = np.zeros(len(states))
    fill_values(features, weights, states, values)
    np.testing.assert_allclose(values, [basis.evaluate(s) @ weights for s in states], atol=1e-12)
    flat = solve_exactly(model).flat
    wanted = (flat.rewards + model.discount * flat.transitions @ values).max(axis=0)
    found = targets_of(backups, backups.entries(weights), states)
    np.testing.assert_allclose(found, wanted, atol=1e-10)


@PATIENT
@given(st.integers(0, 10**6))
def test_a_step_is_fitted_as_by_dense_least_squares(seed):
    model = random_model(seed)
    basis = Basis.pairs(model)
    backups, features = backups_of(model, basis), compile_features(basis.bind(model.variables))
    rng = np.random.default_rng(seed)
    states = every_state(model)[rng.integers(0, model.n_states, 40)]
    counts = rng.integers(1, 5, 40).astype(float)
    later = rng.normal(size=len(basis))
    entries = backups.entries(later)
    targets = targets_of(backups, entries, states)
    dense = np.array([basis.evaluate(state) for state in states])
    products, moments = np.zeros((len(basis), len(basis))), np.zeros(len(basis))
    add_products(features, states, counts, targets, products, moments)
    np.testing.assert_allclose(
        np.tril(products) + np.tril(products, -1).T, dense.T @ (counts[:, None] * dense), atol=1e-9
    )
    np.testing.assert_allclose(moments, dense.T @ (counts * targets), atol=1e-9)
    ridge = 1e-2
    found = fit_step(backups, features, states, counts, entries, later, ridge)
    middle = counts @ (targets - dense @ later) / counts.sum()

    def loss(weights):
        centred = weights - later
        centred[0] -= middle
        penalty = centred**2 @ np.array([1e-3, *[1.0] * (len(basis) - 1)])
        return counts @ (dense @ weights - targets) ** 2 + ridge * counts.sum() * penalty

    for _ in range(20):
        assert loss(found) <= loss(found + 1e-4 * rng.normal(size=len(found))) + 1e-12


@PATIENT
@given(st.integers(0, 10**6), st.sampled_from([1e-6, 1e-3, 1e-1]))
def test_the_dual_form_has_the_weights_of_the_normal_equations(seed, ridge):
    model = random_model(seed)
    features = compile_features(Basis.pairs(model).bind(model.variables))
    rng = np.random.default_rng(seed)
    states = every_state(model)[rng.integers(0, model.n_states, 1 + seed % 40)]
    counts = rng.integers(1, 5, len(states)).astype(float)
    penalty = np.full(features.n_functions, ridge * counts.sum())
    given = (features, states, counts, rng.normal(size=len(states)), penalty)
    np.testing.assert_allclose(by_states(*given), by_functions(*given), rtol=1e-6, atol=1e-8)


def test_what_few_states_show_is_not_forgotten_from_step_to_step():
    """A place that pays for ever, among many: its values are not drawn to the others' mean."""
    n_places, horizon = 40, 30
    model = fsmdp.FactoredMDP(
        [fsmdp.Variable("place", n_places)],
        ["stay"],
        [fsmdp.Conditional("place", fsmdp.Case(fsmdp.ANY, ["place"], np.eye(n_places)))],
        [fsmdp.Reward("pay", fsmdp.Case(fsmdp.ANY, ["place"], np.eye(n_places)[5]))],
        horizon=horizon,
    )
    fitting = Fitting(model, Basis.singles(model), Choices(), lambda: None)
    fitting.add_states(np.repeat(np.arange(n_places)[:, None, None], horizon, axis=1))
    fitting.fit(lambda: None)
    values = fitting.weights[0] @ np.array([fitting.basis.evaluate([p]) for p in range(n_places)]).T
    assert values[5] == pytest.approx(horizon, rel=0.05)
    assert np.abs(np.delete(values, 5)).max() < 0.5


def test_functions_of_the_largest_tables_are_left_out_when_memory_is_short():
    model = domains.sysadmin(6, horizon=5)
    fitting = Fitting(model, Basis.pairs(model), Choices(), lambda: None)
    assert fitting.trim(lambda: None) == 0
    before, numbers = len(fitting.basis), fitting.backups.n_entries
    with mock.patch("fsmdp.solver.parameters.FIT_NUMBERS", 5 * numbers // 2):
        left_out = fitting.trim(lambda: None)
        assert 0 < left_out == before - len(fitting.basis)
        assert fitting.trim(lambda: None) == 0
    sizes = {len(table.scope) for table in fitting.basis}
    assert {0, 1} <= sizes
    assert set(Basis.singles(model).scopes) <= set(fitting.basis.scopes)
    assert fitting.backups.n_entries < numbers


def test_the_policy_is_optimal_where_values_are_in_the_span():
    # V* of both is linear in the basis, so that a pool that spans it is fitted without error.
    influence, block = domains.influence(4, horizon=5), domains.exogenous_block(3, horizon=5)
    for model, basis in (
        (influence, Basis.singles(influence)),
        (block, domains.exogenous_basis(block)),
    ):
        exact = solve_exactly(model)
        rng = np.random.default_rng(0)
        fitting = Fitting(model, basis, Choices(ridge=1e-13), lambda: None)
        every = every_state(model)
        few = every[rng.choice(len(every), min(len(every), 4 * len(basis)), replace=False)]
        fitting.add_states(np.repeat(few[:, None], model.horizon, axis=1))
        dense = np.array([basis.bind(model.variables).evaluate(state) for state in few])
        assert np.linalg.matrix_rank(dense) == len(basis)
        policy = fitting.fit(lambda: None)
        np.testing.assert_allclose(evaluate_exactly(model, policy), exact.values[0], atol=1e-6)


def test_discounted_values_approach_the_optimum():
    model = domains.sysadmin(4, horizon=None, discount=0.9)
    plan = Fitted(rounds=3, episodes=100).plan(model, Basis.blocks(model, [range(4)]))
    exact = solve_exactly(model)
    earned = evaluate_exactly(model, plan)
    assert float(np.max(exact.values[0] - earned)) < 0.02 * abs(exact.start_value)


def test_the_same_seed_gives_the_same_plan_and_rounds_improve_on_chance():
    model = domains.sysadmin(10, horizon=20)
    plans = [Fitted(rounds=3, episodes=100, seed=3).plan(model) for _ in range(2)]
    np.testing.assert_array_equal(plans[0].q_entries, plans[1].q_entries)
    assert [c.mean for c in plans[0].candidates] == [c.mean for c in plans[1].candidates]
    chance = fsmdp.rollout(model, "random", 1000)
    fitted = fsmdp.rollout(model, plans[0], 1000)
    assert fitted.mean > chance.mean + 3 * (fitted.standard_error + chance.standard_error)


def test_a_fit_without_time_hands_out_a_plan():
    plan = Fitted(time_limit=0).plan(domains.sysadmin(6))
    assert plan.status == "time-limit"
    assert plan.upper_bound == plan.bound.trivial


@pytest.fixture
def small_records(monkeypatch):
    monkeypatch.setattr("fsmdp.solver.parameters.RECORDED_NUMBERS", 2**10)


@pytest.mark.usefixtures("small_records")
@pytest.mark.parametrize(("horizon", "shape"), [(10, (25, 10, 4)), (None, (60, 4, 4))])
def test_more_states_than_fit_are_not_recorded(horizon, shape):
    """Of a finite horizon whole episodes, of an infinite one the first steps of each."""
    model = domains.sysadmin(4, horizon=horizon, discount=0.9)
    arena, arrays = arena_of(model), resolve(model, "random").arrays
    found = arena.states(arrays, 60, 0)
    assert found.shape == shape
    assert (found[:, 0] == 1).all()  # all machines run at the start


@pytest.mark.usefixtures("small_records")
def test_an_episode_too_long_to_be_recorded_is_refused():
    model = domains.sysadmin(4, horizon=300)
    with pytest.raises(SizeError, match="300 steps x 4 variables = 1200 numbers"):
        Fitted().plan(model)
    plan = fsmdp.plan(model, rounds=0, exact=False)  # the solver does without fits
    assert any("300 steps x 4 variables" in line.what for line in plan.log)
    assert plan.upper_bound < plan.bound.trivial


def test_states_are_those_of_episodes_that_were_not_cut_into_pieces(monkeypatch):
    model = domains.sysadmin(4, horizon=30)
    arena, arrays = arena_of(model), resolve(model, "random").arrays
    whole = arena.states(arrays, 70, 0)
    for look_after in (500, 50):  # episodes one by one, and steps of one
        monkeypatch.setattr("fsmdp.solver.parameters.DRAWS_BETWEEN_CHECKS", look_after)
        assert (arena.states(arrays, 70, 0) == whole).all()


def test_recording_stops_when_asked_to():
    model = domains.sysadmin(4, horizon=30)
    arena, arrays = arena_of(model), resolve(model, "random").arrays
    with pytest.raises(Stopped):
        arena.states(arrays, 70, 0, Clock(0).check)


@PATIENT
@given(st.integers(0, 10**6), st.sampled_from([1, 30, 2**20]))
def test_pools_are_the_same_however_states_are_sorted(seed, at_a_time):
    """Sizes from one bit to numbers that two words are needed for."""
    rng = np.random.default_rng(seed)
    sizes = rng.choice([1, 2, 3, 50, 60_000], size=rng.integers(1, 9))
    met = rng.integers(0, np.minimum(sizes, 3), size=(20, 3, len(sizes))) * (sizes // 3 + 1)
    met = np.minimum(met, sizes - 1)
    with mock.patch("fsmdp.solver.parameters.SORTED_NUMBERS", at_a_time):
        pool = with_states(with_states(empty_pool(1, len(sizes)), met[:5], 10**6), met, 10**6)
    every = np.concatenate([met[:5], met]).reshape(-1, len(sizes))
    states, counts = np.unique(every, axis=0, return_counts=True)
    assert (pool.states[0] == states).all()
    assert (pool.counts[0] == counts).all()


def test_fresh_episodes_end_with_the_time(monkeypatch):
    arena = arena_of(domains.sysadmin(4, horizon=30))
    arrays = resolve(arena.model, "random").arrays
    every = arena.returns_in_time(arrays, 200, 0, NO_LIMIT)
    assert (every == arena.returns(arrays, 200, 0)).all()
    few = arena.returns_in_time(arrays, 200, 0, Clock(0))
    assert (few == every[:50]).all()
    monkeypatch.setattr("fsmdp.solver.parameters.DRAWS_BETWEEN_CHECKS", 100)
    assert len(arena.returns_in_time(arrays, 200, 0, Clock(0))) == 0


def test_pools_count_states_and_keep_the_most_frequent():
    pool = empty_pool(2, 3)
    met = np.array([[[0, 0, 1], [1, 0, 0]], [[0, 0, 1], [1, 1, 0]], [[1, 1, 1], [1, 1, 0]]])
    pool = with_states(with_states(pool, met, 10), met[:1], 10)
    assert pool.size == 4
    by_state = dict(zip(map(tuple, pool.states[0].tolist()), pool.counts[0], strict=True))
    assert by_state == {(0, 0, 1): 3.0, (1, 1, 1): 1.0}
    kept = with_states(pool, met, 1)
    assert kept.states[0].tolist() == [[0, 0, 1]]
    assert kept.states[1].tolist() == [[1, 1, 0]]


def test_growth_finds_the_product_that_a_value_needs():
    # Reward when three are up together: pairs leave it over, the triple explains it.
    variables = [fsmdp.Variable(f"x{i}", 2) for i in range(5)]
    half, together = np.array([0.5, 0.5]), np.eye(8)[7].reshape(2, 2, 2)
    model = fsmdp.FactoredMDP(
        variables,
        ["wait"],
        [fsmdp.Conditional(v.name, [fsmdp.Case(fsmdp.ANY, [], half)]) for v in variables],
        [fsmdp.Reward("all", fsmdp.Case(fsmdp.ANY, ["x1", "x2", "x3"], together))],
        2,
        {v.name: half for v in variables},
    )
    fitting = Fitting(model, Basis.singles(model), Choices(ridge=1e-9), lambda: None)
    every = every_state(model)
    fitting.add_states(np.repeat(every[:, None], 2, axis=1))
    fitting.fit(lambda: None)
    left = [fitting._left_over(0)]
    candidates = extensions(model, [(i,) for i in range(5)], 2**16)
    assert (0, 1) not in candidates  # nothing looks at the two together
    gains = gains_of(model, candidates, [every], left, [np.ones(len(every))])
    assert set(np.array(candidates)[gains > 1e-9].ravel().tolist()) <= {1, 2, 3}
    before = np.abs(left[0]).max()
    for _ in range(2):
        assert fitting.grow(20, lambda: None) > 0
        fitting.fit(lambda: None)
    assert np.abs(fitting._left_over(0)).max() < 1e-3 * before


def test_first_bases_leave_out_what_is_not_affordable():
    model = domains.sysadmin(30, topology="star")  # the hub looks at all others
    basis = first_basis(model, pairs=True)
    assert all(backup_size(model, scope) <= 2**16 for scope in basis.scopes)
    assert len(basis) > len(model.variables) // 2


def test_episodes_are_the_same_for_a_seed_and_paired_between_policies():
    model = domains.sysadmin(6, horizon=8)
    arena = arena_of(model)
    arrays = fsmdp.plan(model, Basis.singles(model), method="stagewise").compiled()
    first = arena.returns(arrays, 200, seed=5)
    np.testing.assert_array_equal(first, arena.returns(arrays, 200, seed=5))
    np.testing.assert_array_equal(first[100:], arena.returns(arrays, 100, seed=5, first=100))
    assert not np.array_equal(first, arena.returns(arrays, 200, seed=6))
    assert arena.states(arrays, 120, 1).shape == (120, 8, 6)
