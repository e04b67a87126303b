"""Functions that are nearly combinations of others: coordinates that a solver can tell apart."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planning_problems import nearly_dependent
from scipy.optimize import linprog

import fsmdp
from fsmdp.bounds.clock import Solution, Status, dual_bound
from fsmdp.bounds.conditioning import condition, scaling
from fsmdp.bounds.enumerated import enumerate_known

STAY = np.eye(3)


def three_values(tables, rewards=(1.0, 0.0, 1.0), scale=1.0):
    values = scale * np.array(rewards)
    model = fsmdp.FactoredMDP(
        [fsmdp.Variable("x", 3)],
        ["wait"],
        [fsmdp.Conditional("x", fsmdp.Case(fsmdp.ANY, ["x"], STAY))],
        [fsmdp.Reward("r", fsmdp.Case(fsmdp.ANY, ["x"], values), values.min(), values.max())],
        1,
        {"x": 1},
    )
    return model, fsmdp.Basis([fsmdp.Table(["x"], table) for table in tables])


@pytest.mark.parametrize(
    "method", ["programs", "joint", "cutting-planes", "stagewise", "ellipsoid"]
)
@pytest.mark.parametrize("near", [1e-3, 1e-6])
@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e6])
def test_two_functions_that_are_nearly_one_span_what_they_span(method, near, scale):
    model, basis = three_values([[0, 1, 2], [0, 1, 2 + near]], scale=scale)
    options = {"epsilon": 1e-6} if method == "ellipsoid" else {}
    plan = fsmdp.plan(model, basis, method=method, **options)
    assert 0.0 <= plan.upper_bound <= 2e-5 * scale  # V* = 0, which other functions cannot express
    if method != "ellipsoid":
        assert plan.status is Status.OPTIMAL


def program_optimum(model, basis):
    """The joint program over every state, in orthonormal coordinates of the functions' span."""
    features = enumerate_known(model, basis).features
    left, sizes, _ = np.linalg.svd(features / np.abs(features).max(axis=0), full_matrices=False)
    span = left[:, sizes > 3e-11 * sizes[0]]
    flat = fsmdp.solve_exactly(model).flat
    n, horizon = span.shape[1], model.horizon
    rows = np.zeros((horizon, len(model.actions), len(span), horizon, n))
    for step in range(horizon):
        rows[step, :, :, step] = span
        if step + 1 < horizon:
            rows[step, :, :, step + 1] = -model.discount * (flat.transitions @ span)
    cost = np.zeros(horizon * n)
    cost[:n] = flat.initial() @ span
    rewards = np.broadcast_to(flat.rewards, (horizon, *flat.rewards.shape)).ravel()
    found = linprog(
        cost,
        A_ub=-rows.reshape(-1, horizon * n),
        b_ub=-rewards,
        bounds=(None, None),
        method="highs",
    )
    return found.fun if found.status == 0 else None


def check_optimal_is_optimal(seed, method):
    model = fsmdp.domains.random_model(seed, 3, 3, 3)
    basis = nearly_dependent(model, np.random.default_rng(seed))
    plan = fsmdp.plan(model, basis, method=method)
    best = program_optimum(model, basis)
    spans = [
        max(t.values.max() for t in means) - min(t.values.min() for t in means)
        for means in model.reward_means
    ]
    if plan.status is Status.OPTIMAL and best is not None:
        rounding = 1e-12 * (1 + abs(best))  # rewards may be the same everywhere
        assert plan.upper_bound - best <= 2e-5 * model.horizon * sum(spans) + rounding


@pytest.mark.parametrize("method", ["programs", "joint", "cutting-planes"])
@given(seed=st.integers(0, 10_000))
@settings(max_examples=10, deadline=None)
def test_what_is_called_optimal_is_the_programs_optimum(method, seed):
    check_optimal_is_optimal(seed, method)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["programs", "joint", "cutting-planes"])
@pytest.mark.parametrize("first", range(0, 600, 50))
def test_what_is_called_optimal_is_the_optimum_of_many_programs(method, first):
    for seed in range(first, first + 50):
        check_optimal_is_optimal(seed, method)


@given(seed=st.integers(0, 10_000))
@settings(max_examples=30, deadline=None)
def test_coordinates_are_combinations_of_the_functions_and_well_conditioned(seed):
    model = fsmdp.domains.random_model(seed, 3, 3, 3)
    basis = nearly_dependent(model, np.random.default_rng(seed)).bind(model.variables)
    found = condition(basis)
    features = enumerate_known(model, basis).features
    columns = features @ found.matrix.toarray()
    assert np.linalg.cond(columns) < 1e4
    assert np.abs(columns).max() <= 1 + 1e-6
    coordinates = np.random.default_rng(seed).normal(size=found.n_coordinates)
    weights = found.weights(coordinates)
    rounding = 1e-14 * float((np.abs(features) @ np.abs(weights)).max())
    np.testing.assert_allclose(features @ weights, columns @ coordinates, atol=rounding)


def test_exactly_dependent_functions_are_left_out_and_others_left_alone():
    _, basis = three_values([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 3, 3]])
    model, _ = three_values([])
    found = condition(basis.bind(model.variables))
    assert found.n_coordinates == 3
    ring = fsmdp.domains.sysadmin(5)
    pairs = fsmdp.Basis.pairs(ring).bind(ring.variables)
    assert (condition(pairs).matrix != scaling(pairs).matrix).nnz == 0


def test_a_dual_bound_does_not_trust_the_solver():
    cost, matrix, lower = np.array([1.0]), np.array([[1.0], [-1.0]]), np.array([2.0, -9.0])
    good = Solution(Status.OPTIMAL, np.array([2.0]), 2.0, 1, 0.0, np.array([1.0, 0.0]))
    assert dual_bound(cost, matrix, lower, good) == pytest.approx(2.0)
    wrong = Solution(Status.OPTIMAL, np.array([2.0]), 2.0, 1, 0.0, np.array([1.5, -4.0]))
    assert dual_bound(cost, matrix, lower, wrong) <= 2.0
    assert (
        dual_bound(cost, matrix, lower, Solution(Status.OPTIMAL, np.zeros(1), 0.0, 1, 0.0)) < -1e9
    )
