"""Policies that compiled code follows: by chance, by tables, or greedily."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fsmdp.compiled import compiled
from fsmdp.model.lookup import Integers, Lookup, check_lookup, check_vectors, compile_lookup
from fsmdp.model.tables import Floats
from fsmdp.policies.advantages import greedy_action
from fsmdp.policies.folded import (
    Folded,
    check_folded,
    check_folded_vectors,
    folded_action,
    nothing_folded,
)
from fsmdp.policies.hashed import Hashed, check_hashed, hashed_action, nothing_hashed
from fsmdp.policies.views import Seeing, check_seeing, nothing_seen, see

BY_CHANCE = 0
BY_TABLE = 1
GREEDILY = 2
FOLDED = 3

COMPACT = (np.uint8, np.uint16, np.uint32)
"""Kinds of numbers in tables that are large."""


class CompiledPolicy(NamedTuple):
    """How to act, in arrays. A table or entries of one row serve every step.

    What is hashed goes first, wherever the state is found there. A policy that sees states in other
    variables has arrays for those.
    """

    kind: int
    strides: Integers  # (n_variables,) of the table's columns
    table: Integers  # (n_steps, n_states)
    lookup: Lookup  # terms of Q, for a greedy policy
    entries: Floats  # (n_steps, n_entries)
    folded: Folded  # how entries are read that were folded
    hashed: Hashed  # actions of single states
    seeing: Seeing  # how states are seen


class Room(NamedTuple):
    """Arrays that `choose` writes to: made once, not at every step."""

    seen: Integers
    key: Integers
    totals: Floats


def policy_arrays(
    kind: int,
    strides: Integers,
    table: Integers | None = None,
    lookup: Lookup | None = None,
    entries: Floats | None = None,
    folded: Folded | None = None,
    hashed: Hashed | None = None,
) -> CompiledPolicy:
    """A policy with what its kind does not need left empty."""
    return CompiledPolicy(
        kind,
        strides,
        np.zeros((1, 1), dtype=np.int64) if table is None else table,
        compile_lookup([], 1) if lookup is None else lookup,
        np.zeros((1, 1)) if entries is None else entries,
        nothing_folded() if folded is None else folded,
        nothing_hashed() if hashed is None else hashed,
        nothing_seen(),
    )


def check_policy(policy: CompiledPolicy, sizes: Sequence[int], n_actions: int) -> None:
    """Refuse, with a ValueError, arrays that would lead compiled code out of bounds."""
    if policy.kind not in (BY_CHANCE, BY_TABLE, GREEDILY, FOLDED):
        raise ValueError(f"policy: expected a kind from 0 to 3, found {policy.kind}")
    for name, ndim, kind in (
        ("strides", 1, np.int64),
        ("table", 2, np.int64),
        ("entries", 2, float),
    ):
        array = getattr(policy, name)
        compact = name == "table" and array.dtype in COMPACT
        if array.ndim != ndim or not (compact or array.dtype == kind) or array.size == 0:
            raise ValueError(f"policy: {name} must be {np.dtype(kind)} numbers in {ndim} axes")
    check_vectors(policy.lookup)
    check_folded_vectors(policy.folded)
    sizes = check_seeing(policy.seeing, sizes)
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
        if table.min() < 0 or table.max() >= n_actions:
            raise ValueError(f"policy: expected actions from 0 to {n_actions - 1}")
    if policy.kind == GREEDILY:
        check_lookup(policy.lookup, sizes, n_actions, policy.entries.shape[1])
    if policy.kind == FOLDED:
        check_folded(policy.folded, sizes, n_actions, policy.entries.shape[1])
    if policy.kind in (GREEDILY, FOLDED) and not np.isfinite(policy.entries).all():
        raise ValueError("policy: expected finite entries")


def given_action(n_variables: int) -> CompiledPolicy:
    """The policy that takes the action written at table[0, 0], whatever the state."""
    return policy_arrays(BY_TABLE, no_strides(n_variables))


def no_strides(n_variables: int) -> Integers:
    """Strides of a policy that looks at no table, or at one without states."""
    return np.zeros(n_variables, dtype=np.int64)


@compiled(inline="always")
def room_for(policy: CompiledPolicy, n_actions: int) -> Room:
    """What `choose` needs to write to."""
    return Room(
        np.zeros(len(policy.seeing.usual), dtype=np.int64),
        np.zeros(policy.hashed.keys.shape[1], dtype=np.int64),
        np.zeros(n_actions),
    )


@compiled()
def is_plain(policy: CompiledPolicy) -> bool:
    """Whether its kind alone decides: no view of the state, no actions by hash."""
    return len(policy.seeing.usual) == 0 and len(policy.hashed.keys) == 0


@compiled(inline="always")
def choose_by_chance(n_actions: int, rng: np.random.Generator) -> int:
    """Every action with the same probability."""
    return min(int(rng.random() * n_actions), n_actions - 1)


@compiled(inline="always")
def choose_by_table(strides: Integers, table: Integers, values: Integers, step: int) -> int:
    """What the table says; its last row holds for all later steps."""
    column = 0
    for variable in range(len(strides)):
        column += values[variable] * strides[variable]
    return table[min(step, len(table) - 1), column]  # type: ignore[no-any-return]


@compiled(inline="always")
def choose(
    policy: CompiledPolicy,
    room: Room,
    values: Integers,
    step: int,
    n_actions: int,
    rng: np.random.Generator,
) -> int:
    """Action in the state held by the first slots; `step` counts from 0 here."""
    seen = values
    if len(policy.seeing.usual) > 0:
        see(policy.seeing, values, room.seen)
        seen = room.seen
    if len(policy.hashed.keys) > 0:
        found = hashed_action(policy.hashed, seen, step, room.key)
        if found >= 0:
            return found
    if policy.kind == FOLDED:
        row = min(step, len(policy.entries) - 1)
        return folded_action(policy.folded, policy.entries[row], seen, room.totals)
    if policy.kind == GREEDILY:
        row = min(step, len(policy.entries) - 1)
        return greedy_action(policy.lookup, policy.entries[row], seen, n_actions)
    if policy.kind == BY_CHANCE:
        return choose_by_chance(n_actions, rng)
    return choose_by_table(policy.strides, policy.table, seen, step)


@compiled()
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
    """One action, as the compiled simulator would choose it; `step` counts from 0."""
    return choose_apart(policy, room_for(policy, n_actions), values, step, n_actions, rng)
