"""Fitted values, round by round: fit, follow the policy, add visited states, fit again; grow."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from fsmdp.bounds.clock import NO_LIMIT
from fsmdp.compiled import compiled
from fsmdp.foundation.checks import plural
from fsmdp.foundation.streams import Purpose, derived_seed
from fsmdp.foundation.threads import in_threads, split
from fsmdp.model.basis import Basis
from fsmdp.model.conditions import Conditions
from fsmdp.model.lookup import Lookup, flatten_cases, scope_lookup, scopes_of
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.tables import Floats, Integers, Table, bound_table
from fsmdp.model.variables import Scope, table_size
from fsmdp.policies.arrays import CompiledPolicy
from fsmdp.policies.greedy import BestActions, Greedy
from fsmdp.policies.resolve import idle_policy, resolve
from fsmdp.reductions.reduction import Reduced
from fsmdp.solver import parameters as tuned
from fsmdp.solver.engine import CandidatePolicy
from fsmdp.solver.judge import Arena, Judge, Judged


@dataclass(frozen=True, slots=True, eq=False)
class Backups:
    """Where the terms of Q stand, and what they are for given weights."""

    basis: Basis
    lookup: Lookup = field(repr=False)
    rewards: Floats = field(repr=False)
    means: Floats = field(repr=False)  # discount * E[h_j(s')], all functions one after another
    columns: NDArray[np.int64] = field(repr=False)  # their j
    conditions: Conditions = field(repr=False)
    best: BestActions = field(repr=False)

    @property
    def n_entries(self) -> int:
        """Number of terms of Q, those of what is allowed included."""
        return len(self.rewards) + len(self.means) + len(self.conditions.entries)

    def entries(self, weights: Floats, out: Floats | None = None) -> Floats:
        """The terms of Q for the weights of the following step."""
        found = np.empty(self.n_entries) if out is None else out
        first, last = len(self.rewards), len(self.rewards) + len(self.means)
        found[:first] = self.rewards
        np.multiply(weights[self.columns], self.means, out=found[first:last])
        found[last:] = self.conditions.entries
        return found


def backups_of(
    model: FactoredMDP, basis: Basis, check: Callable[[], None] | None = None
) -> Backups:
    """Back every function of a basis up once. Cost: the parents' assignments of each function."""
    marginals = model.marginals(basis, check)
    backprojections = marginals.backprojections()
    counts = [sum(table.values.size for table in cases) for cases in backprojections]
    scopes = scopes_of((*model.reward_means, *backprojections, *model.conditions.allowed))
    lookup = scope_lookup(scopes, model.input_sizes, model.dynamics.n_actions)
    return Backups(
        marginals.basis,
        lookup,
        flatten_cases(model.reward_means),
        model.discount * flatten_cases(backprojections),
        np.repeat(np.arange(len(counts)), counts),
        model.conditions,
        BestActions(lookup, model.sizes, actions=model.actions),
    )


def backup_size(model: FactoredMDP, scope: Scope) -> int:
    """Numbers in the backups of a function of this scope, by declared parents: at most so many.

    To make them takes as many times more as the scope has assignments.
    """
    ancestry, sizes = model.dynamics.ancestry(scope), model.input_sizes
    return sum(table_size(sizes[parent] for parent in one.parent_scope) for one in ancestry)


def neighbours(model: FactoredMDP) -> list[set[int]]:
    """For each variable, those that occur together with it: in a mechanism or a reward."""
    found: list[set[int]] = [set() for _ in model.variables]

    def join(scope: Sequence[int]) -> None:
        for one in scope:
            found[one].update(scope)

    for child in range(len(model.variables)):
        join(sorted({child, *model.parents(child)}))
    for means in model.reward_means:
        for table in means:
            join([position for position in table.scope if position < len(found)])
    for position, near in enumerate(found):
        near.discard(position)
    return found


def extensions(
    model: FactoredMDP,
    scopes: Sequence[Scope],
    largest: int,
    most_variables: int = tuned.SCOPE_VARIABLES,
) -> list[Scope]:
    """Scopes that extend one of these by a neighbour of one of its variables, and are affordable.

    Of more candidates than can be examined, those are kept that have the fewest variables, that
    most of them are neighbours of, and that are cheapest.
    """
    near, present = neighbours(model), set(scopes)
    found: dict[Scope, tuple[int, int, int]] = {}
    for scope in sorted(scopes, key=len):
        if not scope or len(scope) >= most_variables or len(found) >= 4 * tuned.CANDIDATE_SCOPES:
            continue
        for position in sorted(set.union(*(near[one] for one in scope)) - set(scope)):
            wider = tuple(sorted((*scope, position)))
            if wider in present or wider in found:
                continue
            price = backup_size(model, wider)
            if price <= largest:
                shared = sum(position in near[one] for one in scope)
                found[wider] = len(wider), len(scope) - shared, price
    return sorted(found, key=found.__getitem__)[: tuned.CANDIDATE_SCOPES]


@compiled()
def explained(
    scope_start: Integers,
    slots: Integers,
    strides: Integers,
    sizes: Integers,
    states: Integers,
    left: Floats,
    counts: Floats,
    gains: Floats,
) -> None:
    """Add to each scope's gain what the means of its assignments explain of what is left over.

    sum over assignments of (sum_s n(s) r(s))^2 / sum_s n(s): the drop of the squared error if every
    assignment had a function of its own.
    Cost: a look-up for each scope and state.
    """
    for scope in range(len(gains)):
        sums = np.zeros(sizes[scope])
        weights = np.zeros(sizes[scope])
        for row in range(len(states)):
            at = 0
            for i in range(scope_start[scope], scope_start[scope + 1]):
                at += states[row, slots[i]] * strides[i]
            sums[at] += counts[row] * left[row]
            weights[at] += counts[row]
        for at in range(sizes[scope]):
            if weights[at] > 0.0:
                gains[scope] += sums[at] * sums[at] / (weights[at] + tuned.DOUBTFUL_STATES)


def with_scopes(model: FactoredMDP, basis: Basis, scopes: Sequence[Scope]) -> Basis:
    """The basis with the indicators of all assignments of these scopes that have no zero."""
    tables = []
    for scope in scopes:
        shape = tuple(model.sizes[position] for position in scope)
        for assignment in product(*(range(1, size) for size in shape)):
            values = np.zeros(shape)
            values[assignment] = 1.0
            tables.append(bound_table(scope, values))
    return Basis([*basis.tables[1:], *tables])


def gains_of(
    model: FactoredMDP,
    scopes: Sequence[Scope],
    states: Sequence[Integers],
    left: Sequence[Floats],
    counts: Sequence[Floats],
    check: Callable[[], None] = NO_LIMIT.check,
) -> Floats:
    """What each scope explains of what the fits of several steps leave over; steps count alike."""
    slots: list[int] = []
    strides: list[int] = []
    start, sizes = [0], []
    for scope in scopes:
        stride = table_size(model.sizes[p] for p in scope)
        sizes.append(stride)
        for position in scope:
            stride //= model.sizes[position]
            slots.append(position)
            strides.append(stride)
        start.append(len(slots))
    starts, at, by, shape = (
        np.array(part, dtype=np.int64) for part in (start, slots, strides, sizes)
    )
    gains = np.zeros(len(scopes))
    for one, residual, count in zip(states, left, counts, strict=True):
        check()
        scale = float(count @ residual**2) or 1.0
        explained(starts, at, by, shape, one, residual / np.sqrt(scale), count, gains)
    return gains


class Features(NamedTuple):
    """For each scope and assignment, the functions that are not zero there, and their values."""

    scope_start: Integers  # (n_scopes + 1,) of slots and strides
    slot: Integers
    stride: Integers
    row_of_scope: Integers  # (n_scopes,) row of the assignment of zeros
    row_start: Integers  # (n_rows + 1,)
    function: Integers
    value: Floats
    n_functions: int


def compile_features(basis: Basis) -> Features:
    """Lay a bound basis out. Cost: its tables."""
    by_scope: dict[Scope, list[int]] = {}
    for function, table in enumerate(basis):
        by_scope.setdefault(table.scope, []).append(function)
    scope_start, slots, strides, first_rows, row_start = [0], [], [], [], [np.zeros(1, np.int64)]
    functions, values = [], []
    rows = numbers = 0
    for scope, members in by_scope.items():
        shape = basis.tables[members[0]].values.shape
        stacked = np.stack([basis.tables[member].values.ravel() for member in members], axis=1)
        size = len(stacked)
        stride = size
        for position, axis in zip(scope, shape, strict=True):
            stride //= axis
            slots.append(position)
            strides.append(stride)
        scope_start.append(len(slots))
        first_rows.append(rows)
        at, which = np.nonzero(stacked)
        functions.append(np.array(members, dtype=np.int64)[which])
        values.append(stacked[at, which])
        row_start.append(numbers + np.cumsum(np.bincount(at, minlength=size)))
        rows += size
        numbers += len(at)
    return Features(
        np.array(scope_start, dtype=np.int64),
        np.array(slots, dtype=np.int64),
        np.array(strides, dtype=np.int64),
        np.array(first_rows, dtype=np.int64),
        np.concatenate(row_start).astype(np.int64),
        np.concatenate(functions),
        np.concatenate(values),
        len(basis),
    )


@compiled(inline="always")
def row_at(features: Features, scope: int, state: Integers) -> int:
    """The row of a scope's functions in a state."""
    row = features.row_of_scope[scope]
    for at in range(features.scope_start[scope], features.scope_start[scope + 1]):
        row += state[features.slot[at]] * features.stride[at]
    return row  # type: ignore[no-any-return]


@compiled()
def add_products(
    features: Features,
    states: Integers,
    counts: Floats,
    targets: Floats,
    products: Floats,
    moments: Floats,
) -> None:
    """Add sum_s n(s) h(s) h(s)' to the lower triangle of `products`, n(s) h(s) y(s) to `moments`.

    Cost: for each state, the square of the functions that are not zero there.
    """
    active = np.empty(features.n_functions, dtype=np.int64)
    numbers = np.empty(features.n_functions)
    for row in range(len(states)):
        found = 0
        for scope in range(len(features.row_of_scope)):
            at = row_at(features, scope, states[row])
            for entry in range(features.row_start[at], features.row_start[at + 1]):
                active[found] = features.function[entry]
                numbers[found] = features.value[entry]
                found += 1
        for one in range(found):
            scaled = counts[row] * numbers[one]
            moments[active[one]] += scaled * targets[row]
            for other in range(one + 1):
                high, low = active[one], active[other]
                if high < low:
                    high, low = low, high
                products[high, low] += scaled * numbers[other]


@compiled()
def fill_rows(features: Features, states: Integers, rows: Floats) -> None:
    """Add h_j(s) to `rows`, a row for each state."""
    for row in range(len(states)):
        for scope in range(len(features.row_of_scope)):
            at = row_at(features, scope, states[row])
            for entry in range(features.row_start[at], features.row_start[at + 1]):
                rows[row, features.function[entry]] += features.value[entry]


@compiled()
def fill_values(features: Features, weights: Floats, states: Integers, values: Floats) -> None:
    """sum_j w_j h_j(s) for each state."""
    for row in range(len(states)):
        total = 0.0
        for scope in range(len(features.row_of_scope)):
            at = row_at(features, scope, states[row])
            for entry in range(features.row_start[at], features.row_start[at + 1]):
                total += weights[features.function[entry]] * features.value[entry]
        values[row] = total


Words = NDArray[np.uint64]  # (n_words, n_states)


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """The states visited at each step and their counts; one step stands for all if infinite."""

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
    pool: Pool, visited: Integers, most: int, check: Callable[[], None] = NO_LIMIT.check
) -> Pool:
    """The pool with the states of further episodes, visited: (episodes, steps, n_variables).

    At most `most` states are kept for a step, the ones visited most often. `check` is called before
    each step, and again and again while there are many states. Cost: sorting a step's states.
    """
    by_step = [visited[:, step] for step in range(len(pool.states))]
    if len(pool.states) == 1:
        by_step = [visited.reshape(-1, visited.shape[2])]
    merged = [
        _merged(states, counts, new, most, check)
        for states, counts, new in zip(pool.states, pool.counts, by_step, strict=True)
    ]
    return Pool(tuple(states for states, _ in merged), tuple(counts for _, counts in merged))


def _merged(
    states: Integers, counts: Floats, visited: Integers, most: int, check: Callable[[], None]
) -> tuple[Integers, Floats]:
    """Each state once, in lexicographic order: sorted part by part, and what is left of these."""
    check()
    sizes = np.maximum(states.max(axis=0, initial=0), visited.max(axis=0, initial=0)) + 1
    n_known, at_a_time = len(states), max(1, tuned.SORTED_NUMBERS // len(sizes))
    parts = [_distinct(_packed(states, sizes), counts, np.arange(n_known))]
    for first in range(0, len(visited), at_a_time):
        check()
        words = _packed(visited[first : first + at_a_time], sizes)
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
    found[~is_known] = visited[rows[~is_known] - n_known]
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


def targets_of(backups: Backups, entries: Floats, states: Integers) -> Floats:
    """max_a R(s, a) + discount * E[V(s') | s, a] for each state, 0 in terminal ones.

    Cost: look-ups of all actions.
    """
    found = backups.best(entries, states)[0]
    if backups.conditions.terminal:
        found[backups.conditions.is_terminal(states)] = 0.0
    return found


def fit_step(
    backups: Backups,
    features: Features,
    states: Integers,
    counts: Floats,
    entries: Floats,
    later: Floats,
    ridge: float,
) -> Floats:
    """Weights w that minimise sum_s n(s) (w h(s) - target(s))^2 + ridge * sum_s n(s) * |w - v|^2.

    v are the weights of the following step, with the constant that fits best: drawn to 0 instead,
    functions that few states tell apart would lose part of their weight at every step. Cost: of
    `by_states` or `by_functions`, whichever are fewer.
    """
    targets = targets_of(backups, entries, states)
    expected = np.zeros(len(states))
    fill_values(features, later, states, expected)
    targets = targets - expected
    total = float(counts.sum())
    middle = float(counts @ targets) / total
    penalty = np.full(features.n_functions, ridge * total)
    penalty[0] *= tuned.CONSTANT_RIDGE
    solve = by_states if len(states) <= features.n_functions else by_functions
    found = solve(features, states, counts, targets - middle, penalty)
    found += later
    found[0] += middle
    return found


def by_functions(
    features: Features, states: Integers, counts: Floats, targets: Floats, penalty: Floats
) -> Floats:
    """Normal equations: (H' N H + D) w = H' N y.

    Cost: for each state the square of its functions, and the cube of all functions.
    """
    parts = split(len(states), tuned.THREAD_STATES)
    n_functions = features.n_functions
    products = np.zeros((len(parts), n_functions, n_functions))
    moments = np.zeros((len(parts), n_functions))

    def run(part: int) -> None:
        at = parts[part]
        add_products(features, states[at], counts[at], targets[at], products[part], moments[part])

    in_threads(run, len(parts))
    matrix = products.sum(axis=0)
    matrix[np.diag_indices_from(matrix)] += penalty
    factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
    return np.asarray(cho_solve(factor, moments.sum(axis=0), check_finite=False))


def by_states(
    features: Features, states: Integers, counts: Floats, targets: Floats, penalty: Floats
) -> Floats:
    """The same weights by their dual: w = A' z / sqrt(D) with (A A' + 1) z = sqrt(N) y.

    A = sqrt(N) H / sqrt(D). Cost: the square of the states times the functions.
    """
    roots = np.sqrt(counts)
    scaled = np.zeros((len(states), features.n_functions))
    fill_rows(features, states, scaled)
    scaled *= roots[:, None]
    scaled /= np.sqrt(penalty)
    matrix = scaled @ scaled.T
    matrix[np.diag_indices_from(matrix)] += 1.0
    factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
    solved = cho_solve(factor, roots * targets, check_finite=False)
    return np.asarray((solved @ scaled) / np.sqrt(penalty))


Check = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Choices:
    """How values are fitted: how strongly to the following step's, how many states."""

    ridge: float = tuned.RIDGE
    pool: int = tuned.POOL_STATES


class Fitting:
    """Weights for one basis on a pool of states that grows."""

    def __init__(self, model: FactoredMDP, basis: Basis, choices: Choices, check: Check) -> None:
        self.model, self.choices, self._check = model, choices, check
        self.pool = empty_pool(model.horizon or 1, len(model.variables))
        self.weights: Floats | None = None  # (n_steps + 1, n_functions); (1, ...) if infinite
        self._use(basis, check)

    @property
    def basis(self) -> Basis:
        """The functions in use."""
        return self.backups.basis

    def _use(self, basis: Basis, check: Check) -> None:
        self.backups: Backups = backups_of(self.model, basis, check)
        self.features: Features = compile_features(self.backups.basis)

    def copy(self) -> Fitting:
        """The same functions and states, to go on in another way."""
        return copy(self)

    def add_states(self, states: Integers) -> None:
        """Add states to the pool: (episodes, steps, n_variables)."""
        self.pool = with_states(self.pool, states, self.choices.pool, self._check)

    def fit(self, check: Check) -> Greedy:
        """Fit all steps to the pool as it is; the greedy policy of the values found.

        V_l = least squares of max_a R(s, a) + discount * E[V_{l+1}(s') | s, a] over the states.
        Cost: for each state the look-ups of its actions and the square of its functions; for each
        step the cube of all functions.
        """
        model = self.model
        if model.horizon is None:
            self.weights = self._fit_endless(check)
            entries = self.backups.entries(self.weights[0])[None, :]
        else:
            weights = np.zeros((model.horizon + 1, self.features.n_functions))
            entries = np.empty((model.horizon, self.backups.n_entries))
            for step in reversed(range(model.horizon)):
                check()
                self.backups.entries(weights[step + 1], out=entries[step])
                weights[step] = self._fit_step(step, entries[step], weights[step + 1])
            self.weights = weights
        return Greedy(model.variables, model.actions, model.horizon, self.backups.lookup, entries)

    def _fit_step(self, step: int, entries: Floats, later: Floats) -> Floats:
        states, counts, ridge = self.pool.states[step], self.pool.counts[step], self.choices.ridge
        return fit_step(self.backups, self.features, states, counts, entries, later, ridge)

    def _fit_endless(self, check: Check) -> Floats:
        """Stages of a finite horizon, long enough that the rest hardly counts."""
        stages = math.ceil(math.log(tuned.SETTLED_SHARE) / math.log(self.model.discount))
        most = tuned.FIRST_STAGES if self.weights is None else tuned.MORE_STAGES
        found = np.zeros(self.features.n_functions)
        if self.weights is not None:
            found[: self.weights.shape[1]] = self.weights[0]
        for _ in range(min(stages, most)):
            check()
            found = self._fit_step(0, self.backups.entries(found), found)
        return found[None, :]

    def grow(self, batch: int, check: Check) -> int:
        """Add the scopes that explain most of what the fit leaves over; how many functions.

        Scopes extend those in use by a variable that occurs in a table together with all of
        theirs. Cost: a look-up for each candidate and state of a few steps.
        """
        assert self.weights is not None
        scopes = sorted(set(self.basis.scopes))
        candidates = extensions(self.model, scopes, tuned.FIT_BACKUP_NUMBERS)
        if not candidates:
            return 0
        steps = len(self.pool.states)
        looked_at = sorted(
            {round(i * (steps - 1) / tuned.RESIDUAL_STEPS) for i in range(tuned.RESIDUAL_STEPS + 1)}
        )
        states = [self.pool.states[step] for step in looked_at]
        left = []
        for step in looked_at:
            check()
            left.append(self._left_over(step))
        counts = [self.pool.counts[step] for step in looked_at]
        gains = gains_of(self.model, candidates, states, left, counts, check)
        chosen = self._affordable(candidates, gains, batch)
        if not chosen:
            return 0
        before = len(self.basis)
        self._use(with_scopes(self.model, self.basis, chosen), check)
        return len(self.basis) - before

    def trim(self, check: Check) -> int:
        """Leave out functions of the largest tables where all take too much memory; how many."""
        counts = np.bincount(self.backups.columns, minlength=len(self.basis))
        order = np.argsort(counts, kind="stable")
        kept = order[np.cumsum(counts[order]) <= tuned.FIT_NUMBERS // len(self.pool.states)]
        if len(kept) < len(order):
            tables = [self.basis.tables[at] for at in np.sort(kept)]
            self._use(Basis([table for table in tables if table.scope]), check)
        return len(order) - len(kept)

    def add_functions(self, tables: Sequence[Table], check: Check) -> int:
        """Add functions as far as there is room; how many."""
        room = tuned.FIT_NUMBERS // len(self.pool.states) - len(self.backups.means)
        chosen = []
        for table in tables[: max(0, tuned.FIT_FUNCTIONS - len(self.basis))]:
            price = backup_size(self.model, table.scope)
            if price <= tuned.FIT_BACKUP_NUMBERS and price // tuned.MERGED_TABLES <= room:
                chosen.append(table)
                room -= price // tuned.MERGED_TABLES
        if chosen:
            self._use(Basis([*self.basis.tables[1:], *chosen]), check)
        return len(chosen)

    def _left_over(self, step: int) -> Floats:
        assert self.weights is not None
        later = self.weights[0 if self.model.horizon is None else step + 1]
        states = self.pool.states[step]
        targets = targets_of(self.backups, self.backups.entries(later), states)
        fitted = np.zeros(len(states))
        fill_values(self.features, self.weights[step], states, fitted)
        return targets - fitted

    def _affordable(self, candidates: Sequence[Scope], gains: Floats, batch: int) -> list[Scope]:
        """The scopes of largest gain for each function, within the batch and the memory."""
        functions = np.array([n_indicators(self.model, scope) for scope in candidates])
        steps = len(self.pool.states)
        room = tuned.FIT_NUMBERS // steps - len(self.backups.means)
        chosen, total = [], 0
        for at in np.argsort(-gains / functions, kind="stable"):
            if gains[at] <= 0.0 or total >= batch:
                break
            size = functions[at] * backup_size(self.model, candidates[at]) // tuned.MERGED_TABLES
            if len(self.basis) + total + functions[at] > tuned.FIT_FUNCTIONS or size > room:
                continue
            chosen.append(candidates[at])
            total += int(functions[at])
            room -= size
        return chosen


def n_indicators(model: FactoredMDP, scope: Scope) -> int:
    """Assignments of a scope that have no zero."""
    return table_size(model.sizes[position] - 1 for position in scope)


def first_basis(model: FactoredMDP, pairs: bool) -> Basis:
    """Singles, or pairs of a variable and a parent and of variables in one reward, if affordable.

    Scopes whose expectations would need large tables are left out, the cheapest come first.
    """
    singles: list[Scope] = [(position,) for position in range(len(model.variables))]
    wanted: dict[Scope, None] = dict.fromkeys(singles)
    if pairs:
        for child in range(len(model.variables)):
            for parent in model.parents(child):
                if parent != child:
                    wanted[(min(child, parent), max(child, parent))] = None
        for means in model.reward_means:
            for table in means:
                for one in table.scope:
                    for other in table.scope:
                        if one < other < len(model.variables):
                            wanted[(one, other)] = None
    priced = []
    for scope in wanted:
        price = backup_size(model, scope)
        if price <= tuned.FIT_BACKUP_NUMBERS:
            priced.append((len(scope), price, scope))
    numbers = functions = 0
    chosen = []
    for _, price, scope in sorted(priced):
        count = n_indicators(model, scope)
        numbers += count * price * (model.horizon or 1) // tuned.MERGED_TABLES
        functions += count
        if numbers > tuned.FIT_NUMBERS or functions > tuned.FIT_FUNCTIONS:
            break
        chosen.append(scope)
    return with_scopes(model, Basis([]), sorted(chosen, key=lambda scope: (len(scope), scope)))


@dataclass(slots=True, eq=False)
class Fit:
    """Values of one basis on a reduced model, with what has come of them."""

    name: str
    reduced: Reduced
    fitting: Fitting
    arena: Arena
    episodes: int
    """Of each policy, whose states join the pool."""
    seed: int
    check: Callable[[], None]
    best: float = -np.inf
    vain: int = 0
    """Times that the basis has grown without a better policy."""
    n_fits: int = 0

    def visit(self, policy: CompiledPolicy, *parts: int, episodes: int | None = None) -> None:
        """Add the states that a policy visits to the pool."""
        seed = derived_seed(self.seed, Purpose.VISITED, *parts)
        states = self.arena.states(policy, episodes or self.episodes, seed, self.check)
        self.fitting.add_states(self.reduced.states(states))

    def begin(self) -> None:
        """Put the states into the pool that acting at random and doing nothing visit."""
        model, fewer = self.arena.model, max(1, self.episodes // tuned.IDLE_DIVISOR)
        for policy, count in (("random", self.episodes), (idle_policy(model), fewer)):
            arrays = resolve(model, policy).arrays
            assert arrays is not None
            self.visit(arrays, episodes=count)

    def rounds(
        self, count: int, visits_last: bool = True
    ) -> Generator[CandidatePolicy, Judged | None, None]:
        """Fit, follow the greedy policy, add the states that it visits, and again."""
        for number in range(count):
            policy = self.fitting.fit(self.check)
            self.n_fits += 1
            name = f"{self.name}, {plural(len(self.fitting.basis), 'function')}"
            judged = yield CandidatePolicy(name, policy, self.reduced)
            if judged is None:  # too slow to be judged in time, as the next ones would be
                return
            self.best = max(self.best, judged.mean)
            if visits_last or number + 1 < count:
                self.visit(judged.arrays, self.n_fits)

    def judged_by(self, judge: Judge, count: int) -> None:
        """Rounds without a scheduler."""
        rounds, judged = self.rounds(count, visits_last=False), None
        with suppress(StopIteration):
            while True:
                policy = rounds.send(judged).policy
                name, arrays = f"{self.name} {self.n_fits}", policy.compiled()
                assert arrays is not None
                judged = judge.consider(name, policy, arrays, 0.0, self.check)
