"""An environment of one's own, learnt: two queues and one server, through Gymnasium.

The learner is told which variables depend on which, and nothing else: no probabilities.

Run: python examples/own_environment.py
"""

import gymnasium as gym
import numpy as np

import fsmdp

ROOM = 4  # customers that a queue holds, counting none: 0, 1, 2, 3
HORIZON = 20
ARRIVALS = (0.3, 0.5)
SERVED = 0.8


class Queues(gym.Env):
    """Each step the server works on one of two queues; waiting customers cost."""

    observation_space = gym.spaces.MultiDiscrete([ROOM, ROOM])
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):  # noqa: ARG002
        """Begin with empty queues."""
        super().reset(seed=seed)
        self.waiting = np.zeros(2, dtype=np.int64)
        self.step_count = 0
        return self.waiting.copy(), {}

    def step(self, action):
        """Serve, then let customers arrive; rewards come one by one in info."""
        rewards = [1 - count / (ROOM - 1) for count in self.waiting]
        if self.waiting[action] > 0 and self.np_random.random() < SERVED:
            self.waiting[action] -= 1
        for queue, rate in enumerate(ARRIVALS):
            if self.waiting[queue] < ROOM - 1 and self.np_random.random() < rate:
                self.waiting[queue] += 1
        self.step_count += 1
        over = self.step_count == HORIZON
        return self.waiting.copy(), sum(rewards), False, over, {"rewards": rewards}


def structure() -> fsmdp.Structure:
    """What the learner is told: scopes, bounds, and a basis."""
    queues = [fsmdp.Variable("first queue", ROOM), fsmdp.Variable("second queue", ROOM)]
    short = [1 - count / (ROOM - 1) for count in range(ROOM)]
    return fsmdp.Structure.from_parents(
        queues,
        ["serve first", "serve second"],
        parents={
            "first queue": [
                fsmdp.Case(["serve first"], parents=["first queue"]),
                fsmdp.Case(fsmdp.ANY, parents=["first queue"]),
            ],
            "second queue": [
                fsmdp.Case(["serve second"], parents=["second queue"]),
                fsmdp.Case(fsmdp.ANY, parents=["second queue"]),
            ],
        },
        rewards=[
            fsmdp.Reward(
                f"{queue.name} is short",
                [fsmdp.Case(fsmdp.ANY, parents=[queue.name], table=short)],
                low=0,
                high=1,
            )
            for queue in queues
        ],
        basis=fsmdp.Basis.singles(queues),
        horizon=HORIZON,
    )


def main() -> None:
    """Learn, and compare with acting at random."""
    told = structure()
    learner = fsmdp.PSRLFactored(told, seed=0)
    history = fsmdp.learn(Queues(), learner, episodes=300, seed=0)
    print(history)
    chance = fsmdp.learn(Queues(), fsmdp.RandomLearner(told), episodes=300, seed=0)
    print(f"learnt: {history.returns[-100:].mean():.2f} an episode")
    print(f"at random: {chance.returns.mean():.2f} an episode")


if __name__ == "__main__":
    main()
