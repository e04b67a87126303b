"""Contraction orders: how to average a function of the next state without a transition matrix.

E[V(s') | s, a] = sum over everything drawn of V times the product of all kernels. V is an array
with an axis for each next value; contracting a mechanism multiplies by its kernel, sums its
children out, and gains axes for what the kernel looks at. A mechanism can be contracted once all
that look at its children have been. Actions that agree on mechanisms share their contractions.

Everything here is a function of scopes and sizes: nothing is allocated.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from fsmdp.model.mdp import FactoredMDP

Axes = frozenset[int]
"""Axes of an array: 2i is the current value of variable i, 2i + 1 its next one, then latents."""

SHARED_GROWTH = (math.inf, 8.0, 2.0, 1.0)
"""How many times larger than V an array may be when actions are to share it; all are tried."""


@dataclass(frozen=True, slots=True, eq=False)
class Contraction:
    """One mechanism contracted with the kernel of one action group."""

    mechanism: int
    group: int
    before: tuple[int, ...]  # axes, in order
    after: tuple[int, ...]
    children: tuple[int, ...]  # axes that are summed out
    entries: int  # of the array after it
    work: int  # multiplications


@dataclass(frozen=True, eq=False)
class Branch:
    """Contractions that some actions share, then what they do not share, or their values."""

    steps: tuple[Contraction, ...]
    axes: tuple[int, ...]  # after the steps
    actions: tuple[int, ...]  # those whose means are complete after the steps; all equal
    branches: tuple[Branch, ...]

    @cached_property
    def work(self) -> int:
        """Multiplications for all actions."""
        return sum(step.work for step in self.steps) + sum(b.work for b in self.branches)

    @cached_property
    def n_steps(self) -> int:
        """Contractions for all actions."""
        return len(self.steps) + sum(b.n_steps for b in self.branches)

    @cached_property
    def largest(self) -> int:
        """Entries of the largest array."""
        return max([1, *(step.entries for step in self.steps), *(b.largest for b in self.branches)])

    @cached_property
    def _arrays(self) -> tuple[int, int]:
        """Arrays alive at once, if the one at the beginning may be given up, and if it may not."""
        found = []
        for held in (1, 0):
            most = held
            for _ in self.steps:
                most, held = max(most, held + 1), 1
            for branch in self.branches[:-1]:
                most = max(most, held + branch.arrays(given_up=False))
            for branch in self.branches[-1:]:
                most = max(most, branch.arrays(given_up=held == 1))
            found.append(most)
        return found[0], found[1]

    def arrays(self, given_up: bool) -> int:
        """Arrays alive at once, with the first one if that may be given up after its use."""
        return self._arrays[0 if given_up else 1]


@dataclass(frozen=True, slots=True, eq=False)
class _Looks:
    """What a mechanism's kernel looks at in one group, and what it draws; no axes of size 1."""

    parents: Axes  # current and drawn
    children: Axes


class _Planner:
    """Sizes and scopes of one model."""

    def __init__(self, model: FactoredMDP) -> None:
        dynamics, n_variables = model.dynamics, len(model.sizes)
        self.sizes = axis_sizes(model)
        self.n_states = model.n_states
        self.start = self._wide(2 * i + 1 for i in range(n_variables))

        def drawn(position: int) -> int:
            return drawn_axis(position, n_variables)

        self.looks = [
            [
                _Looks(
                    self._wide([*(2 * p for p in kernel.parents), *map(drawn, kernel.drawn)]),
                    self._wide(map(drawn, mechanism.children)),
                )
                for kernel in mechanism.cases
            ]
            for mechanism in dynamics.mechanisms
        ]

    def _wide(self, axes: Iterable[int]) -> Axes:
        return frozenset(axis for axis in axes if self.sizes[axis] > 1)

    def entries(self, axes: Axes) -> int:
        return math.prod(self.sizes[axis] for axis in axes)

    def branch(
        self,
        by_groups: dict[tuple[int, ...], tuple[int, ...]],
        remaining: Sequence[int],
        axes: Axes,
        growth: float,
    ) -> Branch:
        """The plan for some actions, by their groups in all mechanisms, from an array's axes.

        Always the contraction that leaves the smallest array, among those that all agree on.
        """
        order, entries, steps = tuple(sorted(axes)), self.entries(axes), []
        kernels = {
            m: {groups[m]: self.looks[m][groups[m]] for groups in by_groups} for m in remaining
        }
        bound = math.inf if len(by_groups) == 1 else growth * self.n_states
        while found := self._smallest(kernels, axes, entries, bound):
            entries, mechanism = found
            ((group, looks),) = kernels.pop(mechanism).items()
            children = looks.children & axes
            if not children:
                continue  # the rows of a kernel sum to one
            axes = (axes - children) | looks.parents
            before, order, summed = order, tuple(sorted(axes)), tuple(sorted(children))
            work = entries * self.entries(children)
            steps.append(Contraction(mechanism, group, before, order, summed, entries, work))
        if len(by_groups) == 1:
            (actions,) = by_groups.values()
            return Branch(tuple(steps), order, actions, ())
        # Actions with similar groups stand side by side, so halves agree on more than the whole.
        left = list(kernels)
        similar = sorted(by_groups, key=lambda groups: tuple(groups[m] for m in left))
        half = len(similar) // 2
        branches = [
            self.branch({groups: by_groups[groups] for groups in part}, left, axes, growth)
            for part in (similar[:half], similar[half:])
        ]
        # The last one may give up the array they share, so it is the one that needs most.
        branches.sort(key=lambda branch: branch.arrays(given_up=False))
        return Branch(tuple(steps), order, (), tuple(branches))

    def _smallest(
        self, kernels: Mapping[int, Mapping[int, _Looks]], axes: Axes, entries: int, bound: float
    ) -> tuple[int, int] | None:
        """Entries after the best contraction that is possible now, and its mechanism."""
        looked_at = frozenset[int]().union(
            *(looks.parents for groups in kernels.values() for looks in groups.values())
        )
        best = None
        for mechanism, groups in kernels.items():
            looks = next(iter(groups.values()))
            if len(groups) > 1 or looks.children & looked_at:
                continue
            after, children = entries, looks.children & axes
            if children:
                after = after // self.entries(children) * self.entries(looks.parents - axes)
            if after <= bound and (best is None or after < best[0]):
                best = after, mechanism
        return best


def drawn_axis(position: int, n_variables: int) -> int:
    """Axis of something drawn, by its position among next values and latents."""
    return 2 * position + 1 if position < n_variables else n_variables + position


def axis_sizes(model: FactoredMDP) -> dict[int, int]:
    """Number of values of every axis."""
    n_variables = len(model.sizes)
    drawn = enumerate(model.dynamics.drawn_sizes)
    sizes = {drawn_axis(position, n_variables): size for position, size in drawn}
    return sizes | {2 * position: size for position, size in enumerate(model.sizes)}


def plan_contractions(model: FactoredMDP, limit: int) -> Branch:
    """The cheapest plan found whose arrays stay within `limit` entries, or the smallest found.

    Cost: (mechanisms^2) * (groups of actions that differ), a few times over.
    """
    planner = _Planner(model)
    mechanisms = model.dynamics.mechanisms
    by_groups: dict[tuple[int, ...], tuple[int, ...]] = {}
    for action in range(len(model.actions)):
        groups = tuple(mechanism.cases.group(action) for mechanism in mechanisms)
        by_groups[groups] = (*by_groups.get(groups, ()), action)
    plans = [
        planner.branch(by_groups, range(len(mechanisms)), planner.start, growth)
        for growth in (SHARED_GROWTH if len(by_groups) > 1 else SHARED_GROWTH[:1])
    ]

    def is_better(plan: Branch) -> tuple[bool, int]:
        entries = plan.largest * plan.arrays(given_up=True)
        return (True, entries) if entries > limit else (False, plan.work)

    return min(plans, key=is_better)
