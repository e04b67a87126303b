"""A learner that does not know who depends on whom: it finds out while it learns."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

import numpy as np

from fsmdp.discovery.parents import Limits, Search
from fsmdp.discovery.transitions import Transitions
from fsmdp.foundation.checks import as_choice, as_probability, as_scale, as_whole
from fsmdp.foundation.kinds import WHOLE, Positive, Probability
from fsmdp.learning.cells.confidence import CONFIDENCE
from fsmdp.learning.cells.kernel import count_episodes, counts_of
from fsmdp.learning.learners.learner import NEVER, Acting, Planned, heuristic_label
from fsmdp.learning.learners.memory import RememberingLearner
from fsmdp.learning.learners.registry import entry_of
from fsmdp.learning.learners.ucrl import UCRLFactored
from fsmdp.model.actions import ListedActions
from fsmdp.model.cases import Cases
from fsmdp.model.rewards import Reward
from fsmdp.model.structure import Structure
from fsmdp.model.tables import Floats
from fsmdp.model.variables import Scope
from fsmdp.policies.arrays import CompiledPolicy, by_chance

GROWTH = 0.1
"""Of the steps seen, until there is a new plan."""

TRIES = 1.0
"""Times the logarithm of all steps: an action taken less often is taken for one of its own."""

AT_RANDOM = 2.0
"""Times the logarithm of all steps: until actions were taken so often on average, chance chooses.
A plan tries one action in all states for a whole episode, chance all of them."""

PRICE = 1.0
"""What an input has to be worth, in the logarithm of how well it predicts; what was added in vain
is left out in the next plan."""


class UCRLDiscovering(RememberingLearner):
    """Optimism over confidence sets, in the structure that predicts best so far.

    Of the structure it is given, parents of functions and groups are not read; variables,
    actions, reward terms with their scopes, the basis, and what is stated to be independent are. It
    remembers all transitions. For each variable, parents and actions that move it otherwise are
    added as long as they predict it better, one value after another (`fsmdp.discovery`); under each
    of these actions, and under the others together, parents are looked for again among what was
    seen there. What was seen is then counted in that structure, and `UCRLFactored` plans.

    A set of parents is ruled out when the evidence that another input matters beyond it reaches
    what `delta` asks for; with probability 1 - `delta` the true one never is (bets hold at all
    times, whatever was done). One that is ruled out is not planned with, since that input predicts
    better and would have been added, unless there are `max_parents`. An action taken less than
    log(1 + steps) times is one of its own, of which little is known, and so it is tried; before
    actions were taken 2 log(1 + steps) times on average, they are taken at random. While
    parents are missing sets need not hold the truth: values are not proved to be optimistic, and
    the learner is heuristic.

    Source: Rosenberg and Mansour (2021), Oracle-efficient regret minimization in factored MDPs with
    unknown structure, for the idea: scopes that data have not ruled out. They plan for the best of
    them all, which takes an oracle; here one is chosen by how well it predicts.
    Cost: memory for all transitions; a plan counts them again.
    """

    name = "UCRLDiscovering"
    heuristic = True

    def __init__(
        self,
        structure: Structure,
        delta: Probability = 0.05,
        seed: int = 0,
        *,
        max_parents: Annotated[int, WHOLE] = 4,
        confidence: str = "chernoff",
        scale: Positive = 1.0,
        known_rewards: Sequence[Reward] | None = None,
    ) -> None:
        self.delta, self.scale = as_probability(delta), as_scale(scale)
        self.max_parents = as_whole(max_parents, "max_parents", 1)
        self.confidence = as_choice(confidence, "confidence", CONFIDENCE)
        self._known_rewards = known_rewards
        self._searched = 0  # transitions that the last search had
        self._found: Structure | None = None
        super().__init__(structure, seed=seed, known_rewards=known_rewards)

    def counted_structure(self) -> Structure:
        """Without parents: nothing is planned from these counts, but when to plan."""
        return replace(
            self.structure.with_parents(_nothing(self.structure)), independent=(), group_parents=()
        )

    @property
    def found(self) -> Structure:
        """The structure that was planned with last."""
        return self._found or self.structure.with_parents(_nothing(self.structure))

    def transitions(self) -> Transitions | None:
        """All that was seen, in order; None before the first episode."""
        return self._first(len(self.seen.actions)) if len(self.seen.actions) else None

    def replan(self) -> Planned:
        """Find the structure in what was seen, and plan in it, once actions were tried."""
        seen, seed = len(self.seen.actions), int(self.rng.integers(2**31))
        actions, layout = self.structure.actions, self.cells.layout
        # Of actions that are made of variables, chance tries a value of each at every step.
        kinds = max((*actions.sizes, actions.n_cases))
        if seen <= AT_RANDOM * kinds * math.log(1 + seen):
            chance = by_chance(self.structure.conditions)
            most = self.structure.largest_return
            values = np.zeros((self.horizon, int(layout.value_start[-1])))
            values[:, 0] = most  # the constant's: nothing is known
            return Planned(self._acting(chance, values), 0.0, abs(most))
        if seen > self._searched:
            self._search(seen)
        inner = UCRLFactored(
            self.found,
            delta=self.delta,
            seed=seed,
            confidence=self.confidence,
            scale=self.scale,
            known_rewards=self._known_rewards,
        )
        counts = counts_of(inner.statistics)
        record, lengths = self.seen.episodes(self.horizon)
        count_episodes(inner.cells.layout, counts, inner.term_known, record, lengths)
        inner.statistics.episodes = len(lengths)
        planned = inner.replan()
        values = np.ascontiguousarray(planned.acting.values[:, : layout.value_start[-1]])
        acting = self._acting(planned.acting.policy, values)
        return Planned(acting, planned.lift, planned.w_norm)

    def _acting(self, policy: CompiledPolicy, values: Floats) -> Acting:
        """What is followed; of Q and widths nothing is said, for the cells planned with differ."""
        n = self.statistics.visits
        due = np.full(len(n), NEVER)
        constant = self.cells.n_reward_cells
        due[constant] = max(n[constant] + 1, math.ceil((1 + GROWTH) * n[constant]))
        unsaid = np.full((self.horizon, len(self.cells.layout.cell_of)), np.nan)
        return Acting(policy, values, unsaid, unsaid.copy(), due)

    def _search(self, seen: int) -> None:
        """The structure that predicts best what was seen so far."""
        data = self._first(seen)
        limits = Limits(self.max_parents, -math.log(self.delta / 2), 0.1, 1)
        self._searched = seen
        taken = np.bincount(data.taken, minlength=data.n_actions)
        untried = np.flatnonzero(taken < TRIES * math.log(1 + seen)).tolist()
        self._found = self.structure.with_parents(
            [
                parents_by_action(data, position, limits, untried)
                for position in range(len(data.variables))
            ]
        )

    def _first(self, n_transitions: int) -> Transitions:
        seen = self.seen.first(n_transitions)
        return Transitions(
            self.structure.variables,
            self.structure.actions,
            seen.states.copy(),
            seen.actions.copy(),
            seen.following.copy(),
        )

    def state(self) -> dict[str, np.ndarray]:
        """What was seen, and how much of it the last search had."""
        return super().state() | {"searched": np.array(self._searched)}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Take a state back, and search again in what the last search had."""
        super().restore(state)
        searched = int(state["searched"])
        if not 0 <= searched <= len(self.seen.actions):
            raise ValueError("searched: expected no more transitions than were seen")
        if searched:
            self._search(searched)

    def describe(self) -> str:
        """The options that matter."""
        label = heuristic_label(True, self.scale)
        return (
            f"at random first, parents to be found, at most {self.max_parents}, "
            f"{self.confidence}, empirical weight, stagewise, "
            f"delta {self.delta:g}{label}"
        )


def parents_by_action(
    data: Transitions, position: int, limits: Limits, untried: Sequence[int]
) -> Cases[Scope]:
    """What predicts a variable best: under each action that moves it otherwise, and under the rest.

    Cost: as for `discover`, for one variable.
    """
    search = Search(data, position, limits)
    search.grow(PRICE)
    apart = sorted({*search.apart, *untried})
    groups = [_parents_where(data, ~np.isin(data.taken, apart), position, limits)]
    groups += [_parents_where(data, data.taken == action, position, limits) for action in apart]
    return Cases(tuple(groups), {action: group for group, action in enumerate(apart, 1)})


def _parents_where(data: Transitions, rows: np.ndarray, position: int, limits: Limits) -> Scope:
    """Parents under some actions, which are taken for one."""
    if not rows.any():
        return ()
    taken = np.zeros(int(rows.sum()), dtype=np.int64)
    names = data.actions if data.actions.variables else ListedActions("these")
    part = Transitions(data.variables, names, data.inputs[rows], taken, data.outcomes[rows])
    search = Search(part, position, limits)
    search.grow(PRICE)
    return tuple(sorted(search.parents))


def _nothing(structure: Structure) -> list[Cases[Scope]]:
    alone: Cases[Scope] = Cases(((),))
    return [alone] * len(structure.variables)


WHAT = "optimism in a structure that it finds while it learns"
ENTRY = entry_of(UCRLDiscovering, "unknown", "UCRL, structure unknown", WHAT)
