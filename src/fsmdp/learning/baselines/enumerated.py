"""What learners that enumerate share: counts by (action, state), rewards, a policy as a table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fsmdp.errors import ModelError
from fsmdp.learning.acting import Acting, Planned
from fsmdp.learning.baselines.fixed import NEVER
from fsmdp.learning.baselines.induction import Ends, Solved
from fsmdp.learning.baselines.states import check_structure, count_states, state_strides
from fsmdp.learning.known import known_reward_means
from fsmdp.learning.layout import cells_of
from fsmdp.learning.statistics import Statistics
from fsmdp.model.basis import Basis
from fsmdp.model.cases import Cases
from fsmdp.model.lookup import Integers
from fsmdp.model.rewards import Reward
from fsmdp.model.structure import RewardTerm, Structure
from fsmdp.model.tables import Table, bound_table
from fsmdp.model.variables import Scope
from fsmdp.planning.bellman import network_of_structure
from fsmdp.simulation.policies import BY_TABLE, policy_arrays

TIE = 1e-9
"""Actions whose values differ by less than this fraction of the largest reward are equal."""

Function = tuple[Table, Cases[Scope]]
"""A function of the state and the parents of its variables."""


class EnumeratedLearner:
    """A learner that writes every state out.

    It counts in the cells of one function that looks at all variables, one group for each action;
    a subclass may count further `functions`. A reward term looks at all variables too, unless the
    subclass gives its own `rewards`.
    """

    name = "EnumeratedLearner"
    heuristic = False

    def __init__(
        self,
        structure: Structure,
        *,
        seed: int,
        known_rewards: Sequence[Reward] | None,
        limit: int,
        functions: Sequence[Function] = (),
        rewards: Sequence[RewardTerm] | None = None,
    ) -> None:
        check_structure(self.name, structure)
        self.structure = structure
        self.n_states = count_states(self.name, structure, limit)
        self.n_actions = len(structure.actions)
        counted = _written_out(structure, self.n_states, functions, rewards)
        self.cells = cells_of(counted, network_of_structure(counted))
        self.statistics = Statistics.empty(self.cells)
        self.term_known, self.known_means = known_reward_means(counted, known_rewards)
        self.rng = np.random.default_rng(seed)
        learnt = [
            t for t, known in zip(structure.rewards, self.term_known, strict=True) if not known
        ]
        self.learnt_low = sum(term.low for term in learnt)
        self.learnt_high = sum(term.high for term in learnt)
        self.learnt_sigma = float(np.sqrt(sum(term.sigma**2 for term in learnt)))
        self.reward_span = sum(term.high - term.low for term in structure.rewards)

    @property
    def horizon(self) -> int:
        """Steps of an episode."""
        assert self.structure.horizon is not None
        return self.structure.horizon

    @property
    def episode(self) -> int:
        """k: the number of the episode that comes next, from 1."""
        return self.statistics.episodes + 1

    @property
    def visits(self) -> Integers:
        """Visits of each (action, state); a view."""
        return self.statistics.visits[-self.n_actions * self.n_states :].reshape(
            self.n_actions, self.n_states
        )

    @property
    def outcomes(self) -> Integers:
        """Next states of each (action, state); a view."""
        shape = (self.n_actions, self.n_states, self.n_states)
        return self.statistics.outcomes[-int(np.prod(shape)) :].reshape(shape)

    def reward_moments(self) -> Ends:
        """The known part of the mean reward of each (action, state), and what was seen of the rest.

        Zero where nothing was seen.
        """
        shape = (len(self.structure.rewards), self.n_actions, self.n_states)
        known = self.known_means.reshape(shape).sum(axis=0)
        seen = self.statistics.reward_sums.reshape(shape).sum(axis=0)
        return known, seen / np.maximum(self.visits, 1)

    def reward_bounds(self, log_term: float) -> Ends:
        """Bounds on the mean reward of each (action, state), all terms together.

        radius = sigma sqrt(2 log_term / n), clipped to the terms' bounds, which are all there is
        as long as nothing was seen. Without noise one visit tells.
        """
        known, seen = self.reward_moments()
        radius = self.learnt_sigma * np.sqrt(2 * log_term / np.maximum(self.visits, 1))
        low, high = self.learnt_low, self.learnt_high
        unseen = self.visits == 0
        return (
            known + np.where(unseen, low, np.clip(seen - radius, low, high)),
            known + np.where(unseen, high, np.clip(seen + radius, low, high)),
        )

    def follow(self, solved: Solved, replan_at: Integers | None = None) -> Planned:
        """The greedy policy of these values, ties by a draw; a new plan after every episode.

        `replan_at` holds, for each (action, state), the visits from which a new plan is due.
        """
        size = self.n_actions * self.n_states
        n_cells = len(self.statistics.visits)
        values = np.zeros((self.horizon, self.cells.layout.value_start[-1]))
        values[:, -self.n_states :] = solved.values
        q, widths = np.zeros((self.horizon, n_cells)), np.zeros((self.horizon, n_cells))
        q[:, -size:] = solved.q.reshape(self.horizon, size)
        widths[:, -size:] = solved.widths.reshape(self.horizon, size)
        due = np.full(n_cells, NEVER)
        due[-size:] = 0 if replan_at is None else replan_at.ravel()
        scale = TIE * max(1e-300, self.reward_span)
        table = (solved.q + scale * self.rng.random(solved.q.shape)).argmax(axis=1)
        policy = policy_arrays(BY_TABLE, state_strides(self.structure), table)
        return Planned(Acting(policy, values, q, widths, due), 0.0, np.nan)

    def replan(self) -> Planned:
        """A new policy from the statistics as they are."""
        raise NotImplementedError

    def describe(self) -> str:
        """The options that matter."""
        raise NotImplementedError

    def state(self) -> dict[str, np.ndarray]:
        """The random state."""
        return {"rng": np.array(json.dumps(self.rng.bit_generator.state))}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Take a state back."""
        generator: dict[str, Any] = json.loads(str(state["rng"]))
        self.rng.bit_generator.state = generator

    def __repr__(self) -> str:
        return f"{self.name}({self.describe()}; {self.statistics.episodes} episodes seen)"


def _written_out(
    structure: Structure,
    n_states: int,
    functions: Sequence[Function],
    rewards: Sequence[RewardTerm] | None,
) -> Structure:
    """The structure that is counted in; the function of all variables stands last."""
    sizes = tuple(variable.size for variable in structure.variables)
    everything = tuple(range(len(sizes)))
    n_actions = len(structure.actions)
    by_action = Cases((everything,) * n_actions, {a: a for a in range(n_actions)})
    number = bound_table(everything, np.arange(float(n_states)).reshape(sizes))
    if rewards is None:
        rewards = [replace(term, parents=by_action) for term in structure.rewards]
    nothing: Cases[Scope] = Cases(((),))
    return replace(
        structure,
        rewards=tuple(rewards),
        basis=Basis([*(table for table, _ in functions), number]),
        parents=(nothing, *(parents for _, parents in functions), by_action),
    )


def check_probability(delta: float) -> float:
    """The chance of a failure, or an error."""
    if not 0 < delta < 1:
        raise ModelError(f"delta: expected a probability between 0 and 1, found {delta}.")
    return float(delta)


def check_scale(scale: float) -> float:
    """What squared radii are multiplied by, or an error."""
    if not scale > 0:
        raise ModelError(f"scale: expected a number above 0, found {scale}; 1 is the theory's.")
    return float(scale)


def scale_label(scale: float) -> str:
    """How a description shows a scale: nothing for the theory's."""
    return "" if scale == 1.0 else f", heuristic: scale {scale:g}"
