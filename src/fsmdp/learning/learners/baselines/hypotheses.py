"""A finite class of value functions: the optimum of every model whose chances lie on a grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import as_whole, check_size
from fsmdp.learning.cells.known import known_reward_means
from fsmdp.learning.cells.layout import cell_lookup
from fsmdp.learning.learners.baselines.product import fill_cells, one_for_each_variable
from fsmdp.learning.learners.baselines.states import ENTRY_LIMIT, all_states, count_states
from fsmdp.model.basis import Basis
from fsmdp.model.cases import Cases
from fsmdp.model.lookup import Integers
from fsmdp.model.rewards import Reward
from fsmdp.model.structure import Structure
from fsmdp.model.tables import Floats
from fsmdp.model.variables import Scope

MOST_HYPOTHESES = 2**12
MOST_LEVELS = 1000


def grid_values(structure: Structure, known: Sequence[Reward] | None, levels: int) -> Floats:
    """Q* of every model that draws each variable by itself, with chances k / (levels - 1).

    Shape (n_hypotheses, horizon, n_actions, n_states). A cell of a variable of size v has
    binomial(levels + v - 2, v - 1) distributions, and the class one model for each choice in all
    cells: the number grows exponentially with the cells, and too many are refused.
    Cost: hypotheses horizon |states|^2 |actions|.
    """
    steps = as_whole(levels, "levels", 2, MOST_LEVELS) - 1
    n_states = count_states("OLIVE", structure, ENTRY_LIMIT)
    functions = one_for_each_variable(structure, "OLIVE")
    nothing: Cases[Scope] = Cases(((),))
    counted = replace(
        structure,
        basis=Basis([table for table, _ in functions]),
        parents=(nothing, *(parents for _, parents in functions)),
        contexts=(),
    )
    is_known, means = known_reward_means(counted, known)
    if not is_known.all():
        raise ModelError(
            "OLIVE: hypotheses are made for known rewards, and some terms are not known; give "
            "known_rewards=model.rewards."
        )
    sizes = [variable.size for variable in structure.variables]
    grids = [_simplex_grid(size, steps) for size in sizes]
    n_cells = [counted.cells_of(number + 1) for number in range(len(sizes))]
    count = 1
    for grid, cells in zip(grids, n_cells, strict=True):
        count *= len(grid) ** cells
    check_size(
        count,
        MOST_HYPOTHESES,
        f"OLIVE: {sum(n_cells)} cells with {levels} levels are",
        "use fewer levels or a smaller model; UCRLFactored and PSRLFactored count in the cells and "
        "list no hypotheses",
        unit="hypotheses",
    )
    check_size(
        count * n_states**2 * len(structure.actions),
        ENTRY_LIMIT,
        f"OLIVE: transitions of {count} hypotheses are",
        "use fewer levels or a smaller model",
    )
    lookup = cell_lookup(counted)
    n_actions, n_terms = len(structure.actions), len(structure.rewards)
    at = np.zeros((n_actions, n_states, n_terms + 1 + len(sizes)), dtype=np.int64)
    states = all_states(structure)
    fill_cells(lookup, states, at)
    rewards = means[at[:, :, :n_terms]].sum(axis=2)
    first = len(means) + 1  # after the cells of rewards and of the constant
    choices = [grid for grid, cells in zip(grids, n_cells, strict=True) for _ in range(cells)]
    transitions = _transitions(choices, at[:, :, n_terms + 1 :] - first, states)
    assert structure.horizon is not None
    found = np.zeros((count, structure.horizon, n_actions, n_states))
    following = np.zeros((count, n_states))
    for step in reversed(range(structure.horizon)):
        means = np.einsum("asnt,nt->nas", transitions, following)
        found[:, step] = rewards + structure.discount * means
        following = found[:, step].max(axis=1)
    return found


def _simplex_grid(size: int, steps: int) -> Floats:
    """All distributions over `size` values whose chances are multiples of 1 / steps."""
    counts = (one for one in product(range(steps + 1), repeat=size - 1) if sum(one) <= steps)
    return np.array([[*one, steps - sum(one)] for one in counts]) / steps


def _transitions(choices: Sequence[Floats], cells: Integers, states: Integers) -> Floats:
    """P(s' | s, a) as a product over variables, for every choice of a distribution a cell.

    Shape (n_actions, n_states, n_hypotheses, n_states).
    """
    shape = tuple(map(len, choices))
    chosen = np.indices(shape).reshape(len(shape), -1)  # (n_cells, n_hypotheses)
    width = max(grid.shape[1] for grid in choices)
    rows = np.array(
        [
            np.pad(grid, ((0, 0), (0, width - grid.shape[1])))[which]
            for grid, which in zip(choices, chosen, strict=True)
        ]
    )  # (n_cells, n_hypotheses, width)
    found = np.ones((*cells.shape[:2], chosen.shape[1], len(states)))
    for variable in range(cells.shape[2]):
        found *= rows[cells[:, :, variable]][..., states[:, variable]]
    return found
