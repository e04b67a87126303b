"""The compiled kernel that counts an episode and logs what a plan said along it."""

from typing import NamedTuple

import numpy as np

from fsmdp.compiled import compiled
from fsmdp.learning.cells.layout import CellLayout
from fsmdp.learning.cells.statistics import Statistics
from fsmdp.model.lookup import deselect, locate, select
from fsmdp.model.tables import Booleans, Floats, Integers
from fsmdp.simulation.simulate import Record


class Counts(NamedTuple):
    """The arrays of `Statistics`, as compiled code takes them."""

    visits: Integers
    outcomes: Integers
    reward_sums: Floats
    starts: Integers


def counts_of(statistics: Statistics) -> Counts:
    """The arrays to count into."""
    return Counts(
        statistics.visits,
        statistics.outcomes,
        statistics.reward_sums,
        statistics.starts,
    )


class PlannedValues(NamedTuple):
    """What a plan said: V_l(s) is a sum of `values`, the backup Q_l(s, a) a sum of `q`, and its
    uncertainty a sum of `widths`, one for each cell visited (where the look-up finds it: several
    of its numbers may share a cell). Index l belongs to step l + 1. Values that are no such sum
    have a table: the number of `start_values` at `start_strides` times s is added to V_1(s).
    """

    values: Floats  # (horizon, values of all scopes)
    q: Floats  # (horizon, n_entries)
    widths: Floats  # (horizon, n_entries)
    replan_at: Integers  # (n_cells,) visits from which a new plan is due
    start_values: Floats = np.zeros(1)  # (n_states,), or one number for all
    start_strides: Integers = np.zeros(0, dtype=np.int64)  # (n_variables,), or none


class Logs(NamedTuple):
    """One number per episode."""

    returns: Floats
    optimistic_values: Floats  # V_1(s_1)
    slacks: Floats  # sum over steps of V_l(s_l) - Q_l(s_l, a_l)
    widths: Floats  # sum over steps of the uncertainty of Q_l(s_l, a_l)


@compiled()
def count_episode(
    layout: CellLayout,
    said: PlannedValues,
    counts: Counts,
    term_known: Booleans,
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
    values, q, widths, replan_at, start_values, start_strides = said
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
                counts.reward_sums[cell] += record.rewards[0, step, term]
        for function in range(n_functions):
            entry = locate(lookup, tables[n_terms + function], state)
            cell = layout.cell_of[entry]
            visits[cell] += 1
            grown |= visits[cell] >= replan_at[cell]
            total += q[step, entry]
            width += widths[step, entry]
            value += values[step, value_start[function] + locate_value(layout, function, state)]
            if layout.is_counting[function]:
                seen = locate_value(layout, function, following)
                outcomes[outcome_start[cell - n_reward_cells] + seen] += 1
        deselect(lookup, action, tables)
        slack += value - total
        if step == 0:
            at = 0
            for variable in range(len(start_strides)):
                at += state[variable] * start_strides[variable]
            first_value = value + start_values[at]
    logs.optimistic_values[episode] = first_value
    logs.slacks[episode] = slack
    logs.widths[episode] = width
    return grown


@compiled(inline="always")
def episode_of(record: Record, at: int) -> Record:
    """One of the episodes that were written down; a view."""
    return Record(
        record.states[at : at + 1],
        record.actions[at : at + 1],
        record.rewards[at : at + 1],
        record.lengths[at : at + 1],
    )


@compiled()
def count_episodes(
    layout: CellLayout,
    counts: Counts,
    term_known: Booleans,
    record: Record,
    lengths: Integers,
) -> None:
    """Count recorded episodes of these lengths, with nothing planned."""
    steps, n_entries = record.actions.shape[1], len(layout.cell_of)
    said = PlannedValues(
        np.zeros((steps, layout.value_start[-1])),
        np.zeros((steps, n_entries)),
        np.zeros((steps, n_entries)),
        np.zeros(len(counts.visits), dtype=np.int64),
        np.zeros(1),
        np.zeros(0, dtype=np.int64),
    )
    nothing = np.zeros(1)
    logs = Logs(nothing, nothing, nothing, nothing)
    tables = layout.lookup.defaults.copy()
    for episode in range(len(lengths)):
        one = episode_of(record, episode)
        count_episode(layout, said, counts, term_known, tables, one, lengths[episode], logs, 0)


@compiled(inline="always")
def locate_value(layout: CellLayout, function: int, state: np.ndarray) -> int:
    """Which of the values of a function's scope a state shows."""
    at = 0
    for i in range(layout.scope_start[function], layout.scope_start[function + 1]):
        at += state[layout.scope_slot[i]] * layout.scope_stride[i]
    return at


@compiled(inline="always")
def count_start(layout: CellLayout, state: np.ndarray, starts: Integers) -> None:
    """Count the first state of an episode."""
    for function in range(len(layout.value_start) - 1):
        starts[layout.value_start[function] + locate_value(layout, function, state)] += 1
