"""The joint program: equal to every state, action and sign pattern written out."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planning_problems import known_problem, problems, small_models, uncertain_problem, weightings

from fsmdp.bounds.bellman import constant_value, network_of_model, state_means
from fsmdp.bounds.clock import Status
from fsmdp.bounds.enumerated import joint_optimum
from fsmdp.bounds.joint import joint_program, solve_joint
from fsmdp.domains import random_model
from fsmdp.errors import ModelError, PlanningError
from fsmdp.model.basis import Basis

CLOSE = 1e-6


def close_to(expected):
    return pytest.approx(expected, rel=CLOSE, abs=CLOSE)


@settings(max_examples=80, deadline=None)
@given(problems(), weightings)
def test_means_of_functions_are_those_over_all_states(problem, weights):
    means = state_means(weights, problem.network.basis, problem.model)
    np.testing.assert_allclose(means, problem.numbers.means(weights), atol=1e-12)


@settings(max_examples=30, deadline=None)
@given(problems(), st.integers(0, 99))
def test_means_under_a_distribution_for_each_variable(problem, seed):
    rng = np.random.default_rng(seed)
    start = {v.name: rng.dirichlet(np.ones(v.size)) for v in problem.model.variables}
    states = problem.numbers.states
    chances = np.prod(
        [start[v.name][states[:, i]] for i, v in enumerate(problem.model.variables)], 0
    )
    expected = chances @ problem.numbers.features
    means = state_means(start, problem.network.basis, problem.model)
    np.testing.assert_allclose(means, expected, atol=1e-12)
    given_means = state_means(expected, problem.network.basis, problem.model)
    np.testing.assert_array_equal(given_means, expected)


@pytest.mark.parametrize("weights", ["final", [1.0], [1.0, np.nan]])
def test_weights_of_states_that_make_no_sense_are_refused(weights):
    model = random_model(0, variables=1, largest_size=2)
    with pytest.raises(ModelError, match="weights"):
        state_means(weights, Basis.singles(model), model)


@settings(max_examples=80, deadline=None)
@given(problems(uncertain=False), weightings, st.sampled_from(["interior", "simplex"]))
def test_joint_equals_enumeration_of_a_known_model(problem, weights, solver):
    means = problem.numbers.means(weights)
    found = solve_joint(problem.network, problem.intervals, means, solver=solver)
    assert found.status is Status.OPTIMAL
    assert found.objective == close_to(joint_optimum(problem.numbers, means))
    assert means @ found.weights[0] == close_to(found.objective)


@settings(max_examples=80, deadline=None)
@given(problems(uncertain=True), weightings, st.sampled_from(["interior", "simplex"]))
def test_joint_equals_enumeration_of_every_sign_pattern(problem, weights, solver):
    means = problem.numbers.means(weights)
    found = solve_joint(problem.network, problem.intervals, means, solver=solver)
    assert found.status is Status.OPTIMAL
    assert found.objective == close_to(joint_optimum(problem.numbers, means))
    assert means @ found.weights[0] == close_to(found.objective)


@settings(max_examples=80, deadline=None)
@given(problems(horizons=(None,)), weightings)
def test_joint_equals_enumeration_with_an_infinite_horizon(problem, weights):
    means = problem.numbers.means(weights)
    found = solve_joint(problem.network, problem.intervals, means)
    assert found.weights.shape == (1, len(problem.network.basis))
    assert found.objective == close_to(joint_optimum(problem.numbers, means))


@settings(max_examples=80, deadline=None)
@given(
    problems(horizons=(1, 2, None), kinds=("singles", "tables")),
    weightings,
    st.floats(0.05, 1.2),
)
def test_a_bound_on_the_norm_equals_enumeration_of_its_corners(problem, weights, share):
    means = problem.numbers.means(weights)
    w_norm = share * constant_value(problem.network, problem.intervals)
    expected = joint_optimum(problem.numbers, means, w_norm)
    if expected is None:
        with pytest.raises(PlanningError, match="w_norm"):
            solve_joint(problem.network, problem.intervals, means, w_norm=w_norm)
        return
    found = solve_joint(problem.network, problem.intervals, means, w_norm=w_norm)
    assert found.objective == close_to(expected)
    assert np.abs(found.weights).sum(axis=1).max() <= w_norm + CLOSE * (1 + w_norm)


@settings(max_examples=80, deadline=None)
@given(problems(kinds=("singles", "tables")), weightings)
def test_the_refusal_of_a_small_norm_names_one_that_works(problem, weights):
    means = problem.numbers.means(weights)
    enough = constant_value(problem.network, problem.intervals)
    if enough < 1e-3 or joint_optimum(problem.numbers, means, 0.01 * enough) is not None:
        return
    with pytest.raises(PlanningError) as refusal:
        solve_joint(problem.network, problem.intervals, means, w_norm=0.01 * enough)
    named = re.search(r"w_norm=([-+.e\d]+)", str(refusal.value))
    assert named is not None
    found = solve_joint(problem.network, problem.intervals, means, w_norm=float(named[1]))
    assert found.status is Status.OPTIMAL


@settings(max_examples=80, deadline=None)
@given(small_models((1, 3, None)), st.integers(0, 99), weightings)
def test_shared_messages_give_the_optimum_of_one_network_per_action(model, seed, weights):
    basis = Basis.pairs(model)
    objectives = []
    for elimination in ("shared", "separate"):
        rng = np.random.default_rng(seed)
        problem = uncertain_problem(model, basis, rng, elimination=elimination)
        means = problem.numbers.means(weights)
        assert problem.network.elimination.method == elimination
        objectives.append(solve_joint(problem.network, problem.intervals, means).objective)
    assert objectives[0] == close_to(objectives[1])


@settings(max_examples=80, deadline=None)
@given(small_models(), st.data())
def test_the_optimum_does_not_depend_on_the_elimination_order(model, data):
    order = data.draw(st.permutations([variable.name for variable in model.variables]))
    basis = Basis.pairs(model)
    problem = known_problem(model, basis)
    ordered = known_problem(model, basis, elimination_order=order)
    means = problem.numbers.means("uniform")
    one = solve_joint(problem.network, problem.intervals, means).objective
    other = solve_joint(ordered.network, ordered.intervals, means).objective
    assert one == close_to(other)


@settings(max_examples=80, deadline=None)
@given(problems(uncertain=True), weightings)
def test_intervals_only_raise_the_optimum(problem, weights):
    known = known_problem(problem.model, problem.network.basis)
    means = problem.numbers.means(weights)
    wide = solve_joint(problem.network, problem.intervals, means).objective
    assert wide >= solve_joint(known.network, known.intervals, means).objective - 1e-7


@settings(max_examples=80, deadline=None)
@given(problems(uncertain=True))
def test_weights_read_from_columns_satisfy_the_rows(problem):
    means = problem.numbers.means("uniform")
    program = joint_program(problem.network, problem.intervals, means)
    assert program.matrix.shape == (len(program.lower), len(program.cost))
    found = solve_joint(problem.network, problem.intervals, means)
    assert problem.numbers.excesses(found.weights).max() <= 1e-6


def test_an_objective_that_is_no_distribution_has_no_minimum():
    model = random_model(3, variables=2, horizon=2)
    problem = known_problem(model, Basis.singles(model))
    means = -problem.numbers.means("uniform")
    found = solve_joint(problem.network, problem.intervals, means)
    assert found.status is Status.UNBOUNDED


def test_a_norm_too_small_by_a_hair_is_refused_too():
    model = random_model(variables=1, actions=1, horizon=1, rewards=1, latents=0, seed=4)
    network, intervals = network_of_model(model, Basis([]))
    means = state_means("initial", network.basis, model)
    enough = constant_value(network, intervals)
    with pytest.raises(PlanningError, match="is enough"):
        solve_joint(network, intervals, means, w_norm=(1 - 1e-5) * enough)
