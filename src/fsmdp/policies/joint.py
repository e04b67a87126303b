"""Acting with action variables: the best joint action by elimination, prepared once; compiled."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fsmdp.compiled import compiled
from fsmdp.elimination.choose import separate_schedule
from fsmdp.elimination.compiled_schedule import FlatSchedule, flatten
from fsmdp.elimination.counting import Addition, Counters, count_nonzero
from fsmdp.elimination.drawing import draw_assignment, log_counts
from fsmdp.elimination.max_sum import run_steps, trace_back
from fsmdp.elimination.network import Network
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
from fsmdp.model.lookup import Lookup, locate
from fsmdp.model.tables import Floats, Integers
from fsmdp.model.variables import Scope, Variable

TREES = 4
"""Orders along which variables that are limited together are counted, to choose the cheapest."""


def joint_network(
    variables: Sequence[Variable],
    actions: ActionSpace,
    factors: Sequence[Cases[Scope]],
    elimination_order: Sequence[int] | None = None,
) -> tuple[Network, Sequence[int] | None, tuple[Addition, ...]]:
    """One sum over other variables and action variables, with what is not allowed as constraints.

    Positions: the variables given, action variables, counters. An order that was given comes back
    with the counters in their places, and at last how these add up.
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
        return Network(sizes, 1, tuple(factors), names, constraints), elimination_order, ()
    scopes = [*(scope for factor in factors for scope in factor), *(s for s, _ in constraints)]
    counted = range(first, len(inputs))
    if elimination_order is None:
        counters = _cheapest(scopes, sizes, counted, most)
    else:
        order = given_order(elimination_order, scopes, sizes)
        counters = count_nonzero(order, sizes, counted, most)
    network = Network(
        (*sizes, *counters.sizes),
        1,
        tuple(factors),
        (*names, *(f"count {number}" for number in range(len(counters.sizes)))),
        (*constraints, *counters.constraints),
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


def joint_by_chance(actions: ActionSpace, n_variables: int) -> Joint:
    """Every allowed joint action as likely as any other."""
    if not actions.variables:
        return nothing_joint()
    alone: list[Cases[Scope]] = [Cases(((p,),)) for p in range(len(actions.variables))]
    network, order = _network(actions, alone)
    schedule, flat = _flat(network, order)
    return nothing_joint()._replace(
        slots=_slots(actions, n_variables),
        start=log_counts(schedule, flat),
        n_assigned=network.n_variables,
        schedule=flat,
    )


def joint_greedily(actions: ActionSpace, n_variables: int, lookup: Lookup) -> Joint:
    """The joint action of largest Q, whose terms stand in a look-up of state and action variables.

    A WidthError where too many action variables depend on one another.
    Cost, for each state: the tables of all terms and of the elimination.
    """
    scopes: dict[Scope, int] = {}
    parts: dict[str, list[int]] = {name: [] for name in ("at", "size", "factor", "slot", "stride")}
    starts, common = [0], []
    sizes = actions.sizes
    for table in lookup.defaults.tolist():
        begin, end = lookup.input_start[table], lookup.input_start[table + 1]
        slots, strides = lookup.input_slot[begin:end], lookup.input_stride[begin:end]
        chosen = tuple((slots[slots >= n_variables] - n_variables).tolist())
        if not chosen:
            common.append(table)
            continue
        own = slots < n_variables
        parts["at"].append(int(lookup.offset[table]))
        parts["size"].append(int(np.prod([sizes[position] for position in chosen])))
        parts["factor"].append(scopes.setdefault(chosen, len(scopes)))
        parts["slot"] += slots[own].tolist()
        parts["stride"] += strides[own].tolist()
        starts.append(len(parts["slot"]))
    alone = _alone(actions, list(scopes))
    together = [scope for scope in scopes if scope[0] not in alone]
    network, order = _network(actions, [Cases((scope,)) for scope in together])
    schedule, flat = _flat(network, order)
    n_run = network.n_numbers + schedule.n_messages
    alone_at = n_run + np.cumsum([0, *(sizes[position] for position in alone)])
    start = np.zeros(alone_at[-1])
    start[network.n_entries : network.n_numbers] = network.fixed
    where = {scope: at[0] for scope, at in zip(together, network.offsets, strict=False)}
    where |= {(position,): int(at) for position, at in zip(alone, alone_at, strict=False)}
    offsets = np.array([where[scope] for scope in scopes], dtype=np.int64)

    def integers(values: Sequence[int]) -> Integers:
        return np.array(values, dtype=np.int64)

    return Joint(
        _slots(actions, n_variables),
        np.zeros((0, len(actions.variables)), dtype=np.int64),
        integers(parts["at"]),
        integers(parts["size"]),
        offsets[parts["factor"]] if parts["factor"] else integers([]),
        integers(starts),
        integers(parts["slot"]),
        integers(parts["stride"]),
        start,
        integers(alone),
        alone_at,
        integers(common),
        len(alone) if actions.most_nonzero is None else actions.most_nonzero,
        network.n_variables,
        flat,
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
def _set_alone(joint: Joint, buffer: Floats, assignment: Integers) -> float:
    """Set the variables that stand alone to their best values, as many as may be nonzero."""
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
    values: Integers,
    buffer: Floats,
    assignment: Integers,
    rng: np.random.Generator,
) -> None:
    """Write a joint action that was drawn."""
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
def draw_joint_actions(joint: Joint, count: int, rng: np.random.Generator) -> Integers:
    """Joint actions drawn by chance: (count, n_action_variables)."""
    buffer, assignment = joint.start.copy(), np.zeros(joint.n_assigned, dtype=np.int64)
    found = np.zeros((count, len(joint.slots)), dtype=np.int64)
    for row in range(count):
        draw_assignment(joint.schedule, buffer, assignment, rng)
        for i in range(len(joint.slots)):
            found[row, i] = assignment[i]
    return found


class RandomActions(NamedTuple):
    """Actions drawn at random, all of them alike."""

    actions: ActionSpace
    joint: Joint

    def draw(self, count: int, rng: np.random.Generator) -> tuple[Integers, Integers]:
        """Cases, (count,), and values of the action variables, (count, n_action_variables)."""
        if self.actions.variables:
            return np.zeros(count, dtype=np.int64), draw_joint_actions(self.joint, count, rng)
        drawn = rng.integers(len(self.actions), size=count)
        return drawn, np.zeros((count, 0), dtype=np.int64)


def random_actions(actions: ActionSpace) -> RandomActions:
    """Prepare to draw actions. Cost: for joint ones, an elimination of what is not allowed."""
    return RandomActions(actions, joint_by_chance(actions, 0))
