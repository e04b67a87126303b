"""Claims that no other test would notice to be broken: found by putting mistakes in by hand."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planning_problems import problems
from scipy import sparse

import fsmdp
from fsmdp import ANY, Basis, Case, Conditional, FactoredMDP, Reward, Variable
from fsmdp.domains import sysadmin
from fsmdp.planning.bellman import network_of_model
from fsmdp.planning.certificate import certify, lifts_of
from fsmdp.planning.conditioning import conditioning_of
from fsmdp.planning.cuts import CUTS_PER_COLUMN, Master
from fsmdp.planning.oracle import following_weights
from fsmdp.planning.rows import reward_scale
from fsmdp.planning.solution import REACH, Solution, Status, dual_bound, unsolved
from fsmdp.planning.values import largest_value, sum_of_discounts, value_span

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
            network, _ = network_of_model(coin([], **changes), Basis())
            assert sum_of_discounts(network) == total

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
