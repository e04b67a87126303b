"""A plan's gap is a number and the statement that it stands for."""

import pickle

import pytest

import fsmdp
from fsmdp.planning.gap import RelativeGap


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
