"""The graph of a search: states that were visited, what follows the expanded ones, two bounds each.

A state's successors are the same at every step, so it is expanded once; its bounds are rows, one
number for each step.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from fsmdp.bounds.clock import NO_LIMIT, Clock
from fsmdp.compiled import compiled
from fsmdp.errors import ModelError
from fsmdp.exact.reachable import Rules, flat_rules
from fsmdp.foundation.checks import show
from fsmdp.foundation.streams import Purpose, generator
from fsmdp.model.basis import Basis, check_basis
from fsmdp.model.cases import Cases
from fsmdp.model.lookup import (
    Inputs,
    Lookup,
    compile_lookup,
    deselect,
    is_allowed,
    is_over,
    locate,
    select,
)
from fsmdp.model.marginals import EPSILON, UNDERFLOW
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.tables import Floats, Integers
from fsmdp.policies.hashed import Indices, Packing, find, insert_all, merge, pack_all, unpack
from fsmdp.solver import parameters as tuned


class Workspace(NamedTuple):
    """Room for the successors of one state; what holds under most actions is looked up once."""

    values: Integers  # (n_slots,)
    depends_on_drawn: Integers  # (n_tables,) whether a table depends on what is drawn in the step
    default_row: Integers  # (n_mechanisms,) row under most actions, -1 if it depends on draws
    row: Integers  # (n_mechanisms,) under the action at hand
    base: Integers  # (n_words,) of all that is certain under most actions
    order: Integers  # (n_mechanisms,) mechanisms that are followed one outcome after another
    at: Integers  # (n_mechanisms,)
    end: Integers  # (n_mechanisms,)
    chance: Floats  # (n_mechanisms + 1,)
    partial: Integers  # (n_mechanisms + 1, n_words)
    keys: Integers  # (LISTED_SUCCESSORS, n_words)
    probabilities: Floats  # (LISTED_SUCCESSORS,)


def new_workspace(rules: Rules, packing: Packing) -> Workspace:
    """Room for the successors of one state."""
    mechanisms, words = len(rules.kernels.defaults), packing.kept.shape[1]
    starts, slots = rules.kernels.input_start, rules.kernels.input_slot
    drawn = slots >= rules.n_variables
    looks = [int(drawn[a:b].any()) for a, b in pairwise(starts)]

    def zeros(*shape: int) -> Integers:
        return np.zeros(shape, dtype=np.int64)

    return Workspace(
        values=zeros(rules.n_slots),
        depends_on_drawn=np.array(looks, dtype=np.int64),
        default_row=zeros(mechanisms),
        row=zeros(mechanisms),
        base=zeros(words),
        order=zeros(mechanisms),
        at=zeros(mechanisms),
        end=zeros(mechanisms),
        chance=np.ones(mechanisms + 1),
        partial=zeros(mechanisms + 1, words),
        keys=zeros(tuned.LISTED_SUCCESSORS, words),
        probabilities=np.zeros(tuned.LISTED_SUCCESSORS),
    )


@compiled(inline="always")
def _write(
    rules: Rules, packing: Packing, mechanism: int, outcome: int, values: Integers, key: Integers
) -> None:
    """Add an outcome's values to a key, and write them where later draws read them."""
    n_variables = rules.n_variables
    first, last = rules.child_start[mechanism], rules.child_start[mechanism + 1] - 1
    for child in range(last, first - 1, -1):
        value = outcome % rules.child_size[child]
        outcome //= rules.child_size[child]
        slot = rules.child_slot[child]
        values[slot] = value
        variable = slot - n_variables
        if variable < n_variables:  # latents are no part of a state
            key[packing.word[variable]] += value << packing.shift[variable]


@compiled()
def prepare(rules: Rules, packing: Packing, key: Integers, work: Workspace) -> None:
    """Look a state's rows up under most actions. Cost: one look-up a mechanism."""
    unpack(packing, key, work.values)
    work.base[:] = 0
    kernels = rules.kernels
    for mechanism in range(len(kernels.defaults)):
        table = kernels.defaults[mechanism]
        work.default_row[mechanism] = -1
        if work.depends_on_drawn[table]:
            continue
        row = locate(kernels, table, work.values)
        work.default_row[mechanism] = row
        if rules.row_start[row + 1] - rules.row_start[row] == 1:
            outcome = rules.row_outcome[rules.row_start[row]]
            _write(rules, packing, mechanism, outcome, work.values, work.base)


@compiled()
def list_successors(rules: Rules, packing: Packing, action: int, work: Workspace) -> int:
    """Write the successors of the state that was prepared; their number, or -1 for too many.

    Keys may be equal where latents differ or irrelevant variables do. Cost: the mechanisms that
    differ under the action, and the combinations of outcomes of those that are uncertain.
    """
    kernels, values = rules.kernels, work.values
    n_mechanisms = len(kernels.defaults)
    for mechanism in range(n_mechanisms):
        work.row[mechanism] = work.default_row[mechanism]
    key = work.partial[0]
    for word in range(packing.kept.shape[1]):
        key[word] = work.base[word]
    first, last = kernels.exception_start[action], kernels.exception_start[action + 1]
    for e in range(first, last):
        mechanism, table = kernels.exception_item[e], kernels.exception_table[e]
        row = work.default_row[mechanism]
        if row >= 0 and rules.row_start[row + 1] - rules.row_start[row] == 1:
            outcome = rules.row_outcome[rules.row_start[row]]
            for child in range(
                rules.child_start[mechanism + 1] - 1, rules.child_start[mechanism] - 1, -1
            ):
                variable = rules.child_slot[child] - rules.n_variables
                value = outcome % rules.child_size[child]
                outcome //= rules.child_size[child]
                if variable < rules.n_variables:
                    key[packing.word[variable]] -= value << packing.shift[variable]
        row = -1 if work.depends_on_drawn[table] else locate(kernels, table, values)
        work.row[mechanism] = row
        if row >= 0 and rules.row_start[row + 1] - rules.row_start[row] == 1:
            _write(rules, packing, mechanism, rules.row_outcome[rules.row_start[row]], values, key)
    n_order = 0
    least = 1.0
    certain = 1.0
    for mechanism in range(n_mechanisms):
        row = work.row[mechanism]
        count = 0 if row < 0 else rules.row_start[row + 1] - rules.row_start[row]
        if count == 1:
            # Rows are normalised up to rounding only, and a bound pays for what a model says.
            certain *= rules.row_probability[rules.row_start[row]]
            continue
        work.order[n_order] = mechanism
        n_order += 1
        least *= max(count, 1)
    found = -1
    if least <= len(work.keys):
        found = _follow(rules, packing, action, n_order, certain, work)
    # What is certain under most actions stands in the slots again for the next action.
    for e in range(first, last):
        mechanism = kernels.exception_item[e]
        row = work.default_row[mechanism]
        if row >= 0 and rules.row_start[row + 1] - rules.row_start[row] == 1:
            outcome = rules.row_outcome[rules.row_start[row]]
            for child in range(
                rules.child_start[mechanism + 1] - 1, rules.child_start[mechanism] - 1, -1
            ):
                values[rules.child_slot[child]] = outcome % rules.child_size[child]
                outcome //= rules.child_size[child]
    return found


@compiled(inner=True)
def _follow(
    rules: Rules, packing: Packing, action: int, n_order: int, certain: float, work: Workspace
) -> int:
    """Combinations of outcomes, depth first; their number, or -1 for too many."""
    kernels, values = rules.kernels, work.values
    n_words, found = packing.kept.shape[1], 0
    work.chance[0] = certain
    level, entering = 0, True
    while level >= 0:
        if level == n_order:
            if found == len(work.keys):
                return -1
            key = work.keys[found]
            for word in range(n_words):
                key[word] = work.partial[level, word]
            merge(packing, key)
            work.probabilities[found] = work.chance[level]
            found += 1
            level, entering = level - 1, False
            continue
        mechanism = work.order[level]
        if entering:
            row = work.row[mechanism]
            if row < 0:
                table = kernels.defaults[mechanism]
                for e in range(
                    kernels.exception_start[action], kernels.exception_start[action + 1]
                ):
                    if kernels.exception_item[e] == mechanism:
                        table = kernels.exception_table[e]
                row = locate(kernels, table, values)
            work.at[level], work.end[level] = rules.row_start[row], rules.row_start[row + 1]
        if work.at[level] == work.end[level]:
            level, entering = level - 1, False
            continue
        at = work.at[level]
        work.at[level] += 1
        for word in range(n_words):
            work.partial[level + 1, word] = work.partial[level, word]
        outcome = rules.row_outcome[at]
        _write(rules, packing, mechanism, outcome, values, work.partial[level + 1])
        work.chance[level + 1] = work.chance[level] * rules.row_probability[at]
        level, entering = level + 1, True
    return found


@dataclass(frozen=True, slots=True)
class Branching:
    """How many successors an action has, in states visited at random."""

    mean: float
    largest: int
    """At most LISTED_SUCCESSORS + 1, which stands for more."""
    states: int


def branching(model: FactoredMDP, clock: Clock = NO_LIMIT, seed: int = 0) -> Branching:
    """How many successors states and actions have, along episodes at random and of each action.

    Half of the states stand on walks at random, half on walks that repeat one action. Cost: the
    successors of some hundred states; where there are far too many they are not listed.
    """
    rules, packing = flat_rules(model), pack_all(model.sizes)
    work, rng = new_workspace(rules, packing), generator(seed, Purpose.BRANCHING)
    starts = model.initial_distributions()
    steps = min(model.horizon or 40, 40)
    total, count, largest, states, walk = 0.0, 0, 0, 0, 0
    while states < tuned.BRANCHING_STATES and clock.status is None:
        state = np.array([rng.choice(len(d), p=d / d.sum()) for d in starts], dtype=np.int64)
        always = (walk // 2) % rules.n_actions if walk % 2 else -1
        most = min(tuned.BRANCHING_STEPS, steps)
        summed, number, large, visited = _walk(rules, packing, work, rng, state, always, most)
        total, count, largest = total + summed, count + number, max(largest, large)
        states, walk = states + visited, walk + 1
    return Branching(total / max(1, count), int(largest), int(states))


@compiled()
def _walk(
    rules: Rules,
    packing: Packing,
    work: Workspace,
    rng: np.random.Generator,
    state: Integers,
    always: int,
    steps: int,
) -> tuple[float, int, int, int]:
    """Sum, number and maximum of successors along one walk, and the states that it visited.

    Of actions that are allowed; a walk ends with its episode.
    """
    key = np.zeros(packing.kept.shape[1], dtype=np.int64)
    for variable in range(len(state)):
        key[packing.word[variable]] |= state[variable] << packing.shift[variable]
    total, number, largest = 0.0, 0, 0
    for step in range(steps):
        prepare(rules, packing, key, work)
        if is_over(rules.conditions, work.values):
            return total, number, largest, step + 1
        chosen, found = always if always >= 0 else int(rng.random() * rules.n_actions), 0
        for turn in range(rules.n_actions):
            action = (chosen + 1 + turn) % rules.n_actions  # the chosen one last: it is followed
            if not is_allowed(rules.conditions, action, work.values):
                continue
            found = list_successors(rules, packing, action, work)
            count = len(work.keys) + 1 if found < 0 else found
            total += count
            number += 1
            largest = max(largest, count)
            if found < 0:
                return total, number, largest, step + 1
        if found == 0:
            return total, number, largest, step + 1
        u = rng.random()
        outcome = 0
        while outcome < found - 1 and u >= work.probabilities[outcome]:
            u -= work.probabilities[outcome]
            outcome += 1
        key[:] = work.keys[outcome]
    return total, number, largest, steps


class Heuristic(NamedTuple):
    """V_l(s) = sum of one row of numbers for each table; columns are steps, from 0 on."""

    lookup: Lookup
    entries: Floats  # (n_entries, n_steps)
    rounding: Floats  # (n_steps,) how far a sum of entries may be from what the weights say


def local_values(model: FactoredMDP, basis: Basis, weights: Floats) -> Heuristic:
    """Functions of one scope, times their weights, become one table.

    Cost: numbers in the functions' tables times steps.
    """
    bound = check_basis(basis).bind(model.variables)
    steps = 1 if model.horizon is None else model.horizon + 1
    weights = np.asarray(weights, dtype=np.float64)
    if weights.shape != (steps, len(bound)):
        raise ModelError(
            f"weights: expected shape {show((steps, len(bound)))}, a row for each step and a "
            f"column for each function of the basis, found {show(weights.shape)}; use those of a "
            "plan of this model with this basis."
        )
    if not np.isfinite(weights).all():
        raise ModelError("weights: expected finite numbers, found others; plan again.")
    by_scope: dict[tuple[int, ...], list[int]] = {}
    for position, scope in enumerate(bound.scopes):
        by_scope.setdefault(scope, []).append(position)
    tables, size = [], np.zeros(steps)
    for functions in by_scope.values():
        columns = np.stack([bound.tables[j].values.ravel() for j in functions], axis=1)
        tables.append(columns @ weights[:, functions].T)
        size += (np.abs(columns) @ np.abs(weights[:, functions].T)).max(axis=0)
    inputs = [Inputs(scope, tuple(model.sizes[p] for p in scope)) for scope in by_scope]
    return Heuristic(
        compile_lookup([Cases((item,)) for item in inputs], 1),
        np.ascontiguousarray(np.concatenate(tables)),
        4 * (len(bound) + len(tables) + 4) * EPSILON * size + UNDERFLOW,
    )


STATES, ACTIONS, ENTRIES = range(3)
"""What is counted, and what there may be no room for."""

DONE, FULL_STATES, FULL_ACTIONS, FULL_ENTRIES, TOO_MANY, STUCK = range(6)
"""How an expansion ended."""

FEW = 2**10
NOT_EXPANDED = -1


class Graph(NamedTuple):
    """Arrays that compiled code reads and writes; rows and entries beyond the counts are free."""

    counts: Integers  # (3,)
    keys: Integers  # (room for states, n_words)
    slots: Indices  # (a power of two,) numbers of states by hash, -1 where none stands
    marks: Integers  # (room for states,) the last entry that led to a state
    upper: Floats  # (room for states, n_steps)
    lower: Floats  # (room for states, n_steps)
    first_action: Integers  # (room for states,) where a state's actions stand, or NOT_EXPANDED
    end_action: Integers  # (room for states,)
    action: Indices  # (room for actions,) position of the first of equal actions
    reward: Floats  # (room for actions,)
    first_entry: Integers  # (room for actions + 1,)
    target: Indices  # (room for entries,)
    probability: Floats  # (room for entries,)


class Ground(NamedTuple):
    """What does not change while a search lasts."""

    rules: Rules
    packing: Packing
    above: Heuristic
    below: Heuristic
    ceiling: Floats  # (n_steps,) the largest reward at every step that is left
    floor: Floats  # (n_steps,) what the safest action earns for certain


@dataclass(slots=True, eq=False)
class Store:
    """A graph that grows within a limit, in bytes."""

    limit: int
    graph: Graph
    full: bool = field(default=False)

    @classmethod
    def empty(cls, n_words: int, n_steps: int, limit: int) -> Store:
        """No state yet."""
        graph = Graph(
            counts=np.zeros(3, dtype=np.int64),
            keys=np.zeros((FEW, n_words), dtype=np.int64),
            slots=np.full(2 * FEW, -1, dtype=np.int32),
            marks=np.zeros(FEW, dtype=np.int64),
            upper=np.zeros((FEW, n_steps)),
            lower=np.zeros((FEW, n_steps)),
            first_action=np.zeros(FEW, dtype=np.int64),
            end_action=np.zeros(FEW, dtype=np.int64),
            action=np.zeros(FEW, dtype=np.int32),
            reward=np.zeros(FEW),
            first_entry=np.zeros(FEW + 1, dtype=np.int64),
            target=np.zeros(FEW, dtype=np.int32),
            probability=np.zeros(FEW),
        )
        return cls(limit, graph)

    @property
    def bytes(self) -> int:
        """Memory that is held."""
        return sum(array.nbytes for array in self.graph)

    def grow(self, what: int) -> bool:
        """Room for more states, actions or entries; False, and nothing happens, beyond the limit.

        The largest array is held twice while it is copied.
        """
        names = (
            ("keys", "slots", "marks", "upper", "lower", "first_action", "end_action"),
            ("action", "reward", "first_entry"),
            ("target", "probability"),
        )[what]
        for factor in (2.0, 1.25):
            grown = {name: int(len(getattr(self.graph, name)) * factor) for name in names}
            if what == STATES:
                grown["slots"] = len(self.graph.slots)
                while grown["slots"] < 2 * grown["keys"]:
                    grown["slots"] *= 2
            if what == ACTIONS:
                grown["first_entry"] = grown["action"] + 1
            sizes = {
                name: length * (getattr(self.graph, name).nbytes // len(getattr(self.graph, name)))
                for name, length in grown.items()
            }
            held = sum(getattr(self.graph, name).nbytes for name in names)
            largest = max(getattr(self.graph, name).nbytes for name in names)
            if self.bytes - held + sum(sizes.values()) + largest <= self.limit:
                self._grow_to(grown)
                return True
        self.full = True
        return False

    def _grow_to(self, lengths: dict[str, int]) -> None:
        for name, length in lengths.items():
            old = getattr(self.graph, name)
            if name == "slots":
                new = np.full(length, -1, dtype=np.int32)
                insert_all(self.graph.keys, new, 0, int(self.graph.counts[STATES]))
            else:
                # Zeros that nobody has touched take no time, and no memory yet.
                new = np.zeros((length, *old.shape[1:]), dtype=old.dtype)
                new[: len(old)] = old
            changed: dict[str, Any] = {name: new}
            self.graph = self.graph._replace(**changed)


@compiled()
def number_of(ground: Ground, graph: Graph, key: Integers, values: Integers) -> int:
    """Number of a state, a new one if it was not visited before; -1 if there is no room for it.

    A new state has the heuristics as its bounds, a terminal one 0. Cost: a look-up in each table,
    for all steps.
    """
    slot = find(graph.keys, graph.slots, key)
    number = graph.slots[slot]
    if number >= 0:
        return number  # type: ignore[no-any-return]
    number = graph.counts[STATES]
    if number == len(graph.keys):
        return -1
    graph.counts[STATES] += 1
    graph.slots[slot] = number
    graph.marks[number] = -1
    graph.first_action[number] = NOT_EXPANDED
    for word in range(len(key)):
        graph.keys[number, word] = key[word]
    unpack(ground.packing, key, values)
    upper, lower = graph.upper[number], graph.lower[number]
    if is_over(ground.rules.conditions, values):
        upper[:] = 0.0
        lower[:] = 0.0
        return number  # type: ignore[no-any-return]
    above, below = ground.above, ground.below
    above_lookup, below_lookup = above.lookup, below.lookup
    upper[:] = above.rounding
    for table in range(len(above_lookup.defaults)):
        row = above.entries[locate(above_lookup, table, values)]
        for step in range(len(upper)):
            upper[step] += row[step]
    for step in range(len(upper)):
        upper[step] = min(upper[step], ground.ceiling[step])
        lower[step] = ground.floor[step]
    if len(below_lookup.defaults) > 0:
        total = -below.rounding
        for table in range(len(below_lookup.defaults)):
            total += below.entries[locate(below_lookup, table, values)]
        for step in range(len(lower)):
            lower[step] = max(lower[step], total[step])
    return number  # type: ignore[no-any-return]


@compiled()
def expand(ground: Ground, graph: Graph, state: int, work: Workspace, values: Integers) -> int:
    """List what follows a state under each action that is allowed; equal actions once.

    A terminal state has one action, of no reward and without successors. Where there is no room
    nothing is kept but new states, and the expansion can be begun again.
    """
    counts, rules = graph.counts, ground.rules
    first_action, before = counts[ACTIONS], counts[ENTRIES]
    prepare(rules, ground.packing, graph.keys[state], work)
    reward_tables = rules.rewards.defaults.copy()
    n_actions = first_action
    over = is_over(rules.conditions, work.values)
    for action in range(rules.n_actions):
        if over:
            status, reward, end = DONE, 0.0, before
        elif not is_allowed(rules.conditions, action, work.values):
            continue
        else:
            status, reward, end = _list(ground, graph, action, work, values, reward_tables)
        if status == DONE and n_actions == len(graph.action):
            status = FULL_ACTIONS
        if status != DONE:
            counts[ENTRIES] = before
            return status
        first = counts[ENTRIES]
        if _same_as(graph, first_action, n_actions, reward, first, end) < 0:
            graph.action[n_actions] = action
            graph.reward[n_actions] = reward
            graph.first_entry[n_actions] = first
            graph.first_entry[n_actions + 1] = end
            counts[ENTRIES] = end
            n_actions += 1
    if n_actions == first_action:
        return STUCK
    counts[ACTIONS] = n_actions
    graph.first_action[state] = first_action
    graph.end_action[state] = n_actions
    return DONE


@compiled(inner=True)
def listed_action(
    ground: Ground, graph: Graph, state: int, action: int, work: Workspace, values: Integers
) -> int:
    """Where the action of an expanded state stands that is equal to the given one.

    -1 where there is no room to find out. Cost: the successors of one action.
    """
    first, end = graph.first_action[state], graph.end_action[state]
    for a in range(first, end):
        if graph.action[a] == action:
            return a
    rules = ground.rules
    prepare(rules, ground.packing, graph.keys[state], work)
    tables = rules.rewards.defaults.copy()
    status, reward, last = _list(ground, graph, action, work, values, tables)
    if status != DONE:
        return -1
    return _same_as(graph, first, end, reward, graph.counts[ENTRIES], last)


@compiled(inner=True)
def _list(
    ground: Ground,
    graph: Graph,
    action: int,
    work: Workspace,
    values: Integers,
    reward_tables: Integers,
) -> tuple[int, float, int]:
    """Write an action's successors behind the entries that are kept; reward and end of entries."""
    rules = ground.rules
    rewards = rules.rewards
    reward = 0.0
    select(rewards, action, reward_tables)
    for term in range(len(reward_tables)):
        reward += rules.reward_means[locate(rewards, reward_tables[term], work.values)]
    deselect(rewards, action, reward_tables)
    found = list_successors(rules, ground.packing, action, work)
    first = graph.counts[ENTRIES]
    end = first
    if found < 0:
        return TOO_MANY, reward, end
    for i in range(found):
        number = number_of(ground, graph, work.keys[i], values)
        if number < 0:
            return FULL_STATES, reward, end
        known = graph.marks[number]
        if first <= known < end and graph.target[known] == number:
            graph.probability[known] += work.probabilities[i]
            continue
        if end == len(graph.target):
            return FULL_ENTRIES, reward, end
        graph.target[end] = number
        graph.probability[end] = work.probabilities[i]
        graph.marks[number] = end
        end += 1
    return DONE, reward, end


@compiled(inner=True)
def _same_as(
    graph: Graph, first_action: int, end_action: int, reward: float, first: int, end: int
) -> int:
    """The action listed before that has the same reward and the same successors; -1 if none."""
    for other in range(first_action, end_action):
        begin = graph.first_entry[other]
        if graph.reward[other] != reward or graph.first_entry[other + 1] - begin != end - first:
            continue
        equal = True
        for i in range(end - first):
            equal = equal and graph.target[begin + i] == graph.target[first + i]
            equal = equal and graph.probability[begin + i] == graph.probability[first + i]
        if equal:
            return other
    return -1
