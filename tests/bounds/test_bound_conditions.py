"""Bounds of models with allowed actions and terminal states, by every engine of the programs."""

import numpy as np
import pytest
from tests.conditioned_models import conditioned, optimal_values

import fsmdp
from fsmdp.bounds.bellman import network_of_model
from fsmdp.bounds.certificate import certify
from fsmdp.bounds.enumerated import enumerate_known, joint_optimum

SEEDS = range(8)
METHODS = ("joint", "cutting-planes", "bundled", "ellipsoid", "stagewise", "programs")
OPTIONS = {"ellipsoid": {"epsilon": 0.1}}  # of the spans of values; at 0.001 it takes long


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_every_engine_has_the_value_of_the_enumerated_program(seed, terminal):
    model = conditioned(seed, terminal=terminal, horizon=3)
    basis = fsmdp.Basis.singles(model)
    numbers = enumerate_known(model, basis)
    optimum = joint_optimum(numbers, numbers.means("initial"))
    best = fsmdp.solve_exactly(model).start_value
    values = optimal_values(model)
    for method in METHODS:
        plan = fsmdp.plan(model, basis, method=method, **OPTIONS.get(method, {}))
        assert plan.upper_bound >= best - 1e-9, method
        if method not in ("stagewise", "ellipsoid"):
            assert plan.upper_bound == pytest.approx(optimum, abs=1e-4), method
        for state, value in values.items():
            assert plan.bound.value(state) >= value - 1e-9, (method, state)


@pytest.mark.parametrize("elimination", ["shared", "separate"])
@pytest.mark.parametrize("seed", SEEDS)
def test_certificates_find_the_worst_allowed_pair(seed, elimination):
    model = conditioned(seed, horizon=3)
    basis = fsmdp.Basis.pairs(model)
    network, intervals = network_of_model(model, basis, elimination=elimination)
    numbers = enumerate_known(model, basis)
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(3, len(network.basis)))
    certificate, _ = certify(network, intervals, weights, numbers.means("initial"))
    expected = numbers.excesses(weights)
    expected = np.where(np.isneginf(numbers.rewards), -np.inf, expected).max(axis=(1, 2))
    assert certificate.violations == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_bounds_without_end_hold(seed):
    model = conditioned(seed, horizon=None, discount=0.8)
    best = fsmdp.solve_exactly(model)
    for method in ("joint", "cutting-planes", "bundled", "programs"):
        plan = fsmdp.plan(model, fsmdp.Basis.pairs(model), method=method)
        assert plan.upper_bound >= best.start_value - 1e-9
        for state in np.ndindex(*model.sizes):
            assert plan.bound.value(state) >= best.value(state) - 1e-8
