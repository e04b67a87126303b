"""`join`: the model in which groups of exclusive variables are one variable each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import overload

import networkx
import numpy as np

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import as_items, as_whole, show, show_names
from fsmdp.model.cases import Case, Cases, by_actions, common_groups
from fsmdp.model.conditionals import Conditional, Dynamics, Kernel
from fsmdp.model.conditions import written_conditions
from fsmdp.model.functions import ROW_TOLERANCE
from fsmdp.model.mdp import FactoredMDP, Start, check_model
from fsmdp.model.projecting import MOST_AXES, Booleans
from fsmdp.model.rewards import Reward
from fsmdp.model.supports import (
    Exclusive,
    cover,
    exclusive_pairs,
    prove_pairs,
    saving,
)
from fsmdp.model.tables import Floats, Integers, Table, bound_table, read_only
from fsmdp.model.variables import (
    LARGEST_VARIABLE,
    Scope,
    Variable,
    check_state,
    find_positions,
    positions_by_name,
    table_size,
)
from fsmdp.reductions.actions import ListActions
from fsmdp.reductions.reduction import Chain, Reduced, Reduction, StateMap, state_map


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """For each new variable its members, and their values at each of its own.

    `place[old]` is the new variable that an old one belongs to and its column there; latents come
    after the variables on both sides and keep their values.
    """

    members: tuple[Scope, ...]
    decoded: tuple[Integers, ...]  # each (size, n_members)
    place: tuple[tuple[int, int], ...]
    constant: frozenset[int]  # members that are always 0: nobody need draw or read them

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of values of each new variable and latent."""
        return tuple(len(values) for values in self.decoded)

    def column(self, old: int) -> Integers:
        """Values of an old variable at each value of the new one it belongs to."""
        new, at = self.place[old]
        return np.asarray(self.decoded[new][:, at])


def lay_out(model: FactoredMDP, groups: Sequence[Scope], never: frozenset[int]) -> Layout:
    """A layout in which each group stands where its first member that changes stood.

    Values of a group: 0 for none, then each value but 0 of each member in turn, without those of
    members that are always 0.
    """
    sizes = model.dynamics.drawn_sizes
    group_of = {position: group for group in groups for position in group}
    members: list[Scope] = []
    decoded: list[Integers] = []
    for position, size in enumerate(sizes):
        group = group_of.get(position)
        if group is None:
            members.append((position,))
            decoded.append(np.arange(size)[:, None])
        elif position == next((one for one in group if one not in never), group[0]):
            members.append(group)
            decoded.append(_values(group, sizes, never))
    place = {old: (new, at) for new, group in enumerate(members) for at, old in enumerate(group)}
    # Somebody has to draw a group, even one of which nothing ever changes.
    constant = frozenset(
        position
        for group in groups
        for position in never.intersection(group)
        if position != group[0] or not never.issuperset(group)
    )
    return Layout(
        tuple(members),
        tuple(decoded),
        tuple(place[position] for position in range(len(sizes))),
        constant,
    )


def _values(group: Scope, sizes: Sequence[int], never: frozenset[int]) -> Integers:
    rows = [[0] * len(group)]
    for at, position in enumerate(group):
        if position not in never:
            for value in range(1, sizes[position]):
                rows.append([0] * len(group))
                rows[-1][at] = value
    return np.array(rows, dtype=np.int64)


def blocks_of(dynamics: Dynamics, layout: Layout) -> list[tuple[int, ...]]:
    """Mechanisms that have to draw together, block by block, in an order that can be drawn.

    A group's members are drawn at once, and so is all that is drawn between two of them. What
    draws nothing but constants is left out.
    """
    needed = [
        index
        for index, mechanism in enumerate(dynamics.mechanisms)
        if not layout.constant.issuperset(mechanism.children)
    ]
    together = networkx.Graph()
    together.add_nodes_from(needed)
    for group in layout.members:
        drawing = [dynamics.drawn_by[position] for position in group]
        drawing = [index for index in drawing if index in together]
        together.add_edges_from((drawing[0], other) for other in drawing[1:])
    block_of: dict[int, int] = {}
    for number, block in enumerate(networkx.connected_components(together)):
        block_of.update(dict.fromkeys(block, number))
    order = networkx.DiGraph()
    order.add_nodes_from(block_of.values())
    for index in needed:
        for kernel in dynamics.mechanisms[index].cases:
            for drawn in set(kernel.drawn) - layout.constant:
                order.add_edge(block_of[dynamics.drawn_by[drawn]], block_of[index])
    condensed = networkx.condensation(order)
    blocks: dict[int, tuple[int, ...]] = dict.fromkeys(condensed.nodes, ())
    for index in needed:
        blocks[condensed.graph["mapping"][block_of[index]]] += (index,)
    found = networkx.lexicographical_topological_sort(condensed, key=blocks.__getitem__)
    return [blocks[node] for node in found]


@dataclass(frozen=True, slots=True, eq=False)
class Axes:
    """The axes of a block's table in one action group: parents, drawn, then children, all new."""

    parents: Scope
    drawn: Scope
    children: Scope

    def shape(self, sizes: Sequence[int]) -> tuple[int, ...]:
        """Size of each axis."""
        return tuple(sizes[new] for new in (*self.parents, *self.drawn, *self.children))


Together = tuple[tuple[tuple[int, ...], Kernel], ...]
"""The children and the kernel of each mechanism of a block, in one action group."""


def block_cases(dynamics: Dynamics, block: Sequence[int]) -> Cases[Together]:
    """A block's kernels, by the coarsest groups of actions that they tell apart."""
    mechanisms = [dynamics.mechanisms[index] for index in block]
    return common_groups(
        [
            mechanism.cases.map(lambda kernel, children=mechanism.children: (children, kernel))  # type: ignore[misc]
            for mechanism in mechanisms
        ],
        dynamics.n_actions,
    )


def new_positions(old: Iterable[int], layout: Layout) -> Scope:
    """The new variables that old ones belong to, without those that are read as constants."""
    return tuple(sorted({layout.place[one][0] for one in old if one not in layout.constant}))


def axes_of(together: Together, layout: Layout) -> Axes:
    """What a block's table depends on in one action group, and what it draws."""
    # A constant child belongs to a variable that the block draws, so its place counts here.
    children = {layout.place[child][0] for own, _ in together for child in own}
    drawn = new_positions((d for _, kernel in together for d in kernel.drawn), layout)
    return Axes(
        new_positions((p for _, kernel in together for p in kernel.parents), layout),
        tuple(new for new in drawn if new not in children),
        tuple(sorted(children)),
    )


def is_untouched(together: Together, layout: Layout) -> bool:
    """Whether no member of a group is read or drawn."""
    return len(together) == 1 and all(
        len(layout.members[layout.place[position][0]]) == 1
        for children, kernel in together
        for position in (*children, *kernel.parents, *kernel.drawn)
    )


def fits(model: FactoredMDP, layout: Layout, group: Scope, limit: int) -> bool:
    """Whether the tables that a group is in have at most `limit` numbers, or no more than before.

    Cost: the scopes of all kernels and rewards; no table is made.
    """
    sizes, new = layout.sizes, layout.place[group[0]][0]
    if sizes[new] > LARGEST_VARIABLE:
        return False
    for block in blocks_of(model.dynamics, layout):
        for together in block_cases(model.dynamics, block):
            axes = axes_of(together, layout)
            if new not in (*axes.parents, *axes.drawn, *axes.children):
                continue
            shape = axes.shape(sizes)
            most = max(limit, *(kernel.table.size for _, kernel in together))
            if table_size(shape) > most or len(shape) > MOST_AXES:
                return False
    conditions = (*model.conditions.allowed, Cases(model.conditions.terminal))
    for means in (*model.reward_means, *conditions):
        for table in means:
            scope = new_positions(table.scope, layout)
            size = table_size(sizes[one] for one in scope)
            if new in scope and size > max(limit, table.values.size):
                return False
    return True


Column = tuple[int | None, Integers]
"""The new axis along which an old one is read, and its value there; no axis for a constant."""


def columns_of(old: Iterable[int], layout: Layout, axis_of: Mapping[int, int]) -> list[Column]:
    """How to read the axes of old variables in a table over new ones."""
    return [
        (None, np.zeros(1, dtype=np.int64))
        if one in layout.constant
        else (axis_of[layout.place[one][0]], layout.column(one))
        for one in old
    ]


def read_at(table: Floats, columns: Sequence[Column], n_axes: int) -> Floats:
    """A table with its axes read through columns.

    Several axes may be read along the same new one; new axes that none is read along have size 1.
    """
    index = []
    for axis, values in columns:
        shape = [1] * n_axes
        if axis is not None:
            shape[axis] = len(values)
        index.append(values.reshape(shape))
    return np.asarray(table[tuple(index)]) if index else table.reshape((1,) * n_axes)


@dataclass(frozen=True, slots=True, eq=False)
class Joined(Reduced):
    """A model and the one in which groups of its exclusive variables are one variable each.

    A joined variable has a value for "none of them is nonzero" and one for each value but 0 of each
    member, without those that are never reached. Actions, rewards and steps are the same, and so is
    the optimal value: V*(to(s)) of `model` = V*(s) of `original` for every state s it `allows`,
    which no action leads out of.
    """

    original: FactoredMDP
    model: FactoredMDP
    members: tuple[Scope, ...]  # of each new variable: positions in the original
    decoded: tuple[Integers, ...]  # of each: the members' values at each of its own
    pairs: Booleans  # of original variables: never nonzero together
    state_map: StateMap = field(init=False, repr=False)
    name: str = field(default="joined", kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "state_map", self._codes())
        object.__setattr__(self, "decoded", tuple(read_only(one) for one in self.decoded))
        object.__setattr__(self, "pairs", read_only(self.pairs))

    @property
    def text(self) -> str:
        """How it was reduced, after a comma."""
        return "with exclusive variables joined"

    @property
    def groups(self) -> Mapping[str, tuple[str, ...]]:
        """Each joined variable with the names of its members."""
        names = [variable.name for variable in self.original.variables]
        return {
            variable.name: tuple(names[position] for position in group)
            for variable, group in zip(self.model.variables, self.members, strict=True)
            if len(group) > 1
        }

    def meaning(self, variable: str, value: int) -> Mapping[str, int]:
        """What a value of a variable of the joined model says about those of the original."""
        (new,) = find_positions([variable], positions_by_name(self.model.variables), "meaning")
        value = check_state([value], [self.model.variables[new]])[0]
        return {
            self.original.variables[position].name: int(self.decoded[new][value, at])
            for at, position in enumerate(self.members[new])
        }

    @overload
    def allows(self, states: Integers) -> Booleans: ...

    @overload
    def allows(self, states: Sequence[int]) -> bool: ...

    def allows(self, states: Integers | Sequence[int]) -> Booleans | bool:
        """Whether a state of the original has a joined one; for arrays, of each row."""
        rows = _as_rows(states, self.original.variables)
        off = rows > 0
        together = (off.astype(np.int64) @ self.pairs.astype(np.int64) > 0) & off
        fine = np.asarray((self._encode(rows) >= 0).all(axis=1) & ~together.any(axis=1))
        if isinstance(states, np.ndarray):
            return np.asarray(fine.reshape(states.shape[:-1]))
        return bool(fine[0])

    @overload
    def to(self, states: Integers) -> Integers: ...

    @overload
    def to(self, states: Sequence[int]) -> tuple[int, ...]: ...

    def to(self, states: Integers | Sequence[int]) -> Integers | tuple[int, ...]:
        """The joined state of one of the original; of an array (..., n_variables), of each row.

        Cost: the variables of the original, for each state.
        """
        rows = _as_rows(states, self.original.variables)
        found = self._encode(rows)
        if (found < 0).any():
            row, new = (int(i) for i in np.argwhere(found < 0)[0])
            names = [self.original.variables[p].name for p in self.members[new]]
            held = [
                f"{name}={int(rows[row, p])}"
                for name, p in zip(names, self.members[new], strict=True)
                if rows[row, p]
            ]
            raise ModelError(
                f"state: {', '.join(held) or 'none nonzero'} among {show_names(names)}, which no "
                "state that can be reached has; expected one that the joined model allows."
            )
        return _like(states, found)

    @overload
    def back(self, states: Integers) -> Integers: ...

    @overload
    def back(self, states: Sequence[int]) -> tuple[int, ...]: ...

    def back(self, states: Integers | Sequence[int]) -> Integers | tuple[int, ...]:
        """The original's state of a joined one; of an array (..., n_variables), of each row."""
        rows = _as_rows(states, self.model.variables)
        found = np.zeros((len(rows), len(self.original.variables)), dtype=np.int64)
        for new, (group, decoded) in enumerate(zip(self.members, self.decoded, strict=True)):
            found[:, group] = decoded[rows[:, new]]
        return _like(states, found)

    def _codes(self) -> StateMap:
        """Of several nonzero members, in a state that cannot be reached, the last counts."""
        found = []
        for group, decoded in zip(self.members, self.decoded, strict=True):
            zeros = np.flatnonzero(~decoded.any(axis=1))
            default = int(zeros[0]) if len(zeros) else 0
            own = []
            for column, position in enumerate(group):
                codes = np.full(self.original.variables[position].size, default)
                rows = np.flatnonzero(decoded[:, column])
                codes[decoded[rows, column]] = rows
                own.append((position, codes.tolist()))
            found.append(own)
        return state_map(found)

    def _encode(self, array: Integers) -> Integers:
        """Joined states, with -1 where the members' values are none of a variable's."""
        found = np.empty((len(array), len(self.members)), dtype=np.int64)
        for new, (group, decoded) in enumerate(zip(self.members, self.decoded, strict=True)):
            if len(group) == 1:
                found[:, new] = array[:, group[0]]
                continue
            values = array[:, group]
            largest = values.max(axis=1, initial=0)
            code = np.where(largest > 0, values.argmax(axis=1) + largest * len(group), -1) + 1
            known = np.full(int(decoded.max(initial=0) + 2) * len(group) + 1, -1, dtype=np.int64)
            top = decoded.max(axis=1)
            known[np.where(top > 0, decoded.argmax(axis=1) + top * len(group), -1) + 1] = np.arange(
                len(decoded)
            )
            # A value that no joined value has is as unknown as two members nonzero at once.
            inside = (code < len(known)) & ((values > 0).sum(axis=1) <= 1)
            found[:, new] = np.where(inside, known[np.where(inside, code, 0)], -1)
        return found

    def __repr__(self) -> str:
        shown = ", ".join(f"{name} of {len(group)}" for name, group in self.groups.items())
        return f"Joined({shown or 'nothing'}; {self.model!r})"


def _as_rows(states: Integers | Sequence[int], variables: Sequence[Variable]) -> Integers:
    """Checked states, one in each row."""
    if not isinstance(states, np.ndarray):
        return np.array([check_state(states, variables)], dtype=np.int64)
    sizes = np.array([variable.size for variable in variables])
    if states.dtype.kind not in "iu" or states.shape[-1:] != sizes.shape:
        raise ModelError(
            f"states: expected whole numbers of shape (..., {len(sizes)}), a row for each state, "
            f"found shape {show(states.shape)} of {states.dtype}; give values in variable order."
        )
    rows = states.astype(np.int64).reshape(-1, len(sizes))
    wrong = (rows < 0) | (rows >= sizes)
    if wrong.any():
        check_state(rows[np.argwhere(wrong)[0][0]].tolist(), variables)
    return rows


def _like(states: Integers | Sequence[int], rows: Integers) -> Integers | tuple[int, ...]:
    """Rows in the form in which the states were given."""
    if isinstance(states, np.ndarray):
        return rows.reshape(*states.shape[:-1], rows.shape[1])
    return tuple(rows[0].tolist())


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """What a joined model is built of; `decoded` without the values that are never reached."""

    conditionals: tuple[Conditional, ...]
    rewards: tuple[Reward, ...]
    initial: tuple[Start, ...]
    allowed: tuple[Case, ...]
    terminal: tuple[Table, ...]
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
    product does not sum to 1 would put two members nonzero at once; as the groups are proved, no
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
    allowed, terminal = written_conditions(
        model.conditions, names, lambda table: _joined_mean(table, layout, kept)
    )
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
        tuple(allowed),
        tuple(terminal),
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
    """Distribution of a new variable at the start: at most one member can be nonzero there."""
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
    """Values of each new variable that are possible; of those that are no group, all.

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
    """Which values of a child can follow which values of the groups that a table depends on."""
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
            for who, one in by_actions(merged, actions)
        ],
    )


def _named(positions: Sequence[int], names: Sequence[str]) -> list[str]:
    return [names[position] for position in positions]


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
        for who, table in by_actions(tables, actions)
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
    """The model with variables of which provably at most one is nonzero made one variable.

    A robot's place as a boolean for each cell has 2^cells states, as one variable a value for each
    cell; values and policies of the two models are the same. `groups` are found if not given, and
    proved in any case: a ModelError says which two variables may be nonzero together. Tables are
    sized before they are made: of a group whose tables would have more than `most_entries`
    numbers, a part is joined whose tables stay below 2^10, and the rest is left as it is.
    Cost: the proof (see `exclusive_pairs`), and the joined tables once for each member.
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
    joined = model.replace(
        variables=[
            Variable(names[new], len(values), _kept_labels(model, layout.members[new], values))
            for new, values in enumerate(parts.decoded[:n])
        ],
        conditionals=parts.conditionals,
        rewards=parts.rewards,
        initial=parts.initial,
        allowed=parts.allowed,
        terminal=parts.terminal,
    )
    pairs = _fewest_pairs(model, groups, exclusive.pairs)
    return Joined(model, joined, layout.members[:n], parts.decoded[:n], pairs)


def _kept_labels(model: FactoredMDP, members: Scope, values: Integers) -> tuple[str, ...]:
    """Labels of a variable that is joined with no other."""
    labels = model.variables[members[0]].labels if len(members) == 1 else ()
    return tuple(labels[value] for (value,) in values.tolist()) if labels else ()


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
                        "not be proved never to be nonzero together; expected exclusive variables, "
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
    """A group's members, those first that cost nothing or depend on few others.

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
