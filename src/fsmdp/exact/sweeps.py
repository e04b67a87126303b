"""Sweeps: the values of all states one step earlier, by contraction, on all cores."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from fsmdp.exact.contraction import Branch, Contraction, axis_sizes, drawn_axis
from fsmdp.exact.loops import (
    Integers,
    Loops,
    Whole,
    contract,
    contract_best,
    keep_best,
    loops_over,
    row_strides,
    take_given,
    threads,
)
from fsmdp.model.cases import Cases, common_groups
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.tables import Floats, Table, bound_table, read_only

Check = Callable[[], None]
"""Called between pieces of work; may raise to end it."""


Ends = tuple[Floats, Floats]
Boxes = Sequence[Sequence[Ends]]
"""Lower and upper ends of the probabilities of each mechanism, by group, in place of tables."""


@dataclass(frozen=True, slots=True, eq=False)
class _Step:
    """A contraction with its numbers."""

    loops: Loops
    table: Floats  # (entries of what the kernel looks at, outcomes), flat
    offsets: Integers  # (outcomes,) where each outcome stands in the array before
    high: Floats | None = None  # upper ends, where `table` holds the lower ends of a box

    def run(self, after: Floats, before: Floats, begin: int, end: int) -> None:
        loops = self.loops
        where = loops.sizes, loops.strides, loops.moves, loops.is_smooth
        if self.high is None:
            contract(after, before, self.table, self.offsets, *where, begin, end)
        else:
            contract_best(after, before, self.table, self.high, self.offsets, *where, begin, end)


@dataclass(frozen=True, slots=True, eq=False)
class _Leaf:
    """How the complete means of an action reach all states, and what its reward adds."""

    loops: Loops
    action: int
    reward: Floats  # difference to the reward of the default group, flat


class Sweeper:
    """One model's contractions, ready to run; arrays are used again from sweep to sweep.

    With `boxes` the probabilities of each kernel are the best in a box, for every entry that it is
    contracted at by itself (see `Boxes`).
    """

    def __init__(self, model: FactoredMDP, plan: Branch, boxes: Boxes | None = None) -> None:
        self.model, self._plan, self._boxes = model, plan, boxes
        self._sizes = axis_sizes(model)
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
        return _Step(loops, tables[0], offsets, *tables[1:])

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
            arrays = (leaf.loops.sizes, leaf.loops.strides, leaf.loops.moves)
            state = (values, self._held, actions, self._base)
            keep_best(*state, means, leaf.reward, *arrays, leaf.action, tie, begin, end)

        self._run(later, finish, check)

    def given(self, later: Floats, values: Floats, chosen: Whole | None, check: Check) -> None:
        """values(s) = R(s, a) + discount * E[later(s') | s, a] of a given action or at random."""
        values.fill(0.0)
        share = 1 / len(self.model.actions) if chosen is None else 0.0
        table = np.zeros(1, dtype=np.uint8) if chosen is None else chosen

        def finish(leaf: _Leaf, means: Floats, begin: int, end: int) -> None:
            arrays = (leaf.loops.sizes, leaf.loops.strides, leaf.loops.moves)
            state = (values, table, self._base)
            take_given(*state, means, leaf.reward, *arrays, leaf.action, share, begin, end)

        self._run(later, finish, check)

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
    rewards = sum(math.prod(model.sizes[p] for p in scope) for scope in _reward_scopes(model))
    return arrays + 2 * model.n_states + rewards


def _reward_scopes(model: FactoredMDP) -> list[tuple[int, ...]]:
    """For each group of actions, the variables on which its difference to group 0 depends."""
    groups = common_groups(model.reward_means, len(model.actions)).groups
    return [
        tuple(
            sorted(
                {
                    p
                    for new, usual in _changed(tables, groups[0])
                    for p in (*new.scope, *usual.scope)
                }
            )
        )
        for tables in groups
    ]


def _changed(tables: Sequence[Table], default: Sequence[Table]) -> list[tuple[Table, Table]]:
    pairs = zip(tables, default, strict=True)
    return [(new, usual) for new, usual in pairs if new is not usual]


def _rewards(model: FactoredMDP) -> tuple[Floats, Cases[Table]]:
    """Rewards of the default group in every state, and of other groups what they differ by."""
    together = common_groups(model.reward_means, len(model.actions))
    default = together.groups[0]
    differences = []
    for tables, scope in zip(together.groups, _reward_scopes(model), strict=True):
        changed = _changed(tables, default)
        values = _sum([new for new, _ in changed], scope, model.sizes)
        values -= _sum([usual for _, usual in changed], scope, model.sizes)
        differences.append(bound_table(scope, values))
    base = _sum(default, range(len(model.sizes)), model.sizes)
    return base, Cases(tuple(differences), together.exceptions)


def _sum(tables: Sequence[Table], scope: Sequence[int], sizes: Sequence[int]) -> Floats:
    """The sum of some tables for every assignment of a scope, flat; the last variable fastest."""
    wide = [position for position in scope if sizes[position] > 1]  # numpy's axes are few
    total = np.zeros([sizes[position] for position in wide])
    for table in tables:
        shape = [sizes[position] if position in table.scope else 1 for position in wide]
        total += table.values.reshape(shape)
    return total.ravel()
