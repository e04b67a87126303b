"""Proves bounds at the start from regions with prices, in whole numbers that are rounded up.

**The claim.** A plan names regions: sets of variables (interiors) with others that they depend on
(boundaries). Each reward term is shared out among regions, or left to a hub, in parts that add up
to 1. At each step regions, and the hub, have prices on values of one or two variables, on sets of
actions, and on the end of the episode; over all of them the prices of one such thing add up to 0.
With r_k the region's parts of rewards, and p_k its prices,

    V_k,l(x_I) = max over x_B, a of  r_k + p_k,l + discount * E[V_k,l+1(x'_I) | x_I, x_B, a]

where x_B is chosen anew at every step. Where the interior does not know whether the episode is
over, it is over if that is worth more; then the region has its price on the end at all later steps.
The hub has the largest sum of its prices and rewards over actions, or its price on the end.

**The proof.** W_l(s) = sum over regions of V_k,l(s_I), and of what the hub has from l on, satisfies
W_l >= R + discount * E W_{l+1} at every state that is not terminal and for every allowed action:
the rewards add up to R, the prices to 0, and each region may choose what is really there. In a
terminal state W_l >= 0: the prices on the end add up to 0. So W_1 lies above the value of every
policy, and no policy earns more from the start than its mean, in which a region knows its boundary.

**The numbers.** All are whole numbers of a unit, rounded up. Values are moved so that none is
negative before they are averaged; then probabilities may be rounded up, too. What a region does not
see (a variable outside of its scope) is chosen as suits it best, so that nothing that a plan leaves
out can make a bound too small.

Numpy and the checker's reader of files are all that is used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fsmdp.verification.checker import (
    NEVER,
    Axes,
    Draws,
    Kernel,
    Limit,
    Model,
    Regions,
    Sum,
    Table,
    TooWideError,
    ancestry,
    average,
    count,
    expect,
)

LARGEST_REGION = 2**22  # assignments of a region's variables
MOST_WORK = 2 * 10**10  # numbers that are computed at all steps
MOST_MEMBERS, PRICE_BITS = 2**17, 45  # prices of a step, and their bits
MOST_STARTS = 2**16  # assignments at which a region may begin
MOST_SWEEPS = 2000  # without a horizon
LARGEST_COMPONENT = 2**14  # joint values of action variables that rules connect
CHANCE_BITS, VALUE_BITS, SUM_BITS = 30, 31, 50  # of numbers below 2^63 together
BARRED = -(2**60)  # in place of minus infinity

Integers = NDArray[np.int64]
Callback = Callable[[str], None]


@dataclass(frozen=True, slots=True, eq=False)
class Priced:
    """Regions of a plan, with their prices in arrays."""

    given: Regions
    features: Integers  # (n, 5): an axis and its value, twice, and a set; -1 where there is none
    members: Integers  # (n, 2): a feature and a region, -1 for the hub
    prices: Integers  # (n_members, steps)

    def entries(self, region: int) -> list[int]:
        """Members of a region."""
        found: list[int] = np.flatnonzero(self.members[:, 1] == region).tolist()
        return found

    def feature(self, entry: int) -> list[int]:
        """What a member has a price on."""
        found: list[int] = self.features[self.members[entry, 0]].tolist()
        return found


def unpack(model: Model, given: Regions) -> Priced:
    """The arrays of a plan, whose numbers must be in range."""
    steps = 1 if model.horizon is None else model.horizon
    features, members, prices = (
        np.frombuffer(content, dtype=kind).reshape(-1, width).astype(np.int64)
        for content, kind, width in (
            (given.features, "<i4", 5),
            (given.members, "<i4", 2),
            (given.prices, "<i8", steps),
        )
    )
    good = len(members) == len(prices) < MOST_MEMBERS
    good = good and bool((prices < 2**PRICE_BITS).all() and (prices > -(2**PRICE_BITS)).all())
    good = good and bool(((members[:, 0] >= 0) & (members[:, 0] < len(features))).all())
    good = good and bool(((members[:, 1] >= -1) & (members[:, 1] < len(given.interiors))).all())
    good = good and bool((features >= -1).all() and (features[:, 4] < len(given.sets)).all())
    expect(good, "plan: regions: a number is out of range")
    return Priced(given, features, members, prices)


def region_bound(model: Model, given: Regions, callback: Callback) -> Fraction:
    """The mean of W_1 at the start."""
    claim = unpack(model, given)
    check_shares(model, given)
    check_prices(claim)
    scale = scale_of(model, claim)
    total = hub_value(model, claim)
    work = 0
    for number in range(len(given.interiors)):
        callback(f"region {number + 1} of {len(given.interiors)}")
        region = Region(model, claim, number, scale)
        work += region.work
        if work > MOST_WORK:
            raise TooWideError(f"too much work: {work:.3g} numbers, the limit is {MOST_WORK:.3g}")
        total += region.value()
    return total


def check_shares(model: Model, claim: Regions) -> None:
    """Refuse parts of a reward term that do not add up to 1."""
    parts = [Fraction(0)] * len(model.rewards[0])
    for shares in claim.shares:
        for term, number in shares:
            parts[term] += Fraction(1, number)
    for term in claim.hub:
        parts[term] += 1
    expect(
        all(part == 1 for part in parts), "plan: regions: parts of a reward term do not add up to 1"
    )


def check_prices(claim: Priced) -> None:
    """Refuse prices on one thing that do not add up to 0 over all that have one."""
    totals = np.zeros((len(claim.features), claim.prices.shape[1]), dtype=np.int64)
    np.add.at(totals, claim.members[:, 0], claim.prices)  # no overflow: few and small enough
    expect(not totals.any(), "plan: regions: prices do not add up to 0")
    for rows, what in ((claim.members, "a region has two prices on"), (claim.features, "named")):
        distinct = {tuple(row) for row in rows.tolist()}
        expect(len(distinct) == len(rows), f"plan: regions: {what} one thing twice")


def scale_of(model: Model, claim: Priced) -> Fraction:
    """The unit of values, a power of two: no sum of a region has more than SUM_BITS bits."""
    steps, rewards = largest_sums(model)
    prices = Fraction(int(np.abs(claim.prices).sum(axis=0).max(initial=0))) * claim.given.unit
    largest = (steps + 1) * (rewards + prices) + 1
    bits = ceil(largest).bit_length() - SUM_BITS
    return Fraction(2**bits) if bits >= 0 else Fraction(1, 2**-bits)


def largest_sums(model: Model) -> tuple[Fraction, Fraction]:
    """The number of steps, discounted, and more than the rewards of a step in size."""
    steps = Fraction(model.horizon) if model.horizon else 1 / (1 - model.discount)
    terms = range(len(model.rewards[0]))
    most = (max(max(map(abs, own[term].numbers)) for own in model.rewards) for term in terms)
    return steps, sum(most, Fraction(0))


def ceil(number: Fraction) -> int:
    """The next whole number."""
    return -((-number.numerator) // number.denominator)


# The hub ---------------------------------------------------------------------------------------


def hub_value(model: Model, claim: Priced) -> Fraction:
    """The largest prices and rewards of actions, at each step, all steps together."""
    best = hub_of_joint(model, claim) if claim.given.is_joint else hub_of_list(model, claim)
    if model.ends:
        best = [max(one, over) for one, over in zip(best, end_prices(claim, -1), strict=True)]
    if model.horizon is None:
        return best[0] / (1 - model.discount)
    return sum((model.discount**step * one for step, one in enumerate(best)), Fraction(0))


def end_prices(claim: Priced, region: int) -> list[Fraction]:
    """A region's prices on the end of the episode, by step."""
    found = np.zeros(claim.prices.shape[1], dtype=np.int64)
    for at in claim.entries(region):
        if max(claim.feature(at)) < 0:
            found = found + claim.prices[at]
    return [int(number) * claim.given.unit for number in found]


def hub_of_list(model: Model, claim: Priced) -> list[Fraction]:
    """Over listed actions."""
    rewards = [
        sum((max(own[term].numbers) for term in claim.given.hub), Fraction(0))
        for own in model.rewards
    ]
    prices = np.zeros((len(rewards), claim.prices.shape[1]), dtype=np.int64)
    for at in claim.entries(-1):
        row = claim.feature(at)
        if row[4] >= 0:
            prices[list(claim.given.sets[row[4]])] += claim.prices[at]
        else:
            expect(max(row) < 0, "plan: regions: the hub knows actions alone")
    return [
        max(
            reward + int(price) * claim.given.unit
            for reward, price in zip(rewards, prices[:, step], strict=True)
        )
        for step in range(prices.shape[1])
    ]


def hub_of_joint(model: Model, claim: Priced) -> list[Fraction]:
    """Over joint actions: by groups of variables that rules connect, and by how many are used."""
    axes = [axis for axis in model.sizes if axis >= model.n_variables]
    steps = claim.prices.shape[1]
    worth = {
        (axis, value): [Fraction(0)] * steps for axis in axes for value in range(model.sizes[axis])
    }
    constant = Fraction(0)
    for term in claim.given.hub:
        table = model.rewards[0][term]
        if len(table.axes) == 1 and table.axes[0] in axes:
            for value, number in enumerate(table.numbers):
                own = worth[table.axes[0], value]
                worth[table.axes[0], value] = [one + number for one in own]
        else:
            constant += max(table.numbers)
    for at in claim.entries(-1):
        row = claim.feature(at)
        if row == [-1] * 5:
            continue
        good = row[0] in axes and row[2:] == [-1, -1, -1]
        expect(good, "plan: regions: the hub knows values of action variables alone")
        price = [int(number) * claim.given.unit for number in claim.prices[at]]
        own = worth[row[0], row[1]]
        worth[row[0], row[1]] = [one + two for one, two in zip(own, price, strict=True)]
    tables = [rule for rule in model.rules if isinstance(rule, Table)]
    sums = [rule for rule in model.rules if isinstance(rule, Sum)]
    most = sums[0].most if len(sums) == 1 else None
    counted = {*sums[0].axes} if most is not None else {*()}
    found = []
    groups = connected(axes, tables, model)
    for step in range(steps):
        # By how many variables are nonzero, the most that all groups so far are worth.
        best: dict[int, Fraction] = {0: constant}
        for group, allowed in groups:
            own_best: dict[int, Fraction] = {}
            for values in allowed:
                used = sum(
                    value > 0 and axis in counted for axis, value in zip(group, values, strict=True)
                )
                gain = sum(
                    (worth[pair][step] for pair in zip(group, values, strict=True)), Fraction(0)
                )
                if used not in own_best or gain > own_best[used]:
                    own_best[used] = gain
            together: dict[int, Fraction] = {}
            for (one, first), (two, second) in product(best.items(), own_best.items()):
                if most is None or one + two <= most:
                    together[one + two] = max(
                        together.get(one + two, first + second), first + second
                    )
            best = together
        found.append(max(best.values()))
    return found


def connected(
    axes: Sequence[int], tables: Sequence[Table], model: Model
) -> list[tuple[Axes, list[Axes]]]:
    """Action variables that rules connect, and the values that these allow; too many: no rule."""
    root = {axis: axis for axis in axes}
    for table in tables:
        for axis in table.axes[1:]:
            old, new = root[axis], root[table.axes[0]]
            root = {key: new if one == old else one for key, one in root.items()}
    found: list[tuple[Axes, list[Axes]]] = []
    for name in dict.fromkeys(root.values()):
        group = tuple(axis for axis in axes if root[axis] == name)
        if count(group, model.sizes) > LARGEST_COMPONENT:
            found += [((axis,), [(value,) for value in range(model.sizes[axis])]) for axis in group]
            continue
        own = [table for table in tables if {*table.axes} <= {*group}]
        allowed = [
            values
            for values in product(*(range(model.sizes[axis]) for axis in group))
            if not any(barred(table, dict(zip(group, values, strict=True)), model) for table in own)
        ]
        found.append((group, allowed))
    return found


def barred(table: Table, at: Mapping[int, int], model: Model) -> bool:
    """Whether a table forbids an assignment."""
    place = 0
    for axis in table.axes:
        place = place * model.sizes[axis] + at[axis]
    return bool(table.numbers[place] == NEVER)


# Regions ---------------------------------------------------------------------------------------


class Region:
    """One region: its laws, rewards and limits by class of actions, over arrays of its axes."""

    def __init__(self, model: Model, claim: Priced, number: int, scale: Fraction) -> None:
        self.model, self.claim, self.number, self.scale = model, claim, number, scale
        self.interior = tuple(claim.given.interiors[number])
        self.scope = (*self.interior, *claim.given.boundaries[number])
        sizes = model.sizes
        good = all(axis < model.n_variables for axis in self.interior)
        good = good and len({*self.scope}) == len(self.scope)
        good = good and all(axis >= 0 and axis in sizes for axis in self.scope)
        expect(good, "plan: regions: expected variables of the model, each once")
        self.shape = [sizes[axis] for axis in self.scope]
        self.inner_shape = [sizes[axis] for axis in self.interior]
        if math.prod(self.shape) > LARGEST_REGION:
            raise TooWideError(f"too wide: a region of {math.prod(self.shape)} assignments")
        self.units = drawn_together(self.interior, model)
        self.entries = claim.entries(number)
        self.classes = self._classes()
        self._laws: dict[tuple[Axes, frozenset[Kernel]], tuple[Axes, Integers]] = {}
        self.laws = [
            [self._law(unit, model.draws[members[0]]) for unit in self.units]
            for members in self.classes
        ]
        self.rewards = [self._rewards(members[0]) for members in self.classes]
        self.steps = claim.prices.shape[1]
        horizon, largest = largest_sums(model)
        self.least = -ceil(largest * horizon / scale)
        self.flags = self._ends()

    @property
    def work(self) -> int:
        """Numbers that are computed, roughly."""
        steps = self.steps if self.model.horizon else 100
        return 4 * steps * len(self.classes) * math.prod(self.shape)

    def _classes(self) -> list[list[int]]:
        """Actions that the region cannot tell apart, by laws, rewards, limits and prices."""
        model, found = self.model, dict[Any, list[int]]()
        sets = [row[4] for row in map(self.claim.feature, self.entries) if row[4] >= 0]
        for action, draws in enumerate(model.draws):
            key = (
                tuple(ancestry([~axis for axis in unit], draws) for unit in self.units),
                tuple(
                    id(model.rewards[action][term])
                    for term, _ in self.claim.given.shares[self.number]
                ),
                tuple(
                    id(table)
                    for table in model.allowed[action]
                    if not table.axes or {*table.axes} & {*self.scope}
                ),
                tuple(action in self.claim.given.sets[one] for one in sets),
            )
            found.setdefault(key, []).append(action)
        return list(found.values())

    def _law(self, unit: Axes, draws: Draws) -> tuple[Axes, Integers]:
        """Chances of a unit's next values, rounded up: over current axes, then outcomes."""
        kernels = ancestry([~axis for axis in unit], draws)
        key = unit, kernels
        if key not in self._laws:
            sizes = self.model.sizes
            outcomes = list(product(*(range(sizes[axis]) for axis in unit)))
            tables = [
                average(
                    Table(unit, [Fraction(values == outcome) for values in outcomes]),
                    draws,
                    sizes,
                    Fraction,
                )
                for outcome in outcomes
            ]
            axes = tables[0].axes
            kept = tuple(axis for axis in axes if axis in self.scope)
            numbers = [
                [ceil(number * 2**CHANCE_BITS) for number in table.numbers] for table in tables
            ]
            array = np.array(numbers, dtype=np.int64).reshape(
                [len(outcomes), *(sizes[axis] for axis in axes)]
            )
            hidden = tuple(1 + at for at, axis in enumerate(axes) if axis not in self.scope)
            self._laws[key] = kept, array.max(axis=hidden) if hidden else array
        return self._laws[key]

    def _spread(self, axes: Axes, numbers: Sequence[int]) -> Integers:
        """Whole numbers over axes of the model, as an array over the scope; unseen: the largest."""
        sizes = self.model.sizes
        array = np.array(numbers, dtype=np.int64).reshape([sizes[axis] for axis in axes])
        hidden = tuple(at for at, axis in enumerate(axes) if axis not in self.scope)
        if hidden:
            array = array.max(axis=hidden)
        seen = [axis for axis in axes if axis in self.scope]
        order = sorted(range(len(seen)), key=lambda at: self.scope.index(seen[at]))
        array = array.transpose(order)
        return array.reshape([sizes[axis] if axis in seen else 1 for axis in self.scope])

    def _rewards(self, action: int) -> Integers:
        """Parts of rewards, and BARRED where a limit forbids what the region sees."""
        found = np.zeros(self.shape, dtype=np.int64)
        model = self.model
        for term, number in self.claim.given.shares[self.number]:
            table = model.rewards[action][term]
            parts = [ceil(one / number / self.scale) for one in table.numbers]
            found = found + self._spread(table.axes, parts)
        limits: list[Limit] = [*model.allowed[action], *model.rules]
        for limit in limits:
            if isinstance(limit, Table):
                numbers = [BARRED if one == NEVER else 0 for one in limit.numbers]
                found = np.maximum(found + self._spread(limit.axes, numbers), BARRED)
            else:
                used = np.zeros([1] * len(self.scope), dtype=np.int64)
                for axis, counts in zip(limit.axes, limit.counts, strict=True):
                    least = min(counts)
                    if axis in self.scope:
                        used = used + self._spread((axis,), list(counts))
                    else:
                        used = used + least
                found = np.where(used > limit.most, BARRED, found)
        return found

    def _prices(self, step: int, members: Sequence[int]) -> Integers:
        """Prices of a step under a class of actions, in units of prices."""
        found = np.zeros([1] * len(self.scope), dtype=np.int64)
        for at in self.entries:
            row = self.claim.feature(at)
            price = int(self.claim.prices[at, step])
            if row[4] >= 0:
                expect(row[:4] == [-1] * 4, "plan: regions: actions and values have one price")
                found = found + (price if members[0] in self.claim.given.sets[row[4]] else 0)
                continue
            pairs = [(row[0], row[1]), (row[2], row[3])]
            pairs = [(axis, value) for axis, value in pairs if axis >= 0]
            if not pairs:
                continue  # the end of the episode
            if price == 0:
                continue
            hit = np.ones([1] * len(self.scope), dtype=np.int64)
            for axis, value in pairs:
                good = axis in self.scope and 0 <= value < self.model.sizes[axis]
                expect(good, "plan: regions: a region has a price on what it does not see")
                own = [int(value == other) for other in range(self.model.sizes[axis])]
                hit = hit * self._spread((axis,), own)
            found = found + price * hit
        return found

    def _ends(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Where the episode may be over, and where it is, by the values of the interior."""
        some = np.zeros(self.inner_shape, dtype=bool)
        every = np.zeros(self.inner_shape, dtype=bool)
        sizes = self.model.sizes
        for table in self.model.ends:
            over = np.array([number == 0 for number in table.numbers])
            over = over.reshape([sizes[axis] for axis in table.axes])
            hidden = tuple(at for at, axis in enumerate(table.axes) if axis not in self.interior)
            seen = [axis for axis in table.axes if axis in self.interior]
            order = sorted(range(len(seen)), key=lambda at: self.interior.index(seen[at]))
            shape = [sizes[axis] if axis in seen else 1 for axis in self.interior]
            some |= np.asarray(over.any(axis=hidden)).transpose(order).reshape(shape)
            every |= np.asarray(over.all(axis=hidden)).transpose(order).reshape(shape)
        return some, every

    def backup(self, step: int, after: Integers, over: int) -> list[Integers]:
        """What each class of actions is worth over the scope, from the values after it."""
        some, every = self.flags
        after = np.where(every, over, np.where(some, np.maximum(after, over), after))
        low = int(after.min()) if after.size else 0
        moved = after - low
        coarse = max(0, int(moved.max()).bit_length() - VALUE_BITS)
        moved = (moved + ((1 << coarse) - 1)) >> coarse
        discount = self.model.discount
        base = ceil(discount * low)
        factor = ceil(discount * 2**CHANCE_BITS)
        found = []
        price_unit = self.claim.given.unit / self.scale
        done: dict[tuple[int, ...], Integers] = {}
        for members, laws, rewards in zip(self.classes, self.laws, self.rewards, strict=True):
            key = tuple(id(law[1]) for law in laws)
            if key not in done:
                mean = self._mean(moved, laws)
                done[key] = (
                    ((mean * factor + (2**CHANCE_BITS - 1)) >> CHANCE_BITS) << coarse
                ) + base
            prices = rounded_up(self._prices(step, members), price_unit)
            worth = np.where(rewards == BARRED, BARRED, rewards + prices + done[key])
            found.append(np.broadcast_to(worth, self.shape))
        return found

    def _mean(self, values: Integers, laws: Sequence[tuple[Axes, Integers]]) -> Integers:
        """Average non-negative values over next values, unit by unit, rounded up each time."""
        # Axes: those of the scope that laws so far look at (size 1 elsewhere), then the interior's
        # next values that are left.
        n_scope = len(self.scope)
        array = values.reshape([1] * n_scope + self.inner_shape)
        left = list(self.interior)
        sizes = self.model.sizes
        waiting = list(zip(self.units, laws, strict=True))
        known: set[int] = set()
        while waiting:
            unit, (axes, chances) = min(waiting, key=lambda one: count({*one[1][0]} - known, sizes))
            waiting.remove((unit, (axes, chances)))
            known |= {*axes}
            total: Integers | None = None
            places = [n_scope + left.index(axis) for axis in unit]
            rest = [axis for axis in left if axis not in unit]
            for at, outcome in enumerate(product(*(range(sizes[axis]) for axis in unit))):
                index: list[Any] = [slice(None)] * array.ndim
                for place, value in zip(places, outcome, strict=True):
                    index[place] = value
                chance = self._in_scope(axes, chances[at])
                chance = chance.reshape(list(chance.shape) + [1] * len(rest))
                part = array[tuple(index)] * chance
                total = part if total is None else total + part
            assert total is not None
            array = (total + (2**CHANCE_BITS - 1)) >> CHANCE_BITS
            left = rest
        return array

    def _in_scope(self, axes: Axes, array: Any) -> Integers:
        """An array over some axes of the scope, as one over all of them."""
        order = sorted(range(len(axes)), key=lambda at: self.scope.index(axes[at]))
        shape = [self.model.sizes[axis] if axis in axes else 1 for axis in self.scope]
        found: Integers = array.transpose(order).reshape(shape)
        return found

    def value(self) -> Fraction:
        """The mean value at the start, in which the boundary is known."""
        model = self.model
        ends = [ceil(price / self.scale) for price in end_prices(self.claim, self.number)]
        inner = tuple(range(len(self.interior), len(self.scope)))
        if model.horizon is not None:
            values, over = np.zeros(self.inner_shape, dtype=np.int64), 0
            for step in reversed(range(1, self.steps)):
                worth = self.backup(step, values, over)
                values = self._best(worth, inner)
                over = ends[step] + ceil(model.discount * over)
            return self._at_start(
                self.backup(0, values, over), ends[0] + ceil(model.discount * over)
            )
        return self._stationary(ends[0], inner)

    def _best(self, worth: Sequence[Integers], inner: tuple[int, ...]) -> Integers:
        best = np.maximum.reduce([one.max(axis=inner) for one in worth])
        return np.where(best <= BARRED // 2, self.least, best)

    def _stationary(self, end: int, inner: tuple[int, ...]) -> Fraction:
        """Sweeps from values that are too large: they fall, and never below the true ones."""
        discount = self.model.discount
        over = ceil(Fraction(end) / (1 - discount))
        zero = np.zeros(self.inner_shape, dtype=np.int64)
        largest = max(int(one.max()) for one in self.backup(0, zero, 0))
        high = max(ceil(Fraction(max(largest, 0)) / (1 - discount)), over, 0) + 1
        values = np.full(self.inner_shape, high, dtype=np.int64)
        for _ in range(MOST_SWEEPS):
            before = values
            values = np.minimum(values, self._best(self.backup(0, values, over), inner))
            if int((before - values).max()) <= 2 ** (SUM_BITS - 40):
                break
        return self._at_start(self.backup(0, values, over), over)

    def _at_start(self, worth: Sequence[Integers], over: int) -> Fraction:
        model = self.model
        state = [axis for axis in self.scope if axis < model.n_variables]
        supports, size = [], 1
        for axis in state:
            kernel = model.start[~axis]
            total = kernel.totals.numbers[0]
            chances = [Fraction(one, total) for one in kernel.chances.numbers]
            supports.append([(value, chance) for value, chance in enumerate(chances) if chance])
            size *= len(supports[-1])
        if size > MOST_STARTS:
            raise TooWideError(f"too much work: a region may begin at {size} assignments")
        some, every = self.flags
        total = Fraction(0)
        for choice in product(*supports):
            at = {axis: value for axis, (value, _) in zip(state, choice, strict=True)}
            index = tuple(at.get(axis, slice(None)) for axis in self.scope)
            inner = tuple(at[axis] for axis in self.interior)
            value = max(int(one[index].max()) for one in worth)
            value = self.least if value <= BARRED // 2 else value
            if every[inner]:
                value = over
            elif some[inner]:
                value = max(value, over)
            total += math.prod((chance for _, chance in choice), start=Fraction(1)) * value
        return total * self.scale


def rounded_up(numbers: Integers, unit: Fraction) -> Integers:
    """Numbers times a power of two, rounded up."""
    bits = unit.numerator.bit_length() - 1 if unit >= 1 else 1 - unit.denominator.bit_length()
    if bits >= 0:
        return numbers << bits
    return (numbers + ((1 << -bits) - 1)) >> -bits


def drawn_together(interior: Axes, model: Model) -> list[Axes]:
    """The interior's variables, those together whose draws share a kernel under some action."""
    group = {axis: axis for axis in interior}
    for draws in {id(one): one for one in model.draws}.values():
        users: dict[Kernel, int] = {}
        for axis in interior:
            for kernel in ancestry([~axis], draws):
                other = users.setdefault(kernel, axis)
                old, new = group[axis], group[other]
                if old != new:
                    group = {key: new if one == old else one for key, one in group.items()}
    found: dict[int, list[int]] = {}
    for axis, name in group.items():
        found.setdefault(name, []).append(axis)
    return [tuple(axes) for axes in found.values()]
