"""Prices that make regions agree: the bound that they give, and its least value over prices.

Reward terms are shared out among regions. Prices on what several regions see (values of variables
and of pairs, sets of actions, the end of the episode) add up to 0 over the regions and a hub, which
has no state and sees every action. Then, for any such prices,

    V*(s) <= sum over regions of V^k_1(s) + sum over steps of max over actions of the hub's prices

since the values of all regions together satisfy the Bellman inequality at every state. The bound is
convex in the prices; how much of each price the regions' policies earn is a subgradient.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from fsmdp.bounds.regions.choose import grow, share_rewards
from fsmdp.bounds.regions.layout import Layout, Parts, Region, estimated_work, lay_out
from fsmdp.bounds.regions.sweeps import Scratch, sweep, sweep_stationary
from fsmdp.errors import SizeError
from fsmdp.model.marginals import EPSILON
from fsmdp.model.structure import sum_of_discounts
from fsmdp.model.tables import Floats, Integers

HUB = -1
"""Number of the hub, beside those of the regions."""


@dataclass(frozen=True, slots=True)
class Feature:
    """What has a price: one or two inputs at nonzero values, some actions, or the end."""

    values: tuple[tuple[int, int], ...] = ()  # (input, value), sorted
    actions: frozenset[int] = frozenset()


END = Feature()
"""That the episode is over."""

PRICE_BITS = 40
"""Of the largest price; so that sums of prices are exact."""

STATIONARY_SWEEPS = 60
"""Over the states of a region, without a horizon, before its bound is certified."""

LARGEST_COMPONENT = 2**12
"""Joint values of action variables that forbidden tables connect, listed by the hub."""


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """One price: of a feature, in one region (or the hub), and the coefficients it stands in."""

    feature: Feature
    region: int
    columns: tuple[int, ...]


class Hub:
    """The maximum over actions of prices and of rewards that depend on the action alone."""

    def __init__(self, parts: Parts, rewards: Sequence[int]) -> None:
        self.parts = parts
        actions = parts.model.actions
        self.joint = bool(actions.variables)
        self.terminal = bool(parts.model.terminal)
        means = [parts.model.reward_means[term] for term in rewards]
        if not self.joint:
            self.rewards = np.zeros(len(actions))
            for cases in means:
                self.rewards += float(cases.groups[0].values.max())
                for action, group in cases.exceptions.items():
                    self.rewards[action] += float(
                        cases.groups[group].values.max() - cases.groups[0].values.max()
                    )
            return
        sizes, first = actions.sizes, parts.n_variables
        self.offsets = np.concatenate([[0], np.cumsum([size - 1 for size in sizes])])
        self.rewards = np.zeros(int(self.offsets[-1]))
        self.constant = 0.0
        for cases in means:
            (table,) = cases.groups
            if len(table.scope) == 1 and table.scope[0] >= first:
                at = table.scope[0] - first
                self.constant += float(table.values[0])
                self.rewards[self.offsets[at] : self.offsets[at + 1]] += (
                    table.values[1:] - table.values[0]
                )
            else:
                self.constant += float(table.values.max())
        self.most = actions.most_nonzero
        self.components = _components(parts)

    def columns(self, feature: Feature) -> tuple[int, ...]:
        """Where a price of the hub stands in its table of prices."""
        if feature.actions:
            return tuple(sorted(feature.actions))
        ((variable, value),) = feature.values
        return (int(self.offsets[variable - self.parts.n_variables] + value - 1),)

    @property
    def n_columns(self) -> int:
        """Actions, or nonzero values of action variables; the end comes after them."""
        return len(self.rewards)

    def best(self, prices: Floats) -> tuple[Floats, Floats]:
        """The maximum at each step, and how much of each price it takes: (n_columns + 1, steps)."""
        own = self.rewards[:, None] + prices[:-1]
        taken = np.zeros_like(prices)
        steps = np.arange(prices.shape[1])
        if self.joint:
            found = self._joint(own, taken)
        else:
            chosen = own.argmax(axis=0)
            found = own[chosen, steps]
            taken[chosen, steps] = 1.0
        if self.terminal:
            over = prices[-1] > found
            found = np.where(over, prices[-1], found)
            taken[:-1, over] = 0.0
            taken[-1, over] = 1.0
        return found, taken

    def _joint(self, own: Floats, taken: Floats) -> Floats:
        """By components of action variables, and by how many of them are nonzero."""
        n_steps = own.shape[1]
        gains, picks = [], []  # (counts, steps) of each component, with the rows that it takes
        for rows in self.components:
            values = rows @ own  # (assignments, steps)
            counts = rows.sum(axis=1).astype(int)
            found = np.full((counts.max() + 1, n_steps), -np.inf)
            pick = np.zeros(found.shape, np.int64)
            for count in range(len(found)):
                alike = np.flatnonzero(counts == count)
                if len(alike):
                    best = values[alike].argmax(axis=0)
                    found[count] = values[alike][best, np.arange(n_steps)]
                    pick[count] = alike[best]
            gains.append(found)
            picks.append(pick)
        steps = np.arange(n_steps)
        if self.most is None:
            alone = np.full(n_steps, self.constant)
            for rows, gain, pick in zip(self.components, gains, picks, strict=True):
                best = gain.argmax(axis=0)
                alone += gain[best, steps]
                taken[:-1] += rows[pick[best, steps]].T
            return alone
        table = np.full((len(gains) + 1, self.most + 1, n_steps), -np.inf)
        table[0, 0] = 0.0
        choice = np.zeros(table.shape, np.int64)
        for at, gain in enumerate(gains):
            for used in range(self.most + 1):
                for count in range(min(used, len(gain) - 1) + 1):
                    value = table[at, used - count] + gain[count]
                    better = value > table[at + 1, used]
                    table[at + 1, used, better] = value[better]
                    choice[at + 1, used, better] = count
        used = table[-1].argmax(axis=0)
        total: Floats = self.constant + table[-1][used, steps]
        for at in reversed(range(len(gains))):
            count = choice[at + 1][used, steps]
            taken[:-1] += self.components[at][picks[at][count, steps]].T
            used = used - count
        return total


def _components(parts: Parts) -> list[Floats]:
    """Allowed values of action variables that forbidden tables connect, as rows of 0 and 1."""
    actions = parts.model.actions
    n = len(actions.variables)
    group = list(range(n))
    for table in actions.forbidden:
        for other in table.scope[1:]:
            old, new = group[other], group[table.scope[0]]
            group = [new if one == old else one for one in group]
    members: dict[int, list[int]] = defaultdict(list)
    for variable, root in enumerate(group):
        members[root].append(variable)
    offsets = np.concatenate([[0], np.cumsum([size - 1 for size in actions.sizes])])
    found = []
    for own in members.values():
        size = int(np.prod([float(actions.sizes[v]) for v in own]))
        if size > LARGEST_COMPONENT:
            split, tables = [[v] for v in own], []
        else:
            split = [own]
            tables = [table for table in actions.forbidden if set(table.scope) <= set(own)]
        for one in split:
            sizes = [actions.sizes[v] for v in one]
            grid = np.indices(sizes).reshape(len(one), -1)
            digit = dict(zip(one, grid, strict=True))
            fine = np.ones(grid.shape[1], dtype=bool)
            for table in tables:
                fine &= table.values[tuple(digit[v] for v in table.scope)] == 0
            rows = np.zeros((grid.shape[1], int(offsets[-1])))
            for variable in one:
                for value in range(1, actions.sizes[variable]):
                    rows[:, offsets[variable] + value - 1] = digit[variable] == value
            found.append(rows[fine])
    return found


class PricedRegions:
    """Regions of a model, and the prices on what they share.

    `theta` (entries, steps) are prices; one step without a horizon.
    """

    def __init__(
        self,
        parts: Parts,
        regions: Sequence[Region],
        check: Callable[[], None] = lambda: None,
        left: Sequence[int] | None = None,
    ) -> None:
        """`left`: terms for the hub, where regions have their shares; None: they are shared out."""
        self.parts, self._check = parts, check
        self.horizon = parts.model.horizon
        self.steps = 1 if self.horizon is None else self.horizon
        if left is None:
            regions, left = share_rewards(parts, regions)
        if not regions:
            raise SizeError("regions: every variable depends on too many others.")
        self.left = left
        self.hub = Hub(parts, left)
        self.layouts: list[Layout] = []
        for region in regions:
            check()
            self.layouts.append(lay_out(parts, region))
        self._connect()
        self._allocate()

    def _connect(self) -> None:
        """Find what several regions see, and give each of them a price on it."""
        entries: dict[Feature, list[Entry]] = defaultdict(list)

        def add(feature: Feature, region: int, columns: tuple[int, ...]) -> None:
            entries[feature].append(Entry(feature, region, columns))

        for number, layout in enumerate(self.layouts):
            self._check()
            for feature, column in _features(layout):
                add(feature, number, (column,))
        if self.hub.joint:
            decided = [
                feature
                for feature in entries
                if len(feature.values) == 1 and feature.values[0][0] >= self.parts.n_variables
            ]
            for feature in decided:
                add(feature, HUB, self.hub.columns(feature))
        for chosen in _action_sets(self.layouts):
            feature = Feature(actions=chosen)
            add(feature, HUB, self.hub.columns(feature))
            for number, layout in enumerate(self.layouts):
                first = layout.tables.first_case
                if cases := _cases_within(layout, chosen):
                    add(feature, number, tuple(first + case for case in cases))
        if self.hub.terminal:
            add(END, HUB, (self.hub.n_columns,))
            for number, layout in enumerate(self.layouts):
                add(END, number, (layout.tables.first_case + layout.n_cases,))
        shared = [own for own in entries.values() if len(own) > 1]
        self.entries = [entry for own in shared for entry in own]
        counts = [len(own) for own in shared]
        self.feature = np.repeat(np.arange(len(shared)), counts)
        self.count = np.array(counts, dtype=float)
        size = len(self.entries)
        self._sum = sparse.csr_matrix(
            (np.ones(size), (self.feature, np.arange(size))), shape=(len(shared), size)
        )
        self._maps = [
            self._map(number, layout.n_coefficients) for number, layout in enumerate(self.layouts)
        ]
        self._hub_map = self._map(HUB, self.hub.n_columns + 1)

    def _map(self, number: int, n_columns: int) -> tuple[Integers, Any]:
        """Entries of a region, and the matrix (columns, entries) of where they stand."""
        own = [at for at, entry in enumerate(self.entries) if entry.region == number]
        rows = [column for at in own for column in self.entries[at].columns]
        columns = [place for place, at in enumerate(own) for _ in self.entries[at].columns]
        matrix = sparse.csr_matrix(
            (np.ones(len(rows)), (rows, columns)), shape=(n_columns, len(own))
        )
        return np.array(own, dtype=np.int64), matrix

    def _allocate(self) -> None:
        largest = max(layout.memory for layout in self.layouts)
        n_all = max(layout.tables.rewards.shape[1] for layout in self.layouts)
        self.scratch = Scratch(*(np.zeros(largest + n_all) for _ in range(6)))
        self.theta = np.zeros((len(self.entries), self.steps))
        steps = self.steps if self.horizon is not None else 0
        self.values = [np.zeros((steps + 1, one.tables.n_inner)) for one in self.layouts]
        self.policies = [
            np.zeros((max(steps, 1), one.tables.n_inner), np.int64) for one in self.layouts
        ]
        self.masses = [np.zeros(one.tables.n_inner) for one in self.layouts]

    def grown(self, most_inner: float, most_all: float, most_work: float) -> PricedRegions | None:
        """The same with larger regions, which keep their shares and prices: no looser a bound.

        A region that has become part of another is merged with it. None if an evaluation would
        take more additions than `most_work`, which is estimated before anything is laid out.
        """
        parts = self.parts
        old = [layout.region for layout in self.layouts]
        interiors = [
            grow(parts, region.interior, most_inner, most_all) if region.interior else frozenset()
            for region in old
        ]
        # Largest first: equal ones, and parts of others, are merged with the first that has them.
        order = sorted(range(len(old)), key=lambda at: (-len(interiors[at]), at))
        home: dict[int, int] = {}
        kept: list[int] = []
        for at in order:
            self._check()
            home[at] = next((to for to in kept if interiors[at] <= interiors[to]), at)
            if home[at] != at:
                scope = parts.scope(interiors[home[at]]) | old[home[at]].extra
                if not old[at].extra <= scope:
                    home[at] = at
            if home[at] == at:
                kept.append(at)
        kept.sort()
        shares: dict[int, list[tuple[int, int]]] = {at: [] for at in kept}
        for at, region in enumerate(old):
            shares[home[at]] += region.shares
        regions = [Region(interiors[at], old[at].extra, tuple(shares[at])) for at in kept]
        if 2.0 * self.steps * sum(estimated_work(parts, one) for one in regions) > most_work:
            return None
        found = PricedRegions(parts, regions, self._check, self.left)
        position = {(entry.feature, entry.region): at for at, entry in enumerate(found.entries)}
        number = {at: place for place, at in enumerate(kept)}
        for entry, row in zip(self.entries, self.theta, strict=True):
            to = HUB if entry.region == HUB else number[home[entry.region]]
            place = position.get((entry.feature, to))
            if place is not None:  # else all that share it are one region now, and prices cancel
                found.theta[place] += row
        return found

    def project(self, theta: Floats) -> Floats:
        """The nearest prices that add up to 0."""
        means: Floats = (self._sum @ theta) / self.count[:, None]
        return theta - means[self.feature]

    def evaluate(
        self, theta: Floats, forwards: bool = True, sweeps: int = 8
    ) -> tuple[float, Floats]:
        """The bound for prices that add up to 0, and a subgradient in their space."""
        gradient = np.zeros_like(theta)
        own, matrix = self._hub_map
        discount = self.parts.model.discount
        weights = discount ** np.arange(self.steps)
        found, taken = self.hub.best(matrix @ theta[own])
        gradient[own] = (matrix.T @ taken) * weights
        total = float(found @ weights)
        if self.horizon is None:
            total /= 1 - discount
        for number, layout in enumerate(self.layouts):
            self._check()
            own, matrix = self._maps[number]
            prices = np.ascontiguousarray((matrix @ theta[own]).T)
            masses = np.empty_like(prices)
            if self.horizon is not None:
                over = np.empty(self.steps + 1)
                total += sweep(
                    layout.tables,
                    prices,
                    self.values[number],
                    over,
                    self.policies[number],
                    masses,
                    self.scratch,
                    forwards,
                )
            else:
                value, rise = sweep_stationary(
                    layout.tables,
                    prices[0],
                    self.values[number][0],
                    self.policies[number][0],
                    self.masses[number],
                    masses[0],
                    self.scratch,
                    sweeps,
                )
                total += value + discount * discount * rise / (1 - discount)
            gradient[own] = matrix.T @ masses.T
        return total, self.project(gradient)

    def rounded(self, theta: Floats) -> tuple[Integers, float]:
        """Prices as whole numbers of a unit, a power of two, that add up to 0 exactly."""
        largest = float(np.abs(theta).max(initial=0.0))
        unit = 2.0 ** (math.frexp(largest)[1] - PRICE_BITS) if largest else 1.0
        whole = np.rint(theta / unit).astype(np.int64)
        first = np.searchsorted(self.feature, np.arange(len(self.count)))
        totals = np.add.reduceat(whole, first, axis=0) if len(first) else whole
        whole[first] -= totals
        return whole, unit

    def certified(self, theta: Floats) -> tuple[float, Integers, float]:
        """A bound that holds in spite of rounding, for the prices rounded to a unit."""
        whole, unit = self.rounded(theta)
        prices = whole.astype(np.float64) * unit
        bound, _ = self.evaluate(prices, forwards=False, sweeps=STATIONARY_SWEEPS)
        return bound + self._rounding(prices), whole, unit

    def _rounding(self, theta: Floats) -> float:
        """More than rounding can lower the bound by.

        A backup of a region adds up prices, shares of rewards and averages; each of the operations
        is off by less than EPSILON times the largest number that occurs in it.
        """
        model, total = self.parts.model, 0.0
        steps = sum_of_discounts(model.horizon, model.discount) + 1
        for number, layout in enumerate(self.layouts):
            own, matrix = self._maps[number]
            prices = abs(matrix) @ np.abs(theta[own])
            tables = layout.tables
            rewards = tables.rewards[np.isfinite(tables.rewards)]
            size = float(prices.sum(axis=0).max(initial=0.0)) + float(
                np.abs(rewards).max(initial=0.0)
            )
            size += float(np.abs(self.values[number]).max()) + abs(tables.least)
            terms = 2 * len(prices) + int(tables.outcomes.sum()) + 8 * len(tables.outcomes)
            relative = layout.rounding + (terms + len(layout.region.shares) + 16) * EPSILON
            total += steps * relative * size
        own, matrix = self._hub_map
        sizes = (abs(matrix) @ np.abs(theta[own])).sum(axis=0).max(initial=0.0)
        sizes += np.abs(self.hub.rewards).sum()
        total += steps * (self.hub.n_columns + 8) * EPSILON * float(sizes)
        return 4.0 * total


def _features(layout: Layout) -> Iterator[tuple[Feature, int]]:
    """Values of inputs, and of pairs of them, that a region sees, with their coefficients."""
    tables, axes, sizes = layout.tables, layout.axes, layout.tables.sizes.tolist()
    for at, one in enumerate(axes):
        for value in range(1, sizes[at]):
            yield Feature(((one, value),)), int(tables.single[at]) + value - 1
        for before, other in enumerate(axes[:at]):
            column = int(tables.pair[at, before])
            for value in range(1, sizes[at]):
                for second in range(1, sizes[before]):
                    low, high = sorted(((one, value), (other, second)))
                    yield Feature((low, high)), column
                    column += 1


def _action_sets(layouts: Sequence[Layout]) -> list[frozenset[int]]:
    """Sets of actions that some region tells from all others."""
    found: dict[frozenset[int], None] = {}
    for layout in layouts:
        members: dict[int, list[int]] = defaultdict(list)
        for action, case in layout.cases.exceptions.items():
            members[case].append(action)
        found.update((frozenset(own), None) for own in members.values())
    return list(found)


def _cases_within(layout: Layout, chosen: frozenset[int]) -> list[int]:
    """Cases that make up a set of actions; none if the region cannot tell."""
    if min(chosen) not in layout.cases.exceptions and layout.case_sizes[0] > len(chosen):
        return []
    touched = {layout.cases.group(action) for action in chosen}
    size = sum(layout.case_sizes[case] for case in touched)
    return sorted(touched) if size == len(chosen) else []
