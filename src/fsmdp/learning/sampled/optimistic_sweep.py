"""The best that boxes around what was counted allow: values of every state, by contraction.

Groups of variables are drawn independently, and the law of each lies in a box. From the last step
on, V_l(s) = max_a R(s, a) + discount * M_a V_{l+1}(s), where M_a takes one group after another, and
the best law of its box for each assignment of the groups still to come. That allows more than
products: M_a V >= P V for every product P of laws in the boxes, since taking a mean is monotone.
While the boxes hold the truth, values are thus upper bounds at every state, and no basis
approximates them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from fsmdp.exact.contraction import Branch
from fsmdp.exact.flat import ENTRY_LIMIT
from fsmdp.exact.solve import ExactSolution, expected_seconds, fit, sweep_back
from fsmdp.learning.cells.layout import Cells
from fsmdp.learning.cells.products import Ends, Factor, Products
from fsmdp.learning.sampled.model import assemble, entries_of
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.structure import Structure
from fsmdp.model.tables import Floats
from fsmdp.model.variables import table_size

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
    needed = expected_seconds(model)
    if needed is None or needed > SECONDS:
        return None
    factors = products.factors_of(structure.independent)
    return OptimisticSweep(structure, factors, fit(model, ENTRY_LIMIT)[0])


def optimistic_rows(
    counted: Structure, products: Products, boxes: Ends, values: Floats
) -> list[Floats]:
    """For each group the laws of its box that are best for what its values are worth.

    `values` hold what each value of each function's scope is worth, function after function. Of
    functions, those that look at nothing outside the group count.
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
        rows, left = low.copy(), 1 - low.sum(axis=1)
        for value in np.argsort(-worth.ravel(), kind="stable"):
            added = np.clip(np.minimum(left, high[:, value] - low[:, value]), 0.0, None)
            rows[:, value] += added
            left -= added
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
