"""Is what a structure states to be independent really so? A test on what was counted."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
from scipy.special import gammaln, xlogy

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import plural, show
from fsmdp.learning.cells.layout import Cells
from fsmdp.learning.cells.statistics import Statistics
from fsmdp.learning.options import as_probability
from fsmdp.model.actions import Actions
from fsmdp.model.cases import common_groups
from fsmdp.model.lookup import Integers
from fsmdp.model.structure import Structure
from fsmdp.model.variables import Scope

Counted = tuple[Scope, Integers]
"""Variables of different groups, and how often they took their values together in one cell."""


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
    cells: int  # that were looked at
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
    and ever reaches C / delta in one of C cells with probability delta at most (Ville), however
    cells were chosen and whenever one looks. It also does if parents are missing: then next values
    depend on what is not in the cell.
    Source: Wasserman, Ramdas and Balakrishnan (2020), Universal inference.
    """
    delta = as_probability(delta)
    if isinstance(source, tuple | list) and len(source) == 3:
        if not isinstance(structure, Structure):
            raise ModelError(
                f"check_independence: transitions need a structure, found {show(structure)}; give "
                "the one whose independence is in doubt."
            )
        counted = list(_of_transitions(_stated(structure), source))
    else:
        cells, statistics = getattr(source, "cells", None), getattr(source, "statistics", None)
        told = getattr(source, "structure", None) if structure is None else structure
        if not isinstance(cells, Cells) or not isinstance(statistics, Statistics):
            raise ModelError(
                f"check_independence: expected a history, a learner, or (states, actions, next "
                f"states), found {show(source)}; give what learn returned."
            )
        counted = list(_of_statistics(_stated(told), cells, statistics))
    return _judged(_stated(structure or source.structure), counted, delta)


def _stated(structure: object) -> Structure:
    if not isinstance(structure, Structure) or len(structure.independent) < 2:
        raise ModelError(
            "check_independence: the structure states no groups that are independent; state them "
            "(Structure.from_parents(..., independent=...)), or there is nothing to test."
        )
    return structure


def _judged(structure: Structure, counted: Sequence[Counted], delta: float) -> IndependenceCheck:
    group_of = {p: g for g, group in enumerate(structure.independent) for p in group}
    needed = math.log(max(1, len(counted)) / delta)
    refuted = []
    for scope, counts in counted:
        parts: dict[int, list[int]] = {}
        for axis, position in enumerate(scope):
            parts.setdefault(group_of[position], []).append(axis)
        found = log_evidence(counts, list(parts.values()))
        if found >= needed:
            names = tuple(structure.variables[position].name for position in scope)
            refuted.append(Dependence(names, int(counts.sum()), found))
    visits = int(sum(counts.sum() for _, counts in counted))
    return IndependenceCheck(tuple(refuted), len(counted), visits, delta, needed)


def log_evidence(counts: Integers, parts: Sequence[Sequence[int]]) -> float:
    """Log of the mixture's chance of joint counts over the largest that independent parts give.

    The mixture is Dirichlet(1/2, ..., 1/2); chances are those of one order of the outcomes.
    """
    n, half = float(counts.sum()), 0.5
    size = counts.size
    mixture = gammaln(half * size) - gammaln(n + half * size)
    mixture += float((gammaln(counts + half) - gammaln(half)).sum())
    independent = 0.0
    for part in parts:
        others = tuple(axis for axis in range(counts.ndim) if axis not in part)
        own = counts.sum(axis=others)
        independent += float(xlogy(own, own / max(n, 1.0)).sum())
    return float(mixture) - independent


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
        if counts.any():
            yield scope, counts


def _of_transitions(structure: Structure, given: Sequence[Any]) -> Iterator[Counted]:
    """Joint counts of every pair of groups, in the cells of the parents of both."""
    states, actions, following = (
        _whole(part, name) for part, name in zip(given, PARTS, strict=True)
    )
    n = len(structure.variables)
    factored = isinstance(structure.actions, Actions)
    n_chosen = len(structure.inputs) - n if factored else 1
    expected = ((len(states), n), (len(states), n_chosen), (len(states), n))
    actions = actions.reshape(len(actions), -1)
    for part, name, shape in zip((states, actions, following), PARTS, expected, strict=True):
        if part.shape != shape:
            raise ModelError(
                f"check_independence: {name} have shape {part.shape}, expected {shape}; give one "
                "row for each transition."
            )
    sizes = np.array([variable.size for variable in structure.variables])
    n_actions = 1 if factored else len(structure.actions)
    listed = np.zeros(len(states), dtype=np.int64) if factored else actions[:, 0]
    for part, name in ((states, PARTS[0]), (following, PARTS[2])):
        if part.size and ((part < 0) | (part >= sizes)).any():
            raise ModelError(f"check_independence: {name} hold values that variables do not have.")
    if listed.size and not 0 <= listed.min() <= listed.max() < n_actions:
        raise ModelError("check_independence: actions are not positions of the structure's.")
    inputs = np.hstack([states, actions]) if factored else states
    for one, other in combinations(range(len(structure.independent)), 2):
        parents = common_groups(
            [structure.group_parents[one], structure.group_parents[other]], n_actions
        )
        scope = (*structure.independent[one], *structure.independent[other])
        values = tuple(int(sizes[position]) for position in scope)
        outcome = np.ravel_multi_index(tuple(following[:, list(scope)].T), values)
        group = np.array([parents.group(action) for action in range(n_actions)])[listed]
        for number, scopes in enumerate(parents):
            own = group == number
            looked_at = sorted({position for part in scopes for position in part})
            rows = inputs[own][:, looked_at]
            _, cell = np.unique(rows, axis=0, return_inverse=True)
            order = np.argsort(cell.ravel(), kind="stable")
            found, at = np.unique(cell.ravel()[order], return_index=True)
            parts = np.split(outcome[own][order], at[1:]) if len(found) else []
            for seen in parts:
                yield scope, np.bincount(seen, minlength=math.prod(values)).reshape(values)


PARTS = ("states", "actions", "next states")


def _whole(given: Any, name: str) -> Integers:
    try:
        found = np.asarray(given)
        if found.ndim and found.dtype.kind in "iu":
            return found.astype(np.int64)
    except (TypeError, ValueError, OverflowError):
        pass
    raise ModelError(
        f"check_independence: {name} are {show(given)}, expected whole numbers in an array."
    )
