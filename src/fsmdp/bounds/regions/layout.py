"""Regions of a model laid out in arrays: units, cases, rewards, what is allowed, where it ends."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from fsmdp.bounds.regions.sweeps import EITHER, LIVE, OVER, RegionTables
from fsmdp.errors import WidthError
from fsmdp.model.cases import Cases, common_groups
from fsmdp.model.marginals import Marginal, Messages, compute_marginal
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.tables import Floats, Integers, Table, bound_table
from fsmdp.model.variables import Scope, table_size

LARGEST_SCOPE = 2**17
"""Assignments of a variable and all that it depends on, times cases, to be in an interior."""


class Parts:
    """What regions are made of: the model's variables, who affects whom, and local tables."""

    def __init__(self, model: FactoredMDP) -> None:
        self.model = model
        self.n_variables = len(model.variables)
        self.sizes = model.input_sizes
        self.n_cases = model.actions.n_cases
        self._messages: Messages = {}
        self._units: dict[Scope, Cases[Marginal]] = {}
        self._group_of: dict[int, int] = {}
        for number, group in enumerate(model.dynamics.groups(self.n_variables)):
            self._group_of.update(dict.fromkeys(group, number))
        self.limits = self._limits()

    def _limits(self) -> list[Cases[Table]]:
        """Tables of 0 and minus infinity: conditions on actions, forbidden joint actions."""
        found = list(self.model.conditions.allowed)
        for table in self.model.actions.forbidden:
            scope = tuple(self.n_variables + position for position in table.scope)
            barred = np.where(table.values != 0, -np.inf, 0.0)
            found.append(Cases((bound_table(scope, barred),)))
        return found

    def units(self, interior: Iterable[int]) -> list[Scope]:
        """The interior's variables, those that are drawn together in one."""
        found: dict[int, list[int]] = {}
        for variable in sorted(interior):
            found.setdefault(self._group_of[variable], []).append(variable)
        return [tuple(scope) for scope in found.values()]

    def law(self, unit: Scope) -> Cases[Marginal]:
        """How a unit is drawn, by action group."""
        if unit not in self._units:
            self._units[unit] = compute_marginal(
                unit, self.model.dynamics, self.sizes, self._messages
            )
        return self._units[unit]

    @cached_property
    def narrow(self) -> list[int]:
        """Variables that can be an interior by themselves: what they depend on is not too much."""
        found = []
        for variable in range(self.n_variables):
            region = Region(frozenset((variable,)))
            size = self.extent(region.interior)
            if size <= LARGEST_SCOPE and size * len(region_cases(self, region)) <= LARGEST_SCOPE:
                found.append(variable)
        return found

    def extent(self, interior: Iterable[int]) -> float:
        """Assignments of an interior and its boundary; infinite if they cannot be told."""
        try:
            return self.size(self.scope(interior))
        except WidthError:
            return math.inf

    def parents(self, unit: Scope) -> set[int]:
        """Inputs that a unit depends on, under whatever action."""
        return {parent for marginal in self.law(unit) for parent in marginal.parent_scope}

    @cached_property
    def neighbours(self) -> list[set[int]]:
        """For each narrow variable its parents and children that are narrow, itself left out."""
        found: list[set[int]] = [set() for _ in range(self.n_variables)]
        narrow = set(self.narrow)
        for variable in self.narrow:
            for parent in self.parents((variable,)):
                if parent in narrow and parent != variable:
                    found[variable].add(parent)
                    found[parent].add(variable)
        return found

    def scope(self, interior: Iterable[int]) -> set[int]:
        """An interior and its boundary."""
        interior = set(interior)
        return interior.union(*(self.parents(unit) for unit in self.units(interior)))

    def size(self, scope: Iterable[int]) -> int:
        """Assignments of some inputs."""
        return table_size(self.sizes[position] for position in scope)


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """An interior, more inputs that its boundary has, and shares of reward terms (1 / number)."""

    interior: frozenset[int]
    extra: frozenset[int] = frozenset()
    shares: tuple[tuple[int, int], ...] = ()  # reward term, and among how many it is shared


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """A region in arrays, and what its axes and cases are."""

    region: Region
    axes: tuple[int, ...]  # inputs, interior first
    cases: Cases[int]  # the region's case, by action
    case_sizes: tuple[int, ...]  # how many actions each case has
    tables: RegionTables = field(repr=False)
    rounding: float  # relative error of the units' probabilities, all together
    memory: int  # numbers that a sweep of one step and the tables need

    @property
    def n_cases(self) -> int:
        """Groups of actions that the region tells apart."""
        return len(self.cases)

    @property
    def n_coefficients(self) -> int:
        """Prices of a step."""
        return self.tables.first_case + self.n_cases + 1


def region_cases(parts: Parts, region: Region) -> Cases[tuple[tuple[int, Any], ...]]:
    """Groups of actions that a region tells apart: by units, shares of rewards and limits."""
    found: list[Cases[tuple[int, Any]]] = [
        parts.law(unit).map_with_group() for unit in parts.units(region.interior)
    ]
    found += [parts.model.reward_means[term].map_with_group() for term, _ in region.shares]
    scope = parts.scope(region.interior) | region.extra
    found += [
        limit.map_with_group()
        for limit in parts.limits
        if any(scope & set(table.scope) or not table.scope for table in limit)
    ]
    if not found:
        return Cases(((),))
    return common_groups(found, parts.n_cases)


def estimated_work(parts: Parts, region: Region) -> float:
    """Additions of one step of a region, roughly, before it is laid out."""
    scope = parts.scope(region.interior) | region.extra
    return 6.0 * parts.size(scope) * len(region_cases(parts, region))


def lay_out(parts: Parts, region: Region) -> Layout:
    """A region in arrays. Cost: the assignments of its axes times its cases."""
    together = region_cases(parts, region)
    units = parts.units(region.interior)
    laws = [[item[1] for item in group[: len(units)]] for group in together]
    order = _order(units, laws[0], parts)
    units = [units[at] for at in order]
    laws = [[row[at] for at in order] for row in laws]
    scope = parts.scope(region.interior) | region.extra
    # The unit that is averaged first is the slowest axis of the interior.
    inner = [variable for unit in reversed(units) for variable in unit]
    axes = (*inner, *sorted(scope - region.interior))
    sizes = np.array([parts.sizes[position] for position in axes], dtype=np.int64)
    n_all, n_inner = table_size(sizes.tolist()), parts.size(inner)
    digits = _digits(axes, sizes)
    n_cases, n_units = len(together), len(units)
    outcomes = np.array([parts.size(unit) for unit in units], dtype=np.int64)
    rest = np.array([parts.size(v for u in units[at + 1 :] for v in u) for at in range(n_units)])
    shape = n_cases, n_units
    row_start, chance_start = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    n_rows, shared = np.zeros(shape, np.int64), np.zeros(n_cases, np.int64)
    kept = np.zeros(n_units + 1, np.int64)
    last_row = np.zeros((n_cases, n_all), np.int32)
    rows: list[Integers] = []
    chances: list[Floats] = []
    row_at = chance_at = 0
    largest = n_inner
    for case in range(n_cases):
        known: list[int] = []
        same = case > 0
        for unit, scope_of_unit in enumerate(units):
            law = laws[case][unit]
            before = parts.size(known)
            known += [parent for parent in law.parent_scope if parent not in known]
            same = same and law is laws[0][unit]
            count = parts.size(known)
            n_rows[case, unit] = count
            if same:
                shared[case] = unit + 1
                row_start[case, unit] = row_start[0, unit]
                chance_start[case, unit] = chance_start[0, unit]
                continue
            row_start[case, unit], chance_start[case, unit] = row_at, chance_at
            number = np.arange(count)
            rows.append((number % before).astype(np.int32))
            chances.append(_chances(law, scope_of_unit, known, number, parts).ravel())
            row_at += count
            chance_at += count * int(outcomes[unit])
            largest = max(largest, count * int(rest[unit]))
            if case == 0:
                size = (
                    n_inner if unit == 0 else int(n_rows[0, unit - 1] * outcomes[unit] * rest[unit])
                )
                kept[unit + 1] = kept[unit] + size
        stride = 1
        for parent in known:
            last_row[case] += (digits[parent] * stride).astype(np.int32)
            stride *= parts.sizes[parent]
    if n_units == 0:
        kept = np.zeros(1, np.int64)
    rewards = _rewards(parts, region, together, len(units), axes, digits, n_all)
    single, pair, first_case = _coefficients(sizes)
    starts, start_chance = _starts(parts.model, axes, sizes)
    tables = RegionTables(
        sizes,
        single,
        pair,
        first_case,
        n_inner,
        rewards,
        last_row,
        shared,
        row_start,
        n_rows,
        np.concatenate([np.zeros(0, np.int32), *rows]),
        chance_start,
        np.concatenate([np.zeros(0), *chances]),
        outcomes,
        rest.astype(np.int64),
        kept,
        _ends(parts.model, axes[: len(inner)], sizes),
        starts,
        start_chance,
        parts.model.discount,
        -parts.model.largest_size_of_return,
    )
    memory = int(kept[-1]) + (int(n_rows[0, -1]) if n_units else 1) + 4 * max(largest, n_all)
    # Cases as the hub and features know them: the groups' numbers.
    numbered = together.map_with_group().map(lambda item: item[0])
    counts = Counter(numbered.exceptions.values())
    counts[0] = parts.n_cases - len(numbered.exceptions)
    case_sizes = tuple(counts[case] for case in range(n_cases))
    rounding = max((sum(law.rounding for law in row) for row in laws), default=0.0)
    return Layout(region, axes, numbered, case_sizes, tables, rounding, memory)


def _order(units: Sequence[Scope], laws: Sequence[Marginal], parts: Parts) -> list[int]:
    """Units that bring the fewest new parents first, under the first case."""
    left, known, found = set(range(len(units))), set[int](), []
    while left:
        best = min(left, key=lambda at: (parts.size(set(laws[at].parent_scope) - known), units[at]))
        left.remove(best)
        known |= set(laws[best].parent_scope)
        found.append(best)
    return found


def _digits(axes: Sequence[int], sizes: Integers) -> dict[int, Integers]:
    """The value of each input, for every assignment of all axes."""
    number = np.arange(table_size(sizes.tolist()))
    found = {}
    for position, size in zip(axes, sizes.tolist(), strict=True):
        found[position] = number % size
        number = number // size
    return found


def _chances(
    law: Marginal, unit: Scope, known: Sequence[int], number: Integers, parts: Parts
) -> Floats:
    """Probabilities of a unit's values, (rows, outcomes), the first variable fastest."""
    digit = {}
    for parent in known:
        digit[parent] = number % parts.sizes[parent]
        number = number // parts.sizes[parent]
    n_parents = len(law.parent_scope)
    table = np.asarray(law.probabilities)
    back = (*range(n_parents), *range(table.ndim - 1, n_parents - 1, -1))
    flat = table.transpose(back).reshape(*table.shape[:n_parents], -1)
    index = tuple(digit[parent] for parent in law.parent_scope)
    return np.broadcast_to(flat[index], (len(number), parts.size(unit))).copy()


def _rewards(
    parts: Parts,
    region: Region,
    together: Cases[tuple[tuple[int, Any], ...]],
    n_units: int,
    axes: Sequence[int],
    digits: dict[int, Integers],
    n_all: int,
) -> Floats:
    """Shares of rewards, and minus infinity where a limit forbids what the region sees."""
    found = np.zeros((len(together), n_all))
    scope = set(axes)
    for case, items in enumerate(together):
        tables = [item[1] for item in items[n_units:]]
        for (_, number), table in zip(region.shares, tables, strict=False):
            at = tuple(digits[position] for position in table.scope)
            found[case] += table.values[at] / number
        for table in tables[len(region.shares) :]:
            hidden = tuple(a for a, position in enumerate(table.scope) if position not in scope)
            seen = table.values.max(axis=hidden) if hidden else table.values
            at = tuple(digits[position] for position in table.scope if position in scope)
            found[case] += seen[at]
    most = parts.model.actions.most_nonzero
    decided = [position for position in axes if position >= parts.n_variables]
    if most is not None and len(decided) > most:
        count = sum(digits[position] > 0 for position in decided)
        found[:, count > most] = -np.inf
    return found


def _coefficients(sizes: Integers) -> tuple[Integers, Integers, int]:
    """Positions of the prices of singles and pairs, and how many there are."""
    n_axes, at = len(sizes), 0
    single, pair = np.zeros(n_axes, np.int64), np.zeros((n_axes, n_axes), np.int64)
    for axis in range(n_axes):
        single[axis] = at
        at += int(sizes[axis]) - 1
    for axis in range(n_axes):
        for other in range(axis):
            pair[axis, other] = at
            at += int((sizes[axis] - 1) * (sizes[other] - 1))
    return single, pair, at


def _starts(model: FactoredMDP, axes: Sequence[int], sizes: Integers) -> tuple[Integers, Floats]:
    """Assignments of all axes at the start, (n_starts, joint actions), and their probabilities."""
    places, chances, stride = np.zeros(1, np.int64), np.ones(1), 1
    given = model.initial_distributions()
    total, decided = table_size(sizes.tolist()), None
    for position, size in zip(axes, sizes.tolist(), strict=True):
        if position < len(given):
            values = np.flatnonzero(given[position])
            places = (places[:, None] + stride * values[None, :]).ravel()
            chances = (chances[:, None] * given[position][values][None, :]).ravel()
        elif decided is None:  # action variables are the slowest axes
            decided = np.arange(0, total, stride)
        stride *= size
    decided = np.zeros(1, np.int64) if decided is None else decided
    return places[:, None] + decided[None, :], chances


def _ends(model: FactoredMDP, inner: Sequence[int], sizes: Integers) -> Integers:
    """Whether an episode goes on, may be over or is over, by what the interior knows."""
    n_inner = table_size(sizes[: len(inner)].tolist())
    found = np.full(n_inner, LIVE, np.int64)
    digits = _digits(inner, sizes[: len(inner)])
    for table in model.conditions.terminal:
        hidden = tuple(a for a, position in enumerate(table.scope) if position not in digits)
        at = tuple(digits[position] for position in table.scope if position in digits)
        some = (table.values.max(axis=hidden) if hidden else table.values)[at]
        every = (table.values.min(axis=hidden) if hidden else table.values)[at]
        found = np.maximum(found, np.where(every != 0, OVER, np.where(some != 0, EITHER, LIVE)))
    return found
