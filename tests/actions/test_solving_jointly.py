"""Exact values, fits, rollouts and the solver with action variables."""

import numpy as np
import pytest
from tests.joint_models import joint_model

import fsmdp
from fsmdp.model.conditions import Conditions
from fsmdp.online.rollouts import Rollouts, single_changes
from fsmdp.policies.resolve import resolve
from fsmdp.solver.search.search import search


def test_exact_values_are_those_of_the_list():
    model = joint_model(5, most=32)
    exact = fsmdp.solve_exactly(model)
    assert exact.start_value == fsmdp.solve_exactly(model.listed()).start_value
    values = fsmdp.evaluate_exactly(model, exact)
    start = np.ravel_multi_index(tuple(model.initial), model.sizes)
    assert values[start] == pytest.approx(exact.start_value)
    by_name = fsmdp.evaluate_exactly(model, lambda state, step: exact.action(state, step))
    assert by_name == pytest.approx(values)


def test_the_solver_solves_small_models_and_says_so():
    model = fsmdp.domains.sysadmin(4, administrators=2, horizon=4)
    plan = fsmdp.plan(model)
    assert plan.incumbent.exact
    assert plan.upper_bound == pytest.approx(fsmdp.solve_exactly(model).start_value, abs=1e-6)
    assert plan.action((0, 0, 1, 1), 1) in model.actions


def test_fits_beat_chance_without_a_list():
    model = fsmdp.domains.sysadmin(16, administrators=3, horizon=6)
    plan = fsmdp.Fitted(rounds=2, episodes=100).plan(model, fsmdp.Basis.singles(model))
    fitted = fsmdp.rollout(model, plan, 300, seed=1)
    chance = fsmdp.rollout(model, "random", 300, seed=1)
    assert fitted.mean > chance.mean + 3 * chance.standard_error


def test_the_solver_without_exact_values_keeps_to_joint_actions():
    model = fsmdp.domains.sysadmin(14, administrators="each", horizon=4)
    plan = fsmdp.plan(model, fsmdp.Basis.singles(model), rounds=1)
    assert plan.incumbent.mean <= plan.upper_bound + 1e-9
    assert plan.gap == pytest.approx(0.0, abs=0.02)


def test_single_changes_are_allowed_and_differ_in_one_variable_or_exchange_two():
    actions = fsmdp.Actions([fsmdp.Variable(f"a{i}", 2 + i % 2) for i in range(5)], at_most=2)
    chosen = np.array([1, 0, 0, 2, 0])
    anything, nowhere = Conditions(actions, actions.variables), np.zeros(0, dtype=np.int64)
    rows = single_changes(anything, nowhere, chosen, np.random.default_rng(0))
    assert np.array_equal(rows[0], chosen)
    assert actions.allowed_rows(rows).all()
    off = (rows[1:] != chosen).sum(axis=1)
    assert set(off.tolist()) == {1, 2}
    assert len(np.unique(rows, axis=0)) == len(rows)


def test_rollouts_improve_on_doing_nothing_by_several_changes():
    model = fsmdp.domains.sysadmin(6, administrators=2, horizon=5)
    policy = Rollouts(model, "noop", simulations=64, seed=3)
    chosen = policy.action((0, 1, 1, 0, 1, 1), 1)
    assert chosen in model.actions
    assert sum(model.action_values(chosen)) == 2
    assert policy.action((0, 1, 1, 0, 1, 1), 1) == chosen


def test_actions_in_many_states_are_those_of_each():
    model = joint_model(7, most=64)
    plan = fsmdp.plan(model, fsmdp.Basis.singles(model), method="stagewise")
    states = np.array(list(np.ndindex(*model.sizes)))
    names, together = plan.actions(states, 2), plan.actions(states, 2, positions=True)
    assert together.shape == (len(states), len(model.actions.variables))
    for state, name, values in zip(states.tolist(), names, together.tolist(), strict=True):
        assert plan.action(state, 2) == name
        assert model.action_values(str(name)) == tuple(values)


def test_joining_lists_the_actions():
    model = fsmdp.domains.sysadmin(3, administrators=2)
    assert fsmdp.join(model).model.actions == model.listed().actions
    many = fsmdp.domains.sysadmin(40, administrators="each")
    with pytest.raises(fsmdp.SizeError, match="too many to list"):
        fsmdp.join(many)


def test_a_policy_of_joint_actions_plays_the_listed_model():
    """Compiled code would write joint actions beyond the end of a listed model's slots."""
    model = fsmdp.domains.sysadmin(5, administrators=2, horizon=5)
    listed = model.listed()
    fit = fsmdp.Fitted(rounds=1, episodes=50).plan(model, fsmdp.Basis.singles(model))
    for policy in (fit, fit.policy, fsmdp.solve_exactly(model)):
        followed = resolve(listed, policy)
        assert followed.arrays is None or not len(followed.arrays.joint.slots)
        one, other = (fsmdp.rollout(each, policy, 200, seed=1) for each in (model, listed))
        errors = np.hypot(one.standard_error, other.standard_error)
        assert abs(one.mean - other.mean) < 5 * errors


def test_a_search_of_listed_actions_refuses_a_guide_that_finds_joint_ones():
    model = fsmdp.domains.sysadmin(4, administrators=2, horizon=3)
    basis = fsmdp.Basis.singles(model)
    guide = fsmdp.Fitted(rounds=1, episodes=50).plan(model, basis)
    bound = fsmdp.plan(model.listed(), basis, method="stagewise").bound
    with pytest.raises(fsmdp.PolicyError, match="compiled code can follow"):
        search(model.listed(), basis, bound.weights, fallback=guide, trials=10)
