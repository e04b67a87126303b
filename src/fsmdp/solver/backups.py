"""R(s, a) + discount * E[V(s') | s, a] of a value function that is linear in local functions.

No elimination: any width works as long as each function's own parents are few.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from fsmdp.model.basis import Basis
from fsmdp.model.lookup import Lookup, flatten_cases, scope_lookup, scopes_of
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.tables import Floats
from fsmdp.model.variables import Scope, table_size
from fsmdp.policies.greedy import BestActions


@dataclass(frozen=True, slots=True, eq=False)
class Backups:
    """Where the terms of Q stand, and what they are for given weights."""

    basis: Basis
    lookup: Lookup = field(repr=False)
    rewards: Floats = field(repr=False)
    means: Floats = field(repr=False)  # discount * E[h_j(s')], all functions one after another
    columns: NDArray[np.int64] = field(repr=False)  # their j
    best: BestActions = field(repr=False)

    @property
    def n_entries(self) -> int:
        """Number of terms of Q."""
        return len(self.rewards) + len(self.means)

    def entries(self, weights: Floats, out: Floats | None = None) -> Floats:
        """The terms of Q for the weights of the following step."""
        found = np.empty(self.n_entries) if out is None else out
        found[: len(self.rewards)] = self.rewards
        np.multiply(weights[self.columns], self.means, out=found[len(self.rewards) :])
        return found


def backups_of(
    model: FactoredMDP, basis: Basis, check: Callable[[], None] | None = None
) -> Backups:
    """Back every function of a basis up once. Cost: the parents' assignments of each function."""
    marginals = model.marginals(basis, check)
    backprojections = marginals.backprojections()
    counts = [sum(table.values.size for table in cases) for cases in backprojections]
    scopes = scopes_of((*model.reward_means, *backprojections))
    lookup = scope_lookup(scopes, model.input_sizes, model.dynamics.n_actions)
    return Backups(
        marginals.basis,
        lookup,
        flatten_cases(model.reward_means),
        model.discount * flatten_cases(backprojections),
        np.repeat(np.arange(len(counts)), counts),
        BestActions(lookup, model.sizes, actions=model.actions),
    )


def backup_size(model: FactoredMDP, scope: Scope) -> int:
    """Numbers in the backups of a function of this scope, by declared parents: at most so many.

    To make them takes as many times more as the scope has assignments.
    """
    ancestry, sizes = model.dynamics.ancestry(scope), model.input_sizes
    return sum(table_size(sizes[parent] for parent in one.parent_scope) for one in ancestry)
