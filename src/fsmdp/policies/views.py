"""Seeing a state in other variables: groups of which at most one is off 0 become one each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fsmdp.compiled import compiled
from fsmdp.model.lookup import Integers


class Seeing(NamedTuple):
    """For each new variable its members, and its value for each value of each of them.

    No new variables mean that states are seen as they are.
    """

    member_start: Integers  # (n_new + 1,)
    member: Integers  # positions among the old variables
    code_start: Integers  # (n_members + 1,) of the codes of a member's values
    code: Integers  # the new value when a member has a value; that of 0 is not looked at
    usual: Integers  # (n_new,) the new value when all members are 0


def nothing_seen() -> Seeing:
    """States as they are."""
    start, nothing = np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int64)
    return Seeing(start, nothing, start, nothing, nothing)


def check_seeing(seeing: Seeing, sizes: Sequence[int]) -> tuple[int, ...]:
    """Sizes of what is seen; a ValueError for arrays that lead compiled code out of bounds."""
    if any(part.dtype != np.int64 or part.ndim != 1 for part in seeing):
        raise ValueError("view: expected vectors of 64-bit integers")
    n_new, n_members = len(seeing.usual), len(seeing.member)
    if n_new == 0:
        return tuple(sizes)
    for starts, count, last in (
        (seeing.member_start, n_new, n_members),
        (seeing.code_start, n_members, len(seeing.code)),
    ):
        if len(starts) != count + 1 or starts[0] != 0 or starts[-1] != last:
            raise ValueError("view: expected a start for each part")
        if (starts[1:] < starts[:-1]).any():
            raise ValueError("view: expected starts that do not fall")
    if n_members and not 0 <= seeing.member.min() <= seeing.member.max() < len(sizes):
        raise ValueError("view: expected positions of variables")
    widths = np.diff(seeing.code_start)
    if not np.array_equal(widths, np.array(sizes)[seeing.member]):
        raise ValueError("view: expected a code for each value")
    if seeing.usual.min() < 0 or (len(seeing.code) and seeing.code.min() < 0):
        raise ValueError("view: expected codes from 0 on")
    new = np.repeat(np.arange(n_new), np.diff(seeing.member_start))
    largest = seeing.usual.copy()
    for at in range(n_members):
        codes = seeing.code[seeing.code_start[at] : seeing.code_start[at + 1]]
        largest[new[at]] = max(largest[new[at]], codes.max(initial=0))
    # In Python's integers, since those of arrays wrap.
    return tuple(one + 1 for one in largest.tolist())


@compiled(inline="always")
def see(seeing: Seeing, values: Integers, seen: Integers) -> None:
    """The state as it is seen; of several members off 0 the last counts. Cost: the variables."""
    for new in range(len(seeing.usual)):
        seen[new] = seeing.usual[new]
        for at in range(seeing.member_start[new], seeing.member_start[new + 1]):
            value = values[seeing.member[at]]
            if value > 0:
                seen[new] = seeing.code[seeing.code_start[at] + value]
