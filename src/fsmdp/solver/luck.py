"""What the luck of a draw is worth, so that it can be taken out of simulated returns.

With any numbers v_t(outcome) for each mechanism, the return less the sum over steps and mechanisms
of v_t(outcome) - E[v_t(outcome) | parents] has the same mean: what is subtracted has mean 0,
whatever came before. If v_t is what an outcome changes in the rest of the return, little variance
is left.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fsmdp.compiled import compiled
from fsmdp.foundation.streams import Purpose, generator
from fsmdp.model.lookup import Integers, deselect, locate, select
from fsmdp.model.tables import Floats
from fsmdp.policies.arrays import CompiledPolicy, choose_apart, room_for
from fsmdp.simulation.simulate import CompiledModel, draw_start, outcome_at, set_children

EPISODES = 1500
"""Episodes of the policy: two thirds are fitted, a third says whether it was worth it."""

FEWEST_EPISODES = 150

MOST_DRAWS = 2**23
"""Draws that are kept; there are fewer episodes of larger models."""

MOST_OUTCOMES = 1000
"""The square of these is the cost of an episode's step; with more, luck is left in."""

MOST_FITS = 40
"""Steps that are fitted; in longer episodes several share a fit."""

RIDGES = (1.0, 30.0)


class Luck(NamedTuple):
    """Worth of each outcome of each mechanism; without rows, luck is left in."""

    worth: Floats  # (n_fits, n_outcomes)
    start: Integers  # (n_mechanisms,) first outcome of each
    shared: int  # steps that share a row


@compiled(inline="always")
def luck_of(
    luck: Luck, cumulative: Floats, at: int, width: int, mechanism: int, outcome: int, step: int
) -> float:
    """v(outcome) - E[v], for the row of probabilities that begins at `at`.

    E[v] = sum_o F(o) (v(o) - v(o + 1)) up to the first outcome o with F(o) = 1, and v there.
    """
    row = min(step // luck.shared, len(luck.worth) - 1)
    first = luck.start[mechanism]
    other = 0
    worth = luck.worth[row, first + outcome]
    while other < width - 1 and cumulative[at + other] < 1.0:
        change = luck.worth[row, first + other] - luck.worth[row, first + other + 1]
        worth -= cumulative[at + other] * change
        other += 1
    return worth - luck.worth[row, first + other]  # type: ignore[no-any-return]


def no_luck(model: CompiledModel) -> Luck:
    """Leave luck in."""
    start = np.cumsum(model.outcomes) - model.outcomes
    return Luck(np.zeros((0, int(model.outcomes.sum()))), start, 1)


def fit_luck(
    model: CompiledModel, policy: CompiledPolicy, discount: float, steps: int, seed: int
) -> Luck:
    """Fit worths to episodes of a policy, backwards; none if that lowers no variance.

    At each step the rest of the return, without later luck, is regressed on the outcomes drawn.
    Cost: the episodes, and for each step the square of the outcomes for each of them.
    """
    nothing = no_luck(model)
    n_mechanisms, n_outcomes = len(model.outcomes), nothing.worth.shape[1]
    episodes = min(EPISODES, MOST_DRAWS // (steps * n_mechanisms))
    if episodes < FEWEST_EPISODES or n_outcomes > MOST_OUTCOMES:
        return nothing
    drawn = np.zeros((episodes, steps, n_mechanisms), dtype=np.int32)
    rewards = np.zeros((episodes, steps))
    record_draws(model, policy, generator(seed, Purpose.CONTROL_VARIATE), drawn, rewards)
    fitted = episodes * 2 // 3
    best, best_variance = nothing, _variance(nothing, model, drawn, rewards, discount, fitted)
    for ridge in RIDGES:
        luck = Luck(
            np.zeros((min(steps, MOST_FITS), n_outcomes)), nothing.start, -(-steps // MOST_FITS)
        )
        variance = _variance(luck, model, drawn, rewards, discount, fitted, ridge)
        if variance < best_variance:
            best, best_variance = luck, variance
    return best


def _variance(
    luck: Luck,
    model: CompiledModel,
    drawn: NDArray[np.int32],
    rewards: Floats,
    discount: float,
    fitted: int,
    ridge: float = 0.0,
) -> float:
    """Variance of returns without luck, of the episodes not fitted; fills the worths on its way."""
    episodes, steps = rewards.shape
    outcome_of, row_first, probabilities = _layout(model, luck.start)
    lengths = np.diff(np.append(row_first, len(outcome_of)))
    following = rewards[:, -1]
    lucky = np.zeros(len(outcome_of))
    for step in reversed(range(steps - 1)):
        row = step // luck.shared
        if len(luck.worth) and (step == steps - 2 or (step + 1) % luck.shared == 0):
            features = np.zeros((episodes, luck.worth.shape[1]))
            np.put_along_axis(features, outcome_of[drawn[:, step]], 1.0, axis=1)
            worth = _regress(features[:fitted], following[:fitted], ridge)
            luck.worth[row] = discount * worth
            each = luck.worth[row, outcome_of]
            means = np.add.reduceat(each * probabilities, row_first)
            lucky = each - np.repeat(means, lengths)
        following = rewards[:, step] + discount * following - lucky[drawn[:, step]].sum(axis=1)
    return float(following[fitted:].var())


def _regress(features: Floats, targets: Floats, ridge: float) -> Floats:
    """Least squares with an intercept; what never varies is worth nothing."""
    found = np.zeros(features.shape[1])
    means = features.mean(axis=0)
    varying = (means > 0.0) & (means < 1.0)
    if varying.any():
        centred = features[:, varying] - means[varying]
        matrix = centred.T @ centred
        matrix[np.diag_indices_from(matrix)] += ridge
        found[varying] = np.linalg.solve(matrix, centred.T @ (targets - targets.mean()))
    return found


def _layout(model: CompiledModel, start: Integers) -> tuple[Integers, Integers, Floats]:
    """The outcome and the probability of each number of the kernels, and where rows begin."""
    lookup, cumulative = model.kernels, model.cumulative
    first = np.append(lookup.offset[lookup.defaults], len(cumulative))
    outcome_of = np.zeros(len(cumulative), dtype=np.int64)
    rows = []
    for mechanism, width in enumerate(model.outcomes):
        at = np.arange(first[mechanism], first[mechanism + 1])
        outcome_of[at] = start[mechanism] + (at - at[0]) % width
        rows.append(at[::width])
    row_first = np.concatenate(rows)
    probabilities = np.diff(cumulative, prepend=0.0)
    probabilities[row_first] = cumulative[row_first]
    return outcome_of, row_first, probabilities


@compiled()
def record_draws(
    model: CompiledModel,
    policy: CompiledPolicy,
    rng: np.random.Generator,
    drawn: NDArray[np.int32],
    rewards: Floats,
) -> None:
    """Episodes: which number of which kernel was drawn, and the mean reward of each step."""
    kernels, rewards_of = model.kernels, model.rewards
    kernel_tables, reward_tables = kernels.defaults.copy(), rewards_of.defaults.copy()
    n_variables = model.n_variables
    room = room_for(policy, model.n_actions)
    values = np.zeros(model.n_slots, dtype=np.int64)
    for episode in range(len(rewards)):
        draw_start(model, values, rng)
        for step in range(rewards.shape[1]):
            action = choose_apart(policy, room, values, step, model.n_actions, rng)
            select(rewards_of, action, reward_tables)
            for term in range(len(reward_tables)):
                at = locate(rewards_of, reward_tables[term], values)
                rewards[episode, step] += model.reward_means[at]
            deselect(rewards_of, action, reward_tables)
            select(kernels, action, kernel_tables)
            for mechanism in range(len(kernel_tables)):
                at = locate(kernels, kernel_tables[mechanism], values)
                outcome = outcome_at(model.cumulative, at, model.outcomes[mechanism], rng.random())
                drawn[episode, step, mechanism] = at + outcome
                set_children(model, mechanism, outcome, values)
            deselect(kernels, action, kernel_tables)
            for variable in range(n_variables):
                values[variable] = values[model.n_inputs + variable]
