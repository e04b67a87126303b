"""Gymnasium environments of models with allowed actions and terminal states."""

import copy
import pickle

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from tests.conditioned_models import conditioned, is_allowed, is_terminal, shop
from tests.joint_models import conditioned_joint_model

import fsmdp

SEEDS = range(4)


@pytest.mark.parametrize(
    "model",
    [
        shop(),
        fsmdp.domains.sysadmin(4, administrators=2),
        conditioned_joint_model(3),
        conditioned_joint_model(4),
        conditioned(2, random_start=False),
    ],
    ids=["listed", "at-most", "joint-3", "joint-4", "random"],
)
def test_gymnasiums_own_checks_pass(model):
    check_env(fsmdp.make_env(model), skip_render_check=True)


@pytest.mark.parametrize("seed", SEEDS)
def test_masks_and_samples_are_what_the_tables_allow(seed):
    model = conditioned(seed, horizon=8)
    env = fsmdp.make_env(model)
    env.action_space.seed(seed)
    for episode in range(40):
        state, info = env.reset(seed=episode)
        over = is_terminal(model, state)
        while not over:
            expected = [is_allowed(model, state, a) for a in range(len(model.actions))]
            assert info["action_mask"].tolist() == expected
            assert env.unwrapped.action_masks().tolist() == expected
            action = env.action_space.sample()
            assert expected[action]
            state, _, terminated, truncated, info = env.step(action)
            assert terminated == is_terminal(model, state)
            assert not (terminated and truncated)
            over = terminated or truncated
        with pytest.raises(gymnasium.error.ResetNeeded):
            env.step(0)


@pytest.mark.parametrize("seed", SEEDS)
def test_joint_masks_hold_the_values_that_some_allowed_action_has(seed):
    model = conditioned_joint_model(seed)
    env = fsmdp.make_env(model)
    state, _ = env.reset(seed=0)
    rows = np.array(list(model.conditions.joint_actions(state.tolist())))
    expected = np.concatenate(
        [np.isin(np.arange(size), rows[:, at]) for at, size in enumerate(model.actions.sizes)]
    )
    assert env.unwrapped.action_masks().tolist() == expected.tolist()


def test_an_action_that_is_not_allowed_names_state_action_and_condition():
    env = fsmdp.make_env(shop())
    env.reset(seed=0, options={"state": [0, 2]})
    with pytest.raises(
        fsmdp.PolicyError, match=r"'sell' is not allowed in state \(0, 2\).*stock=0"
    ):
        env.step("sell")


def test_the_reward_of_the_last_step_counts_everywhere():
    model = shop(terminal=[fsmdp.Table("stock", [1, 0, 0, 0])], horizon=3)
    env = fsmdp.make_env(model)
    env.reset(seed=0)
    _, reward, terminated, truncated, _ = env.step("sell")
    assert (reward, terminated, truncated) == (1.0, True, False)
    assert fsmdp.rollout(model, lambda state, step: "sell", 20).mean == 1.0
    assert fsmdp.evaluate_exactly(model, lambda state, step: "sell" if state[0] else "wait")[
        1 * 4 + 2
    ] == pytest.approx(1.0)


def test_environments_and_spaces_are_copied_and_pickled():
    env = fsmdp.make_env(shop())
    env.reset(seed=0)
    for again in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        assert again.action_space.sample() in (0, 1, 2)
        assert again.action_space == env.action_space


def test_the_first_sample_of_a_space_is_allowed_in_the_present_state():
    model = shop(terminal=())
    for seed in range(20):
        env = fsmdp.make_env(model)
        env.reset(seed=seed, options={"state": [0, 2]})
        assert all(env.action_space.sample() != 2 for _ in range(20))
        assert env.unwrapped.action_masks().tolist() == [True, True, False]


def test_episodes_of_an_environment_do_not_begin_in_terminal_states():
    model = shop(initial={"stock": 1, "cash": [0.5, 0.2, 0.2, 0.1]})
    env = fsmdp.make_env(model)
    for seed in range(30):
        state, _ = env.reset(seed=seed)
        assert not model.is_terminal(state.tolist())
