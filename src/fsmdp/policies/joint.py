"""Acting with action variables: the best joint action by elimination, prepared once; compiled."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fsmdp.compiled import compiled
from fsmdp.elimination.choose import separate_schedule
from fsmdp.elimination.compiled_schedule import FlatSchedule, flatten
from fsmdp.elimination.counting import Addition, Counters, count_nonzero
from fsmdp.elimination.drawing import count_assignments, draw_assignment, log_counts
from fsmdp.elimination.max_sum import run_steps, trace_back
from fsmdp.elimination.network import Constraint, Network
from fsmdp.elimination.order import (
    DEFAULT_LIMIT,
    LARGE,
    TRIES,
    best_order,
    check_width,
    given_order,
)
from fsmdp.elimination.schedule import Schedule
from fsmdp.model.actions import ActionSpace
from fsmdp.model.cases import Cases
from fsmdp.model.conditions import Conditions
from fsmdp.model.lookup import Lookup, compile_conditions, locate, scope_lookup
from fsmdp.model.tables import Floats, Integers
from fsmdp.model.variables import Scope, Variable

TREES = 4
"""Orders along which variables that are limited together are counted, to choose the cheapest."""


def joint_network(
    variables: Sequence[Variable],
    actions: ActionSpace,
    factors: Sequence[Cases[Scope]],
    elimination_order: Sequence[int] | None = None,
    n_ends: int = 0,
    conditions: Sequence[Cases[Constraint]] = (),
) -> tuple[Network, Sequence[int] | None, tuple[Addition, ...]]:
    """One sum over other variables and action variables, with what is not allowed as constraints.

    Positions: the variables given, action variables, counters. Beside the one case of actions there
    may be further ones, the ends of an episode, and conditions that tell them apart. An order that
    was given comes back with the counters in their places, and at last how these add up.
    """
    first = len(variables)
    inputs = (*variables, *actions.variables)
    sizes = tuple(variable.size for variable in inputs)
    names = tuple(variable.name for variable in inputs)
    constraints = tuple(
        (tuple(first + position for position in table.scope), np.asarray(table.values == 0))
        for table in actions.forbidden
    )
    most = actions.most_nonzero
    if most is None:
        parts = tuple(factors), names, constraints, tuple(conditions)
        return Network(sizes, 1 + n_ends, *parts), elimination_order, ()
    scopes = [*(scope for factor in factors for scope in factor), *(s for s, _ in constraints)]
    scopes += [scope for cases in conditions for scope, _ in cases]
    counted = range(first, len(inputs))
    if elimination_order is None:
        counters = _cheapest(scopes, sizes, counted, most)
    else:
        order = given_order(elimination_order, scopes, sizes)
        counters = count_nonzero(order, sizes, counted, most)
    network = Network(
        (*sizes, *counters.sizes),
        1 + n_ends,
        tuple(factors),
        (*names, *(f"count {number}" for number in range(len(counters.sizes)))),
        (*constraints, *counters.constraints),
        tuple(conditions),
    )
    order_then = None if elimination_order is None else counters.order
    return network, order_then, counters.additions


def _cheapest(
    scopes: Sequence[Scope], sizes: tuple[int, ...], counted: Sequence[int], most: int
) -> Counters:
    """Counters along that order, of several where tables are large, which costs least with them.

    Orders that cost the same without counters may differ by a factor of three with them.
    """
    best, cost = None, math.inf
    for seed in range(TREES):
        order = best_order(scopes, sizes, seed=TRIES * seed)
        counters = count_nonzero(order, sizes, counted, most)
        if order.largest_table * (most + 1) ** 3 < LARGE:
            return counters  # with the three counters of an addition no table is large either
        together = [*scopes, *(scope for scope, _ in counters.constraints)]
        found = best_order(together, (*sizes, *counters.sizes))
        if found.total_entries < cost:
            best, cost = counters, found.total_entries
        if found.largest_table < LARGE:
            break
    assert best is not None
    return best


class Joint(NamedTuple):
    """How a joint action is found, and where it is written; no slots where actions are a list.

    In a state, each term of Q has a small table over action variables. Terms of the same action
    variables are added up in one factor; then the factors are eliminated, save those of variables
    that stand alone, which take their best value at once (or, if all do and only `most` may be off
    0, those that gain most by it). What does not depend on the action is left out. Policies that
    know joint actions by position read `rows`.
    """

    slots: Integers  # (n_action_variables,) where the action is written
    rows: Integers  # (n_listed, n_action_variables)
    term_at: Integers  # (n_terms,) first entry
    term_size: Integers  # (n_terms,) joint values of the term's action variables
    term_target: Integers  # (n_terms,) of its factor in the buffer
    input_start: Integers  # (n_terms + 1,) state variables of each term
    input_slot: Integers
    input_stride: Integers
    start: Floats  # (n_buffer,) the buffer before anything is added
    alone: Integers  # (n_alone,) variables that share no term and no constraint with others
    alone_at: Integers  # (n_alone + 1,) of their factors in the buffer
    common: Integers  # terms that do not depend on the action: tables of the look-up
    most: int  # variables that stand alone and may be nonzero
    n_assigned: int
    schedule: FlatSchedule


def nothing_joint() -> Joint:
    """Actions are a list."""
    none = np.zeros(0, dtype=np.int64)
    return Joint(
        none,
        np.zeros((0, 0), dtype=np.int64),
        none,
        none,
        none,
        np.zeros(1, dtype=np.int64),
        none,
        none,
        np.zeros(0),
        none,
        np.zeros(1, dtype=np.int64),
        none,
        0,
        0,
        _flat(Network((1,), 1, (Cases(((0,),)),)), [0])[1],
    )


def decision_work(joint: Joint) -> int:
    """Additions that it takes to find a joint action by elimination; 0 where none is needed."""
    if not len(joint.slots) or len(joint.rows):
        return 0
    flat = joint.schedule
    sizes = (flat.axis_size[a:b] for a, b in pairwise(flat.axis_start))
    entries = [math.prod(part.tolist()) for part in sizes]
    return int(np.dot(entries, np.diff(flat.term_start))) + int(joint.term_size.sum())


def same_joint(one: Joint, other: Joint) -> bool:
    """Whether all arrays agree."""
    found, expected = (
        [np.asarray(part) for part in (*joint[:-1], *joint.schedule)] for joint in (one, other)
    )
    return all(
        a.dtype == b.dtype and np.array_equal(a, b) for a, b in zip(found, expected, strict=True)
    )


def listed_joint(actions: ActionSpace, n_variables: int, rows: Integers | None = None) -> Joint:
    """For policies that know joint actions by their positions among rows, by default all."""
    if not actions.variables:
        return nothing_joint()
    # A copy, since whether an array may be written to is part of its type.
    found = np.array(actions.rows() if rows is None else rows)
    return nothing_joint()._replace(slots=_slots(actions, n_variables), rows=found)


def joint_by_chance(actions: ActionSpace, n_variables: int, conditions: Lookup) -> Joint:
    """Every joint action that is allowed in the state as likely as any other.

    Without conditions on states, ways are counted once; with them, in each state.
    """
    if not actions.variables:
        return nothing_joint()
    terms = _terms_of(conditions, n_variables, actions.sizes)
    every = dict.fromkeys(((p,) for p in range(len(actions.variables))), 0)
    scopes = [*every, *(scope for scope in terms.scopes if scope not in every)]
    network, order = _network(actions, [Cases((scope,)) for scope in scopes])
    schedule, flat = _flat(network, order)
    where = {scope: at[0] for scope, at in zip(scopes, network.offsets, strict=False)}
    return terms.placed(where)._replace(
        slots=_slots(actions, n_variables),
        start=log_counts(schedule, flat),
        n_assigned=network.n_variables,
        schedule=flat,
    )


class _Terms(NamedTuple):
    """Terms of a look-up that depend on action variables, and those that do not."""

    scopes: dict[Scope, int]  # action variables of terms, numbered
    at: list[int]
    size: list[int]
    scope: list[int]  # of each term
    starts: list[int]
    slot: list[int]
    stride: list[int]
    common: list[int]

    def placed(self, where: Mapping[Scope, int]) -> Joint:
        """What is read in each state, given where the factor of each scope stands in the buffer."""
        offsets = np.array([where[scope] for scope in self.scopes], dtype=np.int64)
        return nothing_joint()._replace(
            term_at=_integers(self.at),
            term_size=_integers(self.size),
            term_target=offsets[self.scope] if self.scope else _integers([]),
            input_start=_integers(self.starts),
            input_slot=_integers(self.slot),
            input_stride=_integers(self.stride),
            common=_integers(self.common),
        )


def _terms_of(lookup: Lookup, n_variables: int, sizes: Sequence[int]) -> _Terms:
    found = _Terms({}, [], [], [], [0], [], [], [])
    for table in lookup.defaults.tolist():
        begin, end = lookup.input_start[table], lookup.input_start[table + 1]
        slots, strides = lookup.input_slot[begin:end], lookup.input_stride[begin:end]
        chosen = tuple((slots[slots >= n_variables] - n_variables).tolist())
        if not chosen:
            found.common.append(table)
            continue
        own = slots < n_variables
        found.at.append(int(lookup.offset[table]))
        found.size.append(int(np.prod([sizes[position] for position in chosen])))
        found.scope.append(found.scopes.setdefault(chosen, len(found.scopes)))
        found.slot.extend(slots[own].tolist())
        found.stride.extend(strides[own].tolist())
        found.starts.append(len(found.slot))
    return found


def _integers(values: Sequence[int]) -> Integers:
    return np.array(values, dtype=np.int64)


def joint_greedily(actions: ActionSpace, n_variables: int, lookup: Lookup) -> Joint:
    """The joint action of largest Q, whose terms stand in a look-up of state and action variables.

    A WidthError where too many action variables depend on one another.
    Cost, for each state: the tables of all terms and of the elimination.
    """
    sizes, terms = actions.sizes, _terms_of(lookup, n_variables, actions.sizes)
    alone = _alone(actions, list(terms.scopes))
    together = [scope for scope in terms.scopes if scope[0] not in alone]
    network, order = _network(actions, [Cases((scope,)) for scope in together])
    schedule, flat = _flat(network, order)
    n_run = network.n_numbers + schedule.n_messages
    alone_at = n_run + np.cumsum([0, *(sizes[position] for position in alone)])
    start = np.zeros(alone_at[-1])
    start[network.n_entries : network.n_numbers] = network.fixed
    where = {scope: at[0] for scope, at in zip(together, network.offsets, strict=False)}
    where |= {(position,): int(at) for position, at in zip(alone, alone_at, strict=False)}
    return terms.placed(where)._replace(
        slots=_slots(actions, n_variables),
        rows=np.zeros((0, len(actions.variables)), dtype=np.int64),
        start=start,
        alone=_integers(alone),
        alone_at=alone_at,
        most=len(alone) if actions.most_nonzero is None else actions.most_nonzero,
        n_assigned=network.n_variables,
        schedule=flat,
    )


def _alone(actions: ActionSpace, scopes: Sequence[Scope]) -> list[int]:
    """Variables with a factor of their own and nothing that ties them to others.

    A limit on how many are nonzero ties all, unless nothing else ties any.
    """
    tied = {p for scope in scopes if len(scope) > 1 for p in scope}
    tied |= {p for table in actions.forbidden for p in table.scope}
    if actions.most_nonzero is not None and tied:
        return []
    return sorted({p for scope in scopes for p in scope} - tied)


def _slots(actions: ActionSpace, n_variables: int) -> Integers:
    return np.arange(n_variables, n_variables + len(actions.variables), dtype=np.int64)


def _network(actions: ActionSpace, factors: list[Cases[Scope]]) -> tuple[Network, Sequence[int]]:
    """A network of action variables, and the order to eliminate them in.

    From the last to the first, if no other costs less: then of several best joint actions the one
    is found that leaves the first variables lowest.
    """
    network, _, _ = joint_network((), actions, factors or [Cases(((0,),))])
    scopes = network.all_scopes
    best = best_order(scopes, network.sizes)
    n = len(actions.variables)
    backwards = [*reversed(range(n, network.n_variables)), *reversed(range(n))]
    plain = given_order(backwards, scopes, network.sizes)
    chosen = plain if plain.total_entries <= best.total_entries else best
    check_width(chosen, DEFAULT_LIMIT, network.names)
    return network, chosen.variables


def _flat(network: Network, order: Sequence[int]) -> tuple[Schedule, FlatSchedule]:
    schedule = separate_schedule(network, [given_order(order, network.all_scopes, network.sizes)])
    return schedule, flatten(schedule)


@compiled(inner=True)
def write_best(
    joint: Joint, entries: Floats, values: Integers, buffer: Floats, assignment: Integers
) -> float:
    """Write the best joint action in the state that the first slots hold; its advantage.

    The buffer is as `joint.start` outside of entries and messages. Of several best ones each
    variable takes its lowest value, given those that were eliminated after it.
    """
    _read_terms(joint, entries, values, buffer)
    flat = joint.schedule
    n_steps = len(flat.output)
    run_steps(flat, buffer, 0, n_steps)
    last, nothing = np.full(1, n_steps - 1), np.zeros(1, dtype=np.int64)
    found = assignment.reshape((1, len(assignment)))
    found[0, :] = 0
    trace_back(flat, buffer, last, found, nothing, nothing[:0], np.zeros(0))
    total = buffer[flat.output[n_steps - 1]] + _set_alone(joint, buffer, assignment)
    for i in range(len(joint.slots)):
        values[joint.slots[i]] = assignment[i]
    return total  # type: ignore[no-any-return]


@compiled(inner=True)
def _read_terms(joint: Joint, entries: Floats, values: Integers, buffer: Floats) -> None:
    """Add up the terms of each factor in the state that the first slots hold."""
    for term in range(len(joint.term_at)):
        target = joint.term_target[term]
        for i in range(joint.term_size[term]):
            buffer[target + i] = 0.0
    for term in range(len(joint.term_at)):
        at, target = joint.term_at[term], joint.term_target[term]
        for i in range(joint.input_start[term], joint.input_start[term + 1]):
            at += values[joint.input_slot[i]] * joint.input_stride[i]
        for i in range(joint.term_size[term]):
            buffer[target + i] += entries[at + i]


@compiled(inner=True)
def _set_alone(joint: Joint, buffer: Floats, assignment: Integers) -> float:
    """Set the variables that stand alone to their best values, as many as may be nonzero.

    A variable whose 0 is not allowed gains without end by another value, and so comes first.
    """
    total = 0.0
    n_alone = len(joint.alone)
    used = 0
    for i in range(n_alone):
        first = joint.alone_at[i]
        best = first
        for at in range(first + 1, joint.alone_at[i + 1]):
            if buffer[at] > buffer[best]:
                best = at
        assignment[joint.alone[i]] = best - first
        used += best > first
        total += buffer[best]
    if used <= joint.most:
        return total
    gains = np.zeros(n_alone)
    for i in range(n_alone):
        first = joint.alone_at[i]
        gains[i] = buffer[first + assignment[joint.alone[i]]] - buffer[first]
    # The largest first, and of equal ones those that come first.
    order = np.argsort(-gains, kind="mergesort")
    for i in order[joint.most :]:
        assignment[joint.alone[i]] = 0
        total -= gains[i]
    return total


@compiled(inner=True)
def write_drawn(
    joint: Joint,
    conditions: Floats,
    values: Integers,
    buffer: Floats,
    assignment: Integers,
    rng: np.random.Generator,
) -> None:
    """Write a joint action that was drawn among those that conditions allow in the state."""
    if len(joint.term_at) > 0:
        _read_terms(joint, conditions, values, buffer)
        count_assignments(joint.schedule, buffer)
    draw_assignment(joint.schedule, buffer, assignment, rng)
    for i in range(len(joint.slots)):
        values[joint.slots[i]] = assignment[i]


@compiled()
def best_joint_actions(
    joint: Joint,
    lookup: Lookup,
    entries: Floats,
    states: Integers,
    found: Floats,
    actions: Integers,
) -> None:
    """max_a Q(s, a) and a joint action that attains it, for each of many states."""
    buffer, assignment = joint.start.copy(), np.zeros(joint.n_assigned, dtype=np.int64)
    n_variables, n_actions = states.shape[1], len(joint.slots)
    values = np.zeros(n_variables + n_actions, dtype=np.int64)
    for row in range(len(states)):
        for variable in range(n_variables):
            values[variable] = states[row, variable]
        total = write_best(joint, entries, values, buffer, assignment)
        for table in joint.common:
            total += entries[locate(lookup, table, values)]
        found[row] = total
        for i in range(n_actions):
            actions[row, i] = values[joint.slots[i]]


@compiled()
def draw_joint_actions(
    joint: Joint, conditions: Floats, states: Integers, rng: np.random.Generator
) -> Integers:
    """A joint action drawn by chance for each of several states: (n_states, n_action_variables)."""
    buffer, assignment = joint.start.copy(), np.zeros(joint.n_assigned, dtype=np.int64)
    n_variables = states.shape[1]
    found = np.zeros((len(states), len(joint.slots)), dtype=np.int64)
    values = np.zeros(n_variables + len(joint.slots), dtype=np.int64)
    for row in range(len(states)):
        values[:n_variables] = states[row]
        write_drawn(joint, conditions, values, buffer, assignment, rng)
        found[row] = values[n_variables:]
    return found


class RandomActions(NamedTuple):
    """Actions drawn at random, all that are allowed alike."""

    conditions: Conditions
    joint: Joint

    def draw(self, states: Integers, rng: np.random.Generator) -> tuple[Integers, Integers]:
        """Cases, (n,), and values of the action variables, (n, n_action_variables), in n states."""
        actions, count = self.conditions.actions, len(states)
        if actions.variables:
            drawn = draw_joint_actions(self.joint, self.conditions.entries, states, rng)
            return np.zeros(count, dtype=np.int64), drawn
        nothing = np.zeros((count, 0), dtype=np.int64)
        if not self.conditions.allowed:
            return rng.integers(len(actions), size=count), nothing
        allowed = self.conditions.mask(states)
        rank = rng.integers(np.maximum(allowed.sum(axis=1), 1))
        return (allowed.cumsum(axis=1) > rank[:, None]).argmax(axis=1), nothing


def random_actions(conditions: Conditions) -> RandomActions:
    """Prepare to draw actions. Cost: for joint ones, an elimination of what is not allowed."""
    parts = conditions.actions, conditions.n_variables, compile_conditions(conditions).allowed
    return RandomActions(conditions, joint_by_chance(*parts))


class AllowedValues:
    """The values of each action variable that occur in some joint action allowed in a state.

    Cost: an elimination of the action variables for each value, prepared once.
    """

    def __init__(self, conditions: Conditions) -> None:
        actions, first = conditions.actions, conditions.n_variables
        own: list[Cases[Scope]] = [Cases(((first + p,),)) for p in range(len(actions.sizes))]
        lookup = scope_lookup([*conditions.scopes, *own], conditions.sizes, 1)
        self._joint = joint_greedily(actions, first, lookup)
        self._entries = np.concatenate([conditions.entries, np.zeros(sum(actions.sizes))])
        self._first = len(conditions.entries)
        self._sizes = np.array(actions.sizes, dtype=np.int64)

    def __call__(self, state: Integers) -> list[NDArray[np.bool_]]:
        """For each variable, which of its values are possible."""
        parts = self._joint, self._entries.copy(), state, self._first, self._sizes
        return np.split(_possible(*parts), np.cumsum(self._sizes)[:-1])


@compiled()
def _possible(
    joint: Joint, entries: Floats, state: Integers, first: int, sizes: Integers
) -> NDArray[np.bool_]:
    """Whether each value is that of the best joint action if it alone is worth anything."""
    n_variables = len(state)
    buffer, assignment = joint.start.copy(), np.zeros(joint.n_assigned, dtype=np.int64)
    values = np.zeros(n_variables + len(joint.slots), dtype=np.int64)
    values[:n_variables] = state
    found = np.zeros(sizes.sum(), dtype=np.bool_)
    at = 0
    for variable in range(len(sizes)):
        for value in range(sizes[variable]):
            entries[first + at] = 1.0
            total = write_best(joint, entries, values, buffer, assignment)
            found[at] = total > -np.inf and values[n_variables + variable] == value
            entries[first + at] = 0.0
            at += 1
    return found
