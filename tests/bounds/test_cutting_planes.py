"""Cutting planes against the programs written out, and bounds that hold when they stop early."""

import numpy as np
import pytest
from hypothesis import given, settings
from planning_problems import (
    problems,
    stage_optimum,
    weightings,
)

import fsmdp
from fsmdp import domains
from fsmdp.bounds import cutting_planes
from fsmdp.bounds.bellman import network_of_model, state_means
from fsmdp.bounds.certificate import certify, excesses
from fsmdp.bounds.clock import Clock, Status, Stopped
from fsmdp.bounds.cutting_planes import random_cuts, solve_joint_by_cuts, solve_stages_by_cuts
from fsmdp.bounds.enumerated import joint_optimum
from fsmdp.bounds.inequalities import inequalities
from fsmdp.bounds.joint import solve_joint
from fsmdp.bounds.problem import problem_of_model

TOLERANCE = 1e-6


@settings(max_examples=40, deadline=None)
@given(problems(horizons=(1, 2, 3, None)), weightings)
def test_joint_cuts_reach_the_enumerated_optimum(problem, weights):
    means = problem.numbers.means(weights)
    expected = joint_optimum(problem.numbers, means)
    found = solve_joint_by_cuts(problem.network, problem.intervals, means)
    assert found.status is Status.OPTIMAL
    slack = 5 * TOLERANCE * max(1.0, abs(expected))
    assert found.certified == pytest.approx(expected, abs=slack)
    assert found.objective <= expected + slack
    assert found.certified >= expected - slack


@settings(max_examples=25, deadline=None)
@given(problems())
def test_weights_of_joint_cuts_are_feasible(problem):
    means = problem.numbers.means("uniform")
    found = solve_joint_by_cuts(problem.network, problem.intervals, means)
    worst = max(m.value for m in excesses(problem.network, problem.intervals, found.weights))
    assert worst <= 1e-8 * max(1.0, np.abs(found.weights).max())


@settings(max_examples=25, deadline=None)
@given(problems())
def test_stages_by_cuts_reach_the_enumerated_optimum_of_every_stage(problem):
    means = problem.numbers.means("uniform")
    found, _, cuts = solve_stages_by_cuts(problem.network, problem.intervals, means)
    assert found.status is Status.OPTIMAL
    following = np.zeros(len(means))
    for row in reversed(range(problem.network.horizon)):
        expected = stage_optimum(problem.numbers, means, following)
        value = float(means @ found.weights[row])
        assert value == pytest.approx(expected, abs=2e-5 * max(1.0, abs(expected)))
        following = found.weights[row]
    assert set(cuts.steps.tolist()) == set(range(problem.network.horizon))


def test_a_joint_master_started_from_stages_needs_no_more_rounds_and_fewer_iterations():
    model = domains.sysadmin(8, topology="bidirectional-ring", horizon=20)
    network, intervals = network_of_model(model, fsmdp.Basis.singles(model))
    uniform = state_means("uniform", network.basis, model)
    means = state_means("initial", network.basis, model)
    _, near, cuts = solve_stages_by_cuts(network, intervals, uniform)
    warm = solve_joint_by_cuts(network, intervals, means, cuts, near)
    cold = solve_joint_by_cuts(network, intervals, means)
    by_rows = solve_joint(network, intervals, means).objective
    assert warm.certified == pytest.approx(by_rows, rel=1e-5)
    assert cold.certified == pytest.approx(by_rows, rel=1e-5)
    assert warm.rounds <= cold.rounds
    assert warm.iterations < cold.iterations


@pytest.mark.parametrize("rounds", [1, 2, 5])
def test_cuts_that_stop_early_still_certify_a_bound(rounds):
    model = domains.sysadmin(6, topology="star", horizon=8)
    network, intervals = network_of_model(model, fsmdp.Basis.singles(model))
    means = state_means("initial", network.basis, model)
    found = solve_joint_by_cuts(network, intervals, means, max_rounds=rounds, tolerance=1e-12)
    assert found.status is Status.ITERATION_LIMIT
    certificate, _ = certify(network, intervals, found.weights, means)
    assert certificate.upper_bound >= fsmdp.solve_exactly(model).start_value
    assert certificate.upper_bound == pytest.approx(found.certified)


def test_cuts_that_have_stalled_are_stopped_and_certify_a_bound(monkeypatch):
    monkeypatch.setattr(cutting_planes, "STALLED_ROUNDS", 2)
    monkeypatch.setattr(cutting_planes, "STALLED_GAIN", 0.9)
    model = domains.sysadmin(6, topology="star", horizon=8)
    network, intervals = network_of_model(model, fsmdp.Basis.singles(model))
    means = state_means("initial", network.basis, model)
    found = solve_joint_by_cuts(network, intervals, means, tolerance=1e-12)
    assert found.status is Status.STALLED
    certificate, _ = certify(network, intervals, found.weights, means)
    assert certificate.upper_bound >= fsmdp.solve_exactly(model).start_value


def test_a_gap_that_keeps_falling_does_not_stall():
    progress = cutting_planes.Progress()
    assert not any(progress.stalls(0.97**number) for number in range(1000))
    progress = cutting_planes.Progress()
    stalls = [progress.stalls(1.0 - 1e-6 * number) for number in range(200)]
    assert stalls.index(True) == cutting_planes.STALLED_ROUNDS


def test_a_time_limit_of_nothing_still_certifies_a_bound():
    model = domains.sysadmin(5)
    plan = fsmdp.plan(model, method="cutting-planes", time_limit=0.0)
    assert plan.status is Status.TIME_LIMIT
    assert plan.upper_bound >= fsmdp.solve_exactly(model).start_value


def _long():
    model = domains.sysadmin(3, horizon=50)
    return model, fsmdp.Basis.singles(model)


def test_joint_cuts_of_many_steps_start_from_few_states(monkeypatch):
    problem = problem_of_model(*_long())
    every = random_cuts(problem.network)
    monkeypatch.setattr("fsmdp.bounds.cutting_planes.MOST_START_NUMBERS", 2 * 50 * 4 * 3)
    few = random_cuts(problem.network)
    assert len(few) == 50 * 3 < len(every)
    assert set(few.steps) == set(range(50))


def test_inequalities_of_many_cuts_stop_with_the_clock():
    problem = problem_of_model(*_long())
    cuts, weights = random_cuts(problem.network), np.zeros((50, 4))
    with pytest.raises(Stopped):
        inequalities(problem.network, problem.intervals, weights, cuts, Clock(0))


def test_a_network_too_wide_for_rows_is_planned_by_cuts():
    side = 5
    topology = {
        row * side + column: [
            other_row * side + other_column
            for other_row, other_column in (
                (row - 1, column),
                (row + 1, column),
                (row, column - 1),
                (row, column + 1),
            )
            if 0 <= other_row < side and 0 <= other_column < side
        ]
        for row in range(side)
        for column in range(side)
    }
    model = domains.sysadmin(side * side, topology=topology, horizon=3)
    plan = fsmdp.plan(model, method="cutting-planes").require_optimal()
    assert plan.induced_width >= 10
    assert plan.rows < 2000
    gap = fsmdp.certified_gap(model, plan, 2000)
    assert gap.runs.mean - 4 * gap.runs.standard_error < plan.upper_bound
    assert gap.relative < 0.05
