"""Rewards, allowed actions and terminal states of every state: a default, and differences to it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fsmdp.model.cases import Cases, common_groups
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.tables import Floats, Table, bound_table


def reward_scopes(model: FactoredMDP) -> list[tuple[int, ...]]:
    """For each group of actions, the variables on which its difference to group 0 depends."""
    together, n_terms = rewards_and_conditions(model)
    default = together.groups[0][:n_terms]
    found = []
    for tables in together.groups:
        inside = {p for pair in _changed(tables[:n_terms], default) for t in pair for p in t.scope}
        inside |= {p for table in tables[n_terms:] for p in table.scope}
        found.append(tuple(sorted(inside)))
    return found


def rewards_and_conditions(model: FactoredMDP) -> tuple[Cases[tuple[Table, ...]], int]:
    """Rewards, then conditions, by groups of actions that differ in them; how many are rewards."""
    parts = (*model.reward_means, *model.conditions.allowed)
    return common_groups(parts, len(model.actions)), len(model.reward_means)


def _changed(tables: Sequence[Table], default: Sequence[Table]) -> list[tuple[Table, Table]]:
    pairs = zip(tables, default, strict=True)
    return [(new, usual) for new, usual in pairs if new is not usual]


def terminal_states(model: FactoredMDP) -> NDArray[np.bool_] | None:
    """Which states are terminal, in the order of their numbers; None if none is."""
    if not model.terminal:
        return None
    scope = range(len(model.sizes))
    return sum_tables(model.conditions.terminal, scope, model.sizes) > 0


def state_rewards(model: FactoredMDP) -> tuple[Floats, Cases[Table]]:
    """Rewards of the default group in every state, and of other groups what they differ by.

    Minus infinity is added where a group's actions are not allowed.
    """
    together, n_terms = rewards_and_conditions(model)
    default = together.groups[0][:n_terms]
    differences = []
    for tables, scope in zip(together.groups, reward_scopes(model), strict=True):
        changed = _changed(tables[:n_terms], default)
        values = sum_tables([*(new for new, _ in changed), *tables[n_terms:]], scope, model.sizes)
        values -= sum_tables([usual for _, usual in changed], scope, model.sizes)
        differences.append(bound_table(scope, values))
    base = sum_tables(default, range(len(model.sizes)), model.sizes)
    return base, Cases(tuple(differences), together.exceptions)


def sum_tables(tables: Sequence[Table], scope: Sequence[int], sizes: Sequence[int]) -> Floats:
    """The sum of some tables for every assignment of a scope, flat; the last variable fastest."""
    wide = [position for position in scope if sizes[position] > 1]  # numpy's axes are few
    total = np.zeros([sizes[position] for position in wide])
    for table in tables:
        shape = [sizes[position] if position in table.scope else 1 for position in wide]
        total += table.values.reshape(shape)
    return total.ravel()
