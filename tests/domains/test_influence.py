"""Influence: correlated opinions, V* linear in singles, and the closed form at any size."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsmdp.domains import Influence, influence
from fsmdp.errors import ModelError
from fsmdp.exact.evaluation import evaluate_exactly
from fsmdp.exact.flat import enumerate_states
from fsmdp.exact.solve import solve_exactly
from fsmdp.simulation.rollout import rollout

parameters = st.builds(
    Influence,
    nodes=st.integers(3, 6),
    campaigns=st.integers(0, 3),
    horizon=st.integers(1, 6),
    listening=st.floats(0, 1),
    discount=st.floats(0.5, 1),
    seed=st.integers(0, 1000),
)


def features(basis, states):
    return np.array([basis.evaluate(state) for state in states])


@settings(max_examples=25, deadline=None)
@given(parameters)
def test_closed_form_weights_are_enumeration_at_every_state_and_step(parameters):
    model = parameters.model()
    exact = solve_exactly(model)
    values = parameters.optimal_weights() @ features(parameters.basis(model), exact.flat.states).T
    np.testing.assert_allclose(values, exact.values, atol=1e-10)


@settings(max_examples=15, deadline=None)
@given(parameters)
def test_optimal_values_lie_in_the_span_of_singles(parameters):
    model = parameters.model()
    exact = solve_exactly(model)
    matrix = features(parameters.basis(model), exact.flat.states)
    fitted = matrix @ np.linalg.lstsq(matrix, exact.values.T, rcond=None)[0]
    np.testing.assert_allclose(fitted, exact.values.T, atol=1e-9)


def test_closed_form_holds_on_any_graph():
    graph = [[1, 1, 2], [0, 2, 3], [2, 0, 1], [3, 3, 3]]
    parameters = Influence(nodes=4, neighbours=graph, horizon=5)
    model = parameters.model()
    exact = solve_exactly(model)
    values = parameters.optimal_weights() @ features(parameters.basis(model), exact.flat.states).T
    np.testing.assert_allclose(values, exact.values, atol=1e-12)
    assert model.parents(0) == (1, 2)
    assert model.parents(3) == (3,)


def test_closed_form_holds_with_an_infinite_horizon():
    parameters = Influence(nodes=5, horizon=None, discount=0.9)
    model = parameters.model()
    exact = solve_exactly(model)
    values = parameters.optimal_weights() @ features(parameters.basis(model), exact.flat.states).T
    np.testing.assert_allclose(values, exact.values, atol=1e-10)
    assert len(parameters.optimal_actions()) == 1


def test_closed_form_policy_earns_the_optimal_value():
    parameters = Influence(nodes=6)
    model = parameters.model()
    earned = evaluate_exactly(model, parameters.optimal_policy())
    np.testing.assert_allclose(earned, solve_exactly(model).values[0], atol=1e-12)


@pytest.mark.parametrize("action", [0, 1, 2, 3])
def test_next_opinions_are_correlated_given_state_and_action(action):
    flat = enumerate_states(influence(nodes=5))
    # Node 0 copies node 4 when the choice is 0, node 2 does when it is 1: never both.
    state = flat.index((0, 0, 0, 0, 1))
    next_state = flat.transitions[action, state]
    chances = next_state @ flat.states
    both = next_state @ (flat.states[:, 0] * flat.states[:, 2])
    assert both - chances[0] * chances[2] < -0.05


def test_mean_of_the_next_opinion_is_the_formula():
    parameters = Influence(nodes=5, seed=3)
    flat = enumerate_states(parameters.model())
    copied = flat.states[:, parameters.graph] @ parameters.choice
    for action, rates in enumerate(parameters.rates):
        expected = (1 - parameters.listening) * copied + parameters.listening * rates
        np.testing.assert_allclose(flat.transitions[action] @ flat.states, expected, atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("nodes", [8, 20, 200])
def test_best_campaign_depends_on_the_step_and_none_is_best_at_the_end(nodes, seed):
    best = Influence(nodes=nodes, seed=seed).optimal_actions()
    assert best[-1] == "none"
    assert best[0] != "none"
    assert len(set(best)) >= 3


def test_a_node_has_two_action_groups_and_few_parents():
    model = influence(nodes=12, campaigns=5)
    assert all(len(mechanism.cases) == 2 for mechanism in model.dynamics.mechanisms[2:])
    assert all(len(model.parents(node)) == 2 for node in range(12))


@pytest.mark.parametrize("nodes", [200, 500])
def test_closed_form_is_finite_and_grows_with_the_steps_left(nodes):
    weights = Influence(nodes=nodes).optimal_weights()
    assert weights.shape == (11, 1 + nodes)
    assert np.isfinite(weights).all()
    assert (np.diff(weights, axis=0) <= 0).all()
    assert not weights[-1].any()


def test_closed_form_of_200_nodes_agrees_with_simulation():
    parameters = Influence(nodes=200)
    runs = rollout(parameters.model(), parameters.optimal_policy(), episodes=400, seed=1)
    start_value = parameters.optimal_weights()[0, 0]  # every node starts at 0
    assert runs.mean == pytest.approx(start_value, abs=4 * runs.standard_error)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"nodes": 0}, "nodes is 0, expected a whole number from 1 to"),
        ({"nodes": 2}, "3 campaigns for 2 nodes, expected at most one .* fewer campaigns"),
        ({"campaigns": -1}, "campaigns is -1, expected a whole number from 0 to"),
        ({"listening": 1.5}, "listening is 1.5, expected a probability from 0 to 1"),
        ({"listening": float("nan")}, "listening is nan, expected a probability"),
        ({"listening": "0.5"}, "listening is '0.5', expected a probability"),
        ({"seed": -1}, "seed is -1"),
        ({"horizon": 0}, "horizon: expected a whole number of at least 1"),
        ({"horizon": None}, "give a horizon, or a discount below 1"),
        ({"neighbours": [[0]]}, "neighbours of 1 nodes, expected one list for each of the 8"),
        ({"neighbours": [[]] * 8}, "node 0 has 0 neighbours, expected 1 to 12"),
        ({"neighbours": [[1]] * 7 + [[1, 2]]}, "node 7 has 2 neighbours, expected 1 as node 0"),
        ({"campaigns": 10**9}, "campaigns is 1000000000, expected a whole number from 0 to"),
        ({"nodes": 10**5, "campaigns": 10**5}, "make 10000000000 effects, expected at most"),
        ({"neighbours": 3}, "neighbours: expected a list of lists, found 3; give a list"),
        ({"neighbours": {0: [1]}}, "neighbours: expected a list of lists, found {0"),
        ({"neighbours": [1] * 8}, "neighbours of node 0: expected a list of nodes, found 1"),
        ({"neighbours": [[0.5]] * 8}, "a neighbour of node 0 is 0.5, expected a whole number"),
        ({"neighbours": [[8]] * 8}, "a neighbour of node 0 is 8, expected .* from 0 to 7"),
    ],
)
def test_bad_arguments_are_refused_with_a_remedy(options, message):
    with pytest.raises(ModelError, match=message):
        influence(**options)
