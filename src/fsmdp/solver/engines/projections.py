"""Projections: exact values of a few variables, written in functions of the whole model.

Where a goal is many steps away, and fits see it from nowhere, a model of the few variables that
actions move still does: its values say which way to go, and a greedy step in the whole model sees
what stands in the way.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fsmdp.bounds.clock import Clock, Stopped
from fsmdp.errors import SizeError
from fsmdp.exact.solve import Exact, ExactSolution
from fsmdp.foundation.checks import plural
from fsmdp.foundation.streams import Purpose, generator
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.tables import Floats, Integers, Table, bound_table
from fsmdp.model.variables import Scope, table_size
from fsmdp.policies.greedy import Greedy
from fsmdp.reductions.projection import Project
from fsmdp.solver import parameters as tuned
from fsmdp.solver.engine import CandidatePolicy, Engine, Findings, Stage
from fsmdp.solver.fitting import Fit, Fitting, Pool
from fsmdp.solver.state import SolverState

Check = Callable[[], None]


@dataclass(frozen=True, slots=True, eq=False)
class Projection:
    """Some variables of a model, and their values when all others are as they usually are."""

    kept: Scope
    solution: ExactSolution
    whole: bool  # all that actions move, and leads to rewards

    @property
    def states(self) -> Integers:
        """What can be reached, a state of the kept variables in each row."""
        reached = self.solution.reached
        assert reached is not None
        return reached.states(self.solution.model)

    def within(self, step: int) -> int:
        """How many of the states have values at a step, counted from 0."""
        reached = self.solution.reached
        assert reached is not None
        return len(reached) if self.solution.model.horizon is None else reached.within(step)


def frequencies_of(pool: Pool, sizes: Sequence[int]) -> list[Floats]:
    """How often each value of each variable is encountered; nothing is taken to be impossible."""
    found = [np.full(size, 1e-3 / size) for size in sizes]
    for states, counts in zip(pool.states, pool.counts, strict=True):
        for variable, total in enumerate(found):
            total += np.bincount(states[:, variable], counts, minlength=len(total))
    return [total / total.sum() for total in found]


def projections_of(
    model: FactoredMDP, frequencies: Sequence[Floats], check: Check
) -> list[Projection]:
    """One for all rewards if what actions move is small enough; otherwise one for each term.

    Terms that no state decides, such as the cost of an action, count in each.
    """
    scopes = [sorted({p for table in means for p in table.scope}) for means in model.reward_means]
    everywhere = [term for term, scope in enumerate(scopes) if not scope]
    moved = [
        len(model.dynamics.ancestry((variable,))) > 1 for variable in range(len(model.variables))
    ]
    parents = [model.parents(variable) for variable in range(len(model.variables))]
    order = _nearest(parents, sorted({p for scope in scopes for p in scope}), moved)
    movable = [variable for variable in order if moved[variable]]
    whole = _solve(model, movable, range(len(scopes)), frequencies, check)
    if whole is not None:
        return [replace(whole, whole=True)]
    spans = [max(float(np.ptp(table.values)) for table in means) for means in model.reward_means]
    chosen = sorted(range(len(scopes)), key=lambda term: (-spans[term], term))[
        : tuned.PROJECTED_TERMS
    ]
    found = []
    for term in chosen:
        if not scopes[term]:
            continue
        order = _nearest(parents, scopes[term], moved)[: tuned.PROJECTED_VARIABLES]
        solved = None
        while solved is None and order:
            solved = _solve(model, order, [*everywhere, term], frequencies, check)
            order = order[: len(order) // 2]
        if solved is not None:
            found.append(solved)
    return found


def _nearest(parents: Sequence[Scope], seeds: Sequence[int], moved: Sequence[bool]) -> list[int]:
    """Variables that lead to the seeds, those first that actions move, and that are nearer."""
    distance = dict.fromkeys(seeds, 0)
    edge = list(seeds)
    while edge:
        following = []
        for variable in edge:
            for parent in parents[variable]:
                if parent not in distance:
                    distance[parent] = distance[variable] + 1
                    following.append(parent)
        edge = following
    return sorted(distance, key=lambda variable: (not moved[variable], distance[variable]))


def _solve(
    model: FactoredMDP,
    kept: Sequence[int],
    terms: Sequence[int],
    frequencies: Sequence[Floats],
    check: Check,
) -> Projection | None:
    check()
    projected = Project(kept, terms, frequencies).apply(model)
    if projected is None:
        return None
    try:
        solution = Exact(limit=tuned.PROJECTION_NUMBERS, reachable=True).solve(
            projected.model, check
        )
    except SizeError:
        return None
    return Projection(tuple(sorted(kept)), solution, whole=False)


def policy_of(fitting: Fitting, projections: Sequence[Projection], seed: int) -> Greedy:
    """Greedy in the whole model for the sum of the projections' values, in a basis' functions.

    Each step's values are fitted to the functions that depend on a projection's variables alone;
    where the functions distinguish its states, they are matched exactly.
    """
    model, n_functions = fitting.model, len(fitting.basis)
    n_rows = 1 if model.horizon is None else model.horizon + 1
    weights = np.zeros((n_rows, n_functions))
    for projection in projections:
        for step, found in _regressed(fitting, projection, seed):
            weights[step] += found
    later = weights if model.horizon is None else weights[1:]
    entries = np.stack([fitting.backups.entries(row) for row in later])
    return Greedy(model.variables, model.actions, model.horizon, fitting.backups.lookup, entries)


def _regressed(fitting: Fitting, projection: Projection, seed: int) -> Iterator[tuple[int, Floats]]:
    """For each step, the weights of a projection's values."""
    place = {position: column for column, position in enumerate(projection.kept)}
    usable = [at for at, scope in enumerate(fitting.basis.scopes) if place.keys() >= set(scope)]
    states = projection.states
    rows = np.arange(len(states))
    if len(rows) > tuned.REGRESSED_STATES:  # all that is near the start, and some of the rest
        rng, half = generator(seed, Purpose.PROJECTING), tuned.REGRESSED_STATES // 2
        rows = np.append(rows[:half], np.sort(rng.permutation(rows[half:])[:half]))
    columns = np.empty((len(rows), len(usable)))
    for column, at in enumerate(usable):
        table = fitting.basis.tables[at]
        inputs = tuple(states[rows, place[position]] for position in table.scope)
        columns[:, column] = table.values[inputs]
    for step, values in enumerate(projection.solution.values):
        known = int(np.searchsorted(rows, projection.within(step)))
        found = np.zeros(len(fitting.basis))
        if known and values.any():
            part, target = columns[:known], values[rows[:known]]
            matrix = part.T @ part
            scale = tuned.PROJECTION_RIDGE * (float(np.trace(matrix)) / len(usable) or 1.0)
            matrix[np.diag_indices_from(matrix)] += scale
            found[usable] = np.linalg.solve(matrix, part.T @ target)
        yield step, found


def crossed(pool: Pool, projection: Projection, count: int, rng: np.random.Generator) -> Integers:
    """States of the pool with the projection's variables anywhere that they can be.

    (count, steps, n_variables). No policy may ever meet some of them, but a fit that has seen what
    they are worth knows where to go before any policy has been there.
    """
    visited = np.stack(
        [
            states[rng.choice(len(states), count, p=counts / counts.sum())]
            for states, counts in zip(pool.states, pool.counts, strict=True)
        ],
        axis=1,
    )
    states = projection.states
    chosen = rng.integers(0, len(states), visited.shape[:2])
    visited[:, :, list(projection.kept)] = states[chosen]
    return visited


def functions_of(model: FactoredMDP, projections: Sequence[Projection]) -> list[Table]:
    """Values at some steps as functions, of the projections whose tables are small.

    A state that cannot be reached counts as the mean of those that can.
    """
    found = []
    for projection in projections:
        shape = tuple(model.sizes[position] for position in projection.kept)
        if len(shape) < 2 or table_size(shape) > tuned.PROJECTED_FUNCTION_ENTRIES:
            continue  # a single variable's values are in any basis
        states = projection.states
        last = len(projection.solution.values) - (model.horizon is not None)
        for step in sorted(
            {
                i * last // tuned.PROJECTED_FUNCTION_STEPS
                for i in range(tuned.PROJECTED_FUNCTION_STEPS)
            }
        ):
            known = projection.within(step)
            values = projection.solution.values[step, :known]
            if np.ptp(values) == 0.0:
                continue
            table = np.full(shape, values.mean())
            table[tuple(states[:known].T)] = values
            table -= table.min()
            found.append(bound_table(projection.kept, table / table.max()))
    return found


@dataclass(frozen=True, slots=True)
class Projections(Engine):
    """Exact values of a few variables, others as encountered, give a policy and functions."""

    def applies(self, state: SolverState) -> str | float:
        """If no basis was given."""
        return 0.0 if state.basis is None else "policies stay within the basis"

    def run(self, state: SolverState, clock: Clock) -> Findings:
        """A candidate for each fit so far, which counts how often values are encountered."""
        for fit in list(state.fits):
            found = self._of(fit, clock)
            if found:
                state.projections[fit.reduced.label] = found
                kept = len({position for one in found for position in one.kept})
                name = f"{fit.reduced.label}projections onto {plural(kept, 'variable')}"
                policy = policy_of(fit.fitting, found, state.seed)
                yield CandidatePolicy(name, policy, fit.reduced, shared=True)

    def _of(self, fit: Fit, clock: Clock) -> list[Projection]:
        """None if time is up, or if actions are made of variables."""
        model = fit.reduced.model
        if model.actions.variables:
            return []
        try:
            check = clock.share(tuned.PROJECTION_SHARE).check
            return projections_of(model, frequencies_of(fit.fitting.pool, model.sizes), check)
        except Stopped:
            clock.check()
            return []


PROJECTIONS = Projections(
    "projections",
    Stage.MAIN,
    "Exact values of the variables that actions move, or that are nearest to one reward, with all "
    "others drawn as often as they are encountered; a greedy step in the whole model follows them.",
    compiles=("exact solver",),
)
