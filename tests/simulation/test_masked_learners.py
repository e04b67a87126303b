"""sb3-contrib's masked learners train on environments with allowed actions."""

import numpy as np
import pytest
from tests.conditioned_models import shop

import fsmdp


def masks_of(env):
    """The protocol of sb3-contrib's ActionMasker."""
    return env.unwrapped.action_masks()


def test_masks_follow_the_protocol_of_masked_learners():
    env = fsmdp.make_env(shop())
    env.reset(seed=0)
    masks = masks_of(env)
    assert masks.dtype == np.bool_
    assert masks.shape == (env.action_space.n,)
    joint = fsmdp.make_env(fsmdp.domains.sysadmin(4, administrators=2))
    joint.reset(seed=0)
    assert masks_of(joint).shape == (int(joint.action_space.nvec.sum()),)


@pytest.mark.slow
def test_maskable_ppo_trains():
    sb3_contrib = pytest.importorskip("sb3_contrib")
    from sb3_contrib.common.wrappers import ActionMasker

    model = shop()
    env = ActionMasker(fsmdp.make_env(model), masks_of)
    agent = sb3_contrib.MaskablePPO("MlpPolicy", env, n_steps=256, seed=0, device="cpu")
    agent.learn(6000)  # an action that is not allowed would end it with an error

    def policy(state, step):
        mask = model.conditions.mask(np.array([state]))[0]
        return int(agent.predict(np.array(state), action_masks=mask, deterministic=True)[0])

    earned = fsmdp.rollout(model, policy, 200, seed=1).mean
    assert earned > fsmdp.rollout(model, "random", 2000).mean
