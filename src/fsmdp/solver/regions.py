"""Regions: what actions move, with all that is looked at together with it.

Where no product of a few variables makes a bound fall, all functions of a region together may: what
happens there is bounded as if the rest of the model were at its best.
"""

from __future__ import annotations

import numpy as np

from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.variables import Scope, table_size
from fsmdp.solver.backups import backup_size

LARGEST_REGION = 2**8
"""Assignments of a region, and so its functions."""

LARGEST_BACKUP = 2**12
"""Numbers in the backups of one of them."""

MOST_REGIONS = 64
"""Sets of variables that are looked at."""


def regions_of(model: FactoredMDP) -> list[Scope]:
    """For each set of variables that the same actions move, it and its nearest neighbours.

    Nearest are those that most mechanisms and rewards look at together with what is moved; of
    equals, those that are drawn at random and not determined by others. The cheapest come first.
    Cost: a pass over the mechanisms for each region.
    """
    n_variables, sizes = len(model.sizes), model.sizes
    moved: dict[frozenset[int], list[int]] = {}
    is_drawn = np.zeros(n_variables, dtype=np.bool_)
    scopes: list[set[int]] = []
    for child in range(n_variables):
        cases = model.dynamics.ancestry((child,))
        inputs = {p for ancestry in cases for p in ancestry.parent_scope}
        movers = frozenset({p for p in inputs if p >= n_variables} | {*cases.exceptions})
        if movers:
            moved.setdefault(movers, []).append(child)
        scopes.append({child, *(p for p in inputs if p < n_variables)})
        is_drawn[child] = any(
            ((kernel.table > 0) & (kernel.table < 1)).any()
            for ancestry in cases
            for kernel in ancestry.kernels
        )
    scopes += [
        {p for p in t.scope if p < n_variables} for means in model.reward_means for t in means
    ]
    found: dict[Scope, int] = {}
    for members in list(moved.values())[:MOST_REGIONS]:
        ties = np.zeros(n_variables, dtype=np.int64)
        for scope in scopes:
            if scope.intersection(members):
                ties[list(scope)] += 1
        region = list(members)
        near = [p for p in np.flatnonzero(ties).tolist() if p not in members]
        for position in sorted(near, key=lambda p: (-ties[p], not is_drawn[p], p)):
            wider = tuple(sorted((*region, position)))
            fits = table_size(sizes[p] for p in wider) <= LARGEST_REGION
            if fits and backup_size(model, wider) <= LARGEST_BACKUP:
                region.append(position)
        whole = tuple(sorted(region))
        if len(whole) > 1 and table_size(sizes[p] for p in whole) <= LARGEST_REGION:
            found[whole] = backup_size(model, whole)
    return sorted(found, key=found.__getitem__)
