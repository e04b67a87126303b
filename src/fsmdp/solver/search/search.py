"""Search from the start between two bounds, the upper one certified (BRTDP)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np
from numpy.typing import NDArray

from fsmdp.bounds.clock import NO_LIMIT, Clock, Status
from fsmdp.bounds.proofs import Box
from fsmdp.errors import PolicyError, SizeError
from fsmdp.exact.reachable import flat_rules
from fsmdp.foundation.checks import as_number, as_whole, show_count
from fsmdp.foundation.streams import Purpose, generator
from fsmdp.model.basis import Basis
from fsmdp.model.lookup import compile_lookup
from fsmdp.model.marginals import EPSILON, UNDERFLOW
from fsmdp.model.mdp import FactoredMDP, check_model
from fsmdp.model.structure import sum_of_discounts
from fsmdp.model.tables import Floats, Integers
from fsmdp.policies.arrays import CompiledPolicy, by_chance, first_allowed
from fsmdp.policies.hashed import Indices, Packing, hash_actions, pack, pack_all, unpack_keys
from fsmdp.policies.resolve import ArrayPolicy, Policy, resolve
from fsmdp.simulation.simulate import check_followed, compile_model, new_record, simulate
from fsmdp.solver import parameters as tuned
from fsmdp.solver.search import graph as graphs
from fsmdp.solver.search.graph import (
    Graph,
    Ground,
    Heuristic,
    Store,
    local_values,
    new_workspace,
    number_of,
)
from fsmdp.solver.search.trials import (
    CLOSED,
    GUIDED,
    N_TALLIES,
    choose_actions,
    new_rows,
    run_trials,
    start_bounds,
    sweep,
)

Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Trap:
    """Variables that, once they have these values, keep them; and what is relevant then."""

    variables: tuple[int, ...]
    values: tuple[int, ...]
    kept: Flags  # (n_variables,)


@dataclass(frozen=True, slots=True, eq=False)
class Relevance:
    """The guards: by each value of some variables, and in some traps, what stays relevant."""

    guards: tuple[int, ...] = ()
    kept: tuple[Flags, ...] = ()  # for each guard: (its size, n_variables)
    traps: tuple[Trap, ...] = ()

    def relevant(self, states: Integers) -> Flags:
        """Which variables are relevant in each of some states."""
        flags = np.ones(states.shape, dtype=np.bool_)
        for guard, kept in zip(self.guards, self.kept, strict=True):
            flags &= kept[states[:, guard]]
        for trap in self.traps:
            inside = (states[:, trap.variables] == np.array(trap.values)).all(axis=1)
            flags &= trap.kept | ~inside[:, None]
        return flags

    def boxes(self, model: FactoredMDP) -> Iterator[Box]:
        """Values that variables never leave, and the variables that matter there."""
        for guard, kept in zip(self.guards, self.kept, strict=True):
            reaches = _reachable_values(model, guard)
            for row, flags in zip(reaches, kept, strict=True):
                reached = tuple(np.flatnonzero(row).tolist())
                yield Box((guard,), (reached,), tuple(np.flatnonzero(flags).tolist()))
        for trap in self.traps:
            values = tuple((value,) for value in trap.values)
            yield Box(trap.variables, values, tuple(np.flatnonzero(trap.kept).tolist()))


NOTHING_KNOWN = Relevance()


def find_relevance(
    model: FactoredMDP,
    samples: Integers,
    weights: Floats,
    check: Callable[[], None] | None = None,
) -> Relevance:
    """Guards that make most variables irrelevant in sampled states, chosen one after the other.

    Samples count by their weights; traps are looked for at the last of them, and at 0. `check` is
    called now and then, and may raise to end it. Cost: for each variable that cannot return to some
    value, its values times the tables that depend on it (where this is too much, the variable is no
    guard); for each trap, all tables.
    """
    found: list[_Guard] = []
    for variable in range(len(model.sizes)):
        found += _one_way(model, variable)
        if check is not None:
            check()
    zeros = np.zeros((1, len(model.sizes)), dtype=np.int64)
    for state in np.unique(np.concatenate([zeros, samples[-tuned.TRAPS :]]), axis=0):
        found += _trap(model, state)
        if check is not None:
            check()
    bits = np.log2(np.array(model.sizes, dtype=np.float64))
    chosen: list[_Guard] = []
    best, best_bits = NOTHING_KNOWN, float(weights.sum() * bits.sum())
    while len(chosen) < tuned.GUARDS:
        improved = None
        for guard in found:
            if guard in chosen:
                continue
            relevance = _with_guards([*chosen, guard], len(model.sizes))
            left = float(weights @ (relevance.relevant(samples) @ bits))
            if left < best_bits * (1 - 1e-9):
                improved, best, best_bits = guard, relevance, left
            if check is not None:
                check()
        if improved is None:
            break
        chosen.append(improved)
    return best


Dependencies = tuple[int, tuple[int, ...]]
"""At which variables some reward looks, and each next value, as bits of Python integers."""


@dataclass(frozen=True, slots=True, eq=False)
class _Guard:
    """Variables, and what follows where they are in each of some places.

    One variable, and a place for each of its values; or several, and one place, a trap.
    """

    variables: tuple[int, ...]
    values: tuple[int, ...] | None  # of a trap
    places: tuple[Dependencies, ...]


def _relevant(found: Dependencies, guards: int) -> int:
    """Variables that matter to rewards, now or later, or to guards."""
    rewards, parents = found
    reached = waiting = rewards | guards
    while waiting:
        variable = waiting.bit_length() - 1
        waiting ^= 1 << variable
        fresh = parents[variable] & ~reached
        reached |= fresh
        waiting |= fresh
    return reached


def _with_guards(chosen: Sequence[_Guard], n_variables: int) -> Relevance:
    bits = {variable for guard in chosen for variable in guard.variables}
    guards = sum(1 << variable for variable in bits)
    variables, kept, traps = [], [], []
    for guard in chosen:
        rows = [_relevant(place, guards) for place in guard.places]
        flags = np.array([[bool(row >> v & 1) for v in range(n_variables)] for row in rows])
        if guard.values is None:
            variables.append(guard.variables[0])
            kept.append(flags)
        else:
            traps.append(Trap(guard.variables, guard.values, flags[0]))
    return Relevance(tuple(variables), tuple(kept), tuple(traps))


def _one_way(model: FactoredMDP, variable: int) -> list[_Guard]:
    """The guard that a variable makes; none if each value can reach all others, or at what cost."""
    reaches = _reachable_values(model, variable)
    distinct = {row.tobytes(): row for row in reaches}
    looking = sum(table.size for scope, table in _tables(model) if variable in scope)
    if reaches.all() or len(distinct) * looking > tuned.GUARD_NUMBERS:
        return []
    by_set = {
        name: _dependencies(model, {variable: np.flatnonzero(allowed)})
        for name, allowed in distinct.items()
    }
    return [_Guard((variable,), None, tuple(by_set[row.tobytes()] for row in reaches))]


def _trap(model: FactoredMDP, state: Integers) -> list[_Guard]:
    """The trap around the rewards' variables in a state, if there is one.

    The largest set of variables that keep their values as long as all of them do; of those, the
    ones at which rewards look, and at which those look, and so on.
    """
    dynamics = model.dynamics
    closed = set(range(len(model.sizes)))
    changed = True
    while changed:
        changed = False
        for mechanism in dynamics.mechanisms:
            held = [child for child in mechanism.children if child in closed]
            for kernel in mechanism.cases if held else ():
                fixed = {p: np.array([state[p]]) for p in kernel.parents if p in closed}
                table = _restrict(kernel.table, kernel.parents, fixed)
                for child in held:
                    axis = table.ndim - len(mechanism.children) + mechanism.children.index(child)
                    others = np.delete(np.arange(table.shape[axis]), state[child])
                    if child in closed and (table.take(others, axis=axis) > 0).any():
                        closed.discard(child)
                        changed = True
    looks = _dependencies(model, {})[1]
    scopes = {position for scope, _ in _read_now(model) for position in scope}
    needed = waiting = scopes & closed
    while waiting:
        parents = {p for v in waiting for p in range(len(model.sizes)) if looks[v] >> p & 1}
        waiting = parents & closed - needed
        needed = needed | waiting
    if len(needed) < 2:  # a single variable is a guard by itself
        return []
    variables = tuple(sorted(needed))
    place = _dependencies(model, {v: np.array([state[v]]) for v in variables})
    return [_Guard(variables, tuple(int(state[v]) for v in variables), (place,))]


def _read_now(model: FactoredMDP) -> Iterable[tuple[tuple[int, ...], Floats]]:
    """Tables of rewards, of what is allowed, and of terminal states."""
    for cases in (*model.reward_means, *model.conditions.allowed):
        for table in cases:
            yield table.scope, table.values
    for table in model.conditions.terminal:
        yield table.scope, table.values


def _tables(model: FactoredMDP) -> Iterable[tuple[tuple[int, ...], Floats]]:
    yield from _read_now(model)
    for mechanism in model.dynamics.mechanisms:
        for kernel in mechanism.cases:
            yield (*kernel.parents, *kernel.drawn), kernel.table


def _reachable_values(model: FactoredMDP, variable: int) -> Flags:
    """Whether from one value (row) another (column) can be reached, whatever else there is."""
    size = model.sizes[variable]
    reaches = np.eye(size, dtype=np.bool_)
    for mechanism in model.dynamics.mechanisms:
        if variable not in mechanism.children:
            continue
        for kernel in mechanism.cases:
            table = kernel.table
            child = table.ndim - len(mechanism.children) + mechanism.children.index(variable)
            axes = [child]
            if variable in kernel.parents:
                axes.insert(0, kernel.parents.index(variable))
            others = tuple(axis for axis in range(table.ndim) if axis not in axes)
            possible: Flags = np.asarray((table > 0).any(axis=others))
            reaches |= possible if len(axes) == 2 else possible[None, :]
    for _ in range(max(1, math.ceil(math.log2(size)))):
        reaches = (reaches.astype(np.int64) @ reaches.astype(np.int64)) > 0
    return reaches


def _dependencies(model: FactoredMDP, allowed: Mapping[int, Integers]) -> Dependencies:
    """At which variables rewards look, and each next value, while some variables are in sets.

    With rewards count the conditions on actions, and terminal states.
    """
    n_variables = len(model.sizes)
    rewards = 0
    for scope, table in _read_now(model):
        for position in _varying(table, scope, allowed):
            rewards |= 1 << position
    looks = [0] * len(model.dynamics.drawn_sizes)
    for mechanism in model.dynamics.mechanisms:
        seen = 0
        for kernel in mechanism.cases:
            # Drawn values are told from current ones by a shift, and looked through.
            scope = (*kernel.parents, *(n_variables + drawn for drawn in kernel.drawn))
            for position in _varying(kernel.table, scope, allowed):
                seen |= looks[position - n_variables] if position >= n_variables else 1 << position
        for child in mechanism.children:
            looks[child] = seen
    return rewards, tuple(looks[:n_variables])


def _restrict(table: Floats, scope: Sequence[int], allowed: Mapping[int, Integers]) -> Floats:
    """The part of a table in which some variables are in sets."""
    for axis, position in enumerate(scope):
        if position in allowed:
            table = table.take(allowed[position], axis=axis)
    return table


def _varying(table: Floats, scope: Sequence[int], allowed: Mapping[int, Integers]) -> list[int]:
    """Positions of a scope along whose axes a table varies, with some variables held in sets."""
    table = _restrict(table, scope, allowed)
    return [
        position
        for axis, position in enumerate(scope)
        if table.shape[axis] > 1 and (table != table.take([0], axis=axis)).any()
    ]


def pack_variables(sizes: tuple[int, ...], relevance: Relevance) -> Packing:
    """Variables one after another, and which bits each value of a guard keeps."""
    plain = pack_all(sizes)
    n_words = plain.kept.shape[1]
    rows: list[list[int]] = []
    first_row: list[int] = []

    def put(row: list[int], variable: int, value: int) -> None:
        row[int(plain.word[variable])] |= value << int(plain.shift[variable])

    for guard, kept in zip(relevance.guards, relevance.kept, strict=True):
        first_row.append(len(rows))
        for flags in kept:
            row = [0] * n_words
            for variable in np.flatnonzero(flags).tolist():
                put(row, variable, int(plain.field[variable]))
            rows.append(row)
        # Bits can hold more than a variable's values; no state has those.
        rows += [[0] * n_words] * (int(plain.field[guard]) + 1 - len(kept))
    traps = []
    for trap in relevance.traps:
        looked_at, held, left = ([0] * n_words for _ in range(3))
        for variable, value in zip(trap.variables, trap.values, strict=True):
            put(looked_at, variable, int(plain.field[variable]))
            put(held, variable, int(value))
        for variable in np.flatnonzero(trap.kept).tolist():
            put(left, variable, int(plain.field[variable]))
        traps.append([looked_at, held, left])
    return plain._replace(
        guard=np.array(list(relevance.guards), dtype=np.int64),
        first_row=np.array(first_row, dtype=np.int64),
        kept=np.array(rows, dtype=np.int64).reshape(-1, n_words),
        trap=np.array(traps, dtype=np.int64).reshape(-1, 3, n_words),
    )


Callback = Callable[[float, float, float], None]
"""Called with seconds since the search began, and the upper and the lower bound at the start."""


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """What a search has found out about the start.

    `policy` is proved to earn `lower_bound` from the start, whatever happens outside its table;
    no policy earns more than `upper_bound`. `optimistic` is the policy of the upper bounds as long
    as the bounds are far apart, and the same as `policy` afterwards: nothing is proved of it, and
    it may be the better one.
    """

    upper_bound: float
    lower_bound: float
    solved: bool
    status: Status | None  # why it ended before it was solved; None: no room, or trials made
    policy: ArrayPolicy
    optimistic: ArrayPolicy
    trials: int
    states: int
    expanded: int
    bytes: int = field(repr=False)
    proof: Expanded = field(repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Expanded:
    """The states that were expanded, by which the upper bound can be proved again.

    What is irrelevant is 0 in them. `upper` are their upper bounds without a horizon; with one,
    those of all steps follow from the states.
    """

    states: Integers  # (n_expanded, n_variables)
    upper: Floats | None  # (n_expanded,)
    relevance: Relevance


def search(
    model: FactoredMDP,
    basis: Basis,
    weights: Floats,
    clock: Clock = NO_LIMIT,
    *,
    lower: tuple[Basis, Floats] | None = None,
    fallback: Policy | None = None,
    seed: int = 0,
    trials: int | None = None,
    tolerance: float = 1e-6,
    memory_limit: int = tuned.SEARCH_BYTES,
    callback: Callback | None = None,
) -> Found:
    """Search from the start between a certified upper bound and a lower bound.

    V_l(s) = sum_j w_lj h_j(s) with the `weights` of a plan's bound is never below V*, so it, and
    what the largest rewards would add up to, bounds what follows a state that was not expanded
    yet from above; what the safest action earns for certain bounds it from below. Trials walk from
    the start, expand what they meet and back both bounds up; the bounds at the start approach one
    another, are true at every moment, and meet after finitely many trials if the horizon is
    finite. Solved means: they are apart by at most `tolerance`, relative to what the trivial
    bounds are apart.

    `lower` are weights of values that a policy is certified to reach (L <= R + E L), with
    `fallback` that policy. Otherwise `fallback` acts outside the table of `optimistic` only.

    Source: McMahan, Likhachev, Gordon, Bounded Real-Time Dynamic Programming, ICML 2005.
    Cost: about as much memory as its limit if it is not solved before; a row of bounds for each
    state that was visited, and its successors for each that was expanded.
    """
    check_model(model, "search")
    seed = as_whole(seed, "seed", 0)
    trials = None if trials is None else as_whole(trials, "trials", 0)
    memory_limit = as_whole(memory_limit, "memory_limit", 2**20)
    tolerance = as_number(tolerance, "tolerance", "it says when bounds agree")
    run = _Run(model, basis, weights, lower, fallback, seed, memory_limit)
    status = run.go(clock, tolerance, trials, callback)
    return run.result(status, tolerance, lower is not None)


class _Run:
    """One search: its graph, and all that its compiled parts need."""

    def __init__(
        self,
        model: FactoredMDP,
        basis: Basis,
        weights: Floats,
        lower: tuple[Basis, Floats] | None,
        fallback: Policy | None,
        seed: int,
        memory_limit: int,
    ) -> None:
        self.model, self.rng = model, generator(seed, Purpose.SEARCH)
        finite = model.horizon is not None
        n_steps = 1 if model.horizon is None else model.horizon + 1
        rules = flat_rules(model)
        self.relevance = find_relevance(model, *_sample_states(model, self.rng))
        packing = pack_variables(model.sizes, self.relevance)
        ceiling, floor, self.safest, scale = _trivial_bounds(model, n_steps)
        self.scale = scale
        below = _no_values(n_steps) if lower is None else local_values(model, *lower)
        self.ground = Ground(
            rules, packing, local_values(model, basis, weights), below, ceiling, floor
        )
        terms = len(rules.kernels.defaults) + len(rules.rewards.defaults) + 8
        self.rows = new_rows(n_steps, model.discount, finite, 4 * EPSILON * terms * scale)
        self.work = new_workspace(rules, packing)
        arrays = self._safest() if fallback is None else resolve(model, fallback).arrays
        if arrays is None:
            raise PolicyError(
                "search: the fallback must be a policy that compiled code can follow; give a plan, "
                "a table, or an action's name."
            )
        self.turns = GUIDED if fallback is None else GUIDED + 1
        self.guide = arrays
        self.store = Store.empty(packing.kept.shape[1], n_steps, memory_limit)
        self.sweep_seconds = 0.0
        self._most, self._counted = 0, 0  # entries of an action at most, of the actions counted
        self.tally = np.zeros(N_TALLIES, dtype=np.int64)
        self.path = np.zeros(tuned.TRIAL_STEPS if not finite else n_steps - 1, dtype=np.int32)
        self.starts, self.chances = self._starts()
        self.rounding = 4 * EPSILON * (len(self.chances) + len(model.sizes) + 4) * scale

    def _safest(self) -> CompiledPolicy:
        """The policy that earns the floor."""
        if self.safest < 0:
            return first_allowed(self.model.conditions)
        found = resolve(self.model, self.model.actions[self.safest]).arrays
        assert found is not None
        return found

    def _starts(self) -> tuple[Indices, Floats]:
        """States at which an episode may begin, as numbers, and their probabilities."""
        distributions = self.model.initial_distributions()
        supports = [np.flatnonzero(d).tolist() for d in distributions]
        count = math.prod(map(len, supports))
        if count > tuned.SEARCH_STARTS:
            raise SizeError(
                f"search: an episode may begin in {show_count(count)} states, expected at most "
                f"{tuned.SEARCH_STARTS}; use fsmdp.plan, which does not list states."
            )
        numbers, chances = [], []
        for state in product(*supports):
            numbers.append(self._number(np.array(state, dtype=np.int64)))
            chances.append(
                math.prod(float(d[value]) for d, value in zip(distributions, state, strict=True))
            )
        return np.array(numbers, dtype=np.int32), np.array(chances)

    def _number(self, values: Integers) -> int:
        packing = self.ground.packing
        key = np.zeros(packing.kept.shape[1], dtype=np.int64)
        pack(packing, values, key)
        number = number_of(self.ground, self.store.graph, key, values)
        if number < 0:
            if not self.store.grow(graphs.STATES):
                raise SizeError(
                    f"search: no room for the states at which an episode may begin within "
                    f"{show_count(self.store.limit)} bytes; use a larger memory_limit=."
                )
            number = number_of(self.ground, self.store.graph, key, values)
        return number

    def bounds(self) -> tuple[float, float]:
        """Upper and lower bound at the start, rounding paid for."""
        upper, lower = start_bounds(self.store.graph, self.starts, self.chances)
        return upper + self.rounding, lower - self.rounding

    def closed(self, tolerance: float) -> bool:
        """Whether the bounds at the start agree."""
        upper, lower = self.bounds()
        return upper - lower <= self._absolute(tolerance)

    def _absolute(self, tolerance: float) -> float:
        """How close the bounds have to come: a share of what they were apart, and rounding.

        Each backup moves them apart by four units for each entry of an action, and one more.
        """
        apart = float(self.ground.ceiling[0] - self.ground.floor[0])
        graph, seen = self.store.graph, int(self.store.graph.counts[graphs.ACTIONS])
        starts = graph.first_entry[self._counted : seen + 1]
        self._most = max(self._most, int(np.diff(starts).max(initial=0)))
        self._counted = seen
        steps = sum_of_discounts(self.model.horizon, self.model.discount)
        backups = 4 * self.rows.unit * (self._most + 1) * steps
        return tolerance * apart + 4 * self.rounding + backups

    def go(
        self, clock: Clock, tolerance: float, trials: int | None, callback: Callback | None
    ) -> Status | None:
        """Trials, and sweeps in between, until something ends it; what the clock said."""
        began, since_sweep = time.perf_counter(), 0
        left = 2**62 if trials is None else trials
        while left > 0 and not self.closed(tolerance):
            if not clock.has(self.policy_seconds()):
                return clock.status or Status.TIME_LIMIT
            before, work_before = int(self.tally[0]), int(self.tally[1])
            ended = run_trials(
                self.ground,
                self.store.graph,
                self.rows,
                self.work,
                self.guide,
                self.turns,
                self.starts,
                self.chances,
                self.path,
                self.tally,
                self.rng,
                self._absolute(tolerance) - 2 * self.rounding,
                left,
                tuned.TRIAL_EFFORT,
            )
            left -= int(self.tally[0]) - before
            since_sweep += int(self.tally[1]) - work_before
            if ended == graphs.STUCK:
                raise self.model.conditions.stuck(
                    self.work.values[: len(self.model.sizes)].tolist()
                )
            if ended == graphs.TOO_MANY:
                break
            if graphs.FULL_STATES <= ended <= graphs.FULL_ENTRIES and not self.store.grow(
                ended - graphs.FULL_STATES
            ):
                break
            if ended != CLOSED and since_sweep > tuned.SWEEP_EVERY * int(
                self.store.graph.counts[graphs.ENTRIES]
            ):
                self.sweep(clock)
                since_sweep = 0
            if callback is not None:
                callback(time.perf_counter() - began, *self.bounds())
        self.sweep(clock)
        return clock.status

    def policy_seconds(self) -> float:
        """About how long it takes to write the policies down, which has to be ready in time."""
        return 2 * self.sweep_seconds + tuned.POLICY_ENTRY_SECONDS * int(
            self.store.graph.counts[graphs.ENTRIES]
        )

    def sweep(self, clock: Clock) -> float:
        """Back all expanded states up once, the last ones met first; the largest change."""
        graph: Graph = self.store.graph
        began = time.perf_counter()
        change, end = 0.0, int(graph.counts[graphs.STATES])
        while end > 0 and clock.status is None:
            begin = max(0, end - 2**13)
            change = max(change, sweep(graph, self.rows, begin, end))
            end = begin
        self.sweep_seconds = time.perf_counter() - began
        return change

    def result(self, status: Status | None, tolerance: float, proved: bool) -> Found:
        """What was found, with the policies' tables."""
        safest = self._safest()
        upper, lower = self.bounds()
        solved = self.closed(tolerance)
        graph = self.store.graph
        expanded = np.flatnonzero(graph.first_action[: graph.counts[graphs.STATES]] >= 0)
        known = self.ground.ceiling[0] - self.ground.floor[0]
        far_apart = upper - lower > tuned.FAR_APART_SHARE * min(known, upper - self.ground.floor[0])
        policy = self._policy(False, self.guide if proved else safest, not proved)
        return Found(
            upper,
            lower,
            solved,
            None if solved else status,
            policy,
            self._policy(True, self.guide, self.turns <= GUIDED) if far_apart else policy,
            int(self.tally[0]),
            int(graph.counts[graphs.STATES]),
            len(expanded),
            self.store.bytes,
            Expanded(
                unpack_keys(self.ground.packing, graph.keys[expanded]),
                graph.upper[expanded, 0] if self.model.horizon is None else None,
                self.relevance,
            ),
        )

    def _policy(self, optimistic: bool, elsewhere: CompiledPolicy, safe: bool) -> ArrayPolicy:
        """The actions of one of the two bounds, wherever they lead from the start."""
        graph, model = self.store.graph, self.model
        count = int(graph.counts[graphs.STATES])
        # Where no more than the floor can be earned the safest action earns it, without a table.
        floor = self.ground.floor if safe else np.full(len(self.ground.floor), -np.inf)
        seen, following = np.full(count, -1, dtype=np.int64), np.zeros(count, dtype=np.int32)
        states = np.unique(self.starts)
        states = states[graph.first_action[states] != graphs.NOT_EXPANDED]
        seen[self.starts] = 0
        all_states, all_steps, all_chosen, step = [states[:0]], [seen[:0]], [states[:0]], 0
        while len(states):
            chosen = np.zeros(len(states), dtype=np.int32)
            stamp = 0 if model.horizon is None else step + 1
            found = choose_actions(
                graph,
                self.rows,
                states,
                step,
                len(model.actions),
                optimistic,
                floor,
                self.scale,
                seen,
                stamp,
                chosen,
                following,
            )
            all_states.append(states)
            all_steps.append(np.full(len(states), 0 if model.horizon is None else step))
            all_chosen.append(chosen)
            states, step = following[:found].copy(), step + 1
            if step == model.horizon:
                break
        rows = np.concatenate(all_states)
        keys = graph.keys[rows]
        by_step = model.horizon is not None
        if by_step:
            keys = np.hstack([keys, np.concatenate(all_steps)[:, None]])
        chosen = np.concatenate(all_chosen)[None, :]
        table = hash_actions(self.ground.packing, by_step, np.ascontiguousarray(keys), chosen)
        arrays = elsewhere._replace(hashed=table)
        return ArrayPolicy("search", model.variables, model.actions, model.horizon, arrays)


def _no_values(n_steps: int) -> Heuristic:
    return Heuristic(compile_lookup([], 1), np.zeros((0, n_steps)), np.zeros(n_steps))


def _trivial_bounds(model: FactoredMDP, n_steps: int) -> tuple[Floats, Floats, int, float]:
    """Per step, the most and the least of what is left to earn; the safest action; a scale.

    The most is that of the largest rewards; the least what the action with the largest smallest
    reward earns when it is repeated; it must be one that is always allowed. Where none is, -1
    stands for the first that is allowed in each state, and the least reward of all for its own.
    Where episodes end early, nothing may be left to earn.
    """
    highs, lows, size = np.zeros(len(model.actions)), np.zeros(len(model.actions)), 0.0
    for means in model.reward_means:
        high = np.array([table.values.max() for table in means])
        low = np.array([table.values.min() for table in means])
        groups = np.zeros(len(model.actions), dtype=np.int64)
        for action, group in means.exceptions.items():
            groups[action] = group
        highs += high[groups]
        lows += low[groups]
        size += max(float(np.abs(high).max()), float(np.abs(low).max()))
    conditioned = {action for cases in model.conditions.allowed for action in cases.exceptions}
    always = [action for action in range(len(lows)) if action not in conditioned]
    safest = max(always, key=lows.__getitem__, default=-1)
    least = float(lows[safest] if safest >= 0 else lows.min())
    most = float(highs.max())
    if model.terminal:
        least, most = min(least, 0.0), max(most, 0.0)
    left = np.array(
        [
            sum_of_discounts(None if model.horizon is None else n_steps - 1 - step, model.discount)
            for step in range(n_steps)
        ]
    )
    scale = size * float(left[0]) + size + UNDERFLOW
    rounding = 8 * (n_steps + len(model.rewards) + len(model.dynamics.mechanisms)) * EPSILON * scale
    # A row of a kernel sums to 1 up to rounding only: with nothing left to earn there is none.
    pay = np.where(left > 0, rounding, 0.0)
    return most * left + pay, least * left - pay, safest, scale


def _sample_states(model: FactoredMDP, rng: np.random.Generator) -> tuple[Integers, Floats]:
    """States to judge relevance by, and weights: those on walks at random, and some of any values.

    The latter count for little, and stand for what walks at random never reach, such as goals.
    """
    uniform = np.stack(
        [rng.integers(size, size=tuned.RELEVANCE_SAMPLES) for size in model.sizes], axis=1
    )
    compiled, steps = (
        compile_model(model),
        min(model.horizon or tuned.RELEVANCE_STEPS, tuned.RELEVANCE_STEPS),
    )
    episodes = -(-tuned.RELEVANCE_SAMPLES // steps)
    record = new_record(compiled, episodes, steps)
    values, returns = np.zeros(compiled.n_slots, dtype=np.int64), np.zeros(episodes)
    chance = by_chance(model.conditions)
    found = simulate(compiled, chance, rng, 1.0, True, 0, steps, values, returns, record)
    check_followed(model, found, values)
    walked = record.states.reshape(-1, len(model.sizes))
    # Traps are looked for at the end, where walks got caught.
    states = np.concatenate([uniform, walked, record.states[:, -1]]).astype(np.int64)
    weights = np.ones(len(states))
    weights[: tuned.RELEVANCE_SAMPLES] = 0.01
    return states, weights / weights.sum()
