"""Exogenous block: correlated factors, V* linear in blocks, exact weights at any size."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsmdp.domains import ExogenousBlock, exogenous_basis, exogenous_block
from fsmdp.errors import ModelError
from fsmdp.exact.evaluation import evaluate_exactly
from fsmdp.exact.flat import enumerate_states
from fsmdp.exact.solve import solve_exactly
from fsmdp.simulation.rollout import rollout

parameters = st.builds(
    ExogenousBlock,
    factors=st.integers(0, 4),
    horizon=st.integers(1, 6),
    shock=st.floats(0, 1),
    discount=st.floats(0.5, 1),
    seed=st.integers(0, 1000),
)


def features(model, states):
    basis = exogenous_basis(model)
    return np.array([basis.evaluate(state) for state in states])


@settings(max_examples=25, deadline=None)
@given(parameters)
def test_exact_weights_are_enumeration_at_every_state_and_step(parameters):
    model = parameters.model()
    exact = solve_exactly(model)
    values = parameters.optimal_weights() @ features(model, exact.flat.states).T
    np.testing.assert_allclose(values, exact.values, atol=1e-10)


@settings(max_examples=15, deadline=None)
@given(parameters)
def test_optimal_values_lie_in_the_span_of_the_basis(parameters):
    model = parameters.model()
    exact = solve_exactly(model)
    matrix = features(model, exact.flat.states)
    fitted = matrix @ np.linalg.lstsq(matrix, exact.values.T, rcond=None)[0]
    np.testing.assert_allclose(fitted, exact.values.T, atol=1e-9)


def test_exact_weights_hold_with_an_infinite_horizon():
    parameters = ExogenousBlock(factors=3, horizon=None, discount=0.9)
    model = parameters.model()
    exact = solve_exactly(model)
    values = parameters.optimal_weights() @ features(model, exact.flat.states).T
    np.testing.assert_allclose(values, exact.values, atol=1e-10)


@pytest.mark.parametrize("action", [0, 1, 2])
@pytest.mark.parametrize(("one", "other"), [("factor-0", "factor-1"), ("tank", "factor-2")])
def test_next_values_are_correlated_given_state_and_action(action, one, other):
    flat = enumerate_states(exogenous_block(factors=3))
    names = [variable.name for variable in flat.model.variables]
    first, second = flat.states[:, names.index(one)], flat.states[:, names.index(other)]
    next_state = flat.transitions[action, flat.index((1, 1, 1, 1, 1))]
    together = next_state @ (first * second)
    assert together - (next_state @ first) * (next_state @ second) > 0.01


def test_no_action_reaches_the_factors():
    model = exogenous_block(factors=5)
    factors = model.marginals(exogenous_basis(model)).cases[6:]
    assert factors
    assert {len(cases) for cases in factors} == {1}


def test_the_block_has_a_variable_of_three_values_and_needs_control():
    exact = solve_exactly(exogenous_block(factors=0))
    assert exact.flat.model.sizes == (2, 3)
    assert set(exact.actions.ravel()) == {0, 1, 2}
    assert len(set(exact.actions[:, exact.flat.index((1, 2))])) > 1
    assert len(set(exact.actions[0])) > 1


def test_the_optimal_policy_earns_the_optimal_value():
    parameters = ExogenousBlock(factors=3)
    earned = evaluate_exactly(parameters.model(), parameters.optimal_policy())
    np.testing.assert_allclose(earned, solve_exactly(parameters.model()).values[0], atol=1e-12)


def test_exact_weights_of_200_factors_agree_with_simulation():
    parameters = ExogenousBlock(factors=200)
    model = parameters.model()
    weights = parameters.optimal_weights()
    assert weights.shape == (11, 206)
    assert np.isfinite(weights).all()
    runs = rollout(model, parameters.optimal_policy(), episodes=400, seed=1)
    start_value = weights[0] @ exogenous_basis(model).evaluate(model.initial)
    assert runs.mean == pytest.approx(start_value, abs=4 * runs.standard_error)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"factors": -1}, "factors is -1, expected a whole number from 0 to"),
        ({"factors": "many"}, "factors is 'many', .* give factors as an integer"),
        ({"shock": -0.1}, "shock is -0.1, expected a probability from 0 to 1"),
        ({"seed": 1.0}, "seed is 1.0"),
        ({"discount": 0.0}, "discount: expected a number above 0"),
    ],
)
def test_bad_arguments_are_refused_with_a_remedy(options, message):
    with pytest.raises(ModelError, match=message):
        exogenous_block(**options)
