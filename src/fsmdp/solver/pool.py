"""Pools: the states that policies met, step by step, each once with how often it was met."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fsmdp.model.lookup import Integers
from fsmdp.model.tables import Floats


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
    each step. Cost: sorting a step's states.
    """
    steps = range(len(pool.states))
    if len(pool.states) == 1:
        by_step = [met.reshape(-1, met.shape[2])]
    else:
        by_step = [met[:, step] for step in steps]
    merged = []
    for step in steps:
        check()
        merged.append(_merged(pool.states[step], pool.counts[step], by_step[step], most))
    return Pool(tuple(states for states, _ in merged), tuple(counts for _, counts in merged))


def _merged(states: Integers, counts: Floats, met: Integers, most: int) -> tuple[Integers, Floats]:
    every = np.concatenate([states, met.astype(np.int64)])
    weights = np.concatenate([counts, np.ones(len(met))])
    compact = np.ascontiguousarray(every.astype(np.uint16))
    keys = compact.view([("", compact.dtype)] * compact.shape[1]).reshape(-1)
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    total: Floats = np.asarray(np.bincount(which, weights), dtype=np.float64)
    if len(first) > most:
        kept = np.sort(np.argsort(-total, kind="stable")[:most])
        first, total = first[kept], total[kept]
    return every[first], total
