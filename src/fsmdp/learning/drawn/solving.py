"""The solver inside a learner: the best of several policies for a model that was drawn.

A model small enough is solved exactly. Otherwise values are fitted on a pool of states of the drawn
model, met at random, when doing nothing, and under every candidate so far; candidates are the fits
and the policies that the caller has, such as the linear program's, judged by simulation of the
drawn model. Nothing depends on the clock, so that a seed fixes a run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fsmdp.errors import FsmdpError
from fsmdp.exact.solve import Exact, expected_seconds
from fsmdp.foundation.streams import Purpose, derived_seed
from fsmdp.model.mdp import FactoredMDP
from fsmdp.policies.arrays import CompiledPolicy
from fsmdp.policies.resolve import ArrayPolicy, array_policy
from fsmdp.solver.fitted import begin
from fsmdp.solver.fitting import Choices, Fitting, first_basis
from fsmdp.solver.judge import Judge, arena_of
from fsmdp.solver.view import View

Named = tuple[str, CompiledPolicy]

EXACTLY = 1.0
"""Seconds within which exact values are expected if they are what is used."""

ROUNDS, EPISODES, POOL = 3, 150, 4_000
"""Fits of a drawn model, episodes of each policy whose states join the pool, states of a step."""


def best_policy(model: FactoredMDP, candidates: Callable[[], Sequence[Named]], seed: int) -> Named:
    """The best policy found; `candidates` are asked for only where there are no exact values."""
    needed = expected_seconds(model)
    if needed is not None and needed <= EXACTLY:
        found = array_policy("exact values", model, Exact(reachable=False).solve(model, _go_on))
        return "exact values", found.compiled()
    judge = Judge(arena_of(model), seed)
    fitting = None
    try:
        basis = first_basis(model, pairs=True)
        begun = Fitting(model, basis, Choices(pool=POOL), _go_on)
        begin(begun, View("", model), judge.arena, EPISODES, seed, _go_on)
        fitting = begun
    except FsmdpError:  # tables or states that are too large: what else there is has to do
        pass
    for name, arrays in candidates():
        policy = ArrayPolicy(name, model.variables, model.actions, model.horizon, arrays)
        judge.consider(name, policy, arrays, 0.0)
        if fitting is not None:
            fitting.meet(judge.arena.states(arrays, EPISODES, derived_seed(seed, Purpose.VISITED)))
    for number in range(ROUNDS if fitting is not None else 0):
        assert fitting is not None
        greedy = fitting.fit(_go_on)
        arrays = greedy.compiled()
        judge.consider(f"fit {number + 1}", greedy, arrays, 0.0)
        if number + 1 < ROUNDS:
            visited = derived_seed(seed, Purpose.VISITED, number + 1)
            fitting.meet(judge.arena.states(arrays, EPISODES, visited))
    if judge.incumbent is None:
        policy = array_policy("at random", model, "random")
        return "at random", policy.compiled()
    return judge.incumbent.name, judge.incumbent.arrays


def _go_on() -> None:
    """Nothing ends a plan early."""
