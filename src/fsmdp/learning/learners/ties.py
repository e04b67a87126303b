"""Ties between actions, broken by a draw."""

from __future__ import annotations

import numpy as np

from fsmdp.learning.cells.layout import cell_lookup
from fsmdp.model.actions import Actions
from fsmdp.model.cases import Cases
from fsmdp.model.structure import Structure
from fsmdp.model.tables import Floats
from fsmdp.model.variables import Scope
from fsmdp.policies.arrays import FOLDED, GREEDILY, JOINTLY, CompiledPolicy, policy_arrays
from fsmdp.policies.folding import fold, fold_layout, lookup_cost
from fsmdp.policies.joint import Joint, joint_greedily

TIE = 1e-9
"""Actions whose values differ by less than this fraction of the largest reward are equal."""


def tie_scale(largest: float) -> float:
    """The size of draws that decide ties and nothing else."""
    return TIE * max(1e-300, largest)


class TieBreaker:
    """The greedy policy with a term more, which is drawn anew for each plan and decides ties.

    Of actions that are made of variables, each variable has a term.
    """

    def __init__(self, structure: Structure) -> None:
        nothing: Scope = ()
        self._no_strides = np.zeros(len(structure.variables), dtype=np.int64)
        self._joint: Joint | None = None
        actions = structure.actions
        if isinstance(actions, Actions):
            first = len(structure.variables)
            alone: list[Cases[Scope]] = [
                Cases(((first + at,),)) for at in range(len(actions.variables))
            ]
            self._lookup = cell_lookup(structure, *alone)
            self._joint = joint_greedily(actions, first, self._lookup)
            self._n_drawn = sum(actions.sizes)
            return
        self._n_actions = self._n_drawn = len(actions)
        by_action = Cases((nothing,) * self._n_actions, {a: a for a in range(1, self._n_actions)})
        self._lookup = cell_lookup(structure, by_action)
        sizes = [variable.size for variable in structure.variables]
        self._layout = fold_layout(self._lookup, sizes, self._n_actions, structure.horizon or 1)
        self._plain_cost = lookup_cost(self._lookup)

    def policy(
        self, q: Floats, largest: float, rng: np.random.Generator, episodes: float
    ) -> CompiledPolicy:
        """Greedy in q (horizon, n_cells), for rewards up to `largest`.

        Folded if it pays for the number of episodes that the policy is expected to last.
        """
        drawn = tie_scale(largest) * rng.random(self._n_drawn)
        entries = np.hstack([q, np.broadcast_to(drawn, (len(q), self._n_drawn))])
        if self._joint is not None:
            nothing, lookup, joint = self._no_strides, self._lookup, self._joint
            return policy_arrays(JOINTLY, nothing, lookup=lookup, entries=entries, joint=joint)
        layout = self._layout
        if layout is None or not layout.pays(episodes, self._plain_cost):
            return policy_arrays(GREEDILY, self._no_strides, lookup=self._lookup, entries=entries)
        tables = fold(layout, entries)
        return policy_arrays(FOLDED, self._no_strides, entries=tables, folded=layout.folded)
