"""The one compiled loop that draws episodes; rollouts, environments and learners all use it."""

from __future__ import annotations

from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fsmdp.compiled import compiled, unsigned
from fsmdp.model.flat import flatten_model
from fsmdp.model.lookup import (
    CompiledConditions,
    Lookup,
    deselect,
    is_allowed,
    is_over,
    locate,
    select,
)
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.tables import Integers
from fsmdp.policies.arrays import (
    BY_CHANCE,
    BY_TABLE,
    FOLDED,
    CompiledPolicy,
    choose,
    choose_by_chance,
    choose_by_table,
    is_plain,
    room_for,
)
from fsmdp.policies.folding import folded_action

Floats = NDArray[np.float64]


class CompiledModel(NamedTuple):
    """Everything needed to simulate; the fields of `FlatModel`, and how draws are made."""

    kernels: Lookup
    child_start: Integers
    child_slot: Integers
    child_size: Integers
    rewards: Lookup
    reward_means: Floats
    conditions: CompiledConditions
    n_variables: int
    n_inputs: int
    n_slots: int
    n_actions: int
    cumulative: Floats  # cumulative probabilities of all kernels
    outcomes: Integers  # (n_mechanisms,)
    coin: Integers  # (n_mechanisms,) slot of the only child if it has two values, or -1
    reward_sigmas: Floats  # (n_terms,)
    initial_start: Integers  # (n_variables + 1,)
    initial_cumulative: Floats


def compile_model(model: FactoredMDP) -> CompiledModel:
    """Flatten a model. Cost: its size, once."""
    flat, rows = flatten_model(model, by_row=False)
    first = flat.child_start[:-1]
    outcomes = np.multiply.reduceat(flat.child_size, first)
    is_coin = (np.diff(flat.child_start) == 1) & (outcomes == 2)
    return CompiledModel(
        **flat._asdict(),
        cumulative=np.concatenate([np.cumsum(table, axis=1).ravel() for table in rows]),
        outcomes=outcomes,
        coin=np.where(is_coin, flat.child_slot[first], -1),
        reward_sigmas=np.array([reward.sigma for reward in model.rewards], dtype=np.float64),
        initial_start=np.array(list(accumulate(model.sizes, initial=0))),
        initial_cumulative=np.concatenate([np.cumsum(d) for d in model.initial_distributions()]),
    )


FOLLOWED = -1
"""What `simulate` returns if every action was allowed."""

OTHERWISE = -1
"""Policies of which more than the kind must be read."""


class Record(NamedTuple):
    """Where episodes are written down; arrays without episodes mean that nothing is.

    After the end of an episode its last state is repeated, with action 0 and rewards of 0.
    """

    states: NDArray[np.int32]  # (episodes, steps + 1, n_inputs) the action taken after the state
    actions: Integers  # (episodes, steps)
    rewards: Floats  # (episodes, steps, n_terms)
    lengths: Integers  # (episodes,) steps until a terminal state, or all


def new_record(model: CompiledModel, episodes: int, steps: int) -> Record:
    """Room for so many episodes of so many steps."""
    return Record(
        np.zeros((episodes, steps + 1, model.n_inputs), dtype=np.int32),
        np.zeros((episodes, steps), dtype=np.int64),
        np.zeros((episodes, steps, len(model.reward_sigmas))),
        np.zeros(episodes, dtype=np.int64),
    )


@compiled(inline="always")
def outcome_at(cumulative: Floats, at: int, outcomes: int, u: float) -> int:
    """One of `outcomes` values by inversion of u; rounding in the last sum cannot overrun."""
    outcome = 0
    while outcome < outcomes - 1 and u >= cumulative[unsigned(at + outcome)]:
        outcome += 1
    return outcome


@compiled(inline="always")
def draw_start(model: CompiledModel, values: Integers, rng: np.random.Generator) -> None:
    """A state to begin with, into the first slots."""
    for variable in range(model.n_variables):
        at = model.initial_start[variable]
        size = model.initial_start[variable + 1] - at
        values[variable] = outcome_at(model.initial_cumulative, at, size, rng.random())


@compiled(inline="always")
def set_children(model: CompiledModel, mechanism: int, outcome: int, values: Integers) -> None:
    """The value of each child of a mechanism, from the number of what was drawn for all of them."""
    first = model.child_start[unsigned(mechanism)]
    for child in range(model.child_start[unsigned(mechanism + 1)] - 1, first, -1):
        size = model.child_size[unsigned(child)]
        values[unsigned(model.child_slot[unsigned(child)])] = outcome % size
        outcome //= size
    values[unsigned(model.child_slot[unsigned(first)])] = outcome


# The step stands inside the loop on purpose: handing a tuple of two dozen arrays to a function
# once a step costs more than the step itself.
@compiled()
def simulate(
    model: CompiledModel,
    policy: CompiledPolicy,
    rng: np.random.Generator,
    discount: float,
    restart: bool,
    first_step: int,
    steps: int,
    values: Integers,
    returns: Floats,
    record: Record,
) -> int:
    """Run `len(returns)` episodes of `steps` steps, writing their returns and perhaps a record.

    `values` holds the state in its first slots: the one to go on from unless `restart`, and the
    last one afterwards. Returns are discounted from `first_step` (0 for a whole episode). Episodes
    end early in terminal states. FOLLOWED is returned, or the case of an action that is not allowed
    in the state that `values` holds, with the values of its variables.
    Cost: one random number and a table look-up for each variable and step.
    """
    kernels, rewards = model.kernels, model.rewards
    cumulative, reward_means, reward_sigmas = (
        model.cumulative,
        model.reward_means,
        model.reward_sigmas,
    )
    kernel_tables, reward_tables = kernels.defaults.copy(), rewards.defaults.copy()
    n_variables, n_inputs, n_actions = model.n_variables, model.n_inputs, model.n_actions
    room = room_for(policy, n_actions)
    # The usual kinds stand here by themselves: to hand over the whole policy costs as much again.
    kind = policy.kind if is_plain(policy) else OTHERWISE
    folded, entries, strides, table = policy.folded, policy.entries, policy.strides, policy.table
    recording, noisy = len(record.actions) > 0, reward_sigmas.any()
    conditions = model.conditions
    restricted = len(conditions.allowed.defaults) > 0
    ends = len(conditions.terminal.defaults) > 0
    for episode in range(len(returns)):
        if restart:
            draw_start(model, values, rng)
        if recording:
            for variable in range(n_variables):
                record.states[episode, 0, variable] = values[variable]
        weight = 1.0
        total = 0.0
        length = steps
        for step in range(steps):
            if ends and is_over(conditions, values):
                length = step
                break
            now = first_step + step
            if kind == FOLDED:
                row = min(now, len(entries) - 1)
                action = folded_action(folded, entries[row], values, room.totals)
            elif kind == BY_CHANCE:
                action = choose_by_chance(n_actions, rng)
            elif kind == BY_TABLE:
                action = choose_by_table(strides, table, values, now)
            else:
                action = choose(policy, room, values, now, n_actions, rng)
            if restricted and not is_allowed(conditions, action, values):
                return action
            select(rewards, action, reward_tables)
            for term in range(len(reward_tables)):
                at = locate(rewards, reward_tables[term], values)
                reward = reward_means[unsigned(at)]
                if noisy and reward_sigmas[term] > 0.0:
                    reward += reward_sigmas[term] * rng.standard_normal()
                total += weight * reward
                if recording:
                    record.rewards[episode, step, term] = reward
            deselect(rewards, action, reward_tables)
            select(kernels, action, kernel_tables)
            for mechanism in range(len(kernel_tables)):
                at = locate(kernels, kernel_tables[mechanism], values)
                u = rng.random()
                coin = model.coin[unsigned(mechanism)]
                if coin >= 0:  # the usual case: no loops, and no jump that must be guessed
                    values[unsigned(coin)] = u >= cumulative[unsigned(at)]
                else:
                    outcome = outcome_at(cumulative, at, model.outcomes[mechanism], u)
                    set_children(model, mechanism, outcome, values)
            deselect(kernels, action, kernel_tables)
            if recording:
                record.actions[episode, step] = action
                for variable in range(n_variables, n_inputs):
                    record.states[episode, step, variable] = values[variable]
            for variable in range(n_variables):
                values[variable] = values[unsigned(n_inputs + variable)]
            if recording:
                for variable in range(n_variables):
                    record.states[episode, step + 1, variable] = values[variable]
            weight *= discount
        returns[episode] = total
        if recording:
            record.lengths[episode] = length
            for step in range(length, steps):
                record.actions[episode, step] = 0
                record.rewards[episode, step] = 0.0
                record.states[episode, step, n_variables:] = 0
                for variable in range(n_variables):
                    record.states[episode, step + 1, variable] = values[variable]
    return FOLLOWED


@compiled()
def simulate_each(
    model: CompiledModel,
    policy: CompiledPolicy,
    rngs: tuple[np.random.Generator, ...],
    discount: float,
    steps: int,
    returns: Floats,
) -> tuple[Integers, int]:
    """As many new episodes of each generator: one call where calling takes as long as a few.

    Returns the last state, and what the last call of `simulate` returned.
    """
    values = np.zeros(model.n_slots, dtype=np.int64)
    unrecorded = Record(
        np.zeros((0, 1, model.n_inputs), dtype=np.int32),
        np.zeros((0, 0), dtype=np.int64),
        np.zeros((0, 0, len(model.reward_sigmas))),
        np.zeros(0, dtype=np.int64),
    )
    count = len(returns) // len(rngs)
    for i in range(len(rngs)):
        part = returns[i * count : (i + 1) * count]
        found = simulate(model, policy, rngs[i], discount, True, 0, steps, values, part, unrecorded)
        if found != FOLLOWED:
            return values, found
    return values, FOLLOWED


def check_followed(model: FactoredMDP, found: int, values: Integers) -> None:
    """Refuse, with an error that says why, an action that `simulate` found not to be allowed."""
    if found != FOLLOWED:
        n, n_inputs = len(model.variables), len(model.inputs)
        state = values[:n].tolist()
        model.conditions.check(state, model.actions.choice(found, values[n:n_inputs]))
        raise AssertionError("an action that was refused is allowed")
