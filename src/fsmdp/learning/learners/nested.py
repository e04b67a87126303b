"""Optimism that does not lose against a coarser basis: two programs, the tighter is followed.

Functions of single variables have fewer parents, so that less is unknown of them: early in a run
their program can be below that of all functions. Both are optimistic, and so is the smaller one.
The constant alone is never below either, since stages are capped by what is left to earn.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fsmdp.learning.cells.together import indicators_of
from fsmdp.learning.learners.warm import Warm, WarmPlanner, Weighed
from fsmdp.model.basis import Basis
from fsmdp.model.lookup import Integers
from fsmdp.model.structure import Structure
from fsmdp.model.tables import Floats
from fsmdp.planning.bellman import Intervals, Together, network_of_structure


@dataclass(frozen=True, slots=True, eq=False)
class CoarsePlanner:
    """A program of some functions of a basis, with weights of all as its answer."""

    planner: WarmPlanner
    together: Together | None
    kept: Integers  # functions of the basis
    entries: Integers  # their entries
    n_functions: int

    def plan(self, intervals: Intervals, start: Floats, epsilon: float) -> Weighed:
        """Weights with zeros for what was left out."""
        low, high = intervals.low[self.entries], intervals.high[self.entries]
        own = replace(intervals, low=low, high=high, rounding=None, together=self.together)
        found = self.planner.plan(own, start[self.kept], epsilon)
        weights = np.zeros((len(found.weights), self.n_functions))
        weights[:, self.kept] = found.weights
        return Weighed(weights, found.lift)


def coarse_planner(structure: Structure, columns: Integers, planner: Warm) -> CoarsePlanner | None:
    """The program of single variables' functions; None if there are no others, or none of them.

    `columns` holds the function of each backup entry.
    """
    scopes = structure.basis.scopes
    kept = [number for number, scope in enumerate(scopes) if len(scope) <= 1]
    if not 1 < len(kept) < len(scopes):
        return None
    tables = [structure.basis.tables[number] for number in kept[1:]]
    coarse = replace(
        structure,
        basis=Basis(tables),
        parents=tuple(structure.parents[number] for number in kept),
        contexts=tuple(structure.contexts[number] for number in kept) if structure.contexts else (),
    )
    network = network_of_structure(coarse)
    return CoarsePlanner(
        planner.start(network),
        indicators_of(coarse),
        np.array(kept),
        np.flatnonzero(np.isin(columns, kept)),
        len(scopes),
    )
