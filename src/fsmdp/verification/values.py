"""Proves bounds at the start from values of states, in floating point with rounding bounded.

The checker proves that linear values V_l lie above V*. A plan may claim less for the start. Then
its file names states, or means all of them, and values W_l of these states are computed here:

    W_l(s) = max over a of R(s, a) + discount * sum over s' of P(s' | s, a) W_{l+1}(s')

where W(s') of a state that is not listed is V(s') (if invariants that V needs hold there), or what
the largest rewards add up to. By induction W >= V* at every listed state. With an infinite horizon
the file has values U of the listed states, and if T U <= U + d there then U + d / (1 - discount)
lies above V*.

**Rounding.** The numbers of the model are rationals; here they are the floats next to them. A sum
of m products of at most k factors, each with a relative error of 2^-53, differs from the true one
by less than 2^-52 * (m + 2 k + 2) times the sum of the products' sizes, in whatever order it is
added up. That is added to a separate number, the error, and the error to the bound.

**Merged states.** A plan may name boxes: values that some variables never leave, whatever is done
(a vehicle on one-way roads), with the variables that matter there. If in a box rewards, and next
values of those that matter, depend on variables that matter alone, then V* of a state in the box
does not change if all others are set to 0. That is proved here from the tables, and states are
looked up with these variables set to 0; a box that is not proved is not used.

Numpy and the checker's reader of files are all that is used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fsmdp.verification.checker import (
    NEVER,
    Axes,
    Box,
    Claim,
    Kernel,
    Limit,
    Model,
    Regions,
    Start,
    Sum,
    Table,
    TooWideError,
    count,
)
from fsmdp.verification.regions import region_bound

MOST_ACTIONS = 2**12  # joint actions that are listed
MOST_STARTS = 2**16  # states at which an episode may begin
MOST_ENTRIES = 5 * 10**7  # successors of all listed states and actions, 12 bytes each
MOST_ROWS = 2**27  # numbers of partial successors at once
MOST_OTHERS = 2**28  # numbers of states that are not listed
MOST_TABLES = 2**27  # numbers of tables that are read to prove boxes
MOST_PRODUCTS = 4 * 10**10  # of all sweeps, about five minutes
LARGEST_ARRAY = 2**23  # entries of a table over all states and what is still to be averaged
MOST_SWEEPS = 1000  # without a horizon
CHUNK = 2**14  # states whose successors are found together
EPSILON, SMALLEST = 2.0**-52, 2.0**-1000
MOST_AXES = 60

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Callback = Callable[[str], None]


def refuse(what: str, found: float, limit: float) -> None:
    """Refuse work before it is begun."""
    if found > limit:
        shown = f"{found:.3g}" if found < 10**300 else "over 1e+300"
        raise TooWideError(f"too much work: {what}: {shown}, the limit is {limit:.3g}")


def above(number: Fraction) -> float:
    """A float that is not below a number."""
    return math.nextafter(float(number), math.inf)


def start_values(
    model: Model, claim: Claim, held: Sequence[bool], callback: Callback = lambda _: None
) -> tuple[Fraction | None, Fraction]:
    """Between what and what the best policy earns from the start; None: nothing from below."""
    low, high, _ = start_bounds(model, claim, held, callback)
    return low, high


def start_bounds(
    model: Model, claim: Claim, held: Sequence[bool], callback: Callback = lambda _: None
) -> tuple[Fraction | None, Fraction, Fraction]:
    """As `start_values`, and how much rounding was added.

    Where sums are added up in another order, on another machine, bounds may differ by twice that.
    """
    if isinstance(claim.start, Regions):
        return None, region_bound(model, claim.start, callback), Fraction(0)
    assert isinstance(claim.start, Start)
    try:
        actions = list_actions(model)
        with np.errstate(over="ignore", invalid="ignore"):
            if claim.start.states is None:
                return AllStates(model, actions).bounds(claim, callback)
            return ListedStates(model, actions, claim, held, callback).bounds(callback)
    except OverflowError:
        raise TooWideError("numbers too large for floating point") from None


# Actions ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Law:
    """A kernel under one action, as floats: what it depends on, then what is drawn."""

    inputs: Axes
    drawn: Axes
    chances: Floats  # (sizes of inputs, sizes of drawn)


@dataclass(frozen=True, slots=True, eq=False)
class Action:
    """What draws next values, in order, and what is earned, under one action."""

    laws: tuple[Law, ...]
    rewards: tuple[tuple[Axes, Floats], ...]
    allowed: tuple[tuple[Axes, Floats], ...]  # 0 where it is, minus infinity elsewhere


def list_actions(model: Model) -> list[Action]:
    """Every action; joint ones within their rules, with their variables set."""
    deciding = [axis for axis in model.sizes if axis >= model.n_variables]
    n_joint = math.prod(model.sizes[axis] for axis in deciding)
    refuse("joint actions", n_joint, MOST_ACTIONS)
    laws: dict[tuple[Kernel, Axes], Law] = {}
    rewards: dict[tuple[Table, Axes], tuple[Axes, Floats]] = {}
    arrays: dict[Table | Kernel, Floats] = {}

    def law_of(kernel: Kernel, chosen: Mapping[int, int]) -> Law:
        key = kernel, tuple(chosen[a] for a in kernel.totals.axes if a in chosen)
        if key not in laws:
            if kernel not in arrays:
                width = count(kernel.drawn, model.sizes)
                pairs = zip(
                    kernel.chances.numbers,
                    (total for total in kernel.totals.numbers for _ in range(width)),
                    strict=True,
                )
                found = np.array([chance / total for chance, total in pairs])
                arrays[kernel] = found.reshape([model.sizes[a] for a in kernel.chances.axes])
            place = tuple(chosen.get(a, slice(None)) for a in kernel.totals.axes)
            inputs = tuple(a for a in kernel.totals.axes if a not in chosen)
            laws[key] = Law(inputs, kernel.drawn, np.array(arrays[kernel][place]))
        return laws[key]

    def reward_of(table: Table, chosen: Mapping[int, int]) -> tuple[Axes, Floats]:
        key = table, tuple(chosen[a] for a in table.axes if a in chosen)
        if key not in rewards:
            if table not in arrays:
                found = np.array(
                    [-np.inf if number == NEVER else float(number) for number in table.numbers]
                )
                arrays[table] = found.reshape([model.sizes[a] for a in table.axes])
            place = tuple(chosen.get(a, slice(None)) for a in table.axes)
            axes = tuple(a for a in table.axes if a not in chosen)
            rewards[key] = axes, np.array(arrays[table][place])
        return rewards[key]

    found = []
    for draws, tables, limits in zip(model.draws, model.rewards, model.allowed, strict=True):
        for values in product(*(range(model.sizes[axis]) for axis in deciding)):
            chosen = dict(zip(deciding, values, strict=True))
            if all(allows(rule, chosen, model) for rule in model.rules):
                found.append(
                    Action(
                        tuple(law_of(kernel, chosen) for kernel in dict.fromkeys(draws.values())),
                        tuple(reward_of(table, chosen) for table in tables),
                        tuple(reward_of(table, chosen) for table in limits if table.axes),
                    )
                )
    return found


def allows(rule: Limit, chosen: Mapping[int, int], model: Model) -> bool:
    """Whether a rule allows a joint action."""
    if isinstance(rule, Sum):
        counts = zip(rule.axes, rule.counts, strict=True)
        return rule.least <= sum(row[chosen[axis]] for axis, row in counts) <= rule.most
    place = 0
    for axis in rule.axes:
        place = place * model.sizes[axis] + chosen[axis]
    return bool(rule.numbers[place] != NEVER)


def ended(model: Model, states: Any) -> NDArray[np.bool_]:
    """Where the episode is over, from the values of each variable; shapes may be broadcast."""
    found = np.zeros((), dtype=bool)
    for table in model.ends:
        over = np.array([number == 0 for number in table.numbers])
        over = over.reshape([model.sizes[axis] for axis in table.axes])
        found = found | over[tuple(states[axis] for axis in table.axes)]
    return np.asarray(found)


def refuse_stuck(best: Floats) -> None:
    """Refuse states in which nothing is allowed, and numbers that have overflowed."""
    if np.isneginf(best).any():
        raise TooWideError("no action is allowed in some state whose value is needed")
    if not np.isfinite(best).all():
        raise OverflowError


def sizes_of_rewards(actions: Sequence[Action]) -> float:
    """No sum of rewards is larger."""
    return max(sum(float(np.abs(r).max()) for _, r in action.rewards) for action in actions)


# All states ------------------------------------------------------------------------------------


class AllStates:
    """Values of all states, an axis of an array for each variable."""

    def __init__(self, model: Model, actions: Sequence[Action]) -> None:
        self.model, self.actions = model, actions
        self.states = tuple(range(model.n_variables))
        self.shape = tuple(model.sizes[axis] for axis in self.states)
        self.size = math.prod(self.shape)
        refuse("axes of an array", len(self.shape), MOST_AXES)
        refuse("states", self.size, LARGEST_ARRAY)
        self.every = list(range(len(actions)))
        work = sum(self._work(self.every, {*self._next()}, {*()}))
        steps = model.horizon or 1
        refuse("products of all sweeps", work * steps, MOST_PRODUCTS)
        self.most = MOST_SWEEPS if model.horizon is None else steps
        self.most = min(self.most, max(1, int(MOST_PRODUCTS // max(1, work))))
        terms = [
            sum(count(law.drawn, model.sizes) + 3 for law in action.laws) + len(action.rewards)
            for action in actions
        ]
        self.terms, self.largest = max(terms) + 6, sizes_of_rewards(actions)
        self.over = ended(model, np.ogrid[tuple(slice(size) for size in self.shape)])

    def _next(self) -> Iterator[int]:
        return (~axis for axis in self.states)

    def _choose(self, group: Sequence[int], axes: set[int], done: set[Law]) -> Law | None:
        """A law of all actions of a group on which nothing depends, and that needs least room."""
        left = [[law for law in self.actions[a].laws if law not in done] for a in group]
        read = {axis for laws in left for law in laws for axis in law.inputs}
        others = [{*laws} for laws in left[1:]]
        ready = [
            law
            for law in left[0]
            if not read & {*law.drawn} and all(law in laws for laws in others)
        ]
        if not ready:
            return None
        sizes = self.model.sizes
        return min(ready, key=lambda law: count(axes | {*law.inputs}, sizes))

    def _work(self, group: Sequence[int], axes: set[int], done: set[Law]) -> Iterator[int]:
        """Products of each contraction of a sweep; refused where one needs too much room."""
        while (law := self._choose(group, axes, done)) is not None:
            done = done | {law}
            if not axes & {*law.drawn}:
                continue
            axes = axes | {*law.inputs, *law.drawn}
            yield count(axes, self.model.sizes)
            axes -= {*law.drawn}
            refuse("entries of an array", count(axes, self.model.sizes), LARGEST_ARRAY)
        if len(group) > 1:
            for half in (group[: len(group) // 2], group[len(group) // 2 :]):
                yield from self._work(half, axes, done)

    def _means(
        self, group: Sequence[int], axes: Axes, array: Floats, done: set[Law]
    ) -> Iterator[tuple[int, Floats]]:
        """E[W(s')] under each action, as arrays over all states or a part of their axes.

        What all actions of a group share is averaged once; then the group is halved.
        """
        while (law := self._choose(group, {*axes}, done)) is not None:
            done = done | {law}
            if {*axes} & {*law.drawn}:  # others are latents that nothing depends on
                axes, array = averaged(law, axes, array)
        if len(group) > 1:
            for half in (group[: len(group) // 2], group[len(group) // 2 :]):
                yield from self._means(half, axes, array, done)
        else:
            yield group[0], spread(axes, array, self.states)

    def sweep(self, values: Floats) -> tuple[Floats, float]:
        """T W, and how far it may be from the truth."""
        discount = float(self.model.discount)
        best = np.full(self.shape, -np.inf)
        for action, mean in self._means(self.every, tuple(self._next()), values, set()):
            total = np.zeros((1,) * len(self.shape))
            own = self.actions[action]
            for axes, reward in (*own.rewards, *own.allowed):
                total = total + spread(axes, reward, self.states)
            np.maximum(best, total + discount * mean, out=best)
        best[np.broadcast_to(self.over, self.shape)] = 0.0
        refuse_stuck(best)
        size = float(np.abs(values).max()) + self.largest
        return best, EPSILON * self.terms * size + SMALLEST

    def mean(self, values: Floats) -> tuple[Fraction, Fraction]:
        """Of values under the distribution of the start, and its rounding."""
        axes, array, terms = tuple(self._next()), values, 6
        for kernel in self.model.start.values():
            total = kernel.totals.numbers[0]
            chances = np.array([chance / total for chance in kernel.chances.numbers])
            axes, array = averaged(Law((), kernel.drawn, chances), axes, array)
            terms += len(chances) + 3
        error = EPSILON * terms * float(np.abs(values).max()) + SMALLEST
        return Fraction(float(array)), Fraction(error)

    def bounds(self, claim: Claim, callback: Callback) -> tuple[Fraction, Fraction, Fraction]:
        """Between what and what the best policy earns."""
        assert isinstance(claim.start, Start)
        discount, target = self.model.discount, claim.at_start
        values = np.zeros(self.shape)
        if self.model.horizon is not None:
            error = 0.0
            for step in range(self.model.horizon, 0, -1):
                callback(f"values of {self.size} states, step {step}")
                values, rounding = self.sweep(values)
                error = math.nextafter(rounding + float(discount) * error, math.inf)
                error = math.nextafter(error, math.inf)
            mean, own = self.mean(values)
            own += Fraction(error)
            return mean - own, mean + own, own
        assert claim.start.values is not None
        values = np.frombuffer(claim.start.values, "<f8").astype(float).reshape(self.shape)
        for sweep in range(self.most):
            callback(f"values of {self.size} states, sweep {sweep + 1}")
            swept, rounding = self.sweep(values)
            change = swept - values
            slack = Fraction(
                rounding + 2 * EPSILON * float(np.abs(values).max() + np.abs(swept).max())
            )
            most, least = Fraction(float(change.max())), Fraction(float(change.min()))
            if self.model.ends:  # a constant that is added to values is not earned after the end
                most, least = max(most, Fraction(0)), min(least, Fraction(0))
            mean, own = self.mean(values)
            own += slack / (1 - discount)
            high, low = mean + own + most / (1 - discount), mean - own + least / (1 - discount)
            if target is None or not low <= target < high:
                break
            values = swept
        return low, high, own


def averaged(law: Law, axes: Axes, array: Floats) -> tuple[Axes, Floats]:
    """Sum over what a law draws of its chances times an array; the axes that are left."""
    rest = tuple(sorted({*axes, *law.inputs} - {*law.drawn}))
    drawn = [axis for axis in law.drawn if axis in axes]
    idle = tuple(len(law.inputs) + at for at, a in enumerate(law.drawn) if a not in axes)
    chances = law.chances.sum(axis=idle).reshape(*law.chances.shape[: len(law.inputs)], -1)
    sizes = dict(zip(axes, array.shape, strict=True))
    sizes |= dict(zip(law.inputs, law.chances.shape, strict=False))
    kept = tuple(axis for axis in axes if axis not in drawn)
    moved = np.transpose(array, [*map(axes.index, kept), *map(axes.index, drawn)])
    moved = moved.reshape(*moved.shape[: len(kept)], -1)
    found = np.zeros([sizes[axis] for axis in rest])
    for outcome in range(moved.shape[-1]):
        factor = spread(law.inputs, chances[..., outcome], rest)
        found += factor * spread(kept, moved[..., outcome], rest)
    return rest, found


def spread(axes: Axes, array: Floats, full: Axes) -> Floats:
    """The array with axes of length 1 where the full ones are others."""
    order = [axis for axis in full if axis in axes]
    moved = np.transpose(array, [axes.index(axis) for axis in order])
    sizes = dict(zip(order, moved.shape, strict=True))
    return moved.reshape([sizes.get(axis, 1) for axis in full])


# Listed states ---------------------------------------------------------------------------------


class ListedStates:
    """Values of some states, between which actions lead by lists of successors."""

    def __init__(
        self,
        model: Model,
        actions: Sequence[Action],
        claim: Claim,
        held: Sequence[bool],
        callback: Callback,
    ) -> None:
        assert isinstance(claim.start, Start)
        self.model, self.actions, self.claim = model, actions, claim
        self.limits = [one for one, good in zip(claim.invariants, held, strict=True) if good]
        tables = Tables(model)
        refuse(
            "numbers in tables, to prove boxes", tables.size * len(claim.start.boxes), MOST_TABLES
        )
        self.boxes = [box for box in claim.start.boxes if tables.prove(box)]
        self.functions = [
            np.array([float(n) for n in one.numbers]).reshape([model.sizes[a] for a in one.axes])
            for one in claim.functions
        ]
        self.sizes = np.array([model.sizes[axis] for axis in range(model.n_variables)])
        self.kind = f"<u{claim.start.width}"
        given = np.frombuffer(claim.start.states or b"", self.kind).reshape(-1, model.n_variables)
        refuse("numbers of listed states", given.size, LARGEST_ARRAY * 16)
        states = self.merged(given.astype(np.int32))
        rng = np.random.default_rng(0)
        self.multipliers = rng.integers(2**63, size=model.n_variables, dtype=np.uint64) * 2 + 1
        keys = self.keys(states)
        self.sorted_keys, first = np.unique(keys, return_index=True)
        self.states = states[first]  # of two with one key the other is not listed
        self.values = None
        if claim.start.values is not None:
            self.values = np.frombuffer(claim.start.values, "<f8").astype(float)[first]
        self.starts, self.chances = self._starts()
        self.leaves: list[NDArray[np.int32]] = []
        self.n_leaves = self.n_entries = self.widest = 0
        self.lists = []
        for at, action in enumerate(actions):
            callback(f"successors under action {at + 1} of {len(actions)}")
            self.lists.append(self._list(action))
        self.start_targets = self._targets(self.starts)
        self.leaf_states = np.concatenate([np.zeros((0, len(self.sizes)), self.kind), *self.leaves])
        self.lawful = self._lawful(self.leaf_states)
        self.over, self.leaf_over = (
            np.broadcast_to(ended(model, rows.T), len(rows))
            for rows in (self.states, self.leaf_states)
        )
        steps = model.horizon or 1
        refuse("products of all sweeps", self.n_entries * steps, MOST_PRODUCTS)
        refuse(
            "values of states that are not listed",
            len(self.leaf_states) * len(claim.functions) * steps,
            MOST_PRODUCTS,
        )
        self.rewards = [self._reward(action) for action in actions]
        self.largest = sizes_of_rewards(actions)
        n_laws = max(len(action.laws) for action in actions)
        n_rewards = max(len(action.rewards) for action in actions)
        self.terms = 2 * n_laws + self.widest + n_rewards + 8

    def merged(self, states: NDArray[np.int32]) -> NDArray[np.int32]:
        """States with 0 in place of what does not matter in boxes that they are in."""
        found = states.copy()
        for box in self.boxes:
            inside = np.ones(len(states), dtype=bool)
            for variable, values in zip(box.variables, box.values, strict=True):
                allowed = np.zeros(self.sizes[variable], dtype=bool)
                allowed[list(values)] = True
                inside &= allowed[found[:, variable]]
            others = [v for v in range(states.shape[1]) if v not in box.kept]
            found[np.ix_(np.flatnonzero(inside), np.array(others, dtype=np.int64))] = 0
        return found

    def keys(self, states: NDArray[np.int32]) -> NDArray[np.uint64]:
        """A number of each state; two states may have the same."""
        return np.asarray((states.astype(np.uint64) * self.multipliers).sum(axis=1))

    def _starts(self) -> tuple[NDArray[np.int32], Floats]:
        parts = []
        for axis in range(len(self.sizes)):
            kernel = self.model.start[~axis]
            total = kernel.totals.numbers[0]
            parts.append([(v, c / total) for v, c in enumerate(kernel.chances.numbers) if c])
        refuse("states at the start", math.prod(map(len, parts)), MOST_STARTS)
        states = [[value for value, _ in one] for one in product(*parts)]
        chances = [math.prod(chance for _, chance in one) for one in product(*parts)]
        return self.merged(np.array(states, dtype=np.int32)), np.array(chances)

    def _targets(self, states: NDArray[np.int32]) -> Integers:
        """Places among listed states, or after them among the others, which are added."""
        keys = self.keys(states)
        places = np.searchsorted(self.sorted_keys, keys)
        places[places == len(self.sorted_keys)] = 0
        known = (self.sorted_keys[places] == keys) if len(self.sorted_keys) else keys < 0
        known &= (self.states[places] == states).all(axis=1) if len(self.states) else False
        missing = np.flatnonzero(~known)
        if len(missing):
            distinct, where = np.unique(states[missing], axis=0, return_inverse=True)
            places[missing] = len(self.states) + self.n_leaves + where.ravel()
            self.leaves.append(distinct.astype(self.kind))
            self.n_leaves += len(distinct)
            refuse("states that are not listed", self.n_leaves * len(self.sizes), MOST_OTHERS)
        return places

    def _list(self, action: Action) -> tuple[Integers, NDArray[np.int32], Floats]:
        """Where each listed state's successors begin, their places, and their chances."""
        begins, targets, chances = [], [], []
        end = first = 0
        size = CHUNK
        while first < len(self.states):
            chunk = self.states[first : first + size]
            try:
                origin, drawn, chance = followed(self.model, action, chunk)
            except TooWideError:
                if len(chunk) == 1:
                    raise
                size = len(chunk) // 2
                continue
            first += len(chunk)
            numbers = np.bincount(origin, minlength=len(chunk))
            self.widest = max(self.widest, int(numbers.max()))
            self.n_entries += len(origin)
            refuse("successors of listed states", self.n_entries, MOST_ENTRIES)
            begins.append(end + np.cumsum(numbers) - numbers)
            end += len(origin)
            targets.append(self._targets(self.merged(drawn)).astype(np.int32))
            chances.append(chance)
        none = np.zeros(0, np.int64)
        return (
            np.concatenate([none, *begins]),
            np.concatenate([none.astype(np.int32), *targets]),
            np.concatenate([np.zeros(0), *chances]),
        )

    def _reward(self, action: Action) -> Floats:
        total = np.zeros(len(self.states))
        for axes, reward in (*action.rewards, *action.allowed):
            total += reward[tuple(self.states[:, axis] for axis in axes)]
        return total

    def _lawful(self, states: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Where invariants hold that linear values need."""
        good = np.ones(len(states), dtype=bool)
        for one in self.limits:
            if isinstance(one, Sum):
                total = np.zeros(len(states), dtype=np.int64)
                for axis, row in zip(one.axes, one.counts, strict=True):
                    total += np.array(row)[states[:, axis]]
                good &= (one.least <= total) & (total <= one.most)
            else:
                shape = [self.model.sizes[axis] for axis in one.axes]
                allowed = np.array([n == 0 for n in one.numbers]).reshape(shape)
                good &= allowed[tuple(states[:, axis] for axis in one.axes)]
        return good

    def _elsewhere(self, step: int, most: Fraction) -> Floats:
        """Values of states that are not listed: the linear ones of a step, or the most there is."""
        trivial = above(most)
        found, size, terms = np.zeros(len(self.leaf_states)), 0.0, 4
        parts = zip(self.claim.functions, self.functions, self.claim.weights[step], strict=True)
        for function, numbers, weight in parts:
            if weight:
                table = float(weight) * numbers
                found += table[tuple(self.leaf_states[:, axis] for axis in function.axes)]
                size, terms = size + float(np.abs(table).max()), terms + 2
        found += 2 * EPSILON * terms * size + SMALLEST
        found = np.where(self.lawful, np.minimum(found, trivial), trivial)
        return np.where(self.leaf_over, 0.0, found)

    def sweep(self, values: Floats) -> tuple[Floats, float]:
        """T W at listed states, from values of these and then of others; its rounding."""
        best, discount = np.full(len(self.states), -np.inf), float(self.model.discount)
        for reward, (begins, targets, chances) in zip(self.rewards, self.lists, strict=True):
            if len(best):
                means = np.add.reduceat(chances * values[targets], begins)
                np.maximum(best, reward + discount * means, out=best)
        best[self.over] = 0.0
        refuse_stuck(best)
        size = float(np.abs(values).max(initial=0.0)) + self.largest
        return best, EPSILON * self.terms * size + SMALLEST

    def mean(self, values: Floats) -> tuple[Fraction, Fraction]:
        """Of values at the start, and its rounding."""
        terms = 2 * len(self.sizes) + len(self.chances) + 4
        error = EPSILON * terms * float(np.abs(values).max()) + SMALLEST
        return Fraction(float(self.chances @ values[self.start_targets])), Fraction(error)

    def bounds(self, callback: Callback) -> tuple[None, Fraction, Fraction]:
        """What no policy exceeds from the start."""
        model, discount = self.model, self.model.discount
        largest = max(
            sum((Fraction(float(r.max())) for _, r in action.rewards), Fraction(0))
            for action in self.actions
        )
        largest = max(largest, Fraction(0)) if model.ends else largest
        if model.horizon is None:
            most = largest / (1 - discount)
            assert self.values is not None
            elsewhere, high, own = self._elsewhere(0, most), most, Fraction(0)
            values = self.values
            for sweep in range(MOST_SWEEPS):
                callback(f"values of {len(values)} states, sweep {sweep + 1}")
                whole = np.concatenate([values, elsewhere])
                swept, rounding = self.sweep(whole)
                size = float(np.abs(whole).max(initial=0.0) + np.abs(swept).max(initial=0.0))
                excess = Fraction(float((swept - values).max(initial=0.0)))
                mean, error = self.mean(whole)
                error += Fraction(rounding + EPSILON * size) / (1 - discount)
                found = mean + error + excess / (1 - discount)
                better = found < high
                high, own = (found, error) if better else (high, own)
                enough = self.claim.at_start is None or high <= self.claim.at_start
                if enough or not better or (sweep + 1) * self.n_entries > MOST_PRODUCTS:
                    break
                values = swept
            return None, high, own
        values, total, most = np.zeros(len(self.states)), 0.0, Fraction(0)
        elsewhere = np.zeros(len(self.leaf_states))
        for step in range(model.horizon, 0, -1):
            callback(f"values of {len(values)} states, step {step}")
            values, rounding = self.sweep(np.concatenate([values, elsewhere]))
            most = Fraction(above(largest + discount * most))
            elsewhere = self._elsewhere(step - 1, most)
            total = math.nextafter(rounding + float(discount) * total, math.inf)
            total = math.nextafter(total, math.inf)
        mean, error = self.mean(np.concatenate([values, elsewhere]))
        error += Fraction(total)
        return None, mean + error, error


def followed(
    model: Model, action: Action, states: NDArray[np.int32]
) -> tuple[Integers, NDArray[np.int32], Floats]:
    """Successors of states: the row each comes from, its values, and its chance."""
    n_drawn = -min(axis for axis in model.sizes)
    origin, chance = np.arange(len(states)), np.ones(len(states))
    drawn = np.zeros((len(states), n_drawn), dtype=np.int32)
    for law in action.laws:
        place = np.zeros(len(origin), dtype=np.int64)
        for axis, size in zip(law.inputs, law.chances.shape, strict=False):
            place = place * size + (states[origin, axis] if axis >= 0 else drawn[:, ~axis])
        shape = law.chances.shape[len(law.inputs) :]
        table = law.chances.reshape(-1, math.prod(shape))
        row, outcome = np.nonzero(table)
        numbers = np.bincount(row, minlength=len(table))
        begins = np.cumsum(numbers) - numbers
        often = numbers[place]
        total = int(often.sum())
        refuse("numbers of successors at once", total * n_drawn, MOST_ROWS)
        if total > len(origin) or (often != 1).any():
            source = np.repeat(np.arange(len(origin)), often)
            offset = np.arange(total) - np.repeat(np.cumsum(often) - often, often)
            origin, drawn, chance = origin[source], drawn[source], chance[source]
            taken = begins[place][source] + offset
        else:
            taken = begins[place]
        chance = chance * table[row[taken], outcome[taken]]
        for axis, values in zip(law.drawn, np.unravel_index(outcome[taken], shape), strict=True):
            drawn[:, ~axis] = values
    return origin, drawn[:, : model.n_variables], chance


# Boxes -----------------------------------------------------------------------------------------


class Tables:
    """The tables of a model as arrays of whole numbers, equal where the tables' numbers are."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.kernels = [dict.fromkeys(draws.values()) for draws in model.draws]
        tables = [kernel.chances for kernels in self.kernels for kernel in kernels]
        # Nor may what is allowed, and where an episode ends, depend on what does not matter.
        self.read_now = [
            [*rewards, *allowed, *model.ends]
            for rewards, allowed in zip(model.rewards, model.allowed, strict=True)
        ]
        tables += [table for read in self.read_now for table in read]
        self.arrays: dict[Table, Integers] = {}
        for table in dict.fromkeys(tables):
            ranks = {0: 0}
            for number in table.numbers:
                ranks.setdefault(number, len(ranks))
            array = np.array([ranks[number] for number in table.numbers], dtype=np.int64)
            self.arrays[table] = array.reshape([model.sizes[axis] for axis in table.axes])
        self.size = sum(array.size for array in self.arrays.values()) * max(
            1, len(model.draws) // 8
        )

    def prove(self, box: Box) -> bool:
        """Whether no action leaves a box, and in it what matters depends on nothing else."""
        kept, held = {*box.kept}, dict(zip(box.variables, box.values, strict=True))
        looks: dict[int, set[int]] = {}
        cut: dict[Table, Integers] = {}
        for table, array in self.arrays.items():
            for at, axis in enumerate(table.axes):
                if axis in held:
                    array = array.take(held[axis], axis=at)
            cut[table] = array
        varying = {table: self._varying(table, array) for table, array in cut.items()}
        for kernels, read_now in zip(self.kernels, self.read_now, strict=True):
            if not all(varying[table] <= kept for table in read_now):
                return False
            for kernel in kernels:
                seen = varying[kernel.chances] - {*kernel.drawn}
                found = {axis for axis in seen if axis >= 0}
                for axis in seen - found:
                    found |= looks[axis]
                for axis in kernel.drawn:
                    looks[axis] = looks.get(axis, set()) | found
        stay = all(
            self._stays(kernel, cut[kernel.chances], held) for kernel in chain(*self.kernels)
        )
        return stay and kept >= held.keys() and all(looks[~variable] <= kept for variable in kept)

    def _varying(self, table: Table, array: Integers) -> set[int]:
        """Current variables, and what is drawn, along which a table varies; not what is decided."""
        return {
            axis
            for at, axis in enumerate(table.axes)
            if axis < self.model.n_variables and (array != array.take([0], axis=at)).any()
        }

    def _stays(self, kernel: Kernel, array: Integers, held: Mapping[int, Axes]) -> bool:
        """Whether what a kernel draws of the held variables stays among their values."""
        for axis in kernel.drawn:
            if ~axis in held:
                sizes = range(self.model.sizes[~axis])
                others = [value for value in sizes if value not in held[~axis]]
                if array.take(others, axis=kernel.chances.axes.index(axis)).any():
                    return False
        return True
