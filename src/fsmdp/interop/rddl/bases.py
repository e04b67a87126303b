"""Bases by the objects that variables speak of."""

from __future__ import annotations

import math
from collections import defaultdict

from fsmdp.foundation.checks import as_whole
from fsmdp.model.basis import Basis
from fsmdp.model.mdp import FactoredMDP, check_model
from fsmdp.model.variables import Scope

MOST_ASSIGNMENTS = 128


def object_basis(model: FactoredMDP, most_assignments: int = MOST_ASSIGNMENTS) -> Basis:
    """Every function of the variables with the same arguments, of an imported model.

    `passed(c1)` and `taken(c1)` make a block. Variables without arguments (`hasspare`, joined
    ones) are added to every block that then has at most `most_assignments` assignments; those
    that fit nowhere, and blocks that are larger alone, are taken one variable at a time.
    """
    check_model(model, "object_basis")
    as_whole(most_assignments, "most_assignments", 2)
    by_arguments: dict[str, list[int]] = defaultdict(list)
    for position, variable in enumerate(model.variables):
        by_arguments[variable.name.partition("(")[2]].append(position)
    common = by_arguments.pop("", [])
    scopes: list[Scope] = [(position,) for position in range(len(model.variables))]
    for members in [*by_arguments.values(), []]:
        block = list(members)
        for position in common:
            if _assignments(model, [*block, position]) <= most_assignments:
                block.append(position)
        if len(block) > 1 and _assignments(model, block) <= most_assignments:
            scopes.append(tuple(sorted(block)))
    covered = {position for scope in scopes if len(scope) > 1 for position in scope}
    kept = [scope for scope in dict.fromkeys(scopes) if len(scope) > 1 or scope[0] not in covered]
    return Basis.blocks(model, kept)


def _assignments(model: FactoredMDP, scope: list[int]) -> int:
    return math.prod(model.sizes[position] for position in scope)
