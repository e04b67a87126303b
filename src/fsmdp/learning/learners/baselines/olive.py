"""OLIVE: of all value functions that are left, follow the one that promises most, or drop it."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import as_positive, as_whole, check_size, plural
from fsmdp.foundation.kinds import WHOLE, Positive, declared_options
from fsmdp.learning.cells.layout import cell_lookup
from fsmdp.learning.cells.statistics import known_reward_means
from fsmdp.learning.learners.baselines.enumerated import (
    ENTRY_LIMIT,
    EnumeratedLearner,
    all_states,
    count_states,
    fill_cells,
    one_for_each_variable,
    state_strides,
)
from fsmdp.learning.learners.learner import NEVER, Learner, Planned, check_structure
from fsmdp.learning.learners.memory import RememberingLearner
from fsmdp.learning.learners.registry import LearnerContext, LearnerEntry, Options
from fsmdp.model.basis import Basis
from fsmdp.model.cases import Cases
from fsmdp.model.rewards import Reward
from fsmdp.model.structure import Structure
from fsmdp.model.tables import Floats, Integers, read_only_array
from fsmdp.model.variables import Scope
from fsmdp.policies.arrays import BY_TABLE, policy_arrays

MOST_HYPOTHESES = 2**12
MOST_LEVELS = 1000


def grid_values(structure: Structure, known: Sequence[Reward] | None, levels: int) -> Floats:
    """Q* of every model that draws each variable by itself, with chances k / (levels - 1).

    Shape (n_hypotheses, horizon, n_actions, n_states). A cell of a variable of size v has
    binomial(levels + v - 2, v - 1) distributions, and the class one model for each choice in all
    cells: the number grows exponentially with the cells, and too many are refused.
    Cost: hypotheses horizon |states|^2 |actions|.
    """
    steps = as_whole(levels, "levels", 2, MOST_LEVELS) - 1
    n_states = count_states("OLIVE", structure, ENTRY_LIMIT)
    functions = one_for_each_variable(structure, "OLIVE")
    nothing: Cases[Scope] = Cases(((),))
    counted = replace(
        structure,
        basis=Basis([table for table, _ in functions]),
        parents=(nothing, *(parents for _, parents in functions)),
        contexts=(),
    )
    is_known, means = known_reward_means(counted, known)
    if not is_known.all():
        raise ModelError(
            "OLIVE: hypotheses are made for known rewards, and some terms are not known; give "
            "known_rewards=model.rewards."
        )
    sizes = [variable.size for variable in structure.variables]
    grids = [_simplex_grid(size, steps) for size in sizes]
    n_cells = [counted.cells_of(number + 1) for number in range(len(sizes))]
    count = 1
    for grid, cells in zip(grids, n_cells, strict=True):
        count *= len(grid) ** cells
    check_size(
        count,
        MOST_HYPOTHESES,
        f"OLIVE: {sum(n_cells)} cells with {levels} levels are",
        "use fewer levels or a smaller model; UCRLFactored and PSRLFactored count in the cells and "
        "list no hypotheses",
        unit="hypotheses",
    )
    check_size(
        count * n_states**2 * len(structure.actions),
        ENTRY_LIMIT,
        f"OLIVE: transitions of {count} hypotheses are",
        "use fewer levels or a smaller model",
    )
    lookup = cell_lookup(counted)
    n_actions, n_terms = len(structure.actions), len(structure.rewards)
    at = np.zeros((n_actions, n_states, n_terms + 1 + len(sizes)), dtype=np.int64)
    states = all_states(structure)
    fill_cells(lookup, states, at)
    rewards = means[at[:, :, :n_terms]].sum(axis=2)
    first = len(means) + 1  # after the cells of rewards and of the constant
    choices = [grid for grid, cells in zip(grids, n_cells, strict=True) for _ in range(cells)]
    transitions = _transitions(choices, at[:, :, n_terms + 1 :] - first, states)
    assert structure.horizon is not None
    found = np.zeros((count, structure.horizon, n_actions, n_states))
    following = np.zeros((count, n_states))
    for step in reversed(range(structure.horizon)):
        means = np.einsum("asnt,nt->nas", transitions, following)
        found[:, step] = rewards + structure.discount * means
        following = found[:, step].max(axis=1)
    return found


def _simplex_grid(size: int, steps: int) -> Floats:
    """All distributions over `size` values whose chances are multiples of 1 / steps."""
    counts = (one for one in product(range(steps + 1), repeat=size - 1) if sum(one) <= steps)
    return np.array([[*one, steps - sum(one)] for one in counts]) / steps


def _transitions(choices: Sequence[Floats], cells: Integers, states: Integers) -> Floats:
    """P(s' | s, a) as a product over variables, for every choice of a distribution a cell.

    Shape (n_actions, n_states, n_hypotheses, n_states).
    """
    shape = tuple(map(len, choices))
    chosen = np.indices(shape).reshape(len(shape), -1)  # (n_cells, n_hypotheses)
    width = max(grid.shape[1] for grid in choices)
    rows = np.array(
        [
            np.pad(grid, ((0, 0), (0, width - grid.shape[1])))[which]
            for grid, which in zip(choices, chosen, strict=True)
        ]
    )  # (n_cells, n_hypotheses, width)
    found = np.ones((*cells.shape[:2], chosen.shape[1], len(states)))
    for variable in range(cells.shape[2]):
        found *= rows[cells[:, :, variable]][..., states[:, variable]]
    return found


ACCURACY, RANK, BATCH, LEVELS = 0.1, 1.0, 1000, 5
MOST_EPISODES = 2**40
EVALUATE, DONE = -1, -2
"""What the episodes of a batch are for; from 0 on, the action that is tried at one step."""


class OLIVE(RememberingLearner, EnumeratedLearner):
    """Optimism-led elimination over a finite class of functions f_l(s, a).

    Of those left, take the f that promises most at the start and follow its greedy policy for a
    batch of episodes. If its average Bellman errors E_l = mean of f_l(s, a) - r - max f_{l+1}(s')
    add up to at most 5 epsilon / 8, f keeps its promise: the policy is followed from then on.
    Otherwise take the step l of the largest error, try every action there after the same roll-in,
    and drop every f' of the class whose own average error over these states,
    mean of |A| 1[a = greedy in f'] (f'_l(s, a) - r - max f'_{l+1}(s')), is beyond
    epsilon / (12 H sqrt(M)) in absolute value.
    epsilon is `accuracy` in units of the largest return, M is `rank`, `batch` the episodes for
    either purpose. The source draws the action of step l at random; here each is tried equally
    often. It draws starting states beforehand; here those of all episodes so far are used. With so
    many iterations as Bellman rank and horizon allow, and batches as large as its theorem asks for,
    the source finds a policy within epsilon; here batches are chosen: **every result is
    heuristic**. If all are dropped the class did not hold the truth, or batches were too small: the
    last policy is kept, and `left` is 0.
    Cost of an iteration: the number of functions left times the transitions of a batch.
    Source: Jiang, Krishnamurthy, Agarwal, Langford and Schapire (2017), Contextual decision
    processes with low Bellman rank are PAC-learnable, Algorithm 1.
    """

    name = "OLIVE"
    optimistic = False
    heuristic = True

    def __init__(
        self,
        structure: Structure,
        functions: ArrayLike,
        seed: int = 0,
        *,
        accuracy: Positive = ACCURACY,
        rank: Positive = RANK,
        batch: Annotated[int, WHOLE] = BATCH,
        known_rewards: Sequence[Reward] | None = None,
        limit: int = ENTRY_LIMIT,
    ) -> None:
        self.accuracy = as_positive(accuracy, "accuracy", "it is in units of the largest return")
        self.rank = as_positive(rank, "rank", "it is the Bellman rank")
        self.batch = as_whole(batch, "batch", 1, MOST_EPISODES)
        if check_structure(self.name, structure).conditions:
            raise ModelError(
                f"{self.name} takes every action in every state to explore, and this structure has "
                "actions that are not allowed everywhere, or terminal states; use another learner."
            )
        super().__init__(structure, seed=seed, known_rewards=known_rewards, limit=limit)
        self.functions = self._check(functions)  # (n, horizon, n_actions, n_states)
        self.alive = np.ones(len(self.functions), dtype=np.bool_)
        self.iterations = 0
        self._chosen, self._purpose, self._step, self._until = 0, EVALUATE, 0, 0
        self._strides = state_strides(structure)

    @property
    def left(self) -> int:
        """How many functions were not dropped."""
        return int(self.alive.sum())

    @property
    def epsilon(self) -> float:
        """The accuracy in units of rewards."""
        return self.accuracy * (self.horizon * self.reward_span or 1.0)

    def given(self) -> list[np.ndarray]:
        """The functions too."""
        return [*super().given(), self.functions]

    def replan(self) -> Planned:
        """Go on with a batch, or draw conclusions from it."""
        episodes = self.statistics.episodes
        if episodes == 0:
            self._choose()
        elif episodes >= self._until and self._purpose != DONE:
            self._conclude()
        table = self.functions[self._chosen].argmax(axis=1)  # (horizon, n_states)
        if self._purpose >= 0:
            table[self._step] = self._purpose
        due = np.full(len(self.statistics.visits), NEVER, dtype=np.int64)
        if self._purpose != DONE:
            steps = self.cells.n_reward_cells  # the constant's only cell is visited at every step
            due[steps] = self.statistics.visits[steps] + self.horizon * (self._until - episodes)
        return self.unclaimed(policy_arrays(BY_TABLE, self._strides, table), due)

    def bellman_errors(self, members: Floats, step: int) -> Floats:
        """f_l(s, a) - r - max f_{l+1}(s') at each remembered transition of a step, by member."""
        seen = self.seen
        of_step = seen.steps == step
        states, following = (
            part[of_step] @ self._strides for part in (seen.states, seen.following)
        )
        actions = seen.actions[of_step]
        known, _ = self.reward_moments()
        rewards = seen.rewards[of_step] + known[actions, states]
        errors = members[:, step][:, actions, states] - rewards
        if step + 1 < self.horizon:
            best = members[:, step + 1].max(axis=1)[:, following]
            errors -= self.structure.discount * best
        return np.asarray(errors)

    def describe(self) -> str:
        """The options that matter."""
        return (
            f"{plural(len(self.functions), 'function')}, accuracy {self.accuracy:g}, rank "
            f"{self.rank:g}, batches of {self.batch}, heuristic"
        )

    def state(self) -> dict[str, np.ndarray]:
        """Which functions are left, and what the batch is for."""
        at = [self._chosen, self._purpose, self._step, self._until, self.iterations]
        return super().state() | {"alive": self.alive, "at": np.array(at, dtype=np.int64)}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Take a state back."""
        super().restore(state)
        alive, at = state["alive"], state["at"]
        if alive.shape != self.alive.shape or alive.dtype != np.bool_:
            raise ValueError("alive: expected a truth value for each function")
        if at.shape != (5,) or at.dtype != np.int64:
            raise ValueError("at: expected five whole numbers")
        chosen, purpose, step, until, iterations = at.tolist()
        if not (
            0 <= chosen < len(alive)
            and DONE <= purpose < self.n_actions
            and 0 <= step < self.horizon
            and min(until, iterations) >= 0
        ):
            raise ValueError("at: expected a function, a purpose and a step")
        self.alive, self.iterations = alive.copy(), iterations
        self._chosen, self._purpose, self._step, self._until = chosen, purpose, step, until

    def _choose(self) -> None:
        """The function that promises most at the starts seen so far, before any at all states."""
        starts = self.statistics.starts[-self.n_states :].astype(float)
        if not starts.any():
            starts += 1.0
        promises = self.functions[:, 0].max(axis=1) @ (starts / starts.sum())
        self._chosen = int(np.where(self.alive, promises, -np.inf).argmax())
        self._begin(EVALUATE, self.batch)

    def _begin(self, purpose: int, episodes: int) -> None:
        self._purpose, self._until = purpose, self.statistics.episodes + episodes

    def _conclude(self) -> None:
        each = math.ceil(self.batch / self.n_actions)
        if self._purpose == EVALUATE:
            member = self.functions[self._chosen][None]
            errors = np.array(
                [self.bellman_errors(member, step).mean() for step in range(self.horizon)]
            )
            self.forget()
            if errors.sum() <= 5 * self.epsilon / 8:
                self._begin(DONE, 0)
                return
            self.iterations += 1
            self._step = int(errors.argmax())
            self._begin(0, each)
        elif self._purpose + 1 < self.n_actions:
            self._begin(self._purpose + 1, each)
        else:
            self._drop()

    def _drop(self) -> None:
        seen = self.seen
        of_step = seen.steps == self._step
        states, actions = seen.states[of_step] @ self._strides, seen.actions[of_step]
        greedy = self.functions[:, self._step].argmax(axis=1)[:, states]
        errors = self.bellman_errors(self.functions, self._step)
        means = self.n_actions * np.where(greedy == actions, errors, 0.0).mean(axis=1)
        self.forget()
        self.alive &= np.abs(means) <= self.epsilon / (12 * self.horizon * math.sqrt(self.rank))
        if self.left:
            self._choose()
        else:
            self._begin(DONE, 0)

    def _check(self, functions: ArrayLike) -> Floats:
        array = read_only_array(functions, "functions")
        expected = (self.horizon, self.n_actions, self.n_states)
        if array.ndim != 4 or array.shape[1:] != expected or len(array) == 0:
            raise ModelError(
                f"functions: expected shape {('n', *expected)}, functions by steps, actions and "
                f"states, found {array.shape}; give f_l(s, a) for every step and state."
            )
        return array


def _build(context: LearnerContext, options: Options) -> Learner:
    return OLIVE(
        context.structure,
        grid_values(context.structure, context.known_rewards, options["levels"]),
        context.seed,
        accuracy=options["accuracy"],
        rank=options["rank"],
        batch=options["batch"],
        known_rewards=context.known_rewards,
    )


ENTRY = LearnerEntry(
    "olive",
    "OLIVE",
    "elimination of value functions, all models on a grid written out; tiny models only",
    _build,
    {"levels": (WHOLE, LEVELS), **declared_options(OLIVE)},
    uses_basis=True,
    takes_rewards=True,
)
