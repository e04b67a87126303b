"""Parents of one variable: grown by what predicts it, kept where nothing else explains it."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, count

import numpy as np
from scipy.special import gammaln, xlogy

from fsmdp.discovery.transitions import Transitions
from fsmdp.model.tables import Floats, Integers

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


def counted(contexts: Integers, values: Integers, size: int) -> Floats:
    """How often each value was seen in each context: (contexts, values)."""
    seen = np.bincount(contexts * size + values, minlength=(int(contexts.max()) + 1) * size)
    return seen.reshape(-1, size).astype(np.float64)


def log_fit(counts: Floats) -> float:
    """Log-likelihood of the best law that depends on the context alone."""
    return float(xlogy(counts, counts).sum() - xlogy(totals := counts.sum(axis=1), totals).sum())


def log_bets(counts: Floats) -> Floats:
    """Log-likelihood, in each context, of the law that predicts each value from those before it."""
    size = counts.shape[-1]
    each = gammaln(counts + 0.5).sum(axis=-1) - gammaln(counts.sum(axis=-1) + size / 2)
    return np.asarray(each + gammaln(size / 2) - size * gammaln(0.5))


def log_bet(counts: Floats) -> float:
    """The same for all contexts together."""
    return float(log_bets(counts[counts.any(axis=1)]).sum())


def regret_of_bet(counts: Floats) -> float:
    """By how much the bet falls short of the best law that depends on the same context."""
    return log_fit(counts) - log_bet(counts)


def compact(contexts: Integers) -> Integers:
    """The same contexts, numbered without gaps."""
    return np.unique(contexts, return_inverse=True)[1].astype(np.int64)


@dataclass(frozen=True, slots=True)
class Strength:
    """The logarithm of the evidence for something, and what it has to reach."""

    found: float
    needed: float

    @property
    def margin(self) -> float:
        """What it is beyond what it has to be."""
        return self.found - self.needed


@dataclass(frozen=True, slots=True, eq=False)
class Parents:
    """What was found of one variable.

    `apart` are the actions under which it moves unlike under the others. `evidence` has, for each
    parent, what speaks for it beyond what the other parents and the action explain; `hidden` the
    inputs of which an effect could have been overlooked, with the reason.
    """

    variable: int
    parents: tuple[int, ...]
    apart: tuple[int, ...]
    evidence: tuple[Strength, ...]
    hidden: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class Limits:
    """How many parents are looked for, how sure it must be, and what effect should be seen."""

    max_parents: int
    log_certainty: float  # logarithm of 1 / (error probability of all edges together)
    effect: float
    lookahead: int


NEVER_VARIED = "it never varied"
NOT_SEEN = "an effect of {effect:g} could have been overlooked"
NOT_SURE = "it seems to matter, not beyond doubt"
MORE = "max_parents was reached"


class Search:
    """One variable's parents, by a tree and by a table.

    A tree finds what matters in some contexts only, a table of all contexts what matters a little
    in each. Contexts are numbers: of the parents' values and actions apart.
    """

    def __init__(self, data: Transitions, variable: int, limits: Limits) -> None:
        self.data, self.variable, self.limits = data, variable, limits
        self.values = data.outcomes[:, variable]
        self.size = data.variables[variable].size
        varied = data.inputs.min(axis=0) < data.inputs.max(axis=0)
        self.candidates = [int(i) for i in np.flatnonzero(varied)]
        self.fixed = [i for i in range(len(data.sizes)) if not varied[i]]
        self.left_out: set[int] = set()  # what others explain
        self.parents: list[int] = []
        self.apart: list[int] = []

    def _free(self) -> list[int]:
        taken = self.left_out.union(self.parents)
        return [one for one in self.candidates if one not in taken]

    def run(self) -> Parents:
        """Grow, leave out what the others explain, and claim what is beyond doubt."""
        tree, more = self._grown()
        doubtful: list[int] = []
        while True:
            strengths = {one: self.strength(one, tree) for one in self.parents}
            weak = [
                one for one in self.parents if strengths[one].margin < 0 and one not in doubtful
            ]
            if not weak:
                break
            weakest = min(weak, key=lambda one: strengths[one].margin)
            before = self.parents, self.apart, tree, more
            known = self._prediction(tree)
            self.left_out.add(weakest)
            tree, more = self._grown()
            if self._prediction(tree) < known:
                # It seems to matter: not claimed, but what it explains nothing else is claimed for.
                self.parents, self.apart, tree, more = before
                self.left_out.remove(weakest)
                doubtful.append(weakest)
        claimed = [one for one in self.parents if one not in doubtful]
        return Parents(
            self.variable,
            tuple(claimed),
            tuple(sorted(self.apart)),
            tuple(strengths[one] for one in claimed),
            self._hidden(doubtful, more),
        )

    def looking_ahead(self) -> Search:
        """The same search with pairs of inputs that matter jointly."""
        found = Search(self.data, self.variable, replace(self.limits, lookahead=2))
        found.run()
        return found

    def _grown(self) -> tuple[Tree, bool]:
        """What a tree is made of and a table adds to it; whether there would be more."""
        limits = self.limits
        self.parents, self.apart = [], []
        tree = Tree(
            self.data,
            self.values,
            self.size,
            self._free(),
            most=limits.max_parents,
            lookahead=limits.lookahead,
        )
        self.parents, self.apart = list(tree.parents), list(tree.apart)
        more = not self.grow() or tree.full
        self.parents.sort()
        return tree, more

    def _prediction(self, tree: Tree) -> float:
        """How well the better of tree and table predicts, less what it takes to name it."""
        table = self.bet(self.contexts(self.parents, self.apart)) - self._price_of_table()
        return max(table, tree.prediction)

    def contexts(self, parents: list[int], apart: list[int] | None = None) -> Integers:
        """Number of each row's context; every action is one by itself unless `apart` is given."""
        data = self.data
        if apart is None:
            contexts, count = data.taken, data.n_actions
        else:
            place = np.zeros(data.n_actions, dtype=np.int64)
            place[apart] = np.arange(1, len(apart) + 1)
            contexts, count = place[data.taken], len(apart) + 1
        for parent in parents:
            contexts = contexts * data.sizes[parent] + data.inputs[:, parent]
            count *= data.sizes[parent]
            if count > 4 * len(data):
                contexts = compact(contexts)
                count = int(contexts.max()) + 1
        return compact(contexts)

    def bet(self, contexts: Integers) -> float:
        """How well a context predicts the variable, one row after another."""
        return log_bet(counted(contexts, self.values, self.size))

    def strength(self, parent: int, tree: Tree) -> Strength:
        """Evidence against: given the action and all other parents, this one does not matter."""
        others = [one for one in self.parents if one != parent]
        # Where actions were drawn at random, those that are not apart may be taken for one:
        # whatever each of them does, their mixture is a law of the state. Otherwise what they do
        # might be explained by what they were chosen for, and each has a law of its own.
        contexts = self.contexts(others, self.apart if self.data.at_random else None)
        fit = log_fit(counted(contexts, self.values, self.size))
        known = self.bet(self.contexts(self.parents, self.apart))
        table = Strength(known - fit, self.needed())
        found, price = tree.strength(parent, contexts)
        return max(table, Strength(found, self._certainty + price), key=lambda one: one.margin)

    @property
    def _certainty(self) -> float:
        """A union bound over variables, for each of which there is a tree and a table."""
        return self.limits.log_certainty + math.log(2 * len(self.data.variables))

    def needed(self) -> float:
        """What the evidence of a table must reach, so that all that is found holds together."""
        return self._certainty + self._price_of_table()

    def _price_of_table(self) -> float:
        """A prior over parents and actions apart, since they were chosen with the same data."""
        n_inputs, n_actions = len(self.data.sizes), self.data.n_actions
        price = math.log(self.limits.max_parents + 1) + _log_choices(n_inputs, len(self.parents))
        return price + math.log(n_actions + 1) + _log_choices(n_actions, len(self.apart))

    def grow(self, price: float | None = None) -> bool:
        """Add what predicts best, a parent or an action apart; False if there would be more.

        What is added has to be worth `price`: unless it is given, the logarithm of how many there
        are to choose from.
        """
        if price is None:
            price = math.log(len(self.data.sizes) + self.data.n_actions)
        contexts = self.contexts(self.parents, self.apart)
        known = self.bet(contexts)
        while True:
            steps: list[tuple[float, list[int], list[int]]] = []
            actions = range(self.data.n_actions) if self.data.n_actions > 1 else range(0)
            for action in actions:
                if action not in self.apart:
                    with_action = 2 * contexts + (self.data.taken == action)
                    gain = self.bet(with_action) - known - price
                    steps.append((gain, [], [action]))
            free = self._free()
            for one in free:
                finer = contexts * self.data.sizes[one] + self.data.inputs[:, one]
                steps.append((self.bet(finer) - known - price, [one], []))
            if self.limits.lookahead > 1 and not any(gain > 0 for gain, _, _ in steps):
                for pair in combinations(free, 2):
                    gain = self.bet(self.contexts([*self.parents, *pair], self.apart)) - known
                    steps.append((gain - 2 * price, list(pair), []))
            gain, parents, apart = max(steps, key=lambda step: step[0], default=(0.0, [], []))
            if gain <= 0:
                return True
            if len(self.parents) + len(parents) > self.limits.max_parents:
                return False
            self.parents += parents
            self.apart += apart
            contexts = self.contexts(self.parents, self.apart)
            known = self.bet(contexts)

    def _hidden(self, doubtful: list[int], more: bool) -> tuple[tuple[int, str], ...]:
        """Inputs that are no parents, where an effect could have been overlooked."""
        contexts, effect = self.contexts(self.parents, self.apart), self.limits.effect
        found = [(one, NEVER_VARIED) for one in self.fixed]
        found += [(one, NOT_SURE) for one in doubtful]
        for one in self.candidates:
            if one in self.parents or one in doubtful:
                continue
            size = self.data.sizes[one]
            finer = contexts * size + self.data.inputs[:, one]
            seen = counted(contexts, self.data.inputs[:, one], size)
            totals = np.maximum(seen.sum(axis=1), 1)
            # Two values that differ in an event by the effect: by Pinsker's inequality the gain
            # is at least 2 effect^2 n0 n1 / (n0 + n1), however the event's probability varies.
            largest = np.sort(seen, axis=1)[:, -2:]
            weight = float((largest[:, 0] * largest[:, 1] / totals).sum())
            lost = regret_of_bet(counted(finer, self.values, self.size))
            if 2 * effect**2 * weight < lost + self.needed():
                found.append((one, MORE if more else NOT_SEEN.format(effect=effect)))
        return tuple(sorted(found))


def _log_choices(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
