"""LSVI-UCB: with one feature for each (state, action) it is a tabular method."""

from dataclasses import replace

import numpy as np
import pytest
from tests.learning.baselines.baseline_models import (
    expected_regret,
    planned_values,
    policy_value,
    structure_of,
    switch,
)
from tests.learning.learning_models import coins, record_plans

import fsmdp
from fsmdp import ModelError, SizeError, domains


def one_hot(n_states, n_actions):
    return np.eye(n_states * n_actions).reshape(n_states, n_actions, -1)


def test_one_hot_features_give_the_empirical_model_and_a_bonus_for_few_visits():
    model = switch(horizon=2)
    learner = fsmdp.LSVIUCB(structure_of(model), one_hot(2, 2), known_rewards=model.rewards)
    fsmdp.learn(model, learner, episodes=40, seed=0)
    learner.optimism = replace(learner.optimism, scale=1e-9)
    q = learner.replan().acting.q[0, -4:].reshape(2, 2)
    n = learner.visits
    flat = fsmdp.solve_exactly(model).flat
    last = flat.rewards.max(axis=0)
    # The identity in Lambda stands for one visit more that led to the lowest value.
    expected = last.min() + learner.outcomes @ (last - last.min()) / (n + 1)
    np.testing.assert_allclose(q, flat.rewards + expected, atol=1e-3)
    learner.optimism = replace(learner.optimism, scale=1e-3)
    bonus = learner.beta() * learner.reward_span / 2 / np.sqrt(n + 1)
    wider = learner.replan().acting.q[0, -4:].reshape(2, 2)
    capped = flat.rewards + np.minimum(expected + bonus, last.max())
    np.testing.assert_allclose(wider, capped, atol=1e-3)


@pytest.mark.parametrize("known", [True, False], ids=["known rewards", "learnt rewards"])
def test_one_hot_features_reach_a_nearly_optimal_policy(known):
    model = switch()
    learner = fsmdp.LSVIUCB(
        structure_of(model),
        one_hot(2, 2),
        known_rewards=model.rewards if known else None,
        scale=1e-2,  # unseen rewards count as the lowest but for the bonus, so it must not be tiny
    )
    regret = expected_regret(model, learner, 400)
    assert regret[-100:].mean() < 0.02 * fsmdp.solve_exactly(model).start_value


def test_regret_falls_on_a_ring():
    model = domains.sysadmin(2, horizon=4)
    learner = fsmdp.LSVIUCB(
        structure_of(model), one_hot(4, 3), known_rewards=model.rewards, scale=1e-5
    )
    regret = expected_regret(model, learner, 400)
    assert regret[-100:].mean() < 0.25 * regret[:50].mean()


def test_values_are_optimistic_under_the_full_bonus():
    model = coins(sigma=0.2)
    exact = fsmdp.solve_exactly(model)
    learner = fsmdp.LSVIUCB(structure_of(model), one_hot(4, 2))
    plans = record_plans(learner)
    fsmdp.learn(model, learner, episodes=100)
    assert plans
    for planned in plans:
        assert (planned_values(learner, planned) >= exact.values[:-1] - 1e-9).all()


def test_shared_features_learn_from_fewer_visits():
    model = switch()
    exact = fsmdp.solve_exactly(model)

    def features(state, action):  # pushing leads to the same distribution from both states
        return np.eye(3)[2 if action == "push" else state[0]]

    learner = fsmdp.LSVIUCB(structure_of(model), features, known_rewards=model.rewards, scale=1e-4)
    assert learner.features.shape == (4, 3)
    fsmdp.learn(model, learner, episodes=300)
    planned = learner.replan()
    assert policy_value(exact, planned) == pytest.approx(exact.start_value, rel=0.02)
    assert planned_values(learner, planned)[0, 0] == pytest.approx(exact.start_value, rel=0.1)


def test_the_same_seed_gives_the_same_history_and_resuming_changes_nothing(tmp_path):
    model = domains.sysadmin(2, horizon=3)

    def run(episodes=20, **options):
        learner = fsmdp.LSVIUCB(structure_of(model), one_hot(4, 3), scale=1e-4, seed=1)
        return fsmdp.learn(model, learner, episodes, seed=2, **options)

    whole, path = run(), tmp_path / "run.npz"
    run(8, checkpoint=path)
    for again in (run(), run(checkpoint=path)):
        np.testing.assert_array_equal(whole.returns, again.returns)
        np.testing.assert_array_equal(whole.optimistic_values, again.optimistic_values)


def test_every_result_is_marked_heuristic():
    model = switch()
    learner = fsmdp.LSVIUCB(structure_of(model), one_hot(2, 2))
    assert fsmdp.learn(model, learner, episodes=1).heuristic
    assert "4 features, delta 0.05, heuristic;" in repr(learner)


def test_features_that_do_not_fit_are_refused():
    model = switch()
    structure = structure_of(model)
    with pytest.raises(ModelError, match=r"expected shape \(2, 2, 'd'\)"):
        fsmdp.LSVIUCB(structure, np.zeros((2, 3, 4)))
    with pytest.raises(ModelError, match="longest has norm 2, expected at most 1"):
        fsmdp.LSVIUCB(structure, 2 * one_hot(2, 2))
    large = domains.sysadmin(14, horizon=2)
    with pytest.raises(SizeError, match="LSVIUCB writes every state out"):
        fsmdp.LSVIUCB(structure_of(large), lambda state, action: [1.0])
