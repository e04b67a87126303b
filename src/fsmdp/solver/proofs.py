"""Proofs of bounds at the start, in the states of the model as it was given, for plan files."""

from __future__ import annotations

import numpy as np

from fsmdp.exact.solve import ExactSolution
from fsmdp.model.lookup import Integers
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.tables import Floats
from fsmdp.model.variables import state_strides
from fsmdp.planning.bound import Box, StartProof
from fsmdp.solver.search.search import Found
from fsmdp.solver.view import View

MOST_STATES, MOST_NUMBERS = 2**23, 2**26
"""Of all states, and of the variables of listed ones together, that a file and its checker take."""


def proof_by_values(model: FactoredMDP, view: View, solution: ExactSolution) -> StartProof | None:
    """Exact values of all states, or of those that can be reached, or that a joined model has.

    None if there are too many of them for a file.
    """
    name = "exact values"
    count = solution.values.shape[1]
    all_states = solution.reached is None and view.joined is None
    if count > MOST_STATES or (not all_states and count * len(model.sizes) > MOST_NUMBERS):
        return None
    values = solution.values[0] if model.horizon is None else None
    if solution.reached is not None:
        return StartProof(name, model, _states(view, solution.reached.states(view.model)), values)
    if view.joined is None:
        return StartProof(name, model, None, values)
    sizes = view.model.sizes
    rows = np.arange(view.model.n_states, dtype=np.int64)[:, None]
    states = rows // state_strides(sizes) % np.array(sizes, dtype=np.int64)
    return StartProof(name, model, _states(view, states), values)


def proof_by_search(model: FactoredMDP, view: View, found: Found) -> StartProof | None:
    """States that a search expanded, their upper bounds, and what is irrelevant where.

    None if there are too many of them for a file.
    """
    if found.expanded * len(model.sizes) > MOST_NUMBERS:
        return None
    boxes: dict[Box, None] = {}
    for box in found.proof.relevance.boxes(view.model):
        boxes[_box(view, box)] = None
    values: Floats | None = found.proof.upper
    states = _states(view, found.proof.states)
    return StartProof("search from the start", model, states, values, tuple(boxes))


def _states(view: View, states: Integers) -> Integers:
    found = states if view.joined is None else view.joined.back(states)
    original = view.model if view.joined is None else view.joined.original
    return found.astype(np.uint8 if max(original.sizes) <= 2**8 else np.uint16)


def _box(view: View, box: Box) -> Box:
    """A box of a view's variables as one of the original's."""
    joined = view.joined
    if joined is None:
        return box
    variables: list[int] = []
    values: list[tuple[int, ...]] = []
    for variable, allowed in zip(box.variables, box.values, strict=True):
        for at, member in enumerate(joined.members[variable]):
            column = joined.decoded[variable][list(allowed), at]
            variables.append(member)
            values.append(tuple(np.unique(column).tolist()))
    kept = sorted(member for one in box.kept for member in joined.members[one])
    return Box(tuple(variables), tuple(values), tuple(kept))
