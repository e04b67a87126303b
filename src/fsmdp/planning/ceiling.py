"""Ceilings: rows of a stage's program that keep optimistic values below what is left to earn.

The optimistic backup of w is at most R + w_0 + sum over scopes of max_y sum_j w_j h_j(y), whatever
intervals say. Let that sum be at most C_l = m_l + HEADROOM (M_l - m_l), with M_l the most and m_l
the least that can be earned from step l on: then no backup in the step before is above C_{l-1}, the
constant C_{l-1} solves its program, and so on to the first step. Values, and with them weights,
stay of the order of what an episode can earn.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy import sparse

from fsmdp.model.basis import Basis
from fsmdp.model.tables import Floats
from fsmdp.planning.bellman import BellmanNetwork
from fsmdp.planning.intervals import Intervals

HEADROOM = 1.5
"""With 1, values would be flattened where they are to tell states apart, for the sum over scopes is
above the largest value: on a ring of 8, regret doubles. From 1.5 on it does not change."""


@dataclass(frozen=True, slots=True, eq=False)
class Ceiling:
    """t_Z >= sum_j w_j h_j(y) for each scope Z and its values y, and -w_0 - sum_Z t_Z >= -M."""

    weights: sparse.csr_matrix = field(repr=False)  # (n_rows, n_functions)
    largest: sparse.csr_matrix = field(repr=False)  # (n_rows, n_scopes) columns t_Z

    def lower(self, ceiling: float) -> Floats:
        """Right-hand sides, the ceiling's last."""
        sides = np.zeros(self.weights.shape[0])
        sides[-1] = -ceiling
        return sides


def ceiling_rows(basis: Basis) -> Ceiling:
    """Rows for one step. Cost: the values of all scopes."""
    scopes = {scope: at for at, scope in enumerate(dict.fromkeys(basis.scopes[1:]))}
    values: list[tuple[int, int, float]] = []
    first_row: dict[int, int] = {}
    n_rows = 0
    largest: list[tuple[int, int]] = []
    for number, table in enumerate(basis):
        if number == 0:
            continue
        at = scopes[table.scope]
        if at not in first_row:
            first_row[at] = n_rows
            largest += [(n_rows + y, at) for y in range(table.values.size)]
            n_rows += table.values.size
        flat = table.values.ravel()
        values += [(first_row[at] + int(y), number, -float(flat[y])) for y in np.flatnonzero(flat)]
    values.append((n_rows, 0, -1.0))
    rows, columns, numbers = zip(*values, strict=True)
    above = [(row, at, 1.0) for row, at in largest] + [
        (n_rows, at, -1.0) for at in range(len(scopes))
    ]
    t_rows, t_columns, t_numbers = zip(*above, strict=True) if above else ((), (), ())
    return Ceiling(
        sparse.csr_matrix((numbers, (rows, columns)), shape=(n_rows + 1, len(basis))),
        sparse.csr_matrix((t_numbers, (t_rows, t_columns)), shape=(n_rows + 1, len(scopes))),
    )


def left_to_earn(network: BellmanNetwork, intervals: Intervals) -> Floats:
    """C_l, from the largest and the least reward of a step. Cost: two max-sums."""
    assert network.horizon is not None
    nothing = np.zeros(len(network.basis))
    right = network.right_side(nothing, intervals)
    most = network.elimination.maximise(right).value
    least = -network.elimination.maximise(-right).value
    most = least + HEADROOM * (most - least)
    ceilings = np.zeros(network.horizon)
    after = 0.0
    for step in reversed(range(network.horizon)):
        ceilings[step] = after = most + network.discount * after
    return ceilings
