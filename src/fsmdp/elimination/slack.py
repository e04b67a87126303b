"""Slack: what mini-buckets add to a maximum, and where."""

from __future__ import annotations

import numpy as np

from fsmdp.elimination.schedule import Schedule, Term
from fsmdp.model.tables import Floats, Integers
from fsmdp.model.variables import Scope


def slack_of_steps(schedule: Schedule, numbers: Floats, final: int, state: Integers) -> Floats:
    """For each variable, how far the messages that max it out lie above what a state makes of them.

    value(final) = F(state) + sum of all slack: a message is the largest sum of its step's terms, so
    that what it exceeds their sum in the state by is lost for good. Exact elimination, in a state
    that attains the maximum, has none. It is infinite where mini-buckets let a state pass that
    constraints rule out. `numbers` are entries and messages of a run.
    Cost: the terms of the steps that lead to the final one.
    """
    slack = np.zeros(schedule.network.n_variables)
    waiting = [final]
    while waiting:
        step = schedule.steps[waiting.pop()]
        own = Term(step.kept, step.output, producer=0)
        message = _number(schedule, numbers, own, state)
        terms = sum(term.sign * _number(schedule, numbers, term, state) for term in step.terms)
        above = message - terms if message > -np.inf else 0.0
        waiting += [term.producer for term in step.terms if term.producer >= 0]
        for variable in step.eliminated:
            slack[variable] += above / len(step.eliminated)
    return slack


def _number(schedule: Schedule, numbers: Floats, term: Term, state: Integers) -> float:
    network = schedule.network
    first = term.offset + (network.n_numbers if term.producer >= 0 else 0)
    return float(numbers[first + _position(term.scope, network.sizes, state)])


def _position(scope: Scope, sizes: tuple[int, ...], state: Integers) -> int:
    position = 0
    for variable in scope:
        position = position * sizes[variable] + int(state[variable])
    return position
