"""Cuts: inequalities of single (state, action) pairs, and the masters that hold them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from scipy import sparse

from fsmdp.elimination import Maximum
from fsmdp.foundation.streams import Purpose, generator
from fsmdp.model.actions import Actions
from fsmdp.model.tables import Floats
from fsmdp.planning.bellman import BellmanNetwork
from fsmdp.planning.clock import Clock
from fsmdp.planning.conditioning import Conditioning
from fsmdp.planning.greedy import greedy_lookup
from fsmdp.planning.inequalities import Cuts, States, function_values, joined
from fsmdp.planning.interior import InteriorProgram
from fsmdp.planning.solution import REACH, Solution, dual_bound
from fsmdp.policies.arrays import by_chance
from fsmdp.policies.greedy import BestActions
from fsmdp.policies.joint import draw_joint_actions

CUTS_PER_STEP = 12
CUTS_PER_COLUMN = 5
SLACK = 5.0
"""A cut is forgotten only when it is slacker than this, in units of the largest reward."""


MOST_START_NUMBERS = 2**24
"""Numbers in the cuts that a joint master starts from, about 20 bytes each."""


def random_cuts(network: BellmanNetwork, seed: int = 0) -> Cuts:
    """Cuts to start from when no stagewise run left any: random states and actions.

    Where there are many steps, fewer states of each: no more than MOST_START_NUMBERS numbers.
    """
    states = first_states(network, seed)
    rng = generator(seed, Purpose.CUTS, 1)
    most = MOST_START_NUMBERS // (2 * len(network.basis) * network.n_weight_rows)
    if len(states) > most:
        states = states[rng.permutation(len(states))[: max(1, most)]]
    steps = np.repeat(np.arange(network.n_weight_rows), len(states))
    states = np.tile(states, (network.n_weight_rows, 1))
    if isinstance(network.actions, Actions):
        chance = by_chance(len(network.variables), network.actions).joint
        drawn = draw_joint_actions(chance, len(states), rng)
        return Cuts(steps, np.hstack([states, drawn]), np.zeros(len(steps), dtype=np.int64))
    actions = rng.integers(len(network.actions), size=len(steps))
    return Cuts(steps, states, actions)


class Master:
    """The inequalities held so far, in a box that grows until it holds nothing back.

    Solved by the interior-point method: it ends in the middle of the optimal face, where cuts go
    deep, and needs a fraction of the rounds that the corners of the simplex method take. Columns
    are coordinates of the basis, those of all steps one after another.
    """

    def __init__(
        self, means: Floats, centre: Floats, value: float, conditioning: Conditioning
    ) -> None:
        self._units = conditioning.steps(len(centre))
        self._cost = np.zeros(centre.size)
        self._cost[: conditioning.n_coordinates] = means @ conditioning.matrix
        self._centre = centre.ravel()
        room = max(value, 1.0) / np.sqrt(centre.size)
        self._radius = np.maximum(2 * np.abs(self._centre), room)
        self._matrix = sparse.csr_matrix((0, centre.size))
        self._lower = np.zeros(0)

    @property
    def n_cuts(self) -> int:
        """Cuts held at present."""
        return len(self._lower)

    def add(self, matrix: sparse.csr_matrix, lower: Floats) -> None:
        """Further cuts, in weights."""
        in_units = matrix @ self._units
        self._matrix = sparse.csr_matrix(sparse.vstack([self._matrix, in_units]))
        self._lower = np.concatenate([self._lower, lower])

    def solve(self, clock: Clock) -> Solution:
        """The coordinates in the middle of the optimal face."""
        return InteriorProgram(self._cost, *self._rows(self._radius)).solve(clock)

    def lower_bound(self, found: Solution) -> float:
        """A value below which the cuts let no coordinates go in ten times the box.

        By the duals, whatever the solver did. If it is close to the value found, the box holds
        nothing back: the value is that of the cuts alone.
        """
        return dual_bound(self._cost, *self._rows(REACH * self._radius), found)

    def grow_box(self) -> None:
        """Ten times the room."""
        self._radius *= REACH

    def forget_slack_cuts(self, found: Solution) -> None:
        """Drop what is slack by far, once there are many cuts for each coordinate."""
        if self.n_cuts <= CUTS_PER_COLUMN * len(self._centre):
            return
        slack = self._matrix @ found.values - self._lower
        kept = np.flatnonzero(slack <= SLACK)
        self._matrix, self._lower = self._matrix[kept], self._lower[kept]

    def _rows(self, radius: Floats) -> tuple[sparse.csr_matrix, Floats]:
        """Cuts, then the sides of a box."""
        sides = sparse.identity(len(self._centre), format="csr")
        matrix = sparse.csr_matrix(sparse.vstack([self._matrix, sides, -sides]))
        box = [self._centre - radius, -self._centre - radius]
        return matrix, np.concatenate([self._lower, *box])


class StatePool:
    """States whose inequality V(s) >= max_a Q(s, a) a stage's master holds; all stages share it."""

    def __init__(self, network: BellmanNetwork, states: States) -> None:
        self.network = network
        sizes = [variable.size for variable in network.variables]
        lookup = greedy_lookup(network)
        self._best_actions = BestActions(lookup, sizes, actions=network.actions)
        self._entries = np.zeros(0)
        self.states = states
        self._features = function_values(network, states)
        self._right_sides = np.zeros(len(states))
        self._actions = np.zeros(len(states), dtype=np.int64)

    def set_entries(self, entries: Floats) -> None:
        """New terms of Q: new right-hand sides for every state."""
        self._entries = entries
        self._right_sides, self._actions = self._best(self.states)

    def inequalities(self, first: int = 0) -> tuple[sparse.csr_matrix, Floats]:
        """Rows and right-hand sides of the states from a position on."""
        return sparse.csr_matrix(self._features[first:]), self._right_sides[first:]

    def add(self, states: States) -> tuple[sparse.csr_matrix, Floats]:
        """Further states, those already there left out, and their inequalities."""
        states = states[:, : len(self.network.variables)]
        known = {state.tobytes() for state in self.states}
        fresh = [state for state in np.unique(states, axis=0) if state.tobytes() not in known]
        first = len(self.states)
        if fresh:
            new = np.array(fresh)
            right_sides, actions = self._best(new)
            self.states = np.vstack([self.states, new])
            self._features = np.vstack([self._features, function_values(self.network, new)])
            self._right_sides = np.concatenate([self._right_sides, right_sides])
            self._actions = np.concatenate([self._actions, actions])
        return self.inequalities(first)

    def tightest(self, step: int, weights: Floats, most: int) -> Cuts:
        """The cuts of one step with the least slack."""
        order = np.argsort(self._features @ weights - self._right_sides, kind="stable")[:most]
        states, actions = self.states[order], self._actions[order]
        if actions.ndim == 2:
            states, actions = np.hstack([states, actions]), np.zeros(len(order), dtype=np.int64)
        return Cuts(np.full(len(order), step), states, actions)

    def forget_slack(self, weights: Floats) -> None:
        """Drop the slackest states when there are many."""
        most = CUTS_PER_COLUMN * self._features.shape[1]
        if len(self.states) <= 2 * most:
            return
        order = np.argsort(self._features @ weights - self._right_sides, kind="stable")
        dropped = order[most:]
        for name in ("states", "_features", "_right_sides", "_actions"):
            setattr(self, name, np.delete(getattr(self, name), dropped, axis=0))

    def _best(self, states: States) -> tuple[Floats, States]:
        return self._best_actions(self._entries, states)


def first_states(network: BellmanNetwork, seed: int) -> States:
    """The two corners, and random states enough to hold the weights in."""
    sizes = np.array([variable.size for variable in network.variables])
    rng = generator(seed, Purpose.CUTS)
    random = rng.integers(sizes, size=(2 * len(network.basis), len(sizes)))
    mirrored = sizes - 1 - random
    return np.unique(np.vstack([0 * sizes, sizes - 1, random, mirrored]), axis=0)


def worst_actions(violations: Floats) -> States:
    """Actions whose violation is positive and not far below the largest, at most a few dozen."""
    largest = violations.max()
    if largest <= 0:
        return np.zeros(0, dtype=np.int64)
    order = np.argsort(-violations, kind="stable")[:CUTS_PER_STEP]
    return np.asarray(order[violations[order] > 0.05 * largest])


def violated_cuts(worst: Iterable[Maximum], least: float, n_inputs: int) -> tuple[Floats, Cuts]:
    """The largest violation of every step, and cuts of the worst actions where it is above least.

    Maxima are let go of one by one: each holds all messages of its step.
    """
    violations, parts = [], []
    for step, maximum in enumerate(worst):
        violations.append(maximum.value)
        actions = worst_actions(maximum.values if maximum.value > least else np.zeros(1))
        entries = None if maximum.is_exact else maximum.picked(actions)
        states = maximum.states(actions)[:, :n_inputs]
        parts.append(Cuts(np.full(len(actions), step), states, actions, entries))
    return np.array(violations), joined(parts)
