"""Stagewise: each step's program equals the one with every state written out; restarts are warm."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planning_problems import (
    known_problem,
    problems,
    stage_optimum,
    weightings,
)

from fsmdp.bounds.bellman import VIEWS, Intervals, network_of_model, state_means
from fsmdp.bounds.certificate import certify
from fsmdp.bounds.clock import Clock, Status
from fsmdp.bounds.stagewise import StagewiseProgram
from fsmdp.domains import random_model, sysadmin
from fsmdp.errors import ModelError
from fsmdp.exact.solve import solve_exactly
from fsmdp.model.basis import Basis

CLOSE = 1e-6
solvers = st.sampled_from(["simplex", "interior"])


def close_to(expected):
    return pytest.approx(expected, rel=CLOSE, abs=CLOSE)


def assert_each_step_is_optimal(numbers, weights, means, view, first_means=None):
    """Weights are not unique, so compare objectives, each given the weights that follow."""
    for row in range(len(weights)):
        used = first_means if row == 0 and first_means is not None else means
        following = numbers.following(weights, row)
        assert used @ weights[row] == close_to(stage_optimum(numbers, used, following, view))
        assert numbers.excess(weights, row, view).max() <= CLOSE


@settings(max_examples=60, deadline=None)
@given(problems(uncertain=False), weightings, solvers)
def test_each_step_equals_enumeration_in_a_known_model(problem, weights, solver):
    means = problem.numbers.means(weights)
    found = StagewiseProgram(problem.network, means, solver).solve(problem.intervals)
    assert found.status is Status.OPTIMAL
    assert found.objective == close_to(means @ found.weights[0])
    assert_each_step_is_optimal(problem.numbers, found.weights, means, "optimistic")


@settings(max_examples=80, deadline=None)
@given(problems(uncertain=True), weightings, solvers, st.sampled_from(VIEWS))
def test_each_step_equals_enumeration_of_the_view(problem, weights, solver, view):
    means = problem.numbers.means(weights)
    found = StagewiseProgram(problem.network, means, solver).solve(problem.intervals, view)
    assert found.status is Status.OPTIMAL
    assert_each_step_is_optimal(problem.numbers, found.weights, means, view)


@settings(max_examples=30, deadline=None)
@given(problems(), solvers)
def test_the_first_step_may_have_an_objective_of_its_own(problem, solver):
    uniform, initial = problem.numbers.means("uniform"), problem.numbers.means("initial")
    program = StagewiseProgram(problem.network, uniform, solver)
    for _ in range(2):
        found = program.solve(problem.intervals, first_means=initial)
        assert found.objective == close_to(initial @ found.weights[0])
        assert_each_step_is_optimal(
            problem.numbers, found.weights, uniform, "optimistic", first_means=initial
        )
    found = program.solve(problem.intervals)
    assert_each_step_is_optimal(problem.numbers, found.weights, uniform, "optimistic")


@settings(max_examples=30, deadline=None)
@given(problems(uncertain=True), solvers)
def test_a_reused_program_solves_what_it_is_given_last(problem, solver):
    """Optimistic, then pessimistic, then known: nothing of an earlier solve is left over."""
    numbers, means = problem.numbers, problem.numbers.means("uniform")
    program = StagewiseProgram(problem.network, means, solver)
    program.solve(problem.intervals)
    found = program.solve(problem.intervals, "pessimistic")
    assert_each_step_is_optimal(numbers, found.weights, means, "pessimistic")
    known = known_problem(problem.model, problem.network.basis)
    found = program.solve(known.intervals)
    assert_each_step_is_optimal(known.numbers, found.weights, means, "optimistic")


@settings(max_examples=30, deadline=None)
@given(problems(uncertain=True))
def test_optimism_is_above_the_point_and_the_point_above_pessimism(problem):
    """For the same following weights, at every state and action."""
    numbers, rng = problem.numbers, np.random.default_rng(0)
    following = rng.normal(size=len(problem.network.basis))
    backups = [numbers.backup(following, view) for view in VIEWS]
    assert (backups[0] >= backups[1] - 1e-12).all()
    assert (backups[1] >= backups[2] - 1e-12).all()


def ring_program():
    model = sysadmin(40, topology="ring", horizon=10)
    network, intervals = network_of_model(model, Basis.singles(model))
    means = state_means("uniform", network.basis, model)
    return network, intervals, means, StagewiseProgram(network, means, "simplex")


def test_the_second_of_two_identical_calls_restarts_warm():
    _, intervals, means, program = ring_program()
    first = program.solve(intervals)
    second = program.solve(intervals)
    assert first.status is second.status is Status.OPTIMAL
    assert sum(second.iterations) < sum(first.iterations) / 4
    # Weights are not unique, and other weights make other steps before them: compare the last.
    assert means @ second.weights[-1] == close_to(means @ first.weights[-1])


def test_a_small_change_of_the_intervals_restarts_warm():
    network, intervals, means, program = ring_program()
    program.solve(intervals)
    rng = np.random.default_rng(1)
    width = 0.01 * rng.random(len(intervals.high))
    width[network.backup_columns == 0] = 0.0
    wider = Intervals(intervals.rewards, intervals.low - width, intervals.high + width)
    warm = program.solve(wider)
    cold = StagewiseProgram(network, means, "simplex").solve(wider)
    assert warm.status is cold.status is Status.OPTIMAL
    assert sum(warm.iterations) < sum(cold.iterations) / 4
    assert means @ warm.weights[-1] == close_to(means @ cold.weights[-1])


@pytest.mark.parametrize("solver", ["simplex", "interior"])
@pytest.mark.parametrize("time_limit", [0.0, 1e-9, 1e-4])
def test_a_solve_stopped_early_still_certifies(solver, time_limit):
    model = sysadmin(6, topology="bidirectional-ring", horizon=5)
    network, intervals = network_of_model(model, Basis.pairs(model))
    means = state_means("initial", network.basis, model)
    found = StagewiseProgram(network, means, solver).solve(intervals, clock=Clock(time_limit))
    certificate, lifted = certify(network, intervals, found.weights, means)
    exact = solve_exactly(model)
    assert certificate.upper_bound >= exact.start_value - 1e-9
    features = np.array([network.basis.evaluate(state) for state in exact.flat.states])
    assert (features @ lifted.T >= exact.values[:-1].T - 1e-9).all()


def test_a_solve_without_time_says_so():
    _, intervals, _, program = ring_program()
    assert program.solve(intervals, clock=Clock(0.0)).status is Status.TIME_LIMIT
    assert program.solve(intervals).status is Status.OPTIMAL


def test_an_unknown_solver_is_refused():
    model = random_model(0)
    network, _ = network_of_model(model, Basis.singles(model))
    with pytest.raises(ModelError, match="solver"):
        StagewiseProgram(network, np.ones(len(network.basis)), "barrier")
