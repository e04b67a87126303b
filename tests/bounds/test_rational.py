"""Certified bounds hold for the model's numbers as the rationals that they are."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planning_problems import nearly_dependent
from tests.odd_models import odd_model
from tests.rational import RationalModel

import fsmdp
from fsmdp.bounds.bellman import network_of_model, state_means
from fsmdp.bounds.certificate import certify

METHODS = ("programs", "stagewise", "joint", "cutting-planes", "ellipsoid")


def lottery(probability, prize, horizon=2):
    """Winning is rare; a model that takes a rare event for none is worth nothing."""
    return fsmdp.FactoredMDP(
        variables=[fsmdp.Variable("x", 2)],
        actions=["safe", "lottery"],
        conditionals=[
            fsmdp.Conditional(
                "x",
                [
                    fsmdp.Case(["safe"], [], [1.0, 0.0]),
                    fsmdp.Case(["lottery"], [], [1 - probability, probability]),
                ],
            )
        ],
        rewards=[
            fsmdp.Reward("prize", fsmdp.Case(fsmdp.ANY, ["x"], [0.0, prize]), low=0, high=prize)
        ],
        horizon=horizon,
        initial={"x": 0},
    )


def odd_basis(model, rng):
    """Ready-made, or random tables of odd sizes, some of them nearly the same."""
    kind = rng.integers(3)
    if kind == 0:
        return fsmdp.Basis.singles(model)
    if kind == 1:
        return fsmdp.Basis.pairs(model)
    return nearly_dependent(model, rng)


def assert_bounds(model, plan):
    """The bound's weights satisfy every inequality, and the bound is above V*, as rationals."""
    exact = RationalModel(model)
    weights = plan.bound.weights if model.horizon is None else plan.bound.weights[:-1]
    assert exact.largest_violation(plan.basis, weights) <= 0
    values = exact.values_of(plan.basis, weights[0])
    start = sum(p * values[state] for state, p in exact.initial().items())
    assert start <= Fraction(plan.upper_bound)
    if model.horizon is not None:
        assert exact.start_value() <= Fraction(plan.upper_bound)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("probability", "prize"), [(4e-13, 1e12), (9e-13, 1e6), (1e-300, 1e300)])
def test_a_rare_prize_is_in_the_bound(method, probability, prize):
    model = lottery(probability, prize)
    plan = fsmdp.plan(model, method=method)
    assert_bounds(model, plan)
    assert plan.upper_bound >= probability * prize
    assert fsmdp.solve_exactly(model).start_value == pytest.approx(probability * prize)


@pytest.mark.parametrize("method", METHODS)
def test_a_row_means_its_entries_divided_by_their_sum(method):
    off = 1 + 9e-10
    model = fsmdp.FactoredMDP(
        variables=[fsmdp.Variable("x", 2)],
        actions=["wait"],
        conditionals=[
            fsmdp.Conditional(
                "x", fsmdp.Case(fsmdp.ANY, ["x"], [[0.7 * off, 0.3 * off], [0.4 / off, 0.6 / off]])
            )
        ],
        rewards=[fsmdp.Reward("r", fsmdp.Case(fsmdp.ANY, ["x"], [0.0, 1.0]), low=0, high=1)],
        horizon=None,
        discount=0.999999999,
        initial={"x": [0.5 * off, 0.5 * off]},
    )
    if method == "stagewise":
        model = fsmdp.FactoredMDP(
            model.variables, model.actions, model.conditionals, model.rewards, 6, model.initial
        )
    exact = fsmdp.solve_exactly(model).start_value
    share = 3 / 7 if model.horizon is None else exact / 6
    steps = 1e9 if model.horizon is None else 6
    assert exact == pytest.approx(share * steps, rel=1e-6)
    options = {"epsilon": 1e-7} if method == "ellipsoid" else {}
    plan = fsmdp.plan(model, method=method, **options)
    assert plan.upper_bound == pytest.approx(exact, rel=1e-4)
    assert_bounds(model, plan)


def check_odd_models(seed, method, horizon, discount):
    model = odd_model(seed, horizon, discount)
    if method == "stagewise" and horizon is None:
        return
    rng = np.random.default_rng(seed)
    options = {"iteration_limit": 300} if method == "ellipsoid" else {}
    assert_bounds(model, fsmdp.plan(model, odd_basis(model, rng), method=method, **options))


@pytest.mark.parametrize("method", METHODS)
@given(seed=st.integers(0, 10**6), horizon=st.sampled_from([1, 3, None]))
@settings(max_examples=8, deadline=None)
def test_bounds_of_odd_models_hold_as_rationals(method, seed, horizon):
    check_odd_models(seed, method, horizon, 0.9 if horizon is None else 1.0)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", range(250))
def test_bounds_of_many_odd_models_hold_as_rationals(method, seed):
    horizon, discount = [(1, 1.0), (2, 0.5), (4, 1.0), (None, 0.9), (None, 0.9999)][seed % 5]
    check_odd_models(seed, method, horizon, discount)


@given(seed=st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_violations_of_any_weights_are_covered_by_their_certificate(seed):
    rng = np.random.default_rng(seed)
    model = odd_model(seed, horizon=2)
    network, intervals = network_of_model(model, odd_basis(model, rng))
    weights = rng.normal(size=(2, len(network.basis))) * 10.0 ** rng.uniform(-12, 12)
    means = state_means("initial", network.basis, model)
    certificate, lifted = certify(network, intervals, weights, means)
    exact = RationalModel(model)
    assert exact.largest_violation(network.basis, lifted) <= 0
    # And not by far more than rounding: elsewhere the violation is what was found.
    found = float(exact.largest_violation(network.basis, weights))
    sizes = np.abs(weights) @ network.function_sizes + np.abs(intervals.rewards).sum()
    assert certificate.violations.max() == pytest.approx(found, abs=1e-11 * sizes.max())
