"""Projections: the model of a few variables, all others as they usually are."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fsmdp.model.cases import Case, _Any, by_actions
from fsmdp.model.conditionals import Conditional, Kernel
from fsmdp.model.conditions import written_conditions
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.rewards import Reward
from fsmdp.model.tables import Floats, Table, bound_table
from fsmdp.reductions.reduction import Reduced, Reduction, keep_variables


@dataclass(frozen=True, slots=True, eq=False)
class Project(Reduction):
    """The model of the variables at `kept` with the reward terms at `terms`.

    P(y | z, a) = sum over the other parents' values x of P(y | z, x, a) times the product of their
    `frequencies`, in each conditional by itself; rewards likewise. Nothing is promised of its
    values: others are neither independent nor always distributed like that.
    Cost: the tables of the conditionals that are kept.
    """

    kept: Sequence[int]
    terms: Sequence[int]
    frequencies: Sequence[Floats]  # of each variable of the model
    name: str = "projected"

    def apply(self, model: FactoredMDP) -> Reduced | None:
        """The projected model; None if nothing is kept, or if actions are made of variables."""
        if not self.kept or model.actions.variables:
            return None
        inside, frequencies = _needed(model, self.kept), self.frequencies
        everything = (*model.variables, *model.latents)
        names = [variable.name for variable in everything]
        conditionals = []
        for mechanism in model.dynamics.mechanisms:
            children = [child for child in mechanism.children if child in inside]
            if not children:
                continue
            summed = tuple(
                axis - len(mechanism.children)
                for axis, child in enumerate(mechanism.children)
                if child not in inside
            )
            cases = [
                _case(who, kernel, summed, inside, frequencies, names)
                for who, kernel in by_actions(mechanism.cases, model.actions)
            ]
            conditionals.append(Conditional([names[child] for child in children], cases))
        n_variables = len(model.variables)
        own = sorted(position for position in inside if position < n_variables)
        projected = model.replace(
            variables=[model.variables[position] for position in own],
            conditionals=conditionals,
            rewards=[_reward(model, term, set(own), frequencies) for term in self.terms],
            initial=[model.initial[position] for position in own],
            latents=[everything[p] for p in sorted(inside) if p >= n_variables],
            **_conditions(model, set(own)),
        )
        kept = keep_variables(own, model.sizes)
        return Reduced(model, projected, state_map=kept, relation="heuristic", name=self.name)


def _conditions(model: FactoredMDP, inside: set[int]) -> dict[str, Any]:
    """An action is allowed if it is for some values of the others, an end one if it is for all."""

    def kept(table: Table) -> Table:
        others = tuple(axis for axis, p in enumerate(table.scope) if p not in inside)
        barred = np.isneginf(table.values).all(axis=others)
        over = np.asarray(table.values > 0).all(axis=others)
        scope = tuple(position for position in table.scope if position in inside)
        return bound_table(scope, np.where(barred, -np.inf, over.astype(np.float64)))

    names = [variable.name for variable in model.variables]
    allowed, terminal = written_conditions(model.conditions, names, kept)
    return {"allowed": allowed, "terminal": terminal}


def _needed(model: FactoredMDP, kept: Sequence[int]) -> set[int]:
    """What is drawn: the next values that are kept, and the latents that they come from."""
    n_variables, mechanisms = len(model.variables), model.dynamics.mechanisms
    inside, waiting = set(kept), list(kept)
    while waiting:
        drawn_by = mechanisms[model.dynamics.drawn_by[waiting.pop()]]
        latents = {d for kernel in drawn_by.cases for d in kernel.drawn if d >= n_variables}
        waiting.extend(latents - inside)
        inside |= latents
    return inside


def _case(
    who: list[str] | _Any,
    kernel: Kernel,
    summed: tuple[int, ...],
    inside: set[int],
    frequencies: Sequence[Floats],
    names: Sequence[str],
) -> Case:
    table = kernel.table.sum(axis=summed) if summed else kernel.table
    inputs = (*kernel.parents, *kernel.drawn)
    n_variables = len(frequencies)
    table = _averaged(table, inputs, inside, frequencies)
    parents = [names[position] for position in kernel.parents if position in inside]
    drawn = [names[position] for position in kernel.drawn if position in inside]
    assert all(position < n_variables for position in inputs if position not in inside)
    return Case(who, parents, table, drawn)


def _averaged(
    table: Floats, scope: Sequence[int], inside: set[int], frequencies: Sequence[Floats]
) -> Floats:
    """The table without the leading axes of variables that are not inside."""
    for axis in reversed(range(len(scope))):
        if scope[axis] not in inside:
            table = np.tensordot(table, frequencies[scope[axis]], axes=(axis, 0))
    return np.asarray(table)


def _reward(
    model: FactoredMDP, term: int, inside: set[int], frequencies: Sequence[Floats]
) -> Reward:
    reward, means = model.rewards[term], model.reward_means[term]

    def mean(table: Table) -> tuple[list[str], Floats]:
        parents = [model.variables[p].name for p in table.scope if p in inside]
        return parents, _averaged(table.values, table.scope, inside, frequencies)

    tables = means.map(mean)
    cases = [
        Case(who, parents, values) for who, (parents, values) in by_actions(tables, model.actions)
    ]
    return Reward(reward.name, cases, reward.low, reward.high)
