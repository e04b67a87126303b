"""Max-sum: run a schedule on numbers, and read off maximisers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from fsmdp.compiled import compiled, unsigned
from fsmdp.elimination.compiled_schedule import FlatSchedule, Integers, advance, flatten
from fsmdp.elimination.schedule import Schedule
from fsmdp.elimination.slack import slack_of_steps
from fsmdp.model.tables import Floats

PIECE = 5 * 10**7
"""Additions after which a long run looks up."""


@dataclass(frozen=True, slots=True, eq=False)
class Maximum:
    """max_x F_a(x) for every action, with the messages from which maximisers are read."""

    values: Floats  # (n_actions,)
    _max_sum: MaxSum = field(repr=False)
    _buffer: Floats = field(repr=False)

    @property
    def is_exact(self) -> bool:
        """Whether these are maxima, and not bounds on them by mini-buckets."""
        return self._max_sum.schedule.is_exact

    @property
    def entries(self) -> Floats:
        """The numbers that were maximised."""
        return self._buffer[: self._max_sum.schedule.network.n_entries]

    @property
    def messages(self) -> Floats:
        """All messages, in the order of the schedule."""
        return self._buffer[self._max_sum.schedule.network.n_numbers :]

    @property
    def value(self) -> float:
        """The maximum over actions too."""
        return float(self.values.max())

    @property
    def action(self) -> int:
        """The lowest action that attains it."""
        return int(self.values.argmax())

    def state(self, action: int) -> Integers:
        """A state that attains the maximum of one action."""
        return self.states([action]).reshape(-1)

    def states(self, actions: Sequence[int] | Integers | None = None) -> Integers:
        """A maximiser for each of some actions (all of them by default).

        Going back through the steps, each takes its best entry given the variables kept; the
        lowest index wins ties, so a result is reproducible.
        Cost: for each action one entry per value of each variable, times its terms.
        """
        return self._max_sum.states_from(self._buffer, actions)

    def picked(self, actions: Sequence[int] | Integers | None = None) -> sparse.csr_matrix:
        """The entries that add up to the value of each of some actions: `picked @ entries`.

        With exact elimination, those of a maximiser: one of each factor. With mini-buckets, each
        takes its own best value of a variable that they share, and what is taken back of a message
        need not be what is in it. The value is linear in the entries all the same, and for any
        others at least as large as this says.
        """
        return self._max_sum.picked_from(self._buffer, actions)

    def slack(self, action: int) -> Floats:
        """What mini-buckets add to the value of an action, by the variable that they max out."""
        schedule = self._max_sum.schedule
        final = schedule.finals[schedule.network.class_of_action[action]]
        return slack_of_steps(schedule, self._buffer, final, self.state(action))


class MaxSum:
    """The maximum over states of F_a for all actions at once, by elimination.

    A bound on it from above if the schedule has mini-buckets.
    Cost of a call: `schedule.n_terms` additions, and memory for `schedule.n_messages` numbers;
    the tables themselves are never stored whole.
    """

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self._flat: FlatSchedule = flatten(schedule)
        finals = [schedule.steps[step].output for step in schedule.finals]
        network = schedule.network
        self._final_steps = np.array(schedule.finals, dtype=np.int64)[network.class_of_action]
        self._final_offsets = (
            network.n_numbers + np.array(finals, dtype=np.int64)[network.class_of_action]
        )

    def maximise(self, entries: ArrayLike, check: Callable[[], None] | None = None) -> Maximum:
        """The maximum for every action.

        `check` is called now and then while it takes long, and may raise to end it.
        """
        network = self.schedule.network
        buffer = np.empty(network.n_numbers + self.schedule.n_messages)
        buffer[: network.n_entries] = network.checked(entries)
        buffer[network.n_entries : network.n_numbers] = network.fixed
        for first, last in self._pieces if check is not None else [(0, len(self.schedule.steps))]:
            run_steps(self._flat, buffer, first, last)
            if check is not None:
                check()
        return Maximum(buffer[self._final_offsets], self, buffer)

    def possible(self) -> NDArray[np.bool_]:
        """Which messages the constraints leave anything of."""
        nothing = self.maximise(np.zeros(self.schedule.network.n_entries))
        return np.asarray(nothing.messages > -np.inf)

    @cached_property
    def _pieces(self) -> list[tuple[int, int]]:
        """The steps in runs of about a tenth of a second each."""
        work = np.cumsum([step.n_entries * len(step.terms) for step in self.schedule.steps])
        numbers = np.unique(work // PIECE, return_index=True)[1].tolist()
        return list(pairwise([*numbers, len(work)]))

    def states_from(self, buffer: Floats, actions: Sequence[int] | Integers | None) -> Integers:
        """Maximisers from the messages of a run."""
        states, _ = self._traced(buffer, actions, self._nothing)
        return states

    def picked_from(
        self, buffer: Floats, actions: Sequence[int] | Integers | None
    ) -> sparse.csr_matrix:
        """What the messages of a run are made of: rows over the entries of the network."""
        finals = self._finals(actions)
        starts = np.concatenate([[0], np.cumsum(_count_tables(self._flat, finals))])
        _, (columns, values) = self._traced(buffer, actions, starts)
        network = self.schedule.network
        shape = (len(finals), network.n_numbers)
        found = sparse.csr_matrix((values, columns, starts), shape=shape)[:, : network.n_entries]
        found.sum_duplicates()
        found.eliminate_zeros()
        return found

    def _finals(self, actions: Sequence[int] | Integers | None) -> Integers:
        if actions is None:
            return self._final_steps
        return self._final_steps[np.asarray(actions, dtype=np.int64)]

    def _traced(
        self, buffer: Floats, actions: Sequence[int] | Integers | None, starts: Integers
    ) -> tuple[Integers, tuple[Integers, Floats]]:
        finals = self._finals(actions)
        states = np.zeros((len(finals), self.schedule.network.n_variables), dtype=np.int64)
        n_picked = int(starts[-1])
        columns, values = np.empty(n_picked, dtype=np.int64), np.empty(n_picked)
        trace_back(self._flat, buffer, finals, states, starts, columns, values)
        return states, (columns, values)

    @property
    def _nothing(self) -> Integers:
        return np.zeros(1, dtype=np.int64)


@compiled(inner=True)
def scratch(flat: FlatSchedule) -> tuple[Integers, Integers, Integers, Floats]:
    """Room to work in: offsets of a block in each term, bases, digits of an odometer, a block."""
    return (
        np.empty((flat.most_terms, flat.largest_block), dtype=np.uint64),
        np.empty(flat.most_terms, dtype=np.int64),
        np.empty(flat.most_axes, dtype=np.int64),
        np.empty(flat.largest_block),
    )


@compiled()
def run_steps(flat: FlatSchedule, buffer: Floats, first: int, last: int) -> None:
    """Fill in the messages of some steps in turn."""
    offsets, base, digits, table = scratch(flat)
    for step in range(first, last):
        start, inner = flat.axis_start[step], flat.first_inner[step]
        first_term = flat.term_start[step]
        n_terms = flat.term_start[step + 1] - first_term
        n_eliminated = 1
        for axis in range(start + flat.n_kept[step], flat.axis_start[step + 1]):
            n_eliminated *= flat.axis_size[axis]
        n_blocks = 1
        for axis in range(start, inner):
            n_blocks *= flat.axis_size[axis]
            digits[axis - start] = 0
        block = block_offsets(flat, step, inner, offsets)
        for term in range(n_terms):
            base[term] = flat.term_offset[first_term + term]
        for number in range(n_blocks):
            add_terms(flat, first_term, n_terms, base, offsets, block, buffer, table)
            _keep_largest(table, block, number, n_eliminated, flat.output[step], buffer)
            advance(flat, step, start, inner, digits, base)


@compiled(inner=True)
def block_offsets(flat: FlatSchedule, step: int, inner: int, offsets: Integers) -> int:
    """Where each entry of a block lies in each term, from the block's first; its length."""
    start, end = flat.axis_start[step], flat.axis_start[step + 1]
    first_term = flat.term_start[step]
    length = 1
    for term in range(flat.term_start[step + 1] - first_term):
        row = offsets[term]
        row[0] = 0
        length = 1
        strides = flat.stride_start[first_term + term]
        for axis in range(end - 1, inner - 1, -1):
            stride = flat.strides[strides + axis - start]
            for digit in range(1, flat.axis_size[axis]):
                further = unsigned(digit * stride)
                for entry in range(length):
                    row[digit * length + entry] = row[entry] + further
            length *= flat.axis_size[axis]
    return length


@compiled(inner=True)
def add_terms(
    flat: FlatSchedule,
    first_term: int,
    n_terms: int,
    base: Integers,
    offsets: Integers,
    block: int,
    buffer: Floats,
    table: Floats,
) -> None:
    """Sum the terms over one block."""
    table[:block] = 0.0
    for term in range(n_terms):
        origin = unsigned(base[term])
        row = offsets[term]
        if flat.term_sign[first_term + term] > 0:
            for entry in range(block):
                table[entry] += buffer[origin + row[entry]]
        else:
            for entry in range(block):
                table[entry] -= buffer[origin + row[entry]]


@compiled(inner=True)
def _keep_largest(
    table: Floats, block: int, number: int, n_eliminated: int, output: int, buffer: Floats
) -> None:
    """Max a block over the eliminated axes, which are its last."""
    position = number * block
    if block < n_eliminated:
        largest = table[:block].max()
        at = output + position // n_eliminated
        if position % n_eliminated == 0 or largest > buffer[at]:
            buffer[at] = largest
    else:
        at = output + position // n_eliminated
        for first in range(0, block, n_eliminated):
            largest = table[first]
            for entry in range(first + 1, first + n_eliminated):
                largest = max(largest, table[entry])
            buffer[at] = largest
            at += 1


@compiled()
def _count_tables(flat: FlatSchedule, final_steps: Integers) -> Integers:
    """Tables that go into each final step, by whatever way."""
    waiting = np.empty(len(flat.output), dtype=np.int64)
    counts = np.zeros(len(final_steps), dtype=np.int64)
    for row in range(len(final_steps)):
        waiting[0] = final_steps[row]
        n_waiting = 1
        while n_waiting:
            n_waiting -= 1
            step = waiting[n_waiting]
            for term in range(flat.term_start[step], flat.term_start[step + 1]):
                if flat.term_producer[term] >= 0:
                    waiting[n_waiting] = flat.term_producer[term]
                    n_waiting += 1
                else:
                    counts[row] += 1
    return counts


@compiled()
def trace_back(
    flat: FlatSchedule,
    buffer: Floats,
    final_steps: Integers,
    states: Integers,
    starts: Integers,
    columns: Integers,
    values: Floats,
) -> None:
    """Maximising states, from each final step back through the messages it is made of.

    What comes last on the stack comes first off it, so that all that a step depends on is gone
    through before another mini-bucket sets the same variable. Unless `columns` are empty, they and
    `values` are filled with the entries that were picked, from `starts` on.
    """
    offsets, base, digits, table = scratch(flat)
    waiting = np.empty(len(flat.output), dtype=np.int64)
    for row in range(len(final_steps)):
        waiting[0] = final_steps[row]
        n_waiting = 1
        at = starts[row] if len(columns) else 0
        while n_waiting:
            n_waiting -= 1
            step = waiting[n_waiting]
            _choose(flat, step, buffer, states[row], offsets, base, digits, table)
            start, end = flat.axis_start[step], flat.axis_start[step + 1]
            for term in range(flat.term_start[step], flat.term_start[step + 1]):
                if flat.term_producer[term] >= 0:
                    waiting[n_waiting] = flat.term_producer[term]
                    n_waiting += 1
                elif len(columns):
                    position = flat.term_offset[term]
                    for axis in range(start, end):
                        stride = flat.strides[flat.stride_start[term] + axis - start]
                        position += stride * states[row, flat.axis_variable[axis]]
                    columns[at] = position
                    values[at] = flat.term_sign[term]
                    at += 1


@compiled(inner=True)
def _choose(
    flat: FlatSchedule,
    step: int,
    buffer: Floats,
    state: Integers,
    offsets: Integers,
    base: Integers,
    digits: Integers,
    table: Floats,
) -> None:
    """Set a step's eliminated variables to their best values, given those it keeps."""
    first = flat.axis_start[step] + flat.n_kept[step]
    first_term = flat.term_start[step]
    n_terms = flat.term_start[step + 1] - first_term
    inner = max(first, flat.first_inner[step])
    n_blocks = begin_blocks(flat, step, state, base, digits)
    block = block_offsets(flat, step, inner, offsets)
    best_value = -np.inf
    best = 0
    for number in range(n_blocks):
        add_terms(flat, first_term, n_terms, base, offsets, block, buffer, table)
        for entry in range(block):
            if table[entry] > best_value:
                best_value = table[entry]
                best = number * block + entry
        advance(flat, step, first, inner, digits, base)
    write_entry(flat, step, best, state)


@compiled(inner=True)
def begin_blocks(
    flat: FlatSchedule, step: int, state: Integers, base: Integers, digits: Integers
) -> int:
    """Number of blocks of a step; places its terms at the first, given the variables it keeps."""
    start = flat.axis_start[step]
    first = start + flat.n_kept[step]
    first_term = flat.term_start[step]
    for term in range(flat.term_start[step + 1] - first_term):
        base[term] = flat.term_offset[first_term + term]
        strides = flat.stride_start[first_term + term]
        for axis in range(start, first):
            base[term] += flat.strides[strides + axis - start] * state[flat.axis_variable[axis]]
    n_blocks = 1
    for axis in range(first, max(first, flat.first_inner[step])):
        n_blocks *= flat.axis_size[axis]
        digits[axis - start] = 0
    return n_blocks


@compiled(inner=True)
def write_entry(flat: FlatSchedule, step: int, entry: int, state: Integers) -> None:
    """Set a step's eliminated variables to the values that an entry stands for."""
    first = flat.axis_start[step] + flat.n_kept[step]
    for axis in range(flat.axis_start[step + 1] - 1, first - 1, -1):
        state[flat.axis_variable[axis]] = entry % flat.axis_size[axis]
        entry //= flat.axis_size[axis]
