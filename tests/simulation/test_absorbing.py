"""Episodes that end early: what learners make of them, and what absorbing ends are worth."""

import gymnasium
import numpy as np
import pytest

import fsmdp

HORIZON = 8


class Corridor(gymnasium.Env):
    """Three cells; entering the last one pays 1 and ends the episode."""

    observation_space = gymnasium.spaces.MultiDiscrete([3])
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, by_term=False):
        self.by_term = by_term

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.cell = 0
        return np.array([0]), {}

    def step(self, action):
        assert self.cell < 2, "the episode is over"
        self.cell += int(action)
        goal = self.cell == 2
        info = {"rewards": [float(goal)]} if self.by_term else {}
        return np.array([self.cell]), float(goal), goal, False, info


def structure():
    cell = fsmdp.Variable("cell", 3)
    cases = [fsmdp.Case(["stay"], parents=["cell"]), fsmdp.Case(["go"], parents=["cell"])]
    return fsmdp.Structure.from_parents(
        [cell],
        ["stay", "go"],
        parents={"cell": cases},
        rewards=[fsmdp.Reward("goal", cases, low=0, high=1)],
        basis=fsmdp.Basis.singles([cell]),
        horizon=HORIZON,
    )


def optimistic(env):
    history = fsmdp.learn(env, fsmdp.UCRLFactored(structure()), episodes=1500)
    return history.optimistic_values


def test_an_end_that_nobody_sees_beyond_stays_as_good_as_can_be():
    assert optimistic(Corridor())[-1] >= HORIZON - 1  # V* is 1


@pytest.mark.parametrize("by_term", [False, True])
def test_an_absorbing_end_is_worth_nothing(by_term):
    values = optimistic(fsmdp.Absorbing(Corridor(by_term), HORIZON))
    best = 1.0  # V*: the goal pays once
    assert values.min() >= best - 1e-9
    assert values[-1] < best + 0.5


def test_an_absorbed_episode_repeats_its_last_state_until_the_horizon():
    env = fsmdp.Absorbing(Corridor(by_term=True), HORIZON)
    env.reset(seed=0)
    steps = [env.step(1) for _ in range(HORIZON)]
    assert [int(observation[0]) for observation, *_ in steps] == [1] + [2] * (HORIZON - 1)
    assert [reward for _, reward, *_ in steps] == [0.0, 1.0] + [0.0] * (HORIZON - 2)
    assert not any(terminated for _, _, terminated, _, _ in steps)
    assert [truncated for *_, truncated, _ in steps] == [False] * (HORIZON - 1) + [True]
    assert list(steps[-1][-1]["rewards"]) == [0.0]
    observation, _ = env.reset()
    assert observation[0] == 0
    assert env.step(0)[0][0] == 0


def test_a_horizon_is_a_whole_number():
    with pytest.raises(fsmdp.ModelError, match="horizon: expected a whole number"):
        fsmdp.Absorbing(Corridor(), 0)
