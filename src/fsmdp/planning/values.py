"""How large values can be: the scales against which differences are judged."""

from __future__ import annotations

import numpy as np

from fsmdp.model.structure import sum_of_discounts
from fsmdp.model.tables import Floats
from fsmdp.planning.bellman import BellmanNetwork
from fsmdp.planning.intervals import Intervals


def constant_value(network: BellmanNetwork, intervals: Intervals) -> float:
    """A value that no state exceeds: the largest reward, earned at every step.

    Its weights are feasible and their 1-norm is at most this, so that a bound W of as much
    always leaves a solution.
    """
    nothing = np.zeros(len(network.basis))
    largest = network.elimination.maximise(network.right_side(nothing, intervals)).value
    return abs(largest) * sum_of_discounts(network.horizon, network.discount)


def largest_value(network: BellmanNetwork, intervals: Intervals) -> float:
    """No value is further from zero than this: every reward term at its largest, at every step."""
    largest = sum(float(np.abs(term).max()) for term in _terms(network, intervals))
    return largest * sum_of_discounts(network.horizon, network.discount)


def value_span(network: BellmanNetwork, intervals: Intervals) -> float:
    """No two values differ by more: the spans of all reward terms, at every step.

    The largest value itself if no reward depends on anything, and 1 a step if none is given.
    """
    span = sum(float(np.ptp(term)) for term in _terms(network, intervals))
    steps = sum_of_discounts(network.horizon, network.discount)
    return span * steps or largest_value(network, intervals) or steps


def _terms(network: BellmanNetwork, intervals: Intervals) -> list[Floats]:
    """The means of each reward term, in all groups together."""
    found = []
    begin = 0
    for cases in network.reward_scopes:
        end = begin + sum(network.elimination.network.table_size(scope) for scope in cases)
        found.append(intervals.rewards[begin:end])
        begin = end
    return found
