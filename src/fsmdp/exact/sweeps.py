"""Sweeps: the values of all states one step earlier, by contraction, on all cores."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fsmdp.compiled import compiled
from fsmdp.exact.contraction import Branch, Contraction, axis_sizes, drawn_axis
from fsmdp.exact.flat import all_assignments
from fsmdp.exact.state_rewards import reward_scopes, state_rewards, terminal_states
from fsmdp.foundation.threads import cores
from fsmdp.model.cases import Cases
from fsmdp.model.extremes import best_in_box, sort_descending
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.tables import Floats, Table, read_only

Integers = NDArray[np.int64]
Whole = NDArray[np.unsignedinteger]

BLOCK = 2**10
"""Entries that one piece of work runs over: they stay in the cache, and threads get pieces."""
SMOOTH = 32
WORTH_A_THREAD = 2**15


class Loops(NamedTuple):
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
def place(piece: int, loops: Loops) -> tuple[int, int]:
    """Where a piece begins in two arrays."""
    sizes, strides = loops.sizes, loops.strides
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
    loops: Loops,
    begin: int,
    end: int,
) -> None:
    """after[i] = sum_o before[.. + offsets[o]] * table[.., o], for a range of pieces."""
    moves, is_smooth = loops.moves, loops.is_smooth
    n_outcomes, block = len(offsets), moves.shape[1]
    for piece in range(begin, end):
        at, row = place(piece, loops)
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
    loops: Loops,
    begin: int,
    end: int,
) -> None:
    """after[i] = max_p sum_o before[.. + offsets[o]] p[o] over low <= p <= high with sum p = 1.

    Two outcomes have a form of their own, without sorting.
    Cost: for each entry, outcomes squared at most.
    """
    moves, is_smooth = loops.moves, loops.is_smooth
    n_outcomes, block = len(offsets), moves.shape[1]
    order = np.zeros(n_outcomes, dtype=np.int64)
    values, law = np.zeros(n_outcomes), np.zeros(n_outcomes)
    for piece in range(begin, end):
        at, row = place(piece, loops)
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
            for outcome in range(n_outcomes):
                values[outcome] = before[source + offsets[outcome]]
            sort_descending(values, order)
            target[i] = best_in_box(low, high, entry, values, order, law)


@compiled()
def keep_best(
    values: Floats,
    held: Floats,
    actions: Whole,
    base: Floats,
    means: Floats,
    rewards: Floats,
    loops: Loops,
    action: int,
    tie: float,
    begin: int,
    end: int,
) -> None:
    """Take an action where it is better than all before, or equal to the best and of lower number.

    Equal are values within `tie` of the best. `values` holds the largest value so far, `held` the
    value of the action that is taken.
    """
    moves = loops.moves
    block = moves.shape[1]
    for piece in range(begin, end):
        at, row = place(piece, loops)
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
    loops: Loops,
    action: int,
    share: float,
    begin: int,
    end: int,
) -> None:
    """Take the value of an action where it is chosen, or a share of it wherever it is allowed."""
    moves = loops.moves
    block = moves.shape[1]
    for piece in range(begin, end):
        at, row = place(piece, loops)
        for i in range(block):
            state = piece * block + i
            value = base[state] + rewards[row + moves[1, i]] + means[at + moves[0, i]]
            if share > 0.0:
                if value > -np.inf:
                    values[state] += share * value
            elif chosen[state] == action:
                values[state] = value


Check = Callable[[], None]
"""Called between pieces of work; may raise to end it."""


Ends = tuple[Floats, Floats]
Boxes = Sequence[Sequence[Ends]]
"""Lower and upper ends of the probabilities of each mechanism, by group, in place of tables."""


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A contraction with its numbers."""

    loops: Loops
    table: Floats  # (entries of what the kernel looks at, outcomes), flat
    offsets: Integers  # (outcomes,) where each outcome stands in the array before
    high: Floats | None = None  # upper ends, where `table` holds the lower ends of a box

    def run(self, after: Floats, before: Floats, begin: int, end: int) -> None:
        """Contract a range of pieces."""
        where = self.offsets, self.loops, begin, end
        if self.high is None:
            contract(after, before, self.table, *where)
        else:
            contract_best(after, before, self.table, self.high, *where)


@dataclass(frozen=True, slots=True, eq=False)
class _Leaf:
    """How the complete means of an action reach all states, and what its reward adds."""

    loops: Loops
    action: int
    reward: Floats  # difference to the default group's; minus infinity where it is not allowed


class Sweeper:
    """One model's contractions, ready to run; arrays are used again from sweep to sweep.

    With `boxes` the probabilities of each kernel are the best in a box, for every entry that it is
    contracted at by itself (see `Boxes`).
    """

    def __init__(self, model: FactoredMDP, plan: Branch, boxes: Boxes | None = None) -> None:
        self.model, self._plan, self._boxes = model, plan, boxes
        self._sizes = axis_sizes(model)
        self._steps: dict[Contraction, Step] = {}
        self._leaves: dict[Branch, tuple[_Leaf, ...]] = {}
        self._base, differences = state_rewards(model)
        self._over = terminal_states(model)
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

    def _step(self, step: Contraction) -> Step:
        n_variables = len(self.model.sizes)
        mechanism = self.model.dynamics.mechanisms[step.mechanism]
        kernel = mechanism.cases.groups[step.group]
        drawn = [drawn_axis(position, n_variables) for position in kernel.drawn]
        looked_at = [*(2 * parent for parent in kernel.parents), *drawn]
        # Nobody looks at some children, such as latents: their axes are summed out of the table.
        children = [drawn_axis(child, n_variables) for child in mechanism.children]
        unseen = tuple(len(looked_at) + i for i, c in enumerate(children) if c not in step.children)
        ends = (kernel.table,) if self._boxes is None else self._boxes[step.mechanism][step.group]
        tables = [
            read_only(np.ascontiguousarray(end.sum(axis=unseen) if unseen else end).ravel())
            for end in ends
        ]
        before = row_strides(step.before, self._sizes)
        offsets = np.zeros(1, dtype=np.int64)
        for child in children:
            if child in step.children:
                moves = np.arange(self._sizes[child]) * before[child]
                offsets = (offsets[:, None] + moves).ravel()
        rows = row_strides(looked_at, self._sizes, len(offsets))
        loops = loops_over(step.after, self._sizes, before, rows)
        return Step(loops, tables[0], offsets, *tables[1:])

    def _leaf(self, branch: Branch, action: int, difference: Table) -> _Leaf:
        state = [2 * i for i, size in enumerate(self.model.sizes) if size > 1]
        means = row_strides(branch.axes, self._sizes)
        rewards = row_strides([2 * position for position in difference.scope], self._sizes)
        loops = loops_over(state, self._sizes, means, rewards)
        return _Leaf(loops, action, difference.values.ravel())

    def best(self, later: Floats, values: Floats, actions: Whole, tie: float, check: Check) -> None:
        """values(s) = max_a R(s, a) + discount * E[later(s') | s, a], and an action.

        It is the first whose value is within `tie` of the largest.
        """
        values.fill(-np.inf)
        self._held.fill(-np.inf)

        def finish(leaf: _Leaf, means: Floats, begin: int, end: int) -> None:
            state = (values, self._held, actions, self._base)
            keep_best(*state, means, leaf.reward, leaf.loops, leaf.action, tie, begin, end)

        self._run(later, finish, check)
        self._end(values)

    def given(self, later: Floats, values: Floats, chosen: Whole | None, check: Check) -> None:
        """values(s) = R(s, a) + discount * E[later(s') | s, a] of a given action or at random."""
        values.fill(0.0)
        share = 1 / len(self.model.actions) if chosen is None else 0.0
        table = np.zeros(1, dtype=np.uint8) if chosen is None else chosen

        def finish(leaf: _Leaf, means: Floats, begin: int, end: int) -> None:
            state = (values, table, self._base)
            take_given(*state, means, leaf.reward, leaf.loops, leaf.action, share, begin, end)

        self._run(later, finish, check)
        if chosen is None and self.model.conditions.allowed:
            states = all_assignments(self.model.sizes)
            values /= np.maximum(self.model.conditions.mask(states).mean(axis=1), share)
        self._end(values)

    def _end(self, values: Floats) -> None:
        """Nothing is earned in terminal states."""
        if self._over is not None:
            values[self._over] = 0.0

    def _run(
        self, later: Floats, finish: Callable[[_Leaf, Floats, int, int], None], check: Check
    ) -> None:
        """Contract `later` for every action; hand the means of each to `finish`, in pieces."""
        free = list(self._free)
        start = free.pop()
        np.multiply(later, self.model.discount, out=start[: len(later)])
        with threads(self.model.n_states) as share:

            def run(branch: Branch, array: Floats, given_up: bool) -> None:
                for contraction in branch.steps:
                    check()
                    step, after = self._steps[contraction], free.pop()
                    share(step.loops.pieces, lambda i, j, x=array: step.run(after, x, i, j))  # type: ignore[misc]  # noqa: B023
                    if given_up:
                        free.append(array)
                    array, given_up = after, True
                for leaf in self._leaves[branch]:
                    share(leaf.loops.pieces, lambda i, j: finish(leaf, array, i, j))  # noqa: B023
                for part in branch.branches:
                    run(part, array, given_up and part is branch.branches[-1])
                if given_up and not branch.branches:
                    free.append(array)

            run(self._plan, start, True)


def sweep_entries(model: FactoredMDP, plan: Branch) -> int:
    """Numbers that a Sweeper holds: its arrays and the rewards of all states and actions."""
    arrays = plan.arrays(given_up=True) * max(plan.largest, model.n_states)
    rewards = sum(math.prod(model.sizes[p] for p in scope) for scope in reward_scopes(model))
    return arrays + 2 * model.n_states + rewards
