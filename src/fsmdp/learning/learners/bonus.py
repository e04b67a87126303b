"""Optimism by bonuses: plan for the averages, with something added for what was seen too little."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated

import numpy as np

from fsmdp.bounds.bellman import BellmanNetwork
from fsmdp.foundation.kinds import Positive, Probability
from fsmdp.learning.cells.confidence import total_variations
from fsmdp.learning.cells.layout import Cells, functions_alike
from fsmdp.learning.cells.products import Products
from fsmdp.learning.learners.factored import REPLAN, STAGEWISE, FactoredLearner
from fsmdp.learning.learners.learner import Optimism, Planned
from fsmdp.learning.learners.registry import entry_of
from fsmdp.model.rewards import Reward
from fsmdp.model.structure import Structure
from fsmdp.model.tables import Floats, Integers


class BonusFactored(FactoredLearner):
    """Value iteration with a sum of local bonuses, planned by linear programs.

    Let P^ be the empirical law, a product of those of independent parts where these are stated, and
    d_i(z) a bound on the total variation between a part's law and its average in cell z,

        d_i = min(1, sqrt((log(2^|Val(i)| - 2) + log(N pi^2 n^2 / (6 delta))) / (2 n))),

    N the number of cells. Parts are exchanged one after another, so that for every function v of a
    scope, |P v - P^ v| <= sum over its parts i of d_i osc_i(v), osc_i(v) the most by which v
    changes when part i alone does. Values are sums of such functions v_Z: the bonus of scope Z is
    min(sum_i d_i osc_i(v_Z), max v_Z - P^ v_Z), a local reward, and values stay below what is left
    to earn.

    Source: Tian, Qian and Sra (2020), Towards minimax optimal reinforcement learning in factored
    Markov decision processes: bonuses that are sums over factors, in place of sets of models. Ours:
    osc_i in place of the horizon, bounds for all functions at once and so no terms for pairs of
    factors, scopes in place of all states.
    Cost of a plan: that of the stagewise program.
    """

    name = "BonusFactored"
    nested = False  # intervals alone say nothing without the bonuses, nor does a coarser program

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
            structure,
            seed=seed,
            method=STAGEWISE,
            replan=replan,
            known_rewards=known_rewards,
            optimism=Optimism(delta, scale),
        )

    @cached_property
    def _scopes(self) -> tuple[LocalScope, ...]:
        return local_scopes(self.structure, self.network, self.cells, self.products)

    def distances(self) -> Floats:
        """d_i: how far the law of each transition cell may be from its average; 1 if unseen."""
        return total_variations(
            self.cells,
            self.statistics.transition_visits,
            self.cells.n_sets,
            self.delta_transitions,
            self.optimism.scale,
        )

    def replan(self) -> Planned:
        """Plan for the averages with their bonuses."""
        found = self.reward_intervals()
        # What was not seen has all its values alike: d_i is 1 there, whatever they are.
        means = self.means_of(self.sets.shares(self.statistics.outcomes.astype(np.float64)))
        distances = self.distances()
        averages = self.planned_for(replace(found, low=means, high=means)).high
        boxes = None
        if self.products is not None:
            boxes = self.products.spread_over_boxes(distances, self.first_cell)
        self.together = Bonuses(
            averages,
            tuple((scope, scope.reach(distances, boxes)) for scope in self._scopes),
        )
        return self.follow(found)


@dataclass(frozen=True, slots=True, eq=False)
class LocalScope:
    """Functions of one scope and the same parents, and where the cells of its parts stand."""

    functions: Integers
    tables: Floats  # (n_functions, n_values) parts as axes, flat
    sizes: tuple[int, ...]  # values of each part
    entries: Integers  # (n_functions, n_entries) backup entries
    at: Integers  # (n_parts, n_entries) cells, or numbers in boxes
    in_boxes: bool

    def reach(self, distances: Floats, boxes: Floats | None) -> Floats:
        """d_i of each part at each entry."""  # (n_parts, n_entries)
        if self.in_boxes:
            assert boxes is not None
            return np.asarray(boxes[self.at])
        return np.asarray(distances[self.at])


@dataclass(frozen=True, slots=True, eq=False)
class Bonuses:
    """Means with bonuses: as much of a scope's mass as the bonus is worth goes to its best value.

    (1 - t) P^ v + t max v = P^ v + bonus: a bonus of means, so that programs need no new rewards.
    """

    averages: Floats = field(repr=False)  # (n_backup_entries,)
    scopes: tuple[tuple[LocalScope, Floats], ...] = field(repr=False)

    def means(self, weights: Floats, low: Floats, high: Floats, sign: float) -> Floats:  # noqa: ARG002
        """Averages moved by their bonuses, upwards in sign * weights. Cost: all entries."""
        found = self.averages.copy()
        for scope, reach in self.scopes:
            own = weights[scope.functions]
            if not own.any():
                continue
            values = sign * (own @ scope.tables)
            best = int(values.argmax())
            averages = self.averages[scope.entries]
            room = values[best] - sign * (own @ averages)
            bonus = oscillations(values, scope.sizes) @ reach
            share = np.minimum(1.0, bonus / np.where(room > 0, room, np.inf))
            moved = (1 - share) * averages + share * scope.tables[:, best, None]
            found[scope.entries] = moved
        return found


def oscillations(values: Floats, sizes: tuple[int, ...]) -> Floats:
    """For each part the most by which values change when it alone does."""
    array = values.reshape(sizes)
    return np.array([float(np.ptp(array, axis=part).max()) for part in range(len(sizes))])


def local_scopes(
    structure: Structure, network: BellmanNetwork, cells: Cells, products: Products | None
) -> tuple[LocalScope, ...]:
    """The scopes of a basis, each with the functions that depend on it."""
    first_cell, first_of_terms = cells.first_cells(), cells.n_reward_cells
    by_function = {one.function: one for one in products.products} if products is not None else {}
    given = network.given_backups
    columns = network.backup_columns[given]
    first_entry = np.searchsorted(columns, np.arange(len(structure.basis) + 1))
    found = []
    for block in functions_alike(structure)[1:]:
        n_entries = int(first_entry[block[0] + 1] - first_entry[block[0]])
        entries = first_entry[block][:, None] + np.arange(n_entries)
        own = cells.layout.cell_of[first_of_terms + entries[0]] - first_of_terms
        product = by_function.get(block[0])
        if product is None:
            tables = [structure.basis.tables[number].values.ravel() for number in block]
            sizes, at = (tables[0].size,), own[None]
        else:
            tables = [by_function[number].table for number in block]
            sizes = tuple(product.sizes.tolist())
            at = product.box_at[:, own - first_cell[block[0]]]
        found.append(
            LocalScope(
                np.array(block), np.array(tables), sizes, given[entries], at, product is not None
            )
        )
    return tuple(found)


WHAT = "averages with local bonuses, planned by linear programs"
ENTRY = entry_of(BonusFactored, "bonus", "bonuses, factored", WHAT)
