"""Samples from the duals of a schedule's rows: states and actions, one clique after another.

The duals of the rows are marginals of a measure on the cliques: those of a step that makes a
message add up, for each assignment kept, to those of the steps that receive it. So a state is drawn
from a final step on, each step's variables given those that it keeps.
"""

from __future__ import annotations

import numpy as np

from fsmdp.compiled import compiled
from fsmdp.elimination.compiled_schedule import FlatSchedule, Integers
from fsmdp.elimination.schedule import Schedule
from fsmdp.model.tables import Floats


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
    luck = rng.random((count, 1 + schedule.network.n_variables))
    _draw(flat, starts, duals, finals[chosen], luck, states)
    return states, first


@compiled()
def _draw(
    flat: FlatSchedule,
    starts: Integers,
    duals: Floats,
    final_steps: Integers,
    luck: Floats,
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
            wanted = luck[row, used % luck.shape[1]] * total
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
