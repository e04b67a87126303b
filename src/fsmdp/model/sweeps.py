"""Sweeps: the values of all states one step earlier, by contraction, on all cores."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fsmdp.compiled import compiled
from fsmdp.model.cases import Cases, common_groups
from fsmdp.model.contraction import Branch, Contraction, axis_sizes, drawn_axis
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.tables import Floats, Table

Integers = NDArray[np.int64]
Whole = NDArray[np.unsignedinteger]

BLOCK = 2**10
"""Entries that one piece of work runs over: they stay in the cache, and threads get pieces."""
SMOOTH = 32
WORTH_A_THREAD = 2**15
TIE = 1e-12
"""Actions whose values differ by less, relative to the value or to 1, count as equal."""


@dataclass(frozen=True, slots=True, eq=False)
class _Loops:
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


@dataclass(frozen=True, slots=True, eq=False)
class _Step:
    """A contraction with its numbers."""

    loops: _Loops
    table: Floats  # (entries of what the kernel looks at, outcomes), flat
    offsets: Integers  # (outcomes,) where each outcome stands in the array before
    entries: int


@dataclass(frozen=True, slots=True, eq=False)
class _Leaf:
    """How the complete means of some actions reach all states, and what each action adds."""

    loops: _Loops
    action: int
    reward: Floats  # difference to the reward of the default group, flat


class Sweeper:
    """One model's contractions, ready to run. Arrays: as many as the plan says, used again."""

    def __init__(self, model: FactoredMDP, plan: Branch) -> None:
        self.model, self._plan = model, plan
        self._sizes = axis_sizes(model)
        self._strides = _row_strides(
            [2 * i for i, size in enumerate(model.sizes) if size > 1], self._sizes
        )
        self._steps: dict[Contraction, _Step] = {}
        self._leaves: dict[Branch, tuple[_Leaf, ...]] = {}
        self._base, differences = _rewards(model)
        self._prepare(plan, differences)
        length = max(plan.largest, model.n_states)
        self._free = [np.empty(length) for _ in range(plan.arrays(given_up=True))]
        self._held = np.empty(model.n_states)

    def _prepare(self, branch: Branch, differences: Cases[Table]) -> None:
        for step in branch.steps:
            self._steps[step] = self._step(step)
        self._leaves[branch] = tuple(
            self._leaf(branch, action, differences.at(action)) for action in branch.actions
        )
        for part in branch.branches:
            self._prepare(part, differences)

    def _step(self, step: Contraction) -> _Step:
        model = self.model
        mechanism = model.dynamics.mechanisms[step.mechanism]
        kernel = mechanism.cases.groups[step.group]
        drawn = [drawn_axis(d, len(model.sizes)) for d in (*kernel.drawn, *mechanism.children)]
        axes = [*(2 * parent for parent in kernel.parents), *drawn]
        looked_at = [a for a in axes[: len(axes) - len(mechanism.children)] if self._sizes[a] > 1]
        forgotten = [i for i, a in enumerate(axes) if a in drawn and i >= len(axes) - len(mechanism.children) and a not in step.children]
        table = kernel.table.sum(axis=tuple(forgotten)) if forgotten else kernel.table
        # The outcomes of the table come in the order of the mechanism's children.
        children = [a for a in axes[len(axes) - len(mechanism.children) :] if a in step.children]
        before = _row_strides(step.before, self._sizes)
        offsets = np.zeros(1, dtype=np.int64)
        for child in children:
            moves = np.arange(self._sizes[child]) * before[child]
            offsets = (offsets[:, None] + moves).ravel()
        rows = {a: stride * len(offsets) for a, stride in _row_strides(looked_at, self._sizes).items()}
        loops = _loops(step.after, self._sizes, before, rows)
        return _Step(loops, np.ascontiguousarray(table).ravel(), offsets, step.entries)

    def _leaf(self, branch: Branch, action: int, difference: Table) -> _Leaf:
        means = _row_strides(branch.axes, self._sizes)
        scope = [2 * p for p in difference.scope if self._sizes[2 * p] > 1]
        rows = _row_strides(scope, self._sizes)
        loops = _loops(tuple(self._strides), self._sizes, means, rows)
        return _Leaf(loops, action, difference.values.ravel())

    def sweep(
        self, later: Floats, values: Floats, actions: Whole, slack: float, check: Callable[[], None]
    ) -> None:
        """values(s) = max_a R(s, a) + discount * E[later(s') | s, a], and the first best action.

        `slack` is how far values may be apart and still count as equal, beside rounding.
        `check` is called between contractions, and may raise.
        """
        free = list(self._free)
        start = free.pop()
        np.multiply(later, self.model.discount, out=start[: len(later)])
        values.fill(-np.inf)
        self._held.fill(-np.inf)
        with _threads(self.model.n_states) as share:

            def run(branch: Branch, array: Floats, given_up: bool) -> None:
                for step in branch.steps:
                    check()
                    part, after = self._steps[step], free.pop()
                    share(
                        part.loops.pieces,
                        lambda begin, end, part=part, array=array, after=after: contract(  # type: ignore[misc]
                            after, array, part.table, part.offsets, *_arrays(part.loops), part.loops.is_smooth, begin, end
                        ),
                    )
                    if given_up:
                        free.append(array)
                    array, given_up = after, True
                for leaf in self._leaves[branch]:
                    share(
                        leaf.loops.pieces,
                        lambda begin, end, leaf=leaf, array=array: keep_best(  # type: ignore[misc]
                            values,
                            self._held,
                            actions,
                            self._base,
                            array,
                            leaf.reward,
                            *_arrays(leaf.loops),
                            leaf.action,
                            slack,
                            begin,
                            end,
                        ),
                    )
                for part in branch.branches:
                    run(part, array, given_up and part is branch.branches[-1])
                if given_up and not branch.branches:
                    free.append(array)

            run(self._plan, start, True)


def reward_entries(model: FactoredMDP) -> int:
    """Numbers that the rewards of all states and actions take."""
    default, *others = _reward_scopes(model)
    sizes = model.sizes
    return model.n_states + sum(math.prod(sizes[p] for p in scope) for scope in others)


def _reward_scopes(model: FactoredMDP) -> list[tuple[int, ...]]:
    """For each group of actions, the variables on which its difference to group 0 depends."""
    groups = common_groups(model.reward_means, len(model.actions)).groups
    default = groups[0]
    return [
        tuple(
            sorted(
                {
                    position
                    for table, usual in zip(tables, default, strict=True)
                    if table is not usual
                    for position in (*table.scope, *usual.scope)
                }
            )
        )
        for tables in groups
    ]


def _rewards(model: FactoredMDP) -> tuple[Floats, Cases[Table]]:
    """Rewards of the default group in every state, and of other groups what they differ by."""
    together = common_groups(model.reward_means, len(model.actions))
    default, everything = together.groups[0], tuple(range(len(model.sizes)))
    differences = []
    for tables, scope in zip(together.groups, _reward_scopes(model), strict=True):
        changed = [pair for pair in zip(tables, default, strict=True) if pair[0] is not pair[1]]
        values = _sum([new for new, _ in changed], scope, model.sizes)
        values -= _sum([usual for _, usual in changed], scope, model.sizes)
        table = object.__new__(Table)
        object.__setattr__(table, "scope", scope)
        object.__setattr__(table, "values", values)
        differences.append(table)
    base = _sum(default, everything, model.sizes)
    return base, Cases(tuple(differences), together.exceptions)


def _sum(tables: Sequence[Table], scope: Sequence[int], sizes: Sequence[int]) -> Floats:
    """The sum of some tables for every assignment of a scope, flat; the last variable fastest."""
    wide = [position for position in scope if sizes[position] > 1]  # numpy's axes are few
    total = np.zeros([sizes[position] for position in wide])
    for table in tables:
        shape = [sizes[position] if position in table.scope else 1 for position in wide]
        total += table.values.reshape(shape)
    return total.ravel()


def _row_strides(axes: Sequence[int], sizes: Mapping[int, int]) -> dict[int, int]:
    """How far one more of each axis moves in an array of these axes, the last one fastest."""
    strides, stride = {}, 1
    for axis in reversed(axes):
        strides[axis] = stride
        stride *= sizes[axis]
    return dict(reversed(strides.items()))


def _loops(
    axes: Sequence[int],
    sizes: Mapping[int, int],
    first: Mapping[int, int],
    second: Mapping[int, int],
) -> _Loops:
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
    return _Loops(
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


def _arrays(loops: _Loops) -> tuple[Integers, Integers, Integers]:
    return loops.sizes, loops.strides, loops.moves


Share = Callable[[int, Callable[[int, int], None]], None]


@contextmanager
def _threads(entries: int) -> Iterator[Share]:
    """Run work on ranges of pieces, on all cores where the arrays are large."""
    workers = os.cpu_count() or 1
    if entries < WORTH_A_THREAD or workers == 1:
        yield lambda pieces, work: work(0, pieces)
        return
    with ThreadPoolExecutor(workers) as threads:

        def share(pieces: int, work: Callable[[int, int], None]) -> None:
            parts = min(pieces, 2 * workers)
            ends = [pieces * part // parts for part in range(parts + 1)]
            list(threads.map(work, ends[:-1], ends[1:]))

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
    slack: float,
    begin: int,
    end: int,
) -> None:
    """Take an action where it is better than all before, or equal to the best and of lower number.

    `values` holds the largest value so far, `held` the value of the action that is taken.
    """
    block = moves.shape[1]
    for piece in range(begin, end):
        at, row = place(piece, sizes, strides)
        for i in range(block):
            state = piece * block + i
            value = base[state] + rewards[row + moves[1, i]] + means[at + moves[0, i]]
            best = max(values[state], value)
            least = best - TIE * max(1.0, abs(best)) - slack
            values[state] = best
            if value >= least and (not held[state] >= least or action < actions[state]):
                held[state] = value
                actions[state] = action
