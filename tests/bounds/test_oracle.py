"""The separation oracle: the worst inequality, as a hyperplane that cuts off nothing feasible."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planning_problems import problems

from fsmdp.bounds.certificate import certify, excesses, separate
from fsmdp.bounds.inequalities import Cuts, function_values, inequalities, local_values

ROUNDING = 1e-9
seeds = st.integers(0, 999)


def some_weights(problem, rng, size=1.0):
    shape = (problem.network.n_weight_rows, len(problem.network.basis))
    return size * rng.normal(size=shape)


def some_feasible_weights(problem, rng):
    """Random weights, lifted by the least that makes them feasible and by something more."""
    weights = some_weights(problem, rng, size=rng.choice([0.1, 1.0, 10.0]))
    _, lifted = certify(
        problem.network, problem.intervals, weights, problem.numbers.means("uniform")
    )
    return lifted


@settings(max_examples=100, deadline=None)
@given(problems(horizons=(1, 3, None)), seeds)
def test_the_worst_violation_is_that_of_enumeration(problem, seed):
    weights = some_weights(problem, np.random.default_rng(seed))
    found = separate(problem.network, problem.intervals, weights)
    expected = problem.numbers.excesses(weights)
    state = np.ravel_multi_index(found.state, problem.model.sizes)
    assert found.violation == pytest.approx(expected.max(), abs=ROUNDING)
    assert expected[found.step - 1, found.action, state] == pytest.approx(
        found.violation, abs=ROUNDING
    )


@settings(max_examples=60, deadline=None)
@given(problems(horizons=(1, 3, None)), seeds)
def test_every_action_has_its_own_worst_violation(problem, seed):
    weights = some_weights(problem, np.random.default_rng(seed))
    expected = problem.numbers.excesses(weights)
    for row, found in enumerate(excesses(problem.network, problem.intervals, weights)):
        for action in range(len(problem.model.actions)):
            state = np.ravel_multi_index(found.state(action), problem.model.sizes)
            worst = expected[row, action].max()
            assert expected[row, action, state] == pytest.approx(worst, abs=ROUNDING)


@settings(max_examples=80, deadline=None)
@given(problems(horizons=(1, 3, None)), seeds)
def test_the_hyperplane_is_violated_by_exactly_the_violation(problem, seed):
    weights = some_weights(problem, np.random.default_rng(seed))
    found = separate(problem.network, problem.intervals, weights)
    short = found.reward - found.normal @ weights.ravel()
    assert short == pytest.approx(found.violation, abs=ROUNDING)


@settings(max_examples=80, deadline=None)
@given(problems(horizons=(1, 3, None)), seeds)
def test_the_hyperplane_holds_for_all_feasible_weights(problem, seed):
    rng = np.random.default_rng(seed)
    found = separate(problem.network, problem.intervals, some_weights(problem, rng))
    for _ in range(10):
        feasible = some_feasible_weights(problem, rng)
        assert problem.numbers.excesses(feasible).max() <= ROUNDING
        assert found.normal @ feasible.ravel() >= found.reward - 1e-8


@settings(max_examples=40, deadline=None)
@given(problems(horizons=(1, 3, None)), seeds)
def test_feasible_weights_are_not_separated(problem, seed):
    feasible = some_feasible_weights(problem, np.random.default_rng(seed))
    # A little more at each earlier step, so that every inequality has some slack.
    feasible[:, 0] += 1e-6 * np.arange(len(feasible), 0, -1)
    assert separate(problem.network, problem.intervals, feasible).violation <= 0


@settings(max_examples=60, deadline=None)
@given(problems(horizons=(1, 3, None)), seeds)
def test_hyperplanes_of_all_pairs_are_the_inequalities_written_out(problem, seed):
    numbers, network = problem.numbers, problem.network
    weights = some_weights(problem, np.random.default_rng(seed))
    n_actions, n_states = numbers.rewards.shape
    states = np.tile(numbers.states, (n_actions, 1))
    actions = np.repeat(np.arange(n_actions), n_states)
    np.testing.assert_allclose(function_values(network, numbers.states), numbers.features)
    high, low, rewards = local_values(network, problem.intervals, states, actions)
    np.testing.assert_allclose(high, numbers.high.reshape(high.shape), atol=1e-12)
    np.testing.assert_allclose(low, numbers.low.reshape(low.shape), atol=1e-12)
    np.testing.assert_allclose(rewards, numbers.rewards.ravel(), atol=1e-12)
    for row in range(len(weights)):
        cuts = Cuts(np.full(len(states), row), states, actions)
        rows, sides = inequalities(network, problem.intervals, weights, cuts)
        normals = rows.toarray()
        np.testing.assert_allclose(
            sides - normals @ weights.ravel(), numbers.excess(weights, row).ravel(), atol=ROUNDING
        )
