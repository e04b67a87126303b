"""What learners that enumerate share: counts by (action, state), rewards, a policy as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypedDict

import numpy as np

from fsmdp.foundation.checks import as_whole
from fsmdp.learning.learners.acting import NEVER, Acting, Planned
from fsmdp.learning.learners.baselines.induction import Ends, Solved
from fsmdp.learning.learners.baselines.states import ENTRY_LIMIT, count_states, state_strides
from fsmdp.learning.learners.counting import CountingLearner
from fsmdp.learning.learners.ties import tie_scale
from fsmdp.learning.options import as_probability, as_scale, heuristic_label
from fsmdp.model.basis import Basis
from fsmdp.model.cases import Cases
from fsmdp.model.lookup import Integers
from fsmdp.model.rewards import Reward
from fsmdp.model.structure import RewardTerm, Structure
from fsmdp.model.tables import Floats, Table, bound_table
from fsmdp.model.variables import Scope
from fsmdp.policies.arrays import BY_TABLE, policy_arrays

Function = tuple[Table, Cases[Scope]]
"""A function of the state and the parents of its variables."""


class EnumeratedLearner(CountingLearner):
    """A learner that writes every state out.

    It counts in the cells of one function that looks at all variables, one group for each action;
    a subclass may count further functions. A reward term looks at all variables too, unless the
    subclass says otherwise.
    """

    name = "EnumeratedLearner"

    def __init__(
        self,
        structure: Structure,
        *,
        seed: int = 0,
        known_rewards: Sequence[Reward] | None = None,
        limit: int = ENTRY_LIMIT,
    ) -> None:
        self.limit = as_whole(limit, "limit", 1)
        super().__init__(structure, seed=seed, known_rewards=known_rewards)
        learnt = [
            t for t, known in zip(structure.rewards, self.term_known, strict=True) if not known
        ]
        self.learnt_low = sum(term.low for term in learnt)
        self.learnt_high = sum(term.high for term in learnt)
        self.learnt_sigma = float(np.sqrt(sum(term.sigma**2 for term in learnt)))
        self.reward_span = sum(term.high - term.low for term in structure.rewards)

    def counted_structure(self) -> Structure:
        """The structure that is counted in; the function of all variables stands last."""
        structure = self.structure
        self.n_states = count_states(self.name, structure, self.limit)
        self.n_actions = len(structure.actions)
        sizes = tuple(variable.size for variable in structure.variables)
        everything = tuple(range(len(sizes)))
        by_action = Cases((everything,) * self.n_actions, {a: a for a in range(self.n_actions)})
        number = bound_table(everything, np.arange(float(self.n_states)).reshape(sizes))
        functions = self.counted_functions()
        nothing: Cases[Scope] = Cases(((),))
        return replace(
            structure,
            rewards=self.counted_rewards(by_action),
            basis=Basis([*(table for table, _ in functions), number]),
            parents=(nothing, *(parents for _, parents in functions), by_action),
        )

    def counted_functions(self) -> Sequence[Function]:
        """What is counted besides the number of the state."""
        return ()

    def counted_rewards(self, by_action: Cases[Scope]) -> tuple[RewardTerm, ...]:
        """Where rewards are counted: by action and state."""
        return tuple(replace(term, parents=by_action) for term in self.structure.rewards)

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

    def reward_bounds(self, log_term: float | Floats) -> Ends:
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
        scale = tie_scale(self.reward_span)
        table = (solved.q + scale * self.rng.random(solved.q.shape)).argmax(axis=1)
        policy = policy_arrays(BY_TABLE, state_strides(self.structure), table)
        return Planned(Acting(policy, values, q, widths, due), 0.0, np.nan)


class Optimism(TypedDict, total=False):
    """Options by name that all learners have that enumerate and are optimistic."""

    scale: float
    known_rewards: Sequence[Reward] | None
    limit: int


class AllOptimism(Optimism, total=False):
    """All of them."""

    delta: float
    seed: int


class OptimisticLearner(EnumeratedLearner):
    """A learner that enumerates and plans for the best that its counts allow.

    `delta` is the chance that they allow too little, `scale` multiplies squared radii or bonuses;
    anything but 1 makes the learner heuristic.
    """

    name = "OptimisticLearner"
    optimistic = True

    def __init__(
        self,
        structure: Structure,
        delta: float = 0.05,
        seed: int = 0,
        *,
        scale: float = 1.0,
        known_rewards: Sequence[Reward] | None = None,
        limit: int = ENTRY_LIMIT,
    ) -> None:
        self.delta, self.scale = as_probability(delta), as_scale(scale)
        self.heuristic = self.heuristic or self.scale != 1.0
        super().__init__(structure, seed=seed, known_rewards=known_rewards, limit=limit)

    def options(self) -> Sequence[str]:
        """Options besides delta and scale, as a description shows them."""
        return ()

    def describe(self) -> str:
        """The options that matter."""
        label = heuristic_label(self.heuristic, self.scale)
        return f"{', '.join([*self.options(), f'delta {self.delta:g}'])}{label}"
