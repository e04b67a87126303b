"""What learners that enumerate share: counts by (action, state), rewards, a policy as a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple, TypedDict

import numpy as np

from fsmdp.compiled import compiled
from fsmdp.errors import ModelError
from fsmdp.foundation.checks import as_whole, check_size, show, show_count
from fsmdp.foundation.kinds import Positive, Probability
from fsmdp.learning.cells.confidence import reward_bounds
from fsmdp.learning.learners.learner import (
    NEVER,
    Acting,
    CountingLearner,
    Optimism,
    Planned,
    tie_scale,
)
from fsmdp.model import variables
from fsmdp.model.basis import Basis
from fsmdp.model.cases import Cases
from fsmdp.model.lookup import Lookup, deselect, locate, select
from fsmdp.model.rewards import Reward
from fsmdp.model.structure import RewardTerm, Structure
from fsmdp.model.tables import Floats, Integers, Table, bound_table
from fsmdp.model.variables import Scope, table_size
from fsmdp.policies.arrays import BY_TABLE, policy_arrays

Ends = tuple[Floats, Floats]
"""Lower and upper ends, one of each for every (action, state)."""

Means = Callable[[Floats], Ends]
"""From values of the following step to bounds on their mean at every (action, state)."""


class Solved(NamedTuple):
    """Values of every step and state; index l belongs to step l + 1."""

    values: Floats  # (horizon, n_states)
    q: Floats  # (horizon, n_actions, n_states)
    widths: Floats  # (horizon, n_actions, n_states) what the bounds leave open about q


def backward_induction(
    learner: EnumeratedLearner, rewards: Ends, means: Means, at_most: Floats | None = None
) -> Solved:
    """Optimistic values: the upper ends, step by step from the last.

    Q_l(s, a) = R_high(s, a) + discount * min(mean_high(V_{l+1})(s, a), max V_{l+1}),
    V_l(s) = max_a Q_l(s, a), and Q_l never above `at_most`.
    No mean leaves the range of V_{l+1}: this caps values by what can still be earned. Actions that
    are not allowed have a Q of minus infinity, and terminal states the value 0.
    Cost: horizon times that of `means`.
    """
    reward_low, reward_high = rewards
    horizon, discount = learner.horizon, learner.structure.discount
    allowed, over, restricted = learner.allowed, learner.over, bool(learner.structure.conditions)
    shape = (horizon, *reward_high.shape)
    q, widths = np.zeros(shape), np.zeros(shape)
    values = np.zeros((horizon, shape[2]))
    following = np.zeros(shape[2])
    for step in reversed(range(horizon)):
        low, high = means(following)
        lowest, highest = following.min(), following.max()
        q[step] = reward_high + discount * np.clip(high, lowest, highest)
        pessimistic = reward_low + discount * np.clip(low, lowest, highest)
        if at_most is not None:
            np.minimum(q[step], at_most[step], out=q[step])
        widths[step] = np.maximum(q[step] - pessimistic, 0.0)
        if restricted:
            widths[step][~allowed], q[step][~allowed] = 0.0, -np.inf
        following = values[step] = q[step].max(axis=0)
        if restricted:
            following[over] = 0.0
    return Solved(values, q, widths)


ENTRY_LIMIT = 2**25
"""Most transition counts, |states|^2 |actions|, of a learner that enumerates: 256 MiB of them."""


def count_states(name: str, structure: Structure, limit: int) -> int:
    """Number of states, or a SizeError when their transitions are too many to count."""
    if structure.actions.variables:
        raise ModelError(
            f"{name} counts every action by itself, and these are made of variables; use "
            "UCRLFactored or PSRLFactored, or the structure and environment of model.listed()."
        )
    n_states = table_size(variable.size for variable in structure.variables)
    count, actions = show_count(n_states), len(structure.actions)
    check_size(
        n_states**2 * actions,
        limit,
        f"{name} writes every state out: ({count} states)^2 x {actions} actions =",
        f"use UCRLFactored or PSRLFactored, which count {structure.cells} cells here, a smaller "
        "model, or a larger limit=",
        unit="transition counts",
    )
    return n_states


def state_strides(structure: Structure) -> Integers:
    """What each variable's value counts for in the number of a state."""
    return variables.state_strides([variable.size for variable in structure.variables])


def all_states(structure: Structure) -> Integers:
    """Every state, in the order of their numbers."""  # (n_states, n_variables)
    sizes = [variable.size for variable in structure.variables]
    return np.ascontiguousarray(np.indices(sizes).reshape(len(sizes), -1).T, dtype=np.int64)


Function = tuple[Table, Cases[Scope]]
"""A function of the state and the parents of its variables."""


class SharedOptions(TypedDict, total=False):
    """Options by name that every optimistic learner has that enumerates."""

    scale: float
    known_rewards: Sequence[Reward] | None
    limit: int


class EnumeratedLearner(CountingLearner):
    """A learner that writes every state out, optimistic unless its class says otherwise.

    It counts in the cells of one function that depends on all variables, one group for each action;
    a subclass may count further functions. A reward term depends on all variables too, unless the
    subclass says otherwise.
    """

    name = "EnumeratedLearner"
    optimistic = True
    counts_by_variable = False  # also each variable by its own parents, and rewards term by term

    def __init__(
        self,
        structure: Structure,
        delta: Probability = 0.05,
        seed: int = 0,
        *,
        scale: Positive = 1.0,
        known_rewards: Sequence[Reward] | None = None,
        limit: int = ENTRY_LIMIT,
    ) -> None:
        self.optimism = Optimism(delta, scale)
        self.heuristic = self.heuristic or self.optimism.scale != 1.0
        self.limit = as_whole(limit, "limit", 1)
        super().__init__(structure, seed=seed, known_rewards=known_rewards)
        learnt = [
            t for t, known in zip(structure.rewards, self.term_known, strict=True) if not known
        ]
        self.learnt_low = sum(term.low for term in learnt)
        self.learnt_high = sum(term.high for term in learnt)
        self.learnt_sigma = float(np.sqrt(sum(term.sigma**2 for term in learnt)))
        self.reward_span = sum(term.high - term.low for term in structure.rewards)
        states, conditions = all_states(structure), structure.conditions
        self.over = conditions.is_terminal(states)  # (n_states,)
        self.allowed = conditions.mask(states).T | self.over  # (n_actions, n_states)

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
        return one_for_each_variable(self.structure, self.name) if self.counts_by_variable else ()

    def counted_rewards(self, by_action: Cases[Scope]) -> tuple[RewardTerm, ...]:
        """Where rewards are counted: by action and state, or where the structure says."""
        terms = self.structure.rewards
        if self.counts_by_variable:
            return terms
        return tuple(replace(term, parents=by_action) for term in terms)

    @cached_property
    def variables(self) -> VariableCells:
        """Where variables and terms are counted, of a learner that counts them by themselves."""
        return VariableCells(self)

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
        q[:, -size:] = np.where(self.allowed, solved.q, 0.0).reshape(self.horizon, size)
        widths[:, -size:] = solved.widths.reshape(self.horizon, size)
        due = np.full(n_cells, NEVER)
        due[-size:] = 0 if replan_at is None else replan_at.ravel()
        scale = tie_scale(self.reward_span)
        table = (solved.q + scale * self.rng.random(solved.q.shape)).argmax(axis=1)
        policy = policy_arrays(BY_TABLE, state_strides(self.structure), table)
        return Planned(Acting(policy, values, q, widths, due), 0.0, np.nan)

    def options(self) -> Sequence[str]:
        """Options besides delta and scale, as a description shows them."""
        return ()

    def describe(self) -> str:
        """The options that matter."""
        return self.optimism.describe(self.options(), self.heuristic)


class VariableCells:
    """Where each variable and reward term is counted, at every (action, state) of a learner.

    The part of learners that count each variable by itself, by its own parents: those of the
    smallest basis function that depends on it. Rewards are learnt term by term.
    """

    def __init__(self, learner: EnumeratedLearner) -> None:
        self.learner = learner
        layout = learner.cells.layout
        n_items = len(layout.lookup.defaults) - 1  # the number of the state is left out
        found = np.zeros((learner.n_actions, learner.n_states, n_items), dtype=np.int64)
        fill_cells(layout.lookup, all_states(learner.structure), found)
        self._terms = found[:, :, : layout.n_terms]
        self.transitions = np.ascontiguousarray(
            found[:, :, layout.n_terms + 1 :] - learner.cells.n_reward_cells
        )
        """Transition cell of each variable."""  # (n_actions, n_states, n_variables)

    def rewards(self, delta: float) -> Ends:
        """Bounds on the mean reward of each (action, state), added up over the terms."""
        one = self.learner
        low, high = reward_bounds(one.cells, one.statistics, one.episode, delta, one.optimism.scale)
        known = one.cell_known
        low[known] = high[known] = one.known_means[known]
        return low[self._terms].sum(axis=2), high[self._terms].sum(axis=2)


def one_for_each_variable(structure: Structure, name: str) -> list[Function]:
    """For each variable a function that tells its values apart, with the variable's parents."""
    functions: list[Function] = []
    for position, variable in enumerate(structure.variables):
        looking = [
            (len(table.scope), number)
            for number, table in enumerate(structure.basis)
            if position in table.scope
        ]
        if not looking:
            raise ModelError(
                f"{name}: no basis function of the structure depends on {show(variable.name)}, "
                "so its parents are unknown; use a basis that has every variable (Basis.singles)."
            )
        table = bound_table((position,), np.arange(float(variable.size)))
        functions.append((table, structure.parents[min(looking)[1]]))
    return functions


@compiled()
def fill_cells(lookup: Lookup, states: Integers, cell_at: Integers) -> None:
    """The cell of each item at every (action, state)."""
    tables = lookup.defaults.copy()
    for action in range(cell_at.shape[0]):
        select(lookup, action, tables)
        for state in range(cell_at.shape[1]):
            for item in range(cell_at.shape[2]):
                cell_at[action, state, item] = locate(lookup, tables[item], states[state])
        deselect(lookup, action, tables)
