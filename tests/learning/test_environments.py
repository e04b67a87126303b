"""Environments: any with discrete observations can be learnt; a mismatch says what to change."""

import gymnasium
import numpy as np
import pytest

import fsmdp
from fsmdp import ModelError


class Walk(gymnasium.Env):
    """A walk over four places in one number; the reward has a single term."""

    observation_space = gymnasium.spaces.Discrete(4)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.steps = 0, 0
        return self.place, {}

    def step(self, action):
        moved = self.np_random.random() < 0.8
        self.place = min(3, self.place + 1) if action and moved else max(0, self.place - 1)
        self.steps += 1
        return self.place, float(self.place == 3), False, self.steps >= 6, {}


def walk_structure(**changes):
    options = {
        "parents": {"place": [fsmdp.Case([a], parents=["place"]) for a in ("back", "forth")]},
        "rewards": [
            fsmdp.Reward("goal", [fsmdp.Case([a], parents=["place"]) for a in ("back", "forth")])
        ],
        "horizon": 6,
        "basis": fsmdp.Basis([fsmdp.Table(["place"], row) for row in np.eye(4)[1:]]),
    }
    return fsmdp.Structure.from_parents(
        [fsmdp.Variable("place", 4)], ["back", "forth"], **(options | changes)
    )


def test_any_environment_with_discrete_observations_can_be_learnt():
    learner = fsmdp.PSRLFactored(walk_structure())
    history = fsmdp.learn(Walk(), learner, episodes=150, seed=0)
    assert history.returns[-50:].mean() > history.returns[:20].mean()
    assert history.returns[-50:].mean() > 1.5
    again = fsmdp.learn(Walk(), fsmdp.PSRLFactored(walk_structure()), episodes=150, seed=0)
    np.testing.assert_array_equal(history.returns, again.returns)


def test_one_number_may_stand_for_several_variables():
    structure = fsmdp.Structure.from_parents(
        [fsmdp.Variable("high", 2), fsmdp.Variable("low", 2)],
        ["back", "forth"],
        parents={n: [fsmdp.Case(fsmdp.ANY, parents=["high", "low"])] for n in ("high", "low")},
        rewards=[fsmdp.Reward("goal", [fsmdp.Case(fsmdp.ANY, parents=["high", "low"])])],
        basis=fsmdp.Basis([fsmdp.Table(["high"], [0, 1]), fsmdp.Table(["low"], [0, 1])]),
        horizon=6,
    )
    learner = fsmdp.UCRLFactored(structure)
    fsmdp.learn(Walk(), learner, episodes=3)
    assert learner.statistics.episodes == 3


class Broken(Walk):
    """A walk with something wrong."""

    def __init__(self, vector=None, value=None, reward=None, ends=None, **spaces):
        self.vector, self.value, self.reward, self.ends = vector, value, reward, ends
        for name, space in spaces.items():
            setattr(self, name, space)

    def step(self, action):
        place, reward, terminated, truncated, info = super().step(action)
        if self.vector is not None:
            info["rewards"] = self.vector
        place = place if self.value is None else self.value
        return place, self.reward or reward, terminated, truncated or self.ends == self.steps, info


def two_terms():
    case = fsmdp.Case(fsmdp.ANY, parents=["place"])
    return walk_structure(rewards=[fsmdp.Reward("a", [case]), fsmdp.Reward("b", [case])])


MISMATCHES = {
    "2 variables, the structure 1; describe every variable": (
        Broken(observation_space=gymnasium.spaces.MultiDiscrete([4, 2])),
        walk_structure(),
    ),
    "'place' .position 0. has 5 values in the environment and 4 in the structure": (
        Broken(observation_space=gymnasium.spaces.MultiDiscrete([5])),
        walk_structure(),
    ),
    "5 states in one number, the structure's variables have 4": (
        Broken(observation_space=gymnasium.spaces.Discrete(5)),
        walk_structure(),
    ),
    "expected MultiDiscrete .*ObservationWrapper": (
        Broken(observation_space=gymnasium.spaces.Box(0, 1)),
        walk_structure(),
    ),
    "3 actions, the structure 2; name every action": (
        Broken(action_space=gymnasium.spaces.Discrete(3)),
        walk_structure(),
    ),
    "expected Discrete, wrap it": (
        Broken(action_space=gymnasium.spaces.Box(0, 1)),
        walk_structure(),
    ),
    "no info..rewards.., but the structure has 2 reward terms": (Walk(), two_terms()),
    "is .0, 0, 0., the structure has 2 reward terms": (Broken(vector=[0, 0, 0]), two_terms()),
    "shows value 9 of 'place', the structure expects 0 to 3": (Broken(value=9), walk_structure()),
    "pays 2 for 'goal', which has no noise and bounds": (Broken(reward=2.0), walk_structure()),
    "truncated the episode after 4 steps, the structure has horizon 6": (
        Broken(ends=4),
        walk_structure(),
    ),
}


@pytest.mark.parametrize("message", MISMATCHES)
def test_a_mismatch_is_an_error_that_says_what_to_change(message):
    env, structure = MISMATCHES[message]
    with pytest.raises(ModelError, match=message):
        fsmdp.learn(env, fsmdp.PSRLFactored(structure), episodes=1)


def test_an_environment_that_pays_one_number_will_do_when_rewards_are_known():
    case = fsmdp.Case(fsmdp.ANY, parents=["place"], table=[0, 0, 0, 1])
    structure = two_terms()
    known = [fsmdp.Reward("a", [case]), fsmdp.Reward("b", [case])]
    learner = fsmdp.UCRLFactored(structure, known_rewards=known)
    history = fsmdp.learn(Walk(), learner, episodes=5)
    assert len(history) == 5
    assert not learner.statistics.reward_sums.any()
