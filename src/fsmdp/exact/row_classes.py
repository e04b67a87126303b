"""Row classes: expectations that all actions share, where conditionals have few distinct rows.

Variables that are drawn together are one factor. Over all assignments of its parents and all
actions a factor has some distinct laws, its classes; let kappa_i(s, a) be the class in force.
With K_i the laws as rows,

    E[V(s') | s, a] = U(kappa(s, a)),  U = (K_1 x ... x K_n) V,

one pass over an array for each factor, whatever the number of actions, and a look-up for each
state and action. A factor whose laws are all certain needs no pass: its class is its outcome.
Where an action only replaces classes by others (and adds a constant to the reward), its maximum
is taken over classes: W(u) = max_a r_a + U(f_a(u)), and states look W up once for all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fsmdp.exact.state_rewards import reward_scopes, rewards_and_conditions
from fsmdp.model.cases import Cases, actions_alike
from fsmdp.model.conditionals import Kernel
from fsmdp.model.marginals import compute_marginal
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.tables import Floats, Integers
from fsmdp.model.variables import Scope, table_size

LARGEST_PLACE = 2**31 - 1
"""Combinations of classes that integers of four bytes can number."""
MOST_AXES = 60
"""Of an array, a few fewer than numpy can have."""
LARGEST_FACTOR = 2**22
"""Entries of the tables of one factor, in all action groups, whose rows are compared."""


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """Which class of a factor is in force, for every assignment of a scope."""

    scope: Scope
    classes: Integers  # (*sizes of the scope)


@dataclass(frozen=True, slots=True, eq=False)
class Factor:
    """Variables that are drawn together, and their distinct laws."""

    variables: Scope
    laws: Floats | None  # (classes, outcomes); None if all are certain, and classes are outcomes
    n_classes: int
    cases: Cases[Selection]
    rounding: float  # relative error of the laws


def find_factors(
    model: FactoredMDP, most: int, check: Callable[[], None] = lambda: None
) -> list[Factor] | None:
    """The factors of a model of listed actions.

    None if the tables of one are too large, or if there are more than `most` combinations of
    classes. Cost: the marginals of what is drawn together, sorted.
    """
    found: list[Factor] = []
    for scope in model.dynamics.groups(len(model.sizes)):
        check()
        scopes = [one.parent_scope for one in model.dynamics.ancestry(scope)]
        tables = [sizes_of(model, (*parents, *scope)) for parents in scopes]
        if sum(map(table_size, tables)) > LARGEST_FACTOR or max(map(len, tables)) > MOST_AXES:
            return None
        found.append(_factor(model, scope))
        if math.prod(factor.n_classes for factor in found) > most:
            return None
    return found


def _factor(model: FactoredMDP, scope: Scope) -> Factor:
    laws_of, rounding = _laws(model, scope)
    n_outcomes = table_size(sizes_of(model, scope))
    tables = [laws.reshape(-1, n_outcomes) for _, laws in laws_of]
    rows = np.ascontiguousarray(np.concatenate(tables))
    laws: Floats | None = None
    if (rows.max(axis=1) == 1.0).all():
        classes, count = rows.argmax(axis=1), n_outcomes
    else:
        as_bytes = (rows + 0.0).view(np.dtype((np.void, rows.itemsize * n_outcomes))).ravel()
        _, first, classes = np.unique(as_bytes, return_index=True, return_inverse=True)
        laws, count = rows[first], len(first)
    ends = np.cumsum([0, *map(len, tables)])
    parts = iter(np.split(classes.ravel(), ends[1:-1]))
    cases = laws_of.map(lambda one: _selection(model, one[0], next(parts)))
    merged = cases.merge_equal(lambda one: (one.scope, one.classes.tobytes()))
    return Factor(scope, laws, count, merged, rounding)


def _laws(model: FactoredMDP, scope: Scope) -> tuple[Cases[tuple[Scope, Floats]], float]:
    """By action group, the parents of what is drawn together and its laws; their rounding.

    Laws of one mechanism stand in the model as they are; others are marginals.
    """
    dynamics = model.dynamics
    mechanism = dynamics.mechanisms[dynamics.drawn_by[scope[0]]]
    if sorted(mechanism.children) == list(scope) and not any(k.drawn for k in mechanism.cases):
        order = np.argsort(mechanism.children)

        def rows(kernel: Kernel) -> tuple[Scope, Floats]:
            n_parents = len(kernel.parents)
            axes = [*range(n_parents), *(n_parents + order)]
            return kernel.parents, np.transpose(kernel.table, axes)

        return mechanism.cases.map(rows), 0.0
    marginals = compute_marginal(scope, dynamics, model.sizes)
    rounding = max(one.rounding for one in marginals)
    return marginals.map(lambda one: (one.parent_scope, one.probabilities)), rounding


def _selection(model: FactoredMDP, scope: Scope, classes: Integers) -> Selection:
    """Without the parents on which no class depends."""
    table, kept = classes.reshape(sizes_of(model, scope)), list(scope)
    for position in scope:
        axis = kept.index(position)
        first = np.take(table, 0, axis=axis)
        if (table == np.expand_dims(first, axis)).all():
            table = first
            kept.pop(axis)
    return Selection(tuple(kept), np.ascontiguousarray(table).reshape(sizes_of(model, tuple(kept))))


def sizes_of(model: FactoredMDP, scope: Scope) -> tuple[int, ...]:
    """Number of values of each variable of a scope."""
    return tuple(model.sizes[position] for position in scope)


@dataclass(frozen=True, slots=True, eq=False)
class Pass:
    """One factor's laws applied: its outcomes become classes."""

    factor: int
    before: tuple[int, ...]  # axes: a variable by its position, a factor by -1 - its position
    after: tuple[int, ...]
    entries: int  # of the array after it
    work: int  # multiplications, and numbers that are written


@dataclass(frozen=True, slots=True, eq=False)
class ActionLeaf:
    """What an action differs in from the default: factors, and its reward."""

    action: int
    factors: tuple[int, ...]
    scope: Scope  # that its classes depend on, and those of the default in these factors
    over_classes: bool  # its classes follow from those of the default, its reward is constant


@dataclass(frozen=True, eq=False)
class ClassPlan:
    """Passes in order, and how actions look their means up. Nothing large is allocated."""

    model: FactoredMDP
    factors: tuple[Factor, ...]
    passes: tuple[Pass, ...]
    leaves: tuple[ActionLeaf, ...]

    @property
    def axes(self) -> tuple[int, ...]:
        """Axes of the array of all classes."""
        return self.passes[-1].after if self.passes else state_axes(self.model)

    @cached_property
    def sizes(self) -> Mapping[int, int]:
        """Number of values of every axis."""
        found = dict(enumerate(self.model.sizes))
        return found | {-1 - i: factor.n_classes for i, factor in enumerate(self.factors)}

    @cached_property
    def n_classes(self) -> int:
        """Entries of the array of all classes."""
        return math.prod(self.sizes[axis] for axis in self.axes)

    @property
    def largest(self) -> int:
        """Entries of the largest array of a sweep."""
        return max(self.n_classes, *(one.entries for one in self.passes), self.model.n_states)

    @cached_property
    def over_classes(self) -> tuple[ActionLeaf, ...]:
        """Actions among which the maximum is taken over classes; none if that does not pay."""
        found = tuple(leaf for leaf in self.leaves if leaf.over_classes)
        return found if len(found) > 1 and self.n_classes <= 2 * self.model.n_states else ()

    @cached_property
    def over_states(self) -> tuple[ActionLeaf, ...]:
        """Actions whose means each state looks up."""
        taken = {leaf.action for leaf in self.over_classes}
        return tuple(leaf for leaf in self.leaves if leaf.action not in taken)

    @property
    def pass_work(self) -> int:
        """Of all passes of a sweep."""
        return sum(one.work for one in self.passes)

    @property
    def class_look_ups(self) -> int:
        """Of a sweep, by combinations of classes."""
        return self.n_classes * len(self.over_classes)

    @property
    def state_look_ups(self) -> int:
        """Of a sweep, by states."""
        return self.model.n_states * (len(self.over_states) + bool(self.over_classes))

    @property
    def rounding(self) -> float:
        """Of the laws of all factors, relative."""
        return sum(factor.rounding for factor in self.factors)

    def entries(self, single: bool = False) -> int:
        """Numbers of eight bytes that a sweep holds, beside values and actions of all steps.

        Two arrays of classes, rewards, where states look up, and the tables of all actions.
        """
        model, arrays = self.model, 2 * self.largest
        held = -(-arrays // 2) if single else arrays
        chosen = self.n_classes // 8 + 1 if self.over_classes else 0
        rewards = sum(table_size(sizes_of(model, scope)) for scope in reward_scopes(model))
        shifts = sum(self._shifts(leaf) for leaf in self.leaves)
        return held + chosen + 2 * model.n_states + rewards + shifts

    def _shifts(self, leaf: ActionLeaf) -> int:
        if leaf in self.over_classes:
            return math.prod(self.factors[factor].n_classes for factor in leaf.factors)
        return table_size(sizes_of(self.model, leaf.scope))


def plan_classes(
    model: FactoredMDP, limit: int, check: Callable[[], None] = lambda: None
) -> ClassPlan | None:
    """How to sweep over a model of listed actions; None if its classes exceed a limit."""
    factors = find_factors(model, min(limit, LARGEST_PLACE), check)
    if factors is None:
        return None
    changing = [i for i, factor in enumerate(factors) if factor.laws is not None]
    outcomes = [table_size(sizes_of(model, factor.variables)) for factor in factors]
    changing.sort(key=lambda i: factors[i].n_classes / outcomes[i])
    axes, entries, passes = state_axes(model), model.n_states, []
    for i in changing:
        factor, before = factors[i], axes
        at = [p for p in factor.variables if model.sizes[p] > 1]
        place = axes.index(at[0])
        axes = tuple(
            -1 - i if n == place else axis
            for n, axis in enumerate(before)
            if n == place or axis not in at
        )
        entries = entries // outcomes[i] * factor.n_classes
        laws = factor.laws
        assert laws is not None
        work = entries + entries // factor.n_classes * int(np.count_nonzero(laws))
        passes.append(Pass(i, before, axes, entries, work))
    return ClassPlan(model, tuple(factors), tuple(passes), _leaves(model, factors))


def state_axes(model: FactoredMDP) -> tuple[int, ...]:
    """Variables of more than one value."""
    return tuple(i for i, size in enumerate(model.sizes) if size > 1)


def _leaves(model: FactoredMDP, factors: Sequence[Factor]) -> tuple[ActionLeaf, ...]:
    """One for each action; of several that are alike in everything, the first."""
    together, _ = rewards_and_conditions(model)
    parts: list[Cases[Any]] = [*(factor.cases for factor in factors), together]
    scopes, found = reward_scopes(model), []
    for changes, (action, *_) in actions_alike(parts, len(model.actions)).items():
        changed = tuple(i for i, _ in changes if i < len(factors))
        both = [(factors[i].cases.at(action), factors[i].cases.groups[0]) for i in changed]
        scope = {p for pair in both for selection in pair for p in selection.scope}
        over_classes = not scopes[together.group(action)] and all(
            replaced(model, factors[i], factors[i].cases.at(action)) is not None for i in changed
        )
        found.append(ActionLeaf(action, changed, tuple(sorted(scope)), over_classes))
    return tuple(sorted(found, key=lambda leaf: leaf.action))


def replaced(model: FactoredMDP, factor: Factor, selection: Selection) -> Integers | None:
    """The class that takes the place of each class of the default; None if more decides."""
    usual = factor.cases.groups[0]
    scope = tuple(sorted({*usual.scope, *selection.scope}))
    before = spread(model, usual.scope, usual.classes, scope).ravel()
    after = spread(model, selection.scope, selection.classes, scope).ravel()
    found = np.arange(factor.n_classes)
    found[before] = after
    return found if (found[before] == after).all() else None


def spread(model: FactoredMDP, scope: Scope, table: Integers, wider: Scope) -> Integers:
    """A table over some variables as one over more of them."""
    shape = [model.sizes[p] if p in scope else 1 for p in wider]
    return np.broadcast_to(table.reshape(shape), sizes_of(model, wider))
