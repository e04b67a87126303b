"""`join`: the model in which groups of exclusive variables are one variable each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import as_items, as_whole, show
from fsmdp.model.exclusive import Exclusive, cover, exclusive_pairs, prove_pairs, saving
from fsmdp.model.joined import Joined
from fsmdp.model.joined_tables import joined_parts
from fsmdp.model.layouts import Layout, fits, lay_out
from fsmdp.model.mdp import FactoredMDP, check_model
from fsmdp.model.supports import Booleans
from fsmdp.model.variables import Scope, Variable, find_positions, positions_by_name

LARGEST_JOINED_TABLE = 2**18
LARGEST_PART_TABLE = 2**10
"""For part of a group, which saves less: large tables make every plan wide."""


def join(
    model: FactoredMDP,
    groups: Sequence[Sequence[str | int | Variable]] | None = None,
    *,
    most_entries: int = LARGEST_JOINED_TABLE,
) -> Joined:
    """The model with variables of which provably at most one is off 0 made one variable.

    A robot's place as a boolean for each cell has 2^cells states, as one variable a value for each
    cell; values and policies of the two models are the same. `groups` are found if not given, and
    proved in any case: a ModelError says which two variables may be off 0 together. Tables are
    sized before they are made: of a group whose tables would have more than `most_entries`
    numbers, a part is joined whose tables stay below 2^10, and the rest is left as it is.
    Cost: the proof (see `exclusive_groups`), and the joined tables once for each member.
    """
    model = check_model(model, "join").listed()
    limit = as_whole(most_entries, "most_entries", 1)
    pairs = exclusive_pairs(model)
    if groups is not None:
        chosen = _given_groups(model, groups, pairs)
    else:
        chosen = cover(pairs, model.variables)
    return join_groups(model, Exclusive(chosen, pairs), limit)


def join_groups(
    model: FactoredMDP,
    exclusive: Exclusive,
    most_entries: int = LARGEST_JOINED_TABLE,
) -> Joined:
    """The model with groups joined that were proved exclusive, as far as their tables fit."""
    never = frozenset(np.flatnonzero(np.diagonal(exclusive.pairs)).tolist())
    groups = _fitting(model, exclusive.groups, never, most_entries)
    if not groups:
        single = lay_out(model, (), never)
        n = len(model.variables)
        return Joined(model, model, single.members[:n], single.decoded[:n], _no_pairs(model))
    layout = lay_out(model, groups, never)
    names = _names(model, layout, never)
    parts = joined_parts(model, layout, names)
    n = len(names) - len(model.latents)
    joined = FactoredMDP(
        variables=[
            Variable(names[new], len(values)) for new, values in enumerate(parts.decoded[:n])
        ],
        actions=model.actions,
        conditionals=parts.conditionals,
        rewards=parts.rewards,
        horizon=model.horizon,
        initial=dict(zip(names[:n], parts.initial, strict=True)),
        discount=model.discount,
        latents=model.latents,
    )
    pairs = _fewest_pairs(model, groups, exclusive.pairs)
    return Joined(model, joined, layout.members[:n], parts.decoded[:n], pairs)


def _no_pairs(model: FactoredMDP) -> Booleans:
    return np.zeros((len(model.variables),) * 2, dtype=bool)


def _fewest_pairs(model: FactoredMDP, groups: Sequence[Scope], pairs: Booleans) -> Booleans:
    """The groups' own pairs if they hold by themselves; otherwise all that were proved."""
    own = _no_pairs(model)
    for group in groups:
        own[np.ix_(group, group)] = True
    own &= pairs
    return own if (prove_pairs(model, own) == own).all() else pairs


def _given_groups(
    model: FactoredMDP, groups: Sequence[Sequence[str | int | Variable]], pairs: Booleans
) -> tuple[Scope, ...]:
    positions = positions_by_name(model.variables)
    listed = as_items(groups, "groups", "a list of groups", "give lists of variables")
    found: list[Scope] = []
    seen: dict[int, int] = {}
    for number, group in enumerate(listed):
        where = f"group number {number}"
        names = as_items(group, where, "a list of variables", "give their names")
        scope = tuple(sorted(find_positions(names, positions, where)))
        for at, one in enumerate(scope):
            label = model.variables[one].name
            if one in seen:
                raise ModelError(
                    f"{where}: {show(label)} is in group number {seen[one]} too; expected each "
                    "variable in one group at most, remove it from one of them."
                )
            seen[one] = number
            for other in scope[at + 1 :]:
                if not pairs[one, other]:
                    raise ModelError(
                        f"{where}: {show(label)} and {show(model.variables[other].name)} could "
                        "not be proved never to be off 0 together; expected exclusive variables, "
                        "leave one of them out."
                    )
        if len(scope) > 1:
            found.append(scope)
    return tuple(found)


def _fitting(
    model: FactoredMDP, groups: Sequence[Scope], never: frozenset[int], limit: int
) -> tuple[Scope, ...]:
    """The groups, or parts of them, that can be joined together within the limit.

    Cost: a few layouts for each group, again whenever another group was joined whole.
    """
    # Members that are always 0 go with the first of the others at no cost.
    orders = [_order(model, group, never) for group in groups]
    counts = [1 + len(never.intersection(order[:-1])) for order in orders]

    def fitting(which: int, count: int, most: int) -> bool:
        tried = [*counts[:which], count, *counts[which + 1 :]]
        parts = _parts(orders, tried)
        own = tuple(sorted(orders[which][:count]))
        return fits(model, lay_out(model, parts, never), own, most)

    ranked = sorted(range(len(groups)), key=lambda at: (-saving(groups[at], model.sizes), at))
    before = None
    while before != counts:  # what was too large may fit once others are joined
        before = list(counts)
        for which in ranked:
            whole = len(orders[which])
            if counts[which] < whole and fitting(which, whole, limit):
                counts[which] = whole
    for which in ranked:
        high = len(orders[which])
        while high - counts[which] > 1:
            middle = (counts[which] + high) // 2
            if fitting(which, middle, min(limit, LARGEST_PART_TABLE)):
                counts[which] = middle
            else:
                high = middle
    return _parts(orders, counts)


def _order(model: FactoredMDP, group: Scope, never: frozenset[int]) -> list[int]:
    """A group's members, those first that cost nothing or look at few others.

    These are the ones that keep the table of a part small.
    """
    reads = {position: len(set(model.parents(position)) - set(group)) for position in group}
    return sorted(group, key=lambda one: (one not in never, reads[one], one))


def _parts(orders: Sequence[Sequence[int]], counts: Sequence[int]) -> tuple[Scope, ...]:
    """The first members of each group, as many as told; one by itself is no group."""
    parts = (tuple(sorted(order[:count])) for order, count in zip(orders, counts, strict=True))
    return tuple(sorted(part for part in parts if len(part) > 1))


def _names(model: FactoredMDP, layout: Layout, never: frozenset[int]) -> list[str]:
    """Names of the new variables and latents, each once."""
    old = [variable.name for variable in (*model.variables, *model.latents)]
    telling = [
        [old[p] for p in group if len(group) == 1 or p not in never] or [old[group[0]]]
        for group in layout.members
    ]
    names: list[str] = []
    taken = {one[0] for one in telling if len(one) == 1}
    for group in telling:
        others = [name for name in old if name not in group]
        wanted = group[0] if len(group) == 1 else joined_name(group, others)
        found, number = wanted, 1
        while len(group) > 1 and found in taken:
            number += 1
            found = f"{wanted} {number}"
        taken.add(found)
        names.append(found)
    return names


def joined_name(names: Sequence[str], others: Sequence[str]) -> str:
    """What to call a group: `at` for `at(x1)` and `at(x2)`, `at(r)` for `at(r,x1)` and `at(r,x2)`.

    Such a name must fit none of the others; failing that, the first two members are listed.
    """
    heads, arguments = zip(*(_parse(name) for name in names), strict=True)
    if len(set(heads)) == 1 and len({len(one) for one in arguments}) == 1 and arguments[0]:
        shared = [one[0] if len(set(one)) == 1 else None for one in zip(*arguments, strict=True)]
        rivals = [found for head, found in map(_parse, others) if head == heads[0]]
        if not rivals:
            return str(heads[0])
        fixed = [value for value in shared if value is not None]
        if fixed and not any(
            len(rival) == len(shared)
            and all(value in (None, its) for value, its in zip(shared, rival, strict=True))
            for rival in rivals
        ):
            return f"{heads[0]}({','.join(fixed)})"
    return " | ".join(names[:2]) + (" | ..." if len(names) > 2 else "")


def _parse(name: str) -> tuple[str, tuple[str, ...]]:
    head, bracket, rest = name.partition("(")
    return head, tuple(rest.removesuffix(")").split(",")) if bracket else ()
