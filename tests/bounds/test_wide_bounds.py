"""Bounds by mini-buckets lie above V*, whatever the size and whatever finds the weights."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_rational import assert_bounds, odd_basis
from tests.odd_models import odd_model

import fsmdp
from fsmdp.bounds.certificate import excesses
from fsmdp.bounds.cutting_planes import violated_cuts
from fsmdp.bounds.inequalities import inequalities
from fsmdp.bounds.problem import problem_of_model
from fsmdp.domains import random_model
from fsmdp.errors import ModelError, TrivialBoundWarning, WidthError

METHODS = ("programs", "stagewise", "joint", "cutting-planes")


def wide_model(seed=0, n=5, horizon=3):
    """Every variable looks at three others, so that buckets are wide."""
    return random_model(
        seed, variables=n, actions=3, horizon=horizon, largest_size=2, largest_parents=3, rewards=4
    )


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=12)
@given(seed=st.integers(0, 10_000), size=st.sampled_from([2, 4, 6, 16]))
def test_a_bound_by_mini_buckets_is_one(method, seed, size):
    model = odd_model(seed, horizon=1 + seed % 3)
    basis = odd_basis(model, np.random.default_rng(seed))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrivialBoundWarning)
        plan = fsmdp.plan(model, basis, method=method, mini_bucket=size)
    assert_bounds(model, plan)


@pytest.mark.parametrize("size", [4, 8, 16])
def test_rows_and_cuts_find_the_same_bound_of_mini_buckets(size):
    model = wide_model()
    basis = fsmdp.Basis.pairs(model)
    rows = fsmdp.plan(model, basis, method="joint", mini_bucket=size)
    cuts = fsmdp.plan(model, basis, method="cutting-planes", mini_bucket=size)
    exact = fsmdp.plan(model, basis, method="joint")
    assert "mini-buckets" in rows.record.choices[0]
    assert rows.status == cuts.status == "optimal"
    assert cuts.upper_bound == pytest.approx(rows.upper_bound, abs=1e-4)
    assert rows.upper_bound >= exact.upper_bound - 1e-6
    assert_bounds(model, rows)


def test_a_cut_of_mini_buckets_is_violated_by_what_the_oracle_says():
    model = wide_model(3)
    problem = problem_of_model(model, fsmdp.Basis.pairs(model), mini_bucket=4)
    network, intervals = problem.network, problem.intervals
    weights = np.random.default_rng(0).normal(size=(3, len(network.basis)))
    worst = excesses(network, intervals, weights)
    violations, cuts = violated_cuts(worst, 0.0, len(network.inputs))
    rows, rewards = inequalities(network, intervals, weights, cuts)
    found = rewards - rows @ weights.ravel()
    for step, violation in enumerate(violations):
        assert found[cuts.steps == step].max() == pytest.approx(violation)


def test_a_network_too_wide_for_exact_elimination_has_a_bound_by_mini_buckets():
    model = wide_model(5)
    basis = fsmdp.Basis.pairs(model)
    with pytest.raises(WidthError, match="mini_bucket="):
        fsmdp.plan(model, basis, method="joint", limit=8)
    plan = fsmdp.plan(model, basis, method="joint", mini_bucket=8)
    assert plan.upper_bound < plan.bound.trivial
    assert_bounds(model, plan)


def test_a_mini_bucket_has_at_least_two_entries():
    with pytest.raises(ModelError, match="mini_bucket"):
        fsmdp.plan(wide_model(), method="joint", mini_bucket=1)
