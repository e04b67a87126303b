"""Claims that no other test would notice to be broken: found by putting mistakes in by hand."""

import time
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planning_problems import (
    problems,
    stage_optimum,
)
from scipy import sparse

import fsmdp
from fsmdp import ANY, Basis, Case, Conditional, FactoredMDP, ModelError, Reward, Table, Variable
from fsmdp.bounds.bellman import (
    largest_value,
    network_of_model,
    reward_scale,
    state_means,
    value_span,
)
from fsmdp.bounds.certificate import certify, following_weights, lifts_of
from fsmdp.bounds.clock import (
    NO_LIMIT,
    REACH,
    Clock,
    Solution,
    Status,
    Stopped,
    dual_bound,
    unsolved,
)
from fsmdp.bounds.conditioning import condition, conditioning_of
from fsmdp.bounds.cutting_planes import CUTS_PER_COLUMN, Master, solve_stages_by_cuts
from fsmdp.bounds.problem import problem_of_model, trivial_problem
from fsmdp.bounds.stagewise import StagewiseProgram
from fsmdp.domains import sysadmin

EPSILON = float(np.finfo(np.float64).eps)


class TestDualBounds:
    """min cost @ x subject to matrix @ x >= lower, and any duals at all."""

    @staticmethod
    def program(rng):
        matrix = rng.normal(size=(6, 3))
        inside = rng.normal(size=3)
        lower = matrix @ inside - rng.random(6)
        return rng.normal(size=3), sparse.csr_matrix(matrix), lower, inside

    @staticmethod
    def solved(values, duals):
        return Solution(Status.OPTIMAL, values, 0.0, 0, 0.0, duals)

    def test_a_solve_without_duals_leaves_everything_open(self):
        cost, matrix, lower, _ = self.program(np.random.default_rng(0))
        assert dual_bound(cost, matrix, lower, unsolved(Status.TIME_LIMIT, 3, 0.0)) == -np.inf
        for wrong in (np.nan, np.inf):
            found = self.solved(np.zeros(3), np.full(6, wrong))
            assert dual_bound(cost, matrix, lower, found) == -np.inf

    @given(st.integers(0, 10_000))
    @settings(max_examples=50, deadline=None)
    def test_no_feasible_solution_within_reach_is_below_the_bound_of_any_duals(self, seed):
        rng = np.random.default_rng(seed)
        cost, matrix, lower, inside = self.program(rng)
        values = 3 * rng.normal(size=3)
        bound = dual_bound(cost, matrix, lower, self.solved(values, rng.normal(size=6)))
        reach = REACH * np.maximum(np.abs(values), 1.0)
        points = np.vstack([inside, rng.uniform(-reach, reach, size=(500, 3))])
        feasible = points[(points @ matrix.T >= lower).all(axis=1)]
        assert len(feasible)
        assert (feasible @ cost >= bound).all()

    def test_the_duals_of_an_optimum_leave_nothing_open(self):
        matrix = sparse.csr_matrix(np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]]))
        found = self.solved(np.array([1.0, 3.0]), np.array([3.0, 2.0, 0.0]))
        assert dual_bound(np.array([3.0, 4.0]), matrix, np.array([1.0, 6.0, 1.0]), found) == 15.0


@given(problems(horizons=(1, 2, None), kinds=("pairs", "tables")), st.integers(0, 999))
@settings(max_examples=30, deadline=None)
def test_a_lift_covers_the_rounding_of_every_sum_that_it_is_made_of(problem, seed):
    """A sum of n terms is off by up to n eps / 2 times their sizes, whether or not it was."""
    network, intervals = problem.network, problem.intervals
    rng = np.random.default_rng(seed)
    weights = 10.0 ** rng.uniform(-3, 9) * rng.normal(
        size=(network.n_weight_rows, len(network.basis))
    )
    certificate, _ = certify(network, intervals, weights, problem.numbers.means("uniform"))
    factors = network.elimination.network
    starts = [offsets[0] for offsets in factors.offsets]
    after = 0.0
    for row in reversed(range(len(weights))):
        following = following_weights(network, weights, row)
        entries = network.excess(weights[row], following, intervals)
        sizes = np.maximum.reduceat(np.abs(entries), starts).sum()
        least = certificate.violations[row] + len(starts) * EPSILON / 2 * sizes
        if network.horizon is None:
            assert certificate.lifts[row] >= least / (1 - network.discount)
        else:
            assert certificate.lifts[row] >= least + network.discount * after
        after = certificate.lifts[row]


@given(
    discount=st.sampled_from([0.1, 0.9, 0.999999, 1.0]),
    steps=st.integers(1, 5),
    exponents=st.tuples(st.floats(-9, 9), st.floats(-9, 9)),
    seed=st.integers(0, 10_000),
)
@settings(max_examples=100, deadline=None)
def test_lifted_constants_leave_no_violation_as_rationals(discount, steps, exponents, seed):
    """lift_l >= violation_l + discount * lift_{l+1} after all sums have been rounded."""
    rng = np.random.default_rng(seed)
    violations, constants = (
        10.0**exponent * rng.normal(size=steps) * 10.0 ** rng.uniform(-6, 6, size=steps)
        for exponent in exponents
    )
    for horizon in (steps, None):
        if horizon is None and discount == 1.0:
            continue
        model = coin([], horizon=horizon, discount=discount)
        network, _ = network_of_model(model, Basis())
        given_up = slice(0, network.n_weight_rows)
        before = constants[given_up]
        after = before + lifts_of(network, violations[given_up], before)
        lifts = [Fraction(b) - Fraction(a) for a, b in zip(before, after, strict=True)]
        following = lifts if horizon is None else [*lifts[1:], Fraction(0)]
        for lift, violation, later in zip(lifts, violations, following, strict=False):
            assert lift >= Fraction(violation) + Fraction(discount) * later


def coin(terms, **changes):
    """A variable that is drawn anew at every step, with the means of some reward terms."""
    parts = {
        "variables": [Variable("x", 2)],
        "actions": ["wait"],
        "conditionals": [Conditional("x", [Case(ANY, [], [0.5, 0.5])])],
        "rewards": [
            Reward(f"r{i}", [Case(ANY, ["x"], means)], min(means), max(means))
            for i, means in enumerate(terms)
        ],
        "horizon": 3,
    }
    return FactoredMDP(**(parts | changes))


class TestScales:
    """What values are measured against."""

    def test_discounts_add_up_to_those_of_all_steps(self):
        half = {"discount": 0.5}
        for changes, total in ((half, 1.75), ({}, 3.0), (half | {"horizon": None}, 2.0)):
            network, intervals = network_of_model(coin([(0.0, 1.0)], **changes), Basis())
            assert largest_value(network, intervals) == total

    @pytest.mark.parametrize(
        ("terms", "scale"), [([(-3.0, 1.0), (0.0, 2.0)], 3.0), ([(0.0, 0.0)], 1.0), ([], 1.0)]
    )
    def test_rewards_are_scaled_by_the_largest_unless_all_are_zero(self, terms, scale):
        _, intervals = network_of_model(coin(terms), Basis())
        assert reward_scale(intervals) == scale

    @pytest.mark.parametrize(
        ("terms", "largest", "span"),
        [
            ([(-3.0, 1.0), (0.0, 2.0)], 15.0, 18.0),
            ([(2.0, 2.0), (-1.0, -1.0)], 9.0, 9.0),  # nothing depends on anything
            ([], 0.0, 3.0),
        ],
    )
    def test_terms_count_at_their_largest_and_by_their_spans(self, terms, largest, span):
        network, intervals = network_of_model(coin(terms), Basis())
        assert largest_value(network, intervals) == largest
        assert value_span(network, intervals) == span


def test_a_limit_of_rounds_holds_for_every_stage(monkeypatch):
    solves = []
    solve = Master.solve

    def counted(master, clock):
        solves.append(master)
        return solve(master, clock)

    monkeypatch.setattr(Master, "solve", counted)
    model = sysadmin(5, topology="star", horizon=4)
    fsmdp.plan(model, method="cutting-planes", max_rounds=1, tolerance=1e-12)
    assert len(solves) == model.horizon + 1


def test_cuts_are_forgotten_only_where_there_are_many_and_they_are_slack():
    network, intervals = network_of_model(coin([(0.0, 1.0)]), Basis())
    master = Master(np.ones(1), np.zeros((1, 1)), 1.0, conditioning_of(network, intervals))

    def hold(lower):
        master.add(sparse.csr_matrix(np.ones((len(lower), 1))), np.array(lower))

    def forget(value):
        master.forget_slack_cuts(Solution(Status.OPTIMAL, np.array([value]), value, 0, 0.0))
        return master.n_cuts

    hold([0.0] * CUTS_PER_COLUMN)
    assert forget(100.0) == CUTS_PER_COLUMN
    hold([98.0, 97.0])
    assert forget(100.0) == 2


def test_coordinates_of_functions_that_are_nearly_the_same_are_told_apart():
    """Each function hides the next: all but a millionth of it is a combination of the others."""
    first, second, third = np.eye(4)[1:]
    tables = [first, first + 1e-4 * second, first + 1e-4 * second + 1e-6 * third]
    tables = [size * table for size, table in zip((1.0, 1e6, 1e-6), tables, strict=True)]
    basis = Basis([Table([0], table) for table in tables])
    functions = np.stack([np.broadcast_to(one.values, 4) for one in basis], axis=1)
    coordinates = functions @ condition(basis).matrix.toarray()
    np.testing.assert_allclose(np.abs(coordinates).max(axis=0), 1.0, rtol=1e-6)
    assert np.linalg.cond(coordinates) < 100 < np.linalg.cond(functions) / 1e6


def _status(solve):
    try:
        return solve().status
    except Stopped:
        return Status.TIME_LIMIT


@pytest.mark.parametrize(
    "planner", [fsmdp.Stagewise, fsmdp.Joint, fsmdp.CuttingPlanes, fsmdp.Ellipsoid]
)
def test_a_planner_goes_by_the_clock_it_is_given(planner):
    model = sysadmin(2, horizon=2)
    problem = problem_of_model(model, Basis.singles(model), trivial=trivial_problem(model).trivial)
    for limit in (None, 1e6):
        asked = planner(time_limit=limit)
        assert _status(partial(asked.solve, problem, Clock(0.0))) is Status.TIME_LIMIT
    assert planner(time_limit=0.0).solve(problem, Clock()).status is Status.OPTIMAL


@pytest.mark.parametrize(
    "planner",
    [fsmdp.Stagewise, fsmdp.Joint, fsmdp.CuttingPlanes, fsmdp.Ellipsoid, fsmdp.Programs],
)
def test_a_planner_goes_by_its_own_limit_if_it_is_given_no_clock(planner):
    model = sysadmin(2, horizon=2)
    problem = problem_of_model(model, Basis.singles(model), trivial=trivial_problem(model).trivial)
    assert _status(partial(planner(time_limit=0.0).solve, problem)) is Status.TIME_LIMIT
    assert planner().solve(problem).status is Status.OPTIMAL


def test_the_lower_bound_of_a_master_is_that_of_ten_times_its_box():
    network, intervals = network_of_model(coin([(0.0, 1.0)]), Basis())
    master = Master(np.ones(1), np.zeros((1, 1)), 1.0, conditioning_of(network, intervals))
    for radius in (1.0, 10.0, 100.0):
        found = master.solve(NO_LIMIT)
        assert found.objective == pytest.approx(-radius)
        assert master.lower_bound(found) == pytest.approx(-10 * radius)
        master.grow_box()


@settings(max_examples=10, deadline=None)
@given(problems(horizons=(2, 3), uncertain=False))
def test_only_the_first_stage_by_cuts_has_an_objective_of_its_own(problem):
    network, intervals = problem.network, problem.intervals
    uniform, initial = (problem.numbers.means(name) for name in ("uniform", "initial"))
    found, _, _ = solve_stages_by_cuts(network, intervals, uniform, first_means=initial)
    following = np.zeros(len(uniform))
    for row in reversed(range(network.horizon)):
        means = initial if row == 0 else uniform
        expected = stage_optimum(problem.numbers, means, following)
        value = float(means @ found.weights[row])
        assert value == pytest.approx(expected, abs=2e-5 * max(1.0, abs(expected)))
        following = found.weights[row]


def test_a_program_that_is_given_the_bases_of_another_finds_its_weights_bit_for_bit():
    model = sysadmin(4, horizon=5)
    network, intervals = network_of_model(model, Basis.pairs(model))
    means = state_means("uniform", network.basis, model)
    first, second = (StagewiseProgram(network, means, "simplex") for _ in range(2))
    first.solve(intervals)
    second.set_stage_bases(first.stage_bases())
    np.testing.assert_array_equal(first.stage_bases(), second.stage_bases())
    again = first.solve(intervals)
    np.testing.assert_array_equal(second.solve(intervals).weights, again.weights)


@pytest.mark.parametrize(
    "method", ["programs", "stagewise", "joint", "cutting-planes", "ellipsoid"]
)
def test_the_seconds_of_all_phases_add_up_to_no_more_than_it_took(method):
    began = time.perf_counter()
    plan = fsmdp.plan(sysadmin(2, horizon=2), method=method)
    assert min(plan.seconds.values()) >= 0
    assert sum(plan.seconds.values()) <= time.perf_counter() - began


def test_the_size_of_a_function_is_that_of_its_largest_value_of_either_sign():
    network, _ = network_of_model(coin([]), Basis([Table([0], [-3.0, 1.0])]))
    assert network.function_sizes.tolist() == [1.0, 3.0]


def test_a_table_of_no_entries_is_no_limit():
    with pytest.raises(ModelError, match="limit"):
        fsmdp.plan(coin([]), limit=0)
