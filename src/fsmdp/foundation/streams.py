"""Random streams: one for each purpose, all from one seed, and no two of them the same.

A number that was drawn to choose something must not be drawn again to judge what was chosen. So
whoever draws names a purpose of this list; the generator is seeded with a SHA-256 digest of seed,
purpose and further parts. (Sums such as seed + 1 give one purpose the stream that another has
with the next seed, and NumPy makes the same generator of 0, (0, 0) and [0, 0, 0].) Domains draw
the parameters of a model from NumPy's generator of its seed, so that a seed keeps its model.
"""

import json
from enum import StrEnum
from hashlib import sha256

import numpy as np


class Purpose(StrEnum):
    """What random numbers are drawn for. Values go into digests: changing one changes results."""

    EPISODES = "episodes"
    """Rollouts, which Gymnasium seeds likewise: NumPy's generator of the seed itself."""

    LEARNING = "learning"
    """Episodes of `learn`."""

    LEARNER = "learner"
    """What a learner draws: samples of models, noise, ties."""

    DISCOVERY = "discovery"
    """Actions at random, to discover a structure."""

    DISCOVERY_EPISODES = "discovery episodes"
    """Episodes of a model, to discover its structure."""

    DISCOVERY_STARTS = "discovery starts"
    """Episodes of a model that begin in any state, to discover its structure."""

    SIMULATION = "simulation"
    """Parts of episodes of the solver, whose seed is one of the next four."""

    SCREENING = "screening"
    """Episodes that candidates are compared on."""

    FRESH = "fresh"
    """Episodes of the incumbent that nothing was chosen by."""

    VISITED = "visited"
    """Episodes whose states policies are fitted to."""

    INVARIANTS = "invariants"
    """Episodes whose states suggest invariants."""

    CROSSING = "crossing"
    """States put together of others, for fits."""

    PROJECTING = "projecting"
    """States that values of projections are regressed on."""

    CONTROL_VARIATE = "control variate"
    """Episodes that control variates are fitted to."""

    SEARCH = "search"
    """States that a search samples before it begins, and what it draws then."""

    BRANCHING = "branching"
    """Walks along which successors are counted."""

    ONLINE = "online"
    """Simulations at a decision."""

    CUTS = "cuts"
    """States and actions that cutting planes begin with."""

    DUALS = "duals"
    """States and actions drawn from the duals of a linear program."""

    CHOICES = "choices"
    """Actions of policies that choose at random, where no generator is given."""

    CROSS_CHECK = "cross-check"
    """States and actions on which two simulators are compared."""

    REPRODUCTION = "reproduction"
    """Models, tables and samples on which claims of the paper are tested."""

    EVALUATION = "evaluation"
    """Rollouts of a scoreboard, apart from those of the same seed by hand."""


def generator(seed: int, purpose: Purpose, *parts: int | str) -> np.random.Generator:
    """A generator for a purpose; further parts tell apart what serves the same one."""
    if purpose is Purpose.EPISODES:
        assert not parts, "episodes of a seed are one stream"
        return np.random.default_rng(seed)
    return np.random.default_rng(_digest(seed, purpose, parts))


def derived_seed(seed: int, purpose: Purpose, *parts: int | str) -> int:
    """A seed for what draws on its own: 64 bits that no other purpose has."""
    return _digest(seed, purpose, parts) >> 192


def _digest(seed: int, purpose: Purpose, parts: tuple[int | str, ...]) -> int:
    # Hexadecimal, since Python writes no decimal number of more than 4300 digits.
    named = [part if isinstance(part, str) else [f"{int(part):x}"] for part in (seed, *parts)]
    text = json.dumps([purpose.value, *named])
    return int.from_bytes(sha256(text.encode()).digest(), "big")
