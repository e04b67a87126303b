"""Schedules as linear inequalities: elimination inside a linear program."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fsmdp.compiled import compiled
from fsmdp.elimination.compiled_schedule import FlatSchedule, Integers, advance, flatten
from fsmdp.elimination.max_sum import MaxSum
from fsmdp.elimination.schedule import Schedule
from fsmdp.model.tables import Floats

if TYPE_CHECKING:
    from scipy import sparse


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """messages @ u >= gather @ entries for some free u, exactly when no F_a exceeds zero.

    A step m(kept) = max over e of sum of terms(kept, e) becomes one row for each (kept, e):
    m(kept) >= sum of terms. A final step has 0 in place of its message. Messages only bound
    from above and only ever stand with a plus sign on the right, so the smallest feasible ones
    are the true maxima.
    """

    gather: sparse.csr_matrix = field(repr=False)  # (n_rows, n_entries)
    messages: sparse.csr_matrix = field(repr=False)  # (n_rows, n_messages)
    n_entries: int  # of all tables of the schedule: as many rows as without constraints
    kept: Integers | None = field(default=None, repr=False)  # those that have a row; None: all

    @property
    def n_rows(self) -> int:
        """Number of inequalities."""
        return int(self.gather.shape[0])

    def spread(self, numbers: Floats) -> Floats:
        """Numbers by row as numbers by entry of the schedule's tables, 0 where there is no row."""
        if self.kept is None:
            return numbers
        found = np.zeros(self.n_entries)
        found[self.kept] = numbers
        return found

    @property
    def n_messages(self) -> int:
        """Number of variables that stand for messages."""
        return int(self.messages.shape[1])


def lp_rows(schedule: Schedule) -> Rows:
    """The rows of a schedule, `schedule.n_rows` of them, or fewer if it has constraints.

    Cost: one non-zero for each term of each row, and one for its message.
    Source: Guestrin, Koller, Parr and Venkataraman, Efficient solution algorithms for factored
    MDPs (2003), section 4.1.
    """
    from scipy import sparse

    flat = flatten(schedule)
    n_numbers = schedule.network.n_numbers
    tables, received, sent = [], [], []
    for step in schedule.steps:
        tables.append(sum(term.producer < 0 for term in step.terms))
        received.append(len(step.terms) - tables[-1])
        sent.append(int(not step.is_final))
    rows_of_step = np.array([step.n_entries for step in schedule.steps])
    gather_start = _starts(np.repeat(tables, rows_of_step))
    message_start = _starts(np.repeat(np.add(received, sent), rows_of_step))
    gather_columns = np.empty(gather_start[-1], dtype=np.int64)
    gather_values = np.empty(gather_start[-1])
    message_columns = np.empty(message_start[-1], dtype=np.int64)
    message_values = np.empty(message_start[-1])
    _fill(flat, gather_columns, gather_values, message_columns, message_values)
    # Final messages are the zeros on the left: their columns are empty and are left out.
    used = np.ones(schedule.n_messages, dtype=np.bool_)
    used[[schedule.steps[step].output for step in schedule.finals]] = False
    number = np.cumsum(used) - 1
    n_rows = schedule.n_rows
    gather = sparse.csr_matrix(
        (gather_values, gather_columns, gather_start), shape=(n_rows, n_numbers)
    )
    messages = sparse.csr_matrix(
        (message_values, number[message_columns - n_numbers], message_start),
        shape=(n_rows, int(used.sum())),
    )
    kept = None
    if len(schedule.network.fixed):
        gather, messages, kept = _possible(schedule, gather, messages, used)
    gather.sort_indices()
    messages.sort_indices()
    return Rows(gather, messages, n_rows, kept)


def _possible(
    schedule: Schedule,
    gather: sparse.csr_matrix,
    messages: sparse.csr_matrix,
    used: NDArray[np.bool_],
) -> tuple[sparse.csr_matrix, sparse.csr_matrix, Integers]:
    """Rows without those of assignments that constraints do not allow, and without their messages.

    Such a row would say that a message is at least minus infinity.
    """
    network = schedule.network
    ruled_out = np.isneginf(network.fixed).astype(np.float64)
    dead = ~MaxSum(schedule).possible()[used]
    is_ruled_out = (gather[:, network.n_entries :] @ ruled_out) > 0
    is_ruled_out |= (abs(messages) @ dead.astype(np.float64)) > 0
    kept = np.flatnonzero(~is_ruled_out)
    gather = gather[kept][:, : network.n_entries]
    return gather, messages[kept][:, np.flatnonzero(~dead)], kept


def _starts(counts: Integers) -> Integers:
    return np.concatenate([[0], np.cumsum(counts)])


@compiled()
def _fill(
    flat: FlatSchedule,
    gather_columns: Integers,
    gather_values: Floats,
    message_columns: Integers,
    message_values: Floats,
) -> None:
    """Columns and values row by row; an odometer over the axes of each step keeps the columns."""
    position = np.empty(flat.most_terms, dtype=np.int64)
    digits = np.empty(flat.most_axes, dtype=np.int64)
    n_tables = 0
    n_messages = 0
    for step in range(len(flat.output)):
        start, end = flat.axis_start[step], flat.axis_start[step + 1]
        first_term = flat.term_start[step]
        n_terms = flat.term_start[step + 1] - first_term
        n_rows = 1
        n_eliminated = 1
        for axis in range(start, end):
            digits[axis - start] = 0
            n_rows *= flat.axis_size[axis]
            if axis >= start + flat.n_kept[step]:
                n_eliminated *= flat.axis_size[axis]
        for term in range(n_terms):
            position[term] = flat.term_offset[first_term + term]
        for row in range(n_rows):
            if not flat.is_final[step]:
                message_columns[n_messages] = flat.output[step] + row // n_eliminated
                message_values[n_messages] = 1.0
                n_messages += 1
            for term in range(n_terms):
                if flat.term_producer[first_term + term] < 0:
                    gather_columns[n_tables] = position[term]
                    gather_values[n_tables] = flat.term_sign[first_term + term]
                    n_tables += 1
                else:
                    message_columns[n_messages] = position[term]
                    message_values[n_messages] = -1.0
                    n_messages += 1
            advance(flat, step, start, end, digits, position)


def sample(
    schedule: Schedule,
    flat: FlatSchedule,
    duals: Floats,
    count: int,
    rng: np.random.Generator,
) -> tuple[Integers, Integers]:
    """States (count, n_variables) and actions (count,), in proportion to the duals of the rows.

    Cost: for each sample a pass over the steps that its action is made of.
    """
    starts = np.concatenate([[0], np.cumsum([step.n_entries for step in schedule.steps])])
    finals = np.array(schedule.finals, dtype=np.int64)
    mass = np.array([duals[starts[step] : starts[step + 1]].sum() for step in finals])
    chosen = rng.choice(len(finals), size=count, p=mass / mass.sum())
    # The first action of a class stands for all: they differ in nothing here.
    first = np.array([int(np.argmax(schedule.network.class_of_action == k)) for k in chosen])
    states = np.zeros((count, schedule.network.n_variables), dtype=np.int64)
    uniforms = rng.random((count, 1 + schedule.network.n_variables))
    _draw(flat, starts, duals, finals[chosen], uniforms, states)
    return states, first


@compiled()
def _draw(
    flat: FlatSchedule,
    starts: Integers,
    duals: Floats,
    final_steps: Integers,
    uniforms: Floats,
    states: Integers,
) -> None:
    waiting = np.empty(len(flat.output), dtype=np.int64)
    for row in range(len(final_steps)):
        waiting[0] = final_steps[row]
        n_waiting = 1
        used = 0
        while n_waiting:
            n_waiting -= 1
            step = waiting[n_waiting]
            start, end = flat.axis_start[step], flat.axis_start[step + 1]
            first = start + flat.n_kept[step]
            at = 0
            for axis in range(start, first):
                at = at * flat.axis_size[axis] + states[row, flat.axis_variable[axis]]
            size = 1
            for axis in range(first, end):
                size *= flat.axis_size[axis]
            begin = starts[step] + at * size
            total = 0.0
            for entry in range(size):
                total += duals[begin + entry]
            wanted = uniforms[row, used % uniforms.shape[1]] * total
            used += 1
            picked = 0
            while picked < size - 1 and wanted >= duals[begin + picked]:
                wanted -= duals[begin + picked]
                picked += 1
            for axis in range(end - 1, first - 1, -1):
                states[row, flat.axis_variable[axis]] = picked % flat.axis_size[axis]
                picked //= flat.axis_size[axis]
            for term in range(flat.term_start[step], flat.term_start[step + 1]):
                if flat.term_producer[term] >= 0:
                    waiting[n_waiting] = flat.term_producer[term]
                    n_waiting += 1
