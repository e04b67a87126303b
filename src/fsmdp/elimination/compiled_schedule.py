"""Schedules as flat arrays of offsets and strides, for compiled code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fsmdp.compiled import compiled
from fsmdp.elimination.schedule import Schedule
from fsmdp.model.variables import Scope

Integers = NDArray[np.int64]

BLOCK = 1024
"""A large table is worked through in blocks of about this many entries, so none is ever whole."""


class FlatSchedule(NamedTuple):
    """The steps of a schedule; the axes of a step are the kept variables, then the eliminated.

    Step s has axes axis_start[s] : axis_start[s + 1], terms term_start[s] : term_start[s + 1].
    Offsets count in one buffer: all entries of the network and the numbers of
    its constraints, then all messages. The strides of
    a term follow one another, one for each axis of its step, from stride_start.
    """

    axis_start: Integers  # (n_steps + 1,)
    n_kept: Integers  # (n_steps,) kept axes come first
    first_inner: Integers  # (n_steps,) axes from here on make up a block
    output: Integers  # (n_steps,)
    is_final: NDArray[np.bool_]  # (n_steps,)
    axis_size: Integers
    axis_variable: Integers
    term_start: Integers  # (n_steps + 1,)
    term_offset: Integers
    term_sign: NDArray[np.float64]
    term_producer: Integers
    stride_start: Integers
    strides: Integers
    largest_block: int
    most_terms: int
    most_axes: int


def flatten(schedule: Schedule) -> FlatSchedule:
    """The arrays of a schedule.

    Cost: one stride for each axis of each term, whatever the sizes of the tables.
    """
    sizes = schedule.network.sizes
    n_numbers = schedule.network.n_numbers
    axis_start, term_start = [0], [0]
    axis_variable: list[int] = []
    strides: list[int] = []
    first_inner, stride_start = [], []
    offsets, signs, producers = [], [], []
    largest_block = 1
    strides_of: dict[Scope, dict[int, int]] = {}
    for step in schedule.steps:
        axes = step.kept + step.eliminated
        axis_variable += axes
        axis_start.append(len(axis_variable))
        n_outer, block = _divide([sizes[variable] for variable in axes])
        first_inner.append(axis_start[-2] + n_outer)
        largest_block = max(largest_block, block)
        for term in step.terms:
            by_variable = strides_of.get(term.scope)
            if by_variable is None:
                by_variable = strides_of[term.scope] = _strides(term.scope, sizes)
            stride_start.append(len(strides))
            strides += [by_variable.get(variable, 0) for variable in axes]
            offsets.append(term.offset if term.producer < 0 else n_numbers + term.offset)
            signs.append(term.sign)
            producers.append(term.producer)
        term_start.append(len(offsets))
    return FlatSchedule(
        axis_start=_integers(axis_start),
        n_kept=_integers([len(step.kept) for step in schedule.steps]),
        first_inner=_integers(first_inner),
        output=_integers([n_numbers + step.output for step in schedule.steps]),
        is_final=np.array([step.is_final for step in schedule.steps], dtype=np.bool_),
        axis_size=_integers([sizes[variable] for variable in axis_variable]),
        axis_variable=_integers(axis_variable),
        term_start=_integers(term_start),
        term_offset=_integers(offsets),
        term_sign=np.array(signs, dtype=np.float64),
        term_producer=_integers(producers),
        stride_start=_integers(stride_start),
        strides=_integers(strides),
        largest_block=largest_block,
        most_terms=max(len(step.terms) for step in schedule.steps),
        most_axes=max(len(step.kept) + len(step.eliminated) for step in schedule.steps),
    )


def _integers(values: Sequence[int]) -> Integers:
    return np.array(values, dtype=np.int64)


def _strides(scope: Scope, sizes: Sequence[int]) -> dict[int, int]:
    """C-order strides of a table over a sorted scope."""
    strides = {}
    stride = 1
    for variable in reversed(scope):
        strides[variable] = stride
        stride *= sizes[variable]
    return strides


def _divide(axis_sizes: Sequence[int]) -> tuple[int, int]:
    """How many leading axes to leave outside a block, and the entries of the block."""
    block = 1
    n_outer = len(axis_sizes)
    while n_outer and (block == 1 or block * axis_sizes[n_outer - 1] <= BLOCK):
        n_outer -= 1
        block *= axis_sizes[n_outer]
    return n_outer, block


@compiled()
def advance(
    flat: FlatSchedule, step: int, first: int, inner: int, digits: Integers, base: Integers
) -> None:
    """Go on to the next entry: count up the axes from `first` to `inner` like an odometer.

    `base` keeps where the entry lies in each term.
    """
    start = flat.axis_start[step]
    first_term = flat.term_start[step]
    n_terms = flat.term_start[step + 1] - first_term
    for axis in range(inner - 1, first - 1, -1):
        turns_over = digits[axis - start] + 1 == flat.axis_size[axis]
        move = -digits[axis - start] if turns_over else 1
        digits[axis - start] += move
        for term in range(n_terms):
            stride = flat.strides[flat.stride_start[first_term + term] + axis - start]
            base[term] += move * stride
        if not turns_over:
            return
