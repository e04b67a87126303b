"""Bounds that use invariants are above V* from the start, and rarely looser than without."""

import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.invariant_models import one_way, tokens
from tests.joint_models import joint_model
from tests.model.planted import planted_model
from tests.rational import RationalModel

import fsmdp
from fsmdp import ModelError, find_invariants

METHODS = ["joint", "bundled", "cutting-planes", "stagewise", "programs", "ellipsoid"]


def planned(model, method, basis=None, **options):
    basis = fsmdp.Basis.singles(model) if basis is None else basis
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fsmdp.TrivialBoundWarning)
        return fsmdp.plan(model, basis, method=method, **options)


def best_of(model):
    return fsmdp.solve_exactly(model).start_value


@settings(max_examples=20)
@given(
    st.integers(0, 100_000),
    st.sampled_from(METHODS[:-1]),
    st.sampled_from([None, 2, 4, 16]),
    st.booleans(),
)
def test_bounds_with_invariants_are_above_the_optimum(seed, method, size, joint):
    model = joint_model(seed, most=64) if joint else planted_model(seed)[0]
    if model.horizon is None and method == "stagewise":
        method = "joint"
    found = find_invariants(model, seed)
    plan = planned(model, method, invariants=found, mini_bucket=size)
    assert plan.upper_bound >= best_of(model.listed()) - 1e-9


@settings(max_examples=8)
@given(st.integers(0, 100_000), st.sampled_from([None, 4]))
def test_bounds_with_invariants_hold_as_rationals(seed, size):
    model = fsmdp.domains.random_model(seed, variables=3, horizon=3)
    found = find_invariants(model, seed)
    plan = planned(model, "joint", invariants=found, mini_bucket=size)
    exact = RationalModel(model)
    assert exact.start_value() <= Fraction(plan.upper_bound)
    first = exact.optimal_values()[0]
    for state, value in first.items():
        bound = plan.bound.value(state)
        inside = all(one.holds(np.array([state]))[0] for one in plan.bound.values.invariants)
        assert inside == math.isfinite(bound)
        assert not inside or Fraction(bound) + Fraction(1, 10**9) >= value


@settings(max_examples=4)
@given(st.integers(0, 100_000), st.sampled_from([None, 8]))
def test_the_solver_with_invariants_and_growth_stays_above_the_optimum(seed, size):
    model, _ = planted_model(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plan = fsmdp.plan(model, exact=False, rounds=1, mini_bucket=size, seed=seed)
    best = best_of(model)
    assert plan.upper_bound >= best - 1e-9
    assert plan.bound.certificate.upper_bound >= best - 1e-9


@pytest.mark.parametrize("method", METHODS)
def test_counting_tokens_makes_bounds_tighter(method):
    model = tokens(5, 2)
    # All singles together could count by themselves: a sum of them is conserved.
    basis = fsmdp.Basis.blocks(model, [[4]])
    loose = planned(model, method, basis)
    tight = planned(model, method, basis, invariants=find_invariants(model))
    assert best_of(model) - 1e-9 <= tight.upper_bound < loose.upper_bound - 10
    assert tight.bound.values.restrictions


def test_a_state_behind_a_door_that_was_never_opened_does_not_count():
    model = one_way()
    loose, tight = (
        planned(model, "joint", invariants=found) for found in ((), find_invariants(model))
    )
    assert tight.upper_bound < loose.upper_bound - 1
    assert math.isinf(tight.value((0, 1)))
    assert math.isfinite(loose.value((0, 1)))
    assert math.isfinite(tight.value((1, 1)))


def test_the_solver_finds_invariants_and_can_be_told_to_use_none():
    model = tokens(6, 2, horizon=4)
    basis = fsmdp.Basis.blocks(model, [[5]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found, none = (
            fsmdp.plan(model, basis, exact=False, rounds=1, **options)
            for options in ({}, {"invariants": ()})
        )
    assert any(one.invariant >= 0 for one in found.bound.values.restrictions)
    assert not none.bound.values.restrictions
    assert best_of(model) - 1e-9 <= found.upper_bound < none.upper_bound


def test_a_bound_of_other_states_than_the_starts_takes_no_invariants():
    model = one_way()
    with pytest.raises(ModelError, match="use weights='initial'"):
        planned(model, "joint", weights="uniform", invariants=find_invariants(model))
    other = fsmdp.plan(model, exact=False, rounds=1, weights="uniform")
    assert not other.bound.values.restrictions


def test_false_invariants_are_refused_before_anything_is_planned():
    wrong = fsmdp.LocalInvariant((1,), np.array([True, False]))
    with pytest.raises(ModelError, match="not proved"):
        planned(one_way(), "joint", invariants=[wrong])


def test_plans_with_invariants_can_be_saved_and_read(tmp_path):
    for model in (tokens(5, 2), one_way()):
        plan = planned(model, "joint", invariants=find_invariants(model))
        plan.save(tmp_path / "plan.npz")
        again = fsmdp.load_plan(tmp_path / "plan.npz")
        assert again.bound.values.restrictions == plan.bound.values.restrictions
        states = np.array(list(np.ndindex(*model.sizes)))
        pairs = zip(plan.bound.values.invariants, again.bound.values.invariants, strict=True)
        for one, other in pairs:
            np.testing.assert_array_equal(one.holds(states), other.holds(states))
        assert again.value((0,) * len(model.sizes)) == plan.value((0,) * len(model.sizes))
