"""Where a bound is loose: functions whose means the optimal dual does not conserve.

The dual of the joint program is an occupation measure: it conserves the means of every function of
the basis from one step to the next, and need not be one of any policy, because it conserves no
others. The slope of the bound in the weight of a further function h is, in block b,

    [b is first] E[h at the start] - sum over cuts of block b of measure * h(s)
        + discount * sum over cuts followed by b of measure * E[h(s') | s, a],

which is 0 for functions of the basis. Same inequalities and more columns: the bound only falls.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fsmdp.model.basis import Basis
from fsmdp.model.cases import Cases
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.tables import Floats, Table
from fsmdp.planning.bellman import state_means
from fsmdp.planning.blocks import Blocks
from fsmdp.planning.inequalities import Cuts, States


def slopes(
    model: FactoredMDP,
    basis: Basis,
    blocks: Blocks,
    cuts: Cuts,
    measure: Floats,
    check: Callable[[], None] | None = None,
) -> Floats:
    """How fast the bound falls with the weight of each function in each block, up to sign.

    (n_blocks, n_functions). Cost: the marginals of the functions, and a pass over the cuts for
    each.
    """
    marginals = model.marginals(basis, check)
    held = measure > 1e-9 * measure.max(initial=0.0)
    steps, actions = cuts.steps[held], cuts.actions[held]
    columns = np.ascontiguousarray(cuts.states[held].T)  # each is read many times
    weight = measure[held]
    links = blocks.links
    own = np.array([links[k].own for k in steps], dtype=np.int64)
    after = np.array([-1 if (b := links[k].after) is None else b for k in steps], dtype=np.int64)
    found = np.zeros((blocks.n_blocks + 1, len(marginals.basis)))  # the last is after the end
    for j, (table, cases) in enumerate(
        zip(marginals.basis, marginals.backprojections(), strict=True)
    ):
        np.add.at(found[:, j], own, -weight * _at(table, columns))
        means = _next_means(cases, columns, actions, model.dynamics.n_actions)
        np.add.at(found[:, j], after, model.discount * weight * means)
    found = found[:-1]
    found[0] += state_means("initial", marginals.basis, model)
    return found


def _at(table: Table, columns: States) -> Floats:
    found = table.values[tuple(columns[p] for p in table.scope)]
    return np.broadcast_to(found, columns.shape[1:])


def _next_means(cases: Cases[Table], columns: States, actions: States, n_actions: int) -> Floats:
    """E[h(s') | s, a] of each pair."""
    found = np.array(_at(cases.groups[0], columns))
    group_of = np.zeros(n_actions, dtype=np.int64)
    group_of[[*cases.exceptions]] = [*cases.exceptions.values()]
    group = group_of[actions]
    for number in np.unique(group):
        if number > 0:
            rows = np.flatnonzero(group == number)
            table = cases.groups[number]
            found[rows] = table.values[tuple(columns[p, rows] for p in table.scope)]
    return found
