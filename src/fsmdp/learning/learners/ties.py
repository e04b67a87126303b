"""Ties between actions, broken by a draw."""

from __future__ import annotations

import numpy as np

from fsmdp.learning.cells.layout import cell_lookup
from fsmdp.model.cases import Cases
from fsmdp.model.structure import Structure
from fsmdp.model.tables import Floats
from fsmdp.model.variables import Scope
from fsmdp.policies.arrays import GREEDILY, CompiledPolicy, policy_arrays

TIE = 1e-9
"""Actions whose values differ by less than this fraction of the largest reward are equal."""


def tie_scale(largest: float) -> float:
    """The size of draws that decide ties and nothing else."""
    return TIE * max(1e-300, largest)


class TieBreaker:
    """The greedy policy with a term more, which is drawn anew for each plan and decides ties."""

    def __init__(self, structure: Structure) -> None:
        nothing: Scope = ()
        self._n_actions = len(structure.actions)
        by_action = Cases((nothing,) * self._n_actions, {a: a for a in range(1, self._n_actions)})
        self._lookup = cell_lookup(structure, by_action)
        self._no_strides = np.zeros(len(structure.variables), dtype=np.int64)

    def policy(self, q: Floats, largest: float, rng: np.random.Generator) -> CompiledPolicy:
        """Greedy in q (horizon, n_cells), for rewards up to `largest`."""
        drawn = tie_scale(largest) * rng.random(self._n_actions)
        entries = np.hstack([q, np.broadcast_to(drawn, (len(q), self._n_actions))])
        return policy_arrays(GREEDILY, self._no_strides, lookup=self._lookup, entries=entries)
