"""Proposition 1: models whose V* is linear in every basis while Q* is linear in hardly any."""

import numpy as np

from fsmdp.domains.registry import Domain, check_whole, register
from fsmdp.model.cases import Case
from fsmdp.model.conditionals import Conditional
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.rewards import Reward
from fsmdp.model.variables import Variable

RISKY_REWARDS = (-1.0, -0.5)
MOST_BITS = 12  # each bit's table has 2^(bits + 1) entries


def proposition_one(
    bits: int = 3, seed: int = 0, horizon: int | None = 1, discount: float = 1.0
) -> FactoredMDP:
    """A member of the family of Proposition 1, drawn uniformly with a seed.

    State: `bit-0`, ..., of which the first is the most significant, N = 2^bits states in all;
    S_opt has all bits 0. Action `safe` goes to S_opt and earns 0. Action `risky` takes state i
    to j(i), uniform over the states other than S_opt, and earns -1 or -1/2, each with probability
    1/2, independently for each i; both are fixed once drawn. An episode starts anywhere,
    uniformly.

    V* = 0, but Q*(., risky) is N random numbers: a basis of phi < N functions of (state, action)
    represents Q* with probability at most 2^(phi - N).
    Cost: bits * 2^bits numbers.
    Paper: Proposition 1.
    """
    check_whole("proposition 1", "bits", bits, 1, MOST_BITS)
    check_whole("proposition 1", "seed", seed, 0)
    rng = np.random.default_rng(seed)
    n_states = 2**bits
    successors = rng.integers(1, n_states, size=n_states)
    rewards = rng.choice(RISKY_REWARDS, size=n_states)
    names = [f"bit-{bit}" for bit in range(bits)]
    # next_bits[i, bit]: bit of state j(i), most significant first
    next_bits = successors[:, None] >> np.arange(bits - 1, -1, -1) & 1
    shape = (2,) * bits
    return FactoredMDP(
        variables=[Variable(name, 2) for name in names],
        actions=["safe", "risky"],
        conditionals=[
            Conditional(
                name,
                [
                    Case(["safe"], [], [1.0, 0.0]),
                    Case(["risky"], names, np.eye(2)[next_bits[:, bit]].reshape(*shape, 2)),
                ],
            )
            for bit, name in enumerate(names)
        ],
        rewards=[
            Reward(
                "risk",
                [Case(["safe"], [], 0.0), Case(["risky"], names, rewards.reshape(shape))],
                low=min(RISKY_REWARDS),
                high=0.0,
            )
        ],
        horizon=horizon,
        discount=discount,
        initial={name: [0.5, 0.5] for name in names},
    )


register(
    Domain(
        "proposition-1",
        proposition_one,
        "V* is 0 while Q* is linear in hardly any basis",
        positional=2,
        start_value=lambda **_: 0.0,
        environment="fsmdp/PropositionOne-v0",
        # Gymnasium's checker takes an episode of one step for a mistake.
        environment_options={"horizon": 2},
    )
)
