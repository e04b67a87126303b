"""The separation oracle: the worst violated Bellman inequality, as a hyperplane in the weights.

Paper: Theorem 1 and eq. hp(w). All steps and actions by elimination; no linear program.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np

from fsmdp.elimination import Maximum
from fsmdp.foundation.threads import cores
from fsmdp.model.tables import Floats
from fsmdp.planning.bellman import BellmanNetwork
from fsmdp.planning.clock import NO_LIMIT, Clock
from fsmdp.planning.inequalities import Cuts, following_weights, inequalities
from fsmdp.planning.intervals import OPTIMISTIC, Intervals

SECONDS_PER_TERM = 4e-9
"""Twice what an addition of a max-sum takes on an idle machine of 2024."""

WORTH_A_THREAD = 50_000
"""Table entries from which a step's max-sum takes longer than starting a thread."""


@dataclass(frozen=True, slots=True, eq=False)
class Separation:
    """The most violated inequality `normal @ weights >= reward`, flat over steps and functions."""

    violation: float  # reward - normal @ weights; at most 0 if the weights are feasible
    step: int
    state: tuple[int, ...]
    action: int
    normal: Floats = field(repr=False)  # (n_steps * n_functions,)
    reward: float


def excesses(network: BellmanNetwork, intervals: Intervals, weights: Floats) -> list[Maximum]:
    """All of `each_excess` together, with memory for the messages of all steps."""
    return list(each_excess(network, intervals, weights))


def each_excess(
    network: BellmanNetwork,
    intervals: Intervals,
    weights: Floats,
    view: str = OPTIMISTIC,
    clock: Clock = NO_LIMIT,
) -> Iterator[Maximum]:
    """max over states of R + discount * backup - V, for every action, step after step.

    Raises `Stopped` when the clock says so.
    """
    pairs = [
        (weights[step], following_weights(network, weights, step)) for step in range(len(weights))
    ]
    return excesses_of(network, intervals, pairs, view, clock)


def excesses_of(
    network: BellmanNetwork,
    intervals: Intervals,
    pairs: Sequence[tuple[Floats, Floats]],
    view: str = OPTIMISTIC,
    clock: Clock = NO_LIMIT,
) -> Iterator[Maximum]:
    """The same for pairs of weights: of a step, and of the one after it.

    Cost: one two-pass max-sum for each pair, and memory for the messages of a few.
    """
    check = None if clock is NO_LIMIT else clock.check

    def at(position: int) -> Maximum:
        entries = network.excess(*pairs[position], intervals, view)
        return network.elimination.maximise(entries, check)

    workers = cores()
    if len(pairs) == 1 or workers == 1 or network.elimination.n_rows < WORTH_A_THREAD:
        yield from map(at, range(len(pairs)))
        return
    with ThreadPoolExecutor(workers) as threads:
        waiting: deque[Future[Maximum]] = deque()
        for position in range(len(pairs)):
            waiting.append(threads.submit(at, position))
            if len(waiting) == workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def seconds_of_excesses(network: BellmanNetwork) -> float:
    """What the max-sums of all steps take, roughly: a matter of a machine's memory."""
    terms = network.n_weight_rows * network.elimination.schedule.n_terms
    workers = 1 if network.elimination.n_rows < WORTH_A_THREAD else cores()
    return terms * SECONDS_PER_TERM / workers


def separate(network: BellmanNetwork, intervals: Intervals, weights: Floats) -> Separation:
    """The worst violation over all steps, states and actions, and the hyperplane through it."""
    found = excesses(network, intervals, weights)
    step = int(np.argmax([maximum.value for maximum in found]))
    action = found[step].action
    state = found[step].state(action)[: len(network.inputs)]
    entries = None if found[step].is_exact else found[step].picked([action])
    cut = Cuts(np.array([step]), state[None, :], np.array([action]), entries)
    rows, rewards = inequalities(network, intervals, weights, cut)
    return Separation(
        found[step].value,
        step + 1,
        network.state_of(state),
        action,
        rows.toarray()[0],
        float(rewards[0]),
    )
