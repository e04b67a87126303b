"""Actions by state in a hash table: for policies that know some states of very many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fsmdp.compiled import compiled
from fsmdp.model.lookup import Integers
from fsmdp.policies.hashing import Indices, find, slots_for
from fsmdp.policies.keys import Packing, pack, pack_all


class Hashed(NamedTuple):
    """Keys of states and an action for each; no keys mean that there is none.

    The first fields are those of a `Packing`. The last word of a key is the step where `by_step`
    says so; otherwise `chosen` has one row for each step, or one for all.
    """

    word: Integers
    shift: Integers
    field: Integers
    guard: Integers
    first_row: Integers
    kept: Integers
    trap: Integers
    by_step: bool
    keys: Integers  # (n_states, n_words + by_step)
    slots: Indices  # (a power of two,)
    chosen: NDArray[np.int16]  # (n_steps, n_states)


def nothing_hashed() -> Hashed:
    """No state at all."""
    keys = np.zeros((0, 1), dtype=np.int64)
    return Hashed(*pack_all(()), False, keys, slots_for(keys), np.zeros((1, 0), dtype=np.int16))


def hash_actions(packing: Packing, by_step: bool, keys: Integers, chosen: NDArray[Any]) -> Hashed:
    """A table of actions for keys, (n_steps, n_states). Cost: the states."""
    actions = np.ascontiguousarray(chosen, dtype=np.int16)
    return Hashed(*packing, by_step, keys, slots_for(keys), actions)


def check_hashed(hashed: Hashed, sizes: Sequence[int], n_actions: int) -> None:
    """Refuse, with a ValueError, arrays with which compiled code would go astray or never end."""
    _check_kinds(hashed)
    n_keys, n_slots = len(hashed.keys), len(hashed.slots)
    if n_slots < 2 or n_slots & (n_slots - 1) or not (hashed.slots < 0).any():
        raise ValueError("hash table: expected a power of two of slots, not all taken")
    if hashed.slots.max() >= n_keys:
        raise ValueError("hash table: expected numbers of keys in the slots")
    if hashed.chosen.shape[0] < 1 or hashed.chosen.shape[1] != n_keys:
        raise ValueError("hash table: expected an action for each key")
    if n_keys == 0:
        return
    plain = pack_all(sizes)
    for name in ("word", "shift", "field"):
        if not np.array_equal(getattr(hashed, name), getattr(plain, name)):
            raise ValueError("hash table: expected the bits of each variable in order")
    n_words = plain.kept.shape[1]
    if hashed.kept.shape[1] != n_words or hashed.trap.shape[1:] != (3, n_words):
        raise ValueError("hash table: expected as many words as the variables need")
    if hashed.keys.shape[1] != n_words + bool(hashed.by_step):
        raise ValueError("hash table: expected as many words as the variables need")
    # A guard's bits may hold more than its values, so there is a row for all that they can hold.
    guards = [g for g in hashed.guard.tolist() if 0 <= g < len(sizes)]
    rows = [int(plain.field[guard]) + 1 for guard in guards]
    starts = np.cumsum([0, *rows])
    if len(rows) != len(hashed.guard) or not np.array_equal(hashed.first_row, starts[:-1]):
        raise ValueError("hash table: expected a row for each value of each guard")
    if len(hashed.kept) != starts[-1]:
        raise ValueError("hash table: expected a row for each value of each guard")
    if not 0 <= hashed.chosen.min() <= hashed.chosen.max() < n_actions:
        raise ValueError(f"hash table: expected actions from 0 to {n_actions - 1}")


def _check_kinds(hashed: Hashed) -> None:
    for name, kind, ndim in (
        ("word", np.int64, 1),
        ("shift", np.int64, 1),
        ("field", np.int64, 1),
        ("guard", np.int64, 1),
        ("first_row", np.int64, 1),
        ("kept", np.int64, 2),
        ("trap", np.int64, 3),
        ("keys", np.int64, 2),
        ("slots", np.int32, 1),
        ("chosen", np.int16, 2),
    ):
        array = getattr(hashed, name)
        if array.dtype != kind or array.ndim != ndim:
            raise ValueError(f"hash table: {name} must be {np.dtype(kind)} in {ndim} axes")


@compiled(inline="always")
def hashed_action(hashed: Hashed, values: Integers, step: int, key: Integers) -> int:
    """The action in a state at a step, counted from 0; -1 where the state is not in the table.

    `key` is room for a key.
    """
    packing = Packing(
        hashed.word,
        hashed.shift,
        hashed.field,
        hashed.guard,
        hashed.first_row,
        hashed.kept,
        hashed.trap,
    )
    pack(packing, values, key)
    if hashed.by_step:
        key[len(key) - 1] = step
    number = hashed.slots[find(hashed.keys, hashed.slots, key)]
    if number < 0:
        return -1
    return hashed.chosen[min(step, len(hashed.chosen) - 1), number]  # type: ignore[no-any-return]
