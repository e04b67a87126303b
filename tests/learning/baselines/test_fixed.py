"""Policies that were handed in: what they earn, and what is refused."""

import numpy as np
import pytest
from tests.learning.learning_models import coins

import fsmdp
from fsmdp import ModelError, PolicyError, SizeError, domains


@pytest.fixture(scope="module")
def ring():
    return domains.sysadmin(3, horizon=5)


def structure_of(model):
    return model.structure(fsmdp.Basis.singles(model))


def within_chance(history, expected):
    """Whether the mean return is within four standard errors of what is expected."""
    error = history.returns.std() / np.sqrt(len(history))
    return abs(history.returns.mean() - expected) < 4 * error


def test_random_actions_earn_what_enumeration_says(ring):
    history = fsmdp.learn(ring, fsmdp.RandomLearner(structure_of(ring)), episodes=3000, seed=1)
    flat = fsmdp.solve_exactly(ring).flat
    assert within_chance(history, flat.initial() @ fsmdp.evaluate_exactly(ring, "random"))
    assert history.replans.sum() == 1
    assert np.isnan(history.optimistic_values).all()


def test_a_policy_earns_what_enumeration_says_in_whatever_form_it_is_given(ring):
    exact, structure = fsmdp.solve_exactly(ring), structure_of(ring)
    plan = fsmdp.plan(ring, fsmdp.Basis.pairs(ring), method="programs")
    solved = fsmdp.plan(ring)
    for policy in (exact, plan, solved, lambda state, step: "wait", "reboot-1", "random"):
        history = fsmdp.learn(ring, fsmdp.FixedPolicy(structure, policy), episodes=2000, seed=2)
        expected = exact.flat.initial() @ fsmdp.evaluate_exactly(ring, policy)
        assert within_chance(history, expected), policy


def test_a_plan_is_followed_in_a_model_that_cannot_be_enumerated():
    large = domains.sysadmin(30, horizon=3)
    basis = fsmdp.Basis.singles(large)
    plan = fsmdp.plan(large, basis, method="programs")
    learner = fsmdp.FixedPolicy(large.structure(basis), plan)
    random = fsmdp.RandomLearner(large.structure(basis))
    assert len(fsmdp.learn(large, learner, episodes=5)) == 5
    assert len(fsmdp.learn(large, random, episodes=5)) == 5
    with pytest.raises(SizeError, match="give a Plan, which needs no table"):
        fsmdp.FixedPolicy(large.structure(basis), lambda state, step: "wait")


def test_an_environment_gives_the_returns_of_its_model():
    model = coins(sigma=0.2)
    exact, structure = fsmdp.solve_exactly(model), structure_of(model)
    for make in (
        lambda: fsmdp.FixedPolicy(structure, exact),
        lambda: fsmdp.RandomLearner(structure),
    ):
        one = fsmdp.learn(model, make(), episodes=20, seed=3)
        other = fsmdp.learn(fsmdp.make_env(model), make(), episodes=20, seed=3)
        np.testing.assert_allclose(one.returns, other.returns)


def test_a_run_resumes_where_it_stopped(ring, tmp_path):
    exact, structure = fsmdp.solve_exactly(ring), structure_of(ring)
    whole = fsmdp.learn(ring, fsmdp.FixedPolicy(structure, exact), episodes=20)
    path = tmp_path / "run.npz"
    for episodes in (8, 20):
        learner = fsmdp.FixedPolicy(structure, exact)
        history = fsmdp.learn(ring, learner, episodes, checkpoint=path)
    np.testing.assert_array_equal(history.returns, whole.returns)


def test_what_cannot_be_followed_is_refused(ring):
    structure = structure_of(ring)
    for policy, message in (
        ("sleep", "unknown policy 'sleep'; expected a plan"),
        ("rebot-1", "unknown policy 'rebot-1'; did you mean 'reboot-1'"),
        (3, "3 is not a policy"),
        (lambda state, step: "sleep", "0, 0.* at step 1: unknown action 'sleep'"),
        (lambda state, step: 9, "0, 0.* at step 1: unknown action 9"),
    ):
        with pytest.raises(PolicyError, match=message):
            fsmdp.FixedPolicy(structure, policy)
    other = domains.sysadmin(4, horizon=5)
    with pytest.raises(PolicyError, match="is of another model: it has 4 variables, expected 3"):
        fsmdp.FixedPolicy(structure, fsmdp.plan(other, method="programs"))
    with pytest.raises(ModelError, match="expected a Structure, found FactoredMDP"):
        fsmdp.RandomLearner(ring)
    endless = domains.sysadmin(2, horizon=None, discount=0.9)
    with pytest.raises(ModelError, match="give a horizon"):
        fsmdp.RandomLearner(structure_of(endless))
