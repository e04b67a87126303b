"""Keys: a state as a few words of bits, with what is irrelevant left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fsmdp.compiled import compiled
from fsmdp.model.lookup import Integers

WORD_BITS = 62


class Packing(NamedTuple):
    """Where each variable stands in a key, and which bits each value of a guard keeps."""

    word: Integers  # (n_variables,)
    shift: Integers  # (n_variables,)
    field: Integers  # (n_variables,) ones, as many as a value needs
    guard: Integers  # (n_guards,) variables
    first_row: Integers  # (n_guards,)
    kept: Integers  # (sizes of all guards, n_words)
    trap: Integers  # (n_traps, 3, n_words) bits that are looked at, what they are, what is kept


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
