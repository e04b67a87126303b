"""Proves or refutes the bound of a plan file for a model file: python checker.py MODEL PLAN.

This file imports nothing but Python's standard library and shares no code with the planners: who
doubts a bound reads this file, from top to bottom.

**The claim.** A plan holds weights w_lj of functions h_j, with V_l(s) = sum_j w_lj h_j(s). If

    R(s, a) + discount * E[V_{l+1}(s') | s, a] - V_l(s) <= 0   for all steps l, states s, actions a

then V_l lies above the value of every policy: by induction backwards from V_{horizon + 1} = 0, or,
without a horizon, where V_{l+1} is V_l, because the discount is below 1. So no policy earns more
than E[V_1] under the distribution of the start. Where an action is not allowed in a state, nothing
is asked of the two; in a terminal state, where an episode is over and nothing is earned any more,
0 - V_l(s) <= 0 takes the place of all others.

**The proof.** The left side is a sum of tables of a few variables each: rewards, expectations of
the functions after one step, and the functions themselves. A schedule adds some of them up, takes
the maximum over some variables, adds the result to others, and so on until a number is left. This
is at least the sum, at every state, of all tables that went in, whichever way; that these are the
terms of the left side is checked. So it does not matter where a schedule comes from: it is found
here, or, where that is too wide, it is what the plan says of its own elimination.

**The numbers.** Every number in the files is a binary float, taken as the rational that it is. A
row of probabilities means its entries divided by their sum. Expectations are fractions. Then every
table is made of integers in units of 2^-1200, rounded up: that may hide a proof but never make one.
Where the left side is largest, it is evaluated again in fractions.

**Where it holds.** Conditions on actions and terminal states, limits on joint actions, and
invariants, which a plan may name, are tables that have 0 where they hold and a huge negative number
elsewhere. An invariant is used if it is proved
here, from zero and positive probabilities: that it holds at the start, and after a step from any
state in which all of them hold. No policy leaves these states; there the inequality is needed.

**More at the start.** A plan may claim less for the start than its weights prove, because exact
values or a search say so. Then it names the states whose values prove it: all of them, whose values
are computed here where they are few, or some; `values.py` beside this file does so for more.

Nothing in a plan is trusted: what it says of its solver is not read.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import struct
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from itertools import chain, product
from operator import add, mul, sub
from pathlib import Path
from typing import Any

MODEL, PLAN = ("fsmdp-model", 1), ("fsmdp-plan", 6)  # formats and versions
LARGEST_TABLE, LARGEST_MEMORY = 2**20, 2**22  # entries, of about 250 bytes: one table, all
LARGEST_PLAN, LARGEST_TEXT = 2**28, 2**26  # bytes: of a plan when unpacked, of a description
MOST_ITEMS = 2**22  # entries of lists and objects of a description
MOST_COUNTED, MOST_TIMES = 2**12, 2**40  # what values may count for together; uses of a message
MOST_BITS = 2**32  # of all numbers of a table of expectations
MOST_MEANS, MOST_SUMS = 2**22, 10**9  # functions times actions; entries added up at all steps
MOST_WORK, FEW_WORK = 25 * 10**6, 10**6  # states times kernels to average: a minute, seconds
MOST_SWEEPS = 1000  # over all states, without a horizon
UNITS = 2**1200  # to one; finer than the smallest float, 2^-1074
NEVER = -(2**1200)  # any number below 0 can hide, never make, a proof
END = "end of the episode"  # in place of an action, in a terminal state

MEMBER = re.compile(r"[a-z_]+(/[a-z_]+){0,2}\.npy")
ARRAY = re.compile(
    r"\{'descr': '([<|][biufU][0-9]{1,9})', 'fortran_order': False, 'shape': (\([0-9, ]*\)), \} *\n"
)

LOOKUP = ["q_entries", *(f"lookup_exception_{name}" for name in ("start", "item", "table"))]
LOOKUP += ["lookup_defaults", "lookup_offset"]
LOOKUP += [*(f"lookup_input_{name}" for name in ("start", "slot", "stride"))]

KEYS = {"format", "version", "variables", "actions", "horizon", "discount"}
KEYS |= {"scopes", "functions", "bound_weights", "upper_bound", "at_start", "proof", "start_proof"}
KEYS |= {"elimination", "invariants", "restrictions"}
KEYS |= {"method", "status", "objective", "dual_bound", "certified_objective", "witness", "view"}
KEYS |= {"policy", "incumbent", "candidates", "log", "induced_width", "rows", "columns"}
KEYS |= {"iterations", "seconds", "choices"}  # this line and the two above are not read

Axes = tuple[int, ...]
Sizes = Mapping[int, int]


class BadInputError(Exception):
    """A file that cannot be read, or a network too wide for this checker."""


class TooWideError(BadInputError):
    """A network whose elimination needs too large a table."""


def expect(condition: object, message: str) -> None:
    """Refuse the input unless a condition holds."""
    if not condition:
        raise BadInputError(message)


# Data ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """One number for each assignment of its axes, the last axis fastest."""

    axes: Axes
    numbers: Sequence[Any]  # all fractions, or all integers


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """Probabilities of what is drawn: whole numbers, to be divided by the total of their row."""

    drawn: Axes
    chances: Table  # of what the kernel depends on, then of what is drawn
    totals: Table  # of what the kernel depends on


@dataclass(frozen=True, slots=True)
class Sum:
    """What the values of some variables count for adds up to a number from `least` to `most`."""

    axes: Axes
    counts: tuple[Axes, ...]  # for each axis, of each value
    least: int
    most: int


Limit = Table | Sum  # a table is 0 where values are allowed together, and NEVER elsewhere
Draws = Mapping[int, Kernel]  # by axis, what draws it


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A model in fractions.

    Axis p is the current value of variable p, and axis ~p = -1 - p its next one; the negative axes
    beyond are latents, drawn in the same step, the positive ones variables of joint actions. These
    come with rules, and with one entry of `draws` and `rewards` instead of one for each action.
    """

    about: Mapping[str, Any]  # variables, actions, horizon, discount, as a plan has them, too
    n_variables: int
    horizon: int | None
    discount: Fraction
    sizes: Sizes  # by axis
    draws: Sequence[Draws]  # under each action
    rewards: Sequence[Sequence[Table]]  # under each action
    start: Draws  # of the first state
    rules: Sequence[Limit]  # on joint actions
    allowed: Sequence[Sequence[Table]]  # under each action: 0 where it is allowed, NEVER elsewhere
    ends: Sequence[Table]  # 0 where the episode is over, NEVER elsewhere


@dataclass(frozen=True, slots=True)
class Box:
    """Values that some variables never leave, and the variables that matter there."""

    variables: Axes
    values: tuple[Axes, ...]
    kept: Axes


@dataclass(frozen=True, slots=True, eq=False)
class Start:
    """States whose values prove a tighter claim for the start: some, or all of them."""

    states: bytes | None  # values of variables, one state after another; None: all states
    width: int  # bytes of each value
    values: bytes | None  # floats, one for each state; None with a horizon
    boxes: Sequence[Box] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Regions:
    """Regions with prices, which prove a tighter claim for the start; `regions.py` says how."""

    interiors: Sequence[Axes]
    boundaries: Sequence[Axes]  # of state variables and action variables
    shares: Sequence[Sequence[tuple[int, int]]]  # a reward term, among how many it is shared
    hub: Axes  # reward terms
    sets: Sequence[frozenset[int]]  # of actions
    unit: Fraction  # of prices, a power of two
    is_joint: bool
    features: bytes  # (n, 5) of 4 bytes: an axis and its value, twice, and a set; -1: none
    members: bytes  # (n, 2) of 4 bytes: a feature and a region, -1 for the hub
    prices: bytes  # (n_members, steps) of 8 bytes


@dataclass(frozen=True, slots=True, eq=False)
class Claim:
    """What a plan claims: functions, their weights at each step, and what follows at the start."""

    functions: Sequence[Table]
    weights: Sequence[Sequence[Fraction]]  # (steps, functions)
    upper_bound: Fraction
    at_start: Fraction | None  # tighter, for a reason that is not in the weights
    reason: str
    hint: Mapping[str, Any] | None = None  # the plan's own schedule
    invariants: Sequence[Limit] = ()
    restrictions: Sequence[tuple[int, Sequence[Axes]]] = ()  # invariants in use; additions of a sum
    start: Start | Regions | None = None  # why less is claimed for the start


# Reading ---------------------------------------------------------------------------------------


def read(data: Any, form: Any, where: str) -> Any:
    """Data of a form, or an error that says where it has another.

    A form is an object by its keys, of which those with a question mark may be missing; [form], a
    list; {form}, a list of different items; (form, form), a pair; [None, form], null or a form; a
    range, a whole number; str, a name; Fraction, the float next to what is written; object, all.
    """
    if isinstance(form, dict):
        expect(isinstance(data, dict), f"{where}: expected an object")
        parts = {key.removesuffix("?"): one for key, one in form.items()}
        wrong = (data.keys() - parts) | ({key for key in form if key[-1] != "?"} - data.keys())
        expect(not wrong, f"{where}: missing or unknown key {short(min(wrong, default=''))!r}")
        return {key: read(one, parts[key], f"{where}: {key}") for key, one in data.items()}
    if isinstance(form, list) and form[0] is None:
        return None if data is None else read(data, form[1], where)
    if isinstance(form, list | set | tuple):
        expect(isinstance(data, list), f"{where}: expected a list")
        forms = form if isinstance(form, tuple) else [*form] * len(data)
        expect(len(data) == len(forms), f"{where}: expected a list of {len(forms)}")
        found = [read(*pair, where) for pair in zip(data, forms, strict=True)]
        good = not isinstance(form, set) or len({*found}) == len(found)
        expect(good, f"{where}: expected different ones, found one twice")
        return found
    if isinstance(form, range):
        good = type(data) is int and data in form
        expect(good, f"{where}: expected a whole number from {form[0]} to {form[-1]}")
    if form is str:
        good = (
            isinstance(data, str)
            and data != ""
            and not any("\ud800" <= c <= "\udfff" for c in data)
        )
        expect(good, f"{where}: expected a name")  # half of a surrogate pair cannot be written
    if form is Fraction:
        good = type(data) in (int, float) and abs(data) <= sys.float_info.max
        expect(good, f"{where}: expected a finite number")
        return Fraction(float(data))
    return data


WHOLE = range(2**31)
VARIABLES = [{"name": str, "size": range(1, 2**16 + 1), "labels?": {str}}]  # labels say nothing
CASES = [{"actions": object, "parents?": {str}, "drawn?": {str}, "table": object}]
REWARD_FORM = {"name": str, "cases": CASES, "low": Fraction, "high": Fraction, "sigma?": Fraction}
MODEL_FORM = {
    **{"format": str, "version": WHOLE, "digest?": [None, str], "actions": object},
    **{"variables": VARIABLES, "latents?": VARIABLES, "initial": object, "rewards": [REWARD_FORM]},
    **{"conditionals": [{"children": {str}, "cases": CASES}], "discount?": Fraction},
    **{"allowed?": CASES, "terminal?": [{"variables": {str}, "table": object}]},
    "horizon": [None, range(1, 10**9)],
}
FORBIDDEN_FORM = {"variables": {str}, "values": [[WHOLE]]}
JOINT_FORM = {"variables": VARIABLES, "at_most?": [None, WHOLE[1:]], "forbidden?": [FORBIDDEN_FORM]}


def short(value: object) -> str:
    """A value, or an error, in one short line."""
    text = " ".join(str(value).split())
    return text if len(text) <= 200 else text[:200] + "..."


def read_json(content: bytes, where: str, known: tuple[str, int]) -> dict[str, Any]:
    """An object of a known format and version, without repeated keys."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        expect(len(dict(pairs)) == len(pairs), f"{where}: an object has a key twice")
        return dict(pairs)

    def refuse(name: str) -> None:
        raise BadInputError(f"{where}: {name} is no number of JSON")

    items = content.count(b",") + content.count(b"[") + content.count(b"{")
    good = len(content) <= LARGEST_TEXT and items <= MOST_ITEMS
    limits = f"the limits are {LARGEST_TEXT} bytes and {MOST_ITEMS} entries"
    expect(good, f"{where}: {len(content)} bytes with {items} entries are too large; {limits}")
    try:
        data = json.loads(content.decode(), object_pairs_hook=once, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise BadInputError(f"{where}: not JSON: {short(error)}") from None
    good = isinstance(data, dict) and (data.get("format"), data.get("version")) == known
    expect(good, f"{where}: expected format and version {known}")
    return dict(data)


def read_model(content: bytes) -> Model:
    """A model from the bytes of its file."""
    data = read(read_json(content, "model", MODEL), MODEL_FORM, "model")
    if (digest := data.get("digest")) is not None:
        blank = content.replace(digest.encode(errors="replace"), b"0" * 64, 1)
        good = len(digest) == 64 and hashlib.sha256(blank).hexdigest() == digest
        expect(good, "model: changed since it was written; if on purpose, remove its digest")
    is_joint, variables = isinstance(data["actions"], dict), data["variables"]
    joint: Any = read(data["actions"], JOINT_FORM, "actions") if is_joint else {"variables": []}
    actions = [""] if is_joint else read(data["actions"], {str}, "actions")  # "" is in no case
    inputs, outputs = variables + joint["variables"], variables + data.get("latents", [])
    good = variables and actions and len(inputs) - len(variables) >= is_joint
    expect(good, "model: expected at least one variable and action")
    read([one["name"] for one in outputs + joint["variables"]], {str}, "names of variables")
    current = {one["name"]: axis for axis, one in enumerate(inputs)}
    drawable = {one["name"]: ~axis for axis, one in enumerate(outputs)}
    sizes = {axis: one["size"] for axis, one in enumerate(inputs)}
    sizes |= {~axis: one["size"] for axis, one in enumerate(outputs)}

    def axes_of(names: Sequence[str], known: Mapping[str, int], where: str) -> Axes:
        unknown = ", ".join(name for name in names if name not in known)
        expect(not unknown, f"{where}: unknown, or not drawn yet: {short(unknown)}")
        return tuple(known[name] for name in names)

    def table_of(nested: Any, axes: Axes, where: str) -> Table:
        numbers = [nested]
        for axis in axes:
            good = all(isinstance(part, list) and len(part) == sizes[axis] for part in numbers)
            expect(good, f"{where}: expected nested lists of shape {[sizes[a] for a in axes]}")
            numbers = list(chain.from_iterable(numbers))
        return Table(axes, read(numbers, [Fraction], where))

    def kernel_of(table: Table, drawn: Axes, where: str) -> Kernel:
        unit = max(number.denominator for number in table.numbers)  # all are powers of two
        chances, width = [int(number * unit) for number in table.numbers], count(drawn, sizes)
        totals = [sum(chances[at : at + width]) for at in range(0, len(chances), width)]
        good = min(chances) >= 0 and all(abs(Fraction(n, unit) - 1) <= 1e-9 for n in totals)
        expect(good, f"{where}: expected probabilities of at least 0 with a sum of 1")
        inputs = table.axes[: -len(drawn)]
        return Kernel(drawn, Table(table.axes, chances), Table(inputs, totals))

    def by_action(at: int, one: Any, children: Axes, known: Mapping[str, int]) -> list[Any]:
        """What draws the children, or the reward if there are none, under each action."""
        where = f"{'conditional' if children else 'reward'} {at}"
        found: dict[str | None, Any] = {}  # None: under all that no case names
        for case in one["cases"]:
            axes = axes_of(case.get("parents", []), current, where)
            axes += axes_of(case.get("drawn", []), known, where) + children
            item: Any = table_of(case["table"], axes, where)
            if children:
                item = kernel_of(item, children, where)
            names = [None] if case["actions"] == "any" else read(case["actions"], {str}, where)
            good = {*names} <= {None, *actions} and not found.keys() & {*names}
            expect(good, f"{where}: an action is unknown, or in two cases")
            found |= dict.fromkeys(names, item)
        expect(None in found or len(found) == len(actions), f"{where}: an action is in no case")
        return [found.get(action, found.get(None)) for action in actions]

    drawn: dict[str, int] = {}  # what the conditionals so far draw
    draws: list[dict[int, Kernel]] = [{} for _ in actions]
    for at, one in enumerate(data["conditionals"]):
        children = axes_of(one["children"], drawable, f"conditional {at}")
        good = children and not {*children} & {*drawn.values()}
        expect(good, f"conditional {at}: it draws nothing, or what was drawn before")
        for drawing, kernel in zip(draws, by_action(at, one, children, drawn), strict=True):
            drawing |= dict.fromkeys(children, kernel)
        drawn |= {name: drawable[name] for name in one["children"]}
    missing = ", ".join(name for name in drawable if name not in drawn)
    expect(not missing, f"model: no conditional draws {short(missing)}")
    rewards = [by_action(at, one, (), {}) for at, one in enumerate(data["rewards"])]
    start, form = {}, {f"{one['name']}?": object for one in variables}
    given = read(data["initial"], form, "initial")
    for axis, one in enumerate(variables):
        where, row = f"initial of {short(one['name'])!r}", given.get(one["name"], 0)
        if not isinstance(row, list):
            value = read(row, range(one["size"]), where)
            row = [int(value == other) for other in range(one["size"])]
        start[~axis] = kernel_of(table_of(row, (~axis,), where), (~axis,), where)
    rules: list[Limit] = []
    decided = {one["name"]: current[one["name"]] for one in joint["variables"]}
    for one in joint.get("forbidden", []):
        axes = axes_of(one["variables"], decided, "forbidden actions")
        refuse_if_large(axes, sizes, "a table of forbidden actions")
        every, never = [*assignments(axes, sizes)], {*map(tuple, one["values"])}
        expect(never <= {*every}, "forbidden actions: expected a value for each variable")
        rules.append(Table(axes, [NEVER if values in never else 0 for values in every]))
    able = tuple(axis for axis in decided.values() if sizes[axis] > 1)
    if (most := joint.get("at_most")) is not None and most < len(able):
        rules.append(Sum(able, tuple((0,) + (1,) * (sizes[axis] - 1) for axis in able), 0, most))
    allowed = conditions_of(data.get("allowed", []), actions, is_joint, axes_of, table_of, current)
    here = {one["name"]: axis for axis, one in enumerate(variables)}
    ends = []
    for at, one in enumerate(data.get("terminal", [])):
        table = table_of(
            one["table"], axes_of(one["variables"], here, f"terminal {at}"), f"terminal {at}"
        )
        ends.append(Table(table.axes, [0 if number else NEVER for number in table.numbers]))
    horizon, discount = data["horizon"], data.get("discount", Fraction(1))
    good = 0 < discount <= 1 and (horizon or discount < 1)
    expect(good, "model: expected a discount from 0 to 1, below 1 without a horizon")
    about = {"variables": [[one["name"], one["size"]] for one in variables]}
    about |= {"actions": unlabelled(data["actions"]), "horizon": horizon, "discount": discount}
    under = [[reward[at] for reward in rewards] for at in range(len(actions))]
    parts = horizon, discount, sizes, draws, under, start, rules, allowed, ends
    return Model(about, len(variables), *parts)


def conditions_of(
    cases: Sequence[Any],
    actions: Sequence[str],
    is_joint: bool,
    axes_of: Callable[..., Axes],
    table_of: Callable[..., Table],
    current: Mapping[str, int],
) -> list[list[Table]]:
    """What is allowed under each action: as many tables for each, some of which ask for nothing.

    Conditions on different actions share a place, the first where none of theirs has one. So it is
    in the planner, whose own elimination a plan may describe.
    """
    free, places = Table((), [0]), list[dict[str, Table]]()
    for number, case in enumerate(cases):
        where = f"allowed {number}"
        expect(not case.get("drawn"), f"{where}: expected current values only")
        names = actions if case["actions"] == "any" else read(case["actions"], {str}, where)
        good = {*names} <= {*actions} and not (is_joint and case["actions"] != "any")
        expect(good, f"{where}: unknown action")
        axes = axes_of(case.get("parents", []), current, where)
        table = table_of(case["table"], axes, where)
        if all(table.numbers):
            continue
        limit = Table(axes, [0 if number else NEVER for number in table.numbers])
        home = next((one for one in places if not one.keys() & {*names} and not is_joint), None)
        if home is None:
            places.append(home := {})
        home |= dict.fromkeys(names, limit)
    return [[one.get(action, free) for one in places] for action in actions]


def read_archive(content: bytes) -> dict[str, bytes]:
    """The arrays of a plan file, each as bytes, by name.

    The file is a ZIP archive of the plainest kind, and nothing else: members from the first byte
    on, without comments, extra fields or a byte between them, then their directory, which repeats
    what they say. Two readers cannot find different members in it.
    """
    members: dict[str, bytes] = {}
    place, directory, unpacked = 0, list[bytes](), 0
    while content[place : place + 4] == b"PK\x03\x04":
        header = content[place + 4 : place + 30]
        expect(len(header) == 26, "plan: damaged, or not a plan: it is cut off")
        length, size = (int.from_bytes(header[at : at + 4], "little") for at in (14, 18))
        kind, named = header[4], int.from_bytes(header[22:24], "little")
        name = content[place + 30 : place + 30 + named]
        data = content[place + 30 + named :][:length]
        good = header[:10] == bytes((20, 0, 0, 0, kind, 0, 0, 0, 33, 0)) and kind in (0, 8)
        good = good and header[24:] == b"\0\0" and len(name) == named and len(data) == length
        label = name.decode("ascii", "replace")
        good = good and MEMBER.fullmatch(label) is not None and label[:-4] not in members
        expect(good, f"plan: damaged, or not a plan: member {short(label)!r}")
        unpacked += size
        expect(unpacked <= LARGEST_PLAN, f"plan: too large: the limit is {LARGEST_PLAN} bytes")
        stream = zlib.decompressobj(-15)
        try:
            made = stream.decompress(data, size + 1) if kind else data
        except zlib.error as error:
            raise BadInputError(f"plan: damaged, or not a plan: {short(error)}") from None
        good = not kind or (stream.eof and not stream.unused_data)
        good = (
            good and len(made) == size and zlib.crc32(made).to_bytes(4, "little") == header[10:14]
        )
        expect(good, f"plan: damaged, or not a plan: member {label!r}")
        private = bytes(8) + b"\x80\x01"  # nothing, and the permissions of a file
        entry = b"PK\x01\x02\x14\x03" + header + private + place.to_bytes(4, "little") + name
        directory.append(entry)
        members[label[:-4]] = made
        place += 30 + named + length
    end, number = b"".join(directory), len(directory).to_bytes(4, "little")[:2]
    numbers = 2 * number + len(end).to_bytes(4, "little") + place.to_bytes(4, "little") + bytes(2)
    good = bool(members) and content[place:] == end + b"PK\x05\x06" + bytes(4) + numbers
    expect(good, "plan: damaged, or not a plan: its directory does not say what it holds")
    return members


def read_array(member: bytes, name: str) -> tuple[bytes, str, Axes]:
    """The bytes of an array's numbers, their kind, and its shape."""
    length, name = int.from_bytes(member[8:10], "little"), short(name)
    header, data = member[10 : 10 + length], member[10 + length :]
    found = ARRAY.fullmatch(header.decode("ascii", "replace"))
    good = member[:8] == b"\x93NUMPY\x01\x00" and found and not (10 + length) % 64
    expect(good, f"plan: damaged, or not a plan: array {name}")
    assert found is not None
    shape = tuple(map(int, re.findall(r"[0-9]{1,18}", found[2])))
    width = int(found[1][2:]) * (4 if found[1][1] == "U" else 1)  # a character has four bytes
    good = str(shape) == found[2] and len(data) == math.prod(shape) * width
    expect(good, f"plan: array {name}: expected exactly the numbers of its shape")
    return data, found[1], shape


def read_claim(content: bytes, model: Model) -> Claim:
    """What a plan claims of a model, from the bytes of its file."""
    members = read_archive(content)
    text, kind, shape = read_array(members.get("about", b""), "about")
    expect(kind == "|u1" and len(shape) == 1, "plan: about: expected an array of bytes")
    for name, member in members.items():
        read_array(member, name)
    given = read_json(text, "plan", PLAN)
    wrong = given.keys() ^ KEYS
    expect(not wrong, f"plan: missing or unknown key {short(min(wrong, default=''))!r}")
    claim, others = claim_of(given, members, model), {"about", "weights", "violations", "lifts"}
    others |= {"digest", *LOOKUP} if given.get("policy", 0) is None else {"digest"}
    if isinstance(claim.start, Start):
        others |= {"states"} if claim.start.states is not None else {*()}
        others |= {"values"} if claim.start.values is not None else {*()}
    if isinstance(claim.start, Regions):
        others |= {"features", "members", "prices"}
    more = {name for name in members.keys() - others if not name.startswith("policy/")}
    good = not more and others <= members.keys()
    good = good and (others >= {*LOOKUP}) == (len(others) == len(members))
    expect(good, f"plan: an array is missing, or unknown: {short(min(more, default=''))!r}")
    return claim


def unlabelled(part: Any) -> Any:
    """Variables [[name, size], ...], or actions made of variables, without labels of values."""
    if isinstance(part, list):
        return [one[:2] if isinstance(one, list) else one for one in part]
    if isinstance(part, dict) and isinstance(part.get("variables"), list):
        listed = [one for one in part["variables"] if isinstance(one, dict)]
        kept = [{key: one[key] for key in one if key != "labels"} for one in listed]
        return part | {"variables": kept}
    return part


def claim_of(given: Mapping[str, Any], members: Mapping[str, bytes], model: Model) -> Claim:
    """What a description and the arrays beside it claim of a model."""
    for what, mine in model.about.items():
        good = unlabelled(given.get(what, 0)) == mine
        expect(good, f"the plan is for another model: {what} differ")
    scope, integer = {range(model.n_variables)}, range(-1, 2**31)
    sum_form = {"scope": scope, "counts": [[WHOLE]], "least": WHOLE, "most": WHOLE}
    form = {
        **{"scopes": [scope], "functions": [[Fraction]], "bound_weights": [[Fraction]]},
        **{"upper_bound": Fraction, "at_start": [None, Fraction], "proof": str},
        "elimination": [None, {"steps": [([[integer]], {WHOLE})], "finals": [WHOLE]}],
        **{"invariants": [object], "restrictions": [(integer, [[WHOLE]])]},
        "start_proof": [None, object],
    }
    data = read({key: given[key] for key in form.keys() & given.keys()}, form, "plan")

    def table_of(axes: Sequence[int], numbers: Sequence[Any]) -> Table:
        size = count(axes, model.sizes)
        expect(len(numbers) == size, f"plan: expected {size} numbers, found {len(numbers)}")
        return Table(tuple(axes), numbers)

    functions, weights = data["functions"], data["bound_weights"]
    good = len(weights) == (1 if model.horizon is None else model.horizon + 1)
    good = (
        good and len(functions) > 0 and {*map(len, (data["scopes"], *weights))} == {len(functions)}
    )
    expect(good, "plan: expected as many functions as scopes and as weights at each step")
    expect(model.horizon is None or not any(weights.pop()), "plan: expected 0 after the last step")
    invariants: list[Limit] = []
    for one in data["invariants"]:
        if isinstance(one, dict) and "allowed" in one:
            one = read(one, {"scope": scope, "allowed": [range(2)]}, "plan: invariants")
            limit = [0 if allowed else NEVER for allowed in one["allowed"]]
            invariants.append(table_of(one["scope"], limit))
            continue
        one = read(one, sum_form, "plan: invariants")
        axes, counts = tuple(one["scope"]), tuple(map(tuple, one["counts"]))
        good = [*map(len, counts)] == [model.sizes[axis] for axis in axes] != []
        good = good and sum(map(max, counts)) <= MOST_COUNTED
        expect(good, "plan: invariants: expected a small number for each value")
        invariants.append(Sum(axes, counts, one["least"], one["most"]))
    used = [(at, [*map(tuple, additions)]) for at, additions in data["restrictions"]]
    tables, proof = [*map(table_of, data["scopes"], functions)], short(data["proof"])
    bounds, hint = (data["upper_bound"], data["at_start"]), data["elimination"]
    return Claim(
        tables, weights, *bounds, proof, hint, invariants, used, read_start(data, members, model)
    )


def read_regions(given: Any, members: Mapping[str, bytes], model: Model) -> Regions:
    """Regions with prices, by which a plan proves its claim for the start."""
    is_joint = isinstance(model.about["actions"], dict)
    inputs = {range(sum(axis >= 0 for axis in model.sizes))}
    terms = range(len(model.rewards[0]) or 1)
    share = (terms, range(1, 2**31))
    region = {"interior": {range(model.n_variables)}, "boundary": inputs, "shares": [share]}
    form = {"regions": [region], "sets": [{range(len(model.draws))}], "hub": {terms}}
    data = read(given, form | {"unit": Fraction}, "plan: start_proof")
    unit = data["unit"]
    good = unit > 0 and unit.numerator & (unit.numerator - 1) == 0
    expect(good and unit.denominator & (unit.denominator - 1) == 0, "plan: unit: no power of two")
    steps = 1 if model.horizon is None else model.horizon
    arrays = []
    for name, kind, width in (
        ("features", "<i4", 5),
        ("members", "<i4", 2),
        ("prices", "<i8", steps),
    ):
        content, found, shape = read_array(members.get(name, b""), name)
        good = found == kind and len(shape) == 2 and shape[1] == width
        expect(good, f"plan: {name}: expected rows of {width} whole numbers")
        arrays.append(content)
    return Regions(
        [tuple(one["interior"]) for one in data["regions"]],
        [tuple(one["boundary"]) for one in data["regions"]],
        [[tuple(pair) for pair in one["shares"]] for one in data["regions"]],
        tuple(data["hub"]),
        [frozenset(one) for one in data["sets"]],
        *(unit, is_joint, *arrays),
    )


def read_start(data: Any, members: Mapping[str, bytes], model: Model) -> Start | Regions | None:
    """What proves a plan's claim for the start: regions, or states and perhaps their values."""
    given = data["start_proof"]
    good = (given is None) == (data["at_start"] is None)
    expect(good, "plan: expected a start_proof with at_start, and none without")
    if given is None:
        return None
    if isinstance(given, dict) and "regions" in given:
        return read_regions(given, members, model)
    scope = {range(model.n_variables)}
    box_form = {"variables": scope, "values": [{WHOLE}], "kept": scope}
    given = read(given, {"states": str, "boxes": [box_form]}, "plan: start_proof")
    expect(given["states"] in ("all", "listed"), "plan: start_proof: expected all or listed states")
    number = count(range(model.n_variables), model.sizes)
    states, width = None, 1 if max(model.sizes[a] for a in range(model.n_variables)) <= 256 else 2
    if given["states"] == "listed":
        states, kind, shape = read_array(members.get("states", b""), "states")
        good = kind == {1: "|u1", 2: "<u2"}[width] and shape[1:] == (model.n_variables,)
        expect(good, "plan: states: expected a row for each state, a byte or two for each variable")
        number, step = shape[0], model.n_variables
        for axis in range(step):
            low, high = (states[width * axis + at :: width * step] for at in (0, width - 1))
            column = low if width == 1 else map(lambda one, two: one + 256 * two, low, high)
            good = max(column, default=0) < model.sizes[axis]
            expect(good, "plan: states: expected values of the model's variables")
    boxes = []
    for one in given["boxes"]:
        box = Box(*(tuple(one[name]) for name in ("variables", "values", "kept")))
        box = replace(box, values=tuple(map(tuple, box.values)))
        good = len(box.variables) == len(box.values) > 0
        pairs = zip(box.variables, box.values, strict=False)
        good = good and all(values and max(values) < model.sizes[a] for a, values in pairs)
        expect(
            good and states is not None, "plan: start_proof: boxes: expected values of variables"
        )
        boxes.append(box)
    if model.horizon is not None:
        return Start(states, width, None, boxes)
    values, kind, shape = read_array(members.get("values", b""), "values")
    expect(kind == "<f8" and shape == (number,), "plan: values: expected a float for each state")
    finite = all(math.isfinite(value) for (value,) in struct.iter_unpack("<d", values))
    expect(finite, "plan: values: expected finite numbers")
    return Start(states, width, values, boxes)


# Tables and expectations -----------------------------------------------------------------------


def count(axes: Iterable[int], sizes: Sizes) -> int:
    """How many assignments there are."""
    return math.prod(sizes[axis] for axis in axes)


def assignments(axes: Iterable[int], sizes: Sizes) -> Iterator[Axes]:
    """All of them, the last axis fastest."""
    return product(*(range(sizes[axis]) for axis in axes))


def refuse_if_large(axes: Sequence[int], sizes: Sizes, what: str) -> None:
    """Refuse a table before it is made."""
    if (size := count(axes, sizes)) > LARGEST_TABLE:
        needs = f"a table of at least 2^{size.bit_length() - 1} entries over {len(axes)} variables"
        raise TooWideError(f"too wide: {what} needs {needs}; the limit is {LARGEST_TABLE}")


def strides_of(table: Table, sizes: Sizes) -> dict[int, int]:
    """By axis, how far apart in a table its values are."""
    return {axis: count(table.axes[at + 1 :], sizes) for at, axis in enumerate(table.axes)}


def spread(table: Table, full: Axes, sizes: Sizes) -> Iterator[Any]:
    """The numbers of a table for each assignment of more axes."""
    strides, places = strides_of(table, sizes), [0]
    for axis in full:
        jumps = [value * strides.get(axis, 0) for value in range(sizes[axis])]
        places = [place + jump for place in places for jump in jumps]
    return map(table.numbers.__getitem__, places)


def entry(table: Table, at: Mapping[int, int], sizes: Sizes) -> Any:
    """The number of a table at an assignment, in which what is missing is 0."""
    return table.numbers[sum(at.get(a, 0) * n for a, n in strides_of(table, sizes).items())]


def without_idle_axes(table: Table, sizes: Sizes) -> Table:
    """The same function as a table of those axes only on which it depends."""
    for axis in table.axes:
        rest = tuple(other for other in table.axes if other != axis)
        numbers, part = list(spread(table, (axis, *rest), sizes)), count(rest, sizes)
        if numbers[part:] == numbers[:-part]:  # for each value of the axis as for the one before
            table = Table(rest, numbers[:part])
    return table


def ancestry(axes: Iterable[int], draws: Draws) -> frozenset[Kernel]:
    """The kernels that draw some axes, and what these depend on, and so on."""
    found: set[Kernel] = set()
    waiting = [draws[axis] for axis in axes]
    while waiting:
        if (kernel := waiting.pop()) not in found:
            found.add(kernel)
            waiting += [draws[axis] for axis in kernel.totals.axes if axis < 0]
    return frozenset(found)


def average(function: Table, draws: Draws, sizes: Sizes, divide: Callable[..., Any]) -> Table:
    """E[h(s')] for a function h of the states that are drawn, given what the kernels depend on.

    What no other kernel depends on is averaged first, and of that what needs the smallest table.
    """
    table = Table(tuple(~axis for axis in function.axes), function.numbers)
    left = {*ancestry(table.axes, draws)}
    while left:
        looked_at = {axis for kernel in left for axis in kernel.totals.axes}
        ready = [kernel for kernel in left if not looked_at & {*kernel.drawn}]
        kernel = min(ready, key=lambda one: count({*table.axes, *one.totals.axes}, sizes))
        left.remove(kernel)
        rest = tuple(sorted({*table.axes, *kernel.totals.axes} - {*kernel.drawn}))
        full, outcomes = (*rest, *kernel.drawn), count(kernel.drawn, sizes)
        refuse_if_large(full, sizes, "an expectation")
        chances, numbers = spread(kernel.chances, full, sizes), spread(table, full, sizes)
        products = list(map(mul, chances, numbers))
        sums = products[::outcomes]
        for outcome in range(1, outcomes):
            sums = list(map(add, sums, products[outcome::outcomes]))
        table = Table(rest, list(map(divide, sums, spread(kernel.totals, rest, sizes))))
        bits = len(table.numbers) * max(number.denominator.bit_length() for number in table.numbers)
        if bits > MOST_BITS:
            raise TooWideError("too wide: the fractions of an expectation become too long")
    return table


def up(number: int, total: int) -> int:
    """The next whole number from a quotient on."""
    return -(-number // total)


# The largest sum -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """A table whose numbers are multiplied by a factor at each step."""

    table: Table
    factors: Sequence[Fraction]
    is_limit: bool = False  # 0 wherever it allows something, and so added as often as one likes

    def in_units(self, step: int, sign: int = 1) -> Table:
        """Its numbers at a step, rounded up."""
        factor = sign * self.factors[step] * UNITS
        above, below = factor.numerator, factor.denominator
        numbers = [up(above * n.numerator, below * n.denominator) for n in self.table.numbers]
        return Table(self.table.axes, numbers)


Part = tuple[Term, int] | int  # a term and its sign, or an earlier step
Made = dict[Part, Table]


class Schedule:
    """Steps, each of which adds up parts and maxes out some axes; what is left is its message.

    At any assignment, a message is at least the sum of its parts. So the largest number of a final
    message is at least the sum, at every assignment, of all terms that went into it, whichever way.
    """

    def __init__(self, terms: Sequence[Sequence[Term]], sizes: Sizes) -> None:
        self.terms, self.sizes = terms, sizes  # of each action; of each axis
        self.steps: list[tuple[tuple[Part, ...], Axes]] = []
        self.axes: list[Axes] = []  # of the message of each step
        self.work: list[int] = []  # the entries of the table that each step adds up
        self.needed: list[list[int]] = []  # the steps that go into the final one of each action
        self._numbers: dict[tuple[tuple[Part, ...], Axes], int] = {}
        self._listed = 0  # axes of all messages

    def add(self, parts: tuple[Part, ...], maxed: Axes) -> int:
        """The number of a step, which is made once for all actions."""
        if (parts, maxed) not in self._numbers:
            scopes = [self.axes[p] if isinstance(p, int) else p[0].table.axes for p in parts]
            joined = {*maxed, *chain.from_iterable(scopes)}
            self._listed += len(joined)
            expect(self._listed <= MOST_ITEMS, "too wide: an elimination has too many steps")
            self._numbers[parts, maxed] = len(self.steps)
            self.steps.append((parts, maxed))
            self.axes.append(tuple(sorted(joined - {*maxed})))
            self.work.append(count(joined, self.sizes))
        return self._numbers[parts, maxed]

    def finish(self, finals: Sequence[int]) -> Schedule:
        """Make sure that the final step of each action adds up its terms, each exactly once."""
        expect(len(finals) == len(self.terms), "plan: elimination: expected a step for each action")
        for final, terms in zip(finals, self.terms, strict=True):
            often, added = Counter({final: 1}), Counter[Term]()
            for at in range(final, -1, -1):
                for part in self.steps[at][0] if at in often else ():
                    if isinstance(part, int):
                        often[part] += often[at]
                        good = often[part] <= MOST_TIMES
                        expect(good, "plan: elimination: a message is used too many times")
                    else:
                        added[part[0]] += part[1] * often[at]
            found = {term: n for term, n in added.items() if n and not term.is_limit}
            good = found == Counter(term for term in terms if not term.is_limit)
            expect(good, "plan: elimination: what is added up for an action is something else")
            entries = sum(self.work[at] for at in often)
            if entries > LARGEST_MEMORY:
                size = f"2^{entries.bit_length() - 1} entries or more"
                raise TooWideError(f"too wide: an elimination needs {size} for an action")
            self.needed.append(sorted(often))
        return self

    def maximum(self, action: int, step: int, made: Made) -> int:
        """A number that no sum of the terms of an action exceeds at a step, in units.

        Tables and messages that were made before are in `made`, and new ones are put there.
        """
        if sum(len(table.numbers) for table in made.values()) > LARGEST_MEMORY:
            made.clear()
        for at in self.needed[action]:
            if at in made:
                continue
            (parts, maxed), sums = self.steps[at], [0] * self.work[at]
            for part in parts:
                if not isinstance(part, int) and part not in made:
                    made[part] = part[0].in_units(step, part[1])
                numbers = spread(made[part], self.axes[at] + maxed, self.sizes)
                sums = list(map(add, sums, numbers))
            if (width := count(maxed, self.sizes)) > 1:
                sums = list(map(max, *(sums[value::width] for value in range(width))))
            made[at] = Table(self.axes[at], sums)
        return int(max(made[self.needed[action][-1]].numbers))

    def maximiser(self, action: int, made: Made) -> dict[int, int]:
        """An assignment with the largest sum, if each axis is maxed out once."""
        found: dict[int, int] = {}
        for at in reversed(self.needed[action]):
            parts, maxed = self.steps[at]
            axes = [axis for axis in maxed if axis not in found]
            tried = [dict(zip(axes, some, strict=True)) for some in assignments(axes, self.sizes)]
            sums = [sum(entry(made[p], found | one, self.sizes) for p in parts) for one in tried]
            found |= tried[sums.index(max(sums))]
        return found


def elimination_order(terms: Iterable[Term], sizes: Sizes) -> list[int]:
    """All axes, always the one that needs the smallest table.

    Among equals, the one with the shortest chain of messages behind it: then few messages depend on
    any one table, and actions share the others.
    """
    near: dict[int, set[int]] = {}
    for axes in {term.table.axes for term in terms}:
        for axis in axes:
            near.setdefault(axis, set()).update(axes)
    order, depth = [], dict.fromkeys(near, 0)
    while near:
        axis = min(near, key=lambda one: (count(near[one], sizes), depth[one], one))
        order.append(axis)
        joined = near.pop(axis) - {axis}
        for other in joined:
            near[other] = (near[other] | joined) - {axis}
            depth[other] = max(depth[other], depth[axis] + 1)
    return order


def own_schedule(terms: Sequence[Sequence[Term]], sizes: Sizes) -> Schedule:
    """A schedule for the exact maximum: one axis after another, each with all that depends on it.

    Actions have the order of the first one, to share messages, unless that makes larger tables.
    """
    schedule = Schedule(terms, sizes)

    def along(order: Sequence[int], terms: Sequence[Term]) -> tuple[int, int]:
        """The largest table, and the final step."""
        rank, largest = {axis: at for at, axis in enumerate(order)}, 1
        parts: list[list[Part]] = [[] for _ in (*order, "final")]
        for term in terms:
            parts[min((rank[axis] for axis in term.table.axes), default=-1)].append((term, 1))
        for at, axis in enumerate(order):
            step = schedule.add(tuple(parts[at]), (axis,))
            parts[min((rank[other] for other in schedule.axes[step]), default=-1)].append(step)
            largest = max(largest, schedule.work[step])
        return largest, schedule.add(tuple(parts[-1]), ())

    first, finals = elimination_order(terms[0], sizes), []
    usual, _ = along(first, terms[0])
    for own in terms:
        seen = {axis for term in own for axis in term.table.axes}
        found = along([*(a for a in first if a in seen), *sorted(seen - {*first})], own)
        if found[0] > usual:
            found = min(found, along(elimination_order(own, sizes), own))
        finals.append(found[1])
    return schedule.finish(finals)


def plans_schedule(hint: Any, terms: Sequence[Sequence[Term]], sizes: Sizes) -> Schedule:
    """The schedule of a plan: parts are (table, action, sign) or (earlier step,)."""
    schedule, made = Schedule(terms, sizes), list[int]()
    for given, maxed in hint["steps"]:
        parts: list[Part] = []
        for part in given:
            match part:
                case [at] if at in range(len(made)):
                    parts.append(made[at])
                case [at, action, sign] if action in range(len(terms)) and sign in (-1, 1):
                    expect(at in range(len(terms[0])), "plan: elimination: no such table")
                    parts.append((terms[action][at], sign))
                case _:
                    raise BadInputError("plan: elimination: no such part")
        expect(sizes.keys() >= {*maxed}, "plan: elimination: no such variables")
        made.append(schedule.add(tuple(parts), tuple(maxed)))
    expect(max(hint["finals"], default=0) < len(made), "plan: elimination: no such step")
    return schedule.finish([made[final] for final in hint["finals"]])


# Where it holds --------------------------------------------------------------------------------


def tables_of(
    limit: Limit, sizes: dict[int, int], additions: Sequence[Axes] = (), holds: bool = True
) -> list[Table]:
    """Tables that are all 0, for some values of counters, where a limit holds (or does not).

    Sums are counted by additions (one, other, counter): a counter is a new axis, the sum of two
    variables or counters that no other addition takes, up to a number that is known to be beyond
    the limits, or to reach the lower one where there is no other. No counter has a value from which
    the sum of all cannot be within the limits, if they hold, whatever the others are. The last
    addition may have no counter; it asks whether the sum of all may be within the limits.
    """
    if isinstance(limit, Table):
        return [Table(limit.axes, [0 if (n == 0) == holds else NEVER for n in limit.numbers])]
    if not additions:  # one after another
        first = max(sizes) + 1
        items = [limit.axes[0], *range(first, first + len(limit.axes) - 2)]
        additions = [*zip(items, limit.axes[1:-1], items[1:], strict=False)]
        additions += [(items[-1], *limit.axes[1:][-1:])]
    counts: dict[int, Sequence[int]] = dict(zip(limit.axes, limit.counts, strict=True))
    enough = limit.most + 1 if limit.most < sum(map(max, limit.counts)) else limit.least
    tables: list[Table] = []
    for axes in additions:
        pair, counter = axes[:2], axes[2:]
        good = 0 < len(pair) == len({*pair}) and counts.keys() >= {*pair}
        expect(good and counter in ((), (max(sizes) + 1,)), "plan: restrictions: wrong additions")
        most = min(sum(max(counts[axis]) for axis in pair), enough) + 1 if counter else 1
        entries = most * math.prod(len(counts[axis]) for axis in pair)
        entries += sum(len(table.numbers) for table in tables)
        if entries > LARGEST_TABLE:
            raise TooWideError(f"too wide: the counters of a sum need {entries} entries or more")
        sums = [min(sum(ns), enough) for ns in product(*(counts.pop(axis) for axis in pair))]
        low, high = (sum(map(end, counts.values())) for end in (min, max))
        fits = [n + high >= limit.least and n + low <= limit.most for n in sums]
        if counter:
            sizes[axes[2]] = max(sums) + 1
            counts[axes[2]] = range(max(sums) + 1)
            could = [n if good or not holds else -1 for n, good in zip(sums, fits, strict=True)]
            numbers = [0 if n == m else NEVER for n in could for m in counts[axes[2]]]
        else:
            numbers = [0 if good == holds else NEVER for good in fits]
            counts.clear()
        tables.append(Table(axes, numbers))
    return tables


def may_fail(
    model: Model, one: Limit, known: Sequence[Limit], draws: Iterable[Draws], spent: list[int]
) -> bool:
    """Whether draws may lead from where all that is known holds to where an invariant fails.

    They do not if tables that are 0 where each of this is so are nowhere 0 together. Of what is
    known, tables of what the draws depend on are used, and the invariant itself. The entries that
    are added up are counted in `spent`, over all calls.
    """
    then = replace(one, axes=tuple(~axis for axis in one.axes))
    for kernels in {ancestry(then.axes, drawing) for drawing in draws}:
        sizes = dict(model.sizes)
        seen = {*one.axes, *range(model.n_variables, max(model.sizes) + 1)}
        for kernel in kernels:
            seen.update(kernel.totals.axes)
        with suppress(TooWideError):  # too large to enumerate: it may
            tables = tables_of(then, sizes, holds=False)
            for kernel in kernels:
                drawn = [0 if chance else NEVER for chance in kernel.chances.numbers]
                tables.append(Table(kernel.chances.axes, drawn))
            for other in known:
                if other is one or (isinstance(other, Table) and seen >= {*other.axes}):
                    tables += tables_of(other, sizes)
            spent.append(len(known) + sum(len(table.numbers) for table in tables))
            schedule = own_schedule([[Term(table, [Fraction(1)]) for table in tables]], sizes)
            spent.append(sum(schedule.work))
            expect(sum(spent) <= MOST_SUMS, "too much work: the invariants take too long to prove")
            spent[:] = [sum(spent)]
            if schedule.maximum(0, 0, {}) < 0:
                continue
        return True
    return False


def prove_invariants(model: Model, invariants: Sequence[Limit]) -> list[bool]:
    """Which invariants hold at the start and are preserved by every step from where all do.

    Those that are not are taken out, and the others are checked again without them.
    """
    spent = [0]
    held = [not may_fail(model, one, (), [model.start], spent) for one in invariants]
    before: list[bool] = []
    while held != before:
        before = held
        known = [*(one for one, good in zip(invariants, held, strict=True) if good), *model.rules]
        pairs = zip(invariants, held, strict=True)
        held = [good and not may_fail(model, one, known, model.draws, spent) for one, good in pairs]
    return held


# The inequality --------------------------------------------------------------------------------


def terms_of(model: Model, claim: Claim) -> list[list[Term]]:
    """The left side of the inequality under each action: functions, rewards, expectations.

    Then what is allowed, and that the episode goes on; after the actions, each table of its ends.
    """
    ones = [Fraction(1)] * len(claim.weights)
    nothing = Term(Table((), [0]), ones, is_limit=True)  # where a weight is always 0
    many = len(claim.functions) * len(model.draws)
    expect(many <= MOST_MEANS, f"too wide: {many} expectations, of each function under each action")
    rewards = {table: Term(table, ones) for tables in model.rewards for table in tables}
    functions = [nothing] * len(claim.functions)
    means = [[nothing] * len(functions) for _ in model.draws]
    for j, weights in enumerate(zip(*claim.weights, strict=True)):
        if not any(weights):
            continue
        function = claim.functions[j]
        functions[j] = Term(function, [-weight for weight in weights])
        later = weights if model.horizon is None else (*weights[1:], Fraction(0))
        factors = [model.discount * weight for weight in later]
        known: dict[object, Term] = {}  # what is the same under several actions is made once
        for draws, own in zip(model.draws, means, strict=True):
            kernels = ancestry((~axis for axis in function.axes), draws)
            if kernels not in known:
                mean = average(function, draws, model.sizes, Fraction)
                mean = without_idle_axes(mean, model.sizes)
                key = mean.axes, tuple(mean.numbers)
                known[kernels] = known.setdefault(key, Term(mean, factors))
            own[j] = known[kernels]
    limits = {table: Term(table, ones, is_limit=True) for own in model.allowed for table in own}
    over = [Term(table, ones, is_limit=True) for table in model.ends]
    open_ = [
        Term(Table(t.axes, [NEVER if n == 0 else 0 for n in t.numbers]), ones, is_limit=True)
        for t in model.ends
    ]
    found = []
    for tables, own, allowed in zip(model.rewards, means, model.allowed, strict=True):
        asked = [limits[table] for table in allowed]
        found.append([*functions, *(rewards[table] for table in tables), *own, *asked, *open_])
    idle = [nothing] * (len(found[0]) - len(functions) - len(over))
    for at, table in enumerate(over):
        ends = [table if other == at else nothing for other in range(len(over))]
        found.append([*functions, *idle, *ends])
    return found


def limits_of(
    model: Model, claim: Claim, held: Sequence[bool], sizes: dict[int, int]
) -> list[Term]:
    """What restricts joint actions and states, in the order of a plan; nothing where not proved."""
    counted = dict(claim.restrictions).get(-1, ())  # -1: variables of actions that are nonzero
    tables = [table for rule in model.rules for table in tables_of(rule, sizes, counted)]
    made = sum(len(table.numbers) for table in tables)
    for at, additions in claim.restrictions:
        expect(at < len(held), "plan: restrictions: no such invariant")
        if at >= 0:
            own = tables_of(claim.invariants[at], sizes, additions)
            tables += own if held[at] else [Table((), [0])] * len(own)
            made += sum(len(table.numbers) for table in own)
        if made > LARGEST_MEMORY:
            raise TooWideError("too wide: the tables of all restrictions are too large together")
    return [Term(table, [Fraction(1)] * len(claim.weights), is_limit=True) for table in tables]


def mean_at_start(model: Model, function: Table) -> Fraction:
    """E[h(s)] under the distribution of the start."""
    return Fraction(average(function, model.start, model.sizes, Fraction).numbers[0])


def sweep_work(model: Model) -> int:
    """Entries that one sweep over all states averages; 0 if they are too many to list."""
    size, n_kernels = count(range(model.n_variables), model.sizes), len(model.draws[0])
    listed = size * len(model.draws) <= LARGEST_MEMORY and max(model.sizes) < model.n_variables
    return size * n_kernels * len(model.draws) if listed else 0


def values_at_start(model: Model, claim: Claim, most_work: int) -> tuple[Fraction, Fraction] | None:
    """Between what and what the best policy earns, by the values of all states; None if too many.

    V_l = max over a of R + discount * E[V_{l+1}], rounded up, from V = 0 at the end. Without a
    horizon, for any U: if one sweep changes U by something from c to d, then V* lies between
    U + c / (1 - discount) and U + d / (1 - discount). Sweeps start from the values of the plan.
    """
    sizes, states = model.sizes, tuple(range(model.n_variables))
    size, n_kernels = count(states, sizes), len(model.draws[0])
    work, sweeps = sweep_work(model), model.horizon or 1
    if not 0 < work * sweeps <= most_work:
        return None
    if model.horizon is None:
        sweeps = min(MOST_SWEEPS, most_work // work)

    def added(terms: Iterable[Term]) -> list[int]:
        tables = [spread(term.in_units(0), states, sizes) for term in terms]
        return list(map(sum, zip(*tables, strict=True))) if tables else [0] * size

    one = [Fraction(1)]
    pairs = zip(model.rewards, model.allowed, strict=True)
    rewards = [added(Term(table, one) for table in (*own, *asked)) for own, asked in pairs]
    over = [False] * size
    for table in model.ends:
        over = [
            had or now == 0 for had, now in zip(over, spread(table, states, sizes), strict=True)
        ]
    values = [0] * size
    if model.horizon is None:
        assert isinstance(claim.start, Start)
        assert claim.start.values is not None
        given = struct.iter_unpack("<d", claim.start.values)
        values = [math.ceil(Fraction(value) * UNITS) for (value,) in given]
    above, below = model.discount.numerator, model.discount.denominator
    roundings = n_kernels + len(model.rewards[0]) + 1  # in each sweep, each by less than 1
    low = high = Fraction(0)
    for sweep in range(1, sweeps + 1):
        before, values = values, []
        for reward, draws in zip(rewards, model.draws, strict=True):
            means = spread(average(Table(states, before), draws, sizes, up), states, sizes)
            totals = [r + up(above * mean, below) for r, mean in zip(reward, means, strict=True)]
            values = list(map(max, values, totals)) if values else totals
        values = [0 if ended else value for value, ended in zip(values, over, strict=True)]
        if model.horizon is not None:
            if sweep == model.horizon:
                high = mean_at_start(model, Table(states, values))
                low = high - roundings * sweep
            continue
        changes = list(map(sub, values, before))
        mean, later = mean_at_start(model, Table(states, before)), 1 - model.discount
        least, most = min(changes), max(changes)
        if model.ends:  # a constant that is added to values is not earned after the end
            least, most = min(least, 0), max(most, 0)
        low, high = mean + (least - roundings) / later, mean + most / later
        if claim.at_start is None or not low <= claim.at_start * UNITS < high:
            break
    return low / UNITS, high / UNITS


# The verdict -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """What was found of a plan's claim."""

    claim: Claim
    bound: Fraction  # E[V_1]
    steps: Sequence[Fraction]  # what the left side of each step's inequality nowhere exceeds
    tightest: tuple[int, Axes, str | Axes]  # the step, state and action where it is largest
    excess: Fraction  # what it is there
    at_start: tuple[Fraction | None, Fraction] | None  # the best policy earns from this up to this
    largest_table: int  # entries
    invariants: Sequence[bool]  # whether each was proved
    open: str = ""  # why a tighter claim for the start could not be checked

    @property
    def slack(self) -> Fraction:
        """By how much every inequality holds at least; negative where one was not proved."""
        return -max(self.steps)

    @property
    def tighter(self) -> bool | None:
        """Whether a tighter claim for the start is proved; None if there is none, or who knows."""
        target = self.claim.at_start
        if target is None or target >= self.bound or self.at_start is None:
            return None
        low, high = self.at_start
        if target >= high:
            return True
        return False if low is not None and target < low else None

    @property
    def holds(self) -> bool:
        """Whether the bound of the weights was proved, and no tighter claim refuted."""
        good = self.slack >= 0 and self.bound <= self.claim.upper_bound
        return good and self.tighter is not False

    @property
    def in_part(self) -> bool:
        """Whether the bound of the weights was proved, but not what is claimed beyond it."""
        target = self.claim.at_start
        return self.holds and self.tighter is None and target is not None and target < self.bound

    @property
    def proved(self) -> bool:
        """Whether all that the plan claims was proved."""
        return self.holds and not self.in_part

    @property
    def best(self) -> Fraction:
        """The least that was proved for the start, where anything was."""
        return self.bound if self.at_start is None else min(self.bound, self.at_start[1])

    def __str__(self) -> str:
        claim, proved = self.claim, decimal(self.bound)
        where = "V >= R + E V' at step {}, state {}, action {!r},".format(*self.tightest)
        if self.slack < 0 and self.excess > 0:
            return f"REFUTED: {short(where)} fails by {decimal(self.excess, down=True)}."
        if self.slack < 0:
            return f"NOT PROVED: {short(where)} is too close to call."
        if self.bound > claim.upper_bound:
            claimed = decimal(claim.upper_bound, down=True)
            return f"REFUTED: the plan claims {claimed}, its weights prove {proved}."
        if self.tighter is False:
            return "REFUTED: some policy earns more from the start than the plan claims."
        part = " IN PART" if self.in_part else ""
        return f"PROVED{part}: no policy earns more than {decimal(self.best)} from the start."


def decimal(number: Fraction, down: bool = False, digits: int = 12) -> str:
    """Some digits, rounded up, or down, to the side that is safe."""
    context = Context(digits, ROUND_FLOOR if down else ROUND_CEILING, MIN_EMIN, MAX_EMAX)
    quotient = context.divide(Decimal(number.numerator), Decimal(number.denominator))
    return f"{quotient:.{digits}g}" if quotient else "0"


def check(
    model: Model,
    claim: Claim,
    callback: Callable[[str], None] = lambda _: None,
    start_values: Callable[..., tuple[Fraction | None, Fraction]] | None = None,
) -> Verdict:
    """Prove or refute what a plan claims of a model.

    `start_values(model, claim, held, callback)` proves tighter claims for the start of more states
    than this file can: the one in `values.py`, which needs numpy.
    """
    callback("proving invariants")
    held, sizes = prove_invariants(model, claim.invariants), dict(model.sizes)
    callback("averaging functions")
    limits = limits_of(model, claim, held, sizes)
    terms = [[*own, *limits] for own in terms_of(model, claim)]
    try:
        schedule = own_schedule(terms, sizes)
    except TooWideError:
        if claim.hint is None:
            raise
        schedule = plans_schedule(claim.hint, terms, sizes)
    found = []
    sums = len(claim.weights) * sum(
        schedule.work[at] for needed in schedule.needed for at in needed
    )
    if sums > MOST_SUMS:
        raise TooWideError(f"too much work: {sums} entries to add up; the limit is {MOST_SUMS}")
    for step in range(len(claim.weights)):
        made: Made = {}
        callback(f"step {step + 1} of {len(claim.weights)}")
        found.append([schedule.maximum(action, step, made) for action in range(len(terms))])
    steps = [Fraction(max(row), UNITS) for row in found]
    worst = steps.index(max(steps))
    action = found[worst].index(max(found[worst]))
    made = {}
    schedule.maximum(action, worst, made)
    at = schedule.maximiser(action, made)
    values = tuple(at.get(axis, 0) for axis in sorted(model.sizes) if axis >= 0)
    state, decided = values[: model.n_variables], values[model.n_variables :]
    excess = sum(term.factors[worst] * entry(term.table, at, sizes) for term in terms[action])
    used = [pair for pair in zip(claim.weights[0], claim.functions, strict=True) if pair[0]]
    bound = sum((weight * mean_at_start(model, h) for weight, h in used), Fraction(0))
    at_start: tuple[Fraction | None, Fraction] | None = None
    reason = ""
    if max(steps) <= 0 and claim.start and claim.at_start is not None and claim.at_start < bound:
        callback("computing values of states")
        try:
            most_work = FEW_WORK if start_values else MOST_WORK
            if isinstance(claim.start, Start) and claim.start.states is None:
                at_start = values_at_start(model, claim, most_work)
            if at_start is None and start_values is not None:
                at_start = start_values(model, claim, held, callback)
            reason = "" if at_start else "values of states and regions need fsmdp verify"
        except TooWideError as error:
            reason = str(error)
    largest = max(schedule.work[at] for needed in schedule.needed for at in needed)
    named = END if action >= len(model.draws) else decided or model.about["actions"][action]
    tightest = (worst + 1, state, named)
    excess = Fraction(excess)
    return Verdict(claim, bound, steps, tightest, excess, at_start, largest, held, reason)


def main(arguments: Sequence[str]) -> int:
    """0 if all that the plan claims was proved, 3 if a part of it, 1 if not, 2 if unreadable."""
    try:
        expect(len(arguments) == 2, "usage: checker.py MODEL.json PLAN.npz")
        contents = [Path(path).read_bytes() for path in arguments]
        model = read_model(contents[0])
        verdict = check(model, read_claim(contents[1], model))
    except (BadInputError, OSError, ValueError) as error:
        print(f"checker: {short(error)}", file=sys.stderr)
        return 2
    print(verdict)
    return 0 if verdict.proved else 3 if verdict.in_part else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
