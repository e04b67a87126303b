"""Actions tried in common scenarios, then a policy that improves on the way: compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fsmdp.compiled import compiled
from fsmdp.model.lookup import Integers, deselect, locate, select
from fsmdp.model.tables import Floats
from fsmdp.policies.arrays import CompiledPolicy, choose_apart, room_for
from fsmdp.simulation.simulate import CompiledModel, outcome_at, set_children
from fsmdp.solver.luck import Luck, luck_of
from fsmdp.solver.places import Keys, Places, find_place, hashed, learn, promising

LARGEST_UNIFORM = 1.0 - 2.0**-53
"""Less a uniform number, this is one again: from 0 on and below 1."""

MOST_REMEMBERED = 2**16
"""Entries for the states of a scenario (1.5 MiB)."""


class Scenario(NamedTuple):
    """A table of uniform numbers, what followed from the states met, and the last path.

    What followed is remembered in an open hash table; entries of earlier scenarios count as empty.
    """

    uniforms: Floats  # (steps, n_mechanisms)
    counts: Integers  # (2,) number of the scenario, entries that may still be written
    key: Keys  # (memory,)
    owner: Integers  # number of the scenario that wrote the entry
    following: Floats
    entry: Integers  # (steps,) of the path, -1 where there was no room
    place: Integers  # (steps,)
    earned: Floats  # (steps,) before each step
    states: Integers  # (steps, n_variables)
    values: Integers  # (n_slots,)
    kernel_tables: Integers
    reward_tables: Integers


class Setting(NamedTuple):
    """What is followed, from which step on, and where it is written down."""

    model: CompiledModel
    policy: CompiledPolicy
    luck: Luck
    discount: float
    first_step: int
    multipliers: Keys
    scenario: Scenario
    places: Places


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
    """Return of each action and of the policy after it, without luck: returns[scenario, arm].

    Actions that are made of variables are positions in `joint`, which holds their values. Nothing
    is learnt at places then: they know actions by name.

    All arms meet the same scenario; every second one mirrors the one before (u becomes 1 - u).
    Where two arms are in the same state at the same step, the same follows, and is not simulated
    again. States that several scenarios meet become places: there, beside each path, another
    action is tried in the same scenario, and taken from then on if it is clearly better.
    Cost: for each scenario and arm up to two paths, each until it joins another.
    """
    model, scenario, places = setting.model, setting.scenario, setting.places
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
            place, alternative, expected = -1, -1, 0.0
            while True:  # called in one place only, since what is called is compiled with it
                total, end = _follow(setting, rng, began, action)
                if alternative >= 0:
                    learn(places, place, alternative, total - expected)
                    break
                returns[row, arm] = total
                if joint.shape[1] > 0:
                    break
                met = 0
                chosen = -1
                for step in range(1, end):
                    if scenario.place[step] >= 0 and places.visits[scenario.place[step]] > 1:
                        met += 1
                        if rng.random() * met < 1.0:
                            chosen = step
                if chosen < 0:
                    break
                place = scenario.place[chosen]
                alternative = promising(places, place, model.n_actions, rng)
                if alternative < 0:
                    break
                for variable in range(n_variables):
                    scenario.values[variable] = scenario.states[chosen, variable]
                expected = total - scenario.earned[chosen]
                began, action = chosen, places.alternative[alternative]


@compiled(inline="always")
def _follow(
    setting: Setting, rng: np.random.Generator, began: int, action: int
) -> tuple[float, int]:
    """What an action in the state in `values`, and the policy after it, earn in the scenario.

    Also the step at which the path joined another; its states up to there stay in the scenario.
    """
    model, policy, luck, discount, first_step, multipliers, scenario, places = setting
    kernels, rewards = model.kernels, model.rewards
    n_variables, n_inputs, n_actions = model.n_variables, model.n_inputs, model.n_actions
    steps, memory = len(scenario.uniforms), len(scenario.key)
    values, number = scenario.values, scenario.counts[0]
    kernel_tables, reward_tables = scenario.kernel_tables, scenario.reward_tables
    lucky = len(luck.worth) > 0
    room = room_for(policy, n_actions)
    weight = discount**began
    total = 0.0
    end = steps
    may_insert = True
    for step in range(began, steps):
        scenario.earned[step] = total
        if step > began:
            key = hashed(multipliers, values, n_variables, step)
            entry = np.int64(key & np.uint64(memory - 1))
            while scenario.owner[entry] == number and scenario.key[entry] != key:
                entry = (entry + 1) & (memory - 1)
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
            place = find_place(places, key)
            if n_inputs > n_variables:
                action = choose_apart(policy, room, values, first_step + step, n_actions, rng)
                place = -1
            elif places.visits[place] > 0:
                places.visits[place] += 1
                action = places.action[place]
            else:
                action = choose_apart(policy, room, values, first_step + step, n_actions, rng)
                if may_insert and 2 * places.counts[0] < len(places.key):
                    # One a path: what is not met again would only fill the table.
                    may_insert = False
                    places.counts[0] += 1
                    places.visits[place] = 1
                    places.key[place] = key
                    places.action[place] = action
                    places.first[place] = -1
                else:
                    place = -1
            scenario.place[step] = place
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
            if lucky:
                now = first_step + step
                total -= weight * luck_of(
                    luck, model.cumulative, at, width, mechanism, outcome, now
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
