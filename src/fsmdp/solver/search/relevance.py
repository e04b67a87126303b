"""Relevance: variables on which nothing depends any more, given where a few others stand.

A vehicle on one-way roads never comes back to what it has passed; once a goal is reached, nothing
matters. From the value x of a variable v only some values D(x) can ever be reached, whatever is
done. Where v stays in D(x), tables of rewards and kernels look at fewer variables: those that no
reward looks at, not even through others, are irrelevant. Setting them to 0 merges states that
differ in nothing else.

Likewise for several variables together: a trap is a set of variables that, once they have certain
values, keep them whatever is done. (A robot that is nowhere stays nowhere.)

A few of these, the guards, are asked. Their variables are relevant by definition, so that a
state's relevant variables follow from its relevant variables alone, and the relevant ones of all
its successors are among them. Merged states then have the same rewards and the same distribution
over merged successors: for every policy of the merged model there is one that earns as much in
the original one, and the other way round.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fsmdp.model.lookup import Integers
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.tables import Floats
from fsmdp.planning.bound import Box

Flags = NDArray[np.bool_]

MOST_GUARDS = 8
MOST_TRAPS = 8
MOST_WORK = 2**28
"""Numbers of tables looked at, over all values that are asked about."""


@dataclass(frozen=True, slots=True, eq=False)
class Trap:
    """Variables that, once they have these values, keep them; and what is relevant then."""

    variables: tuple[int, ...]
    values: tuple[int, ...]
    kept: Flags  # (n_variables,)


@dataclass(frozen=True, slots=True, eq=False)
class Relevance:
    """The guards: by each value of some variables, and in some traps, what stays relevant."""

    guards: tuple[int, ...] = ()
    kept: tuple[Flags, ...] = ()  # for each guard: (its size, n_variables)
    traps: tuple[Trap, ...] = ()

    def relevant(self, states: Integers) -> Flags:
        """Which variables are relevant in each of some states."""
        flags = np.ones(states.shape, dtype=np.bool_)
        for guard, kept in zip(self.guards, self.kept, strict=True):
            flags &= kept[states[:, guard]]
        for trap in self.traps:
            inside = (states[:, trap.variables] == np.array(trap.values)).all(axis=1)
            flags &= trap.kept | ~inside[:, None]
        return flags

    def boxes(self, model: FactoredMDP) -> Iterator[Box]:
        """Values that variables never leave, and the variables that matter there."""
        for guard, kept in zip(self.guards, self.kept, strict=True):
            reaches = _reachable_values(model, guard)
            for row, flags in zip(reaches, kept, strict=True):
                reached = tuple(np.flatnonzero(row).tolist())
                yield Box((guard,), (reached,), tuple(np.flatnonzero(flags).tolist()))
        for trap in self.traps:
            values = tuple((value,) for value in trap.values)
            yield Box(trap.variables, values, tuple(np.flatnonzero(trap.kept).tolist()))


NOTHING_KNOWN = Relevance()


def find_relevance(
    model: FactoredMDP,
    samples: Integers,
    weights: Floats,
    check: Callable[[], None] | None = None,
) -> Relevance:
    """Guards that make most variables irrelevant in sampled states, chosen one after the other.

    Samples count by their weights; traps are looked for at the last of them, and at 0. `check` is
    called now and then, and may raise to end it. Cost: for each variable that cannot return to some
    value, its values times the tables that look at it (variables for which this is too much are no
    guards); for each trap, all tables.
    """
    found: list[_Guard] = []
    for variable in range(len(model.sizes)):
        found += _one_way(model, variable)
        if check is not None:
            check()
    zeros = np.zeros((1, len(model.sizes)), dtype=np.int64)
    for state in np.unique(np.concatenate([zeros, samples[-MOST_TRAPS:]]), axis=0):
        found += _trap(model, state)
        if check is not None:
            check()
    bits = np.log2(np.array(model.sizes, dtype=np.float64))
    chosen: list[_Guard] = []
    best, best_bits = NOTHING_KNOWN, float(weights.sum() * bits.sum())
    while len(chosen) < MOST_GUARDS:
        improved = None
        for guard in found:
            if guard in chosen:
                continue
            relevance = _with_guards([*chosen, guard], len(model.sizes))
            left = float(weights @ (relevance.relevant(samples) @ bits))
            if left < best_bits * (1 - 1e-9):
                improved, best, best_bits = guard, relevance, left
            if check is not None:
                check()
        if improved is None:
            break
        chosen.append(improved)
    return best


Dependencies = tuple[int, tuple[int, ...]]
"""At which variables some reward looks, and each next value, as bits of Python integers."""


@dataclass(frozen=True, slots=True, eq=False)
class _Guard:
    """Variables, and what follows where they are in each of some places.

    One variable, and a place for each of its values; or several, and one place, a trap.
    """

    variables: tuple[int, ...]
    values: tuple[int, ...] | None  # of a trap
    places: tuple[Dependencies, ...]


def _relevant(found: Dependencies, guards: int) -> int:
    """Variables that matter to rewards, now or later, or to guards."""
    rewards, parents = found
    reached = waiting = rewards | guards
    while waiting:
        variable = waiting.bit_length() - 1
        waiting ^= 1 << variable
        fresh = parents[variable] & ~reached
        reached |= fresh
        waiting |= fresh
    return reached


def _with_guards(chosen: Sequence[_Guard], n_variables: int) -> Relevance:
    bits = {variable for guard in chosen for variable in guard.variables}
    guards = sum(1 << variable for variable in bits)
    variables, kept, traps = [], [], []
    for guard in chosen:
        rows = [_relevant(place, guards) for place in guard.places]
        flags = np.array([[bool(row >> v & 1) for v in range(n_variables)] for row in rows])
        if guard.values is None:
            variables.append(guard.variables[0])
            kept.append(flags)
        else:
            traps.append(Trap(guard.variables, guard.values, flags[0]))
    return Relevance(tuple(variables), tuple(kept), tuple(traps))


def _one_way(model: FactoredMDP, variable: int) -> list[_Guard]:
    """The guard that a variable makes; none if each value can reach all others, or at what cost."""
    reaches = _reachable_values(model, variable)
    distinct = {row.tobytes(): row for row in reaches}
    looking = sum(table.size for scope, table in _tables(model) if variable in scope)
    if reaches.all() or len(distinct) * looking > MOST_WORK:
        return []
    by_set = {
        name: _dependencies(model, {variable: np.flatnonzero(allowed)})
        for name, allowed in distinct.items()
    }
    return [_Guard((variable,), None, tuple(by_set[row.tobytes()] for row in reaches))]


def _trap(model: FactoredMDP, state: Integers) -> list[_Guard]:
    """The trap around the rewards' variables in a state, if there is one.

    The largest set of variables that keep their values as long as all of them do; of those, the
    ones at which rewards look, and at which those look, and so on.
    """
    dynamics = model.dynamics
    closed = set(range(len(model.sizes)))
    changed = True
    while changed:
        changed = False
        for mechanism in dynamics.mechanisms:
            held = [child for child in mechanism.children if child in closed]
            for kernel in mechanism.cases if held else ():
                fixed = {p: np.array([state[p]]) for p in kernel.parents if p in closed}
                table = _restrict(kernel.table, kernel.parents, fixed)
                for child in held:
                    axis = table.ndim - len(mechanism.children) + mechanism.children.index(child)
                    others = np.delete(np.arange(table.shape[axis]), state[child])
                    if child in closed and (table.take(others, axis=axis) > 0).any():
                        closed.discard(child)
                        changed = True
    looks = _dependencies(model, {})[1]
    scopes = {p for means in model.reward_means for table in means for p in table.scope}
    needed = waiting = scopes & closed
    while waiting:
        parents = {p for v in waiting for p in range(len(model.sizes)) if looks[v] >> p & 1}
        waiting = parents & closed - needed
        needed = needed | waiting
    if len(needed) < 2:  # a single variable is a guard by itself
        return []
    variables = tuple(sorted(needed))
    place = _dependencies(model, {v: np.array([state[v]]) for v in variables})
    return [_Guard(variables, tuple(int(state[v]) for v in variables), (place,))]


def _tables(model: FactoredMDP) -> Iterable[tuple[tuple[int, ...], Floats]]:
    for means in model.reward_means:
        for table in means:
            yield table.scope, table.values
    for mechanism in model.dynamics.mechanisms:
        for kernel in mechanism.cases:
            yield (*kernel.parents, *kernel.drawn), kernel.table


def _reachable_values(model: FactoredMDP, variable: int) -> Flags:
    """Whether from one value (row) another (column) can be reached, whatever else there is."""
    size = model.sizes[variable]
    reaches = np.eye(size, dtype=np.bool_)
    for mechanism in model.dynamics.mechanisms:
        if variable not in mechanism.children:
            continue
        for kernel in mechanism.cases:
            table = kernel.table
            child = table.ndim - len(mechanism.children) + mechanism.children.index(variable)
            axes = [child]
            if variable in kernel.parents:
                axes.insert(0, kernel.parents.index(variable))
            others = tuple(axis for axis in range(table.ndim) if axis not in axes)
            possible: Flags = np.asarray((table > 0).any(axis=others))
            reaches |= possible if len(axes) == 2 else possible[None, :]
    for _ in range(max(1, math.ceil(math.log2(size)))):
        reaches = (reaches.astype(np.int64) @ reaches.astype(np.int64)) > 0
    return reaches


def _dependencies(model: FactoredMDP, allowed: Mapping[int, Integers]) -> Dependencies:
    """At which variables rewards look, and each next value, while some variables are in sets."""
    n_variables = len(model.sizes)
    rewards = 0
    for means in model.reward_means:
        for table in means:
            for position in _varying(table.values, table.scope, allowed):
                rewards |= 1 << position
    looks = [0] * len(model.dynamics.drawn_sizes)
    for mechanism in model.dynamics.mechanisms:
        seen = 0
        for kernel in mechanism.cases:
            # Drawn values are told from current ones by a shift, and looked through.
            scope = (*kernel.parents, *(n_variables + drawn for drawn in kernel.drawn))
            for position in _varying(kernel.table, scope, allowed):
                seen |= looks[position - n_variables] if position >= n_variables else 1 << position
        for child in mechanism.children:
            looks[child] = seen
    return rewards, tuple(looks[:n_variables])


def _restrict(table: Floats, scope: Sequence[int], allowed: Mapping[int, Integers]) -> Floats:
    """The part of a table in which some variables are in sets."""
    for axis, position in enumerate(scope):
        if position in allowed:
            table = table.take(allowed[position], axis=axis)
    return table


def _varying(table: Floats, scope: Sequence[int], allowed: Mapping[int, Integers]) -> list[int]:
    """Positions of a scope along whose axes a table varies, with some variables held in sets."""
    table = _restrict(table, scope, allowed)
    return [
        position
        for axis, position in enumerate(scope)
        if table.shape[axis] > 1 and (table != table.take([0], axis=axis)).any()
    ]
