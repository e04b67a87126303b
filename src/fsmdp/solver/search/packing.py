"""Keys of states in which what is irrelevant is left out."""

from __future__ import annotations

import numpy as np

from fsmdp.model.lookup import Integers
from fsmdp.policies.hashed import Packing, pack_all
from fsmdp.solver.search.relevance import Relevance


def unpack_keys(packing: Packing, keys: Integers) -> Integers:
    """States from keys without a step, (n_keys, n_variables)."""
    return np.asarray((keys[:, packing.word] >> packing.shift) & packing.field)


def pack_variables(sizes: tuple[int, ...], relevance: Relevance) -> Packing:
    """Variables one after another, and which bits each value of a guard keeps."""
    plain = pack_all(sizes)
    n_words = plain.kept.shape[1]
    rows: list[list[int]] = []
    first_row: list[int] = []

    def put(row: list[int], variable: int, value: int) -> None:
        row[int(plain.word[variable])] |= value << int(plain.shift[variable])

    for guard, kept in zip(relevance.guards, relevance.kept, strict=True):
        first_row.append(len(rows))
        for flags in kept:
            row = [0] * n_words
            for variable in np.flatnonzero(flags).tolist():
                put(row, variable, int(plain.field[variable]))
            rows.append(row)
        # Bits can hold more than a variable's values; no state has those.
        rows += [[0] * n_words] * (int(plain.field[guard]) + 1 - len(kept))
    traps = []
    for trap in relevance.traps:
        looked_at, held, left = ([0] * n_words for _ in range(3))
        for variable, value in zip(trap.variables, trap.values, strict=True):
            put(looked_at, variable, int(plain.field[variable]))
            put(held, variable, int(value))
        for variable in np.flatnonzero(trap.kept).tolist():
            put(left, variable, int(plain.field[variable]))
        traps.append([looked_at, held, left])
    return plain._replace(
        guard=np.array(list(relevance.guards), dtype=np.int64),
        first_row=np.array(first_row, dtype=np.int64),
        kept=np.array(rows, dtype=np.int64).reshape(-1, n_words),
        trap=np.array(traps, dtype=np.int64).reshape(-1, 3, n_words),
    )
