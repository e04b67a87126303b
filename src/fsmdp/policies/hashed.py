"""Actions by state in a hash table: for policies that know some states of very many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fsmdp.compiled import compiled
from fsmdp.model.tables import Integers

WORD_BITS = 62


class Packing(NamedTuple):
    """Where each variable stands in a key, and which bits each value of a guard keeps."""

    word: Integers  # (n_variables,)
    shift: Integers  # (n_variables,)
    field: Integers  # (n_variables,) ones, as many as a value needs
    guard: Integers  # (n_guards,) variables
    first_row: Integers  # (n_guards,)
    kept: Integers  # (sizes of all guards, n_words)
    trap: Integers  # (n_traps, 3, n_words) bits that are compared, what they are, what is kept


def pack_all(sizes: Sequence[int]) -> Packing:
    """Variables one after another, none across two words; nothing is irrelevant."""
    words, shifts, fields, word, shift = [], [], [], 0, 0
    for size in sizes:
        bits = (size - 1).bit_length()
        if shift + bits > WORD_BITS:
            word, shift = word + 1, 0
        words.append(word)
        shifts.append(shift)
        fields.append((1 << bits) - 1)
        shift += bits
    nothing = np.zeros(0, dtype=np.int64)
    return Packing(
        np.array(words, dtype=np.int64),
        np.array(shifts, dtype=np.int64),
        np.array(fields, dtype=np.int64),
        nothing,
        nothing,
        np.zeros((0, word + 1), dtype=np.int64),
        np.zeros((0, 3, word + 1), dtype=np.int64),
    )


def pack_states(packing: Packing, states: Integers) -> Integers:
    """Keys of many states, one a row, nothing merged."""
    keys = np.zeros((len(states), packing.kept.shape[1]), dtype=np.int64)
    for variable, (word, shift) in enumerate(zip(packing.word, packing.shift, strict=True)):
        keys[:, word] |= states[:, variable] << shift
    return keys


def unpack_keys(packing: Packing, keys: Integers) -> Integers:
    """States from keys without a step, (n_keys, n_variables)."""
    return np.asarray((keys[:, packing.word] >> packing.shift) & packing.field)


@compiled(inner=True)
def merge(packing: Packing, key: Integers) -> None:
    """Set to 0 what is irrelevant in a state."""
    n_words = packing.kept.shape[1]
    for g in range(len(packing.guard)):
        guard = packing.guard[g]
        value = key[packing.word[guard]] >> packing.shift[guard] & packing.field[guard]
        row = packing.first_row[g] + value
        for word in range(n_words):
            # Bits of guards are kept by all rows, so that the order is of no matter.
            key[word] &= packing.kept[row, word]
    for t in range(len(packing.trap)):
        inside = True
        for word in range(n_words):
            inside = inside and key[word] & packing.trap[t, 0, word] == packing.trap[t, 1, word]
        if inside:
            for word in range(n_words):
                key[word] &= packing.trap[t, 2, word]


@compiled()
def pack(packing: Packing, values: Integers, key: Integers) -> None:
    """The key of a state, merged with those that differ in irrelevant variables."""
    for word in range(packing.kept.shape[1]):
        key[word] = 0
    for variable in range(len(packing.word)):
        key[packing.word[variable]] |= values[variable] << packing.shift[variable]
    merge(packing, key)


@compiled()
def unpack(packing: Packing, key: Integers, values: Integers) -> None:
    """The state of a key, into the first slots of `values`."""
    for variable in range(len(packing.word)):
        bits = key[packing.word[variable]] >> packing.shift[variable]
        values[variable] = bits & packing.field[variable]


Indices = NDArray[np.int32]


@compiled()
def find(keys: Integers, slots: Indices, key: Integers) -> int:
    """The slot in which a key's number stands, or the empty one where it would."""
    mixed = np.uint64(0)
    for word in range(len(key)):
        # The finaliser of MurmurHash3 (Appleby), word after word.
        mixed ^= np.uint64(key[word])
        mixed ^= mixed >> np.uint64(33)
        mixed *= np.uint64(0xFF51AFD7ED558CCD)
        mixed ^= mixed >> np.uint64(33)
        mixed *= np.uint64(0xC4CEB9FE1A85EC53)
        mixed ^= mixed >> np.uint64(33)
    mask = np.uint64(len(slots) - 1)
    slot = np.int64(mixed & mask)
    while slots[slot] >= 0:
        other, equal = keys[slots[slot]], True
        for word in range(len(key)):
            equal = equal and other[word] == key[word]
        if equal:
            break
        slot = (slot + 1) % len(slots)
    return slot  # type: ignore[return-value]


@compiled()
def insert_all(keys: Integers, slots: Indices, begin: int, end: int) -> None:
    """Put keys that are not there yet into the slots."""
    for number in range(begin, end):
        slots[find(keys, slots, keys[number])] = number


def slots_for(keys: Integers) -> Indices:
    """Slots that hold all keys, at most half of them taken."""
    slots = np.full(1 << max(1, 2 * len(keys)).bit_length(), -1, dtype=np.int32)
    insert_all(keys, slots, 0, len(keys))
    return slots


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
