"""Actions made of variables: many things decided at once, without a list of all combinations."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from fsmdp.errors import ModelError, PolicyError, SizeError
from fsmdp.foundation.checks import as_whole, is_whole, plural, show, show_count
from fsmdp.model.tables import Table
from fsmdp.model.variables import Variable, as_variables, find_positions, positions_by_name

Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]

NOOP = "noop"
"""The joint action that leaves every variable at 0."""

MOST_LISTED = 2**16
"""Joint actions that are written out one by one, at most."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Actions(Sequence[str]):
    """Joint actions: a value for each of several variables, 0 being the idle one.

    `at_most` limits how many variables may be off 0 at once. `forbidden` are local tables, not
    zero at the joint values that are not allowed (or dictionaries: these values together are not).
    Action variables stand among the parents of conditionals and rewards like state variables do.

    As a sequence it holds the names of all joint actions, `noop` first, then those with one
    variable off 0, and so on, as long as they are few enough to list: "reboot-1+valve=2" is off 0
    in two variables, of which the first is binary.
    """

    variables: tuple[Variable, ...]
    at_most: int | None
    forbidden: tuple[Table, ...]  # over sorted positions among the action variables
    sizes: tuple[int, ...] = field(init=False)  # number of values of each variable
    _positions: Mapping[str, int] = field(init=False)
    _listing: list[tuple[Integers, dict[tuple[int, ...], int]]] = field(init=False)

    def __init__(
        self,
        variables: Sequence[Variable],
        at_most: int | None = None,
        forbidden: Sequence[Table | Mapping[str, int]] = (),
    ) -> None:
        found = as_variables(variables, "action variables")
        if not found:
            raise ModelError("action variables: expected at least one, found none; name them.")
        for variable in found:
            if variable.name == NOOP or "+" in variable.name or "=" in variable.name:
                raise ModelError(
                    f"action variable {show(variable.name)}: expected a name other than {NOOP!r}, "
                    "without '+' and '=', which are used to write joint actions; rename it."
                )
        if at_most is not None:
            at_most = as_whole(at_most, "at_most", 1)
        object.__setattr__(self, "variables", found)
        object.__setattr__(self, "at_most", at_most)
        object.__setattr__(self, "sizes", tuple(variable.size for variable in found))
        object.__setattr__(self, "_positions", positions_by_name(found))
        object.__setattr__(self, "forbidden", self._tables(forbidden))
        object.__setattr__(self, "_listing", [])
        if self.forbidden and self._first_allowed() is None:
            raise ModelError(
                "actions: forbidden tables and at_most leave no joint action; allow at least one."
            )

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return Actions, (self.variables, self.at_most, self.forbidden)

    def _tables(self, forbidden: object) -> tuple[Table, ...]:
        where = "forbidden joint values"
        if isinstance(forbidden, Table | Mapping):
            forbidden = (forbidden,)
        if not isinstance(forbidden, Sequence) or isinstance(forbidden, str):
            raise ModelError(
                f"{where}: expected a list of tables, found {show(forbidden)}; give "
                "[Table(names, values)], not zero where values are not allowed together."
            )
        tables = []
        for one in forbidden:
            if isinstance(one, Mapping):
                one = self._cell(one, where)
            if not isinstance(one, Table):
                raise ModelError(
                    f"{where}: expected a Table or a dictionary, found {show(one)}; give "
                    "Table(names, values), not zero where values are not allowed together."
                )
            tables.append(one.bind(self.variables))
        return tuple(tables)

    def _cell(self, values: Mapping[Any, Any], where: str) -> Table:
        """The table of one forbidden combination."""
        positions = find_positions(list(values), self._positions, where)
        table = np.zeros([self.variables[position].size for position in positions])
        index = tuple(values.values())
        for value, size in zip(index, table.shape, strict=True):
            if not is_whole(value) or not 0 <= value < size:
                raise ModelError(
                    f"{where}: {show(dict(values))} has the value {show(value)}, expected 0 to "
                    f"{size - 1}."
                )
        table[index] = 1.0
        return Table(positions, table)

    @property
    def most_off_idle(self) -> int | None:
        """How many variables may be off 0, if that limits anything."""
        able = sum(size > 1 for size in self.sizes)
        return self.at_most if self.at_most is not None and self.at_most < able else None

    @property
    def log10_joint(self) -> float:
        """Decimal logarithm of the number of joint actions that `at_most` leaves.

        Those that are forbidden are not taken off unless the others are few enough to list.
        """
        count = self.n_joint
        if count is not None:
            return math.log10(count)
        return math.log10(self.count_of_at_most())

    def count_of_at_most(self) -> int:
        """Number of joint actions with no more variables off 0 than allowed, exactly."""
        most = len(self.variables) if self.most_off_idle is None else self.most_off_idle
        ways = [1] + [0] * most  # by number of variables off 0
        for size in self.sizes:
            for used in range(most, 0, -1):
                ways[used] += ways[used - 1] * (size - 1)
        return sum(ways)

    @property
    def n_joint(self) -> int | None:
        """Number of joint actions; None if some are forbidden and they are too many to list."""
        if not self.forbidden:
            return self.count_of_at_most()
        try:
            return len(self)
        except SizeError:
            return None

    def allows(self, values: Sequence[int] | Integers) -> bool:
        """Whether a joint action, a value for each variable, is allowed."""
        return bool(self.allowed(np.asarray(values, dtype=np.int64)[None])[0])

    def allowed(self, rows: Integers) -> Booleans:
        """Whether each of several joint actions (n, n_variables) is allowed."""
        kept = np.ones(len(rows), dtype=np.bool_)
        if self.at_most is not None:
            kept &= (rows > 0).sum(axis=1) <= self.at_most
        for table in self.forbidden:
            kept &= table.values[tuple(rows[:, position] for position in table.scope)] == 0
        return kept

    def read(self, action: object) -> tuple[int, ...]:
        """The values of a joint action, however it is written; a PolicyError if it is none.

        A name ("noop", "reboot-3", "reboot-1+valve=2"), a dictionary of the variables that are off
        0, a sequence of values, or, where joint actions are few enough to list, a position.
        """
        values = self._values(action)
        if values is None:
            raise PolicyError(
                f"unknown action {show(action)}; expected {NOOP!r}, names such as "
                f"{show(self.name(self._example()))}, a dictionary from action variables to "
                f"values, or {len(self.variables)} values in order."
            )
        if not self.allows(values):
            limit = "" if self.at_most is None else f" (at most {self.at_most} off 0)"
            raise PolicyError(
                f"action {show(action)} is not allowed{limit}; leave more variables at 0, or take "
                "another combination."
            )
        return values

    def _example(self) -> tuple[int, ...]:
        values = [0] * len(self.variables)
        values[-1] = self.sizes[-1] - 1
        return tuple(values)

    def _values(self, action: object) -> tuple[int, ...] | None:
        if isinstance(action, str):
            return self._parsed(action)
        if isinstance(action, Mapping):
            return self._filled(action.items())
        if is_whole(action):
            rows = self.rows() if self._are_few() else np.zeros((0, len(self.variables)))
            return tuple(rows[action].tolist()) if 0 <= action < len(rows) else None
        if isinstance(action, np.ndarray):
            action = action.tolist() if action.ndim == 1 else None
        if not isinstance(action, tuple | list) or len(action) != len(self.variables):
            return None
        names = (variable.name for variable in self.variables)
        return self._filled(zip(names, action, strict=True))

    def _parsed(self, text: str) -> tuple[int, ...] | None:
        if text == NOOP:
            return (0,) * len(self.variables)
        pairs = []
        for part in text.split("+"):
            name, equals, value = part.partition("=")
            if equals and not (value.isascii() and value.isdigit()):
                return None
            pairs.append((name, int(value) if equals else 1))
        if len({name for name, _ in pairs}) < len(pairs):
            return None
        return self._filled(pairs)

    def _filled(self, pairs: Any) -> tuple[int, ...] | None:
        values = [0] * len(self.variables)
        for name, value in pairs:
            at = self._positions.get(name.name if isinstance(name, Variable) else name)
            if at is None or not is_whole(value) or not 0 <= value < self.sizes[at]:
                return None
            values[at] = int(value)
        return tuple(values)

    def name(self, values: Sequence[int] | Integers) -> str:
        """How a joint action is called."""
        parts = []
        for position in np.flatnonzero(values).tolist():
            variable = self.variables[position]
            binary = variable.size == 2
            parts.append(variable.name if binary else f"{variable.name}={int(values[position])}")
        return "+".join(parts) or NOOP

    def rows(self) -> Integers:
        """All joint actions (n, n_variables), in the order of their positions.

        A SizeError if there are more than 65,536. Cost: the listing, once.
        """
        return self._listed()[0]

    def _listed(self) -> tuple[Integers, dict[tuple[int, ...], int]]:
        if not self._listing:
            rows = self._expanded()
            off = rows > 0
            keys = [*rows.T[::-1], *(~off).T[::-1], off.sum(axis=1)]
            rows = rows[np.lexsort(keys)]
            rows.flags.writeable = False
            self._listing.append((rows, {tuple(row): at for at, row in enumerate(rows.tolist())}))
        return self._listing[0]

    def _expanded(self) -> Integers:
        """Joint actions, a variable after another; a table is looked at when its last one comes."""
        last: dict[int, list[Table]] = {}
        for table in self.forbidden:
            last.setdefault(table.scope[-1] if table.scope else 0, []).append(table)
        rows = np.zeros((1, 0), dtype=np.int64)
        for position, size in enumerate(self.sizes):
            if len(rows) * size > 4 * MOST_LISTED:
                raise self._too_many()
            rows = np.hstack(
                [np.repeat(rows, size, axis=0), np.tile(np.arange(size), len(rows))[:, None]]
            )
            if self.at_most is not None:
                rows = rows[(rows > 0).sum(axis=1) <= self.at_most]
            for table in last.get(position, ()):
                rows = rows[table.values[tuple(rows[:, at] for at in table.scope)] == 0]
        if len(rows) > MOST_LISTED:
            raise self._too_many()
        return rows

    def _too_many(self) -> SizeError:
        return SizeError(
            f"{len(self.variables)} action variables make up to "
            f"{show_count(self.count_of_at_most())} joint actions, too many to list one by one "
            f"(limit {MOST_LISTED}); use what plans with action variables, or lower at_most."
        )

    def _are_few(self) -> bool:
        try:
            self._listed()
        except SizeError:
            return False
        return True

    def quietest(self) -> str:
        """An allowed joint action with as many variables at 0 as a search leaves there."""
        found = self._first_allowed()
        assert found is not None
        return self.name(found)

    def _first_allowed(self) -> list[int] | None:
        """Some joint action that is allowed: doing nothing, or what a search finds.

        A search through the variables of forbidden tables; all others stay at 0.
        """
        n = len(self.variables)
        if self.allows(np.zeros(n, dtype=np.int64)):
            return [0] * n
        bound = sorted({position for table in self.forbidden for position in table.scope})
        last: dict[int, list[Table]] = {}
        for table in self.forbidden:
            last.setdefault(table.scope[-1] if table.scope else -1, []).append(table)
        if any(table.values.any() for table in last.get(-1, ())):
            return None
        most = n if self.at_most is None else self.at_most
        values = [0] * n

        def search(depth: int, used: int) -> bool:
            if depth == len(bound):
                return True
            position = bound[depth]
            for value in range(self.sizes[position]):
                values[position] = value
                spent = used + (value > 0)
                fits = spent <= most and not any(
                    table.values[tuple(values[at] for at in table.scope)]
                    for table in last.get(position, ())
                )
                if fits and search(depth + 1, spent):
                    return True
            values[position] = 0
            return False

        return values if search(0, 0) else None

    def __len__(self) -> int:
        return len(self.rows())

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        """Name of a joint action by position."""
        if isinstance(index, slice):
            return tuple(self.name(row) for row in self.rows()[index])
        return self.name(self.rows()[index])

    def __iter__(self) -> Iterator[str]:
        return (self.name(row) for row in self.rows())

    def __contains__(self, action: object) -> bool:
        if not isinstance(action, str):
            return False
        values = self._values(action)
        return values is not None and self.allows(values)

    def index(self, action: Any, start: int = 0, stop: int | None = None) -> int:  # noqa: ARG002
        """Position of a joint action, where they are few enough to list."""
        return self._listed()[1][self.read(action)]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Actions):
            return NotImplemented
        return (
            self.variables == other.variables
            and self.at_most == other.at_most
            and len(self.forbidden) == len(other.forbidden)
            and all(
                one.scope == two.scope and np.array_equal(one.values != 0, two.values != 0)
                for one, two in zip(self.forbidden, other.forbidden, strict=True)
            )
        )

    def __hash__(self) -> int:
        return hash((self.variables, self.at_most, len(self.forbidden)))

    def __repr__(self) -> str:
        names = ", ".join(variable.name for variable in self.variables[:3])
        more = ", ..." if len(self.variables) > 3 else ""
        limit = "" if self.at_most is None else f", at_most={self.at_most}"
        table = f", {len(self.forbidden)} forbidden" if self.forbidden else ""
        return f"Actions({plural(len(self.variables), 'variable')}: {names}{more}{limit}{table})"


def action_variables(actions: Sequence[str]) -> tuple[Variable, ...]:
    """The variables that actions are made of; none for a list of names."""
    return actions.variables if isinstance(actions, Actions) else ()


def inputs_of(variables: Sequence[Variable], actions: Sequence[str]) -> tuple[Variable, ...]:
    """All that a parent may be: state variables, then action variables."""
    return (*variables, *action_variables(actions))


def n_listed(actions: Sequence[str]) -> int:
    """Number of actions that cases tell apart by name: one if actions are made of variables."""
    return 1 if isinstance(actions, Actions) else len(actions)


def n_joint(actions: Sequence[str]) -> int:
    """Number of actions, joint ones counted by themselves, however many.

    Where these are too many to list, those that are forbidden are counted with the others.
    """
    if isinstance(actions, Actions):
        return actions.n_joint or actions.count_of_at_most()
    return len(actions)


def show_actions(actions: Sequence[str]) -> str:
    """How many actions there are, for a repr."""
    if not isinstance(actions, Actions):
        return f"{len(actions)} action" + ("s" if len(actions) != 1 else "")
    count = actions.n_joint
    many = f"10^{actions.log10_joint:.1f}" if count is None or count >= 10**7 else f"{count}"
    return f"{len(actions.variables)} action variables ({many} joint actions)"
