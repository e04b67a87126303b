"""The graph of a search: states that were met, what follows the expanded ones, two bounds each.

A state's successors are the same at every step, so it is expanded once; its bounds are rows, one
number for each step.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from fsmdp.compiled import compiled
from fsmdp.exact.reachable import Rules
from fsmdp.model.lookup import Integers, deselect, locate, select
from fsmdp.model.tables import Floats
from fsmdp.policies.hashed import Indices, Packing, find, insert_all, unpack
from fsmdp.solver.search.heuristic import Heuristic
from fsmdp.solver.search.successors import Workspace, list_successors, prepare

STATES, ACTIONS, ENTRIES = range(3)
"""What is counted, and what there may be no room for."""

DONE, FULL_STATES, FULL_ACTIONS, FULL_ENTRIES, TOO_MANY = range(5)
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
    """Number of a state, a new one if it was not met before; -1 if there is no room for it.

    A new state has the heuristics as its bounds. Cost: a look-up in each table, for all steps.
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
    """List what follows a state under each action; equal actions once.

    Where there is no room nothing is kept but new states, and the expansion can be begun again.
    """
    counts, rules = graph.counts, ground.rules
    first_action, before = counts[ACTIONS], counts[ENTRIES]
    prepare(rules, ground.packing, graph.keys[state], work)
    reward_tables = rules.rewards.defaults.copy()
    n_actions = first_action
    for action in range(rules.n_actions):
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
