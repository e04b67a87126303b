"""Policies that compiled code follows: by chance, by tables, or greedily."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fsmdp.compiled import compiled, unsigned
from fsmdp.model.actions import ActionSpace, Choice
from fsmdp.model.cases import Cases
from fsmdp.model.conditions import Conditions
from fsmdp.model.lookup import (
    Lookup,
    check_lookup,
    check_vectors,
    compile_conditions,
    compile_lookup,
    locate,
    scope_lookup,
)
from fsmdp.model.tables import Floats, Integers, read_only
from fsmdp.policies.folding import (
    Folded,
    check_folded,
    check_folded_vectors,
    folded_action,
    nothing_folded,
)
from fsmdp.policies.hashed import Hashed, check_hashed, hashed_action, nothing_hashed
from fsmdp.policies.joint import (
    Joint,
    joint_by_chance,
    joint_greedily,
    listed_joint,
    nothing_joint,
    same_joint,
    write_best,
    write_drawn,
)
from fsmdp.reductions.reduction import UNCHANGED, StateMap


@compiled()
def fill_advantages(lookup: Lookup, entries: Floats, values: Integers, advantages: Floats) -> None:
    """Q(s, a) less the sum of the default terms, which is the same for every action.

    Cost: the exceptions of all actions, twice.
    """
    for action in range(len(advantages)):
        total = 0.0
        for e in range(lookup.exception_start[action], lookup.exception_start[action + 1]):
            default = lookup.defaults[lookup.exception_item[e]]
            total += entries[locate(lookup, lookup.exception_table[e], values)]
            total -= entries[locate(lookup, default, values)]
        advantages[action] = total


@compiled()
def default_total(lookup: Lookup, entries: Floats, values: Integers) -> float:
    """Sum of the default terms."""
    total = 0.0
    for table in lookup.defaults:
        total += entries[locate(lookup, table, values)]
    return total


@compiled(inline="always")
def greedy_action(lookup: Lookup, entries: Floats, values: Integers, n_actions: int) -> int:
    """Action of largest Q; the lowest index wins ties, so a plan is reproducible."""
    best = 0
    best_total = -np.inf
    for action in range(n_actions):
        total = 0.0
        for e in range(lookup.exception_start[action], lookup.exception_start[action + 1]):
            default = lookup.defaults[lookup.exception_item[e]]
            total += entries[locate(lookup, lookup.exception_table[e], values)]
            total -= entries[locate(lookup, default, values)]
        if total > best_total:
            best_total = total
            best = action
    return best


@compiled()
def best_actions(
    lookup: Lookup, entries: Floats, states: Integers, values: Floats, actions: Integers
) -> None:
    """max_a Q(s, a) and the lowest action that attains it, for each of many states."""
    advantages = np.zeros(len(lookup.exception_start) - 1)
    for row in range(len(states)):
        fill_advantages(lookup, entries, states[row], advantages)
        best = advantages.argmax()
        actions[row] = best
        values[row] = advantages[best] + default_total(lookup, entries, states[row])


def check_state_map(found: StateMap, sizes: Sequence[int]) -> tuple[int, ...]:
    """Sizes of the new variables; a ValueError for arrays that lead compiled code astray."""
    if any(part.dtype != np.int64 or part.ndim != 1 for part in found):
        raise ValueError("state map: expected vectors of 64-bit integers")
    n_new, n_members = len(found.default), len(found.member)
    if n_new == 0:
        return tuple(sizes)
    for starts, count, last in (
        (found.member_start, n_new, n_members),
        (found.code_start, n_members, len(found.code)),
    ):
        if len(starts) != count + 1 or starts[0] != 0 or starts[-1] != last:
            raise ValueError("state map: expected a start for each part")
        if (starts[1:] < starts[:-1]).any():
            raise ValueError("state map: expected starts that do not fall")
    if n_members and not 0 <= found.member.min() <= found.member.max() < len(sizes):
        raise ValueError("state map: expected positions of variables")
    widths = np.diff(found.code_start)
    if not np.array_equal(widths, np.array(sizes)[found.member]):
        raise ValueError("state map: expected a code for each value")
    if found.default.min() < 0 or (len(found.code) and found.code.min() < 0):
        raise ValueError("state map: expected codes from 0 on")
    new = np.repeat(np.arange(n_new), np.diff(found.member_start))
    largest = found.default.copy()
    for at in range(n_members):
        codes = found.code[found.code_start[at] : found.code_start[at + 1]]
        largest[new[at]] = max(largest[new[at]], codes.max(initial=0))
    # In Python's integers, since those of arrays wrap.
    return tuple(one + 1 for one in largest.tolist())


@compiled(inline="always")
def map_state(state_map: StateMap, values: Integers, mapped: Integers) -> None:
    """Write the state of the reduced model. Cost: the variables."""
    for new in range(len(state_map.default)):
        mapped[new] = state_map.default[new]
        for at in range(state_map.member_start[new], state_map.member_start[new + 1]):
            value = values[state_map.member[at]]
            if value > 0:
                mapped[new] = state_map.code[state_map.code_start[at] + value]


BY_CHANCE = 0
BY_TABLE = 1
GREEDILY = 2
FOLDED = 3
JOINTLY = 4

COMPACT = (np.uint8, np.uint16, np.uint32)
"""Kinds of numbers in tables."""


Bytes = NDArray[np.uint8]


class CompiledPolicy(NamedTuple):
    """How to act, in arrays. A table or entries of one row serve every step.

    What is hashed goes first, wherever the state is found there. A policy of a reduced
    model has arrays for the states of that one. Where actions are made of variables, `joint` says
    how one is found: greedily or by chance over all of them, or by its position among a few. Where
    actions are allowed in some states only, terms of Q are minus infinity in the others; of a
    policy that acts by chance, look-up and entries are those of what is allowed.
    """

    kind: int
    strides: Integers  # (n_variables,) of the table's columns
    table: Bytes  # (n_steps, n_states, n_bytes) positions of actions, see `packed_table`
    lookup: Lookup  # terms of Q, for a greedy policy
    entries: Floats  # (n_steps, n_entries)
    folded: Folded  # how entries are read that were folded
    hashed: Hashed  # actions of single states
    state_map: StateMap  # to states of the model that the arrays are for
    joint: Joint  # how joint actions are found and written

    def __reduce__(self) -> tuple[Any, ...]:
        return _with_table, (tuple(self),)  # copies of arrays may be written to


def _with_table(parts: tuple[Any, ...]) -> CompiledPolicy:
    copied = CompiledPolicy(*parts)
    return copied._replace(table=read_only(copied.table))


class Room(NamedTuple):
    """Arrays that `choose` writes to: made once, not at every step."""

    state: Integers
    key: Integers
    totals: Floats
    buffer: Floats
    assignment: Integers


class Given(NamedTuple):
    """A policy that takes the action that it was given last, whatever the state."""

    policy: CompiledPolicy
    position: NDArray[np.uint32]  # (1, 1) what the policy's table says

    def give(self, action: Choice) -> None:
        """Take this action from now on: by its position, or by the values of its variables."""
        rows = self.policy.joint.rows
        (rows if len(rows) else self.position)[0] = action

    def __reduce__(self) -> tuple[Any, ...]:
        return _given, (self.policy, self.position)  # which the copied policy must see too


def _given(policy: CompiledPolicy, position: NDArray[np.uint32]) -> Given:
    return Given(policy._replace(table=packed_table(position)), position)


def packed_table(table: NDArray[np.integer]) -> Bytes:
    """Positions of actions, (n_steps, n_states), as bytes: the lowest first, not to be written to.

    Tables of a byte for each action and of four are then of one type, and so are tables that may
    and that may not be written to: what reads them is compiled once.
    """
    if table.ndim != 2 or table.dtype.kind not in "iu" or table.size == 0:
        raise ValueError("policy: table must be whole numbers in 2 axes")
    kind = table.dtype if table.dtype in COMPACT else np.min_scalar_type(table.max())
    if table.min() < 0 or kind not in COMPACT:
        raise ValueError("policy: expected positions of actions in the table")
    exact = np.ascontiguousarray(table, dtype=kind.newbyteorder("<"))
    packed = exact.view(np.uint8).reshape(*table.shape, kind.itemsize)
    packed.flags.writeable = False
    return packed


def unpacked_table(packed: Bytes) -> NDArray[np.integer]:
    """The inverse of `packed_table`, without a copy."""
    return packed.view(f"<u{packed.shape[2]}")[:, :, 0]


def policy_arrays(
    kind: int,
    strides: Integers,
    table: NDArray[np.integer] | None = None,
    lookup: Lookup | None = None,
    entries: Floats | None = None,
    folded: Folded | None = None,
    hashed: Hashed | None = None,
    joint: Joint | None = None,
) -> CompiledPolicy:
    """A policy with what its kind does not need left empty."""
    return CompiledPolicy(
        kind,
        strides,
        packed_table(np.zeros((1, 1), dtype=np.uint8) if table is None else table),
        compile_lookup([], 1) if lookup is None else lookup,
        np.zeros((1, 1)) if entries is None else entries,
        nothing_folded() if folded is None else folded,
        nothing_hashed() if hashed is None else hashed,
        UNCHANGED,
        nothing_joint() if joint is None else joint,
    )


def check_policy(policy: CompiledPolicy, sizes: Sequence[int], actions: ActionSpace) -> None:
    """Refuse, with a ValueError, arrays that would lead compiled code out of bounds."""
    if policy.kind not in (BY_CHANCE, BY_TABLE, GREEDILY, FOLDED, JOINTLY):
        raise ValueError(f"policy: expected a kind from 0 to 4, found {policy.kind}")
    for name, ndim, kind in (
        ("strides", 1, np.int64),
        ("table", 3, np.uint8),
        ("entries", 2, float),
    ):
        array = getattr(policy, name)
        if array.ndim != ndim or array.dtype != kind or array.size == 0:
            raise ValueError(f"policy: {name} must be {np.dtype(kind)} numbers in {ndim} axes")
    n_actions = _check_joint(policy, sizes, actions)
    check_vectors(policy.lookup)
    check_folded_vectors(policy.folded)
    sizes = check_state_map(policy.state_map, sizes)
    check_hashed(policy.hashed, sizes, n_actions)
    if policy.kind == BY_TABLE:
        strides, table = policy.strides, policy.table
        if strides.shape != (len(sizes),) or (strides < 0).any():
            raise ValueError("policy: expected a stride for each variable")
        # In Python's integers, since those of arrays wrap.
        last = sum(
            (size - 1) * stride for size, stride in zip(sizes, strides.tolist(), strict=True)
        )
        if last >= table.shape[1]:
            raise ValueError("policy: expected a column for each state")
        if table.shape[2] not in (1, 2, 4) or unpacked_table(table).max() >= n_actions:
            raise ValueError(f"policy: expected actions from 0 to {n_actions - 1}")
    if policy.kind == GREEDILY or (policy.kind == BY_CHANCE and len(policy.lookup.defaults)):
        inputs = (*sizes, *actions.sizes)
        check_lookup(policy.lookup, inputs, actions.n_cases, policy.entries.shape[1])
    if policy.kind == FOLDED:
        check_folded(policy.folded, sizes, n_actions, policy.entries.shape[1])
    if policy.kind in (GREEDILY, FOLDED, JOINTLY) and not (policy.entries < np.inf).all():
        raise ValueError("policy: expected finite entries, or minus infinity for what is forbidden")


def _check_joint(policy: CompiledPolicy, sizes: Sequence[int], actions: ActionSpace) -> int:
    """How many actions the policy knows by position; a ValueError if it finds others wrongly.

    What is prepared for joint actions depends on the actions and the look-up alone: it is made
    again, and has to be the same.
    """
    if not actions.variables:
        if policy.kind == JOINTLY or not same_joint(policy.joint, nothing_joint()):
            raise ValueError("policy: expected actions from a list")
        return len(actions)
    expected = joint_of(policy, sizes, actions, policy.joint.rows)
    if not same_joint(policy.joint, expected):
        raise ValueError("policy: expected what these joint actions need")
    return len(expected.rows)


def joint_of(
    policy: CompiledPolicy, sizes: Sequence[int], actions: ActionSpace, rows: Integers
) -> Joint:
    """What a policy needs to find joint actions; a ValueError if its arrays are wrong."""
    if policy.kind == JOINTLY:
        n_numbers = policy.entries.shape[1] if policy.entries.ndim == 2 else 0
        check_lookup(policy.lookup, (*sizes, *actions.sizes), 1, n_numbers)
        return joint_greedily(actions, len(sizes), policy.lookup)
    if policy.kind == BY_CHANCE and not rows.size:
        n_numbers = policy.entries.shape[1] if policy.entries.ndim == 2 else 0
        if len(policy.lookup.defaults):
            check_lookup(policy.lookup, (*sizes, *actions.sizes), 1, n_numbers)
        return joint_by_chance(actions, len(sizes), policy.lookup)
    if rows.dtype != np.int64 or rows.ndim != 2 or rows.shape[1] != len(actions.variables):
        raise ValueError("policy: expected joint actions")
    if not len(rows) or rows.min() < 0 or (rows >= np.array(actions.sizes)).any():
        raise ValueError("policy: expected values of action variables")
    if not actions.allowed_rows(rows).all():
        raise ValueError("policy: expected joint actions that are allowed")
    return listed_joint(actions, len(sizes), rows)


def given_action(n_variables: int, actions: ActionSpace) -> Given:
    """A policy to be given actions, one after the other."""
    row = np.zeros((1, len(actions.variables)), dtype=np.int64)
    joint = listed_joint(actions, n_variables, row)
    policy = policy_arrays(BY_TABLE, no_strides(n_variables), joint=joint)
    return _given(policy, np.zeros((1, 1), dtype=np.dtype("<u4")))


def by_chance(conditions: Conditions) -> CompiledPolicy:
    """Every action that is allowed as likely as any other."""
    nothing, allowed = no_strides(conditions.n_variables), compile_conditions(conditions)
    joint = joint_by_chance(conditions.actions, conditions.n_variables, allowed.allowed)
    if not conditions.allowed:
        return policy_arrays(BY_CHANCE, nothing, joint=joint)
    entries = allowed.allowed_entries[None]
    return policy_arrays(BY_CHANCE, nothing, lookup=allowed.allowed, entries=entries, joint=joint)


def first_allowed(conditions: Conditions) -> CompiledPolicy:
    """The first action that is allowed; of joint ones, the one with the lowest values."""
    nothing = no_strides(conditions.n_variables)
    if not conditions.allowed:
        if not conditions.actions.variables:
            return policy_arrays(BY_TABLE, nothing)
        given = given_action(conditions.n_variables, conditions.actions)
        idle = conditions.actions.idle()
        given.give(conditions.actions.values(idle))
        return given.policy
    allowed = compile_conditions(conditions)
    lookup, entries = allowed.allowed, allowed.allowed_entries[None]
    if not conditions.actions.variables:
        return policy_arrays(GREEDILY, nothing, lookup=lookup, entries=entries)
    joint = joint_greedily(conditions.actions, conditions.n_variables, lookup)
    return policy_arrays(JOINTLY, nothing, lookup=lookup, entries=entries, joint=joint)


def no_strides(n_variables: int) -> Integers:
    """Strides of a policy that reads no table, or at one without states."""
    return np.zeros(n_variables, dtype=np.int64)


def idle_where_allowed(conditions: Conditions, idle: str) -> CompiledPolicy:
    """An action wherever it is allowed, the first that is elsewhere.

    Of joint ones, as many variables at their values in it as possible.
    """
    actions, first = conditions.actions, conditions.n_variables
    scopes, numbers = conditions.scopes, [conditions.entries]
    if actions.variables:
        for position, value in enumerate(actions.values(idle)):
            scopes.append(Cases(((first + position,),)))
            numbers.append((np.arange(actions.sizes[position]) == value).astype(np.float64))
    else:
        scopes.append(Cases(((), ()), {actions.position(idle): 1}))
        numbers.append(np.array([0.0, 1.0]))
    lookup = scope_lookup(scopes, conditions.sizes, actions.n_cases)
    entries, nothing = np.concatenate(numbers)[None], no_strides(first)
    if not actions.variables:
        return policy_arrays(GREEDILY, nothing, lookup=lookup, entries=entries)
    joint = joint_greedily(actions, first, lookup)
    return policy_arrays(JOINTLY, nothing, lookup=lookup, entries=entries, joint=joint)


@compiled(inline="always")
def room_for(policy: CompiledPolicy, n_actions: int) -> Room:
    """What `choose` needs to write to."""
    joint = policy.joint
    return Room(
        np.zeros(len(policy.state_map.default), dtype=np.int64),
        np.zeros(policy.hashed.keys.shape[1], dtype=np.int64),
        np.zeros(max(n_actions, len(joint.rows))),
        joint.start.copy(),
        np.zeros(joint.n_assigned, dtype=np.int64),
    )


@compiled(inline="always")
def is_plain(policy: CompiledPolicy) -> bool:
    """Whether its kind alone decides: no reduced states, no actions by hash, no joint ones.

    Nor a condition on what is drawn by chance.
    """
    read_first = len(policy.state_map.default) + len(policy.hashed.keys)
    if policy.kind == BY_CHANCE:
        read_first += len(policy.lookup.defaults)
    return read_first == 0 and len(policy.joint.slots) == 0


@compiled(inline="always")
def choose_by_chance(n_actions: int, rng: np.random.Generator) -> int:
    """Every action with the same probability."""
    return min(int(rng.random() * n_actions), n_actions - 1)


@compiled(inner=True)
def choose_allowed_by_chance(
    lookup: Lookup, entries: Floats, values: Integers, n_actions: int, rng: np.random.Generator
) -> int:
    """Every action whose entries are all 0 with the same probability; the first if none is."""
    allowed = np.zeros(n_actions, dtype=np.int64)
    count = 0
    for action in range(n_actions):
        fine = True
        for e in range(lookup.exception_start[action], lookup.exception_start[action + 1]):
            fine = fine and entries[locate(lookup, lookup.exception_table[e], values)] == 0.0
        if fine:
            allowed[count] = action
            count += 1
    return allowed[choose_by_chance(max(1, count), rng)]  # type: ignore[no-any-return]


@compiled(inline="always")
def choose_by_table(strides: Integers, table: Bytes, values: Integers, step: int) -> int:
    """What the table says; its last row holds for all later steps."""
    column = 0
    for variable in range(len(strides)):
        column += values[variable] * strides[variable]
    row = min(step, len(table) - 1)
    action = 0
    for byte in range(table.shape[2]):
        action |= np.int64(table[unsigned(row), unsigned(column), unsigned(byte)]) << (8 * byte)  # type: ignore[assignment]
    return action


@compiled(inline="always")
def choose(
    policy: CompiledPolicy,
    room: Room,
    values: Integers,
    step: int,
    n_actions: int,
    rng: np.random.Generator,
) -> int:
    """Action in the state held by the first slots; `step` counts from 0 here.

    A joint action is written to its slots; the one action that rules tell apart is then 0.
    """
    # Named once: whenever a part is read, code is made that counts all of its arrays.
    joint = policy.joint
    slots, rows = joint.slots, joint.rows
    n_joint, n_rows = len(slots), len(rows)
    if n_joint > 0 and n_rows == 0:
        if policy.kind == JOINTLY:
            row = min(step, len(policy.entries) - 1)
            write_best(joint, policy.entries[row], values, room.buffer, room.assignment)
        else:
            write_drawn(joint, policy.entries[0], values, room.buffer, room.assignment, rng)
        return 0
    found = _position(policy, room, values, step, max(n_actions, n_rows), rng)
    if n_joint == 0:
        return found
    for i in range(n_joint):
        values[slots[i]] = rows[found, i]
    return 0


@compiled(inline="always")
def _position(
    policy: CompiledPolicy,
    room: Room,
    values: Integers,
    step: int,
    n_actions: int,
    rng: np.random.Generator,
) -> int:
    """Position of the action, in the model's list or among the joint actions given."""
    state_map, hashed = policy.state_map, policy.hashed
    state = values
    if len(state_map.default) > 0:
        map_state(state_map, values, room.state)
        state = room.state
    if len(hashed.keys) > 0:
        found = hashed_action(hashed, state, step, room.key)
        if found >= 0:
            return found
    if policy.kind == FOLDED:
        row = min(step, len(policy.entries) - 1)
        return folded_action(policy.folded, policy.entries[row], state, room.totals)
    if policy.kind == GREEDILY:
        row = min(step, len(policy.entries) - 1)
        return greedy_action(policy.lookup, policy.entries[row], state, n_actions)
    if policy.kind == BY_CHANCE:
        if len(policy.lookup.defaults) > 0:
            return choose_allowed_by_chance(policy.lookup, policy.entries[0], state, n_actions, rng)
        return choose_by_chance(n_actions, rng)
    return choose_by_table(policy.strides, policy.table, state, step)


@compiled(inner=True)
def choose_apart(
    policy: CompiledPolicy,
    room: Room,
    values: Integers,
    step: int,
    n_actions: int,
    rng: np.random.Generator,
) -> int:
    """As `choose`, compiled by itself: for callers that take long to compile as it is."""
    return choose(policy, room, values, step, n_actions, rng)


@compiled()
def act(
    policy: CompiledPolicy, values: Integers, step: int, n_actions: int, rng: np.random.Generator
) -> int:
    """One action, as the compiled simulator would choose it; `step` counts from 0.

    A joint action is written to the slots after the state's.
    """
    return choose_apart(policy, room_for(policy, n_actions), values, step, n_actions, rng)


PARTS: dict[str, Any] = {
    "lookup": Lookup,
    "folded": Folded,
    "hashed": Hashed,
    "state_map": StateMap,
}

ROWS = "joint/rows"
"""Joint actions that a policy knows by position: all else about them is made anew."""


def policy_to_arrays(policy: CompiledPolicy) -> dict[str, np.ndarray]:
    """All arrays by name, those of parts as part/name."""
    found: dict[str, np.ndarray] = {}
    for name, value in policy._asdict().items():
        if name == "joint":
            found[ROWS] = value.rows
        elif name in PARTS:
            found |= {f"{name}/{one}": np.asarray(a) for one, a in value._asdict().items()}
        else:
            found[name] = np.asarray(value)
    found["table"] = unpacked_table(policy.table)
    return found


def array_names() -> set[str]:
    """Names of all arrays of a policy."""
    parts = {f"{part}/{one}" for part, kind in PARTS.items() for one in kind._fields}
    return parts | {ROWS, *CompiledPolicy._fields} - {*PARTS, "joint"}


def policy_from_arrays(
    arrays: Mapping[str, np.ndarray], sizes: Sequence[int], actions: ActionSpace
) -> CompiledPolicy:
    """The inverse of `policy_to_arrays`, unchecked: see `check_policy`. A ValueError or KeyError if
    arrays are missing.
    """
    given: dict[str, Any] = {}
    for name in CompiledPolicy._fields:
        if name == "joint":
            given[name] = nothing_joint()
        elif name in PARTS:
            part = PARTS[name]
            given[name] = part(**{one: arrays[f"{name}/{one}"] for one in part._fields})
        else:
            given[name] = arrays[name]
    given["table"] = packed_table(given["table"])
    given["kind"] = _number(given["kind"], np.int64, "kind")
    hashed = given["hashed"]
    by_step = bool(_number(hashed.by_step, np.bool_, "by_step"))
    given["hashed"] = hashed._replace(by_step=by_step)
    found = CompiledPolicy(**given)
    if actions.variables:
        found = found._replace(joint=joint_of(found, sizes, actions, arrays[ROWS]))
    return found


def _number(array: np.ndarray, kind: Any, name: str) -> Any:
    if array.shape != () or array.dtype != kind:
        raise ValueError(f"policy: {name} must be one {np.dtype(kind)}")
    return array.item()
