"""Places: states that simulated paths come back to, and what turned out better there: compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fsmdp.compiled import compiled
from fsmdp.model.lookup import Integers
from fsmdp.model.tables import Floats

Keys = NDArray[np.uint64]

SWITCH_ERRORS = 2.0
"""Standard errors by which another action must be ahead for a place to change to it."""

SWITCH_TRIALS = 4.0
"""Trials without which it does not."""

TIE = 1e-6
"""Of the scale of all differences: which of several untried actions is first is left to chance."""


class Places(NamedTuple):
    """States, each at a step, what is done there, and how much more was earned by something else.

    An open hash table; a key stands for a state and a step. Differences are paired: an alternative
    and the action of the place are followed in the same scenario.
    """

    key: Keys  # (size,)
    visits: Integers  # scenarios that came by; 0: empty
    action: Integers  # what is done here
    first: Integers  # alternative tried here, or -1
    counts: Integers  # (2,) places and alternatives in use
    alternative: Integers  # (size,) action
    following: Integers  # next alternative of the same place, or -1
    trials: Floats
    ahead: Floats  # sum of differences
    squares: Floats
    trials_of_action: Floats  # (n_actions,) at all places together
    ahead_of_action: Floats
    spread: Floats  # (2,) trials, and sum of squared differences


def new_places(size: int, n_actions: int) -> Places:
    """Room for size / 2 places, a power of two, and `size` alternatives."""

    def integers(length: int) -> Integers:
        return np.zeros(length, dtype=np.int64)

    return Places(
        np.zeros(size, dtype=np.uint64),
        integers(size),
        integers(size),
        integers(size),
        integers(2),
        integers(size),
        integers(size),
        np.zeros(size),
        np.zeros(size),
        np.zeros(size),
        np.zeros(n_actions),
        np.zeros(n_actions),
        np.zeros(2),
    )


def hash_multipliers(n_variables: int) -> Keys:
    """An odd number for each variable and one for the step: sums of products tell states apart."""
    rng = np.random.default_rng(20_240_229)
    return rng.integers(0, 2**64, n_variables + 1, dtype=np.uint64) | np.uint64(1)


@compiled(inline="always")
def hashed(multipliers: Keys, values: Integers, n_variables: int, step: int) -> np.uint64:
    """64 bits that stand for a state at a step; two of n agree with chance n^2 / 2^65."""
    key = multipliers[n_variables] * np.uint64(step)
    for variable in range(n_variables):
        key += multipliers[variable] * np.uint64(values[variable])
    return key ^ (key >> np.uint64(31))  # type: ignore[no-any-return]


@compiled(inline="always")
def find_place(places: Places, key: np.uint64) -> int:
    """Where a key stands, or the empty entry where it would."""
    size = len(places.key)
    place = np.int64(key & np.uint64(size - 1))
    while places.visits[place] > 0 and places.key[place] != key:
        place = (place + 1) & (size - 1)
    return place  # type: ignore[return-value]


@compiled()
def promising(places: Places, place: int, n_actions: int, rng: np.random.Generator) -> int:
    """The alternative with the largest mean difference plus error, as far as is known; -1: none.

    An action that was not tried here counts as it did at other places. Cost: the actions.
    """
    scale = np.sqrt(places.spread[1] / max(1.0, places.spread[0]))
    tried = np.full(n_actions, -1, dtype=np.int64)
    entry = places.first[place]
    while entry >= 0:
        tried[places.alternative[entry]] = entry
        entry = places.following[entry]
    best = -1
    best_score = -np.inf
    for action in range(n_actions):
        if action == places.action[place]:
            continue
        ahead = places.ahead_of_action[action] / (places.trials_of_action[action] + 1.0)
        trials = 1.0
        entry = tried[action]
        if entry >= 0:
            ahead += places.ahead[entry]
            trials += places.trials[entry]
        score = ahead / trials + scale / np.sqrt(trials) + TIE * scale * rng.random()
        if score > best_score:
            best = action
            best_score = score
    if best < 0 or tried[best] >= 0:
        return -1 if best < 0 else tried[best]
    entry = places.counts[1]
    if entry == len(places.trials):
        return -1
    places.counts[1] += 1
    places.alternative[entry] = best
    places.following[entry] = places.first[place]
    places.first[place] = entry
    places.trials[entry] = 0.0
    places.ahead[entry] = 0.0
    places.squares[entry] = 0.0
    return entry  # type: ignore[no-any-return]


@compiled()
def learn(places: Places, place: int, entry: int, difference: float) -> None:
    """Take a paired difference in; change the place's action if the alternative is clearly better.

    Differences from the action before are forgotten then, so a change can be taken back.
    """
    action = places.alternative[entry]
    places.trials[entry] += 1.0
    places.ahead[entry] += difference
    places.squares[entry] += difference * difference
    places.trials_of_action[action] += 1.0
    places.ahead_of_action[action] += difference
    places.spread[0] += 1.0
    places.spread[1] += difference * difference
    trials = places.trials[entry]
    if trials < SWITCH_TRIALS:
        return
    mean = places.ahead[entry] / trials
    variance = max(0.0, places.squares[entry] / trials - mean * mean) / (trials - 1.0)
    if mean > SWITCH_ERRORS * np.sqrt(variance):
        places.action[place] = action
        places.first[place] = -1
