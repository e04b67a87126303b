"""Sweeps of a region: its optimal values backwards, and what its policy earns of each price.

A region has an interior I, whose values it draws, and a boundary B, which is chosen at every step
as suits it best. With rewards r and prices p, in case c (actions that it cannot tell apart):

    V_t(x_I) = max over x_B, c of  r(x, c) + p_t(x, c) + discount * E[V_{t+1}(x'_I) | x, c]

Expectations are taken unit by unit (a unit is a set of variables that are drawn together). Prices
are on nonzero values of single variables and of pairs, on cases, and on the end of the episode.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fsmdp.compiled import compiled
from fsmdp.model.tables import Floats, Integers

LIVE, EITHER, OVER = 0, 1, 2
"""Of an interior's values: the episode goes on, may be over (the boundary decides), is over."""


class RegionTables(NamedTuple):
    """A region in arrays. Axes are its variables, interior first, the first axis fastest.

    The prices of a step are one row of coefficients: those of singles and pairs, then one for each
    case, and one for the end of the episode.
    """

    sizes: Integers  # (n_axes,) values of each variable
    single: Integers  # (n_axes,) position of the coefficient of [axis = 1]
    pair: Integers  # (n_axes, n_axes) of [axis = 1, other = 1], other < axis
    first_case: int  # position of the coefficient of case 0
    n_inner: int  # assignments of the interior
    rewards: Floats  # (n_cases, n_all); minus infinity where nothing is allowed
    last_row: NDArray[np.int32]  # (n_cases, n_all) row of the last unit
    shared: Integers  # (n_cases,) units whose rows are those of case 0
    row_start: Integers  # (n_cases, n_units) in `row`
    n_rows: Integers  # (n_cases, n_units)
    row: NDArray[np.int32]  # row of the unit before
    chance_start: Integers  # (n_cases, n_units) in `chance`
    chance: Floats  # (rows, outcomes) of each unit
    outcomes: Integers  # (n_units,)
    rest: Integers  # (n_units,) assignments of the units that follow
    kept: Integers  # (n_units + 1,) where expectations of case 0 begin in the scratch
    ends: Integers  # (n_inner,) LIVE, EITHER or OVER
    start: Integers  # (n_starts, joint actions) assignments of all axes at the start
    start_chance: Floats
    discount: float
    least: float  # value of what cannot happen


class Scratch(NamedTuple):
    """Memory that regions use one after another."""

    kept: Floats
    one: Floats
    two: Floats
    price: Floats
    other: Floats
    grown: Floats


@compiled(inner=True)
def _prices(tables: RegionTables, row: Floats, found: Floats, grown: Floats) -> None:
    """Sum of the prices of singles and pairs, for every assignment of all axes."""
    sizes = tables.sizes
    found[0] = 0.0
    below = 1
    for axis in range(len(sizes)):
        for value in range(1, sizes[axis]):
            grown[0] = row[tables.single[axis] + value - 1]
            size = 1
            for other in range(axis):
                more = sizes[other] - 1
                at = tables.pair[axis, other] + (value - 1) * more
                for step in range(more):
                    price = row[at + step]
                    to = (step + 1) * size
                    for x in range(size):
                        grown[to + x] = grown[x] + price
                size *= sizes[other]
            to = value * below
            for x in range(below):
                found[to + x] = found[x] + grown[x]
        below *= sizes[axis]


@compiled(inner=True)
def _gather(tables: RegionTables, mass: Floats, grown: Floats, row: Floats) -> None:
    """Add to a row how much mass each single and pair has; the mass is used up."""
    sizes = tables.sizes
    below = len(mass)
    for axis in range(len(sizes) - 1, -1, -1):
        below //= sizes[axis]
        for value in range(1, sizes[axis]):
            first = value * below
            total = 0.0
            for x in range(below):
                grown[x] = mass[first + x]
                total += grown[x]
                mass[x] += grown[x]
            if total == 0.0:
                continue
            size = below
            for other in range(axis - 1, -1, -1):
                more = sizes[other] - 1
                size //= sizes[other]
                at = tables.pair[axis, other] + (value - 1) * more
                for step in range(more):
                    found = 0.0
                    first = (step + 1) * size
                    for x in range(size):
                        found += grown[first + x]
                        grown[x] += grown[first + x]
                    row[at + step] += found
            row[tables.single[axis] + value - 1] += total


@compiled(inner=True)
def _average(tables: RegionTables, case: int, unit: int, values: Floats, found: Floats) -> None:
    """Average over one unit: values (rows before, outcomes, rest) to (rows, rest)."""
    rest, outcomes = tables.rest[unit], tables.outcomes[unit]
    first, chances = tables.row_start[case, unit], tables.chance_start[case, unit]
    for row in range(tables.n_rows[case, unit]):
        before = tables.row[first + row] * outcomes
        to = row * rest
        at = chances + row * outcomes
        if rest == 1:
            total = 0.0
            for outcome in range(outcomes):
                total += tables.chance[at + outcome] * values[before + outcome]
            found[to] = total
            continue
        for x in range(rest):
            found[to + x] = 0.0
        for outcome in range(outcomes):
            chance = tables.chance[at + outcome]
            if chance == 0.0:
                continue
            origin = (before + outcome) * rest
            for x in range(rest):
                found[to + x] += chance * values[origin + x]


@compiled(inner=True)
def _spread(tables: RegionTables, case: int, unit: int, mass: Floats, found: Floats) -> None:
    """The transpose of `_average`: adds mass (rows, rest) to (rows before, outcomes, rest)."""
    rest, outcomes = tables.rest[unit], tables.outcomes[unit]
    first, chances = tables.row_start[case, unit], tables.chance_start[case, unit]
    for row in range(tables.n_rows[case, unit]):
        before = tables.row[first + row] * outcomes
        origin = row * rest
        at = chances + row * outcomes
        if rest == 1:
            one = mass[origin]
            if one != 0.0:
                for outcome in range(outcomes):
                    found[before + outcome] += tables.chance[at + outcome] * one
            continue
        for outcome in range(outcomes):
            chance = tables.chance[at + outcome]
            if chance == 0.0:
                continue
            to = (before + outcome) * rest
            for x in range(rest):
                found[to + x] += chance * mass[origin + x]


@compiled(inner=True)
def _expected(tables: RegionTables, case: int, scratch: Scratch) -> Floats:
    """Expected next values by the rows of the last unit; those of case 0 must be there."""
    n_units = len(tables.outcomes)
    done = tables.shared[case]
    if case == 0 or done == n_units:
        return scratch.kept[tables.kept[n_units] :]
    _average(tables, case, done, scratch.kept[tables.kept[done] :], scratch.one)
    here, there = scratch.one, scratch.two
    for unit in range(done + 1, n_units):
        _average(tables, case, unit, here, there)
        here, there = there, here
    return here


@compiled(inner=True)
def backup(
    tables: RegionTables,
    row: Floats,
    after: Floats,
    over_after: float,
    values: Floats,
    policy: Integers,
    best: Floats,
    choice: Integers,
    scratch: Scratch,
) -> None:
    """One step: values and policy (case * n_all + assignment) from the values after it.

    `best` and `choice` are the same for assignments of all axes at the start.
    """
    n_inner, n_units = tables.n_inner, len(tables.outcomes)
    n_cases, n_all = tables.rewards.shape
    for x in range(n_inner):
        value = after[x]
        end = tables.ends[x]
        if end == OVER or (end == EITHER and over_after > value):
            value = over_after
        scratch.kept[x] = value
    for unit in range(n_units):
        _average(
            tables,
            0,
            unit,
            scratch.kept[tables.kept[unit] :],
            scratch.kept[tables.kept[unit + 1] :],
        )
    _prices(tables, row, scratch.price, scratch.grown)
    for x in range(n_inner):
        values[x] = -np.inf
        policy[x] = -1
    for place in range(len(tables.start)):
        best[place] = -np.inf
        choice[place] = -1
    discount, price = tables.discount, scratch.price
    for case in range(n_cases):
        expected = _expected(tables, case, scratch)
        constant = row[tables.first_case + case]
        rewards, rows = tables.rewards[case], tables.last_row[case]
        for first in range(0, n_all, n_inner):
            for x in range(n_inner):
                at = first + x
                value = rewards[at] + price[at] + constant + discount * expected[rows[at]]
                if value > values[x]:
                    values[x] = value
                    policy[x] = case * n_all + at
        for place in range(len(tables.start)):
            for at in tables.start[place]:
                value = rewards[at] + price[at] + constant + discount * expected[rows[at]]
                if value > best[place]:
                    best[place] = value
                    choice[place] = case * n_all + at
    for x in range(n_inner):
        if policy[x] < 0:
            values[x] = tables.least
    for place in range(len(tables.start)):
        if choice[place] < 0:
            best[place] = tables.least


@compiled(inner=True)
def _push(
    tables: RegionTables,
    choices: Integers,
    mass: Floats,
    row: Floats,
    after: Floats,
    scratch: Scratch,
) -> None:
    """One step forwards: where the mass of choices goes, and how much of it has each price."""
    n_cases, n_all = tables.rewards.shape
    n_inner, n_units = tables.n_inner, len(tables.outcomes)
    total = tables.kept[n_units] + (tables.n_rows[0, n_units - 1] if n_units else 1)
    scratch.kept[:total] = 0.0
    scratch.other[:n_all] = 0.0
    for case in range(n_cases):
        done = tables.shared[case]
        alone = case > 0 and done < n_units
        here, there = scratch.one, scratch.two
        if alone:
            here[: tables.n_rows[case, n_units - 1]] = 0.0
        else:
            here = scratch.kept[tables.kept[n_units] :]
        low, high = case * n_all, (case + 1) * n_all
        own = 0.0
        for place in range(len(choices)):
            one, choice = mass[place], choices[place]
            if one == 0.0 or choice < low or choice >= high:
                continue
            at = choice - low
            own += one
            here[tables.last_row[case, at]] += one
            scratch.other[at] += one
        row[tables.first_case + case] += own
        if own == 0.0 or not alone:
            continue
        for unit in range(n_units - 1, done, -1):
            size = tables.n_rows[case, unit - 1] * tables.outcomes[unit] * tables.rest[unit]
            there[:size] = 0.0
            _spread(tables, case, unit, here, there)
            here, there = there, here
        _spread(tables, case, done, here, scratch.kept[tables.kept[done] :])
    for unit in range(n_units - 1, -1, -1):
        _spread(
            tables,
            0,
            unit,
            scratch.kept[tables.kept[unit + 1] :],
            scratch.kept[tables.kept[unit] :],
        )
    for x in range(n_inner):
        after[x] = scratch.kept[x]
    _gather(tables, scratch.other[:n_all], scratch.grown, row)


@compiled(inner=True)
def _end(tables: RegionTables, mass: Floats, values: Floats, over: float) -> float:
    """Take out the mass whose episode is over, and return it."""
    ended = 0.0
    for x in range(tables.n_inner):
        end = tables.ends[x]
        if end == OVER or (end == EITHER and over > values[x]):
            ended += mass[x]
            mass[x] = 0.0
    return ended


@compiled(inner=True)
def _mean_at_start(tables: RegionTables, best: Floats, choice: Integers, over: float) -> float:
    """The mean over starts; where the episode is over already, nothing is chosen."""
    found = 0.0
    for place in range(len(tables.start)):
        end = tables.ends[tables.start[place, 0] % tables.n_inner]
        if end == OVER or (end == EITHER and over > best[place]):
            best[place] = over
            choice[place] = -1
        found += tables.start_chance[place] * best[place]
    return found


@compiled()
def sweep(
    tables: RegionTables,
    prices: Floats,
    values: Floats,
    over: Floats,
    policy: Integers,
    masses: Floats,
    scratch: Scratch,
    forwards: bool,
) -> float:
    """Values of all steps, (horizon + 1, n_inner), and the mean value at the start.

    `masses`, as `prices`, gets how much of each price the policy earns: a subgradient.
    """
    horizon, n_starts = len(prices), len(tables.start)
    n_cases = len(tables.shared)
    best, choice = np.empty(n_starts), np.empty(n_starts, np.int64)
    values[horizon] = 0.0
    over[horizon] = 0.0
    for step in range(horizon - 1, -1, -1):
        row = prices[step]
        after = over[step + 1]
        over[step] = row[tables.first_case + n_cases] + tables.discount * after
        backup(
            tables, row, values[step + 1], after, values[step], policy[step], best, choice, scratch
        )
    found = _mean_at_start(tables, best, choice, over[0])
    if not forwards:
        return found
    masses[:] = 0.0
    ended = 0.0
    for place in range(n_starts):
        end = tables.ends[tables.start[place, 0] % tables.n_inner]
        if choice[place] < 0 and end != LIVE:
            ended += tables.start_chance[place]
    here, there = np.zeros(tables.n_inner), np.zeros(tables.n_inner)
    weight = 1.0
    for step in range(horizon):
        masses[step, tables.first_case + n_cases] += ended
        if step == 0:
            _push(tables, choice, tables.start_chance, masses[0], there, scratch)
        else:
            _push(tables, policy[step], here, masses[step], there, scratch)
        here, there = there, here
        if step + 1 < horizon:
            ended += _end(tables, here, values[step + 1], over[step + 1])
        masses[step] *= weight
        weight *= tables.discount
    return found


@compiled()
def sweep_stationary(
    tables: RegionTables,
    row: Floats,
    values: Floats,
    policy: Integers,
    mass: Floats,
    masses: Floats,
    scratch: Scratch,
    sweeps: int,
) -> tuple[float, float]:
    """The same without a horizon: some sweeps from the values and the mass of before.

    Returns the mean value at the start, and how much values still rose in the last sweep.
    """
    n_starts, n_cases = len(tables.start), len(tables.shared)
    best, choice = np.empty(n_starts), np.empty(n_starts, np.int64)
    discount = tables.discount
    over = row[tables.first_case + n_cases] / (1.0 - discount)
    before = np.empty(tables.n_inner)
    rise = 0.0
    for _ in range(sweeps):
        before[:] = values
        backup(tables, row, before, over, values, policy, best, choice, scratch)
        rise = 0.0
        for x in range(tables.n_inner):
            rise = max(rise, values[x] - before[x])
    before[:] = values
    here = np.empty(tables.n_inner)
    backup(tables, row, before, over, here, policy, best, choice, scratch)
    found = _mean_at_start(tables, best, choice, over)
    there = np.zeros(tables.n_inner)
    first = np.zeros(len(row))
    _push(tables, choice, tables.start_chance, first, there, scratch)
    entering = there * (discount * (1.0 - discount))
    ended = 0.0
    for _ in range(sweeps):
        masses[:] = 0.0
        _end(tables, mass, values, over)
        _push(tables, policy, mass, masses, there, scratch)
        mass[:] = discount * there + entering
    total = 0.0
    for x in range(tables.n_inner):
        total += mass[x]
    masses += (1.0 - discount) * first
    ended = max(0.0, 1.0 - total - (1.0 - discount))
    masses[tables.first_case + n_cases] = ended
    return found, rise
