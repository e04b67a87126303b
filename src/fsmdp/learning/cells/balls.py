"""Algorithm 3: the extreme means over an L1 ball of distributions."""

from __future__ import annotations

from fsmdp.compiled import compiled
from fsmdp.model.lookup import Integers
from fsmdp.model.tables import Floats


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


@compiled(inline="always")
def sort_descending(values: Floats, order: Integers) -> None:
    """Positions of a few values from the largest to the smallest, without allocating."""
    for y in range(len(values)):
        at = y
        while at > 0 and values[order[at - 1]] < values[y]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = y
