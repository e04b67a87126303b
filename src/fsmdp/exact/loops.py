"""Loops over arrays with an axis for each variable: joined, cut into pieces, compiled, threaded."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fsmdp.compiled import compiled
from fsmdp.foundation.threads import cores
from fsmdp.model.tables import Floats

Integers = NDArray[np.int64]
Whole = NDArray[np.unsignedinteger]

BLOCK = 2**10
"""Entries that one piece of work runs over: they stay in the cache, and threads get pieces."""
SMOOTH = 32
WORTH_A_THREAD = 2**15


@dataclass(frozen=True, slots=True, eq=False)
class Loops:
    """How to run over an array in order, and how far that moves in two others that feed it.

    The innermost axes make a block, whose moves are written out; loops run over the others.
    """

    sizes: Integers  # (n_loops,)
    strides: Integers  # (n_loops, 2)
    moves: Integers  # (2, entries of a block)
    is_smooth: bool  # within a block, one step in the first and none in the second

    @property
    def pieces(self) -> int:
        """How many blocks there are."""
        return math.prod(self.sizes.tolist())


def row_strides(axes: Sequence[int], sizes: Mapping[int, int], width: int = 1) -> dict[int, int]:
    """How far one more of each axis moves in an array of rows, the last axis fastest."""
    strides, stride = {}, width
    for axis in reversed(axes):
        strides[axis] = stride
        stride *= sizes[axis]
    return strides


def loops_over(
    axes: Sequence[int],
    sizes: Mapping[int, int],
    first: Mapping[int, int],
    second: Mapping[int, int],
) -> Loops:
    """Loops over an array of some axes, given how far each axis moves in two others."""
    rows = [(sizes[axis], first.get(axis, 0), second.get(axis, 0)) for axis in axes]
    smooth = _innermost(rows, lambda entries, row: row[1:] == (entries, 0))
    block = len(rows) - smooth
    if math.prod(size for size, *_ in rows[block:]) < SMOOTH:
        smooth, block = 0, len(rows) - _innermost(rows, lambda *_: True)
    moves = np.zeros((2, 1), dtype=np.int64)
    for size, *strides in rows[block:]:
        steps = np.multiply.outer(strides, np.arange(size))
        moves = (moves[:, :, None] + steps[:, None, :]).reshape(2, -1)
    joined: list[list[int]] = []  # neighbours that are one loop for both arrays, innermost first
    for size, *strides in reversed(rows[:block]):
        if joined and all(
            stride == joined[-1][0] * inner
            for stride, inner in zip(strides, joined[-1][1:], strict=True)
        ):
            joined[-1][0] *= size
        else:
            joined.append([size, *strides])
    loops = np.array(joined[::-1], dtype=np.int64).reshape(-1, 3)
    return Loops(
        np.ascontiguousarray(loops[:, 0]), np.ascontiguousarray(loops[:, 1:]), moves, smooth > 0
    )


def _innermost(
    rows: Sequence[tuple[int, int, int]], fits: Callable[[int, tuple[int, int, int]], bool]
) -> int:
    """How many of the last axes fit into a block; the first of them always does if it may."""
    entries, count = 1, 0
    for row in reversed(rows):
        if (count and entries * row[0] > BLOCK) or not fits(entries, row):
            break
        entries, count = entries * row[0], count + 1
    return count


Share = Callable[[int, Callable[[int, int], None]], None]


@contextmanager
def threads(entries: int) -> Iterator[Share]:
    """Run work on ranges of pieces, on all cores where the arrays are large."""
    from concurrent.futures import ThreadPoolExecutor

    workers = cores()
    if entries < WORTH_A_THREAD or workers == 1:
        yield lambda pieces, work: work(0, pieces)
        return
    with ThreadPoolExecutor(workers) as pool:

        def share(pieces: int, work: Callable[[int, int], None]) -> None:
            parts = min(pieces, 2 * workers)
            ends = [pieces * part // parts for part in range(parts + 1)]
            list(pool.map(work, ends[:-1], ends[1:]))

        yield share


@compiled(inline="always")
def place(piece: int, sizes: Integers, strides: Integers) -> tuple[int, int]:
    """Where a piece begins in two arrays."""
    first, second = 0, 0
    for loop in range(len(sizes) - 1, -1, -1):
        digit = piece % sizes[loop]
        piece //= sizes[loop]
        first += digit * strides[loop, 0]
        second += digit * strides[loop, 1]
    return first, second


@compiled()
def contract(
    after: Floats,
    before: Floats,
    table: Floats,
    offsets: Integers,
    sizes: Integers,
    strides: Integers,
    moves: Integers,
    is_smooth: bool,
    begin: int,
    end: int,
) -> None:
    """after[i] = sum_o before[.. + offsets[o]] * table[.., o], for a range of pieces."""
    n_outcomes, block = len(offsets), moves.shape[1]
    for piece in range(begin, end):
        at, row = place(piece, sizes, strides)
        target = after[piece * block : (piece + 1) * block]
        if n_outcomes == 2:
            # Both at once: half as often through the array that is written.
            one, two = before[at + offsets[0] :], before[at + offsets[1] :]
            if is_smooth:
                first, second = table[row], table[row + 1]
                for i in range(block):
                    target[i] = first * one[i] + second * two[i]
            else:
                for i in range(block):
                    source, entry = moves[0, i], row + moves[1, i]
                    target[i] = table[entry] * one[source] + table[entry + 1] * two[source]
            continue
        target[:] = 0.0
        for outcome in range(n_outcomes):
            one = before[at + offsets[outcome] :]
            if is_smooth:
                first = table[row + outcome]
                if first != 0.0:
                    for i in range(block):
                        target[i] += first * one[i]
            else:
                for i in range(block):
                    target[i] += table[row + moves[1, i] + outcome] * one[moves[0, i]]


@compiled()
def contract_best(
    after: Floats,
    before: Floats,
    low: Floats,
    high: Floats,
    offsets: Integers,
    sizes: Integers,
    strides: Integers,
    moves: Integers,
    is_smooth: bool,
    begin: int,
    end: int,
) -> None:
    """after[i] = max_p sum_o before[.. + offsets[o]] p[o] over low <= p <= high with sum p = 1.

    What is left of the mass beyond `low` goes to the best outcome first, then to the next.
    Cost: for each entry, outcomes squared at most.
    """
    n_outcomes, block = len(offsets), moves.shape[1]
    order = np.zeros(n_outcomes, dtype=np.int64)
    for piece in range(begin, end):
        at, row = place(piece, sizes, strides)
        target = after[piece * block : (piece + 1) * block]
        if n_outcomes == 2:
            one, two = before[at + offsets[0] :], before[at + offsets[1] :]
            if is_smooth:
                least = max(low[row + 1], 1.0 - high[row])
                most = min(high[row + 1], 1.0 - low[row])
                for i in range(block):
                    gained = two[i] - one[i]
                    target[i] = one[i] + max(least * gained, most * gained)
            else:
                for i in range(block):
                    source, entry = moves[0, i], row + moves[1, i]
                    least = max(low[entry + 1], 1.0 - high[entry])
                    most = min(high[entry + 1], 1.0 - low[entry])
                    gained = two[source] - one[source]
                    target[i] = one[source] + max(least * gained, most * gained)
            continue
        for i in range(block):
            source, entry = at + moves[0, i], row + moves[1, i]
            mass, mean = 1.0, 0.0
            for outcome in range(n_outcomes):
                value = before[source + offsets[outcome]]
                mass -= low[entry + outcome]
                mean += low[entry + outcome] * value
                slot = outcome
                while slot > 0 and before[source + offsets[order[slot - 1]]] < value:
                    order[slot] = order[slot - 1]
                    slot -= 1
                order[slot] = outcome
            for slot in range(n_outcomes):
                outcome = int(order[slot])
                if mass <= 0.0:
                    break
                added = min(mass, high[entry + outcome] - low[entry + outcome])
                mean += added * before[source + offsets[outcome]]
                mass -= added
            target[i] = mean


@compiled()
def keep_best(
    values: Floats,
    held: Floats,
    actions: Whole,
    base: Floats,
    means: Floats,
    rewards: Floats,
    sizes: Integers,
    strides: Integers,
    moves: Integers,
    action: int,
    tie: float,
    begin: int,
    end: int,
) -> None:
    """Take an action where it is better than all before, or equal to the best and of lower number.

    Equal are values within `tie` of the best. `values` holds the largest value so far, `held` the
    value of the action that is taken.
    """
    block = moves.shape[1]
    for piece in range(begin, end):
        at, row = place(piece, sizes, strides)
        for i in range(block):
            state = piece * block + i
            value = base[state] + rewards[row + moves[1, i]] + means[at + moves[0, i]]
            best = max(values[state], value)
            least = best - tie
            values[state] = best
            if value >= least and (not held[state] >= least or action < actions[state]):
                held[state] = value
                actions[state] = action


@compiled()
def take_given(
    values: Floats,
    chosen: Whole,
    base: Floats,
    means: Floats,
    rewards: Floats,
    sizes: Integers,
    strides: Integers,
    moves: Integers,
    action: int,
    share: float,
    begin: int,
    end: int,
) -> None:
    """Take the value of an action where it is chosen, or a share of it in every state."""
    block = moves.shape[1]
    for piece in range(begin, end):
        at, row = place(piece, sizes, strides)
        for i in range(block):
            state = piece * block + i
            value = base[state] + rewards[row + moves[1, i]] + means[at + moves[0, i]]
            if share > 0.0:
                values[state] += share * value
            elif chosen[state] == action:
                values[state] = value
