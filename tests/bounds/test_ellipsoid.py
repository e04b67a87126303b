"""The ellipsoid method agrees with the joint program, and its two bounds hold all along."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planning_problems import known_problem, problems, small_models, uncertain_problem, weightings

from fsmdp.bounds.bellman import network_of_model, state_means
from fsmdp.bounds.clock import Clock, Status
from fsmdp.bounds.ellipsoid import _Ellipsoid, solve_ellipsoid
from fsmdp.bounds.enumerated import joint_optimum
from fsmdp.bounds.joint import solve_joint
from fsmdp.domains import sysadmin
from fsmdp.errors import PlanningError
from fsmdp.model.basis import Basis

ROUNDING = 1e-7


def assert_solved(problem, means, epsilon, found):
    optimum = joint_optimum(problem.numbers, means)
    joint = solve_joint(problem.network, problem.intervals, means)
    assert joint.objective == pytest.approx(optimum, rel=1e-6, abs=1e-6)
    assert found.status is Status.OPTIMAL
    assert found.lower_bound <= optimum + ROUNDING
    assert optimum - ROUNDING <= found.objective <= found.lower_bound + epsilon
    assert problem.numbers.excesses(found.weights).max() <= ROUNDING
    assert means @ found.weights[0] == pytest.approx(found.objective)


@settings(max_examples=12, deadline=None)
@given(problems(horizons=(1, 2), kinds=("singles",)), weightings, st.booleans())
def test_it_agrees_with_the_joint_program(problem, weights, deep_cuts):
    means = problem.numbers.means(weights)
    found = solve_ellipsoid(
        problem.network, problem.intervals, means, epsilon=0.01, deep_cuts=deep_cuts
    )
    assert_solved(problem, means, 0.01, found)


@settings(max_examples=12, deadline=None)
@given(problems(horizons=(None,), kinds=("singles", "blocks")), weightings, st.booleans())
def test_it_agrees_with_the_joint_program_over_an_infinite_horizon(problem, weights, deep_cuts):
    means = problem.numbers.means(weights)
    found = solve_ellipsoid(
        problem.network, problem.intervals, means, epsilon=0.01, deep_cuts=deep_cuts
    )
    assert_solved(problem, means, 0.01, found)


@settings(max_examples=10, deadline=None)
@given(small_models((1, 3, None)))
def test_a_constant_alone_is_solved(model):
    problem = known_problem(model, Basis())
    means = problem.numbers.means("uniform")
    found = solve_ellipsoid(problem.network, problem.intervals, means, epsilon=1e-4)
    assert_solved(problem, means, 1e-4, found)


@pytest.mark.parametrize("deep_cuts", [False, True])
def test_it_solves_a_ring_to_six_digits(deep_cuts):
    model = sysadmin(3, topology="ring", horizon=2)
    problem = uncertain_problem(model, Basis.singles(model), np.random.default_rng(0))
    means = problem.numbers.means("initial")
    found = solve_ellipsoid(
        problem.network, problem.intervals, means, epsilon=1e-6, deep_cuts=deep_cuts
    )
    assert_solved(problem, means, 1e-6, found)
    assert found.objective == pytest.approx(joint_optimum(problem.numbers, means), abs=1e-6)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 6), st.floats(0.0, 0.95), st.integers(0, 999))
def test_a_cut_keeps_what_it_should_and_shrinks_as_the_theory_says(n, depth, seed):
    rng = np.random.default_rng(seed)
    factor, centre, normal = rng.normal(size=(n, n)) + np.eye(n), rng.normal(size=n), np.ones(n)
    ellipsoid = _Ellipsoid(centre.copy(), factor.copy())
    directions = rng.normal(size=(500, n))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    points = centre + directions * rng.random((500, 1)) ** (1 / n) @ factor.T
    limit = normal @ centre - depth * ellipsoid.extent(normal)
    ellipsoid.cut(normal, depth)
    kept = points[points @ normal <= limit]
    inside = np.linalg.solve(ellipsoid.factor, (kept - ellipsoid.centre).T)
    assert (np.linalg.norm(inside, axis=0) <= 1 + 1e-8).all()
    shrinkage = abs(np.linalg.det(ellipsoid.factor) / np.linalg.det(factor))
    assert shrinkage <= np.exp(-1 / (2 * (n + 1)))
    if n == 1:
        assert shrinkage == pytest.approx((1 - depth) / 2)


def ring_of_three():
    model = sysadmin(3, topology="ring", horizon=2)
    problem = known_problem(model, Basis.singles(model))
    return problem, problem.numbers.means("uniform")


def test_deep_cuts_need_fewer_iterations():
    problem, means = ring_of_three()
    central = solve_ellipsoid(problem.network, problem.intervals, means)
    deep = solve_ellipsoid(problem.network, problem.intervals, means, deep_cuts=True)
    assert deep.iterations < central.iterations


@pytest.mark.parametrize("iteration_limit", [0, 1, 10, 100])
def test_both_bounds_hold_whenever_it_is_stopped(iteration_limit):
    problem, means = ring_of_three()
    optimum = joint_optimum(problem.numbers, means)
    found = solve_ellipsoid(
        problem.network, problem.intervals, means, iteration_limit=iteration_limit
    )
    assert found.status is Status.ITERATION_LIMIT
    assert found.iterations == iteration_limit
    assert found.lower_bound <= optimum <= found.objective
    assert problem.numbers.excesses(found.weights).max() <= ROUNDING


def test_the_gap_closes_at_the_rate_of_the_theory():
    """Volumes shrink by exp(-1 / (2 (n + 1))), the gap therefore by exp(-1 / (2 n (n + 1)))."""
    problem, means = ring_of_three()
    n = problem.network.n_weight_rows * len(problem.network.basis)
    first = solve_ellipsoid(problem.network, problem.intervals, means, epsilon=1e-2)
    second = solve_ellipsoid(problem.network, problem.intervals, means, epsilon=1e-4)
    assert second.iterations - first.iterations <= 2 * n * (n + 1) * np.log(100) * 1.1


def test_a_solve_without_time_says_so_and_is_still_a_bound():
    problem, means = ring_of_three()
    found = solve_ellipsoid(problem.network, problem.intervals, means, clock=Clock(0.0))
    assert found.status is Status.TIME_LIMIT
    assert found.lower_bound <= joint_optimum(problem.numbers, means) <= found.objective


def test_a_ball_without_the_optimum_says_what_is_best_in_it():
    """The lower bound is that of the ball; the weights may lie outside, and are feasible."""
    problem, means = ring_of_three()
    found = solve_ellipsoid(problem.network, problem.intervals, means, radius=0.1)
    assert found.status is Status.OPTIMAL
    assert found.objective >= joint_optimum(problem.numbers, means) - ROUNDING
    assert problem.numbers.excesses(found.weights).max() <= ROUNDING


def test_the_default_ball_grows_until_it_holds_the_optimum():
    """A function that hardly varies needs weights far larger than any value."""
    model = sysadmin(2, topology="ring", horizon=1)
    singles = Basis.singles(model)
    nearly_one = [type(t)(t.scope, 1 + 0.05 * (t.values - 0.5)) for t in singles.tables[1:]]
    problem = known_problem(model, Basis(nearly_one))
    means = problem.numbers.means("uniform")
    found = solve_ellipsoid(problem.network, problem.intervals, means, epsilon=1e-3)
    assert np.abs(found.weights).max() > 8
    assert_solved(problem, means, 1e-3, found)
    small = solve_ellipsoid(problem.network, problem.intervals, means, epsilon=1e-3, radius=0.5)
    assert small.objective > found.objective + 0.01


def test_large_problems_are_refused_with_the_names_of_other_methods():
    model = sysadmin(20, topology="ring", horizon=10)
    network, intervals = network_of_model(model, Basis.singles(model))
    means = state_means("uniform", network.basis, model)
    with pytest.raises(PlanningError, match=r"210 weights.*'joint' or 'cutting-planes'"):
        solve_ellipsoid(network, intervals, means)
