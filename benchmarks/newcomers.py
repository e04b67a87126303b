"""Learning what a new user would bring: an inventory, and a queueing network through Gymnasium.

The learner is told the structure and its basis (singles, pairs, blocks of neighbours). Printed: the
mean of the episodes 51 to 100 and of the last hundred, beside acting at random and the plan of the
known model, and the largest optimistic value beside the most that an episode can earn.
Run: python benchmarks/newcomers.py [--episodes 2000] [--seed 0]
"""

import argparse
import time
import warnings

import gymnasium as gym
import numpy as np
from rich.console import Console
from rich.table import Table

import fsmdp
from fsmdp import ANY, Basis, Case, Conditional, FactoredMDP, Reward, Variable

PRODUCTS, LEVELS, HORIZON = 6, 5, 15
QUEUES, ROOM = 4, 4
ARRIVE, SERVED = 0.5, 0.8


def inventory():
    """Six products on shelves of four, one reorder at a time; demand is higher in season."""
    season = Variable("season", 2)
    products = [Variable(f"stock-{i}", LEVELS) for i in range(PRODUCTS)]
    actions = ["wait", *(f"reorder-{i}" for i in range(PRODUCTS))]
    sold = np.zeros((LEVELS, 2, LEVELS))
    filled = np.zeros((LEVELS, 2, LEVELS))
    for level in range(LEVELS):
        for now, chance in enumerate((0.2, 0.45)):
            for start, table in ((level, sold), (LEVELS - 1, filled)):
                table[level, now, max(0, start - 1)] += chance
                table[level, now, start] += 1 - chance
    conditionals = [Conditional(season, Case(ANY, [season], [[0.9, 0.1], [0.2, 0.8]]))]
    rewards = []
    for i, product in enumerate(products):
        cases = [
            Case([actions[i + 1]], [product, season], filled),
            Case(ANY, [product, season], sold),
        ]
        conditionals.append(Conditional(product, cases))
        earned = [[0.0, 0.0], *([[0.2, 0.45]] * (LEVELS - 1))]
        rewards.append(Reward(f"sales-{i}", Case(ANY, [product, season], earned), low=0, high=1))
    cost = [Case(actions[1:], [], -0.3), Case(ANY, [], 0.0)]
    rewards.append(Reward("order", cost, low=-1, high=0))
    start = {product.name: LEVELS - 1 for product in products}
    return FactoredMDP(
        [season, *products], actions, conditionals, rewards, horizon=HORIZON, initial=start
    )


def tandem():
    """Queues in a row, one server: who is served goes on to the next, so that draws correlate."""
    queues = [Variable(f"queue-{i}", ROOM) for i in range(QUEUES)]
    actions = [f"serve-{i}" for i in range(QUEUES)]
    served = Variable("served", 2)
    served_if = [[1.0, 0.0], *([[1 - SERVED, SERVED]] * (ROOM - 1))]
    cases = [Case([a], [q], served_if) for a, q in zip(actions, queues, strict=True)]
    conditionals = [Conditional(served, cases)]
    for i, queue in enumerate(queues):
        cases = []
        for at, action in enumerate(actions):
            law = np.zeros((ROOM, 2, ROOM))
            for waiting, done in np.ndindex(ROOM, 2):
                left = max(0, waiting - (at == i and done))
                came = ARRIVE if i == 0 else float(at == i - 1 and done)
                law[waiting, done, min(ROOM - 1, left + 1)] += came
                law[waiting, done, left] += 1 - came
            cases.append(Case([action], [queue], law, drawn=[served]))
        conditionals.append(Conditional(queue, cases))
    short = [1 - waiting / (ROOM - 1) for waiting in range(ROOM)]
    rewards = [
        Reward(f"short-{i}", Case(ANY, [q], short), low=0, high=1) for i, q in enumerate(queues)
    ]
    return FactoredMDP(queues, actions, conditionals, rewards, latents=[served], horizon=HORIZON)


class Tandem(gym.Env):
    """The same, written by hand."""

    observation_space = gym.spaces.MultiDiscrete([ROOM] * QUEUES)
    action_space = gym.spaces.Discrete(QUEUES)

    def reset(self, *, seed=None, options=None):  # noqa: ARG002
        super().reset(seed=seed)
        self.waiting, self.now = np.zeros(QUEUES, dtype=np.int64), 0
        return self.waiting.copy(), {}

    def step(self, action):
        rewards = [1 - waiting / (ROOM - 1) for waiting in self.waiting]
        if self.waiting[action] > 0 and self.np_random.random() < SERVED:
            self.waiting[action] -= 1
            if action + 1 < QUEUES:
                self.waiting[action + 1] = min(ROOM - 1, self.waiting[action + 1] + 1)
        if self.np_random.random() < ARRIVE:
            self.waiting[0] = min(ROOM - 1, self.waiting[0] + 1)
        self.now += 1
        return self.waiting.copy(), sum(rewards), False, self.now == HORIZON, {"rewards": rewards}


def bases(model):
    """Name and functions: each variable, pairs, and blocks of neighbours."""
    n = len(model.variables)
    yield "singles", Basis.singles(model)
    yield "pairs", Basis.pairs(model)
    yield "blocks", Basis.blocks(model, [(i, i + 1) for i in range(n - 1)])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    console = Console(highlight=False, width=130)
    table = Table(title=f"{asked.episodes:,} episodes")
    heads = (
        "",
        "basis",
        "learner",
        "random",
        "51 to 100",
        "last 100",
        "known model",
        "of it",
        "largest V_1",
        "most",
        "s",
    )
    for heading in heads:
        table.add_column(heading, justify="right")
    for name, model, world in (
        ("inventory", inventory(), None),
        ("queues", tandem(), Tandem()),
    ):
        chance = fsmdp.rollout(model, "random", 2000).mean
        known = fsmdp.plan(model, time_limit=30).incumbent.mean
        for kind, basis in bases(model):
            for learner in (fsmdp.UCRLFactored, fsmdp.PSRLFactored):
                structure = model.structure(basis)
                options = {"known_rewards": model.rewards}
                began = time.perf_counter()
                history = fsmdp.learn(
                    model if world is None else world,
                    learner(structure, seed=asked.seed, **options),
                    episodes=asked.episodes,
                    seed=asked.seed,
                )
                early, late = history.returns[50:100].mean(), history.returns[-100:].mean()
                largest = history.optimistic_values.max()
                most = structure.largest_return
                row = [name, kind, learner.__name__, f"{chance:.2f}", f"{early:.2f}", f"{late:.2f}"]
                row += [
                    f"{known:.2f}",
                    f"{100 * late / known:.0f} %",
                    f"{largest:.2f}",
                    f"{most:.2f}",
                ]
                row += [f"{time.perf_counter() - began:.0f}"]
                table.add_row(*row)
                console.print(" | ".join(row))
    console.print(table)


if __name__ == "__main__":
    main()
