"""Pools: the states that policies met, step by step, each once with how often it was met."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fsmdp.model.lookup import Integers
from fsmdp.model.tables import Floats

Words = NDArray[np.uint64]  # (n_words, n_states)

AT_A_TIME = 2**20
"""Numbers in the states that are sorted at a time."""


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """For each step the states met there and their counts; one step stands for all if infinite."""

    states: tuple[Integers, ...]  # (n, n_variables) each
    counts: tuple[Floats, ...]

    @property
    def size(self) -> int:
        """States of all steps together."""
        return sum(map(len, self.states))


def empty_pool(n_steps: int, n_variables: int) -> Pool:
    """A pool without states."""
    return Pool(
        tuple(np.zeros((0, n_variables), dtype=np.int64) for _ in range(n_steps)),
        tuple(np.zeros(0) for _ in range(n_steps)),
    )


def with_states(
    pool: Pool, met: Integers, most: int, check: Callable[[], None] = lambda: None
) -> Pool:
    """The pool with the states of further episodes, met: (episodes, steps, n_variables).

    At most `most` states are kept for a step, the ones met most often. `check` is called before
    each step, and again and again while there are many states. Cost: sorting a step's states.
    """
    by_step = [met[:, step] for step in range(len(pool.states))]
    if len(pool.states) == 1:
        by_step = [met.reshape(-1, met.shape[2])]
    merged = [
        _merged(states, counts, new, most, check)
        for states, counts, new in zip(pool.states, pool.counts, by_step, strict=True)
    ]
    return Pool(tuple(states for states, _ in merged), tuple(counts for _, counts in merged))


def _merged(
    states: Integers, counts: Floats, met: Integers, most: int, check: Callable[[], None]
) -> tuple[Integers, Floats]:
    """Each state once, in lexicographic order: sorted part by part, and what is left of these."""
    check()
    sizes = np.maximum(states.max(axis=0, initial=0), met.max(axis=0, initial=0)) + 1
    n_known, at_a_time = len(states), max(1, AT_A_TIME // len(sizes))
    parts = [_distinct(_packed(states, sizes), counts, np.arange(n_known))]
    for first in range(0, len(met), at_a_time):
        check()
        words = _packed(met[first : first + at_a_time], sizes)
        rows = n_known + first + np.arange(words.shape[1])
        parts.append(_distinct(words, np.ones(len(rows)), rows))
    check()
    words, counts, rows = (np.concatenate(part, axis=-1) for part in zip(*parts, strict=True))
    _, total, rows = _distinct(words, counts, rows)
    if len(rows) > most:
        kept = np.sort(np.argsort(-total, kind="stable")[:most])
        rows, total = rows[kept], total[kept]
    found = np.empty((len(rows), len(sizes)), dtype=np.int64)
    is_known = rows < n_known
    found[is_known] = states[rows[is_known]]
    found[~is_known] = met[rows[~is_known] - n_known]
    return found, total


def _distinct(words: Words, counts: Floats, rows: Integers) -> tuple[Words, Floats, Integers]:
    """Each state once, in order, with the sum of its counts and its first row."""
    order = np.lexsort(words[::-1])
    words = words[:, order]
    is_first = np.ones(len(order), dtype=np.bool_)
    is_first[1:] = (words[:, 1:] != words[:, :-1]).any(axis=0)
    total = np.bincount(np.cumsum(is_first) - 1, counts[order]).astype(np.float64)
    return words[:, is_first], total, rows[order[is_first]]


def _packed(states: Integers, sizes: Integers) -> Words:
    """States as a few whole numbers each, in the same lexicographic order."""
    words: list[NDArray[np.uint64]] = []
    room = 0
    for variable, size in enumerate(sizes.tolist()):
        if size > room:
            words.append(np.zeros(len(states), dtype=np.uint64))
            room = 2**64
        words[-1] *= np.uint64(size)
        words[-1] += states[:, variable].astype(np.uint64)
        room //= size
    return np.stack(words)
