"""The Gymnasium environment keeps Gymnasium's rules and the model's."""

import subprocess
import sys
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import fsmdp
from fsmdp import ModelError, PolicyError, domains


@pytest.mark.parametrize("identifier", [domain.environment for domain in domains.DOMAINS.values()])
def test_every_registered_environment_passes_the_checker(identifier):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gymnasium.make(identifier, render_mode="ansi")
        check_env(env.unwrapped)
        env.close()


def test_a_registered_environment_takes_the_options_of_its_domain():
    env = gymnasium.make("fsmdp/SysAdmin-v0", machines=5, topology="star")
    assert env.observation_space == gymnasium.spaces.MultiDiscrete([2] * 5)
    assert env.action_space == gymnasium.spaces.Discrete(6)


@pytest.mark.parametrize("order", ["fsmdp, gymnasium", "gymnasium, fsmdp"])
def test_environments_are_registered_whichever_is_imported_first(order):
    code = (
        f"import {order}; print(gymnasium.make('fsmdp/SysAdmin-v0', machines=8, topology='ring'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "fsmdp/SysAdmin-v0" in done.stdout


def test_rewards_are_the_vector_of_terms_and_the_reward_their_sum():
    env = fsmdp.make_env(domains.sysadmin(4))
    state, info = env.reset(seed=3)
    assert info == {"step": 1}
    _, reward, terminated, truncated, info = env.step(0)
    np.testing.assert_allclose(info["rewards"], state / 4)
    assert reward == pytest.approx(info["rewards"].sum())
    assert (terminated, truncated) == (False, False)


def test_an_episode_is_truncated_at_the_horizon_and_then_needs_a_reset():
    env = fsmdp.make_env(domains.sysadmin(3, horizon=2))
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(0)
    env.reset(seed=0)
    assert env.step(0)[3] is False
    assert env.step("reboot-1")[3] is True
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(0)


def test_an_endless_model_is_never_truncated():
    env = fsmdp.make_env(domains.sysadmin(3, horizon=None, discount=0.9))
    env.reset(seed=0)
    assert not any(env.step(0)[3] for _ in range(100))


def test_an_episode_may_start_from_a_given_state():
    env = fsmdp.make_env(domains.sysadmin(3))
    state, _ = env.reset(seed=0, options={"state": [0, 1, 0]})
    assert state.tolist() == [0, 1, 0]
    with pytest.raises(ModelError, match="unknown option 'stat'"):
        env.reset(options={"stat": [0, 1, 0]})
    with pytest.raises(ModelError, match="expected 3 values"):
        env.reset(options={"state": [0]})


def test_the_same_seed_gives_the_episode_of_a_rollout():
    model = domains.sysadmin(5)
    env = fsmdp.make_env(model)
    rng = np.random.default_rng(4)
    runs = fsmdp.rollout(model, "reboot-2", 1, seed=np.random.default_rng(4))
    env.reset(seed=0)
    env.unwrapped.np_random = rng
    env.reset()
    assert sum(env.step("reboot-2")[1] for _ in range(10)) == pytest.approx(runs.mean)


def test_rendering_shows_step_action_and_state():
    env = fsmdp.make_env(domains.sysadmin(2), render_mode="ansi")
    env.reset(seed=0)
    assert env.render() == "step 1/10 (start): machine-0=1 machine-1=1"
    env.step("wait")
    assert env.render().startswith("step 2/10 (wait, reward 1): machine-0=")
    for _ in range(9):
        env.step("wait")
    assert env.render().startswith("end after 10 steps (wait, reward ")
    fresh = fsmdp.make_env(domains.sysadmin(2, horizon=None, discount=0.9), render_mode="ansi")
    assert fresh.render() == "not begun: call reset()"
    fresh.reset()
    assert fresh.render().startswith("step 1 (start)")
    assert fsmdp.make_env(domains.sysadmin(2)).render() is None


def test_bad_input_is_refused_with_a_remedy():
    with pytest.raises(ModelError, match="expected a FactoredMDP, found str"):
        fsmdp.make_env("sysadmin")
    with pytest.raises(ModelError, match="expected 'ansi'"):
        fsmdp.make_env(domains.sysadmin(2), render_mode="human")
    env = fsmdp.make_env(domains.sysadmin(2))
    env.reset()
    with pytest.raises(PolicyError, match="unknown action 9"):
        env.step(9)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"options": [1]}, r"expected options as a dictionary, found \[1\]"),
        ({"options": "state"}, "expected options as a dictionary"),
        ({"options": {3: 1}}, "unknown option 3; expected 'state'"),
        ({"options": {"state": None}}, "state: expected 3 values"),
        ({"options": {"state": [0, 0, -1]}}, "'machine-2' is -1"),
        ({"seed": -1}, "seed: expected a whole number of at least 0, found -1"),
        ({"seed": "x"}, "seed: .* found 'x'"),
    ],
)
def test_a_reset_that_is_refused_changes_nothing(arguments, message):
    env = fsmdp.make_env(domains.sysadmin(3))
    twin = fsmdp.make_env(domains.sysadmin(3))
    for each in (env, twin):
        each.reset(seed=1, options={"state": [0, 1, 0]})
    with pytest.raises(ModelError, match=message):
        env.reset(**arguments)
    one, other = env.step("wait"), twin.step("wait")
    assert one[0].tolist() == other[0].tolist()
    assert one[1] == other[1]


def test_an_unknown_option_of_a_registered_environment_names_those_there_are():
    with pytest.raises(ModelError, match="unknown option 'foo'; expected one of machines, topol"):
        gymnasium.make("fsmdp/SysAdmin-v0", foo=1)


def test_truth_values_are_no_actions():
    env = fsmdp.make_env(domains.sysadmin(2))
    env.reset()
    with pytest.raises(PolicyError, match="unknown action True"):
        env.step(True)
    assert env.step(np.array(1))[4]["step"] == 2
