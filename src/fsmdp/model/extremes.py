"""Extremes: the distribution in a box, or in an L1 ball, whose mean of some values is largest."""

import numpy as np

from fsmdp.compiled import compiled
from fsmdp.model.tables import Floats, Integers


@compiled(inline="always")
def sort_descending(values: Floats, order: Integers) -> None:
    """Positions of a few values from the largest to the smallest, without allocating."""
    for y in range(len(values)):
        at = y
        while at > 0 and values[order[at - 1]] < values[y]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = y


@compiled(inline="always")
def best_in_box(
    low: Floats, high: Floats, at: int, values: Floats, order: Integers, best: Floats
) -> float:
    """max_p sum_y p[y] values[y] over low <= p <= high with sum p = 1; `best` becomes that p.

    The ends of p[0], p[1], ... stand in `low` and `high` from `at` on. `order` sorts the values,
    best first: what is left of the mass beyond `low` goes to the best value, then to the next.
    Cost: the number of values.
    """
    left, mean = 1.0, 0.0
    for y in range(len(values)):
        best[y] = low[at + y]
        left -= low[at + y]
        mean += low[at + y] * values[y]
    for i in range(len(values)):
        if left <= 0.0:
            break
        y = order[i]
        added = max(0.0, min(left, high[at + y] - low[at + y]))
        best[y] += added
        left -= added
        mean += added * values[y]
    return mean


def best_laws(low: Floats, high: Floats, values: Floats) -> Floats:
    """The best distribution for the same values in each of many boxes, one a row."""
    found = np.zeros(low.shape)  # (n_boxes, n_values)
    fill_best_laws(low, high, values, np.argsort(-values, kind="stable"), found)
    return found


@compiled()
def fill_best_laws(
    low: Floats, high: Floats, values: Floats, order: Integers, found: Floats
) -> None:
    """`best_in_box` of each row."""
    for row in range(len(found)):
        best_in_box(low[row], high[row], 0, values, order, found[row])


@compiled(inline="always")
def mean_in_ball(probabilities: Floats, values: Floats, order: Integers, radius: float) -> float:
    """The most extreme mean of values over an L1 ball around probabilities.

    `order` sorts the values, best first: half the radius is put on the best, and taken from the
    others, worst first. Reversed, it gives the other extreme.
    Cost: the number of values.
    Paper: Algorithm 3. Source: Jaksch, Ortner and Auer (2010), Figure 2.
    """
    mean = 0.0
    for y in range(len(values)):
        mean += probabilities[y] * values[y]
    best = order[0]
    left = min(min(2.0, radius) / 2, 1.0 - probabilities[best])
    mean += left * values[best]
    for i in range(len(values) - 1, 0, -1):
        if left <= 0:
            break
        taken = min(left, probabilities[order[i]])
        mean -= taken * values[order[i]]
        left -= taken
    return mean  # type: ignore[no-any-return]
