"""Groups: where independence is stated, what is counted of each makes up a whole model."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from fsmdp.bounds.clock import NO_LIMIT
from fsmdp.errors import FsmdpError, SizeError
from fsmdp.exact.contraction import Branch
from fsmdp.exact.costs import contraction_seconds
from fsmdp.exact.flat import ENTRY_LIMIT
from fsmdp.exact.solve import Exact, ExactSolution, expected_seconds, fit, sweep_back
from fsmdp.learning.cells.layout import Cells
from fsmdp.learning.cells.products import Ends, Factor, Products
from fsmdp.learning.cells.statistics import Statistics
from fsmdp.model.basis import Basis
from fsmdp.model.cases import Case, Cases, by_actions
from fsmdp.model.conditionals import Conditional
from fsmdp.model.conditions import written_conditions
from fsmdp.model.extremes import best_laws
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.rewards import Reward
from fsmdp.model.structure import Structure
from fsmdp.model.tables import Floats, Integers, bound_table
from fsmdp.model.variables import Scope, table_size
from fsmdp.policies.arrays import CompiledPolicy
from fsmdp.policies.resolve import ArrayPolicy, array_policy
from fsmdp.reductions.reduction import unchanged
from fsmdp.solver.fitting import Choices, Fit, Fitting, first_basis
from fsmdp.solver.judge import Judge, arena_of


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """A structure in which every group is counted, and the function that counts each."""

    counted: Structure = field(repr=False)
    functions: tuple[int, ...]


def count_groups(structure: Structure, counted: Structure) -> Groups:
    """Add a function for each group that none of the counted ones has for its scope and parents."""
    sizes = [variable.size for variable in structure.variables]
    tables, parents = list(counted.basis.tables[1:]), list(counted.parents)
    contexts = list(counted.contexts)
    functions = []
    for number, group in enumerate(structure.independent):
        stated = structure.group_contexts[number] if structure.group_contexts else None
        own = structure.group_parents[number]
        for function, scope in enumerate(counted.basis.scopes):
            seen = counted.contexts[function] if counted.contexts else None
            if scope == group and _same(counted.parents[function], own) and _alike(seen, stated):
                functions.append(function)
                break
        else:
            shape = tuple(sizes[position] for position in group)
            tables.append(bound_table(group, np.arange(float(table_size(shape))).reshape(shape)))
            parents.append(own)
            if counted.contexts:
                contexts.append(stated)
            functions.append(len(tables))
    more = replace(counted, basis=Basis(tables), parents=tuple(parents), contexts=tuple(contexts))
    return Groups(more, tuple(functions))


def _same(one: Cases[Scope], other: Cases[Scope]) -> bool:
    return one.groups == other.groups and dict(one.exceptions) == dict(other.exceptions)


def _alike(one: Integers | None, other: Integers | None) -> bool:
    if one is None or other is None:
        return one is other
    return np.array_equal(one, other)


def model_of(
    structure: Structure,
    groups: Groups,
    cells: Cells,
    shares: Floats,
    rewards: Floats,
    statistics: Statistics,
) -> FactoredMDP:
    """The model in which groups are drawn by `shares` of outcomes, and cells pay `rewards`.

    Episodes start as those that were seen: each variable at the values it had, by itself.
    """
    first_cell = cells.first_cells()
    rows = []
    for number, function in enumerate(groups.functions):
        contexts = structure.group_contexts[number] if structure.group_contexts else None
        n_values = int(cells.n_values[first_cell[function]])
        n_entries = entries_of(structure, structure.group_parents[number])
        at = first_cell[function] + (np.arange(n_entries) if contexts is None else contexts)
        rows.append(shares[cells.layout.outcome_start[at][:, None] + np.arange(n_values)])
    initial = initial_of(structure, groups, cells, statistics)
    return assemble(structure, cells, rows, rewards, initial)


def entries_of(structure: Structure, parents: Cases[Scope]) -> int:
    """Assignments of parents, over all action groups."""
    sizes = [variable.size for variable in structure.inputs]
    return sum(table_size(sizes[position] for position in scope) for scope in parents)


def assemble(
    structure: Structure,
    cells: Cells,
    rows: Sequence[Floats],
    rewards: Floats,
    initial: dict[str, Floats],
) -> FactoredMDP:
    """The model in which groups are drawn by these rows, one for each entry of their parents."""
    assert structure.horizon is not None
    conditionals = []
    for group, parents, own in zip(
        structure.independent, structure.group_parents, rows, strict=True
    ):
        shape = tuple(structure.variables[position].size for position in group)
        names = [structure.variables[position].name for position in group]
        conditionals.append(Conditional(names, _cases(structure, parents, own, shape)))
    terms: list[Reward] = []
    begin, sizes_of_terms = 0, np.bincount(cells.term, minlength=len(structure.rewards))
    for term in structure.rewards:
        size = int(sizes_of_terms[len(terms)])
        means = np.clip(rewards[begin : begin + size], term.low, term.high)
        cases = _cases(structure, term.parents, means[:, None], ())
        terms.append(Reward(term.name, cases, term.low, term.high, 0.0))
        begin += size
    return FactoredMDP(
        structure.variables,
        structure.actions,
        conditionals,
        terms,
        structure.horizon,
        initial,
        structure.discount,
        (),
        *written_conditions(structure.conditions, [variable.name for variable in structure.inputs]),
    )


def _cases(
    structure: Structure, parents: Cases[Scope], rows: Floats, shape: tuple[int, ...]
) -> list[Case]:
    """Rows, group after group and assignment after assignment, as cases with tables."""
    inputs, begin, cases = structure.inputs, 0, []
    for actions, scope in by_actions(parents, structure.actions):
        sizes = tuple(inputs[position].size for position in scope)
        end = begin + table_size(sizes)
        table = rows[begin:end].reshape((*sizes, *shape))
        begin = end
        names = [inputs[position].name for position in scope]
        if actions:
            cases.append(Case(actions, names, table))
    return cases


def initial_of(
    structure: Structure, groups: Groups, cells: Cells, statistics: Statistics
) -> dict[str, Floats]:
    """How often each variable began at each value; all values alike before the first episode."""
    found = {}
    for group, function in zip(structure.independent, groups.functions, strict=True):
        begin, end = cells.layout.value_start[function : function + 2]
        shape = tuple(structure.variables[position].size for position in group)
        counts = statistics.starts[begin:end].reshape(shape)
        for axis, position in enumerate(group):
            others = tuple(other for other in range(len(group)) if other != axis)
            own = counts.sum(axis=others) if others else counts
            variable = structure.variables[position]
            total = own.sum()
            share = own / total if total else np.full(variable.size, 1 / variable.size)
            found[variable.name] = np.asarray(share)
    return found


Named = tuple[str, CompiledPolicy]

EXACTLY = 1.0
"""Seconds within which exact values are expected if they are what is used."""

ROUNDS, EPISODES, POOL = 3, 150, 4_000
"""Fits of a drawn model, episodes of each policy whose states join the pool, states of a step."""


def best_policy(model: FactoredMDP, candidates: Callable[[], Sequence[Named]], seed: int) -> Named:
    """The best policy found; `candidates` are asked for only where there are no exact values."""
    needed = expected_seconds(model)
    if needed is not None and needed <= EXACTLY:
        found = array_policy(
            "exact values", model, Exact(reachable=False).solve(model, NO_LIMIT.check)
        )
        return "exact values", found.compiled()
    judge = Judge(arena_of(model), seed)
    fit = None
    try:
        basis = first_basis(model, pairs=True)
        fitting = Fitting(model, basis, Choices(pool=POOL), NO_LIMIT.check)
        begun = Fit("fit", unchanged(model), fitting, judge.arena, EPISODES, seed, NO_LIMIT.check)
        begun.begin()
        fit = begun
    except FsmdpError:  # tables or states that are too large: what else there is has to do
        pass
    for name, arrays in candidates():
        policy = ArrayPolicy(name, model.variables, model.actions, model.horizon, arrays)
        judge.consider(name, policy, arrays, 0.0)
        if fit is not None:
            fit.visit(arrays)
    if fit is not None:
        fit.judged_by(judge, ROUNDS)
    if judge.incumbent is None:
        policy = array_policy("at random", model, "random")
        return "at random", policy.compiled()
    return judge.incumbent.name, judge.incumbent.arrays


SECONDS = 8.0
"""A plan for which exact values of one model would be expected to take longer is not made."""


@dataclass(frozen=True, slots=True, eq=False)
class OptimisticSweep:
    """How values of all states are found in the boxes of a structure's groups."""

    structure: Structure = field(repr=False)
    factors: tuple[Factor, ...] = field(repr=False)  # of the groups
    contractions: Branch = field(repr=False)

    def solve(self, cells: Cells, boxes: Ends, rewards: Floats) -> ExactSolution:
        """Values and actions, of mean rewards at most these and laws in the boxes of all factors.

        Cost: exact values, by contraction.
        """
        model = _skeleton(self.structure, cells, rewards)
        found = []
        for number, factor in enumerate(self.factors):
            cases = model.dynamics.mechanisms[number].cases
            parents = self.structure.group_parents[number]
            # A model numbers groups anew, the largest first.
            group_of = {cases.group(a): parents.group(a) for a in range(len(model.actions))}
            lows, highs = (self._tables(factor, ends, number) for ends in boxes)
            found.append([(lows[group_of[g]], highs[group_of[g]]) for g in range(len(cases))])
        return sweep_back(model, self.contractions, False, _go_on, found)

    def _tables(self, factor: Factor, numbers: Floats, number: int) -> list[Floats]:
        """One end of a factor's box, as a table for each action group."""
        structure, rows = self.structure, factor.rows(numbers)
        sizes = [variable.size for variable in structure.inputs]
        own = tuple(sizes[position] for position in factor.scope)
        tables, begin = [], 0
        for scope in structure.group_parents[number]:
            shape = tuple(sizes[position] for position in scope)
            end = begin + table_size(shape)
            tables.append(rows[begin:end].reshape(*shape, *own))
            begin = end
        return tables


def optimistic_sweep_of(
    structure: Structure, products: Products, cells: Cells
) -> OptimisticSweep | None:
    """None where there are too many states, or actions are made of variables."""
    if structure.actions.variables:
        return None
    model = _skeleton(structure, cells, cells.reward_high)
    try:
        plan, _ = fit(model, ENTRY_LIMIT)
    except SizeError:
        return None
    # Laws of boxes have no classes: what exact values of the skeleton would take says nothing.
    if contraction_seconds(model, plan) > SECONDS:
        return None
    return OptimisticSweep(structure, products.factors_of(structure.independent), plan)


def optimistic_rows(
    counted: Structure, products: Products, boxes: Ends, values: Floats
) -> list[Floats]:
    """For each group the laws of its box that are best for what its values are worth.

    `values` hold what each value of each function's scope is worth, function after function. Of
    functions, those that depend on nothing outside the group count.
    """
    sizes = [variable.size for variable in counted.variables]
    found = []
    for group, factor in zip(
        counted.independent, products.factors_of(counted.independent), strict=True
    ):
        worth, begin = np.zeros([sizes[position] for position in group]), 0
        for scope in counted.basis.scopes:
            end = begin + table_size(sizes[position] for position in scope)
            if set(scope) <= set(group):
                shape = [sizes[position] if position in scope else 1 for position in group]
                worth += values[begin:end].reshape(shape)
            begin = end
        low, high = (factor.rows(ends) for ends in boxes)
        rows = best_laws(low, high, worth.ravel())
        found.append(rows / rows.sum(axis=1, keepdims=True))
    return found


def _skeleton(structure: Structure, cells: Cells, rewards: Floats) -> FactoredMDP:
    """A model with the structure's scopes, all values alike, and these mean rewards."""
    rows = []
    for group, parents in zip(structure.independent, structure.group_parents, strict=True):
        n_values = table_size(structure.variables[position].size for position in group)
        rows.append(np.full((entries_of(structure, parents), n_values), 1 / n_values))
    alike = {v.name: np.full(v.size, 1 / v.size) for v in structure.variables}
    return assemble(structure, cells, rows, rewards, alike)


def _go_on() -> None:
    """Nothing ends a plan early."""
