"""DORL: optimism by an extended action, which names a target next value of each factor."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated

import numpy as np

from fsmdp.bounds.bellman import BellmanNetwork, network_of_structure
from fsmdp.foundation.checks import check_size
from fsmdp.foundation.kinds import Positive, Probability
from fsmdp.learning.cells.confidence import lowest_shares
from fsmdp.learning.learners.factored import MOST_ENTRIES, REPLAN, STAGEWISE, FactoredLearner
from fsmdp.learning.learners.learner import Optimism, Planned, check_stated
from fsmdp.learning.learners.registry import entry_of
from fsmdp.learning.sampled import count_groups
from fsmdp.model.cases import Cases, common_groups
from fsmdp.model.conditions import Conditions
from fsmdp.model.rewards import Reward
from fsmdp.model.structure import Structure, union
from fsmdp.model.tables import Floats, Integers, Table, bound_table
from fsmdp.model.variables import Scope, Variable, table_size


class DORLFactored(FactoredLearner):
    """Discrete optimism: some of each factor's mass goes to a target value.

    Factors are the groups that the structure states to be independent. In a cell with n visits,

        P~(y | z, target) = P^(y) - W(y) + [y = target] sum_y' W(y'),
        W(y) = min(P^(y), sqrt(18 P^(y) L / n) + 18 L / n),  L = log(6 m |Val| |X| t / delta),

    m factors, |X| cells of the factor, t steps so far plus one; all mass is moved where nothing was
    seen. An extended action is an action with a target for each factor: its transitions are one
    law, so that the optimistic model is a factored MDP. As no value is rarer than P^ - W, and the
    mean of values under a product is linear in each factor, the best targets are at least as good
    as the truth.

    Targets are variables of the program that it maximises over as it does over action variables.
    The policy takes the best target for each function by itself, which is the same where values
    add up over factors, and at least as optimistic elsewhere.

    Source: Xu and Tewari (2020), Reinforcement learning in factored MDPs: oracle-efficient
    algorithms and tighter regret bounds for the non-episodic setting. Ours: episodes of a finite
    horizon, and linear programs in place of the oracle that plans.
    Cost of a plan: that of the stagewise program, with a variable more for each factor.
    """

    name = "DORLFactored"
    nested = False  # intervals alone say nothing without the targets, nor does a coarser program

    def __init__(
        self,
        structure: Structure,
        delta: Probability = 0.05,
        seed: int = 0,
        *,
        replan: Annotated[str | float, REPLAN] = 0.5,
        scale: Positive = 1.0,
        known_rewards: Sequence[Reward] | None = None,
    ) -> None:
        super().__init__(
            by_groups(check_stated(self.name, structure)),
            seed=seed,
            method=STAGEWISE,
            replan=replan,
            known_rewards=known_rewards,
            independent=False,
            optimism=Optimism(delta, scale),
        )

    def counted_structure(self) -> Structure:
        """Functions as given, and one for each factor that none of them counts."""
        self._extended = extend(self.structure)
        self.groups = count_groups(self.structure, self.structure)
        return self.groups.counted

    def program_network(self) -> BellmanNetwork:
        """Where targets are maximised over."""
        return network_of_structure(self._extended.structure)

    def is_learnt(self) -> np.ndarray:
        """For each transition cell whether it is one of a factor."""
        assert self.groups is not None
        return np.isin(self.cells.function, self.groups.functions)

    def laws(self) -> list[tuple[Floats, Floats]]:
        """P^ - W and the mass that is moved, for each factor and entry of its parents."""
        assert self.groups is not None
        cells, steps = self.cells, self.horizon * self.statistics.episodes + 1
        found = []
        for number, function in enumerate(self.groups.functions):
            first = self.first_cell[function]
            n_cells = int((cells.function == function).sum())
            n_values = int(cells.n_values[first])
            at = cells.layout.outcome_start[first : first + n_cells, None] + np.arange(n_values)
            outcomes = self.statistics.outcomes[at]
            visits = outcomes.sum(axis=1, keepdims=True)
            events = len(self.groups.functions) * n_values * n_cells * steps
            low = lowest_shares(
                outcomes / np.maximum(visits, 1),
                visits,
                events,
                self.delta_transitions,
                self.optimism.scale,
            )
            contexts = self.structure.group_contexts
            spread = contexts[number] if contexts else None
            low = low if spread is None else low[spread]
            found.append((low, np.maximum(1 - low.sum(axis=1), 0.0)))
        return found

    def replan(self) -> Planned:
        """Plan for extended actions, and follow the best of them."""
        laws, rewards = self.laws(), self.reward_intervals()
        by_function = [one.means(laws) for one in self._extended.functions]
        by_target = np.concatenate(
            [np.ones(1), *(part for one in by_function for part in one.by_target)]
        )
        low = np.concatenate([np.ones(1), *(part for one in by_function for part in one.low)])
        high = np.concatenate([np.ones(1), *(part for one in by_function for part in one.high)])
        targeted = replace(rewards, low=by_target, high=by_target)
        targeted = self.planner.network.laid_out(targeted)
        found = self.planner.plan(targeted, self.start_means(), math.sqrt(1 / self.episode))
        over_targets = replace(rewards, low=low, high=high, together=self.together)
        return self.follow_weights(found, self.network.laid_out(over_targets))


@dataclass(frozen=True, slots=True, eq=False)
class MeansByTarget:
    """Means of a function, table by table: under each target, and the ends over all targets."""

    by_target: list[Floats] = field(repr=False)
    low: list[Floats] = field(repr=False)
    high: list[Floats] = field(repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class ExtendedFunction:
    """A function of several factors: its values by factor, and where it finds their laws."""

    values: Floats  # one axis for each factor
    factors: tuple[int, ...]
    rows: tuple[tuple[Integers, ...], ...]  # by table and factor: (n_assignments,) rows of its law
    n_by_action: tuple[int, ...]  # by table: assignments of the action variables among parents

    def means(self, laws: Sequence[tuple[Floats, Floats]]) -> MeansByTarget:
        """sum_y h(y) prod_f P~_f(y_f | z, target_f). Cost: assignments times values."""
        found = MeansByTarget([], [], [])
        every = tuple(range(1, self.values.ndim + 1))
        for rows, n_by_action in zip(self.rows, self.n_by_action, strict=True):
            means = np.broadcast_to(self.values, (len(rows[0]), *self.values.shape))
            for axis, (factor, own) in enumerate(zip(self.factors, rows, strict=True), 1):
                law, mass = laws[factor]
                shape = [-1 if at == axis else 1 for at in range(means.ndim)]
                shape[0] = len(own)
                certain = (law[own].reshape(shape) * means).sum(axis=axis, keepdims=True)
                means = certain + mass[own].reshape([-1, *[1] * self.values.ndim]) * means
            found.low.append(means.min(axis=every))
            found.high.append(means.max(axis=every))
            # Targets stand between state variables and action variables in the program's scopes.
            by_action = means.reshape(-1, n_by_action, self.values.size)
            found.by_target.append(by_action.transpose(0, 2, 1).ravel())
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Extended:
    """A structure with a variable for each factor's target, and how its functions look there."""

    structure: Structure = field(repr=False)
    functions: tuple[ExtendedFunction, ...] = field(repr=False)  # all but the constant


def by_groups(structure: Structure) -> Structure:
    """The structure with the parents of whole groups for each function that depends on a part."""
    by_variable = {
        position: parents
        for group, parents in zip(structure.independent, structure.group_parents, strict=True)
        for position in group
    }
    found = structure.with_parents([by_variable[p] for p in range(len(by_variable))])
    if not structure.group_contexts:
        return found
    return replace(
        found,
        contexts=(None,) * len(found.parents),
        group_parents=structure.group_parents,
        group_contexts=structure.group_contexts,
    )


def extend(structure: Structure) -> Extended:
    """Targets as variables that stand after those of the state; see `Extended`."""
    sizes = [variable.size for variable in structure.variables]
    group_sizes = [table_size(sizes[p] for p in group) for group in structure.independent]
    targets = tuple(
        Variable(f"target of {' '.join(structure.variables[p].name for p in group)}", size)
        for group, size in zip(structure.independent, group_sizes, strict=True)
    )
    n_states, n_targets = len(sizes), len(targets)
    n_actions = structure.actions.n_cases
    functions, parents = [], []
    for number, scope in enumerate(structure.basis.scopes):
        groups = _groups_of(structure, scope)
        moved = tuple(n_states + group for group in groups)
        parents.append(structure.parents[number].map(partial(_with, moved, n_states, n_targets)))
        if number:
            table = structure.basis.tables[number].values
            shared = common_groups(
                [structure.group_parents[g].map_with_group() for g in groups], n_actions
            )
            functions.append(_function(structure, scope, table, groups, shared))
    n_entries = sum(
        sum(
            table_size((*sizes, *group_sizes)[p] for p in own if p < n_states + n_targets)
            for own in c
        )
        for c in parents
    )
    check_size(
        (structure.horizon or 1) * n_entries,
        MOST_ENTRIES,
        "plans with targets for all factors have",
        "use a basis of smaller scopes, or state smaller groups",
        unit="numbers",
    )
    extended = replace(
        structure,
        variables=(*structure.variables, *targets),
        parents=tuple(parents),
        contexts=(),
        rewards=tuple(
            replace(term, parents=term.parents.map(partial(_with, (), n_states, n_targets)))
            for term in structure.rewards
        ),
        independent=(),
        group_parents=(),
        group_contexts=(),
        conditions=_extended_conditions(structure, targets),
    )
    return Extended(extended, tuple(functions))


def _extended_conditions(structure: Structure, targets: Sequence[Variable]) -> Conditions:
    """The same conditions, with targets between state variables and action variables."""
    own, n_states = structure.conditions, len(structure.variables)

    def moved(table: Table) -> Table:
        return bound_table(_with((), n_states, len(targets), table.scope), table.values)

    inputs = (*structure.variables, *targets, *structure.actions.variables)
    allowed = tuple(cases.map(moved) for cases in own.allowed)
    return Conditions(structure.actions, inputs, allowed, own.terminal)


def _with(targets: Scope, n_states: int, n_targets: int, scope: Scope) -> Scope:
    """A scope with targets among its variables, which stand before action variables."""
    moved = (position if position < n_states else position + n_targets for position in scope)
    return tuple(sorted((*moved, *targets)))


def _function(
    structure: Structure,
    scope: Scope,
    table: Floats,
    groups: Sequence[int],
    shared: Cases[tuple[tuple[int, Scope], ...]],
) -> ExtendedFunction:
    inputs = [variable.size for variable in structure.inputs]
    n_states = len(structure.variables)
    rows, n_by_action = [], []
    for case in shared:
        together = union([own for _, own in case])
        shape = [inputs[position] for position in together]
        found = []
        for group, (number, own) in zip(groups, case, strict=True):
            cases = structure.group_parents[group]
            offset = sum(table_size(inputs[p] for p in one) for one in cases.groups[:number])
            spread = [inputs[position] if position in own else 1 for position in together]
            entries = offset + np.arange(table_size(inputs[p] for p in own)).reshape(spread)
            found.append(np.broadcast_to(entries, shape).ravel())
        rows.append(tuple(found))
        n_by_action.append(table_size(inputs[p] for p in together if p >= n_states))
    # h at every joint value of its groups, whose other variables it does not depend on.
    positions = [p for group in groups for p in structure.independent[group]]
    axes = [p for p in positions if p in scope]
    arranged = table.transpose([scope.index(p) for p in axes])
    wide = arranged.reshape([inputs[p] if p in scope else 1 for p in positions])
    full = np.broadcast_to(wide, [inputs[p] for p in positions])
    sizes = [table_size(inputs[p] for p in structure.independent[group]) for group in groups]
    return ExtendedFunction(full.reshape(sizes), tuple(groups), tuple(rows), tuple(n_by_action))


def _groups_of(structure: Structure, scope: Scope) -> tuple[int, ...]:
    """Groups that a scope depends on, in order."""
    return tuple(g for g, group in enumerate(structure.independent) if set(group) & set(scope))


WHAT = "extended actions that name target values, planned by linear programs"
ENTRY = entry_of(DORLFactored, "dorl", "DORL, factored", WHAT)
