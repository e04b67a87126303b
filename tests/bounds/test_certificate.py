"""Certificates: the violation is that of every state, action and step; the bound always holds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planning_problems import (
    hull_of,
    known_problem,
    problems,
    random_basis,
    redrawn,
    small_models,
    uncertain_problem,
    weightings,
)

from fsmdp.bounds.bellman import VIEWS, network_of_model, state_means
from fsmdp.bounds.certificate import certify
from fsmdp.bounds.clock import Clock, Status, Stopped
from fsmdp.bounds.highs import InteriorProgram, LiveProgram
from fsmdp.bounds.joint import joint_program, solve_joint
from fsmdp.bounds.stagewise import StagewiseProgram
from fsmdp.domains import sysadmin
from fsmdp.exact.solve import solve_exactly
from fsmdp.model.basis import Basis

ROUNDING = 1e-9


def some_weights(problem, seed, size=1.0):
    shape = (problem.network.n_weight_rows, len(problem.network.basis))
    return size * np.random.default_rng(seed).normal(size=shape)


def optimal_values(model):
    """V* of every step and state, (n_steps, n_states)."""
    values = solve_exactly(model).values
    return values if model.horizon is None else values[:-1]


def assert_dominates(numbers, lifted, models):
    values = lifted @ numbers.features.T
    for model in models:
        assert (values >= optimal_values(model) - ROUNDING).all()


@settings(max_examples=100, deadline=None)
@given(problems(horizons=(1, 3, None)), st.integers(0, 999), st.sampled_from(VIEWS))
def test_violations_are_those_of_every_state_action_and_step(problem, seed, view):
    weights = some_weights(problem, seed)
    means = problem.numbers.means("uniform")
    certificate, _ = certify(problem.network, problem.intervals, weights, means, view)
    excesses = problem.numbers.excesses(weights, view)
    np.testing.assert_allclose(
        certificate.violations, excesses.max(axis=(1, 2)), rtol=1e-12, atol=ROUNDING
    )
    assert certificate.violation == pytest.approx(max(0.0, excesses.max()), abs=ROUNDING)


@settings(max_examples=60, deadline=None)
@given(problems(horizons=(1, 3, None)), st.integers(0, 999))
def test_the_witness_attains_the_worst_violation(problem, seed):
    weights = some_weights(problem, seed)
    means = problem.numbers.means("uniform")
    certificate, _ = certify(problem.network, problem.intervals, weights, means)
    witness = certificate.witness
    excesses = problem.numbers.excesses(weights)
    action = problem.model.actions.index(witness.action)
    state = np.ravel_multi_index(witness.state, problem.model.sizes)
    assert witness.violation == pytest.approx(excesses.max(), abs=ROUNDING)
    assert excesses[witness.step - 1, action, state] == pytest.approx(excesses.max(), abs=ROUNDING)


@settings(max_examples=80, deadline=None)
@given(problems(horizons=(1, 3, None)), st.integers(0, 999), st.sampled_from(VIEWS), weightings)
def test_lifts_make_every_inequality_hold_and_no_smaller_ones_do(problem, seed, view, weights):
    rough = some_weights(problem, seed)
    means = problem.numbers.means(weights)
    certificate, lifted = certify(problem.network, problem.intervals, rough, means, view)
    worst = problem.numbers.excesses(lifted, view).max(axis=(1, 2))
    np.testing.assert_allclose(worst, 0.0, atol=ROUNDING)
    np.testing.assert_allclose(lifted[:, 0] - rough[:, 0], certificate.lifts, atol=ROUNDING)
    np.testing.assert_array_equal(lifted[:, 1:], rough[:, 1:])
    assert certificate.upper_bound == pytest.approx(means @ lifted[0], abs=ROUNDING)


@settings(max_examples=80, deadline=None)
@given(problems(horizons=(1, 2, 3, None)), st.integers(0, 999), st.sampled_from([0.01, 1.0, 100.0]))
def test_corrupted_weights_still_give_a_bound_above_every_optimal_value(problem, seed, noise):
    """The true model is inside the intervals, and its rewards are at most those assumed."""
    means = problem.numbers.means("initial")
    good = solve_joint(problem.network, problem.intervals, means).weights
    bad = good + noise * some_weights(problem, seed)
    certificate, lifted = certify(problem.network, problem.intervals, bad, means)
    assert_dominates(problem.numbers, lifted, [problem.model])
    assert certificate.upper_bound >= solve_exactly(problem.model).start_value - ROUNDING


@settings(max_examples=60, deadline=None)
@given(problems(), st.floats(1e-6, 10.0))
def test_weights_that_are_too_low_are_noticed(problem, amount):
    means = problem.numbers.means("uniform")
    good = solve_joint(problem.network, problem.intervals, means).weights
    _, feasible = certify(problem.network, problem.intervals, good, means)
    bad = feasible.copy()
    bad[0, 0] -= amount
    certificate, lifted = certify(problem.network, problem.intervals, bad, means)
    assert certificate.violation == pytest.approx(amount, rel=1e-3, abs=ROUNDING)
    assert certificate.witness.step == 1
    np.testing.assert_allclose(lifted, feasible, atol=1e-8)


@settings(max_examples=40, deadline=None)
@given(
    small_models((1, 2, 3, None)),
    st.sampled_from(["singles", "pairs", "blocks", "tables"]),
    st.integers(0, 999),
    weightings,
)
def test_optimism_dominates_every_model_inside_the_intervals(model, kind, seed, weights):
    """Intervals spanned by several models of one structure, known to the planner by scopes only."""
    rng = np.random.default_rng(seed)
    models = [model, redrawn(model, rng), redrawn(model, rng)]
    basis = random_basis(model, kind, rng).bind(model.variables)
    network, intervals = hull_of(models, basis)
    problem = known_problem(model, basis)
    means = problem.numbers.means(weights)
    candidates = [solve_joint(network, intervals, means).weights]
    if model.horizon is not None:
        candidates.append(StagewiseProgram(network, means).solve(intervals).weights)
    candidates.append(some_weights(problem, seed))
    for found in candidates:
        _, lifted = certify(network, intervals, found, means)
        assert_dominates(problem.numbers, lifted, models)


@settings(max_examples=60, deadline=None)
@given(problems(horizons=(1, 2, 3)), weightings, st.sampled_from(["simplex", "interior"]))
def test_solved_weights_need_next_to_no_lift_and_dominate(problem, weights, solver):
    means = problem.numbers.means(weights)
    network, intervals = problem.network, problem.intervals
    for found in (
        solve_joint(network, intervals, means, solver=solver),
        StagewiseProgram(network, means, solver).solve(intervals),
    ):
        certificate, lifted = certify(network, intervals, found.weights, means)
        assert np.abs(certificate.lifts).max() <= 1e-5
        assert certificate.upper_bound == pytest.approx(found.objective, rel=1e-5, abs=1e-5)
        assert_dominates(problem.numbers, lifted, [problem.model])


@settings(max_examples=30, deadline=None)
@given(problems(horizons=(1, 2, 3)))
def test_joint_is_never_above_stagewise(problem):
    """Stagewise weights are feasible for the joint program, whose optimum is thus no larger."""
    means = problem.numbers.means("uniform")
    joint = solve_joint(problem.network, problem.intervals, means)
    stagewise = StagewiseProgram(problem.network, means).solve(problem.intervals)
    assert joint.objective <= stagewise.objective + 1e-6


@pytest.mark.parametrize("solver", ["interior", "simplex"])
@pytest.mark.parametrize("horizon", [4, None])
@pytest.mark.parametrize("time_limit", [0.0, 1e-9, 1e-3])
def test_a_joint_solve_stopped_early_still_certifies(solver, horizon, time_limit):
    model = sysadmin(6, topology="bidirectional-ring", horizon=horizon, discount=0.9)
    network, intervals = network_of_model(model, Basis.pairs(model))
    means = state_means("initial", network.basis, model)
    program = joint_program(network, intervals, means)
    parts = program.cost, program.matrix, program.lower
    kind = InteriorProgram if solver == "interior" else LiveProgram
    found = kind(*parts).solve(Clock(time_limit))
    weights = program.read_weights(found.values)
    certificate, lifted = certify(network, intervals, weights, means)
    assert certificate.upper_bound >= solve_exactly(model).start_value - ROUNDING
    assert_dominates(known_problem(model, Basis.pairs(model)).numbers, lifted, [model])


@pytest.mark.parametrize("solver", ["interior", "simplex"])
def test_a_joint_solve_without_time_says_so(solver):
    model = sysadmin(12, topology="bidirectional-ring", horizon=10)
    network, intervals = network_of_model(model, Basis.pairs(model))
    means = state_means("initial", network.basis, model)
    with pytest.raises(Stopped):
        solve_joint(network, intervals, means, solver=solver, clock=Clock(0.0))
    program = joint_program(network, intervals, means)
    kind = InteriorProgram if solver == "interior" else LiveProgram
    found = kind(program.cost, program.matrix, program.lower).solve(Clock(0.0))
    assert found.status is Status.TIME_LIMIT


def test_slack_everywhere_lowers_the_bound():
    model = sysadmin(3, horizon=3)
    problem = uncertain_problem(model, Basis.singles(model), np.random.default_rng(0))
    means = problem.numbers.means("uniform")
    tight = solve_joint(problem.network, problem.intervals, means)
    loose = tight.weights.copy()
    loose[:, 0] += 5.0
    certificate, _ = certify(problem.network, problem.intervals, loose, means)
    assert certificate.violation == pytest.approx(0.0, abs=1e-7)
    assert certificate.upper_bound == pytest.approx(tight.objective, abs=1e-6)
