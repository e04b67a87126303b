"""Policies that compiled code follows: at random, a table over all states, or greedily."""

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

BY_CHANCE = 0
BY_TABLE = 1
GREEDILY = 2
FOLDED = 3


class CompiledPolicy(NamedTuple):
    """How to act, in arrays. A table or entries of one row serve every step."""

    kind: int
    strides: Integers  # (n_variables,) of the table's columns
    table: Integers  # (n_steps, n_states)
    lookup: Lookup  # terms of Q, for a greedy policy
    entries: Floats  # (n_steps, n_entries)
    folded: Folded  # how entries are read that were folded


def policy_arrays(
    kind: int,
    strides: Integers,
    table: Integers | None = None,
    lookup: Lookup | None = None,
    entries: Floats | None = None,
    folded: Folded | None = None,
) -> CompiledPolicy:
    """A policy with what its kind does not need left empty."""
    return CompiledPolicy(
        kind,
        strides,
        np.zeros((1, 1), dtype=np.int64) if table is None else table,
        compile_lookup([], 1) if lookup is None else lookup,
        np.zeros((1, 1)) if entries is None else entries,
        nothing_folded() if folded is None else folded,
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
        if array.ndim != ndim or array.dtype != kind or array.size == 0:
            raise ValueError(f"policy: {name} must be {np.dtype(kind)} numbers in {ndim} axes")
    check_vectors(policy.lookup)
    check_folded_vectors(policy.folded)
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
def choose(
    policy: CompiledPolicy, values: Integers, step: int, n_actions: int, rng: np.random.Generator
) -> int:
    """Action in the state held by the first slots; `step` counts from 0 here."""
    if policy.kind == GREEDILY:
        row = min(step, len(policy.entries) - 1)
        return greedy_action(policy.lookup, policy.entries[row], values, n_actions)
    if policy.kind == FOLDED:
        row = min(step, len(policy.entries) - 1)
        return folded_action(policy.folded, policy.entries[row], values, np.zeros(n_actions))
    return choose_blindly(policy.kind, policy.strides, policy.table, values, step, n_actions, rng)


@compiled(inline="always")
def choose_blindly(
    kind: int,
    strides: Integers,
    table: Integers,
    values: Integers,
    step: int,
    n_actions: int,
    rng: np.random.Generator,
) -> int:
    """Action by chance or by table: what needs no Q."""
    if kind == BY_CHANCE:
        return min(int(rng.random() * n_actions), n_actions - 1)
    column = 0
    for variable in range(len(strides)):
        column += values[variable] * strides[variable]
    return table[min(step, len(table) - 1), column]  # type: ignore[no-any-return]
