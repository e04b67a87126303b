"""Actions tried in common scenarios, then a policy that improves on the way: compiled."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fsmdp.compiled import compiled
from fsmdp.foundation.streams import Purpose, generator
from fsmdp.model.lookup import CompiledConditions, deselect, is_allowed, is_over, locate, select
from fsmdp.model.tables import Floats, Integers
from fsmdp.policies.arrays import CompiledPolicy, choose_apart, room_for
from fsmdp.simulation.simulate import CompiledModel, draw_start, outcome_at, set_children

Keys = NDArray[np.uint64]

SWITCH_ERRORS = 2.0
"""Standard errors by which another action must be ahead for a visited state to change to it."""

SWITCH_TRIALS = 4.0
"""Trials without which it does not."""

TIE = 1e-6
"""Of the scale of all differences: which of several untried actions is first is left to chance."""


class VisitedStates(NamedTuple):
    """States, each at a step, what is done there, and how much more was earned by something else.

    An open hash table; a key stands for a state and a step. Differences are paired: an alternative
    and the action of the state are followed in the same scenario.
    """

    key: Keys  # (size,)
    visits: Integers  # scenarios that came by; 0: empty
    action: Integers  # what is done here
    first: Integers  # alternative tried here, or -1
    counts: Integers  # (2,) states and alternatives in use
    alternative: Integers  # (size,) action
    following: Integers  # next alternative of the same state, or -1
    trials: Floats
    ahead: Floats  # sum of differences
    squares: Floats
    trials_of_action: Floats  # (n_actions,) at all states together
    ahead_of_action: Floats
    spread: Floats  # (2,) trials, and sum of squared differences


def new_visited_states(size: int, n_actions: int) -> VisitedStates:
    """Room for size / 2 states, a power of two, and `size` alternatives."""

    def integers(length: int) -> Integers:
        return np.zeros(length, dtype=np.int64)

    return VisitedStates(
        np.zeros(size, dtype=np.uint64),
        integers(size),
        integers(size),
        integers(size),
        integers(2),
        integers(size),
        integers(size),
        np.zeros(size),
        np.zeros(size),
        np.zeros(size),
        np.zeros(n_actions),
        np.zeros(n_actions),
        np.zeros(2),
    )


def hash_multipliers(n_variables: int) -> Keys:
    """An odd number for each variable and one for the step: sums of products tell states apart."""
    rng = np.random.default_rng(20_240_229)
    return rng.integers(0, 2**64, n_variables + 1, dtype=np.uint64) | np.uint64(1)


@compiled(inline="always")
def hashed(multipliers: Keys, values: Integers, n_variables: int, step: int) -> np.uint64:
    """64 bits that stand for a state at a step; two of n agree with chance n^2 / 2^65."""
    key = multipliers[n_variables] * np.uint64(step)
    for variable in range(n_variables):
        key += multipliers[variable] * np.uint64(values[variable])
    return key ^ (key >> np.uint64(31))  # type: ignore[no-any-return]


@compiled(inline="always")
def find_key(keys: Keys, marks: Integers, least: int, key: np.uint64) -> int:
    """Where a key stands in an open hash table, or the empty entry where it would.

    Entries with a mark below `least` are empty. (`fsmdp.policies.hashed` compares whole states;
    here 64 bits stand for one, and a collision costs no more than a worse decision.)
    """
    size = len(keys)
    slot = np.int64(key & np.uint64(size - 1))
    while marks[slot] >= least and keys[slot] != key:
        slot = (slot + 1) & (size - 1)
    return slot  # type: ignore[return-value]


@compiled()
def promising(
    visited: VisitedStates,
    slot: int,
    conditions: CompiledConditions,
    state: Integers,
    n_actions: int,
    rng: np.random.Generator,
) -> int:
    """The alternative with the largest mean difference plus error, as far as is known; -1: none.

    Of actions that are allowed in the state. One that was not tried here counts as it did at other
    states. Cost: the actions.
    """
    scale = np.sqrt(visited.spread[1] / max(1.0, visited.spread[0]))
    tried = np.full(n_actions, -1, dtype=np.int64)
    entry = visited.first[slot]
    while entry >= 0:
        tried[visited.alternative[entry]] = entry
        entry = visited.following[entry]
    best = -1
    best_score = -np.inf
    for action in range(n_actions):
        if action == visited.action[slot] or not is_allowed(conditions, action, state):
            continue
        ahead = visited.ahead_of_action[action] / (visited.trials_of_action[action] + 1.0)
        trials = 1.0
        entry = tried[action]
        if entry >= 0:
            ahead += visited.ahead[entry]
            trials += visited.trials[entry]
        score = ahead / trials + scale / np.sqrt(trials) + TIE * scale * rng.random()
        if score > best_score:
            best = action
            best_score = score
    if best < 0 or tried[best] >= 0:
        return -1 if best < 0 else tried[best]
    entry = visited.counts[1]
    if entry == len(visited.trials):
        return -1
    visited.counts[1] += 1
    visited.alternative[entry] = best
    visited.following[entry] = visited.first[slot]
    visited.first[slot] = entry
    visited.trials[entry] = 0.0
    visited.ahead[entry] = 0.0
    visited.squares[entry] = 0.0
    return entry  # type: ignore[no-any-return]


@compiled()
def learn(visited: VisitedStates, slot: int, entry: int, difference: float) -> None:
    """Take a paired difference in; change the state's action if the alternative is clearly better.

    Differences from the action before are forgotten then, so a change can be taken back.
    """
    action = visited.alternative[entry]
    visited.trials[entry] += 1.0
    visited.ahead[entry] += difference
    visited.squares[entry] += difference * difference
    visited.trials_of_action[action] += 1.0
    visited.ahead_of_action[action] += difference
    visited.spread[0] += 1.0
    visited.spread[1] += difference * difference
    trials = visited.trials[entry]
    if trials < SWITCH_TRIALS:
        return
    mean = visited.ahead[entry] / trials
    variance = max(0.0, visited.squares[entry] / trials - mean * mean) / (trials - 1.0)
    if mean > SWITCH_ERRORS * np.sqrt(variance):
        visited.action[slot] = action
        visited.first[slot] = -1


EPISODES = 1500
"""Episodes of the policy: two thirds are fitted, a third says whether it was worth it."""

FEWEST_EPISODES = 150

MOST_DRAWS = 2**23
"""Draws that are kept; there are fewer episodes of larger models."""

MOST_OUTCOMES = 1000
"""The square of these is the cost of an episode's step; with more, there is no control variate."""

MOST_FITS = 40
"""Steps that are fitted; in longer episodes several share a fit."""

RIDGES = (1.0, 30.0)


class ControlVariate(NamedTuple):
    """The worth of each outcome of each mechanism, whose deviation from its mean is subtracted.

    Without rows, returns stay as they are.
    """

    worth: Floats  # (n_fits, n_outcomes)
    start: Integers  # (n_mechanisms,) first outcome of each
    shared: int  # steps that share a row


@compiled(inline="always")
def deviation_of(
    variate: ControlVariate,
    cumulative: Floats,
    at: int,
    width: int,
    mechanism: int,
    outcome: int,
    step: int,
) -> float:
    """v(outcome) - E[v], for the row of probabilities that begins at `at`.

    E[v] = sum_o F(o) (v(o) - v(o + 1)) up to the first outcome o with F(o) = 1, and v there.
    """
    row = min(step // variate.shared, len(variate.worth) - 1)
    first = variate.start[mechanism]
    other = 0
    worth = variate.worth[row, first + outcome]
    while other < width - 1 and cumulative[at + other] < 1.0:
        change = variate.worth[row, first + other] - variate.worth[row, first + other + 1]
        worth -= cumulative[at + other] * change
        other += 1
    return worth - variate.worth[row, first + other]  # type: ignore[no-any-return]


def no_control_variate(model: CompiledModel) -> ControlVariate:
    """Returns stay as they are."""
    start = np.cumsum(model.outcomes) - model.outcomes
    return ControlVariate(np.zeros((0, int(model.outcomes.sum()))), start, 1)


def fit_control_variate(
    model: CompiledModel, policy: CompiledPolicy, discount: float, steps: int, seed: int
) -> ControlVariate:
    """Fit worths to episodes of a policy, backwards; none if that lowers no variance.

    At each step the rest of the return, less later deviations, is regressed on the outcomes drawn.
    None either where episodes end early: they have no draws to regress on after that.
    Cost: the episodes, and for each step the square of the outcomes for each of them.
    """
    nothing = no_control_variate(model)
    n_mechanisms, n_outcomes = len(model.outcomes), nothing.worth.shape[1]
    episodes = min(EPISODES, MOST_DRAWS // (steps * n_mechanisms))
    ends = len(model.conditions.terminal.defaults) > 0
    if ends or episodes < FEWEST_EPISODES or n_outcomes > MOST_OUTCOMES:
        return nothing
    drawn = np.zeros((episodes, steps, n_mechanisms), dtype=np.int32)
    rewards = np.zeros((episodes, steps))
    record_draws(model, policy, generator(seed, Purpose.CONTROL_VARIATE), drawn, rewards)
    fitted = episodes * 2 // 3
    best, best_variance = nothing, _variance(nothing, model, drawn, rewards, discount, fitted)
    for ridge in RIDGES:
        variate = ControlVariate(
            np.zeros((min(steps, MOST_FITS), n_outcomes)), nothing.start, -(-steps // MOST_FITS)
        )
        variance = _variance(variate, model, drawn, rewards, discount, fitted, ridge)
        if variance < best_variance:
            best, best_variance = variate, variance
    return best


def _variance(
    variate: ControlVariate,
    model: CompiledModel,
    drawn: NDArray[np.int32],
    rewards: Floats,
    discount: float,
    fitted: int,
    ridge: float = 0.0,
) -> float:
    """Variance of returns less deviations, of the episodes not fitted; fills the worths."""
    episodes, steps = rewards.shape
    outcome_of, row_first, probabilities = _layout(model, variate.start)
    lengths = np.diff(np.append(row_first, len(outcome_of)))
    following = rewards[:, -1]
    deviations = np.zeros(len(outcome_of))
    for step in reversed(range(steps - 1)):
        row = step // variate.shared
        if len(variate.worth) and (step == steps - 2 or (step + 1) % variate.shared == 0):
            features = np.zeros((episodes, variate.worth.shape[1]))
            np.put_along_axis(features, outcome_of[drawn[:, step]], 1.0, axis=1)
            worth = _regress(features[:fitted], following[:fitted], ridge)
            variate.worth[row] = discount * worth
            each = variate.worth[row, outcome_of]
            means = np.add.reduceat(each * probabilities, row_first)
            deviations = each - np.repeat(means, lengths)
        following = rewards[:, step] + discount * following - deviations[drawn[:, step]].sum(axis=1)
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


LARGEST_UNIFORM = 1.0 - 2.0**-53
"""Less a uniform number, this is one again: from 0 on and below 1."""

MOST_REMEMBERED = 2**16
"""Entries for the states of a scenario (1.5 MiB)."""


class Scenario(NamedTuple):
    """A table of uniform numbers, what followed from the states visited, and the last path.

    What followed is remembered in an open hash table; entries of earlier scenarios count as empty.
    """

    uniforms: Floats  # (steps, n_mechanisms)
    counts: Integers  # (2,) number of the scenario, entries that may still be written
    key: Keys  # (memory,)
    owner: Integers  # number of the scenario that wrote the entry
    following: Floats
    entry: Integers  # (steps,) of the path, -1 where there was no room
    slot: Integers  # (steps,)
    earned: Floats  # (steps,) before each step
    states: Integers  # (steps, n_variables)
    values: Integers  # (n_slots,)
    kernel_tables: Integers
    reward_tables: Integers


class Setting(NamedTuple):
    """What is followed, from which step on, and where it is written down."""

    model: CompiledModel
    policy: CompiledPolicy
    variate: ControlVariate
    discount: float
    first_step: int
    multipliers: Keys
    scenario: Scenario
    visited: VisitedStates


def new_scenario(model: CompiledModel, steps: int, n_arms: int) -> Scenario:
    """Room for scenarios, in which the paths of all arms and of trials beside them are kept."""
    memory = 64
    while memory < min(4 * n_arms * steps, MOST_REMEMBERED):
        memory *= 2
    return Scenario(
        np.zeros((steps, len(model.outcomes))),
        np.zeros(2, dtype=np.int64),
        np.zeros(memory, dtype=np.uint64),
        np.zeros(memory, dtype=np.int64),
        np.zeros(memory),
        np.zeros(steps, dtype=np.int64),
        np.zeros(steps, dtype=np.int64),
        np.zeros(steps),
        np.zeros((steps, model.n_variables), dtype=np.int64),
        np.zeros(model.n_slots, dtype=np.int64),
        model.kernels.defaults.copy(),
        model.rewards.defaults.copy(),
    )


@compiled()
def continue_each(
    setting: Setting,
    rng: np.random.Generator,
    state: Integers,
    actions: Integers,
    joint: Integers,
    returns: Floats,
) -> None:
    """returns[scenario, arm]: of each action and of the policy after it, less its control variate.

    Actions that are made of variables are positions in `joint`, which holds their values. Nothing
    is learnt at visited states then: they know actions by name.

    All arms are followed in the same scenario; every second scenario mirrors the one before
    (u becomes 1 - u).
    Where two arms are in the same state at the same step, the same follows, and is not simulated
    again. States that several scenarios visit are kept: there, beside each path, another
    action is tried in the same scenario, and taken from then on if it is clearly better.
    Cost: for each scenario and arm up to two paths, each until it joins another.
    """
    model, scenario, visited = setting.model, setting.scenario, setting.visited
    n_variables, steps = model.n_variables, len(scenario.uniforms)
    for row in range(len(returns)):
        scenario.counts[0] += 1
        scenario.counts[1] = len(scenario.key) // 2
        for step in range(steps):
            for mechanism in range(len(scenario.kernel_tables)):
                u = scenario.uniforms[step, mechanism]
                scenario.uniforms[step, mechanism] = (
                    rng.random() if row % 2 == 0 else LARGEST_UNIFORM - u
                )
        for arm in range(len(actions)):
            for variable in range(n_variables):
                scenario.values[variable] = state[variable]
            for i in range(joint.shape[1]):
                scenario.values[n_variables + i] = joint[actions[arm], i]
            began, action = 0, actions[arm] if joint.shape[1] == 0 else 0
            slot, alternative, expected = -1, -1, 0.0
            while True:  # called once only, since what is called is compiled with it
                total, end = _follow(setting, rng, began, action)
                if alternative >= 0:
                    learn(visited, slot, alternative, total - expected)
                    break
                returns[row, arm] = total
                if joint.shape[1] > 0:
                    break
                revisited = 0
                chosen = -1
                for step in range(1, end):
                    if scenario.slot[step] >= 0 and visited.visits[scenario.slot[step]] > 1:
                        revisited += 1
                        if rng.random() * revisited < 1.0:
                            chosen = step
                if chosen < 0:
                    break
                slot = scenario.slot[chosen]
                alternative = promising(
                    visited, slot, model.conditions, scenario.states[chosen], model.n_actions, rng
                )
                if alternative < 0:
                    break
                for variable in range(n_variables):
                    scenario.values[variable] = scenario.states[chosen, variable]
                expected = total - scenario.earned[chosen]
                began, action = chosen, visited.alternative[alternative]


@compiled(inline="always")
def _follow(
    setting: Setting, rng: np.random.Generator, began: int, action: int
) -> tuple[float, int]:
    """What an action in the state in `values`, and the policy after it, earn in the scenario.

    Also the step at which the path joined another; its states up to there stay in the scenario.
    """
    model, policy, variate, discount, first_step, multipliers, scenario, visited = setting
    kernels, rewards = model.kernels, model.rewards
    n_variables, n_inputs, n_actions = model.n_variables, model.n_inputs, model.n_actions
    steps = len(scenario.uniforms)
    values, number = scenario.values, scenario.counts[0]
    kernel_tables, reward_tables = scenario.kernel_tables, scenario.reward_tables
    controlled = len(variate.worth) > 0
    room = room_for(policy, n_actions)
    weight = discount**began
    total = 0.0
    end = steps
    may_insert = True
    for step in range(began, steps):
        scenario.earned[step] = total
        if is_over(model.conditions, values):
            end = step
            break
        if step > began:
            key = hashed(multipliers, values, n_variables, step)
            entry = find_key(scenario.key, scenario.owner, number, key)
            if scenario.owner[entry] == number:
                total += scenario.following[entry]
                end = step
                break
            scenario.entry[step] = -1
            if scenario.counts[1] > 0:
                scenario.counts[1] -= 1
                scenario.entry[step] = entry
                scenario.owner[entry] = number
                scenario.key[entry] = key
            slot = find_key(visited.key, visited.visits, 1, key)
            listed = n_inputs == n_variables
            if listed and visited.visits[slot] > 0:
                visited.visits[slot] += 1
                action = visited.action[slot]
            else:
                action = choose_apart(policy, room, values, first_step + step, n_actions, rng)
                if listed and may_insert and 2 * visited.counts[0] < len(visited.key):
                    # One a path: what is not visited again would only fill the table.
                    may_insert = False
                    visited.counts[0] += 1
                    visited.visits[slot] = 1
                    visited.key[slot] = key
                    visited.action[slot] = action
                    visited.first[slot] = -1
                else:
                    slot = -1
            scenario.slot[step] = slot
            for variable in range(n_variables):
                scenario.states[step, variable] = values[variable]
        select(rewards, action, reward_tables)
        for term in range(len(reward_tables)):
            at = locate(rewards, reward_tables[term], values)
            total += weight * model.reward_means[at]
        deselect(rewards, action, reward_tables)
        if step == steps - 1:
            break
        select(kernels, action, kernel_tables)
        for mechanism in range(len(kernel_tables)):
            at = locate(kernels, kernel_tables[mechanism], values)
            width = model.outcomes[mechanism]
            u = scenario.uniforms[step, mechanism]
            outcome = outcome_at(model.cumulative, at, width, u)
            if controlled:
                now = first_step + step
                total -= weight * deviation_of(
                    variate, model.cumulative, at, width, mechanism, outcome, now
                )
            set_children(model, mechanism, outcome, values)
        deselect(kernels, action, kernel_tables)
        weight *= discount
        for variable in range(n_variables):
            values[variable] = values[n_inputs + variable]
    for step in range(began + 1, end):
        if scenario.entry[step] >= 0:
            scenario.following[scenario.entry[step]] = total - scenario.earned[step]
    return total, end
