"""Structure: what a learner is told. Scopes, groups and bounds; no probability."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import (
    as_items,
    as_number,
    as_tuple,
    is_whole,
    plural,
    show,
    show_count,
)
from fsmdp.foundation.equality import Compared
from fsmdp.foundation.numbers import facts_table, plain
from fsmdp.model.actions import ActionSpace, as_actions
from fsmdp.model.basis import Basis, check_basis
from fsmdp.model.cases import Case, Cases, as_cases, common_groups, partition
from fsmdp.model.conditions import Conditions, resolve_conditions
from fsmdp.model.rewards import Reward, check_reward_names, find_parents, resolve_mean
from fsmdp.model.tables import Table
from fsmdp.model.variables import (
    Scope,
    Variable,
    as_names,
    as_variables,
    find_positions,
    positions_by_name,
    table_size,
)

LONGEST_HORIZON = 10**6


def sum_of_discounts(horizon: int | None, discount: float) -> float:
    """What a reward of 1 at every step is worth."""
    if horizon is None:
        return 1 / (1 - discount)
    return math.fsum(discount**step for step in range(horizon))


@dataclass(frozen=True, slots=True, eq=False)
class RewardTerm(Compared):
    """What is known of one reward term before learning: where it looks, its bounds, its noise."""

    name: str
    parents: Cases[Scope]
    low: float
    high: float
    sigma: float


@dataclass(frozen=True, slots=True, eq=False)
class Structure(Compared):
    """Variables, actions, horizon, reward terms, basis, and each basis function's parents.

    `contexts` may say, for each function, which assignments of its parents are the same to it (the
    number of each assignment's cell): parents that do not matter under some values of the action
    variables. Empty where all are told apart.

    `independent` may state groups of variables, every variable in one of them: given the state and
    the action, the next values of different groups are independent, and those of a group are drawn
    together from the parents in `group_parents`. Empty where nothing is stated.

    `conditions` say which actions are allowed in which states, and which states are terminal.
    """

    variables: tuple[Variable, ...]
    actions: ActionSpace
    horizon: int | None
    discount: float
    rewards: tuple[RewardTerm, ...]
    basis: Basis
    parents: tuple[Cases[Scope], ...]  # one per basis function
    conditions: Conditions
    contexts: tuple[NDArray[np.int64] | None, ...] = ()
    independent: tuple[Scope, ...] = ()
    group_parents: tuple[Cases[Scope], ...] = ()  # one per group
    group_contexts: tuple[NDArray[np.int64] | None, ...] = ()  # likewise, or empty

    def __post_init__(self) -> None:
        stated = [position for group in self.independent for position in group]
        if self.independent and sorted(stated) != list(range(len(self.variables))):
            raise ModelError(
                f"independent: expected groups that hold each of {len(self.variables)} variables "
                f"once, by position, found {show(self.independent)}; put variables that are drawn "
                "together into one group."
            )
        if len(self.group_parents) != len(self.independent):
            raise ModelError(
                f"group_parents: expected parents for {plural(len(self.independent), 'group')}, "
                f"found {len(self.group_parents)}; give one for each group of `independent`."
            )

    @classmethod
    def from_parents(
        cls,
        variables: Sequence[Variable],
        actions: Sequence[str],
        *,
        parents: Mapping[str, Sequence[Case]],
        rewards: Sequence[Reward],
        basis: Basis,
        horizon: int | None,
        discount: float = 1.0,
        independent: bool | Sequence[Sequence[str] | str] = False,
        allowed: Sequence[Case] = (),
        terminal: Sequence[Table] = (),
    ) -> Structure:
        """A structure written by hand: the parents of each variable by action group.

        Cases carry no tables here: `Case(["repair"], parents=[])`, and no drawn values: name the
        current values that matter, through whatever is drawn. A basis function's parents are those
        of all its variables together, which holds however correlated the variables are. Reward
        terms may have tables (they are checked and then left out) or none.

        `independent` is True if, given the state and the action, all next values are drawn
        independently, or a list of names and groups of names that are; variables in none of them
        are taken to be drawn together. Nothing is assumed unless it is stated: a learner that
        counts by variable is wrong, however much it counts, where variables are correlated (see
        `check_independence`). `allowed` and `terminal` are written as those of a `FactoredMDP`.
        """
        variables = as_variables(variables, "variables")
        space = as_actions(actions)
        inputs = (*variables, *space.variables)
        known = {variable.name: variable for variable in inputs}
        rewards = tuple(reward.filled(known) for reward in as_rewards(rewards))
        check_reward_names(rewards)
        positions = positions_by_name(inputs)
        check_horizon(horizon, discount)
        by_name = _cases_by_name(parents, variables)

        def resolve(cases: Sequence[Case], where: str) -> Cases[Scope]:
            return partition(cases, space.cases, where).map(
                lambda case: tuple(sorted(find_parents(case, positions, where)))
            )

        for reward in rewards:
            for case in reward.cases:
                if case.table.size:
                    resolve_mean(case, reward, inputs, positions)
        by_variable = [resolve(by_name[v.name], f"parents of {show(v.name)}") for v in variables]
        bound = check_basis(basis).bind(variables)

        def parents_of(scope: Scope) -> Cases[Scope]:
            return parents_together([by_variable[p] for p in scope], space)

        groups = _as_groups(independent, variables)
        return cls(
            variables,
            space,
            None if horizon is None else int(horizon),
            float(discount),
            tuple(
                RewardTerm(r.name, resolve(r.cases, r.label), r.low, r.high, r.sigma)
                for r in rewards
            ),
            bound,
            tuple(parents_of(scope) for scope in bound.scopes),
            resolve_conditions(allowed, terminal, variables, space),
            independent=groups,
            group_parents=tuple(map(parents_of, groups)),
        )

    def with_parents(self, by_variable: Sequence[Cases[Scope]]) -> Structure:
        """The same with other parents of each variable, and so of functions and groups."""

        def parents_of(scope: Scope) -> Cases[Scope]:
            return parents_together([by_variable[p] for p in scope], self.actions)

        return replace(
            self,
            parents=tuple(map(parents_of, self.basis.scopes)),
            contexts=(),
            group_parents=tuple(map(parents_of, self.independent)),
            group_contexts=(),
        )

    @property
    def inputs(self) -> tuple[Variable, ...]:
        """All that a parent may be: state variables, then action variables."""
        return (*self.variables, *self.actions.variables)

    @property
    def largest_return(self) -> float:
        """No policy has a larger expected return: every reward at its upper bound, every step."""
        highest = sum(term.high for term in self.rewards)
        if self.conditions.terminal:
            highest = max(0.0, highest)  # an episode may end before it costs more
        return sum_of_discounts(self.horizon, self.discount) * highest

    @property
    def cells(self) -> int:
        """Number of (basis function, action group, parent assignment) that a learner estimates."""
        return sum(self.cells_of(function) for function in range(1, len(self.parents)))

    def cells_of(self, function: int) -> int:
        """Number of cells of one basis function."""
        contexts = self.contexts[function] if self.contexts else None
        if contexts is not None:
            return int(contexts.max()) + 1
        inputs = self.inputs
        return sum(table_size(inputs[p].size for p in scope) for scope in self.parents[function])

    def _repr_html_(self) -> str:
        return facts_table(
            "Structure",
            (
                ("variables", len(self.variables)),
                ("actions", self.actions.text.removesuffix(" actions")),
                ("reward terms", len(self.rewards)),
                ("basis functions", len(self.basis)),
                ("cells to estimate", show_count(self.cells)),
                ("most that an episode can earn", plain(self.largest_return, 6)),
            ),
        )

    def __repr__(self) -> str:
        return (
            f"Structure({plural(len(self.variables), 'variable')}, "
            f"{self.actions.text}, "
            f"{plural(len(self.basis), 'basis function')}, {show_count(self.cells)} cells, "
            f"{show_end(self.horizon, self.discount)})"
        )


def _as_groups(independent: object, variables: Sequence[Variable]) -> tuple[Scope, ...]:
    """Groups of variables by position, those that are not named in one group at the end."""
    if isinstance(independent, bool):
        return tuple((position,) for position in range(len(variables))) if independent else ()
    remedy = "give True, or a list of names and of groups of names"
    listed = as_items(independent, "independent", "groups of variables", remedy)
    positions, found = positions_by_name(variables), []
    for group in listed:
        names = as_names(group, "independent")
        found.append(tuple(sorted(find_positions(names, positions, "independent"))))
    named = {position for group in found for position in group}
    rest = tuple(position for position in range(len(variables)) if position not in named)
    return (*found, rest) if rest else tuple(found)


def parents_together(parents: Sequence[Cases[Scope]], actions: ActionSpace) -> Cases[Scope]:
    """The parents of several variables or groups, by action group."""
    return common_groups(parents, actions.n_cases).map(union)


def union(scopes: Sequence[Scope]) -> Scope:
    """All positions of several scopes."""
    return tuple(sorted({position for scope in scopes for position in scope}))


def _cases_by_name(parents: object, variables: Sequence[Variable]) -> dict[str, tuple[Case, ...]]:
    where = "parents of a structure"
    if not isinstance(parents, Mapping):
        raise ModelError(
            f"{where}: expected a dictionary from each variable to its cases, found "
            f"{show(parents)}; give {{name: [Case(ANY, parents=[...])], ...}}."
        )
    names = as_names(list(parents), where)
    find_positions(names, positions_by_name(variables), where)
    by_name = {
        name: as_cases(cases, f"parents of {show(name)}")
        for name, cases in zip(names, parents.values(), strict=True)
    }
    missing = [variable.name for variable in variables if variable.name not in by_name]
    if missing:
        raise ModelError(
            f"{where}: {show(missing[0])} has none listed ({len(missing)} missing); "
            "expected cases for every variable, give [Case(ANY, parents=[])] for none."
        )
    for name, cases in by_name.items():
        for case in cases:
            if case.table.size:
                raise ModelError(
                    f"parents of {show(name)}, {case.label}: found a table of shape "
                    f"{show(case.table.shape)}, expected none since a structure holds no "
                    "probabilities; leave it out."
                )
    return by_name


def show_end(horizon: int | None, discount: float) -> str:
    """How an episode ends, for a repr."""
    return f"horizon {horizon}" if horizon else f"infinite horizon, discount {discount:.6g}"


def as_rewards(rewards: object) -> tuple[Reward, ...]:
    """Reward terms in order."""
    return as_tuple(rewards, Reward, "rewards", "give [Reward(name, cases), ...], or [] for none")


def check_horizon(horizon: int | None, discount: float) -> None:
    """Refuse a horizon below 1, a discount outside (0, 1], and an endless sum without discount."""
    if horizon is not None:
        if not is_whole(horizon) or horizon < 1:
            raise ModelError(
                f"horizon: expected a whole number of at least 1, or None for an infinite horizon, "
                f"found {show(horizon)}; give the number of steps of an episode."
            )
        if horizon > LONGEST_HORIZON:
            raise ModelError(
                f"horizon: expected at most {LONGEST_HORIZON} steps, found {show(horizon)}; use "
                "None (an infinite horizon) with a discount below 1."
            )
    number = as_number(discount, "discount", "1 means none")
    if not 0 < number <= 1:
        raise ModelError(
            f"discount: expected a number above 0 and at most 1, found {show(discount)}; 1 means "
            "none."
        )
    if horizon is None and number >= 1:
        raise ModelError(
            "horizon is None (infinite) and discount is 1: values would be infinite; give a "
            "horizon, or a discount below 1."
        )
