"""Parents of one variable: grown by what predicts it, kept where nothing else explains it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from fsmdp.discovery.evidence import compact, counted, log_bet, log_fit, regret_of_bet
from fsmdp.discovery.transitions import Transitions
from fsmdp.discovery.trees import Tree
from fsmdp.model.lookup import Integers


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
        """A prior over parents and actions apart, since they were chosen by looking at the data."""
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
