"""Trials: walks from the start that follow what looks best, and back up what they visited."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fsmdp.compiled import compiled
from fsmdp.model.tables import Floats, Integers
from fsmdp.policies.arrays import CompiledPolicy, choose_apart, room_for
from fsmdp.policies.hashed import Indices, unpack
from fsmdp.solver import parameters as tuned
from fsmdp.solver.search.graph import (
    DONE,
    ENTRIES,
    NOT_EXPANDED,
    Graph,
    Ground,
    Workspace,
    expand,
    listed_action,
)

CLOSED = 6
"""Beside the ways in which an expansion ends: the bounds at the start agree."""

OPTIMISTIC_TRIAL, CAUTIOUS, STRAYING, GUIDED = range(4)
"""What a trial follows: the upper bounds, the lower ones, those but at one step, or the guide."""


EXPANSIONS = 3 + 3 * 4
N_TALLIES = EXPANSIONS + 1


class Rows(NamedTuple):
    """Room for one backup, and numbers that do not change while a search lasts."""

    q_upper: Floats  # (n_steps,)
    q_lower: Floats
    best_upper: Floats
    best_lower: Floats
    discount: float
    ahead: int  # 1 if the next step has a column of its own, 0 if one column serves all
    unit: float  # rounding of a backup, for each term that it adds up


def new_rows(n_steps: int, discount: float, finite: bool, unit: float) -> Rows:
    """Room for one backup."""
    one, two, three, four = (np.zeros(n_steps) for _ in range(4))
    return Rows(one, two, three, four, discount, int(finite), unit)


@compiled()
def back_up(graph: Graph, state: int, rows: Rows) -> float:
    """Both bounds of an expanded state, at every step; the most by which one has changed.

    U(s, l) = min(U(s, l), max_a R(s, a) + discount * E[U(s', l + 1)]), and L likewise with max.
    U is rounded up and L down, L by so much more that an action whose value is equal up to
    rounding earns it, too. Cost: entries of the state times steps.
    """
    ahead, n_steps = rows.ahead, len(rows.q_upper) - rows.ahead
    q_upper, q_lower = rows.q_upper, rows.q_lower
    best_upper, best_lower = rows.best_upper, rows.best_lower
    best_upper[:] = -np.inf
    best_lower[:] = -np.inf
    most = 0
    for a in range(graph.first_action[state], graph.end_action[state]):
        begin, end = graph.first_entry[a], graph.first_entry[a + 1]
        most = max(most, end - begin)
        reward = graph.reward[a]
        for step in range(n_steps):
            q_upper[step] = reward
            q_lower[step] = reward
        for entry in range(begin, end):
            chance = rows.discount * graph.probability[entry]
            upper = graph.upper[graph.target[entry], ahead:]
            lower = graph.lower[graph.target[entry], ahead:]
            for step in range(n_steps):
                q_upper[step] += chance * upper[step]
                q_lower[step] += chance * lower[step]
        for step in range(n_steps):
            best_upper[step] = max(best_upper[step], q_upper[step])
            best_lower[step] = max(best_lower[step], q_lower[step])
    slack = rows.unit * (most + 1)
    upper, lower = graph.upper[state], graph.lower[state]
    change = 0.0
    for step in range(n_steps):
        new_upper = min(upper[step], best_upper[step] + slack)
        new_lower = max(lower[step], best_lower[step] - 3 * slack)
        change = max(change, upper[step] - new_upper, new_lower - lower[step])
        upper[step] = new_upper
        lower[step] = new_lower
    return change


@compiled()
def start_bounds(graph: Graph, starts: Indices, chances: Floats) -> tuple[float, float]:
    """Means of both bounds at the start."""
    upper, lower = 0.0, 0.0
    for i in range(len(starts)):
        upper += chances[i] * graph.upper[starts[i], 0]
        lower += chances[i] * graph.lower[starts[i], 0]
    return upper, lower


@compiled()
def run_trials(
    ground: Ground,
    graph: Graph,
    rows: Rows,
    work: Workspace,
    guide: CompiledPolicy,
    turns: int,
    starts: Indices,
    chances: Floats,
    path: Indices,
    tally: Integers,
    rng: np.random.Generator,
    tolerance: float,
    trials: int,
    effort: int,
) -> int:
    """Trials until so many were made, so much was done, the bounds agree or room runs out.

    Trials take turns. One follows the action of the largest upper bound: it lowers that bound, or
    finds that it is true. One follows that of the largest lower bound and completes the policy so
    far; where nothing better than the floor is known yet it follows the upper bound. One does the
    same except at one step, where it tries something else. With four turns, one follows the guide.
    Outcomes are drawn by how much of the gap they are to blame for. `tally` counts trials, entries
    that backups went through, steps of the last trial that completed the policy so far, how long
    each kind has been without success, and what expansions have cost.
    """
    packing, floor, n_actions = ground.packing, ground.floor, ground.rules.n_actions
    values = np.zeros(packing.word.shape[0], dtype=np.int64)
    room = room_for(guide, n_actions)
    horizon = len(path)
    enough = tally[1] + tally[EXPANSIONS] + effort
    for _ in range(trials):
        upper, lower = start_bounds(graph, starts, chances)
        gap = upper - lower
        if gap <= tolerance:
            return CLOSED
        if tally[1] + tally[EXPANSIONS] >= enough:
            return DONE
        tally[0] += 1
        turn = _turn(tally, turns)
        total = 0.0
        for i in range(len(starts)):
            total += chances[i] * (graph.upper[starts[i], 0] - graph.lower[starts[i], 0])
        u = rng.random() * total
        i = 0
        while i < len(starts) - 1:
            u -= chances[i] * (graph.upper[starts[i], 0] - graph.lower[starts[i], 0])
            if u < 0:
                break
            i += 1
        # One kind of integer throughout: what is called with two is compiled twice.
        state: Any = np.int64(starts[i])
        length, status = 0, DONE
        patience = gap / (
            tuned.TRIAL_GAP_FACTOR if turn == OPTIMISTIC_TRIAL else tuned.LATE_TRIAL_GAP_FACTOR
        )
        stray = int(rng.random() * max(1, tally[2])) if turn == STRAYING else -1
        for step in range(horizon):
            if graph.first_action[state] == NOT_EXPANDED:
                before = graph.counts[ENTRIES]
                status = expand(ground, graph, state, work, values)
                listed = n_actions + graph.counts[ENTRIES] - before
                tally[EXPANSIONS] += tuned.SUCCESSOR_COST * listed
                if status != DONE:
                    break
            path[length] = state
            length += 1
            column = step * rows.ahead
            informed = graph.lower[state, column] > floor[column] + tolerance
            action = -1
            if step == stray:
                action = _other_action(graph, state, column, rows, rng)
            elif turn == GUIDED or (turn == STRAYING and turns > GUIDED and not informed):
                unpack(packing, graph.keys[state], values)
                taken = choose_apart(guide, room, values, step, n_actions, rng)
                action = listed_action(ground, graph, state, taken, work, values)
            if action < 0:
                optimistic = turn == OPTIMISTIC_TRIAL or not informed
                action = _best_action(graph, state, column, rows, optimistic)
            state = _next_state(graph, action, column, rows, patience, rng)
            if state < 0:
                break
            patience /= rows.discount
        for position in range(length - 1, -1, -1):
            state = np.int64(path[position])
            back_up(graph, state, rows)
            tally[1] += (
                graph.first_entry[graph.end_action[state]]
                - graph.first_entry[graph.first_action[state]]
            )
        if turn == CAUTIOUS:
            tally[2] = length
        _remember(tally, turn, start_bounds(graph, starts, chances)[1] > lower + tolerance / 100)
        if status != DONE:
            return status
    return DONE


@compiled(inner=True)
def _turn(tally: Integers, turns: int) -> int:
    """The kind of the next trial: in turn, without those that are paused."""
    turn = tally[0] % turns
    if turn != OPTIMISTIC_TRIAL and tally[3 + 3 * turn] > 0:
        tally[3 + 3 * turn] -= 1
        return OPTIMISTIC_TRIAL
    return turn  # type: ignore[no-any-return]


@compiled(inner=True)
def _remember(tally: Integers, turn: int, success: bool) -> None:
    """Pause a kind of trial that has not raised the lower bound for long."""
    pause, idle, last = 3 + 3 * turn, 4 + 3 * turn, 5 + 3 * turn
    if success:
        tally[idle], tally[last] = 0, 0
        return
    tally[idle] += 1
    if tally[idle] >= tuned.IDLE_TRIALS:
        tally[last] = min(max(2 * tally[last], tuned.IDLE_TRIALS), 2**20)
        tally[pause], tally[idle] = tally[last], 0


@compiled(inner=True)
def _other_action(
    graph: Graph, state: int, column: int, rows: Rows, rng: np.random.Generator
) -> int:
    """Any action that might be better than what is known, by chance; -1 if none might be."""
    found, count = -1, 0
    for a in range(graph.first_action[state], graph.end_action[state]):
        upper = graph.reward[a]
        for entry in range(graph.first_entry[a], graph.first_entry[a + 1]):
            chance, target = rows.discount * graph.probability[entry], graph.target[entry]
            upper += chance * graph.upper[target, column + rows.ahead]
        if upper > graph.lower[state, column]:
            count += 1
            if rng.random() * count < 1:
                found = a
    return found


@compiled(inner=True)
def _best_action(graph: Graph, state: int, column: int, rows: Rows, optimistic: bool) -> int:
    """The action of the largest upper bound if `optimistic`, else lower; the other breaks ties."""
    best, best_first, best_second = -1, -np.inf, -np.inf
    for a in range(graph.first_action[state], graph.end_action[state]):
        upper, lower = graph.reward[a], graph.reward[a]
        for entry in range(graph.first_entry[a], graph.first_entry[a + 1]):
            chance, target = rows.discount * graph.probability[entry], graph.target[entry]
            upper += chance * graph.upper[target, column + rows.ahead]
            lower += chance * graph.lower[target, column + rows.ahead]
        first, second = (upper, lower) if optimistic else (lower, upper)
        margin = rows.unit * (graph.first_entry[a + 1] - graph.first_entry[a] + 1)
        if (
            best < 0
            or first > best_first + margin
            or (first > best_first - margin and second > best_second)
        ):
            best, best_first, best_second = a, first, second
    return best


@compiled(inner=True)
def _next_state(
    graph: Graph, action: int, column: int, rows: Rows, patience: float, rng: np.random.Generator
) -> int:
    """Where a trial goes on; -1 if the gap that is left there is too small to care for."""
    column += rows.ahead
    begin, end = graph.first_entry[action], graph.first_entry[action + 1]
    total = 0.0
    for entry in range(begin, end):
        target = graph.target[entry]
        gap = graph.upper[target, column] - graph.lower[target, column]
        total += graph.probability[entry] * gap
    if total <= patience:
        return -1
    u = rng.random() * total
    found = -1
    for entry in range(begin, end):
        target = graph.target[entry]
        gap = graph.upper[target, column] - graph.lower[target, column]
        if gap > 0:
            found = target
            u -= graph.probability[entry] * gap
            if u < 0:
                break
    return found


@compiled()
def sweep(graph: Graph, rows: Rows, begin: int, end: int) -> float:
    """Back up the expanded states from number `end` - 1 down to `begin`; the largest change."""
    change = 0.0
    for state in range(end - 1, begin - 1, -1):
        if graph.first_action[state] != NOT_EXPANDED:
            change = max(change, back_up(graph, state, rows))
    return change


@compiled()
def choose_actions(
    graph: Graph,
    rows: Rows,
    states: Indices,
    step: int,
    n_actions: int,
    optimistic: bool,
    floor: Floats,
    scale: float,
    seen: Integers,
    stamp: int,
    chosen: Indices,
    following: Indices,
) -> int:
    """Actions of expanded states at a step, and the states that may follow, each once.

    The action of the largest lower bound, or upper bound if `optimistic`; among those that are
    equal up to rounding the one whose other bound is largest. `seen` holds a stamp for each state
    that was listed. Of states that cannot earn more than the floor nothing is listed. Returns how
    many follow.
    """
    column = step * rows.ahead + rows.ahead
    found = 0
    leading, other = np.zeros(n_actions), np.zeros(n_actions)
    for i in range(len(states)):
        first, end = graph.first_action[states[i]], graph.end_action[states[i]]
        most, top = 0, -np.inf
        for a in range(first, end):
            upper, lower = graph.reward[a], graph.reward[a]
            most = max(most, graph.first_entry[a + 1] - graph.first_entry[a])
            for entry in range(graph.first_entry[a], graph.first_entry[a + 1]):
                chance, target = rows.discount * graph.probability[entry], graph.target[entry]
                upper += chance * graph.upper[target, column]
                lower += chance * graph.lower[target, column]
            leading[a - first], other[a - first] = (upper, lower) if optimistic else (lower, upper)
            top = max(top, leading[a - first])
        least = top - rows.unit * (most + 1)
        best = -1
        for a in range(end - first):
            if leading[a] >= least and (best < 0 or other[a] > other[best]):
                best = a
        chosen[i] = graph.action[first + best]
        for entry in range(graph.first_entry[first + best], graph.first_entry[first + best + 1]):
            target = graph.target[entry]
            if seen[target] != stamp:
                seen[target] = stamp
                more = graph.upper[target, column] - floor[column] > 1e-9 * scale
                more |= graph.lower[target, column] > floor[column]
                if more and graph.first_action[target] != NOT_EXPANDED:
                    following[found] = target
                    found += 1
    return found
