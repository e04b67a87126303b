"""Is what a structure states to be independent really so? A test on what was counted."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from fsmdp.discovery.parents import log_bet, log_fit
from fsmdp.discovery.transitions import Transitions, given_transitions
from fsmdp.errors import ModelError
from fsmdp.foundation.checks import as_probability, plural, show
from fsmdp.learning.cells.layout import Cells
from fsmdp.learning.cells.statistics import Statistics
from fsmdp.model.cases import common_groups
from fsmdp.model.structure import Structure
from fsmdp.model.tables import Integers
from fsmdp.model.variables import Scope, table_size

Counted = tuple[Scope, int, list[Integers]]
"""Variables of different groups, how many cells there are, and for each that was visited how often
the variables took their values together."""


@dataclass(frozen=True, slots=True, eq=False)
class Dependence:
    """Variables that are not independent: in one cell, the evidence is e^`log_evidence`."""

    variables: tuple[str, ...]
    visits: int
    log_evidence: float


@dataclass(frozen=True, slots=True, eq=False)
class IndependenceCheck:
    """What the data say of the independence that a structure states.

    `refuted` is right with probability 1 - `delta` at least, if the structure's parents are right.
    That nothing was refuted proves nothing: with few visits little can be.
    """

    refuted: tuple[Dependence, ...]
    cells: int  # that there are to look at
    visits: int  # in all of them together
    delta: float
    needed: float = field(repr=False)  # log of the evidence that one cell needs

    def __bool__(self) -> bool:
        """Whether independence stands as far as the data go."""
        return not self.refuted

    def __repr__(self) -> str:
        looked = f"{plural(self.cells, 'cell')}, {plural(self.visits, 'visit')}"
        if not self.refuted:
            return f"IndependenceCheck(not refuted; {looked}; delta {self.delta:g})"
        worst = max(self.refuted, key=lambda one: one.log_evidence)
        return (
            f"IndependenceCheck(REFUTED for {', '.join(worst.variables)}: evidence "
            f"e^{worst.log_evidence:.1f}, e^{self.needed:.1f} needed; {looked}; "
            f"delta {self.delta:g})"
        )


def check_independence(
    source: Any, structure: Structure | None = None, *, delta: float = 0.05
) -> IndependenceCheck:
    """Test the independence that a structure states on a history, a learner, or transitions.

    A history and a learner bring their structure, and counts of the basis functions that look at
    several groups (singles look at none). Transitions are three arrays, states, actions by number
    and next states, with the structure beside them; all pairs of groups are looked at.

    In every cell, the chance of the joint counts under a mixture of all joint distributions
    (Dirichlet, 1/2 for each value) is divided by the largest chance that independence gives them.
    If the groups are independent, the quotient is below that of the truth, a martingale of mean 1,
    and ever reaches C / delta in one of all C cells with probability delta at most (Ville), however
    cells were chosen and whenever one looks; see `fsmdp.discovery.parents`. It also does if
    parents are missing: then next values depend on what is not in the cell.
    """
    delta = as_probability(delta)
    if isinstance(source, tuple | list) and len(source) == 3:
        if not isinstance(structure, Structure):
            raise ModelError(
                f"check_independence: transitions need a structure, found {show(structure)}; give "
                "the one whose independence is in doubt."
            )
        stated = _stated(structure)
        data = given_transitions(source, stated.variables, stated.actions)
        return _judged(stated, list(_of_transitions(stated, data)), delta)
    cells, statistics = getattr(source, "cells", None), getattr(source, "statistics", None)
    if not isinstance(cells, Cells) or not isinstance(statistics, Statistics):
        raise ModelError(
            f"check_independence: expected a history, a learner, or (states, actions, next "
            f"states), found {show(source)}; give what learn returned."
        )
    stated = _stated(structure or source.structure)
    return _judged(stated, list(_of_statistics(stated, cells, statistics)), delta)


def _stated(structure: object) -> Structure:
    if not isinstance(structure, Structure) or len(structure.independent) < 2:
        raise ModelError(
            "check_independence: the structure states no groups that are independent; state them "
            "(Structure.from_parents(..., independent=...)), or there is nothing to test."
        )
    return structure


def _judged(structure: Structure, counted: Sequence[Counted], delta: float) -> IndependenceCheck:
    group_of = {p: g for g, group in enumerate(structure.independent) for p in group}
    n_cells = sum(cells for _, cells, _ in counted)
    needed = math.log(max(1, n_cells) / delta)
    refuted, visits = [], 0
    for scope, _, tables in counted:
        parts: dict[int, list[int]] = {}
        for axis, position in enumerate(scope):
            parts.setdefault(group_of[position], []).append(axis)
        for counts in tables:
            visits += int(counts.sum())
            found = log_evidence(counts, list(parts.values()))
            if found >= needed:
                names = tuple(structure.variables[position].name for position in scope)
                refuted.append(Dependence(names, int(counts.sum()), found))
    return IndependenceCheck(tuple(refuted), n_cells, visits, delta, needed)


def log_evidence(counts: Integers, parts: Sequence[Sequence[int]]) -> float:
    """Log of the mixture's chance of joint counts over the largest that independent parts give."""
    seen, fits = counts.astype(np.float64), 0.0
    for part in parts:
        others = tuple(axis for axis in range(counts.ndim) if axis not in part)
        fits += log_fit(seen.sum(axis=others).reshape(1, -1))
    return log_bet(seen.reshape(1, -1)) - fits


def _of_statistics(structure: Structure, cells: Cells, statistics: Statistics) -> Iterator[Counted]:
    """Joint counts of the functions that look at several groups, each set of outcomes once."""
    group_of = {p: g for g, group in enumerate(structure.independent) for p in group}
    starts, first = np.unique(cells.layout.outcome_start, return_index=True)
    for start, cell in zip(starts.tolist(), first.tolist(), strict=True):
        function = int(cells.function[cell])
        begin, end = cells.layout.scope_start[function : function + 2]
        scope = tuple(cells.layout.scope_slot[begin:end].tolist())
        if len({group_of[position] for position in scope}) < 2:
            continue
        shape = tuple(structure.variables[position].size for position in scope)
        counts = statistics.outcomes[start : start + int(np.prod(shape))].reshape(shape)
        yield scope, 1, [counts] if counts.any() else []


def _of_transitions(structure: Structure, data: Transitions) -> Iterator[Counted]:
    """Joint counts of every pair of groups, in the cells of the parents of both."""
    for one, other in combinations(range(len(structure.independent)), 2):
        parents = common_groups(
            [structure.group_parents[one], structure.group_parents[other]], data.n_actions
        )
        scope = (*structure.independent[one], *structure.independent[other])
        values = tuple(structure.variables[position].size for position in scope)
        outcome = np.ravel_multi_index(tuple(data.outcomes[:, list(scope)].T), values)
        group = np.array([parents.group(action) for action in range(data.n_actions)])[data.taken]
        for number, scopes in enumerate(parents):
            own = group == number
            looked_at = sorted({position for part in scopes for position in part})
            n_cells = table_size(data.sizes[position] for position in looked_at)
            _, cell = np.unique(data.inputs[own][:, looked_at], axis=0, return_inverse=True)
            order = np.argsort(cell.ravel(), kind="stable")
            found, at = np.unique(cell.ravel()[order], return_index=True)
            seen = np.split(outcome[own][order], at[1:]) if len(found) else []
            length = math.prod(values)
            tables = [np.bincount(rows, minlength=length).reshape(values) for rows in seen]
            yield scope, n_cells, tables
