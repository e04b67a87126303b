"""Between the two forms of actions: a list of names, and variables that are decided at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import show
from fsmdp.model.actions import Actions, ActionSpace, Integers
from fsmdp.model.cases import ANY, Case, Cases
from fsmdp.model.conditionals import Conditional, Kernel
from fsmdp.model.mdp import FactoredMDP, check_model
from fsmdp.model.rewards import Reward
from fsmdp.model.tables import Floats, Table
from fsmdp.model.variables import Scope, Variable, table_size
from fsmdp.reductions.reduction import Reduced, Reduction, unchanged

LARGEST_TABLE = 2**22

FEW_JOINT = 1024
"""Joint actions that are listed for engines that enumerate them."""


@dataclass(frozen=True, slots=True, eq=False)
class Listed(Reduced):
    """A model with action variables, and the one with a list of its joint actions."""

    @property
    def rewritten(self) -> bool:
        """The list is another form of the same model."""
        return False

    def policy(self, policy: Any) -> Any:
        """A policy of the listed model as one that takes joint actions."""
        from fsmdp.policies.resolve import ArrayPolicy, resolve

        model, arrays = self.original, resolve(self.original, policy).arrays
        if isinstance(policy, str) or arrays is None:
            return policy
        name = getattr(policy, "name", "greedy")
        return ArrayPolicy(name, model.variables, model.actions, model.horizon, arrays)


@dataclass(frozen=True, slots=True)
class ListActions(Reduction):
    """Joint actions listed, if there are at most so many of them."""

    most: int = FEW_JOINT
    name: str = "listed"

    def apply(self, model: FactoredMDP) -> Reduced | None:
        """The listed model, or the model itself if its actions are a list already."""
        if not model.actions.variables:
            return unchanged(model)
        count = model.actions.n_joint
        if count is None or count > self.most:
            return None
        return Listed(model, list_actions(model), name="")


def list_actions(model: FactoredMDP) -> FactoredMDP:
    """The same model with a list of its joint actions; itself if it has one already.

    Actions that give the same values to the action variables among a case's parents are one group
    of the case, and so are those of equal tables; parents on which a group's table does not depend
    are left out.
    """
    actions = model.actions
    if not actions.variables:
        return model
    rows = actions.rows()
    names = [actions.name(row) for row in rows]
    positions = {variable.name: at for at, variable in enumerate(actions.variables)}

    def split(cases: Sequence[Case]) -> list[Case]:
        return [one for case in cases for one in _listed_cases(case, rows, names, positions)]

    return model.replace(
        actions=names,
        conditionals=[Conditional(one.children, split(one.cases)) for one in model.conditionals],
        rewards=[Reward(r.name, split(r.cases), r.low, r.high, r.sigma) for r in model.rewards],
        allowed=_listed_conditions(model.allowed, rows, names, positions),
    )


def _listed_conditions(
    allowed: Sequence[Case], rows: Integers, names: Sequence[str], positions: dict[str, int]
) -> list[Case]:
    """What is allowed by joint action; ANY, which there means all of them, by name."""
    return [
        Case(members, one.parents, one.table)
        for case in allowed
        for one, members in _listed_groups(case, rows, names, positions)
        if not one.table.all()
    ]


def _listed_cases(
    case: Case, rows: Integers, names: Sequence[str], positions: dict[str, int]
) -> list[Case]:
    (usual, _), *others = _listed_groups(case, rows, names, positions)
    return [
        *(Case(members, one.parents, one.table, one.drawn) for one, members in others),
        usual,
    ]


def _listed_groups(
    case: Case, rows: Integers, names: Sequence[str], positions: dict[str, int]
) -> list[tuple[Case, list[str]]]:
    """Joint actions that a case does not tell apart, the most first, with their case for ANY."""
    own = [at for at, parent in enumerate(case.parents) if parent in positions]
    values = rows[:, [positions[case.parents[at]] for at in own]]
    found, member = np.unique(values, axis=0, return_inverse=True)
    slices: dict[object, tuple[Case, list[str]]] = {}
    order = np.argsort(member.ravel(), kind="stable")
    starts = np.searchsorted(member.ravel()[order], np.arange(len(found) + 1))
    for at, row in enumerate(found.tolist()):
        index: list[Any] = [slice(None)] * case.table.ndim
        for axis, value in zip(own, row, strict=True):
            index[axis] = value
        parents = [parent for parent in case.parents if parent not in positions]
        table = case.table[tuple(index)]
        for parent in tuple(parents):
            axis = parents.index(parent)
            if (np.diff(table, axis=axis) == 0).all():
                table = np.take(table, 0, axis=axis)
                parents.pop(axis)
        group = Case(ANY, parents, table, case.drawn)
        key = (tuple(parents), table.tobytes())
        members = [names[action] for action in sorted(order[starts[at] : starts[at + 1]].tolist())]
        slices.setdefault(key, (group, []))[1].extend(members)
    return sorted(slices.values(), key=lambda group: -len(group[1]))


def factored(model: FactoredMDP) -> FactoredMDP:
    """The same model with action variables, read off the names of its actions.

    The inverse of `model.listed()`: "reboot-1+valve=2" sets two variables, one action (noop, wait)
    sets none. What is missing from the list has to follow from how many are set at once, or from
    pairs of values that are never set together. A ModelError where the names allow no such reading.
    """
    check_model(model, "factored")
    if model.actions.variables:
        return model
    actions, rows = _read_names(model.actions)
    by_variable = [np.flatnonzero(column) for column in rows.T]

    def joined(cases: Cases[Item], names: Sequence[str], n_drawn: int, label: str) -> Case:
        return _joined_case(model, cases, actions, rows, by_variable, (names, n_drawn, label))

    everything = [variable.name for variable in (*model.variables, *model.latents)]
    conditionals = []
    for conditional, mechanism in zip(model.conditionals, model.dynamics.mechanisms, strict=True):
        items = mechanism.cases.map(_of_kernel)
        conditionals.append(
            Conditional(
                conditional.children,
                joined(items, everything, len(mechanism.children), conditional.label),
            )
        )
    rewards = [
        Reward(
            reward.name,
            joined(means.map(_of_table), everything, 0, reward.label),
            reward.low,
            reward.high,
            reward.sigma,
        )
        for reward, means in zip(model.rewards, model.reward_means, strict=True)
    ]
    allowed = []
    for cases in model.conditions.allowed:
        allowed.append(joined(cases.map(_of_condition), everything, 0, "allowed"))
    return model.replace(
        actions=actions, conditionals=conditionals, rewards=rewards, allowed=allowed
    )


Item = tuple[Scope, Scope, Floats]
"""Parents, drawn, and a table with axes for both and then for the children."""


def _of_kernel(kernel: Kernel) -> Item:
    return kernel.parents, kernel.drawn, kernel.table


def _of_table(table: Table) -> Item:
    return table.scope, (), table.values


def _of_condition(table: Table) -> Item:
    return table.scope, (), (table.values == 0).astype(np.float64)


def _read_names(names: ActionSpace) -> tuple[Actions, Integers]:
    """Action variables, and their values in each action of a list."""
    idle = names.idle()
    parsed: list[dict[str, int]] = []
    sizes: dict[str, int] = {}
    for name in names:
        values: dict[str, int] = {}
        for part in () if name == idle else name.split("+"):
            variable, equals, value = part.partition("=")
            number = int(value) if equals and value.isascii() and value.isdigit() else 1
            if (equals and str(number) != value) or not number or variable in values:
                raise ModelError(
                    f"factored: action {show(name)} does not say which variables it sets; expected "
                    "names such as 'noop', 'reboot-1', 'reboot-1+valve=2', rename it."
                )
            values[variable] = number
            sizes[variable] = max(sizes.get(variable, 2), number + 1)
        parsed.append(values)
    variables = [Variable(name, size) for name, size in sizes.items()]
    if not variables:
        raise ModelError("factored: no action sets a variable; expected names such as 'reboot-1'.")
    rows = np.array([[values.get(v.name, 0) for v in variables] for values in parsed])
    most = int((rows > 0).sum(axis=1).max())
    at_most = most if most < len(variables) else None
    for actions in (Actions(variables, at_most), _without_pairs(variables, at_most, rows)):
        if actions is not None and actions.n_joint == len(rows):
            return actions, rows
    raise ModelError(
        f"factored: the {len(names)} actions are not all those with up to {most} of "
        f"{len(variables)} variables nonzero, with or without forbidden pairs; list the others too."
    )


def _without_pairs(
    variables: Sequence[Variable], at_most: int | None, rows: Integers
) -> Actions | None:
    """Actions without the pairs of values that never occur, should nothing else be missing."""
    tables = []
    for one in range(len(variables)):
        for other in range(one + 1, len(variables)):
            never = np.ones((variables[one].size, variables[other].size))
            never[rows[:, one], rows[:, other]] = 0.0
            if never.any():
                tables.append(Table([variables[one].name, variables[other].name], never))
    return Actions(variables, at_most, tables) if tables else None


def _joined_case(
    model: FactoredMDP,
    cases: Cases[Item],
    actions: Actions,
    rows: Integers,
    by_variable: Sequence[Integers],
    about: tuple[Sequence[str], int, str],
) -> Case:
    """One case for all groups: a table over all their parents and the variables that choose."""
    names, n_children, label = about
    chosen = _choosing(cases, rows, by_variable)
    parents = tuple(sorted({p for own, _, _ in cases for p in own}))
    drawn = tuple(sorted({d for _, own, _ in cases for d in own}))
    sizes = [variable.size for variable in (*model.variables, *model.latents)]
    action_shape = [actions.sizes[v] for v in chosen]
    rest = cases.groups[0][2].shape[cases.groups[0][2].ndim - n_children :]
    shape = [*(sizes[p] for p in parents), *(sizes[d] for d in drawn), *rest]
    if table_size(shape) * table_size(action_shape) > LARGEST_TABLE:
        raise ModelError(
            f"factored: {label} depends on {len(chosen)} action variables, and its table would "
            f"have more than {LARGEST_TABLE} numbers; keep the list of actions."
        )
    tables = [np.broadcast_to(_spread(item, parents, drawn, n_children), shape) for item in cases]
    table = np.empty([*action_shape, *shape])
    table[...] = tables[0]
    for row, group in _groups_by_values(cases, rows, chosen):
        table[row] = tables[group]
    own = [actions.variables[v].name for v in chosen]
    return Case(ANY, [*own, *(names[p] for p in parents)], table, [names[d] for d in drawn])


def _spread(item: Item, parents: Scope, drawn: Scope, n_children: int) -> Floats:
    """A table with an axis for each parent and drawn value, of size 1 where it has none."""
    own_parents, own_drawn, table = item
    sizes = iter(table.shape)
    shape = [next(sizes) if p in own_parents else 1 for p in parents]
    shape += [next(sizes) if d in own_drawn else 1 for d in drawn]
    return table.reshape([*shape, *table.shape[table.ndim - n_children :]])


def _choosing(
    cases: Cases[Item], rows: Integers, by_variable: Sequence[Integers]
) -> tuple[int, ...]:
    """The fewest action variables, greedily, whose values say which group holds."""
    groups = np.zeros(len(rows), dtype=np.int64)
    for action, group in cases.exceptions.items():
        groups[action] = group
    if not groups.any():
        return ()
    apart = np.flatnonzero(groups != np.bincount(groups).argmax())
    chosen = [v for v, where in enumerate(by_variable) if np.isin(where, apart).any()]
    if not _decide(rows, groups, chosen):
        chosen = list(range(len(by_variable)))
    for variable in tuple(chosen):
        fewer = [other for other in chosen if other != variable]
        if _decide(rows, groups, fewer):
            chosen = fewer
    return tuple(chosen)


def _decide(rows: Integers, groups: Integers, chosen: Sequence[int]) -> bool:
    values = np.column_stack([rows[:, list(chosen)], groups])
    distinct = np.unique(values, axis=0)
    return len(np.unique(distinct[:, :-1], axis=0)) == len(distinct)


def _groups_by_values(
    cases: Cases[Item], rows: Integers, chosen: Sequence[int]
) -> Iterable[tuple[tuple[int, ...], int]]:
    for action, row in enumerate(rows[:, list(chosen)].tolist()):
        yield tuple(row), cases.group(action)
