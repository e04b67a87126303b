"""A decision tree that predicts a variable: contexts are told apart only where it pays.

What is opened matters only while the door is unlocked, and what a repair does depends on nothing. A
table over all parents has a row for every assignment and needs data for each; a tree has a leaf for
each context that differs, and regions of it in which few contexts are left to be told apart.
Source: Boutilier, Dearden, Goldszmidt (2000), Stochastic dynamic programming with factored
representations, Artificial Intelligence 121, for trees in place of tables.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations, count

import numpy as np

from fsmdp.discovery.evidence import compact, counted, log_bets, log_fit
from fsmdp.discovery.transitions import Transitions
from fsmdp.model.lookup import Integers
from fsmdp.model.tables import Floats

LARGEST_BLOCK = 2**22
"""Entries that are counted at a time."""

A_BIT = math.log(2)


@dataclass(slots=True, eq=False)
class Node:
    """Rows in a context. `path` is the logarithm of how many nodes could stand where it does."""

    rows: Integers
    path: float
    bet: float  # of a leaf
    split: int | None = None  # an input, or the number of inputs plus an action
    children: list[Node] = field(default_factory=list)


class Tree:
    """Grown greedily, the split that predicts best first, by inputs and by single actions.

    Trees are given a prior: a node is a leaf or splits, with the same probability, and each split
    is as likely as any other. A split is made if it gains more than that takes. At most `most`
    inputs are used; `full` says whether there would have been more.
    Cost: for each level, rows times inputs.
    """

    def __init__(
        self,
        data: Transitions,
        values: Integers,
        size: int,
        inputs: Sequence[int],
        *,
        most: int,
        by_action: bool = True,
        lookahead: int = 1,
    ) -> None:
        self.data, self.values, self.size = data, values, size
        self.n_inputs, self.n_actions = len(data.sizes), data.n_actions
        self.by_action = by_action and data.n_actions > 1
        self.split_price = A_BIT + math.log(self.n_inputs + self.n_actions)
        self.lookahead = lookahead
        self.parents: list[int] = []
        self.apart: list[int] = []
        self.nodes: list[Node] = []  # each after the one that it is a part of
        self.full = False
        self._widest = max(data.sizes)
        self._grow(np.array(sorted(inputs), dtype=np.int64), most)

    def _grow(self, inputs: Integers, most: int) -> None:
        waiting: list[tuple[float, int, int, Node]] = []
        asked = count()  # the first of two that gain the same

        def add(node: Node) -> None:
            self.nodes.append(node)
            ask(node)

        def ask(node: Node) -> None:
            gain, split = self._best_split(node, inputs)
            if gain > 0:
                heapq.heappush(waiting, (-gain, next(asked), split, node))

        add(Node(np.arange(len(self.values)), 0.0, self._bet(np.arange(len(self.values)))))
        while waiting:
            _, _, split, node = heapq.heappop(waiting)
            if split < self.n_inputs and split not in self.parents:
                if len(self.parents) == most:
                    self.full = True
                    inputs = np.array(sorted(self.parents), dtype=np.int64)
                    ask(node)
                    continue
                self.parents.append(split)
            elif split >= self.n_inputs and split - self.n_inputs not in self.apart:
                self.apart.append(split - self.n_inputs)
            self._divide(node, split)
            for child in node.children:
                add(child)
        self.parents.sort()
        self.apart.sort()

    def _divide(self, node: Node, split: int) -> None:
        if split < self.n_inputs:
            sides, n = self.data.inputs[node.rows, split], self.data.sizes[split]
        else:
            sides, n = (self.data.taken[node.rows] == split - self.n_inputs).astype(int), 2
        node.split = split
        path = node.path + self.split_price + math.log(n)
        for side in range(n):
            rows = node.rows[sides == side]
            node.children.append(Node(rows, path, self._bet(rows)))

    def _bet(self, rows: Integers) -> float:
        seen = np.bincount(self.values[rows], minlength=self.size)
        return float(log_bets(seen.astype(np.float64)))

    def _best_split(self, node: Node, inputs: Integers) -> tuple[float, int]:
        """What the best split of a leaf gains, beyond what it takes to name it."""
        values = self.values[node.rows]
        total = np.bincount(values, minlength=self.size).astype(np.float64)
        if np.count_nonzero(total) < 2:
            return 0.0, 0
        price = node.bet + self.split_price
        best = (0.0, 0)
        if len(inputs):
            seen = self._by_input(node.rows, values, inputs)
            # A leaf more for each side but one: the leaf that is split was paid for.
            sides = np.array([self.data.sizes[one] for one in inputs]) - 1
            gains = log_bets(seen).sum(axis=1) - price - sides * A_BIT
            place = int(np.argmax(gains))
            best = max(best, (float(gains[place]), int(inputs[place])))
        if self.by_action:
            taken = self.data.taken[node.rows]
            seen = counted(taken, values, self.size)
            alone = np.flatnonzero(seen.any(axis=1) & (seen.sum(axis=1) < len(values)))
            if len(alone):
                gains = log_bets(seen[alone]) + log_bets(total - seen[alone]) - price - A_BIT
                place = int(np.argmax(gains))
                best = max(best, (float(gains[place]), self.n_inputs + int(alone[place])))
        if self.lookahead > 1 and best[0] <= 0:
            for one, other in combinations(inputs.tolist(), 2):
                best = max(best, self._gain_of_pair(node, values, one, other))
        return best

    def _by_input(self, rows: Integers, values: Integers, inputs: Integers) -> Floats:
        """How often each value was seen with each value of each input."""
        n, width = len(inputs), self._widest * self.size
        seen = np.zeros(n * width)
        block = max(1, LARGEST_BLOCK // n)
        for begin in range(0, len(rows), block):
            some = slice(begin, begin + block)
            codes = self.data.inputs[np.ix_(rows[some], inputs)] * self.size
            codes += np.arange(n) * width + values[some, np.newaxis]
            seen += np.bincount(codes.ravel(), minlength=n * width)
        return seen.reshape(n, self._widest, self.size)

    def _gain_of_pair(
        self, node: Node, values: Integers, one: int, other: int
    ) -> tuple[float, int]:
        """What two splits gain of which the first may gain nothing by itself."""
        sizes, inputs = self.data.sizes, self.data.inputs
        contexts = inputs[node.rows, one] * sizes[other] + inputs[node.rows, other]
        gain = float(log_bets(counted(contexts, values, self.size)).sum()) - node.bet
        taken = (1 + sizes[one]) * self.split_price + (sizes[one] * sizes[other] - 1) * A_BIT
        return gain - taken, one

    @property
    def certain(self) -> bool:
        """Whether every leaf has seen one value only, and there is more than one leaf."""
        leaves = [self.values[node.rows] for node in self.nodes if node.split is None]
        return len(leaves) > 1 and all(not len(one) or one.min() == one.max() for one in leaves)

    @property
    def prediction(self) -> float:
        """How well it predicts, less what it takes to name it."""
        leaves = [node for node in self.nodes if node.split is None]
        splits = len(self.nodes) - len(leaves)
        return sum(one.bet - A_BIT for one in leaves) - splits * self.split_price

    def strength(self, parent: int, contexts: Integers) -> tuple[float, float]:
        """Evidence against: in these contexts, which know the others, a parent does not matter.

        In the rows of a node that splits on it, the bet of the tree below is divided by the best
        law of the contexts; so is that of several nodes that have no rows in common. Naming them
        and what is below them has a price, so that all that could be named holds together: the
        logarithms of the evidence and of the price, of the nodes where it exceeds that by most.
        """
        below: dict[int, tuple[float, float, float, float]] = {}
        for node in reversed(self.nodes):
            if node.split is None:
                below[id(node)] = 0.0, 0.0, node.bet, A_BIT
                continue
            parts = np.array([below.pop(id(child)) for child in node.children])
            found, price, bet, named = parts.sum(axis=0).tolist()
            named += self.split_price
            if node.split == parent:
                within = compact(contexts[node.rows])
                fit = log_fit(counted(within, self.values[node.rows], self.size))
                alone = bet - fit, node.path + named + A_BIT
                if alone[0] - alone[1] > found - price:
                    found, price = alone
            below[id(node)] = found, price, bet, named
        found, price, *_ = below[id(self.nodes[0])]
        return found, price
