"""Parents of one variable: grown by what predicts it, kept where nothing else explains it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from fsmdp.discovery.evidence import compact, counted, log_bet, log_fit, regret_of_bet
from fsmdp.discovery.transitions import Transitions
from fsmdp.model.lookup import Integers


@dataclass(frozen=True, slots=True, eq=False)
class Parents:
    """What was found of one variable.

    `apart` are the actions under which it moves unlike under the others. `evidence` has, for each
    parent, the logarithm of the evidence beyond what the other parents and the action explain;
    `hidden` the inputs of which an effect could have been overlooked, with the reason.
    """

    variable: int
    parents: tuple[int, ...]
    apart: tuple[int, ...]
    evidence: tuple[float, ...]
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
    """One variable's parents. Contexts are numbers: of the parents' values and actions apart."""

    def __init__(self, data: Transitions, variable: int, limits: Limits) -> None:
        self.data, self.variable, self.limits = data, variable, limits
        self.values = data.outcomes[:, variable]
        self.size = data.variables[variable].size
        varied = data.inputs.min(axis=0) < data.inputs.max(axis=0)
        self.candidates = [int(i) for i in np.flatnonzero(varied)]
        self.fixed = [i for i in range(len(data.sizes)) if not varied[i]]
        self.parents: list[int] = []
        self.apart: list[int] = []

    def run(self) -> Parents:
        """Grow, then drop what the others explain, until all that is left is beyond doubt."""
        more = not self.grow()
        doubtful: list[int] = []
        while self.parents:
            found = [self.evidence(parent) for parent in self.parents]
            needed = self.needed()
            weakest = int(np.argmin(found))
            if found[weakest] >= needed:
                break
            doubtful.append(self.parents.pop(weakest))
        found = [self.evidence(parent) for parent in self.parents]
        order = np.argsort(self.parents)
        return Parents(
            self.variable,
            tuple(self.parents[i] for i in order),
            tuple(sorted(self.apart)),
            tuple(found[i] for i in order),
            self._hidden(doubtful, more),
        )

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

    def evidence(self, parent: int) -> float:
        """Against: given the action and all other parents, this one does not matter."""
        others = [one for one in self.parents if one != parent]
        # Where actions were drawn at random, those that are not apart may be taken for one:
        # whatever each of them does, their mixture is a law of the state. Otherwise what they do
        # might be explained by what they were chosen for, and each has a law of its own.
        apart = self.apart if self.data.at_random else None
        known = self.bet(self.contexts(self.parents, self.apart))
        return known - self.fit(others, apart)

    def fit(self, parents: list[int], apart: list[int] | None) -> float:
        """The best law that depends on parents and the action alone; `apart` as for `contexts`."""
        return log_fit(counted(self.contexts(parents, apart), self.values, self.size))

    def needed(self) -> float:
        """What the evidence for an edge must reach, so that all edges hold together.

        A union bound over variables, inputs, and the sets of other parents that the null may be
        about; and a prior over the actions apart, since the bet was chosen by looking at the data.
        """
        n_inputs, n_actions = len(self.data.sizes), self.data.n_actions
        price = math.log(len(self.data.variables) * n_inputs * (self.limits.max_parents + 1))
        price += _log_choices(n_inputs, len(self.parents))
        price += math.log(n_actions + 1) + _log_choices(n_actions, len(self.apart))
        return self.limits.log_certainty + price

    def grow(self, price: float | None = None) -> bool:
        """Add what predicts best, a parent or an action apart; False if there would be more.

        What is added has to be worth `price`: unless it is given, the logarithm of how many there
        are to choose from.
        """
        if price is None:
            price = math.log(len(self.data.sizes) + self.data.n_actions)
        contexts = self.contexts([], [])
        known = self.bet(contexts)
        while True:
            steps: list[tuple[float, list[int], list[int]]] = []
            actions = range(self.data.n_actions) if self.data.n_actions > 1 else range(0)
            for action in actions:
                if action not in self.apart:
                    with_action = 2 * contexts + (self.data.taken == action)
                    gain = self.bet(with_action) - known - price
                    steps.append((gain, [], [action]))
            free = [one for one in self.candidates if one not in self.parents]
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
        for one in self.candidates:
            if one in self.parents:
                continue
            if one in doubtful:
                found.append((one, NOT_SURE))
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
