"""Action spaces: a list of names, or variables that are decided at once without such a list."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import index as as_index
from typing import Any, Self, overload

import numpy as np
from numpy.typing import NDArray

from fsmdp.errors import ModelError, PolicyError, SizeError
from fsmdp.foundation.checks import (
    as_items,
    as_name,
    as_whole,
    is_whole,
    plural,
    show,
    show_count,
    show_names,
)
from fsmdp.model.cases import JOINT
from fsmdp.model.tables import Table
from fsmdp.model.variables import Variable, as_variables, find_positions, positions_by_name

Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]

NOOP = "noop"
"""The joint action that leaves every variable at 0."""

MOST_LISTED = 2**16
"""Joint actions that are written out one by one, at most."""


IDLE_NAMES = ("~noop", NOOP, "wait", "idle", "nothing", "none", "do-nothing")
"""Names under which a list has the action that does nothing; the first that it has counts.

RDDL's importer writes "~noop" where a fluent is called "noop".
"""

Choice = int | tuple[int, ...]
"""An action in numbers: its position in a list, or the values of its variables."""


class ActionSpace(Sequence[str]):
    """The actions of a model: a sequence of their names, and how they are written in numbers.

    Cases of a model tell listed actions apart by position. Actions that are made of variables are
    one case, and what they do is told by their variables, which stand among the parents.
    """

    __slots__ = ()
    variables: tuple[Variable, ...]
    """What actions are made of; empty for a list."""
    sizes: tuple[int, ...]
    """Number of values of each variable."""
    at_most: int | None
    """How many variables may be nonzero at once."""
    forbidden: tuple[Table, ...]
    """Over sorted positions among the action variables, not zero where values are not allowed."""

    @property
    @abstractmethod
    def cases(self) -> Mapping[str, int]:
        """Names that cases of a model go by, and their positions."""

    @property
    def n_cases(self) -> int:
        """Number of actions that cases tell apart by name: one if actions are made of variables."""
        return len(self.cases)

    @property
    @abstractmethod
    def n_joint(self) -> int | None:
        """Number of actions; None if some are forbidden and they are too many to list."""

    @property
    @abstractmethod
    def n_actions(self) -> int:
        """Number of actions, however many.

        Where these are too many to list, those that are forbidden are counted with the others.
        """

    @abstractmethod
    def read(self, action: object) -> Choice:
        """An action in numbers, however it is written; a PolicyError if it is none."""

    @abstractmethod
    def values(self, action: object) -> tuple[int, ...]:
        """What an action, however it is written, gives to the action variables."""

    @abstractmethod
    def position(self, action: object) -> int:
        """Position of an action, however it is written, where they are few enough to list."""

    @abstractmethod
    def choice(self, case: int, values: Sequence[int] | Integers) -> Choice:
        """An action in numbers, from the case and the values of action variables that it has."""

    @abstractmethod
    def name(self, choice: Any) -> str:
        """What an action in numbers is called."""

    @abstractmethod
    def allows(self, choice: Any) -> bool:
        """Whether an action in numbers is one of these."""

    @abstractmethod
    def rows(self) -> Integers:
        """Values of the action variables in all actions, (n_actions, n_variables)."""

    @abstractmethod
    def idle(self) -> str | None:
        """The action that does nothing, or the one closest to it; None where no name says so."""

    @abstractmethod
    def gymnasium_space(self) -> Any:
        """The same as one of Gymnasium's spaces."""

    @abstractmethod
    def as_json(self) -> Any:
        """Plain lists, numbers and strings, as they stand in files."""

    @property
    @abstractmethod
    def text(self) -> str:
        """How many actions there are, for a repr."""

    @property
    def most_nonzero(self) -> int | None:
        """How many variables may be nonzero, if that limits anything."""
        able = sum(size > 1 for size in self.sizes)
        return self.at_most if self.at_most is not None and self.at_most < able else None

    def allowed_rows(self, rows: Integers) -> Booleans:
        """Whether each of several joint actions (n, n_variables) is allowed."""
        kept = np.ones(len(rows), dtype=np.bool_)
        if self.at_most is not None:
            kept &= (rows > 0).sum(axis=1) <= self.at_most
        for table in self.forbidden:
            kept &= table.values[tuple(rows[:, position] for position in table.scope)] == 0
        return kept

    def names(self, choices: Integers) -> NDArray[np.str_]:
        """What each of several actions in numbers is called."""
        return np.array([self.name(choice) for choice in choices])


class ListedActions(tuple[str, ...], ActionSpace):
    """A list of names, which is a tuple of them: at least one, and each once."""

    _positions: Mapping[str, int]
    variables = ()
    sizes = ()
    at_most = None
    forbidden = ()

    def __new__(cls, names: object) -> Self:
        """From names in order, or a single one."""
        if isinstance(names, str):
            names = (names,)
        named = as_items(names, "actions", "a list of names", "give what can be done, in order")
        found = super().__new__(
            cls, (as_name(name, f"action number {i}") for i, name in enumerate(named))
        )
        if not found:
            raise ModelError("actions: expected at least one, found none; name what can be done.")
        positions: dict[str, int] = {}
        for position, action in enumerate(found):
            if positions.setdefault(action, position) != position:
                raise ModelError(
                    f"action {show(action)} appears twice; expected each name once, rename one."
                )
        found._positions = positions
        return found

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return ListedActions, (tuple(self),)

    @property
    def cases(self) -> Mapping[str, int]:
        """Each name and its position."""
        return self._positions

    @property
    def n_joint(self) -> int:
        """Number of actions."""
        return len(self)

    @property
    def n_actions(self) -> int:
        """Number of actions."""
        return len(self)

    def read(self, action: object) -> int:
        """The position of an action that is given by name or position."""
        position = -1
        if isinstance(action, str):
            position = self._positions.get(action, -1)
        elif not isinstance(action, bool | np.bool_):
            try:
                position = as_index(action)  # type: ignore[arg-type]
            except TypeError:
                position = -1
        if 0 <= position < len(self):
            return position
        raise PolicyError(
            f"unknown action {show(action)}; expected one of {show_names(self)}, or a "
            f"position from 0 to {len(self) - 1}."
        )

    position = read

    def values(self, action: object) -> tuple[int, ...]:
        """Nothing: there are no action variables."""
        self.read(action)
        return ()

    def choice(self, case: int, values: Sequence[int] | Integers) -> int:  # noqa: ARG002
        """The position."""
        return int(case)

    def name(self, choice: int) -> str:
        """The name at a position."""
        return self[choice]

    def names(self, choices: Integers) -> NDArray[np.str_]:
        """The names at several positions."""
        return np.array(self)[choices]

    def allows(self, choice: int) -> bool:
        """Whether it is a position."""
        return 0 <= choice < len(self)

    def rows(self) -> Integers:
        """Without columns: there are no action variables."""
        return np.zeros((len(self), 0), dtype=np.int64)

    def idle(self) -> str | None:
        """The action whose name says that it does nothing; None if there is none."""
        return next((name for name in IDLE_NAMES if name in self.cases), None)

    def gymnasium_space(self) -> Any:
        """A position."""
        from gymnasium.spaces import Discrete

        return Discrete(len(self))

    def as_json(self) -> list[str]:
        """The names."""
        return list(self)

    @property
    def text(self) -> str:
        """How many actions there are, for a repr."""
        return plural(len(self), "action")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Actions(ActionSpace):
    """Joint actions: a value for each of several variables, 0 being the idle one.

    `at_most` limits how many variables may be nonzero at once. `forbidden` are local tables, not
    zero at the joint values that are not allowed (or dictionaries: these values together are not).
    Action variables stand among the parents of conditionals and rewards like state variables do.

    As a sequence it holds the names of all joint actions, `noop` first, then those with one
    nonzero variable, and so on, as long as they are few enough to list: "reboot-1+valve=2" has two
    nonzero variables, of which the first is binary. Labels stand in place of numbers: "valve=open".
    """

    variables: tuple[Variable, ...]
    at_most: int | None
    forbidden: tuple[Table, ...]  # over sorted positions among the action variables
    sizes: tuple[int, ...] = field(init=False)  # number of values of each variable
    _positions: Mapping[str, int] = field(init=False)
    _labels: Mapping[str, tuple[str, int]] = field(init=False)
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
            if any("+" in label for label in variable.labels):
                raise ModelError(
                    f"action variable {show(variable.name)}: expected labels without '+', which is "
                    f"used to write joint actions, found {show(list(variable.labels))}."
                )
        if at_most is not None:
            at_most = as_whole(at_most, "at_most", 1)
        object.__setattr__(self, "variables", found)
        object.__setattr__(self, "at_most", at_most)
        object.__setattr__(self, "sizes", tuple(variable.size for variable in found))
        object.__setattr__(self, "_positions", positions_by_name(found))
        object.__setattr__(self, "_labels", _clear_labels(found))
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
        index = []
        for value, position in zip(values.values(), positions, strict=True):
            found = self.variables[position].find(value)
            if found is None:
                raise ModelError(
                    f"{where}: {show(dict(values))} has the value {show(value)}, expected "
                    f"{self.variables[position].expected}."
                )
            index.append(found)
        table[tuple(index)] = 1.0
        return Table(positions, table)

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
        """Number of joint actions with no more nonzero variables than allowed, exactly."""
        most = len(self.variables) if self.most_nonzero is None else self.most_nonzero
        ways = [1] + [0] * most  # by number of nonzero variables
        for size in self.sizes:
            for used in range(most, 0, -1):
                ways[used] += ways[used - 1] * (size - 1)
        return sum(ways)

    @property
    def cases(self) -> Mapping[str, int]:
        """One case, whose parents tell joint actions apart."""
        return JOINT

    @property
    def n_actions(self) -> int:
        """Number of joint actions, however many; see `ActionSpace.n_actions`."""
        return self.n_joint or self.count_of_at_most()

    @property
    def n_joint(self) -> int | None:
        """Number of joint actions; None if some are forbidden and they are too many to list."""
        if not self.forbidden:
            return self.count_of_at_most()
        try:
            return len(self)
        except SizeError:
            return None

    def allows(self, choice: Sequence[int] | Integers) -> bool:
        """Whether a joint action, a value for each variable, is allowed."""
        return bool(self.allowed_rows(np.asarray(choice, dtype=np.int64)[None])[0])

    def read(self, action: object) -> tuple[int, ...]:
        """The values of a joint action, however it is written; a PolicyError if it is none.

        A name ("noop", "reboot-3", "reboot-1+valve=2"), a dictionary of the nonzero
        variables, a sequence of values, or, where joint actions are few enough to list, a position.
        """
        values = self._values(action)
        if values is None:
            raise PolicyError(
                f"unknown action {show(action)}; expected {NOOP!r}, names such as "
                f"{show(self.name(self._example()))}, a dictionary from action variables to "
                f"values, or {len(self.variables)} values in order."
            )
        if not self.allows(values):
            limit = "" if self.at_most is None else f" (at most {self.at_most} nonzero)"
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
        pairs: list[tuple[str, int | str]] = []
        for part in text.split("+"):
            if part in self._labels:
                pairs.append(self._labels[part])
                continue
            name, equals, value = part.partition("=")
            if value.isascii() and value.isdigit():
                pairs.append((name, int(value)))
            else:
                pairs.append((name, value if equals else 1))
        if len({name for name, _ in pairs}) < len(pairs):
            return None
        return self._filled(pairs)

    def _filled(self, pairs: Any) -> tuple[int, ...] | None:
        values = [0] * len(self.variables)
        for name, value in pairs:
            at = self._positions.get(name.name if isinstance(name, Variable) else name)
            known = None if at is None else self.variables[at].find(value)
            if at is None or known is None:
                return None
            values[at] = known
        return tuple(values)

    def values(self, action: object) -> tuple[int, ...]:
        """A value for each action variable."""
        return self.read(action)

    def position(self, action: object) -> int:
        """Position of a joint action in the list of all, where they are few enough to list."""
        return self._listed()[1][self.read(action)]

    def choice(self, case: int, values: Sequence[int] | Integers) -> tuple[int, ...]:  # noqa: ARG002
        """The values."""
        return tuple(map(int, values))

    def name(self, choice: Sequence[int] | Integers) -> str:
        """How a joint action is called."""
        parts = []
        for position in np.flatnonzero(choice).tolist():
            variable, value = self.variables[position], int(choice[position])
            text = f"{variable.name}={variable.text(value)}"
            if variable.labels and variable.labels[value] in self._labels:
                text = variable.labels[value]
            elif variable.size == 2 and not variable.labels:
                text = variable.name
            parts.append(text)
        return "+".join(parts) or NOOP

    def rows(self) -> Integers:
        """All joint actions (n, n_variables), in the order of their positions.

        A SizeError if there are more than 65,536. Cost: the listing, once.
        """
        return self._listed()[0]

    def _listed(self) -> tuple[Integers, dict[tuple[int, ...], int]]:
        if not self._listing:
            rows = self._expanded()
            zero = rows == 0
            keys = [*rows.T[::-1], *zero.T[::-1], (~zero).sum(axis=1)]
            rows = rows[np.lexsort(keys)]
            rows.flags.writeable = False
            self._listing.append((rows, {tuple(row): at for at, row in enumerate(rows.tolist())}))
        return self._listing[0]

    def _expanded(self) -> Integers:
        """Joint actions, a variable after another; a table is applied when its last one is set."""
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

    def idle(self) -> str:
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
        return self.position(action)

    def gymnasium_space(self) -> Any:
        """A value for each action variable."""
        from gymnasium.spaces import MultiDiscrete

        return MultiDiscrete(list(self.sizes))

    def as_json(self) -> dict[str, Any]:
        """Variables, `at_most`, and the forbidden values of some of them together."""
        names = [variable.name for variable in self.variables]
        return {
            "variables": [variable.as_json() for variable in self.variables],
            "at_most": self.at_most,
            "forbidden": [
                {
                    "variables": [names[position] for position in table.scope],
                    "values": np.argwhere(table.values).tolist(),
                }
                for table in self.forbidden
            ],
        }

    @property
    def text(self) -> str:
        """How many action variables and joint actions there are, for a repr."""
        count = self.n_joint
        many = f"10^{self.log10_joint:.1f}" if count is None or count >= 10**7 else f"{count}"
        return f"{len(self.variables)} action variables ({many} joint actions)"

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


def as_actions(actions: object) -> ActionSpace:
    """An action space as it is; names of actions in order, or a single one, as a list."""
    return actions if isinstance(actions, ActionSpace) else ListedActions(actions)


def _clear_labels(variables: Sequence[Variable]) -> dict[str, tuple[str, int]]:
    """The variable and the value of each label that names a decision by itself.

    It holds the name of its variable ("~press"), or that has an asterisk for what its labels
    differ in ("move(*)"), and nothing else is called so.
    """
    times = Counter([NOOP])
    for variable in variables:
        times.update({variable.name, *variable.labels[1:]})
    return {
        label: (variable.name, value)
        for variable in variables
        for value, label in enumerate(variable.labels)
        if value and times[label] == 1 and (variable.name in label or "*" in variable.name)
    }
