"""Invariants of a model, found by episodes that do not contradict them, and proved by one step."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np

from fsmdp.bounds.clock import NO_LIMIT
from fsmdp.foundation.streams import Purpose, derived_seed
from fsmdp.model.mdp import FactoredMDP, check_model
from fsmdp.model.supports import Booleans, family
from fsmdp.model.variables import Scope, table_size
from fsmdp.policies.resolve import array_policy, idle_policy
from fsmdp.reductions.invariants import (
    LARGEST_LOCAL,
    LARGEST_TOTAL,
    Invariant,
    States,
    SumInvariant,
    count_each_nonzero,
    prove,
)
from fsmdp.solver import parameters as tuned
from fsmdp.solver.judge import arena_of


def find_invariants(
    model: FactoredMDP, seed: int = 0, check: Callable[[], None] | None = None
) -> tuple[Invariant, ...]:
    """What holds at the start and after every step, whatever is done: proved, by one step.

    Values that a variable never takes; values of two variables that a mechanism or a reward looks
    at together which never go together; and limits on how many of the variables that are called
    alike are nonzero. Those that episodes at random or of doing nothing contradict are left out;
    the strongest of the rest are proved. There may be others. `check` may raise to end it.
    Cost: the episodes, and local eliminations (see `fsmdp.reductions.invariants.prove`).
    """
    check_model(model, "invariants")
    check = check or NO_LIMIT.check
    states = _met(model, seed, check)
    tables = {}
    for scope in _scopes(model):
        check()
        table = np.zeros([model.sizes[p] for p in scope], dtype=np.bool_)
        table[tuple(states[:, p] for p in scope)] = True
        if not table.all():
            tables[scope] = table
    return prove(model, tables, _sums(model, states), check)


def _met(model: FactoredMDP, seed: int, check: Callable[[], None]) -> States:
    """The states of some episodes, if they are not very long, and one with which they may start."""
    arena = arena_of(model)
    numbers = arena.steps * len(model.sizes)
    episodes = min(tuned.INVARIANT_EPISODES, tuned.INVARIANT_NUMBERS // numbers)
    start = [int(one.argmax()) for one in model.initial_distributions()]
    parts = [np.array([start], dtype=np.int64)]
    if not episodes:
        return parts[0]
    for number, policy in enumerate(("random", idle_policy(model))):
        arrays = array_policy("visiting", model, policy).compiled()
        assert arrays is not None
        stream = derived_seed(seed, Purpose.INVARIANTS, number)
        met = arena.states(arrays, episodes, stream, check)
        parts.append(met.reshape(-1, met.shape[-1]))
    return np.concatenate(parts)


def _scopes(model: FactoredMDP) -> list[Scope]:
    """Variables, and pairs of them that a mechanism or a reward looks at, of small tables."""
    n_variables, sizes = len(model.sizes), model.sizes
    found: dict[Scope, None] = {(p,): None for p in range(n_variables)}
    scopes = [tuple(sorted({p, *model.parents(p)})) for p in range(n_variables)]
    scopes += [table.scope for means in model.reward_means for table in means]
    for scope in scopes:
        found.update(dict.fromkeys(combinations([p for p in scope if p < n_variables], 2)))
    small = [s for s in found if table_size(sizes[p] for p in s) <= LARGEST_LOCAL]
    return sorted(small, key=len)[: tuned.INVARIANT_TABLES]


def _sums(model: FactoredMDP, states: States) -> list[SumInvariant]:
    """Families of variables, and pairs of families, of which never all or none were nonzero."""
    families: dict[str, list[int]] = {}
    for position, variable in enumerate(model.variables):
        families.setdefault(family(variable.name), []).append(position)
    groups = [tuple(members) for members in families.values()]
    if len(groups) <= tuned.SUM_FAMILIES:
        groups += [tuple(sorted((*a, *b))) for a, b in combinations(groups, 2)]
    found = []
    off: Booleans = states > 0
    for scope in groups:
        counts = count_each_nonzero(scope, model.sizes)
        sums = off[:, list(scope)].sum(axis=1)
        one = SumInvariant(scope, counts, int(sums.min()), int(sums.max()))
        few = 1 < len(scope) <= tuned.SUM_VARIABLES and one.total <= LARGEST_TOTAL
        if few and (one.least > 0 or one.most < one.total):
            found.append(one)
    return found
