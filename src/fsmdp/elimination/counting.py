"""Limits on what the values of many variables count for: constraints that count along a tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fsmdp.elimination.junction_tree import JunctionTree
from fsmdp.elimination.network import Constraint
from fsmdp.elimination.order import Order

Addition = tuple[int, ...]
"""(one, other, counter): a counter is the sum of two; the last of all may have none."""


@dataclass(frozen=True, slots=True, eq=False)
class Counters:
    """Further variables, each a count of what is below a place, and what ties them.

    `order` eliminates all variables, counters where they have been used; `additions` say what each
    of the constraints stands for.
    """

    sizes: tuple[int, ...]
    constraints: tuple[Constraint, ...]
    order: tuple[int, ...]
    additions: tuple[Addition, ...]


def count_nonzero(
    order: Order, sizes: Sequence[int], counted: Sequence[int], most: int
) -> Counters:
    """Constraints that let at most `most` of the counted variables be nonzero."""
    counts = {
        variable: [int(value > 0) for value in range(sizes[variable])] for variable in counted
    }
    return count_along(order, sizes, counts, 0, most)


def count_along(
    order: Order, sizes: Sequence[int], counts: Mapping[int, Sequence[int]], least: int, most: int
) -> Counters:
    """Constraints that keep the sum of what counted variables count for from `least` to `most`.

    count(node) = sum of count(children) + what its own residual variables count for

    A clique gains the counter of each message it takes in, with no more values than can be reached,
    and no clique is added. Where only `least` limits anything, counters stop there. Counted
    variables that the order does not eliminate are free.
    Cost: a table of three counters for each counted variable and each node with several below it.
    """
    tree = JunctionTree.from_order(order, sizes)
    inside = {variable for residual in tree.residuals for variable in residual}
    free = [values for variable, values in counts.items() if variable not in inside]
    least -= sum(map(max, free))
    most -= sum(map(min, free))
    stops = most >= sum(max(values) for variable, values in counts.items() if variable in inside)
    end = max(0, least) if stops else most
    added: list[int] = []
    constraints: list[Constraint] = []
    additions: list[Addition] = []
    sequence: list[int] = []
    below: list[list[tuple[int, int]]] = [[] for _ in tree.scopes]  # counters of children, largest

    def counted(variable: int) -> NDArray[np.int64]:
        """What each value of a counted variable or counter counts for."""
        if variable < len(sizes):
            return np.asarray(counts[variable], dtype=np.int64)
        return np.arange(added[variable - len(sizes)])

    def limit(items: tuple[int, ...], together: NDArray[np.int64]) -> None:
        constraints.append(_sorted(items, (together >= least) & (together <= most)))
        additions.append(items)

    for node in range(len(tree.scopes)):
        own = [(v, max(counts[v])) for v in tree.residuals[node] if v in counts]
        items = [item for item in (*below[node], *own) if item[1] > 0]
        sequence += (v for v in tree.residuals[node] if v not in counts)
        total = items[0] if items else None
        for at, item in enumerate(items[1:], 1):
            assert total is not None
            pair = (total[0], item[0])
            largest = min(end, total[1] + item[1])
            together = counted(pair[0])[:, None] + counted(pair[1])[None, :]
            if node == tree.root and at == len(items) - 1:
                limit(pair, together)
                sequence += pair
                total = None
                break
            new = len(sizes) + len(added)
            added.append(largest + 1)
            if stops:
                together = np.minimum(together, end)
            allowed = together[:, :, None] == np.arange(largest + 1)
            constraints.append(_sorted((*pair, new), allowed))
            additions.append((*pair, new))
            sequence += pair
            total = (new, largest)
        if total is not None:
            if node == tree.root:
                alone = counted(total[0])
                if ((alone < least) | (alone > most)).any():
                    limit((total[0],), alone)
                sequence.append(total[0])
            else:
                below[tree.parents[node]].append(total)
    seen = set(sequence)
    sequence += [v for v in order.variables if v not in seen]
    return Counters(tuple(added), tuple(constraints), tuple(sequence), tuple(additions))


def _sorted(scope: Sequence[int], allowed: NDArray[np.bool_]) -> Constraint:
    axes = sorted(range(len(scope)), key=scope.__getitem__)
    return tuple(scope[axis] for axis in axes), np.transpose(allowed, axes)
