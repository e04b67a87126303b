"""Keys of a few words in open addressing: numbers by key, for compiled code."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fsmdp.compiled import compiled
from fsmdp.model.lookup import Integers

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
