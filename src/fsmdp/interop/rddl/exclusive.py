"""Boolean fluents of which at most one is true, as one variable with a value for each.

`robot-at(x, y)` says where a robot is; as booleans, most states have it nowhere or in several
places at once, and a value function has to be bounded there too. One variable has none of them.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

import numpy as np

from fsmdp.model.joined import Joined
from fsmdp.model.joining import join_groups
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.supports import Exclusive, cover, exclusive_pairs

log = logging.getLogger("fsmdp")

NOWHERE = 0
"""What the value of a joined variable stands for when none of its members is true."""


def join_fluents(
    name: str, model: FactoredMDP, values: Mapping[str, tuple[int, ...]]
) -> tuple[FactoredMDP, dict[str, tuple[int, ...]]]:
    """The model with exclusive instances of one fluent joined, and what values stand for.

    A joined variable is called like its members without the arguments that vary: `robot-at`,
    `elevator-at-floor(e1)`. It stands for the position of the true member, counted from 1, or 0 if
    none is, and has a value for each of these that it may come to.
    """
    pairs = exclusive_pairs(model)
    fluents = np.array(
        [
            variable.name.partition("(")[0] if values[variable.name] == (0, 1) else variable.name
            for variable in model.variables
        ]
    )
    groups = cover(pairs & (fluents[:, None] == fluents), model.variables)
    joined = join_groups(model, Exclusive(groups, pairs))
    for label, members in joined.groups.items():
        log.info("%s: %d fluents joined into %s", name, len(members), label)
    return joined.model, _meanings(joined, values)


def _meanings(joined: Joined, values: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    found = {
        variable.name: values.get(variable.name, ())
        for variable in (*joined.model.variables, *joined.model.latents)
    }
    for variable, group, decoded in zip(
        joined.model.variables, joined.members, joined.decoded, strict=True
    ):
        if len(group) > 1:
            found[variable.name] = tuple(
                int(row.argmax()) + 1 if row.any() else NOWHERE for row in decoded
            )
    return found
