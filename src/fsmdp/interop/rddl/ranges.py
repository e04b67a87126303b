"""Values that can be reached: of integers, within the horizon, and of what is drawn in a step.

Starting from the initial values, the values of every formula over all assignments of the values
found so far are added, once for each step of the horizon or until nothing is new. That may find
more than can truly be reached, never fewer. State fluents of other types keep all their values.
"""

from __future__ import annotations

import logging

from fsmdp.interop.rddl.compiling import Folder, outcomes
from fsmdp.interop.rddl.distributions import Evaluator
from fsmdp.interop.rddl.errors import TooLargeError, located
from fsmdp.interop.rddl.problem import Problem

log = logging.getLogger("fsmdp")

MOST_VALUES = 64


def with_reachable_values(problem: Problem, folder: Folder, most_entries: int) -> Problem:
    """The problem with a range for every fluent; an integer of more than MOST_VALUES is refused.

    Cost: the tables of integers and of drawn fluents, once for each step until nothing is new.
    """
    unknown = [
        label
        for label, values in problem.values.items()
        if values is None or label in problem.latents
    ]
    if not unknown:
        return problem
    values = dict(problem.values)
    for label in unknown:
        values[label] = (problem.initial[label],) if label in problem.initial else ()
    order = [label for label in problem.formulas if label in unknown]
    for step in range(problem.horizon):
        log.info("%s: values reached in %d steps", problem.name, step)
        before = dict(values)
        for label in order:
            values[label] = _extended(problem.with_values(values), label, folder, most_entries)
        if values == before:
            break
    return problem.with_values(values)


def _extended(problem: Problem, label: str, folder: Folder, most_entries: int) -> tuple[int, ...]:
    known = {name: values or (0,) for name, values in problem.values.items() if values is not None}
    ranges = known | {f"{name}'": known[name] for name in problem.states}
    rank = {name: position for position, name in enumerate(ranges)}
    evaluator = Evaluator(ranges, rank, most_entries)
    with located(f"the next value of {label}"):
        reached = outcomes(problem.formulas[label], folder, evaluator)
    found = set(problem.values[label] or ()) | reached
    if len(found) > MOST_VALUES:
        raise TooLargeError(
            f"the integer {label} takes more than {MOST_VALUES} values within the horizon of "
            f"{problem.horizon} steps; expected a small finite range, bound it by min and max."
        )
    return tuple(sorted(found))
