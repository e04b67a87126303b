"""Assignments that constraints allow, drawn so that each is as likely as any other: compiled."""

from __future__ import annotations

import numpy as np

from fsmdp.compiled import compiled
from fsmdp.elimination.compiled_schedule import FlatSchedule, advance
from fsmdp.elimination.max_sum import add_terms, begin_blocks, block_offsets, scratch, write_entry
from fsmdp.elimination.network import Network
from fsmdp.elimination.schedule import Schedule
from fsmdp.model.tables import Floats, Integers


def log_counts(schedule: Schedule, flat: FlatSchedule) -> Floats:
    """Logarithms of the number of allowed assignments, as entries, fixed numbers and messages.

    message(kept) = log of the sum over eliminated of exp(sum of terms); entries are 0.
    """
    network: Network = schedule.network
    buffer = np.zeros(network.n_numbers + schedule.n_messages)
    buffer[network.n_entries : network.n_numbers] = network.fixed
    count_assignments(flat, buffer)
    return buffer


@compiled()
def count_assignments(flat: FlatSchedule, buffer: Floats) -> None:
    """Fill in the messages: the logarithm of how many assignments what is before them allows."""
    offsets, base, digits, table = scratch(flat)
    for step in range(len(flat.output)):
        start, inner = flat.axis_start[step], flat.first_inner[step]
        first_term = flat.term_start[step]
        n_terms = flat.term_start[step + 1] - first_term
        n_eliminated, n_kept = 1, 1
        for axis in range(start, flat.axis_start[step + 1]):
            if axis < start + flat.n_kept[step]:
                n_kept *= flat.axis_size[axis]
            else:
                n_eliminated *= flat.axis_size[axis]
        n_blocks = 1
        for axis in range(start, inner):
            n_blocks *= flat.axis_size[axis]
            digits[axis - start] = 0
        for at in range(n_kept):
            buffer[flat.output[step] + at] = -np.inf
        block = block_offsets(flat, step, inner, offsets)
        for term in range(n_terms):
            base[term] = flat.term_offset[first_term + term]
        for number in range(n_blocks):
            add_terms(flat, first_term, n_terms, base, offsets, block, buffer, table)
            for entry in range(block):
                at = flat.output[step] + (number * block + entry) // n_eliminated
                buffer[at] = _log_sum(buffer[at], table[entry])
            advance(flat, step, start, inner, digits, base)


@compiled(inline="always")
def _log_sum(one: float, other: float) -> float:
    """log(exp(one) + exp(other))."""
    high, low = max(one, other), min(one, other)
    if low == -np.inf:
        return high
    return high + np.log1p(np.exp(low - high))  # type: ignore[no-any-return]


@compiled(inner=True)
def draw_assignment(
    flat: FlatSchedule, buffer: Floats, assignment: Integers, rng: np.random.Generator
) -> None:
    """Back through the steps of one sum, each variable as likely as what follows has ways."""
    offsets, base, digits, table = scratch(flat)
    for step in range(len(flat.output) - 1, -1, -1):
        start = flat.axis_start[step]
        first = start + flat.n_kept[step]
        first_term = flat.term_start[step]
        n_terms = flat.term_start[step + 1] - first_term
        at = flat.output[step]
        stride = 1
        for axis in range(first - 1, start - 1, -1):
            at += assignment[flat.axis_variable[axis]] * stride
            stride *= flat.axis_size[axis]
        inner = max(first, flat.first_inner[step])
        n_blocks = begin_blocks(flat, step, assignment, base, digits)
        block = block_offsets(flat, step, inner, offsets)
        left = rng.random()
        chosen = -1
        for number in range(n_blocks):
            add_terms(flat, first_term, n_terms, base, offsets, block, buffer, table)
            for entry in range(block):
                # The last one that is allowed stands in for what rounding leaves over.
                if left >= 0.0 and table[entry] > -np.inf:
                    chosen = number * block + entry
                    left -= np.exp(table[entry] - buffer[at])
            advance(flat, step, first, inner, digits, base)
        write_entry(flat, step, chosen, assignment)
