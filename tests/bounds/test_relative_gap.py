"""A plan's gap is a number and the statement that it stands for."""

import pickle

import pytest

import fsmdp
from fsmdp.bounds.gap import RelativeGap


def test_a_solved_problem_has_no_gap_and_says_that_its_policy_is_optimal():
    plan = fsmdp.plan(fsmdp.domains.sysadmin(4))
    assert plan.gap == 0.0
    assert plan.gap.exact
    assert plan.gap.mean == plan.incumbent.mean
    assert "optimal up to rounding" in plan.gap.statement()


def test_a_gap_states_its_level():
    plan = fsmdp.plan(fsmdp.domains.sysadmin(6), fsmdp.Basis.singles(fsmdp.domains.sysadmin(6)))
    gap = plan.gap
    assert gap == pytest.approx((plan.upper_bound - plan.incumbent.mean) / plan.upper_bound)
    assert gap.lower_limit < gap.mean < gap.upper_bound
    assert gap.relative_limit > gap
    assert gap.statement().startswith("with probability at least 99 % the policy is within")
    assert gap.statement() == plan.statement()


def test_an_exact_value_below_the_bound_is_not_called_optimal():
    gap = RelativeGap(10.0, 9.0, lower_limit=9.0, exact=True)
    assert gap.statement() == "the policy earns 9 exactly: within 10 % of the best"
    nothing = RelativeGap(1.0, -9.0, lower_limit=-9.0, exact=True)
    assert nothing.statement() == "the policy earns -9 exactly, no policy more than 1"


def test_a_policy_that_nobody_judged_has_no_gap():
    assert fsmdp.plan(fsmdp.domains.sysadmin(3), method="programs").gap is None


def test_a_gap_can_be_pickled_and_copied():
    gap = RelativeGap(-40.0, -45.0, 0.5, -50.0, 0.99)
    same = pickle.loads(pickle.dumps(gap))
    assert same == gap == 0.125
    assert (same.lower_limit, same.level, same.statement()) == (-50.0, 0.99, gap.statement())


def test_a_policy_within_next_to_nothing_is_said_so_without_a_power_of_ten():
    near = RelativeGap(1e10, 1e10 - 3, 0.1, 1e10 - 3.47, 0.99)
    assert near.statement().endswith("the policy is within 0.0001 % of the best")
    exact = RelativeGap(10.0, 10.0 - 4e-7, lower_limit=10.0 - 4e-7, exact=True)
    assert exact.statement() == "the policy is optimal up to 0.0001 %, by elimination"


def test_limits_are_rounded_so_that_they_hold():
    gap = RelativeGap(10.0, 9.0, 0.1, 8.93877, 0.99)
    assert gap.statement().endswith("within 10.7 % of the best")
    wide = RelativeGap(8.125002752, 1.0, 0.1, -3.1234567, 0.99)
    assert "earns at least -3.12346 with" in wide.statement()
    assert wide.statement().endswith("no policy more than 8.12501")


def test_a_bound_that_is_zero_up_to_rounding_is_written_as_zero():
    gap = RelativeGap(7.4e-11, -7.0, 0.1, -9.0, 0.99, scale=800.0)
    assert gap.statement().endswith("no policy more than 0")
