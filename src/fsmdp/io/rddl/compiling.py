"""Tables of every formula by joint action, computed once for actions that a formula cannot tell.

A formula looks at few action fluents. Restricted to those, most joint actions are the same, so
that a problem with thousands of joint actions needs a handful of tables for each formula.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from itertools import product as tuples
from typing import TypeVar

import numpy as np

from fsmdp.foundation.checks import show_count
from fsmdp.io.rddl.distributions import Evaluator, Law, Values, trim, trim_law
from fsmdp.io.rddl.expressions import Expression, conjunction, constant, substitute
from fsmdp.io.rddl.sources import TooLargeError, UnsupportedError, located
from fsmdp.model.actions import NOOP
from fsmdp.model.cases import Cases
from fsmdp.model.tables import Floats

MOST_ACTIONS = 20_000

Assignment = tuple[tuple[str, int], ...]
"""Action fluents that are not at their defaults, with their values."""


@dataclass(frozen=True, slots=True)
class ActionFluent:
    """A ground action fluent: its default, and the names of its values if it is not boolean.

    A `choice` stands for several exclusive boolean fluents, whose names are those of its values.
    """

    name: str
    default: int
    objects: tuple[str, ...] = ()
    choice: bool = False
    low: int = 0  # the first value, which is another one than 0 for some integers

    @property
    def others(self) -> tuple[int, ...]:
        """The values that are not the default."""
        size = len(self.objects) or 2
        values = range(self.low, self.low + size)
        return tuple(value for value in values if value != self.default)

    def text(self, value: int) -> str:
        """How an action with this value is called."""
        if self.choice:
            return self.objects[value]
        if self.objects:
            return f"{self.name}={self.objects[value - self.low]}"
        return self.name if value else f"~{self.name}"


def count_actions(fluents: Sequence[ActionFluent], most_nondefault: int) -> int:
    """Number of joint actions, before preconditions. Cost: fluents times those allowed."""
    ways = [1] + [0] * min(most_nondefault, len(fluents))  # by number of non-default fluents
    for fluent in fluents:
        for used in range(len(ways) - 1, 0, -1):
            ways[used] += ways[used - 1] * len(fluent.others)
    return sum(ways)


def joint_actions(
    fluents: Sequence[ActionFluent],
    most_nondefault: int,
    preconditions: Sequence[Expression],
    limit: int = MOST_ACTIONS,
) -> dict[str, Assignment]:
    """Every joint action that preconditions on actions alone allow; the idle one comes first."""
    count = count_actions(fluents, most_nondefault)
    if count > limit:
        raise TooLargeError(
            f"{len(fluents)} action fluents, up to {most_nondefault} at once, make "
            f"{show_count(count)} joint actions (limit {limit}, the option most_actions of "
            "fsmdp.rddl.load); lower max-nondef-actions."
        )
    by_name = {fluent.name: fluent for fluent in fluents}
    nothing = f"~{NOOP}" if NOOP in by_name else NOOP
    allowed = {}
    for assignment in assignments(fluents, most_nondefault):
        if allows(preconditions, fluents, assignment):
            texts = [by_name[name].text(value) for name, value in assignment]
            allowed["+".join(texts) or nothing] = assignment
    if not allowed:
        raise UnsupportedError("its preconditions allow no joint action at all; correct them.")
    return allowed


def assignments(fluents: Sequence[ActionFluent], most_nondefault: int) -> Iterator[Assignment]:
    """All values of some fluents with at most so many not at their defaults; fewest first."""
    for used in range(min(most_nondefault, len(fluents)) + 1):
        for chosen in combinations(fluents, used):
            for values in tuples(*(fluent.others for fluent in chosen)):
                yield tuple((f.name, value) for f, value in zip(chosen, values, strict=True))


def allows(
    preconditions: Sequence[Expression], fluents: Sequence[ActionFluent], assignment: Assignment
) -> bool:
    """Whether preconditions on actions alone allow an assignment."""
    if not preconditions:
        return True
    chosen = {fluent.name: fluent.default for fluent in fluents} | dict(assignment)
    values = {name: constant(value) for name, value in chosen.items()}
    return bool(conjunction(substitute(one, values) for one in preconditions).value)


log = logging.getLogger("fsmdp")

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True, eq=False)
class Local:
    """A table and the fluents of its axes; a distribution has one axis more."""

    scope: tuple[str, ...]
    table: Floats

    @property
    def key(self) -> Hashable:
        """Equal for tables that are equal."""
        return self.scope, self.table.shape, np.ascontiguousarray(self.table).tobytes()


class Folder:
    """A formula under each joint action: which actions it tells apart, and what it then is."""

    def __init__(self, fluents: Sequence[ActionFluent], actions: Sequence[Assignment]) -> None:
        self.defaults = {fluent.name: fluent.default for fluent in fluents}
        self.n_actions = len(actions)
        self._using: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for position, assignment in enumerate(actions):
            for name, value in assignment:
                self._using[name].append((position, value))

    def variants(self, formula: Expression) -> Iterator[tuple[tuple[int, ...] | None, Expression]]:
        """The formula under each set of actions that it cannot tell apart.

        The set is None for all actions that are not in any other; it comes first, if there are any.
        """
        looked_at = sorted(formula.fluents & self.defaults.keys())
        if not looked_at:
            yield None, formula
            return
        assigned: dict[int, list[tuple[str, int]]] = defaultdict(list)
        for name in looked_at:
            for position, value in self._using[name]:
                assigned[position].append((name, value))
        alike: dict[Assignment, list[int]] = defaultdict(list)
        for position, pairs in assigned.items():
            alike[tuple(pairs)].append(position)
        defaults = {name: constant(self.defaults[name]) for name in looked_at}
        if len(assigned) < self.n_actions:
            yield None, substitute(formula, defaults)
        for assignment, positions in alike.items():
            changed = {name: constant(value) for name, value in assignment}
            yield tuple(positions), substitute(formula, defaults | changed)

    def group(self, formula: Expression, item_of: Callable[[Expression], Item]) -> Cases[Item]:
        """The item of each variant; variants with equal items are one group."""
        groups: dict[Hashable, tuple[Item, list[int]]] = {}
        default = None
        for positions, variant in self.variants(formula):
            item = item_of(variant)
            key = item.key if isinstance(item, Local) else item
            _, members = groups.setdefault(key, (item, []))
            if positions is None:
                default = key
            else:
                members.extend(positions)
        if default is None:
            default = max(groups, key=lambda key: len(groups[key][1]))
        found = [groups.pop(default), *groups.values()]
        return Cases(
            tuple(item for item, _ in found),
            {action: group for group, (_, members) in enumerate(found) for action in members},
        )


class Compiler:
    """Tables of formulas, for given ranges of all fluents."""

    def __init__(self, evaluator: Evaluator, folder: Folder) -> None:
        self.evaluator = evaluator
        self.folder = folder

    def transition(self, label: str, formula: Expression) -> Cases[Local]:
        """P(next value | current and drawn values) in each group of actions."""
        values = self.evaluator.values[label]
        position = {float(value): at for at, value in enumerate(values)}

        def table(variant: Expression) -> Local:
            law = trim_law(self.evaluator.law(variant))
            return _local_law(law, position, label, len(values))

        return self._located(f"the next value of {label}", formula, table)

    def reward(self, position: int, formula: Expression) -> Cases[Local]:
        """The mean of a term in each group of actions."""

        def table(variant: Expression) -> Local:
            part: Values = trim(self.evaluator.numbers(variant))
            if not np.isfinite(part.array).all():
                raise UnsupportedError("it is not finite in some state; correct the formula.")
            return Local(part.scope, part.array)

        return self._located(f"term {position + 1} of the reward", formula, table)

    def _located(
        self, where: str, formula: Expression, table: Callable[[Expression], Local]
    ) -> Cases[Local]:
        with located(where):
            return self.folder.group(formula, table)


def outcomes(formula: Expression, folder: Folder, evaluator: Evaluator) -> set[int]:
    """The values that a formula takes in some state under some joint action."""
    found: set[int] = set()
    for _, variant in folder.variants(formula):
        law = evaluator.law(variant)
        possible = [
            outcome for at, outcome in enumerate(law.outcomes) if law.probabilities[..., at].any()
        ]
        if not np.isfinite(possible).all():
            raise UnsupportedError("it is not a finite number in some state; correct the formula.")
        if any(value != int(value) for value in possible):
            raise UnsupportedError(
                f"it can become {next(v for v in possible if v != int(v)):g}; expected bool, an "
                "enumerated type or integers with a finite range, discretise it."
            )
        found |= set(map(int, possible))
    return found


def _local_law(law: Law, position: Mapping[float, int], label: str, size: int) -> Local:
    table = np.zeros((*law.probabilities.shape[:-1], size))
    for at, outcome in enumerate(law.outcomes):
        if outcome in position:
            table[..., position[outcome]] = law.probabilities[..., at]
        elif law.probabilities[..., at].any():
            raise UnsupportedError(
                f"it can become {outcome:g}, which is not among the {size} values of {label}; "
                "correct the formula."
            )
    return Local(law.scope, table)
