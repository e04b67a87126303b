"""What a learner follows between two replans, and the compiled loop that follows it and counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from fsmdp.compiled import compiled
from fsmdp.errors import ModelError
from fsmdp.foundation.checks import show
from fsmdp.learning.layout import CellLayout, Cells
from fsmdp.learning.options import check_structure
from fsmdp.learning.statistics import Statistics, count_start, locate_value
from fsmdp.model.lookup import Integers, deselect, locate, select
from fsmdp.model.structure import Structure
from fsmdp.model.tables import Floats
from fsmdp.simulation.compiled import CompiledModel
from fsmdp.simulation.policies import CompiledPolicy, check_policy
from fsmdp.simulation.simulate import Record, simulate


class Acting(NamedTuple):
    """A policy, and the numbers behind it that are logged along the trajectory.

    V_l(s) is a sum of `values`, the backup Q_l(s, a) a sum of `q`, and its uncertainty a sum of
    `widths`, one number for each cell met. Row l belongs to step l + 1.
    """

    policy: CompiledPolicy
    values: Floats  # (horizon, values of all scopes)
    q: Floats  # (horizon, n_cells)
    widths: Floats  # (horizon, n_cells)
    replan_at: Integers  # (n_cells,) visits from which a new plan is due


@dataclass(frozen=True, slots=True, eq=False)
class Planned:
    """What a replan found: how to act, and how the plan came about."""

    acting: Acting
    lift: float  # added to V_1 so that it is feasible for certain
    w_norm: float  # largest sum_j |w_j| over the steps


class Learner(Protocol):
    """What `learn` needs: it simulates and counts, the learner plans from what was counted."""

    structure: Structure
    cells: Cells
    statistics: Statistics
    term_known: NDArray[np.bool_]
    heuristic: bool
    name: str

    def describe(self) -> str:
        """The options that matter."""
        ...

    def replan(self) -> Planned:
        """A new policy from the statistics as they are."""
        ...

    def state(self) -> dict[str, np.ndarray]:
        """Everything besides the statistics on which the next plan depends, as plain arrays."""
        ...

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Take a state back."""
        ...


def check_learner(learner: object) -> None:
    """Refuse what is no learner, and one whose statistics are of other cells."""
    missing = [name for name in _LEARNER if not hasattr(learner, name)]
    if missing or isinstance(learner, type):
        what = f"{show(learner)}, which has no {missing[0]}" if missing else f"the class {learner}"
        raise ModelError(
            f"learn: expected a learner, such as UCRLFactored(structure), found {what}; make one."
        )
    known: Learner = learner  # type: ignore[assignment]
    if not isinstance(known.cells, Cells) or not isinstance(known.statistics, Statistics):
        raise ModelError(
            f"learn: expected a learner with Cells and Statistics, found {show(known.cells)} and "
            f"{show(known.statistics)}; make them with cells_of(...) and Statistics.empty(cells)."
        )
    check_structure(f"learn: {known.name}", known.structure)
    known.statistics.check_fit(known.cells)
    n_terms = known.cells.layout.n_terms
    if getattr(known.term_known, "shape", None) != (n_terms,) or known.term_known.dtype != bool:
        raise ModelError(
            f"learn: {known.name}.term_known is {show(known.term_known)}, expected {n_terms} truth "
            "values, one for each reward term; give an array."
        )


def check_planned(planned: object, learner: Learner) -> Planned:
    """Refuse a plan that would lead compiled code out of its arrays."""
    where = f"{learner.name}.replan"
    if not isinstance(planned, Planned) or not isinstance(planned.acting, Acting):
        raise ModelError(f"{where}: expected a Planned with an Acting, found {show(planned)}.")
    structure, layout = learner.structure, learner.cells.layout
    acting, policy = planned.acting, planned.acting.policy
    n_cells, horizon = len(learner.statistics.visits), structure.horizon
    for name, array, shape, kind in (
        ("values", acting.values, (horizon, int(layout.value_start[-1])), np.float64),
        ("q", acting.q, (horizon, n_cells), np.float64),
        ("widths", acting.widths, (horizon, n_cells), np.float64),
        ("replan_at", acting.replan_at, (n_cells,), np.int64),
    ):
        found = np.asarray(array)
        if found.shape != shape or found.dtype != kind:
            raise ModelError(
                f"{where}: {name} holds {found.dtype} numbers of shape {found.shape}, expected "
                f"{np.dtype(kind)} of shape {shape}; lay it out by cells.layout."
            )
    sizes = [variable.size for variable in structure.variables]
    try:
        check_policy(policy, sizes, len(structure.actions))
    except ValueError as error:
        raise ModelError(f"{where}: {error}; make it with policy_arrays.") from None
    return planned


_LEARNER = (
    "structure",
    "cells",
    "statistics",
    "term_known",
    "heuristic",
    "name",
    "describe",
    "replan",
    "state",
    "restore",
)


class Counts(NamedTuple):
    """The arrays of `Statistics`, as compiled code takes them."""

    visits: Integers
    outcomes: Integers
    reward_sums: Floats
    reward_squares: Floats
    starts: Integers


def counts_of(statistics: Statistics) -> Counts:
    """The arrays to count into."""
    return Counts(
        statistics.visits,
        statistics.outcomes,
        statistics.reward_sums,
        statistics.reward_squares,
        statistics.starts,
    )


class Logs(NamedTuple):
    """One number per episode."""

    returns: Floats
    optimistic_values: Floats  # V_1(s_1)
    slacks: Floats  # sum over steps of V_l(s_l) - Q_l(s_l, a_l), which is max_a Q_l
    widths: Floats  # sum over steps of the uncertainty of Q_l(s_l, a_l)


@compiled()
def count_episode(
    layout: CellLayout,
    values: Floats,
    q: Floats,
    widths: Floats,
    replan_at: Integers,
    counts: Counts,
    term_known: NDArray[np.bool_],
    tables: Integers,
    record: Record,
    steps: int,
    logs: Logs,
    episode: int,
) -> bool:
    """Count the recorded episode and log it; True if some cell has grown enough to plan anew.

    `tables` holds the defaults of the look-up. Cost: two look-ups for each function and step.
    """
    lookup, n_terms, n_reward_cells = layout.lookup, layout.n_terms, layout.n_reward_cells
    visits, outcomes = counts.visits, counts.outcomes
    value_start, outcome_start = layout.value_start, layout.outcome_start
    n_functions = len(value_start) - 1
    grown = False
    count_start(layout, record.states[0, 0], counts.starts)
    slack, width, first_value = 0.0, 0.0, 0.0
    for step in range(steps):
        action = record.actions[0, step]
        state, following = record.states[0, step], record.states[0, step + 1]
        select(lookup, action, tables)
        value, total = 0.0, 0.0
        for term in range(n_terms):
            cell = locate(lookup, tables[term], state)
            visits[cell] += 1
            grown |= (not term_known[term]) and visits[cell] >= replan_at[cell]
            total += q[step, cell]
            width += widths[step, cell]
            if not term_known[term]:
                reward = record.rewards[0, step, term]
                counts.reward_sums[cell] += reward
                counts.reward_squares[cell] += reward * reward
        for function in range(n_functions):
            cell = locate(lookup, tables[n_terms + function], state)
            visits[cell] += 1
            grown |= function > 0 and visits[cell] >= replan_at[cell]
            total += q[step, cell]
            width += widths[step, cell]
            value += values[step, value_start[function] + locate_value(layout, function, state)]
            seen = locate_value(layout, function, following)
            outcomes[outcome_start[cell - n_reward_cells] + seen] += 1
        deselect(lookup, action, tables)
        slack += value - total
        if step == 0:
            first_value = value
    logs.optimistic_values[episode] = first_value
    logs.slacks[episode] = slack
    logs.widths[episode] = width
    return grown


@compiled()
def run_until_grown(
    model: CompiledModel,
    rng: np.random.Generator,
    discount: float,
    steps: int,
    layout: CellLayout,
    policy: CompiledPolicy,
    values: Floats,
    q: Floats,
    widths: Floats,
    replan_at: Integers,
    counts: Counts,
    term_known: NDArray[np.bool_],
    slots: Integers,
    record: Record,
    logs: Logs,
    first: int,
    last: int,
) -> tuple[int, bool]:
    """Simulate, count and log episodes first, first + 1, ... until a plan is due or `last` comes.

    Returns the number of the episode that comes next, and whether a plan is due before it.
    """
    tables = layout.lookup.defaults.copy()
    episode = first
    grown = False
    while episode < last and not grown:
        returns = logs.returns[episode : episode + 1]
        simulate(model, policy, rng, discount, True, 0, steps, slots, returns, record)
        grown = count_episode(
            layout,
            values,
            q,
            widths,
            replan_at,
            counts,
            term_known,
            tables,
            record,
            steps,
            logs,
            episode,
        )
        episode += 1
    return episode, grown
