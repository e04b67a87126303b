"""Sweeps by row classes: one pass for each factor, then a look-up for each state and action."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fsmdp.compiled import compiled
from fsmdp.exact.row_classes import (
    ActionLeaf,
    ClassPlan,
    Pass,
    replaced,
    sizes_of,
    spread,
    state_axes,
)
from fsmdp.exact.state_rewards import state_rewards, terminal_states
from fsmdp.exact.sweeps import BLOCK, Check, Share, Step, Whole, loops_over, row_strides, threads
from fsmdp.model.cases import Cases
from fsmdp.model.tables import Floats, Integers, Table, read_only

Numbers = NDArray[np.floating[Any]]


class Leaves(NamedTuple):
    """Of several actions, how rewards and shifts are found while running over an array in order.

    The innermost axes make a block, the same for all; loops run over the others.
    """

    actions: Integers  # (n_leaves,)
    begins: Integers  # (n_leaves, 2) in the tables of rewards and of shifts
    sizes: Integers  # (n_loops,)
    strides: Integers  # (n_leaves, n_loops, 2)
    moves: NDArray[np.int32]  # (n_leaves, 2, entries of a block)
    is_still: NDArray[np.bool_]  # (n_leaves,) all moves are 0
    rewards: Floats
    shifts: Integers


@compiled()
def choose(
    values: Numbers,
    actions: Whole,
    base: Numbers,
    places: NDArray[np.int32],
    means: Numbers,
    best_means: Numbers,
    best_actions: Whole,
    leaves: Leaves,
    discount: float,
    tie: float,
    begin: int,
    end: int,
) -> None:
    """values(i) = base(i) + max_a rewards(i, a) + discount * means[place(i) + shift(i, a)].

    The action is the first whose value is within `tie` of the largest. Where `best_actions` are
    given, `best_means` and these are one more candidate, without a reward. Without `places`, an
    entry's place is its own. A block stays in the cache while all actions go over it.
    """
    n_leaves, n_loops, block = len(leaves.actions), len(leaves.sizes), leaves.moves.shape[2]
    digits = np.zeros(n_loops, dtype=np.int64)
    best, held = np.zeros(block), np.zeros(block)
    chosen, place = np.zeros(block, dtype=np.int64), np.zeros(block, dtype=np.int64)
    for piece in range(begin, end):
        left, start = piece, piece * block
        for loop in range(n_loops - 1, -1, -1):
            digits[loop] = left % leaves.sizes[loop]
            left //= leaves.sizes[loop]
        for i in range(block):
            place[i] = places[start + i] if len(places) else start + i
            best[i] = held[i] = -np.inf
            chosen[i] = 0
        if len(best_actions):
            for i in range(block):
                best[i] = held[i] = best_means[place[i]]
                chosen[i] = best_actions[place[i]]
        for leaf in range(n_leaves):
            action = leaves.actions[leaf]
            at, to = leaves.begins[leaf, 0], leaves.begins[leaf, 1]
            for loop in range(n_loops):
                at += digits[loop] * leaves.strides[leaf, loop, 0]
                to += digits[loop] * leaves.strides[leaf, loop, 1]
            reward, shift = leaves.rewards[at], leaves.shifts[to]
            is_still, moves = leaves.is_still[leaf], leaves.moves[leaf]
            if is_still and reward == -np.inf:
                continue
            for i in range(block):
                if not is_still:
                    reward = leaves.rewards[at + moves[0, i]]
                    shift = leaves.shifts[to + moves[1, i]]
                value = reward + discount * means[place[i] + shift]
                largest = max(best[i], value)
                least = largest - tie
                best[i] = largest
                if value >= least and (not held[i] >= least or action < chosen[i]):
                    held[i] = value
                    chosen[i] = action
        for i in range(block):
            values[start + i] = best[i] + base[start + i] if len(base) else best[i]
            actions[start + i] = chosen[i]


Strides = Mapping[int, int]


class ClassSweeper:
    """One model's passes and look-ups, ready to run; arrays are used again from sweep to sweep."""

    def __init__(self, plan: ClassPlan, actions: np.dtype[Any]) -> None:
        self.plan, model = plan, plan.model
        self._strides = row_strides(plan.axes, plan.sizes)
        self._steps = [self._step(one) for one in plan.passes]
        self._base, differences = state_rewards(model)
        self._over = terminal_states(model)
        self._places = self._default_places()
        state = state_axes(model)
        self._of_states = self._pack(state, plan.over_states, differences, self._shift_of_states)
        self._of_classes = None
        if plan.over_classes:
            self._of_classes = self._pack(
                plan.axes, plan.over_classes, differences, self._shift_of_classes
            )
        self._free = [np.empty(plan.largest) for _ in range(2)]
        self._none, self._nowhere = np.zeros(0), np.zeros(0, dtype=np.int32)
        self._best_actions = np.zeros(plan.n_classes if plan.over_classes else 0, dtype=actions)

    def _step(self, one: Pass) -> Step:
        plan, factor = self.plan, self.plan.factors[one.factor]
        assert factor.laws is not None
        before = row_strides(one.before, plan.sizes)
        offsets = np.zeros(1, dtype=np.int64)
        for child in factor.variables:
            moves = np.arange(plan.sizes[child]) * before.get(child, 0)
            offsets = (offsets[:, None] + moves).ravel()
        loops = loops_over(one.after, plan.sizes, before, {-1 - one.factor: len(offsets)})
        return Step(loops, read_only(factor.laws.ravel()), offsets)

    def _axes_of(self, factor: int) -> tuple[int, ...]:
        if self.plan.factors[factor].laws is not None:
            return (-1 - factor,)
        return tuple(p for p in self.plan.factors[factor].variables if self.plan.sizes[p] > 1)

    def _addresses(self, factor: int) -> Integers:
        """Where each class of a factor stands in the array of all classes."""
        found = np.zeros(1, dtype=np.int64)
        for axis in self._axes_of(factor):
            moves = np.arange(self.plan.sizes[axis]) * self._strides[axis]
            found = (found[:, None] + moves).ravel()
        return found

    def _default_places(self) -> NDArray[np.int32]:
        """Where states look their means up, under the default of every factor."""
        model = self.plan.model
        wide = state_axes(model)
        total = np.zeros(sizes_of(model, wide), dtype=np.int32)
        for i, factor in enumerate(self.plan.factors):
            usual = factor.cases.groups[0]
            shape = [model.sizes[p] if p in usual.scope else 1 for p in wide]
            total += self._addresses(i)[usual.classes].astype(np.int32).reshape(shape)
        return total.ravel()

    def _shift_of_states(self, leaf: ActionLeaf) -> tuple[Integers, Strides]:
        model, scope = self.plan.model, leaf.scope
        total = np.zeros(sizes_of(model, scope), dtype=np.int64)
        for i in leaf.factors:
            cases, addresses = self.plan.factors[i].cases, self._addresses(i)
            for sign, selection in ((1, cases.at(leaf.action)), (-1, cases.groups[0])):
                total += sign * spread(model, selection.scope, addresses[selection.classes], scope)
        return total.ravel(), row_strides(scope, self.plan.sizes)

    def _shift_of_classes(self, leaf: ActionLeaf) -> tuple[Integers, Strides]:
        total = np.zeros(1, dtype=np.int64)
        axes: list[int] = []
        for i in leaf.factors:
            factor, addresses = self.plan.factors[i], self._addresses(i)
            other = replaced(self.plan.model, factor, factor.cases.at(leaf.action))
            assert other is not None
            total = (total[:, None] + addresses[other] - addresses).ravel()
            axes += self._axes_of(i)
        return total, row_strides(axes, self.plan.sizes)

    def _pack(
        self,
        axes: Sequence[int],
        leaves: Sequence[ActionLeaf],
        differences: Cases[Table],
        shift_of: Callable[[ActionLeaf], tuple[Integers, Strides]],
    ) -> Leaves:
        """Tables and moves of some actions, over an array of some axes."""
        sizes = self.plan.sizes
        block, first = 1, len(axes)
        while first and (first == len(axes) or block * sizes[axes[first - 1]] <= BLOCK):
            first -= 1
            block *= sizes[axes[first]]
        outer, inner = axes[:first], axes[first:]
        rewards: list[Floats] = [np.zeros(0)]
        shifts: list[Integers] = [np.zeros(0, dtype=np.int64)]
        begins = np.zeros((len(leaves), 2), dtype=np.int64)
        strides = np.zeros((len(leaves), len(outer), 2), dtype=np.int64)
        moves = np.zeros((len(leaves), 2, block), dtype=np.int32)
        for number, leaf in enumerate(leaves):
            reward = differences.at(leaf.action)
            shift, of_shift = shift_of(leaf)
            begins[number] = sum(map(len, rewards)), sum(map(len, shifts))
            rewards.append(reward.values.ravel())
            shifts.append(shift)
            for kind, found in enumerate((row_strides(reward.scope, sizes), of_shift)):
                strides[number, :, kind] = [found.get(axis, 0) for axis in outer]
                total = np.zeros(1, dtype=np.int64)
                for axis in inner:
                    total = (total[:, None] + np.arange(sizes[axis]) * found.get(axis, 0)).ravel()
                moves[number, kind] = total
        return Leaves(
            np.array([leaf.action for leaf in leaves], dtype=np.int64),
            begins,
            np.array([sizes[axis] for axis in outer], dtype=np.int64),
            strides,
            moves,
            np.array([not one.any() for one in moves], dtype=np.bool_),
            np.concatenate(rewards),
            np.concatenate(shifts),
        )

    def best(self, later: Floats, values: Floats, actions: Whole, tie: float, check: Check) -> None:
        """values(s) = max_a R(s, a) + discount * E[later(s') | s, a], and an action.

        It is the first whose value is within `tie` of the largest, or of those of two kinds of
        actions within half of it.
        """
        with threads(self.plan.largest) as share:
            means = self._means(later, share, check)
            discount, over_classes = self.plan.model.discount, self._of_classes
            best: Numbers = self._none
            if over_classes is not None:
                check()
                best = self._other(means)[: self.plan.n_classes]
                of_classes = self._none, self._nowhere, means, self._none, self._best_actions[:0]
                self._choose(
                    share,
                    (best, self._best_actions, *of_classes, over_classes, discount, tie / 2),
                )
            check()
            of_states = self._base, self._places, means, best, self._best_actions
            share_of_tie = tie if over_classes is None else tie / 2
            self._choose(
                share, (values, actions, *of_states, self._of_states, discount, share_of_tie)
            )
        if self._over is not None:
            values[self._over] = 0.0

    def _choose(self, share: Share, arguments: tuple[Any, ...]) -> None:
        values, leaves = arguments[0], arguments[7]
        pieces = len(values) // leaves.moves.shape[2]
        share(pieces, lambda begin, end: choose(*arguments, begin, end))  # type: ignore[call-arg]

    def _other(self, array: Numbers) -> Numbers:
        """An array of the sweeper that is not in use."""
        return next(one for one in self._free if not np.may_share_memory(one, array))

    def _means(self, later: Numbers, share: Share, check: Check) -> Numbers:
        """U: the expectation of `later` for every combination of classes."""
        array = later
        for one, step in zip(self.plan.passes, self._steps, strict=True):
            check()
            after = self._other(array)[: one.entries]
            share(step.loops.pieces, lambda i, j, x=array, y=after, s=step: s.run(y, x, i, j))  # type: ignore[misc]
            array = after
        return array
