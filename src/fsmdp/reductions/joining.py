"""`join`: the model in which groups of exclusive variables are one variable each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import as_items, as_whole, show
from fsmdp.model.cases import ANY, Case, Cases, Item, _Any
from fsmdp.model.conditionals import ROW_TOLERANCE, Conditional
from fsmdp.model.mdp import FactoredMDP, Start, check_model
from fsmdp.model.rewards import Reward
from fsmdp.model.supports import Booleans, Exclusive, cover, exclusive_pairs, prove_pairs, saving
from fsmdp.model.tables import Floats, Table, bound_table
from fsmdp.model.variables import Scope, Variable, find_positions, positions_by_name
from fsmdp.reductions.actions import ListActions
from fsmdp.reductions.joined import (
    Axes,
    Joined,
    Layout,
    Together,
    axes_of,
    block_cases,
    blocks_of,
    columns_of,
    fits,
    is_untouched,
    lay_out,
    new_positions,
    read_at,
)
from fsmdp.reductions.reduction import Chain, Integers, Reduction


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """What a joined model is built of; `decoded` without the values that are never reached."""

    conditionals: tuple[Conditional, ...]
    rewards: tuple[Reward, ...]
    initial: tuple[Start, ...]
    decoded: tuple[Integers, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Piece:
    """A block's table in one action group, and its rows that a state can come to."""

    axes: Axes
    table: Floats  # (parents, drawn, children)
    met: Booleans  # (parents, drawn)


def joined_parts(model: FactoredMDP, layout: Layout, names: Sequence[str]) -> Parts:
    """Conditionals, rewards and starts over the variables of a layout.

    P(new children | z) = product of the kernels of a block, at the members' values. A row whose
    product does not sum to 1 would put two members off 0 at once; as the groups are proved, no
    state that can be reached comes to it, and it may hold anything.
    Cost: the new tables, once for each mechanism of their block.
    """
    blocks = blocks_of(model.dynamics, layout)
    pieces: list[Cases[_Piece] | Conditional] = []
    for block in blocks:
        cases = block_cases(model.dynamics, block)
        if all(is_untouched(together, layout) for together in cases):
            pieces.append(model.conditionals[block[0]])
        else:
            pieces.append(cases.map(lambda together: _product(together, layout)))
    starts = [_start(model, layout, new) for new in range(_count(model, layout))]
    kept = _reached(layout, starts, [cases for cases in pieces if isinstance(cases, Cases)])
    return Parts(
        tuple(
            part
            if isinstance(part, Conditional)
            else _conditional(part.map(lambda piece: _sliced(piece, kept)), names, model.actions)
            for part in pieces
        ),
        tuple(
            _reward(reward, means, layout, kept, names, model.actions)
            for reward, means in zip(model.rewards, model.reward_means, strict=True)
        ),
        tuple(_kept_start(start, kept[new]) for new, start in enumerate(starts)),
        tuple(values[kept[new]] for new, values in enumerate(layout.decoded)),
    )


def _count(model: FactoredMDP, layout: Layout) -> int:
    return len(layout.members) - len(model.latents)


def _product(together: Together, layout: Layout) -> _Piece:
    axes = axes_of(together, layout)
    now = {new: axis for axis, new in enumerate(axes.parents)}
    later = {
        new: len(axes.parents) + axis for axis, new in enumerate((*axes.drawn, *axes.children))
    }
    shape = axes.shape(layout.sizes)
    table = np.ones(shape)
    for children, kernel in together:
        columns = [
            *columns_of(kernel.parents, layout, now),
            *columns_of(kernel.drawn, layout, later),
            *((later[layout.place[c][0]], layout.column(c)) for c in children),
        ]
        certain = _with_certain_rows(kernel.table, len(children))
        table *= read_at(certain, columns, len(shape))
    n_rows = len(axes.parents) + len(axes.drawn)
    sums = table.sum(axis=tuple(range(n_rows, table.ndim)))
    return _Piece(axes, table, np.abs(sums - 1) <= ROW_TOLERANCE)


def _with_certain_rows(table: Floats, n_children: int) -> Floats:
    """The table with 1 where a row has a single outcome: rounding must not add up in products."""
    rows = table.reshape(*table.shape[: table.ndim - n_children], -1)
    single = (rows > 0).sum(axis=-1, keepdims=True) == 1
    return np.where(single & (rows > 0), 1.0, rows).reshape(table.shape)


def _start(model: FactoredMDP, layout: Layout, new: int) -> Floats:
    """Distribution of a new variable at the start: at most one member can be off 0 there."""
    distributions = model.initial_distributions()
    probabilities = np.ones(len(layout.decoded[new]))
    for at, old in enumerate(layout.members[new]):
        certain = _with_certain_rows(distributions[old], 1)
        probabilities = probabilities * certain[layout.decoded[new][:, at]]
    return probabilities


def _kept_start(start: Floats, kept: Integers) -> Start:
    values = start[kept]
    return int(values.argmax()) if (values > 0).sum() == 1 else values


def _reached(
    layout: Layout, starts: Sequence[Floats], pieces: Sequence[Cases[_Piece]]
) -> list[Integers]:
    """Values of each new variable that may be met; of those that are no group, all.

    The smallest sets that hold what the start and, from values in the sets, any action may draw.
    """
    grouped = [len(group) > 1 for group in layout.members]
    reached = [
        starts[new] > 0 if grouped[new] else np.ones(size, dtype=bool)
        for new, size in enumerate(layout.sizes)
    ]
    relations = [
        _relation(piece, child, grouped)
        for cases in pieces
        for piece in cases
        for child in piece.axes.children
        if grouped[child]
    ]
    changed = True
    while changed:
        changed = False
        for scope, child, possible in relations:
            rows = possible[np.ix_(*(reached[new] for new in scope))]
            met = reached[child] | rows.reshape(-1, possible.shape[-1]).any(axis=0)
            changed |= bool((met != reached[child]).any())
            reached[child] = met
    return [np.flatnonzero(values) for values in reached]


def _relation(
    piece: _Piece, child: int, grouped: Sequence[bool]
) -> tuple[tuple[int, ...], int, Booleans]:
    """Which values of a child can follow which values of the groups that a table looks at."""
    rows = (*piece.axes.parents, *piece.axes.drawn)
    kept = [axis for axis, new in enumerate(rows) if grouped[new]]
    column = len(rows) + piece.axes.children.index(child)
    n_children = len(piece.axes.children)
    possible = (piece.table > 0) & piece.met.reshape(*piece.met.shape, *(1,) * n_children)
    others = tuple(axis for axis in range(possible.ndim) if axis not in kept and axis != column)
    return tuple(rows[axis] for axis in kept), child, np.asarray(possible.any(axis=others))


def _sliced(piece: _Piece, kept: Sequence[Integers]) -> _Piece:
    """A table over the values that are kept, without the axes that nothing depends on."""
    axes = piece.axes
    rows = [*axes.parents, *axes.drawn]
    row_index = np.ix_(*(kept[new] for new in rows))
    table = piece.table[np.ix_(*(kept[new] for new in (*rows, *axes.children)))]
    met = piece.met[row_index] if rows else piece.met
    flat = table.reshape(*met.shape, -1)
    left = list(range(len(rows)))
    for axis in range(len(rows)):
        at = left.index(axis)
        first = np.expand_dims(met.argmax(axis=at), at)
        common = np.take_along_axis(flat, first[..., None], axis=at)
        if ((flat == common).all(axis=-1) | ~met).all():
            flat, met = common.squeeze(axis=at), np.asarray(met.any(axis=at))
            left.pop(at)
    outcomes = table.shape[len(rows) :]
    nothing = np.zeros(flat.shape[-1])
    nothing[0] = 1.0
    flat = np.where(met[..., None], flat, nothing)
    parents = tuple(rows[axis] for axis in left if axis < len(axes.parents))
    drawn = tuple(rows[axis] for axis in left if axis >= len(axes.parents))
    return _Piece(Axes(parents, drawn, axes.children), flat.reshape(*met.shape, *outcomes), met)


def _conditional(cases: Cases[_Piece], names: Sequence[str], actions: Sequence[str]) -> Conditional:
    merged = cases.merge_equal(
        lambda piece: (piece.axes.parents, piece.axes.drawn, piece.table.tobytes())
    )

    return Conditional(
        _named(merged.groups[0].axes.children, names),
        [
            Case(who, _named(one.axes.parents, names), one.table, _named(one.axes.drawn, names))
            for who, one in zip(actions_of(merged, actions), merged, strict=True)
        ],
    )


def _named(positions: Sequence[int], names: Sequence[str]) -> list[str]:
    return [names[position] for position in positions]


def actions_of(cases: Cases[Item], actions: Sequence[str]) -> list[list[str] | _Any]:
    """The actions of each group; ANY for the first, whose actions are listed nowhere."""
    listed: list[list[str]] = [[] for _ in cases]
    for action, group in cases.exceptions.items():
        listed[group].append(actions[action])
    return [ANY, *listed[1:]]


def _reward(
    reward: Reward,
    means: Cases[Table],
    layout: Layout,
    kept: Sequence[Integers],
    names: Sequence[str],
    actions: Sequence[str],
) -> Reward:
    if all(len(layout.members[layout.place[p][0]]) == 1 for table in means for p in table.scope):
        return reward
    tables = means.map(lambda table: _joined_mean(table, layout, kept)).merge_equal(
        lambda table: (table.scope, table.values.tobytes())
    )
    cases = [
        Case(who, _named(table.scope, names), table.values)
        for who, table in zip(actions_of(tables, actions), tables, strict=True)
    ]
    return Reward(reward.name, cases, reward.low, reward.high, reward.sigma)


def _joined_mean(table: Table, layout: Layout, kept: Sequence[Integers]) -> Table:
    """A mean over new variables and their kept values, without axes that it does not depend on."""
    scope = new_positions(table.scope, layout)
    axis_of = {new: axis for axis, new in enumerate(scope)}
    values = read_at(table.values, columns_of(table.scope, layout, axis_of), len(scope))
    values = values[np.ix_(*(kept[new] for new in scope))]
    left = list(scope)
    for new in scope:
        slices = np.moveaxis(values, left.index(new), 0)
        if (slices == slices[0]).all():
            values = slices[0]
            left.remove(new)
    return bound_table(tuple(left), np.asarray(values))


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


@dataclass(frozen=True, slots=True)
class Join(Reduction):
    """Exclusive variables joined; None where there are none."""

    name: str = "joined"

    def apply(self, model: FactoredMDP) -> Joined | None:
        """The joined model."""
        found = join(model)
        return found if found.groups else None


JOINED = Chain("joined", (ListActions(), Join()))
"""On the list of actions, if these are few enough to list."""


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
