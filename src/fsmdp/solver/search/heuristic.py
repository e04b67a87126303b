"""Heuristics: values that are sums of local tables, for all steps at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import show
from fsmdp.model.basis import Basis, check_basis
from fsmdp.model.cases import Cases
from fsmdp.model.lookup import Inputs, Lookup, compile_lookup
from fsmdp.model.marginals import EPSILON, UNDERFLOW
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.tables import Floats


class Heuristic(NamedTuple):
    """V_l(s) = sum of one row of numbers for each table; columns are steps, from 0 on."""

    lookup: Lookup
    entries: Floats  # (n_entries, n_steps)
    rounding: Floats  # (n_steps,) how far a sum of entries may be from what the weights say


def local_values(model: FactoredMDP, basis: Basis, weights: Floats) -> Heuristic:
    """Functions of one scope, times their weights, become one table.

    Cost: numbers in the functions' tables times steps.
    """
    bound = check_basis(basis).bind(model.variables)
    steps = 1 if model.horizon is None else model.horizon + 1
    weights = np.asarray(weights, dtype=np.float64)
    if weights.shape != (steps, len(bound)):
        raise ModelError(
            f"weights: expected shape {show((steps, len(bound)))}, a row for each step and a "
            f"column for each function of the basis, found {show(weights.shape)}; use those of a "
            "plan of this model with this basis."
        )
    if not np.isfinite(weights).all():
        raise ModelError("weights: expected finite numbers, found others; plan again.")
    by_scope: dict[tuple[int, ...], list[int]] = {}
    for position, scope in enumerate(bound.scopes):
        by_scope.setdefault(scope, []).append(position)
    tables, size = [], np.zeros(steps)
    for functions in by_scope.values():
        columns = np.stack([bound.tables[j].values.ravel() for j in functions], axis=1)
        tables.append(columns @ weights[:, functions].T)
        size += (np.abs(columns) @ np.abs(weights[:, functions].T)).max(axis=0)
    inputs = [Inputs(scope, tuple(model.sizes[p] for p in scope)) for scope in by_scope]
    return Heuristic(
        compile_lookup([Cases((item,)) for item in inputs], 1),
        np.ascontiguousarray(np.concatenate(tables)),
        4 * (len(bound) + len(tables) + 4) * EPSILON * size + UNDERFLOW,
    )
