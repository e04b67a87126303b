"""Packing: which local tables are looked up as one, decided by scopes and sizes alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from fsmdp.model.variables import Scope

# What a look-up takes, in units of one addition.
OPENING = 4.0
READING = 1.0
ADDING = 1.0

MOST_CANDIDATES = 32
RECENT = 2


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """A scope, and the columns that a table over it needs: one for each function it holds."""

    scope: Scope
    columns: frozenset[int]


@dataclass(slots=True, eq=False)
class Pack:
    """Pieces that share one table, whose scope is the union of theirs."""

    inside: set[int]
    columns: set[int]
    cells: int
    pieces: list[int] = field(default_factory=list)

    @property
    def scope(self) -> Scope:
        """Variables of the table, in order."""
        return tuple(sorted(self.inside))

    @property
    def numbers(self) -> int:
        """Entries of the table."""
        return self.cells * len(self.columns)


def pack(
    pieces: Sequence[Piece], uses: Sequence[int], sizes: Sequence[int], price: float
) -> list[Pack]:
    """Share tables between pieces wherever the time saved is worth the memory.

    A table over variables U with columns C takes OPENING + READING |U| + ADDING sum_{c in C} uses_c
    to look up, and |Val(U)| |C| numbers. Largest first, each piece goes to the pack where the
    time saved less `price` for each further number is largest, or to one of its own if that is
    negative; so nested scopes with the same columns, which cost no number more, go together at
    any price, an infinite one included.
    Cost: the number of pieces, times the packs that share a variable, of which the nearest
    MOST_CANDIDATES are looked at.
    """
    cells = [math.prod(sizes[variable] for variable in piece.scope) for piece in pieces]
    packs: list[Pack] = []
    packs_with: dict[int, list[int]] = {}
    for number in sorted(range(len(pieces)), key=lambda p: (-cells[p], pieces[p].scope)):
        piece = pieces[number]
        best, best_gain = -1, 0.0
        for candidate in _candidates(piece.scope, packs_with, len(packs)):
            gain = _gain(packs[candidate], piece, cells[number], uses, sizes, price)
            if gain > best_gain:
                best, best_gain = candidate, gain
        if best < 0:
            best = len(packs)
            packs.append(Pack(set(), set(), 1))
        chosen = packs[best]
        for variable in piece.scope:
            if variable not in chosen.inside:
                chosen.inside.add(variable)
                chosen.cells *= sizes[variable]
                packs_with.setdefault(variable, []).append(best)
        chosen.columns |= piece.columns
        chosen.pieces.append(number)
    return packs


def _candidates(scope: Scope, packs_with: dict[int, list[int]], n_packs: int) -> list[int]:
    """Packs that share most variables with a scope, in the order they were begun, and the last."""
    shared: dict[int, int] = dict.fromkeys(range(max(0, n_packs - RECENT), n_packs), 0)
    for variable in scope:
        for candidate in packs_with.get(variable, ()):
            shared[candidate] = shared.get(candidate, 0) + 1
    nearest = sorted(shared, key=lambda candidate: (-shared[candidate], -candidate))
    return sorted(nearest[:MOST_CANDIDATES])


def _gain(
    into: Pack,
    piece: Piece,
    cells: int,
    uses: Sequence[int],
    sizes: Sequence[int],
    price: float,
) -> float:
    """Time saved by a piece that joins a pack, less the price of the numbers it adds."""
    read_already = sum(variable in into.inside for variable in piece.scope)
    added_already = sum(uses[column] for column in piece.columns if column in into.columns)
    joined = into.cells
    for variable in piece.scope:
        if variable not in into.inside:
            joined *= sizes[variable]
    n_columns = len(into.columns | piece.columns)
    grown = joined * n_columns - into.numbers - cells * len(piece.columns)
    saved = OPENING + READING * read_already + ADDING * added_already
    return saved if grown <= 0 else saved - price * grown
