"""Between a model and the ground fluents of the problem that it was imported from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fsmdp.errors import PolicyError
from fsmdp.foundation.checks import show
from fsmdp.io.rddl.one_hot import ANY_OBJECT
from fsmdp.io.rddl.splitting import MARK
from fsmdp.model.actions import NOOP, ActionSpace
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.variables import Variable

Ground = dict[str, bool | str]
"""Ground action fluents off their defaults, with a truth value or the name of an object."""


class States:
    """States of a model from values of ground state fluents.

    A variable that stands for several exclusive fluents has their names as labels; an auxiliary
    variable is the function of the others that its next value is of their next values.
    """

    def __init__(self, model: FactoredMDP) -> None:
        self.variables = model.variables
        self._own = [
            position
            for position, variable in enumerate(self.variables)
            if MARK not in variable.name
        ]
        self._computed = []
        for mechanism in model.dynamics.mechanisms:
            (child, *_), n = mechanism.children, len(self.variables)
            if child < n and MARK in self.variables[child].name:
                (kernel,) = mechanism.cases.groups
                self._computed.append((child, kernel.drawn, kernel.table.argmax(axis=-1)))

    def state(self, values: Mapping[str, int]) -> tuple[int, ...]:
        """The state in which the fluents have some values."""
        found = [0] * len(self.variables)
        for position in self._own:
            variable = self.variables[position]
            found[position] = (
                _true_member(variable, values) if is_joined(variable) else values[variable.name]
            )
        for child, drawn, table in self._computed:
            found[child] = int(table[tuple(found[position] for position in drawn)])
        return tuple(found)


def is_joined(variable: Variable) -> bool:
    """Whether a variable stands for several exclusive fluents, which are its labels."""
    return bool(variable.labels) and ANY_OBJECT in variable.name


def _true_member(variable: Variable, values: Mapping[str, int]) -> int:
    true = [at for at, label in enumerate(variable.labels) if values.get(label)]
    if len(true) > 1 or (not true and variable.labels[0] in values):
        raise PolicyError(
            f"{len(true)} of the fluents {show(variable.name)} are true; expected one, as in "
            "every state that the problem can reach."
        )
    return true[0] if true else 0


def ground_action(name: str, nothing: str = NOOP) -> Ground:
    """The ground fluents that an action sets, by its name: none for the one that does nothing."""
    if name == nothing:
        return {}
    found: Ground = {}
    for part in name.split("+"):
        if MARK in part:
            continue
        fluent, has_value, value = part.partition("=")
        negated = fluent.startswith("~")
        found[fluent.removeprefix("~")] = value if has_value else not negated
    return found


def name_of_nothing(actions: ActionSpace) -> str:
    """How the action is called that sets no fluent."""
    return NOOP if actions.variables or f"~{NOOP}" not in actions else f"~{NOOP}"


def ground_of(actions: ActionSpace, choice: Any) -> Ground:
    """The ground fluents that an action in numbers sets, by labels of values or by its name."""
    if not actions.variables:
        return ground_action(actions.name(choice), name_of_nothing(actions))
    found: Ground = {}
    for variable, value in zip(actions.variables, choice, strict=True):
        if value and MARK not in variable.name:
            found |= ground_action((variable.labels or ("", variable.name))[value], "")
    return found


class JointActions:
    """Joint actions of a model from the ground fluents that are off their defaults."""

    def __init__(self, model: FactoredMDP) -> None:
        self.actions = model.actions
        self._places: dict[tuple[str, bool | str], tuple[int, int]] = {}
        self._counters: dict[int, list[tuple[tuple[int, ...], np.ndarray]]] = {}
        for position, variable in enumerate(self.actions.variables):
            if MARK in variable.name:
                self._counters[position] = [
                    (table.scope, table.values)
                    for table in self.actions.forbidden
                    if position == table.scope[-1]
                ]
                continue
            texts = variable.labels or ("", variable.name)
            for value in range(1, variable.size):
                ((fluent, to),) = ground_action(texts[value]).items()
                self._places[fluent, to] = (position, value)

    def values(self, ground: Ground) -> tuple[int, ...] | None:
        """The values of all action variables; None if no joint action sets these fluents."""
        row = [0] * len(self.actions.variables)
        for fluent, value in ground.items():
            place = self._places.get((fluent, value))
            if place is None or row[place[0]]:
                return None
            row[place[0]] = place[1]
        for position, tables in self._counters.items():
            for count in range(self.actions.sizes[position]):
                row[position] = count
                if all(not table[tuple(row[p] for p in scope)] for scope, table in tables):
                    break
            else:
                return None
        return tuple(row)
