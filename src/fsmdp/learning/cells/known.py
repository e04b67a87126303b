"""Rewards that are declared known: their means at the cells of a structure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import as_tuple, show, show_names
from fsmdp.model.actions import n_listed
from fsmdp.model.cases import Cases, common_groups
from fsmdp.model.rewards import Reward, check_reward_names, resolve_rewards
from fsmdp.model.structure import Structure, index_actions
from fsmdp.model.tables import Floats, Table
from fsmdp.model.variables import Scope


def known_reward_means(
    structure: Structure, known: Sequence[Reward] | None
) -> tuple[NDArray[np.bool_], Floats]:
    """Which terms are known, and the mean at every reward cell (0 in those of unknown terms).

    Terms are matched by name; a structure may have terms that are not known.
    """
    sizes = [variable.size for variable in structure.inputs]
    names = {term.name: position for position, term in enumerate(structure.rewards)}
    rewards = as_tuple(
        () if known is None else known, Reward, "known_rewards", "give model.rewards, or leave out"
    )
    check_reward_names(rewards)
    for reward in rewards:
        if reward.name not in names:
            raise ModelError(
                f"known_rewards: {show(reward.name)} is not a term of the structure; expected "
                f"one of {show_names(names)}."
            )
    resolved = resolve_rewards(rewards, structure.inputs, index_actions(structure.actions))
    by_name = {reward.name: means for reward, means in zip(rewards, resolved, strict=True)}
    is_known = np.array([term.name in by_name for term in structure.rewards], dtype=np.bool_)
    parts = [np.zeros(0)]
    for term in structure.rewards:
        shapes = [tuple(sizes[position] for position in scope) for scope in term.parents]
        if term.name in by_name:
            tables = _on_groups(
                term.name, term.parents, by_name[term.name], n_listed(structure.actions)
            )
            parts += [
                np.broadcast_to(table, shape).ravel()
                for table, shape in zip(tables, shapes, strict=True)
            ]
        else:
            parts += [np.zeros(int(np.prod(shape))) for shape in shapes]
    return is_known, np.concatenate(parts)


def _on_groups(
    name: str, parents: Cases[Scope], means: Cases[Table], n_actions: int
) -> list[Floats]:
    """The known table of each action group, with one axis for each of the group's parents."""
    found: dict[int, Floats] = {}
    pairs: Cases[tuple[Any, ...]] = common_groups(
        [parents.map_with_group(), means.map_with_group()], n_actions
    )
    for (group, scope), (_, table) in pairs:
        if not set(table.scope) <= set(scope):
            raise ModelError(
                f"known reward {show(name)} looks at variables {list(table.scope)} (by position), "
                f"the structure only at {list(scope)}; declare the same parents in both."
            )
        shape = [1] * len(scope)
        for axis, position in enumerate(table.scope):
            shape[scope.index(position)] = table.values.shape[axis]
        values = table.values.reshape(shape)
        if group in found and (found[group] != values).any():
            raise ModelError(
                f"known reward {show(name)} differs between actions that the structure puts into "
                "one group; split the group in the structure."
            )
        found[group] = values
    return [found[group] for group in range(len(parents))]
