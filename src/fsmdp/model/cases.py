"""Cases: a local function of (state, action), told apart only where actions differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import is_not
from types import MappingProxyType
from typing import Any, Final, Generic, TypeVar

from numpy.typing import ArrayLike

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import as_items, as_name, as_tuple, clip, show, show_names
from fsmdp.foundation.equality import Compared
from fsmdp.model.functions import as_function, filled
from fsmdp.model.tables import NOT_FILLED, Floats, Rebuilt, read_only_array
from fsmdp.model.variables import Variable, as_names

Item = TypeVar("Item")
Other = TypeVar("Other")

Change = tuple[int, int]
"""A position among several Cases, and the exceptional group that replaces the default there."""


class _Any:
    """Every action that no other case names."""

    def __repr__(self) -> str:
        return "ANY"

    def __reduce__(self) -> str:
        return "ANY"


ANY: Final = _Any()

JOINT: Final[Mapping[str, int]] = MappingProxyType({"joint": 0})
"""Positions of actions where they are made of variables: one group, told apart by parents."""


@dataclass(frozen=True, slots=True, eq=False)
class Case(Rebuilt, Compared):
    """What holds under a group of actions: parents of the group's own and their table.

    Axes of the table: `parents` (current values), `drawn` (values drawn earlier in this step),
    then the child or children. `actions` is a list of names, or ANY for those no other case names.
    """

    actions: tuple[str, ...] | _Any
    parents: tuple[str, ...]
    table: Floats
    drawn: tuple[str, ...]

    def __init__(
        self,
        actions: Sequence[str] | str | _Any,
        parents: Sequence[str | Variable] | str | Variable = (),
        table: ArrayLike = (),
        drawn: Sequence[str | Variable] | str | Variable = (),
    ) -> None:
        object.__setattr__(self, "actions", _as_actions(actions))
        object.__setattr__(self, "parents", as_names(parents, f"{self.label}, parents"))
        object.__setattr__(self, "drawn", as_names(drawn, f"{self.label}, drawn"))
        object.__setattr__(self, "table", read_only_array(table, f"table of {self.label}"))

    @staticmethod
    def from_function(
        actions: Sequence[str] | str | _Any,
        parents: Sequence[str | Variable] | str | Variable,
        function: Callable[..., object],
        drawn: Sequence[str | Variable] | str | Variable = (),
    ) -> FunctionCase:
        """A case whose table is filled when a model is built, by a function of values.

        It is called with a value (or label) for each parent, then for each of `drawn`. In a
        conditional it returns how the child is drawn: a value, the probability of 1 of a binary
        variable, or a dictionary of values and probabilities. In a reward it returns the mean, in
        `allowed` whether the actions are allowed.
        """
        return FunctionCase(actions, parents, NOT_FILLED, drawn, function)

    def filled(
        self,
        known: Mapping[str, Variable],  # noqa: ARG002
        children: Sequence[str],  # noqa: ARG002
        where: str,  # noqa: ARG002
    ) -> Case:
        """The case with its table: itself, unless a function is to fill it."""
        return self

    @property
    def label(self) -> str:
        """How error messages name this group of actions."""
        if isinstance(self.actions, _Any):
            return "action group ANY"
        shown = ", ".join(map(str, self.actions[:3])) + (", ..." if len(self.actions) > 3 else "")
        return f"action group [{clip(shown)}]"


@dataclass(frozen=True, slots=True, eq=False)
class FunctionCase(Case):
    """A case whose table a function fills once sizes and labels of its parents are known."""

    function: Callable[..., object]

    def __init__(
        self,
        actions: Any,
        parents: Any,
        table: ArrayLike,
        drawn: Any,
        function: Callable[..., object],
    ) -> None:
        Case.__init__(self, actions, parents, table, drawn)
        object.__setattr__(self, "function", as_function(function, self.label))

    def filled(self, known: Mapping[str, Variable], children: Sequence[str], where: str) -> Case:
        """The case with its table. One that names what is not known is refused with the model."""
        names = (*self.parents, *self.drawn)
        if any(name not in known for name in (*names, *children)):
            return self
        where = f"{where}, {self.label}"
        inputs, outputs = [known[name] for name in names], [known[name] for name in children]
        table = filled(self.function, inputs, outputs, where)
        return Case(self.actions, self.parents, table, self.drawn)


def _as_actions(actions: object) -> tuple[str, ...] | _Any:
    if isinstance(actions, _Any):
        return actions
    where = "actions of a case"
    if isinstance(actions, str):
        actions = (actions,)
    names = as_items(actions, where, "ANY or a list of action names", "give them as a list")
    return tuple(as_name(name, where) for name in names)


def filled_cases(
    cases: tuple[Case, ...], known: Mapping[str, Variable], children: Sequence[str], where: str
) -> tuple[Case, ...]:
    """Cases whose tables are all there; the same ones if they were before."""
    found = tuple(case.filled(known, children, where) for case in cases)
    return found if any(map(is_not, found, cases)) else cases


def as_cases(cases: object, where: str) -> tuple[Case, ...]:
    """Cases in order; a single one stands for a list of itself."""
    return as_tuple(cases, Case, f"cases of {where}", "write [Case(actions, parents, table), ...]")


@dataclass(frozen=True, slots=True, eq=False)
class Cases(Compared, Generic[Item]):
    """One item per action group; group 0 holds every action not listed in `exceptions`.

    Storing exceptions only keeps a model with many actions small: a machine of a ring of 1,000
    differs under one action out of 1,001.
    """

    groups: tuple[Item, ...]
    exceptions: Mapping[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        kept = {action: group for action, group in sorted(self.exceptions.items()) if group != 0}
        object.__setattr__(self, "exceptions", MappingProxyType(kept))

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return Cases, (self.groups, dict(self.exceptions))  # a mapping proxy cannot be pickled

    def group(self, action: int) -> int:
        """Group of an action, by position."""
        return self.exceptions.get(action, 0)

    def at(self, action: int) -> Item:
        """Item that holds under an action."""
        return self.groups[self.group(action)]

    def map(self, function: Callable[[Item], Other]) -> Cases[Other]:
        """The same groups with every item replaced."""
        return Cases(tuple(map(function, self.groups)), self.exceptions)

    def map_with_group(self) -> Cases[tuple[int, Item]]:
        """The same groups, each item with the number of its group."""
        return Cases(tuple(enumerate(self.groups)), self.exceptions)

    def merge_equal(self, key: Callable[[Item], Hashable]) -> Cases[Item]:
        """Groups whose items have equal keys become one."""
        first: dict[Hashable, int] = {}
        renamed = [first.setdefault(key(item), len(first)) for item in self.groups]
        kept = dict(zip(reversed(renamed), reversed(self.groups), strict=True))
        return Cases(
            tuple(kept[group] for group in range(len(first))),
            {action: renamed[group] for action, group in self.exceptions.items()},
        )

    def __iter__(self) -> Iterator[Item]:
        return iter(self.groups)

    def __len__(self) -> int:
        return len(self.groups)


def common_groups(parts: Sequence[Cases[Item]], n_actions: int) -> Cases[tuple[Item, ...]]:
    """The coarsest groups on which each of several Cases is constant, with their items.

    Cost: the number of exceptions, not of actions.
    """
    listed = sorted({action for part in parts for action in part.exceptions})
    combinations = {action: tuple(part.group(action) for part in parts) for action in listed}
    # Where every action is an exception to some part, none is left for the default.
    default = (0,) * len(parts)
    if len(listed) == n_actions:
        default = Counter(combinations.values()).most_common(1)[0][0]
    distinct = {default: 0}
    exceptions = {a: distinct.setdefault(c, len(distinct)) for a, c in combinations.items()}
    return Cases(
        tuple(
            tuple(part.groups[group] for part, group in zip(parts, combination, strict=True))
            for combination in distinct
        ),
        exceptions,
    )


def actions_alike(
    parts: Sequence[Cases[Item]], n_actions: int
) -> dict[tuple[Change, ...], list[int]]:
    """Actions by where they differ from the defaults of several Cases.

    Cost: the number of actions and of exceptions.
    """
    by_action: list[list[Change]] = [[] for _ in range(n_actions)]
    for position, part in enumerate(parts):
        for action, group in part.exceptions.items():
            by_action[action].append((position, group))
    alike: dict[tuple[Change, ...], list[int]] = {}
    for action, changes in enumerate(by_action):
        alike.setdefault(tuple(changes), []).append(action)
    return alike


def partition(
    cases: Sequence[Case], action_positions: Mapping[str, int], where: str
) -> Cases[Case]:
    """Action groups from cases as a user writes them: every action in exactly one."""
    if not cases:
        raise ModelError(f"{where}: expected at least one case, found none; add Case(ANY, ...).")
    group_of_action: dict[int, int] = {}
    rest: int | None = None
    for group, case in enumerate(cases):
        if isinstance(case.actions, _Any):
            if rest is not None:
                raise ModelError(
                    f"{where}: two cases are for ANY action; expected at most one, join them."
                )
            rest = group
            continue
        for name in case.actions:
            if name not in action_positions:
                expected = f"one of {show_names(action_positions)}"
                if action_positions is JOINT:
                    expected = "ANY, since actions are variables: name them among the parents"
                raise ModelError(
                    f"{where}, {case.label}: unknown action {show(name)}; expected {expected}."
                )
            action = action_positions[name]
            if action in group_of_action:
                raise ModelError(
                    f"{where}: action {show(name)} is in two groups; expected each action in "
                    "exactly one, remove it from one of them."
                )
            group_of_action[action] = group
    missing = len(action_positions) - len(group_of_action)
    if rest is None and missing:
        names = [name for name, at in action_positions.items() if at not in group_of_action]
        raise ModelError(
            f"{where}: {show_names(names)} in no group; expected every action in exactly one, "
            "add a case for it or one for ANY."
        )
    return _with_largest_group_first(cases, group_of_action, rest, missing)


def _with_largest_group_first(
    cases: Sequence[Case], group_of_action: Mapping[int, int], rest: int | None, missing: int
) -> Cases[Case]:
    if len(cases) == 1:
        return Cases(tuple(cases))
    members = [0] * len(cases)
    for group in group_of_action.values():
        members[group] += 1
    if rest is not None:
        # The actions nobody names are not listed anywhere, so their group must be the default.
        members[rest] = max(missing, len(group_of_action) + 1) if missing else 0
    default = max(range(len(cases)), key=lambda group: (members[group], -group))
    used = [default, *(g for g in range(len(cases)) if members[g] and g != default)]
    renumbered = {group: position for position, group in enumerate(used)}
    return Cases(
        tuple(cases[group] for group in used),
        {action: renumbered[group] for action, group in group_of_action.items()},
    )


def by_actions(cases: Cases[Item], actions: Sequence[str]) -> list[tuple[list[str] | _Any, Item]]:
    """Each group with the names of its actions; ANY for the first, whose are listed nowhere."""
    listed: list[list[str]] = [[] for _ in cases]
    for action, group in cases.exceptions.items():
        listed[group].append(actions[action])
    return list(zip([ANY, *listed[1:]], cases, strict=True))
