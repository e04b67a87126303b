"""Joined: a model, the one in which exclusive variables are one, and the way there and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import overload

import networkx
import numpy as np

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import show, show_names
from fsmdp.model.cases import Cases, common_groups
from fsmdp.model.conditionals import Dynamics, Kernel
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.supports import MOST_AXES, Booleans
from fsmdp.model.tables import Floats, read_only
from fsmdp.model.variables import (
    LARGEST_VARIABLE,
    Scope,
    Variable,
    check_state,
    find_positions,
    positions_by_name,
    table_size,
)
from fsmdp.reductions.reduction import Integers, Reduced, StateMap, state_map


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
    """What a block's table looks at in one action group, and what it draws."""
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
    for means in model.reward_means:
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

    A joined variable has a value for "none of them is off 0" and one for each value but 0 of each
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
                f"state: {', '.join(held) or 'none off 0'} among {show_names(names)}, which no "
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
            # A value that no joined value has is as unknown as two members off 0 at once.
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
