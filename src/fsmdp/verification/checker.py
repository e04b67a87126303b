"""Proves or refutes the bound of a plan file for a model file: python checker.py MODEL PLAN.

This file imports nothing but Python's standard library and shares no code with the planners: who
doubts a bound reads this file.

**The claim.** A plan holds weights w_lj of functions h_j, with V_l(s) = sum_j w_lj h_j(s). If

    R(s, a) + discount * E[V_{l+1}(s') | s, a] - V_l(s) <= 0   for all steps l, states s, actions a

then V_l lies above the value of every policy: by induction backwards from V_{horizon + 1} = 0, or,
without a horizon, where V_{l+1} is V_l, because the discount is below 1. So no policy earns more
than E[V_1] under the distribution of the start.

**The proof.** The left side is a sum of tables of a few variables each: rewards, expectations of
the functions after one step, and the functions themselves. Its maximum over all states is found by
eliminating one variable after another. Actions share what they do not change.

**The numbers.** Every number in the files is a binary float, taken as the rational that it is. A
row of probabilities means its entries divided by their sum. Expectations are fractions. Then every
table is made of integers in units of 2^-1200, rounded up: that may hide a proof but never make one.
Where no proof is found, the state and action that stand against it are tried again in fractions.

**Invariants.** A plan may say that some states cannot be reached: values that never go together,
and limits on sums of what values count for. That they hold at the start, and after a step from any
state in which all of them hold, is proved here, by elimination over zero and positive
probabilities; what is not is left out. Then the inequality is needed, and proved, only where they
hold, since no policy leaves these states: a table of such an invariant has 0 where it holds and a
huge negative number elsewhere. Limits on joint actions are put the same way.

**More at the start.** A plan may claim less for the start than its weights prove, because exact
values or a search say so. Where all states can be listed, their values are computed here, too.

Nothing in a plan is trusted: what it says of its solver is not looked at.
"""

from __future__ import annotations

import ast
import hashlib
import io
import json
import math
import struct
import sys
import time
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import cache, partial
from heapq import heapify, heappop, heappush
from itertools import chain, product
from operator import add, mul, sub
from typing import Any, Generic, TypeVar

MODEL, PLAN = ("fsmdp-model", 1), ("fsmdp-plan", 3)  # formats and versions
LARGEST_MODEL, LARGEST_PLAN, LARGEST_PART = 2**26, 2**30, 2**28  # bytes: files, and an array
LARGEST_TABLE, LARGEST_MEMORY = 2**20, 2**22  # entries; one takes about 250 bytes
SMALL_TABLE = 2**10  # up to here one order of elimination is good enough for all actions
MOST_WORK = 5 * 10**7  # products, about a minute, to find the values of all states
MOST_HINTED = 2 * 10**7  # additions of a step, about ten seconds, a plan's own way
UNIT_BITS = 1200  # finer than the smallest float, 2^-1074
UNIT = Fraction(1, 2**UNIT_BITS)
ROW_TOLERANCE = Fraction(1, 10**9)
NEVER = Fraction(-(2**1200))  # what it would take: any number below 0 can hide, never make, a proof
MOST_COUNTED = 2**12  # that values may count for together

Item = TypeVar("Item")
Axes = tuple[int, ...]
Tell = Callable[[str], None]


class BadInputError(Exception):
    """A file that cannot be read, or a network too wide for this checker."""


class TooWideError(BadInputError):
    """A network whose elimination needs too large a table."""


def expect(condition: bool, message: str) -> None:
    """Refuse the input unless a condition holds."""
    if not condition:
        raise BadInputError(message)


# Data ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """One number for each assignment of its axes, the last axis fastest."""

    axes: Axes
    numbers: Sequence[Any]  # all fractions, or all integers in units


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """Probabilities of what is drawn: whole numbers, to be divided by their row's total."""

    inputs: Axes
    drawn: Axes
    chances: Sequence[int]  # over the inputs, then what is drawn
    totals: Sequence[int]  # over the inputs


@dataclass(frozen=True, slots=True, eq=False)
class Cases(Generic[Item]):
    """What holds under each action: the usual item, with a few exceptions."""

    usual: Item
    exceptions: Mapping[int, Item]

    def at(self, action: int) -> Item:
        """What holds under one action."""
        return self.exceptions.get(action, self.usual)


@dataclass(frozen=True, slots=True)
class Joint:
    """Actions that are made of variables, and which joint ones there are not."""

    variables: tuple[tuple[str, int], ...]
    at_most: int | None  # off 0
    forbidden: tuple[tuple[Axes, tuple[Axes, ...]], ...]  # positions among them, and their values

    def __len__(self) -> int:
        return 1  # sum of tables: its maximum is over the action, too

    def name(self, values: Sequence[int]) -> str:
        """What a joint action is called."""
        parts = [
            name if size == 2 else f"{name}={value}"
            for (name, size), value in zip(self.variables, values, strict=True)
            if value
        ]
        return "+".join(parts) or "noop"


Actions = tuple[str, ...] | Joint


@dataclass(frozen=True, slots=True)
class Local:
    """Some variables are only ever together at values that are allowed."""

    axes: Axes
    allowed: tuple[bool, ...]  # for each assignment, the last axis fastest


@dataclass(frozen=True, slots=True)
class Sum:
    """What the values of some variables count for adds up to numbers within limits."""

    axes: Axes
    counts: tuple[Axes, ...]  # for each axis, of each value
    least: int
    most: int

    def allows(self, total: int) -> bool:
        """Whether a sum is within the limits."""
        return self.least <= total <= self.most


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A model in fractions.

    Axis p is the current value of variable p, and axis n + p its next one; the axes after those are
    latents, which are drawn in the same step, and then the variables of joint actions.
    """

    variables: tuple[tuple[str, int], ...]
    actions: Actions
    horizon: int | None
    discount: Fraction
    sizes: tuple[int, ...]  # of all axes
    kernels: tuple[Cases[Kernel], ...]  # in the order in which they are drawn
    drawn_by: Mapping[int, int]  # the position of the kernel that draws an axis
    rewards: tuple[Cases[Table], ...]
    initial: tuple[tuple[Fraction, ...], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Claim:
    """What a plan claims: functions, their weights at each step, and what follows at the start."""

    variables: tuple[tuple[str, int], ...]
    actions: Actions
    horizon: int | None
    discount: Fraction
    functions: tuple[Table, ...]
    weights: tuple[tuple[Fraction, ...], ...]  # (steps, functions)
    upper_bound: Fraction
    at_start: Fraction | None  # tighter, for a reason that is not in the weights
    reason: str
    hint: Hint | None = None
    invariants: tuple[Local | Sum, ...] = ()
    restrictions: tuple[Restriction, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Restriction:
    """An invariant that a plan uses, or the limit on joint actions (-1), and how a sum is counted.

    An addition is (one, other, counter): variables or counters and the counter of their sum; the
    last has no counter. Without additions, variables are counted one after another.
    """

    invariant: int
    additions: tuple[Axes, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Hint:
    """How a plan says its maximum may be bounded: steps, each of which adds up terms.

    A term is (table of the network, action, sign) or (earlier step,); some variables are maxed out
    of their sum. An action's largest sum is at most the number that its final step leaves.
    """

    steps: tuple[tuple[tuple[tuple[int, ...], ...], Axes], ...]
    finals: tuple[int, ...]  # of each action


# Reading a model -------------------------------------------------------------------------------


def read_bytes(path: str, largest: int) -> bytes:
    """The content of a file that is not too large."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            content = file.read(largest + 1)
    except (OSError, ValueError) as error:
        raise BadInputError(f"cannot read {path!r}: {short(error)}") from None
    expect(len(content) <= largest, f"{path!r} has more than {largest} bytes")
    return content


def read_json(content: bytes, where: str) -> Any:
    """JSON without repeated keys."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        expect(len(found) == len(pairs), f"{where}: an object has a key twice")
        return found

    try:
        return json.loads(content.decode(), object_pairs_hook=once)
    except (ValueError, RecursionError) as error:
        raise BadInputError(f"{where}: not JSON: {short(error)}") from None


def short(value: object) -> str:
    """A value, or an error, in one short line."""
    text = " ".join(str(value).split())
    return text if len(text) <= 200 else text[:200] + "..."


def entries(data: Any, where: str, needed: str, optional: str = "") -> dict[str, Any]:
    """An object with all the keys that are needed, and no others than the optional ones."""
    expect(isinstance(data, dict), f"{where}: expected an object")
    missing = set(needed.split()) - data.keys()
    expect(not missing, f"{where}: expected {', '.join(sorted(missing))}")
    unknown = data.keys() - {*needed.split(), *optional.split()}
    expect(not unknown, f"{where}: unknown key {short(min(unknown, default=''))!r}")
    return dict(data)


def as_list(data: Any, where: str) -> list[Any]:
    """A list of anything."""
    expect(isinstance(data, list), f"{where}: expected a list")
    return list(data)


def expect_format(data: Mapping[str, Any], known: tuple[str, int]) -> None:
    """Refuse what another release means otherwise."""
    found = (data.get("format"), data.get("version"))
    expect(found == known and type(found[1]) is int, f"expected format and version {known}")


def names_of(data: Any, where: str) -> tuple[str, ...]:
    """A list of different names."""
    good = isinstance(data, list) and all(isinstance(name, str) and name for name in data)
    expect(good and len(set(data)) == len(data), f"{where}: expected different names in a list")
    return tuple(data)


def read_actions(data: Any, where: str) -> Actions:
    """Names of actions, or the variables that they are made of."""
    if not isinstance(data, dict):
        return names_of(data, where)
    given = entries(data, where, "variables", "at_most forbidden")
    variables = read_variables(given["variables"], where)
    expect(len(variables) > 0, f"{where}: expected at least one variable")
    at_most = given.get("at_most")
    if at_most is not None:
        at_most = whole(at_most, 1, 2**16, f"{where}: at_most")
    positions = {name: position for position, (name, _) in enumerate(variables)}
    forbidden = []
    for one in as_list(given.get("forbidden", []), where):
        table = entries(one, f"{where}: forbidden", "variables values")
        names = names_of(table["variables"], f"{where}: forbidden")
        expect(positions.keys() >= set(names), f"{where}: forbidden: unknown variable")
        axes = tuple(positions[name] for name in names)
        rows = [tuple(as_list(row, where)) for row in as_list(table["values"], where)]
        good = all(len(row) == len(axes) for row in rows) and all(
            type(value) is int and 0 <= value < variables[axis][1]
            for row in rows
            for axis, value in zip(axes, row, strict=True)
        )
        expect(good, f"{where}: forbidden: expected a value for each variable")
        forbidden.append((axes, tuple(rows)))
    return Joint(tuple(variables), at_most, tuple(forbidden))


def whole(data: Any, least: int, most: int, where: str) -> int:
    """A whole number within limits."""
    good = type(data) is int and least <= data <= most
    expect(good, f"{where}: expected a whole number from {least} to {most}")
    return int(data)


@cache
def exact(number: float) -> Fraction:
    """The rational that a float is."""
    return Fraction(number)


def rational(data: Any, where: str) -> Fraction:
    """A number of a file: the float next to what is written, exactly."""
    expect(type(data) in (int, float), f"{where}: expected a number")
    try:
        number = float(data)
    except OverflowError:
        number = math.inf
    expect(math.isfinite(number), f"{where}: expected a finite number")
    return exact(number)


def flatten(data: Any, sizes: Sequence[int], where: str) -> list[Fraction]:
    """The numbers of nested lists, one level for each axis."""
    level = [data]
    for size in sizes:
        good = all(isinstance(part, list) and len(part) == size for part in level)
        expect(good, f"{where}: expected nested lists of shape {tuple(sizes)}")
        level = list(chain.from_iterable(level))
    return [rational(number, where) for number in level]


def row_of_chances(row: Sequence[Fraction], where: str) -> list[int]:
    """Probabilities as whole numbers, to be divided by their sum."""
    good = all(number >= 0 for number in row) and abs(sum(row, Fraction(-1))) <= ROW_TOLERANCE
    expect(good, f"{where}: expected probabilities of at least 0 with a sum of 1")
    unit = max(number.denominator for number in row)  # all are powers of two
    return [number.numerator * (unit // number.denominator) for number in row]


def read_cases(
    data: Any, actions: Mapping[str, int], read: Callable[[Any, str], Item], where: str
) -> Cases[Item]:
    """Every action in exactly one case; "any" stands for those that no other case names."""
    items: list[Item] = []
    named: dict[int, int] = {}
    rest: int | None = None
    for number, one in enumerate(as_list(data, where)):
        place = f"{where}, case {number}"
        given = entries(one, place, "actions table", "parents drawn")
        if given["actions"] == "any":
            expect(rest is None, f"{where}: two cases are for any action")
            rest = number
        else:
            names = names_of(given["actions"], place)
            expect(actions.keys() >= set(names), f"{place}: unknown action")
            positions = {actions[name] for name in names}
            expect(not positions & named.keys(), f"{place}: an action that another case names")
            named.update(dict.fromkeys(positions, number))
        items.append(read(given, place))
    left = len(actions) - len(named)
    expect(rest is not None or not left, f"{where}: {left} actions are in no case")
    # Nobody lists the actions of the rest, so they cannot be the exceptions.
    usual = rest if rest is not None and left else Counter(named.values()).most_common(1)[0][0]
    others = {action: items[case] for action, case in named.items() if case != usual}
    return Cases(items[usual], others)


def read_variables(data: Any, where: str) -> list[tuple[str, int]]:
    """Names and sizes."""
    given = [entries(one, where, "name size") for one in as_list(data, where)]
    names = names_of([one["name"] for one in given], where)
    sizes = (whole(one["size"], 1, 2**16, where) for one in given)
    return list(zip(names, sizes, strict=True))


def read_model(content: bytes) -> Model:
    """A model from the bytes of its file."""
    needed = "format version variables actions conditionals rewards horizon initial"
    data = entries(read_json(content, "model"), "model", needed, "digest latents discount")
    expect_format(data, MODEL)
    check_digest(content, data.get("digest"))
    variables = read_variables(data["variables"], "variables")
    everything = variables + read_variables(data.get("latents", []), "latents")
    count = len(variables)
    expect(count > 0, "variables: expected at least one")
    names_of([name for name, _ in everything], "variables and latents")
    sizes = tuple(size for _, size in (*variables, *everything))
    current = {name: axis for axis, (name, _) in enumerate(variables)}
    drawable = {name: count + axis for axis, (name, _) in enumerate(everything)}
    drawn: dict[str, int] = {}  # what the conditionals so far draw
    drawn_by: dict[int, int] = {}
    actions = read_actions(data["actions"], "actions")
    expect(len(actions) > 0, "actions: expected at least one")
    if isinstance(actions, Joint):
        positions = {"": 0}  # which no case can name
        names_of([name for name, _ in (*everything, *actions.variables)], "variables of all kinds")
        current |= {name: len(sizes) + at for at, (name, _) in enumerate(actions.variables)}
        sizes += tuple(size for _, size in actions.variables)
    else:
        positions = {name: position for position, name in enumerate(actions)}

    def axes_of(data: Any, known: Mapping[str, int], where: str) -> Axes:
        names = names_of(data, where)
        unknown = ", ".join(name for name in names if name not in known)
        expect(not unknown, f"{where}: unknown or not drawn yet: {short(unknown)!r}")
        return tuple(known[name] for name in names)

    def read_mean(given: Any, where: str) -> Table:
        expect(given.get("drawn", []) == [], f"{where}: expected current values only")
        axes = axes_of(given.get("parents", []), current, f"{where}, parents")
        return Table(axes, flatten(given["table"], [sizes[axis] for axis in axes], where))

    def read_kernel(children: Axes, given: Any, where: str) -> Kernel:
        parents = axes_of(given.get("parents", []), current, f"{where}, parents")
        inputs = (*parents, *axes_of(given.get("drawn", []), drawn, f"{where}, drawn"))
        numbers = flatten(given["table"], [sizes[axis] for axis in (*inputs, *children)], where)
        width = math.prod(sizes[axis] for axis in children)
        starts = range(0, len(numbers), width)
        rows = [row_of_chances(numbers[start : start + width], where) for start in starts]
        return Kernel(inputs, children, list(chain.from_iterable(rows)), list(map(sum, rows)))

    kernels = []
    for position, one in enumerate(as_list(data["conditionals"], "conditionals")):
        where = f"conditional {position}"
        given = entries(one, where, "children cases")
        children = axes_of(given["children"], drawable, where)
        expect(len(children) > 0, f"{where}: it draws nothing")
        expect(not drawn_by.keys() & set(children), f"{where}: drawn a second time")
        kernels.append(read_cases(given["cases"], positions, partial(read_kernel, children), where))
        drawn.update((name, drawable[name]) for name in given["children"])
        drawn_by.update(dict.fromkeys(children, position))
    missing = ", ".join(name for name in drawable if name not in drawn)
    expect(not missing, f"no conditional draws {short(missing)}")
    rewards = []
    for position, one in enumerate(as_list(data["rewards"], "rewards")):
        where = f"reward {position}"
        given = entries(one, where, "name cases low high", "sigma")
        rewards.append(read_cases(given["cases"], positions, read_mean, where))
    horizon, discount = read_end(data["horizon"], data.get("discount", 1.0), "model")
    initial = tuple(read_initial(data["initial"], variables))
    return Model(
        *(tuple(variables), actions, horizon, discount, sizes, tuple(kernels), drawn_by),
        *(tuple(rewards), initial),
    )


def check_digest(content: bytes, digest: object) -> None:
    """Refuse a model that was changed since it was written, unless its digest was taken out."""
    if digest is not None:
        good = isinstance(digest, str) and len(digest) == 64 and digest.isascii()
        blank = content.replace(str(digest).encode(errors="replace"), b"0" * 64, 1)
        good = good and hashlib.sha256(blank).hexdigest() == digest
        expect(good, "model: changed since it was written; if on purpose, remove its digest")


def read_end(horizon: Any, discount: Any, where: str) -> tuple[int | None, Fraction]:
    """Horizon and discount."""
    steps = None if horizon is None else whole(horizon, 1, 10**9, f"{where}: horizon")
    factor = rational(discount, f"{where}: discount")
    expect(0 < factor <= 1, f"{where}: discount: expected more than 0 and at most 1")
    expect(steps is not None or factor < 1, f"{where}: no horizon and no discount")
    return steps, factor


def read_initial(data: Any, variables: Sequence[tuple[str, int]]) -> Iterator[tuple[Fraction, ...]]:
    """The distribution of each variable at the start; 0 where none is given."""
    expect(isinstance(data, dict), "initial: expected an object")
    unknown = data.keys() - {name for name, _ in variables}
    expect(not unknown, f"initial: unknown variable {short(min(unknown, default=''))!r}")
    for name, size in variables:
        where = f"initial of {short(name)!r}"
        start = data.get(name, 0)
        if isinstance(start, list):
            row = row_of_chances(flatten(start, [size], where), where)
            yield tuple(Fraction(chance, sum(row)) for chance in row)
        else:
            value = whole(start, 0, size - 1, where)
            yield tuple(Fraction(value == other) for other in range(size))


# Reading a plan --------------------------------------------------------------------------------

DAMAGED = (
    *(zipfile.BadZipFile, zlib.error, struct.error, OSError, EOFError, MemoryError),
    *(ValueError, TypeError, SyntaxError, RuntimeError, LookupError, ArithmeticError),
)
"""What damaged or hostile archives and headers make the standard library raise."""


def read_claim(content: bytes) -> Claim:
    """What a plan claims, from the bytes of its file."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            header, _ = read_array(packed, "about", "|u1")
            numbers, count = read_array(packed, "functions", "<f8")
            weights, shape = read_array(packed, "bound_weights", "<f8")
    except DAMAGED as error:
        raise BadInputError(f"plan: damaged, or not a plan: {short(error)}") from None
    data = read_json(bytes(header), "plan")
    expect(isinstance(data, dict), "plan: expected an object")
    expect_format(data, PLAN)
    hint = data.get("elimination")
    invariants, restrictions = data.get("invariants", []), data.get("restrictions", [])
    needed = "variables actions horizon discount scopes upper_bound at_start proof"
    data = entries({key: data[key] for key in needed.split() if key in data}, "plan", needed)
    pairs = [as_list(one, "plan: variables") for one in as_list(data["variables"], "plan")]
    expect(all(len(pair) == 2 for pair in pairs), "plan: variables: expected names and sizes")
    names = names_of([pair[0] for pair in pairs], "plan: variables")
    sizes = [whole(pair[1], 1, 2**16, "plan: variables") for pair in pairs]
    horizon, discount = read_end(data["horizon"], data["discount"], "plan")
    functions = read_functions(data["scopes"], sizes, numbers, count)
    width = len(functions)
    expected = (1 if horizon is None else horizon + 1, width)
    expect(shape == expected, f"plan: bound_weights: expected the shape {expected}")
    rows = [tuple(map(exact, weights[at : at + width])) for at in range(0, len(weights), width)]
    expect(horizon is None or not any(rows.pop()), "plan: expected weights of 0 after the end")
    at_start = data["at_start"]
    actions = read_actions(data["actions"], "plan: actions")
    return Claim(
        tuple(zip(names, sizes, strict=True)),
        actions,
        horizon,
        discount,
        functions,
        tuple(rows),
        rational(data["upper_bound"], "plan: upper_bound"),
        None if at_start is None else rational(at_start, "plan: at_start"),
        short(data["proof"]),
        read_hint(hint),
        *read_invariants(invariants, restrictions, sizes),
    )


def read_invariants(
    data: Any, restrictions: Any, sizes: Sequence[int]
) -> tuple[tuple[Local | Sum, ...], tuple[Restriction, ...]]:
    """What a plan says of the states that can be reached, and how it uses that."""
    where = "plan: invariants"
    found: list[Local | Sum] = []
    for one in as_list(data, where):
        given = entries(one, where, "scope", "allowed counts least most")
        axes = whole_numbers(given["scope"], where)
        good = axes == tuple(sorted(set(axes))) and all(axis < len(sizes) for axis in axes)
        expect(good and len(axes) > 0, f"{where}: expected sorted positions of variables")
        if "allowed" in given:
            numbers = whole_numbers(given["allowed"], where)
            good = len(given) == 2 and len(numbers) == math.prod(sizes[axis] for axis in axes)
            expect(good and set(numbers) <= {0, 1}, f"{where}: expected 0 or 1 for each assignment")
            found.append(Local(axes, tuple(map(bool, numbers))))
        else:
            entries(given, where, "scope counts least most")
            counts = tuple(whole_numbers(row, where) for row in as_list(given["counts"], where))
            expect(
                [len(row) for row in counts] == [sizes[axis] for axis in axes]
                and sum(map(max, counts)) <= MOST_COUNTED,
                f"{where}: expected a small number for each value",
            )
            limits = (whole(given[key], 0, MOST_COUNTED, where) for key in ("least", "most"))
            found.append(Sum(axes, counts, *limits))
    used = []
    for one in as_list(restrictions, where):
        parts = as_list(one, where)
        expect(len(parts) == 2, f"{where}: expected an invariant and additions")
        number = whole(parts[0], -1, len(found) - 1, where)
        additions = tuple(whole_numbers(row, where) for row in as_list(parts[1], where))
        used.append(Restriction(number, additions))
    return tuple(found), tuple(used)


def whole_numbers(data: Any, where: str) -> Axes:
    """A list of whole numbers from 0 on."""
    good = isinstance(data, list) and all(type(one) is int and one >= 0 for one in data)
    expect(good, f"{where}: expected whole numbers")
    return tuple(data)


def read_hint(data: Any) -> Hint | None:
    """Steps of an elimination, in which nothing but their form is looked at here."""
    if data is None:
        return None
    where = "plan: elimination"
    given = entries(data, where, "steps finals")
    steps = []
    for number, one in enumerate(as_list(given["steps"], where)):
        parts = as_list(one, where)
        expect(len(parts) == 2, f"{where}: expected terms and variables")
        terms = []
        for term in as_list(parts[0], where):
            good = isinstance(term, list) and all(type(at) is int for at in term)
            good = good and (len(term) == 3 or (len(term) == 1 and 0 <= term[0] < number))
            expect(good, f"{where}: expected tables and messages of earlier steps")
            terms.append(tuple(term))
        variables = whole_numbers(parts[1], where)
        expect(len(set(variables)) == len(variables), f"{where}: wrong variables")
        steps.append((tuple(terms), variables))
    finals = [whole(one, 0, len(steps) - 1, where) for one in as_list(given["finals"], where)]
    return Hint(tuple(steps), tuple(finals))


def read_array(packed: zipfile.ZipFile, name: str, kind: str) -> tuple[Sequence[Any], Axes]:
    """Numbers and shape of one array, the last axis fastest; nothing in it is ever run."""
    where = f"plan: array {name!r}"
    parts = [part for part in packed.infolist() if part.filename == f"{name}.npy"]
    expect(len(parts) == 1, f"{where}: expected once, found {len(parts)} times")
    expect(parts[0].file_size <= LARGEST_PART, f"{where}: too large")
    known = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
    expect(parts[0].compress_type in known, f"{where}: compressed in an unknown way")
    with packed.open(parts[0]) as file:
        content = file.read(LARGEST_PART + 1)
    expect(content[:6] == b"\x93NUMPY" and content[6] in (1, 2), f"{where}: not as NumPy writes it")
    begin = 10 if content[6] == 1 else 12
    (length,) = struct.unpack("<H" if begin == 10 else "<I", content[8:begin])
    expect(length <= 2**14, f"{where}: its header is too long")
    header = ast.literal_eval(content[begin : begin + length].decode("latin1").strip())
    good = isinstance(header, dict) and header.keys() == {"descr", "fortran_order", "shape"}
    expect(good and header["descr"] == kind, f"{where}: expected numbers of kind {kind!r}")
    shape, body = header["shape"], content[begin + length :]
    good = isinstance(shape, tuple) and len(shape) <= 2
    good = good and all(type(size) is int and size >= 0 for size in shape)
    expect(good and len(body) == math.prod(shape) * int(kind[2]), f"{where}: wrong length")
    if kind == "|u1":
        return body, shape
    numbers = struct.unpack(f"<{len(body) // 8}d", body)
    expect(all(map(math.isfinite, numbers)), f"{where}: expected finite numbers")
    if header["fortran_order"] and len(shape) == 2:
        numbers = tuple(chain.from_iterable(numbers[row :: shape[0]] for row in range(shape[0])))
    return numbers, shape


def read_functions(
    scopes: Any, sizes: Sequence[int], numbers: Sequence[float], shape: Axes
) -> tuple[Table, ...]:
    """The functions, whose numbers stand one after another in one array."""
    found = []
    begin = 0
    for scope in as_list(scopes, "plan: scopes"):
        good = isinstance(scope, list) and all(type(axis) is int for axis in scope)
        good = good and all(0 <= axis < len(sizes) for axis in scope)
        expect(good and sorted(set(scope)) == scope, "plan: scopes: expected sorted positions")
        end = begin + math.prod(sizes[axis] for axis in scope)
        expect(end <= len(numbers), "plan: functions: too few numbers")
        found.append(Table(tuple(scope), [exact(number) for number in numbers[begin:end]]))
        begin = end
    expect(len(found) > 0 and shape == (begin,), "plan: functions: too many numbers")
    return tuple(found)


# Tables and expectations -----------------------------------------------------------------------


class Places:
    """Where tables have the entries of assignments of other axes, computed once."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = list(sizes)
        self._known: dict[tuple[Axes, Axes], list[int]] = {}
        self._kept = 0

    def count(self, axes: Iterable[int]) -> int:
        """How many assignments there are."""
        return math.prod(self.sizes[axis] for axis in axes)

    def another(self, size: int) -> int:
        """A further axis."""
        self.sizes.append(size)
        return len(self.sizes) - 1

    def within(self, axes: Axes, full: Axes) -> list[int]:
        """For each assignment of the full axes, the place in a table over some of them."""
        found = self._known.get((axes, full))
        if found is None:
            stride, step = dict.fromkeys(full, 0), 1
            for axis in reversed(axes):
                stride[axis] = step
                step *= self.sizes[axis]
            found = [0]
            for axis in full:
                jumps = [value * stride[axis] for value in range(self.sizes[axis])]
                found = [place + jump for place in found for jump in jumps]
            self._kept += len(found)
            if self._kept > LARGEST_MEMORY:
                self._known.clear()
                self._kept = len(found)
            self._known[axes, full] = found
        return found

    def spread(self, table: Table, full: Axes) -> Iterator[Any]:
        """The numbers of a table for each assignment of more axes."""
        return map(table.numbers.__getitem__, self.within(table.axes, full))

    def entry(self, table: Table, state: Sequence[int]) -> Any:
        """The number of a table at a state."""
        place = 0
        for axis in table.axes:
            place = place * self.sizes[axis] + state[axis]
        return table.numbers[place]


def without_idle_axes(table: Table, places: Places) -> Table:
    """The same function as a table of those axes only on which it depends."""
    for axis in table.axes:
        rest = tuple(other for other in table.axes if other != axis)
        numbers = list(places.spread(table, (axis, *rest)))
        part = places.count(rest)
        if numbers[part:] == numbers[:-part]:  # for each value of the axis as for the one before
            table = Table(rest, numbers[:part])
    return table


def contractions(model: Model, axes: Axes, action: int) -> Iterator[tuple[Kernel, Axes]]:
    """The kernels that average drawn axes away, one after another, and the axes that each leaves.

    What is drawn last is averaged first; of those that look at nothing drawn, and so at none of the
    others, in any order: the smallest table first.
    """

    def size(kernel: Kernel) -> int:
        return math.prod(model.sizes[axis] for axis in {*axes, *kernel.inputs, *kernel.drawn})

    while drawn := {model.drawn_by[axis] for axis in axes if axis in model.drawn_by}:
        ready: list[Kernel] = []
        for position in sorted(drawn, reverse=True):
            ready.append(model.kernels[position].at(action))
            if any(axis in model.drawn_by for axis in ready[-1].inputs):
                break
        kernel = min(ready, key=size)
        axes = tuple(sorted({*axes, *kernel.inputs} - {*kernel.drawn}))
        yield kernel, axes


def expectation(
    model: Model, function: Table, action: int, places: Places, divide: Callable[[Any, int], Any]
) -> Table:
    """E[h(s') | s, a] as a table of current values."""
    count = len(model.variables)
    table = Table(tuple(count + axis for axis in function.axes), function.numbers)
    for kernel, rest in contractions(model, table.axes, action):
        full = (*rest, *kernel.drawn)
        refuse_if_large(places.count(full), full, "an expectation")
        chances = places.spread(Table((*kernel.inputs, *kernel.drawn), kernel.chances), full)
        products = list(map(mul, chances, places.spread(table, full)))
        outcomes = places.count(kernel.drawn)
        sums = products[::outcomes]
        for outcome in range(1, outcomes):
            sums = list(map(add, sums, products[outcome::outcomes]))
        totals = places.spread(Table(kernel.inputs, kernel.totals), rest)
        means = list(map(divide, sums, totals))
        table = Table(rest, means)
    return table


def divide_exactly(number: Any, total: int) -> Fraction:
    """A fraction."""
    return Fraction(number) / total


def divide_up(number: int, total: int) -> int:
    """The next integer from the quotient on."""
    return -(-number // total)


def expectations(model: Model, function: Table, places: Places) -> Cases[Table]:
    """E[h(s') | s, a] for every action; those under which the same is drawn share a table."""
    axes = tuple(len(model.variables) + axis for axis in function.axes)
    by_kernels: dict[tuple[Kernel, ...], Table] = {}
    by_numbers: dict[tuple[Axes, tuple[Fraction, ...]], Table] = {}

    def at(action: int) -> Table:
        kernels = tuple(kernel for kernel, _ in contractions(model, axes, action))
        if kernels not in by_kernels:
            means = expectation(model, function, action, places, divide_exactly)
            table = without_idle_axes(means, places)
            # Equal tables become one, so that whatever is made of them is made once.
            found = by_numbers.setdefault((table.axes, tuple(table.numbers)), table)
            by_kernels[kernels] = found
        return by_kernels[kernels]

    seen: set[int] = set()
    waiting = [model.drawn_by[axis] for axis in axes]
    while waiting:
        if (position := waiting.pop()) not in seen:
            seen.add(position)
            cases = model.kernels[position]
            inputs = {
                a for kernel in (cases.usual, *cases.exceptions.values()) for a in kernel.inputs
            }
            waiting += [model.drawn_by[axis] for axis in inputs & model.drawn_by.keys()]
    listed = {action for position in seen for action in model.kernels[position].exceptions}
    usual = at(next((a for a in range(len(model.actions)) if a not in listed), 0))
    found = {action: at(action) for action in sorted(listed)}
    return Cases(usual, {action: table for action, table in found.items() if table is not usual})


def refuse_if_large(size: int, axes: Sequence[int], what: str) -> None:
    """Refuse a table before it is made."""
    if size > LARGEST_TABLE:
        raise TooWideError(
            f"too wide: {what} needs a table of {decimal(Fraction(size), digits=3)} entries over "
            f"{len(axes)} variables, {decimal(Fraction(size, 2**22), digits=3)} GiB or so; the "
            f"limit is {LARGEST_TABLE} entries"
        )


# Elimination -----------------------------------------------------------------------------------


def elimination_order(scopes: Iterable[Axes]) -> list[int]:
    """Variables, first those that join the fewest others that were apart.

    Any order gives the same maximum. Among equals, the one with the shortest chain of messages
    behind it goes first: then few messages depend on any one table, and actions share the others.
    """
    neighbours: dict[int, set[int]] = {}
    for scope in set(scopes):
        for axis in scope:
            neighbours.setdefault(axis, set()).update(set(scope) - {axis})
    depth = dict.fromkeys(neighbours, 0)

    def rate(axis: int) -> tuple[int, int, int]:
        around = neighbours[axis]
        joined = sum(len(around & neighbours[other]) for other in around)
        return (len(around) * (len(around) - 1) - joined) // 2, depth[axis], axis

    rating = {axis: rate(axis) for axis in neighbours}
    waiting = list(rating.values())
    heapify(waiting)
    order = []
    while waiting:
        rated = heappop(waiting)
        axis = rated[2]
        if rating.get(axis) != rated:  # gone, or rated again since
            continue
        del rating[axis]
        order.append(axis)
        around = neighbours.pop(axis)
        touched = set(around)
        for other in around:
            touched |= neighbours[other]
            neighbours[other] |= around
            neighbours[other] -= {axis, other}
            depth[other] = max(depth[other], depth[axis] + 1)
        for other in touched & rating.keys():
            if rating[other] != (again := rate(other)):
                rating[other] = again
                heappush(waiting, again)
    return order


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """A table whose numbers are multiplied by what a step's weights say."""

    table: Table
    factor: Callable[[int], Fraction]  # of the step


@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    """The left side of the inequality: usual terms, and those that an action changes, by place.

    `places` are those of all tables in the order of a plan: functions, rewards, expectations, and
    what restricts states and actions; None where one is not used. The last are `limits`, which are
    0 wherever they allow something, and so may be added as often as one likes.
    """

    usual: Sequence[Term]
    changes: Mapping[int, Mapping[int, Term]]
    places: Sequence[int | None]
    limits: frozenset[Term] = frozenset()

    def of_action(self, action: int) -> list[Term]:
        """All terms of one action."""
        changed = self.changes.get(action, {})
        return [changed.get(place, term) for place, term in enumerate(self.usual)]

    def table(self, number: int, action: int) -> Term | None:
        """One term, as a plan counts them; None if its weight is always 0."""
        expect(0 <= number < len(self.places), "plan: elimination: no such table")
        place = self.places[number]
        return None if place is None else self.changes.get(action, {}).get(place, self.usual[place])


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """The terms of one action, by the variable with which each is eliminated."""

    action: int
    terms: tuple[Term, ...]
    rank: Mapping[int, int]  # of a variable in the order of elimination
    buckets: tuple[tuple[int, tuple[Term, ...]], ...]  # in this order
    largest: int  # entries of a table


def make_networks(all_terms: Terms, n_actions: int, places: Places) -> list[Network]:
    """One network for each action that changes some terms, and one for all the others."""
    changes = all_terms.changes
    plain = next((action for action in range(n_actions) if action not in changes), None)
    actions = [*([] if plain is None else [plain]), *sorted(changes)]
    typical = min(actions, key=lambda action: len(changes.get(action, {})))
    shared: dict[tuple[Term, ...], tuple[Term, ...]] = {}
    order = elimination_order(term.table.axes for term in all_terms.of_action(typical))
    ordinary = largest_table(order, all_terms.of_action(typical), places)[0]
    networks = []
    for action in actions:
        terms = all_terms.of_action(action)
        chosen = [
            *order,
            *sorted({axis for term in terms for axis in term.table.axes} - set(order)),
        ]
        size, axes = largest_table(chosen, terms, places)
        if size > max(ordinary, SMALL_TABLE) or size > LARGEST_TABLE:
            own = elimination_order(term.table.axes for term in terms)
            if largest_table(own, terms, places)[0] < size:
                chosen = own
                size, axes = largest_table(own, terms, places)
        refuse_if_large(size, axes, "an elimination")
        rank = {axis: position for position, axis in enumerate(chosen)}
        buckets: dict[int, list[Term]] = {axis: [] for axis in chosen}
        for term in terms:
            if term.table.axes:
                buckets[min(term.table.axes, key=rank.__getitem__)].append(term)
        # The same objects for the same terms, so that messages made of them are found again.
        kept = [(axis, tuple(bucket)) for axis, bucket in buckets.items()]
        named = tuple((axis, shared.setdefault(bucket, bucket)) for axis, bucket in kept)
        networks.append(Network(action, tuple(terms), rank, named, size))
    return networks


def largest_table(order: Sequence[int], terms: Sequence[Term], places: Places) -> tuple[int, Axes]:
    """Entries and axes of the largest table that an order of elimination needs."""
    rank = {axis: position for position, axis in enumerate(order)}
    joined = {axis: {axis} for axis in order}
    for axes in {term.table.axes for term in terms if term.table.axes}:
        joined[min(axes, key=rank.__getitem__)].update(axes)
    largest: tuple[int, Axes] = (1, ())
    for axis in order:
        largest = max(largest, (places.count(joined[axis]), tuple(sorted(joined[axis]))))
        rest = joined[axis] - {axis}
        if rest:
            joined[min(rest, key=rank.__getitem__)].update(rest)
    return largest


class Step:
    """The largest sums over all states of the terms of one step; actions share messages."""

    def __init__(self, step: int, places: Places) -> None:
        self.step = step
        self.places = places
        self._tables: dict[Term, Table] = {}
        self._messages: dict[object, Table] = {}
        self._kept = 0

    def in_units(self, term: Term) -> Table:
        """The table of a term, rounded up."""
        found = self._tables.get(term)
        if found is None:
            factor = term.factor(self.step)
            above, below = factor.numerator << UNIT_BITS, factor.denominator
            found = Table(
                term.table.axes,
                [divide_up(above * n.numerator, below * n.denominator) for n in term.table.numbers],
            )
            self._tables[term] = found
        return found

    def maximum(self, network: Network, added: list[tuple[int, list[Table]]] | None = None) -> int:
        """The largest sum, in units; the tables added up for each variable go to `added`."""
        total = sum(self.in_units(t).numbers[0] for t in network.terms if not t.table.axes)
        arrived: dict[int, list[Table]] = {}
        for axis, terms in network.buckets:
            messages = tuple(arrived.pop(axis, ()))
            message = self._messages.get((axis, terms, messages))
            if message is None or added is not None:
                tables = [*map(self.in_units, terms), *messages]
                if added is not None:
                    added.append((axis, tables))
                message = self.eliminate((axis,), tables)
                self._kept += len(message.numbers)
                if self._kept > LARGEST_MEMORY:
                    self._messages.clear()
                    self._kept = len(message.numbers)
                self._messages[axis, terms, messages] = message
            if message.axes:
                target = min(message.axes, key=network.rank.__getitem__)
                arrived.setdefault(target, []).append(message)
            else:
                total += message.numbers[0]
        return int(total)

    def eliminate(self, axes: Axes, tables: Sequence[Table]) -> Table:
        """max over some variables of the sum of tables."""
        rest = tuple(sorted({other for table in tables for other in table.axes} - {*axes}))
        full = (*rest, *axes)
        sums = [0] * self.places.count(full)
        for table in tables:
            sums = list(map(add, sums, self.places.spread(table, full)))
        size = self.places.count(axes)
        if size > 1:
            sums = list(map(max, *(sums[value::size] for value in range(size))))
        return Table(rest, sums)

    def maximiser(self, network: Network, n_axes: int) -> tuple[int, ...]:
        """An assignment with the largest sum: what goes last takes its best value first."""
        added: list[tuple[int, list[Table]]] = []
        self.maximum(network, added)
        state = [0] * n_axes
        for axis, tables in reversed(added):
            sums = []
            for value in range(self.places.sizes[axis]):
                state[axis] = value
                sums.append(sum(self.places.entry(table, state) for table in tables))
            state[axis] = sums.index(max(sums))
        return tuple(state)


class Hinted:
    """A plan's own way to bound the largest sum of each action, checked before it is used.

    At any state, a step's message is at least the sum of its terms. So a final step that leaves a
    single number has one that is at least the sum, at every state, of all tables that went into it,
    whichever way. If these are an action's terms, each as often as it should be, that is a bound.
    """

    def __init__(self, hint: Hint, terms: Terms, model: Model, places: Places) -> None:
        n_actions = len(model.actions)
        expect(len(hint.finals) == n_actions, "plan: elimination: expected a step for each action")
        self.places = places
        self.finals = hint.finals
        self.steps: list[tuple[tuple[Term, int] | int, ...]] = []
        self.axes: list[Axes] = []  # maxed out
        self.largest = 1
        scopes: list[Axes] = []
        added: list[Counter[Term]] = []
        work = 0
        for given, numbers in hint.steps:
            maxed = tuple(axis_of(model, number, places) for number in numbers)
            parts: list[tuple[Term, int] | int] = []
            total: Counter[Term] = Counter()
            for one in given:
                if len(one) == 1:
                    parts.append(one[0])
                    total.update(added[one[0]])
                    continue
                expect(0 <= one[1] < n_actions and abs(one[2]) == 1, "plan: elimination: no term")
                term = terms.table(one[0], one[1])
                if term is not None:
                    parts.append((term, one[2]))
                    total[term] += one[2]
            joined = {
                axis
                for part in parts
                for axis in (scopes[part] if isinstance(part, int) else part[0].table.axes)
            }
            size = places.count(joined | {*maxed})
            refuse_if_large(size, tuple(joined), "a step of the plan's own elimination")
            work += size * max(1, len(parts))
            self.largest = max(self.largest, size)
            self.steps.append(tuple(parts))
            self.axes.append(maxed)
            scopes.append(tuple(sorted(joined - {*maxed})))
            added.append(total)
        expect(work <= MOST_HINTED, f"the plan's own elimination takes {work} additions a step")
        for action, final in enumerate(hint.finals):
            wanted = set(terms.of_action(action)) - terms.limits
            often = {t: n for t, n in added[final].items() if n and t not in terms.limits}
            good = often == dict.fromkeys(wanted, 1) and not scopes[final]
            good = good and min(added[final].values(), default=0) >= 0
            expect(
                good, f"plan: elimination: what it adds up for action {action} is something else"
            )

    def maxima(self, now: Step) -> list[int]:
        """A number for each action that its sum nowhere exceeds."""
        made: list[Table] = []
        for parts, maxed in zip(self.steps, self.axes, strict=True):
            tables = []
            for part in parts:
                if isinstance(part, int):
                    tables.append(made[part])
                elif part[1] > 0:
                    tables.append(now.in_units(part[0]))
                else:  # what was rounded up is taken back as it was
                    table = now.in_units(part[0])
                    tables.append(Table(table.axes, [-number for number in table.numbers]))
            made.append(now.eliminate(maxed, tables))
        return [int(made[final].numbers[0]) for final in self.finals]


# Invariants ------------------------------------------------------------------------------------


def axis_of(model: Model, number: int, places: Places) -> int:
    """The axis that a plan means: variables, then those of joint actions, then counters."""
    count = len(model.variables)
    joint = len(model.actions.variables) if isinstance(model.actions, Joint) else 0
    axis = number if number < count else number - count + len(model.sizes) - joint
    expect(axis < len(places.sizes), "plan: elimination: no such variable")
    return axis


def one_by_one(axes: Axes, first: int) -> tuple[Axes, ...]:
    """Additions that count along some axes, with counters from a number on."""
    found: list[tuple[int, int, int]] = []
    last = axes[0]
    for axis in axes[1:-1]:
        found.append((last, axis, first + len(found)))
        last = found[-1][2]
    return (*found, (last, axes[-1]) if len(axes) > 1 else (last,))


def counting(
    one: Sum, additions: Sequence[Axes], allowed: Callable[[int], bool], places: Places
) -> list[Table]:
    """Tables that are all 0 for some values of new axes, the counters, where a sum is allowed.

    Each addition takes two that no other takes, and its counter is their sum, but no more than what
    is known to be beyond the limits, or to reach the lower one where there is no other. The last,
    which may do without a counter, asks whether the sum is allowed. What no addition takes counts
    for whatever makes it so.
    """
    where = "plan: invariants: additions"
    counts: dict[int, Sequence[int]] = dict(zip(one.axes, one.counts, strict=True))
    total = sum(map(max, one.counts))
    stop = one.most + 1 if one.most < total else one.least
    tables = []
    for number, addition in enumerate(additions):
        is_last = number == len(additions) - 1
        good = len(addition) == 3 or (is_last and len(addition) in (1, 2))
        expect(
            good and len(set(addition)) == len(addition), f"{where}: expected two, and their sum"
        )
        taken = addition[:2]
        expect(counts.keys() >= set(taken), f"{where}: taken twice, or not there yet")
        sums = [sum(values) for values in product(*(counts.pop(axis) for axis in taken))]
        capped = [min(total, stop) for total in sums]
        free = possible_sums(counts.values()) if is_last else {0}
        good_sums = {n for n in capped if not is_last or any(allowed(n + more) for more in free)}
        if len(addition) < 3:
            tables.append(Table(taken, [Fraction(0) if n in good_sums else NEVER for n in capped]))
            continue
        axis = places.another(max(capped) + 1)
        expect(axis == addition[2], f"{where}: expected counters in order")
        counts[axis] = range(max(capped) + 1)
        fitting = [n == m and n in good_sums for n in capped for m in counts[axis]]
        tables.append(Table((*taken, axis), [Fraction(0) if fits else NEVER for fits in fitting]))
    return tables


def possible_sums(counts: Iterable[Iterable[int]]) -> set[int]:
    """What several may add up to."""
    sums = {0}
    for values in counts:
        sums = {before + value for before in sums for value in set(values)}
    return sums


def limits_of(
    model: Model, claim: Claim, held: Sequence[bool], places: Places
) -> list[Table | None]:
    """What restricts joint actions and states, in the order of a plan; None where not proved."""
    found: list[Table | None] = []
    used = list(claim.restrictions)
    if isinstance(model.actions, Joint):
        first = len(model.sizes) - len(model.actions.variables)
        found += forbidden_tables(model.actions, first, places)
        able = [at for at, (_, size) in enumerate(model.actions.variables) if size > 1]
        most = model.actions.at_most
        if most is not None and most < len(able):
            sizes = [model.actions.variables[at][1] for at in able]
            counts = tuple((0, *(1 for _ in range(1, size))) for size in sizes)
            limit = Sum(tuple(first + at for at in able), counts, 0, most)
            told = used.pop(0).additions if used and used[0].invariant < 0 else ()
            found += counted_limit(model, limit, told, places)
    for one in used:
        expect(one.invariant >= 0, "plan: invariants: no limit on joint actions")
        invariant = claim.invariants[one.invariant]
        if isinstance(invariant, Local):
            tables = [local_table(invariant, lambda allowed: allowed)]
        else:
            tables = counted_limit(model, invariant, one.additions, places)
        found += tables if held[one.invariant] else [None] * len(tables)
    return found


def forbidden_tables(actions: Joint, first: int, places: Places) -> list[Table]:
    """0 where joint actions are not forbidden; axes are those from the first on."""
    found = []
    for positions, rows in actions.forbidden:
        axes = tuple(first + position for position in positions)
        refuse_if_large(places.count(axes), axes, "a table of forbidden actions")
        never = set(rows)
        every = product(*(range(places.sizes[axis]) for axis in axes))
        found.append(Table(axes, [NEVER if row in never else Fraction(0) for row in every]))
    return found


def counted_limit(model: Model, one: Sum, additions: Sequence[Axes], places: Places) -> list[Table]:
    """A sum within its limits, counted as a plan says, or one after another."""
    if not additions:
        return counting(one, one_by_one(one.axes, len(places.sizes)), one.allows, places)
    made = range(len(places.sizes), len(places.sizes) + len(additions))
    joint = len(model.actions.variables) if isinstance(model.actions, Joint) else 0
    shift = len(model.sizes) - joint - len(model.variables)
    own = [
        tuple(a if a < len(model.variables) else a + shift for a in addition)
        for addition in additions
    ]
    expect(all(a < made.stop for addition in own for a in addition), "plan: invariants: additions")
    return counting(one, own, one.allows, places)


def local_table(one: Local, allowed: Callable[[bool], bool], shift: int = 0) -> Table:
    """0 where values are allowed; axes may be shifted to those of the next values."""
    numbers = [Fraction(0) if allowed(good) else NEVER for good in one.allowed]
    return Table(tuple(axis + shift for axis in one.axes), numbers)


def prove_invariants(model: Model, claim: Claim, tell: Tell) -> list[bool]:
    """Which invariants hold at the start and are preserved by every step from where all do.

    Those that are not are taken out, and the others looked at again without them.
    """
    held = [holds_at_start(model, one) for one in claim.invariants]
    supports: dict[Kernel, Term] = {}
    fallen = True
    while fallen:
        fallen = False
        known = [one for one, good in zip(claim.invariants, held, strict=True) if good]
        for number, one in enumerate(claim.invariants):
            tell(f"invariants: {number} of {len(held)}")
            if held[number] and not is_preserved(model, one, known, supports):
                held[number], fallen = False, True
    return held


def holds_at_start(model: Model, one: Local | Sum) -> bool:
    """Whether it holds at every state with which an episode may start."""
    values = [[v for v, p in enumerate(model.initial[axis]) if p] for axis in one.axes]
    if isinstance(one, Sum):
        rows = ([c[v] for v in some] for c, some in zip(one.counts, values, strict=True))
        return all(map(one.allows, possible_sums(rows)))
    places = Places(model.sizes)
    refuse_if_large(math.prod(map(len, values)), one.axes, "an invariant")
    allowed = Table(tuple(range(len(one.axes))), one.allowed)
    places.sizes = [model.sizes[axis] for axis in one.axes]
    return all(places.entry(allowed, row) for row in product(*values))


def is_preserved(
    model: Model, one: Local | Sum, known: Sequence[Local | Sum], supports: dict[Kernel, Term]
) -> bool:
    """Whether no step leads from a state in which all that is known holds to one where it fails.

    The sum of tables that are 0 where something is possible is 0 somewhere, or else there is no
    such step. What is too large to look at counts as possible.
    """
    count = len(model.variables)
    after = tuple(count + axis for axis in one.axes)
    looked_at: set[tuple[Kernel, ...]] = set()
    for action in range(len(model.actions)):
        kernels = kernels_of(model, after, action)
        if kernels in looked_at:
            continue
        looked_at.add(kernels)
        places = Places(model.sizes)
        terms = []
        for kernel in kernels:
            if kernel not in supports:
                numbers = [Fraction(0) if chance else NEVER for chance in kernel.chances]
                table = Table((*kernel.inputs, *kernel.drawn), numbers)
                supports[kernel] = Term(table, lambda _: Fraction(1))
            terms.append(supports[kernel])
        tables = []
        seen = {axis for kernel in kernels for axis in kernel.inputs}
        if isinstance(one, Sum):
            seen |= {*one.axes}
            now = one_by_one(one.axes, len(places.sizes))
            tables += counting(one, now, one.allows, places)
            later = Sum(after, one.counts, one.least, one.most)
            then = one_by_one(after, len(places.sizes))
            tables += counting(later, then, lambda total: not one.allows(total), places)
        else:
            tables.append(local_table(one, lambda allowed: not allowed, count))
        for other in known:
            if isinstance(other, Local) and seen.issuperset(other.axes):
                tables.append(local_table(other, lambda allowed: allowed))
        if isinstance(model.actions, Joint):
            first = len(model.sizes) - len(model.actions.variables)
            tables += forbidden_tables(model.actions, first, places)
        terms += [Term(table, lambda _: Fraction(1)) for table in tables]
        try:
            (network,) = make_networks(Terms(terms, {}, ()), 1, places)
        except TooWideError:
            return False
        if Step(0, places).maximum(network) >= 0:
            return False
    return True


def kernels_of(model: Model, axes: Axes, action: int) -> tuple[Kernel, ...]:
    """The kernels that draw some axes, and what these look at, and so on."""
    found: set[int] = set()
    waiting = [model.drawn_by[axis] for axis in axes]
    while waiting:
        if (position := waiting.pop()) not in found:
            found.add(position)
            inputs = model.kernels[position].at(action).inputs
            waiting += [model.drawn_by[axis] for axis in inputs if axis in model.drawn_by]
    return tuple(model.kernels[position].at(action) for position in sorted(found))


# The verdict -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Excess:
    """The largest left side of a step's inequality: at most `most`, and `here` at a state."""

    step: int
    most: Fraction
    here: Fraction
    state: tuple[int, ...]
    action: str


@dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """What was found of a plan's claim."""

    claim: Claim
    bound: Fraction  # E[V_1]
    steps: tuple[Excess, ...]
    at_start: tuple[Fraction, Fraction] | None  # the best policy earns from this up to this
    largest_table: int
    seconds: float
    invariants: tuple[bool, ...] = ()  # whether each was proved

    @property
    def tightest(self) -> Excess:
        """The step that is nearest to a violation, or beyond."""
        return max(self.steps, key=lambda one: one.most)

    @property
    def slack(self) -> Fraction:
        """By how much every inequality holds at least; negative where one was not proved."""
        return -self.tightest.most

    @property
    def tighter(self) -> bool | None:
        """Whether a tighter claim for the start is proved; None if there is none, or who knows."""
        if self.claim.at_start is None or self.at_start is None:
            return None
        low, high = self.at_start
        return True if high <= self.claim.at_start else False if low > self.claim.at_start else None

    @property
    def proved(self) -> bool:
        """Whether the bound by elimination was proved, and no tighter claim refuted."""
        return (
            self.slack >= 0 and self.bound <= self.claim.upper_bound and self.tighter is not False
        )

    @property
    def claims_more(self) -> bool:
        """Whether the plan claims less at the start than its weights give."""
        return self.claim.at_start is not None and self.claim.at_start < self.bound

    @property
    def best(self) -> Fraction:
        """The least that was proved for the start, where anything was."""
        return self.bound if self.at_start is None else min(self.bound, self.at_start[1])

    def lines(self) -> list[str]:
        """The verdict in words."""
        claim, worst = self.claim, self.tightest
        where = f"step {worst.step}, action {worst.action!r}"
        state = f"state {short(list(worst.state))}"
        claimed = decimal(claim.upper_bound, down=not self.proved)
        if self.slack < 0 and worst.here > 0:
            missing = decimal(worst.here, down=True)
            first = f"REFUTED: V >= R + E V' fails by {missing} at {where}, {state}."
        elif self.slack < 0:
            first = f"NOT PROVED: V >= R + E V' at {where}, {state}, is too close to call."
        elif self.bound > claim.upper_bound:
            first = f"REFUTED: the plan claims {claimed}, its weights prove {decimal(self.bound)}."
        elif self.tighter is False:
            first = "REFUTED: some policy earns more from the start than the plan claims."
        else:
            part = " IN PART" if self.tighter is None and self.claims_more else ""
            first = f"PROVED{part}: no policy earns more than {decimal(self.best)} from the start."
        found = [first]
        if self.slack >= 0:
            spare = decimal(self.slack, down=True)
            found.append(
                f"V >= R + E V' at every state and step, {spare} to spare; tightest at {where}."
            )
            found.append(f"By weights: {decimal(self.bound)}; the plan claims {claimed}.")
        if claim.at_start is not None and self.claims_more:
            start = decimal(claim.at_start, down=self.tighter is False)
            words = {True: "proved", False: "refuted", None: "not proved by anything in the file"}
            found.append(f"By {claim.reason}: the plan claims {start}; {words[self.tighter]}.")
        if self.invariants:
            proved, all_of_them = sum(self.invariants), len(self.invariants)
            found.append(
                f"That is where invariants hold, which no action leaves: {proved} of {all_of_them} "
                "were proved, and the others not used."
            )
        steps = f"{len(self.steps)} step" + "s" * (len(self.steps) > 1)
        size = f"largest table {self.largest_table} entries"
        return [*found, f"{steps}, {size}, {self.seconds:.1f} s"]


def decimal(number: Fraction, down: bool = False, digits: int = 12) -> str:
    """Some digits, rounded up, or down, to the side that is safe."""
    context = Context(digits, ROUND_FLOOR if down else ROUND_CEILING, MIN_EMIN, MAX_EMAX)
    quotient = context.divide(Decimal(number.numerator), Decimal(number.denominator))
    return f"{quotient:.{digits}g}" if quotient else "0"


def check(model: Model, claim: Claim, tell: Tell = lambda _: None) -> Verdict:
    """Prove or refute what a plan claims of a model."""
    began = time.perf_counter()
    for what in ("variables", "actions", "horizon", "discount"):
        same = getattr(model, what) == getattr(claim, what)
        expect(same, f"the plan is for another model: {what} differ")
    places = Places(model.sizes)
    held = prove_invariants(model, claim, tell)
    terms = bellman_terms(model, claim, places, tell)
    terms = restricted(terms, limits_of(model, claim, held, places))
    try:
        steps, widest = by_elimination(model, claim, terms, places, tell)
    except TooWideError:
        if claim.hint is None:
            raise
        steps, widest = by_hint(model, claim, claim.hint, terms, places, tell)
    bound = mean_at_start(model, zip(claim.weights[0], claim.functions, strict=True))
    feasible = all(one.most <= 0 for one in steps)
    at_start = None
    if feasible and claim.at_start is not None and claim.at_start < bound:
        at_start = values_at_start(model, claim, claim.at_start, places, tell)
    seconds = time.perf_counter() - began
    return Verdict(claim, bound, tuple(steps), at_start, widest, seconds, tuple(held))


def restricted(terms: Terms, limits: Sequence[Table | None]) -> Terms:
    """The same left side where limits allow it."""
    usual, places = list(terms.usual), list(terms.places)
    for table in limits:
        places.append(None if table is None else len(usual))
        if table is not None:
            usual.append(Term(table, lambda _: Fraction(1)))
    return Terms(usual, terms.changes, places, frozenset(usual[len(terms.usual) :]))


def name_of(model: Model, action: int, assignment: Sequence[int]) -> str:
    """The action, of a list or of an assignment of all axes."""
    if not isinstance(model.actions, Joint):
        return model.actions[action]
    first = len(model.sizes) - len(model.actions.variables)
    return model.actions.name(assignment[first : len(model.sizes)])


def by_elimination(
    model: Model, claim: Claim, terms: Terms, places: Places, tell: Tell
) -> tuple[list[Excess], int]:
    """The largest left side of every step, and where; and the entries of the largest table."""
    networks = make_networks(terms, len(model.actions), places)
    steps = []
    for step in range(len(claim.weights)):
        now = Step(step, places)
        found = []
        for number, network in enumerate(networks):
            found.append(now.maximum(network))
            tell(f"step {step + 1} of {len(claim.weights)}, action {number + 1} of {len(networks)}")
        network = networks[found.index(max(found))]
        at = now.maximiser(network, len(places.sizes))
        here = sum(term.factor(step) * places.entry(term.table, at) for term in network.terms)
        state, name = at[: len(model.variables)], name_of(model, network.action, at)
        steps.append(Excess(step + 1, max(found) * UNIT, here, state, name))
    return steps, max(network.largest for network in networks)


def by_hint(
    model: Model, claim: Claim, hint: Hint, terms: Terms, places: Places, tell: Tell
) -> tuple[list[Excess], int]:
    """A number that the left side of every step nowhere exceeds, the plan's own way.

    It is attained at no state, so that it may prove the claim but not refute it.
    """
    hinted = Hinted(hint, terms, model, places)
    steps = []
    for step in range(len(claim.weights)):
        tell(f"step {step + 1} of {len(claim.weights)}, by the plan's own elimination")
        found = hinted.maxima(Step(step, places))
        action = found.index(max(found))
        at = (0,) * len(places.sizes)
        here = sum(
            (t.factor(step) * places.entry(t.table, at) for t in terms.of_action(action)),
            Fraction(),
        )
        state, name = at[: len(model.variables)], name_of(model, action, at)
        steps.append(Excess(step + 1, max(found) * UNIT, here, state, name))
    return steps, hinted.largest


def bellman_terms(model: Model, claim: Claim, places: Places, tell: Tell) -> Terms:
    """The left side of the inequality: usual terms, and those that an action changes, by place."""
    usual: list[Term] = []
    changes: dict[int, dict[int, Term]] = {}

    def include(cases: Cases[Table], factor: Callable[[int], Fraction]) -> None:
        known = {table: Term(table, factor) for table in (cases.usual, *cases.exceptions.values())}
        for action, table in cases.exceptions.items():
            changes.setdefault(action, {})[len(usual)] = known[table]
        usual.append(known[cases.usual])

    def weight(j: int, sign: int, step: int) -> Fraction:
        return sign * claim.weights[step][j]

    def weight_after(j: int, step: int) -> Fraction:
        after = step if claim.horizon is None else step + 1
        return (
            model.discount * claim.weights[after][j] if after < len(claim.weights) else Fraction()
        )

    rewards = range(len(model.rewards))
    for reward in model.rewards:
        include(reward, lambda _: Fraction(1))
    functions: list[int | None] = [None] * len(claim.functions)
    means: list[int | None] = [None] * len(claim.functions)
    used = [j for j in range(len(claim.functions)) if any(row[j] for row in claim.weights)]
    for number, j in enumerate(used):
        tell(f"expectations: {number} of {len(used)} functions")
        function = without_idle_axes(claim.functions[j], places)
        functions[j], means[j] = len(usual), len(usual) + 1
        include(Cases(function, {}), partial(weight, j, -1))
        include(expectations(model, function, places), partial(weight_after, j))
    return Terms(usual, changes, (*functions, *rewards, *means))


def mean_at_start(model: Model, terms: Iterable[tuple[Fraction, Table]]) -> Fraction:
    """E[sum of weights times functions] at the start, where variables are independent."""
    total = Fraction(0)
    for weight, function in terms:
        chances = product(*(model.initial[axis] for axis in function.axes))
        for row, number in zip(chances, function.numbers, strict=True):
            if weight and number and all(row):
                total += weight * number * math.prod(row, start=Fraction(1))
    return total


def values_at_start(
    model: Model, claim: Claim, target: Fraction, places: Places, tell: Tell
) -> tuple[Fraction, Fraction] | None:
    """Between what and what the best policy earns, by the values of all states; None if too many.

    V_l = max over a of R + discount * E[V_{l+1}], rounded up, from V = 0 at the end. Without a
    horizon, sweeps start from the V of the weights, which was proved to lie above, and V stays
    above. If the last one lowered V by at most c, and rounding raised it by at most e, then V is
    above V* by at most (e + discount * c) / (1 - discount).
    """
    states = tuple(range(len(model.variables)))
    drawn = tuple(len(states) + axis for axis in states)
    size = places.count(states)
    actions = range(len(model.actions))
    if size * len(actions) > LARGEST_MEMORY or isinstance(model.actions, Joint):
        return None
    parts = [
        places.count((*axes, *kernel.drawn))
        for action in actions
        for kernel, axes in contractions(model, drawn, action)
    ]
    sweeps = MOST_WORK // sum(parts, size * len(actions))
    if max(parts) > LARGEST_TABLE or sweeps < (model.horizon or 1):
        return None
    now = Step(0, places)

    def added(terms: Iterable[Term]) -> list[int]:
        numbers = [0] * size
        for term in terms:
            numbers = list(map(add, numbers, places.spread(now.in_units(term), states)))
        return numbers

    rewards = {
        action: added(Term(cases.at(action), lambda _: Fraction(1)) for cases in model.rewards)
        for action in actions
    }
    values = [0] * size
    if claim.horizon is None:
        pairs = zip(claim.functions, claim.weights[0], strict=True)
        values = added(Term(table, lambda _, w=weight: w) for table, weight in pairs)  # type: ignore[misc]
    above, below = model.discount.numerator, model.discount.denominator
    roundings = len(model.kernels) + len(model.rewards) + 1  # in each sweep, each by less than 1
    for sweep in range(model.horizon or sweeps):
        tell(f"values of {size} states, sweep {sweep + 1} of {model.horizon or sweeps}")
        before, values = values, []
        for action in actions:
            means = expectation(model, Table(states, before), action, places, divide_up)
            later = (divide_up(above * mean, below) for mean in places.spread(means, states))
            totals = list(map(add, rewards[action], later))
            values = list(map(max, values, totals)) if values else totals
        if model.horizon is None or sweep + 1 == model.horizon:
            high = mean_at_start(model, [(UNIT, Table(states, values))])
            if model.horizon is None:
                fallen = max(0, *map(sub, before, values))
                error = (roundings + model.discount * fallen) / (1 - model.discount)
            else:
                error = Fraction(roundings * model.horizon)
            found = high - error * UNIT, high
            if target >= found[1] or target < found[0]:
                break
    return found


def progress(every: float = 2.0) -> Tell:
    """Lines on the error stream, some seconds apart."""
    last = began = time.perf_counter()

    def tell(text: str) -> None:
        nonlocal last
        now = time.perf_counter()
        if now - last >= every:
            last = now
            print(f"{now - began:6.0f} s  {text}", file=sys.stderr, flush=True)

    return tell


def main(arguments: Sequence[str]) -> int:
    """0 if the plan's bound was proved, 1 if not, 2 if there is nothing that can be checked."""
    if len(arguments) != 2:
        print("usage: checker.py MODEL.json PLAN.npz", file=sys.stderr)
        return 2
    try:
        model = read_model(read_bytes(arguments[0], LARGEST_MODEL))
        claim = read_claim(read_bytes(arguments[1], LARGEST_PLAN))
        verdict = check(model, claim, progress())
    except BadInputError as error:
        print(f"checker: {error}", file=sys.stderr)
        return 2
    print("\n".join(verdict.lines()))
    return 0 if verdict.proved else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
