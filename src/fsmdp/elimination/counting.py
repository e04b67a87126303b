"""At most so many variables off 0: a constraint that counts along a junction tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fsmdp.elimination.junction_tree import JunctionTree
from fsmdp.elimination.network import Constraint
from fsmdp.elimination.order import Order


@dataclass(frozen=True, slots=True, eq=False)
class Counters:
    """Further variables, each a count of what is off 0 below a place, and what ties them.

    `order` eliminates all variables, counters where they have been used.
    """

    sizes: tuple[int, ...]
    constraints: tuple[Constraint, ...]
    order: tuple[int, ...]


def count_off_zero(
    order: Order, sizes: Sequence[int], counted: Sequence[int], most: int
) -> Counters:
    """Constraints that let at most `most` of the counted variables be off 0.

    count(node) = sum of count(children) + number of its own residual variables off 0

    A clique gains the counter of each message it takes in, with no more values than can be reached,
    and no clique is added. Counted variables that the order does not eliminate are free.
    Cost: a table of three counters for each counted variable and each node with several below it.
    """
    tree = JunctionTree.from_order(order, sizes)
    wanted = set(counted)
    added: list[int] = []
    constraints: list[Constraint] = []
    sequence: list[int] = []
    below: list[list[tuple[int, int]]] = [[] for _ in tree.scopes]  # counters of children, largest

    def counts(variable: int) -> NDArray[np.int64]:
        """What each value of a counted variable or counter counts for."""
        if variable < len(sizes):
            return (np.arange(sizes[variable]) > 0).astype(np.int64)
        return np.arange(added[variable - len(sizes)])

    for node in range(len(tree.scopes)):
        own = [(v, min(1, sizes[v] - 1)) for v in tree.residuals[node] if v in wanted]
        items = [item for item in (*below[node], *own) if item[1] > 0]
        sequence += (v for v in tree.residuals[node] if v not in wanted)
        total = items[0] if items else None
        for at, item in enumerate(items[1:], 1):
            assert total is not None
            pair = (total[0], item[0])
            largest = min(most, total[1] + item[1])
            together = counts(pair[0])[:, None] + counts(pair[1])[None, :]
            if node == tree.root and at == len(items) - 1:
                constraints.append(_sorted(pair, together <= most))
                sequence += pair
                total = None
                break
            new = len(sizes) + len(added)
            added.append(largest + 1)
            allowed = together[:, :, None] == np.arange(largest + 1)
            constraints.append(_sorted((*pair, new), allowed))
            sequence += pair
            total = (new, largest)
        if total is not None:
            if node == tree.root:
                sequence.append(total[0])
            else:
                below[tree.parents[node]].append(total)
    seen = set(sequence)
    sequence += [v for v in order.variables if v not in seen]
    return Counters(tuple(added), tuple(constraints), tuple(sequence))


def _sorted(scope: Sequence[int], allowed: NDArray[np.bool_]) -> Constraint:
    axes = sorted(range(len(scope)), key=scope.__getitem__)
    return tuple(scope[axis] for axis in axes), np.transpose(allowed, axes)
