"""Fitted values that improve round by round: fit, follow, add what was met, fit again; and grow."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass

import numpy as np

from fsmdp.model.basis import Basis
from fsmdp.model.lookup import Integers
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.tables import Floats, Table
from fsmdp.model.variables import Scope, table_size
from fsmdp.policies.greedy import Greedy
from fsmdp.solver.backups import Backups, backup_size, backups_of
from fsmdp.solver.features import Features, compile_features, fill_values
from fsmdp.solver.fit import fit_step, targets_of
from fsmdp.solver.growth import extensions, gains_of, with_scopes
from fsmdp.solver.pool import empty_pool, with_states

Check = Callable[[], None]

LARGEST_BACKUP = 2**16
"""Numbers in the tables of one function's expectations; scopes with more are left out."""

MOST_NUMBERS = 2**26
"""Numbers in the tables of all functions, over all steps: 512 MiB."""

MERGED = 4
"""Tables turn out smaller than declared, most often by more than this: parents on which nothing
depends are left out, and equal tables of several actions are one."""

MOST_FUNCTIONS = 2000
"""The cube of these is the cost of a step."""

LOOK_BACK = 8
"""Steps whose fits are looked at for what they leave over."""

SETTLED = 0.02
"""With an infinite horizon, stages are run until the rest counts for this fraction."""

FIRST_STAGES, MORE_STAGES = 200, 20


@dataclass(frozen=True, slots=True)
class Choices:
    """How values are fitted: how strongly to the following step's, how many states."""

    ridge: float = 1e-3
    pool: int = 20_000


class Fitting:
    """Weights for one basis on a pool of states that grows."""

    def __init__(self, model: FactoredMDP, basis: Basis, choices: Choices, check: Check) -> None:
        self.model, self.choices, self._check = model, choices, check
        self.pool = empty_pool(model.horizon or 1, len(model.variables))
        self.weights: Floats | None = None  # (n_steps + 1, n_functions); (1, ...) if infinite
        self._use(basis, check)

    @property
    def basis(self) -> Basis:
        """The functions in use."""
        return self.backups.basis

    def _use(self, basis: Basis, check: Check) -> None:
        self.backups: Backups = backups_of(self.model, basis, check)
        self.features: Features = compile_features(self.backups.basis)

    def copy(self) -> Fitting:
        """The same functions and states, to go on in another way."""
        return copy(self)

    def meet(self, states: Integers) -> None:
        """Add states to the pool: (episodes, steps, n_variables)."""
        self.pool = with_states(self.pool, states, self.choices.pool, self._check)

    def fit(self, check: Check) -> Greedy:
        """Fit all steps to the pool as it is; the greedy policy of the values found.

        V_l = least squares of max_a R(s, a) + discount * E[V_{l+1}(s') | s, a] over the states.
        Cost: for each state the look-ups of its actions and the square of its functions; for each
        step the cube of all functions.
        """
        model = self.model
        if model.horizon is None:
            self.weights = self._fit_endless(check)
            entries = self.backups.entries(self.weights[0])[None, :]
        else:
            weights = np.zeros((model.horizon + 1, self.features.n_functions))
            entries = np.empty((model.horizon, self.backups.n_entries))
            for step in reversed(range(model.horizon)):
                check()
                self.backups.entries(weights[step + 1], out=entries[step])
                weights[step] = self._fit_step(step, entries[step], weights[step + 1])
            self.weights = weights
        return Greedy(model.variables, model.actions, model.horizon, self.backups.lookup, entries)

    def _fit_step(self, step: int, entries: Floats, later: Floats) -> Floats:
        states, counts, ridge = self.pool.states[step], self.pool.counts[step], self.choices.ridge
        return fit_step(self.backups, self.features, states, counts, entries, later, ridge)

    def _fit_endless(self, check: Check) -> Floats:
        """Stages of a finite horizon, long enough that the rest hardly counts."""
        stages = math.ceil(math.log(SETTLED) / math.log(self.model.discount))
        most = FIRST_STAGES if self.weights is None else MORE_STAGES
        found = np.zeros(self.features.n_functions)
        if self.weights is not None:
            found[: self.weights.shape[1]] = self.weights[0]
        for _ in range(min(stages, most)):
            check()
            found = self._fit_step(0, self.backups.entries(found), found)
        return found[None, :]

    def grow(self, batch: int, check: Check) -> int:
        """Add the scopes that explain most of what the fit leaves over; how many functions.

        Scopes extend those in use by a variable that something looks at together with all of
        theirs. Cost: a look-up for each candidate and state of a few steps.
        """
        assert self.weights is not None
        scopes = sorted(set(self.basis.scopes))
        candidates = extensions(self.model, scopes, LARGEST_BACKUP)
        if not candidates:
            return 0
        steps = len(self.pool.states)
        looked_at = sorted({round(i * (steps - 1) / LOOK_BACK) for i in range(LOOK_BACK + 1)})
        states = [self.pool.states[step] for step in looked_at]
        left = []
        for step in looked_at:
            check()
            left.append(self._left_over(step))
        counts = [self.pool.counts[step] for step in looked_at]
        gains = gains_of(self.model, candidates, states, left, counts, check)
        chosen = self._affordable(candidates, gains, batch)
        if not chosen:
            return 0
        before = len(self.basis)
        self._use(with_scopes(self.model, self.basis, chosen), check)
        return len(self.basis) - before

    def trim(self, check: Check) -> int:
        """Leave out functions of the largest tables where all take too much memory; how many."""
        counts = np.bincount(self.backups.columns, minlength=len(self.basis))
        order = np.argsort(counts, kind="stable")
        kept = order[np.cumsum(counts[order]) <= MOST_NUMBERS // len(self.pool.states)]
        if len(kept) < len(order):
            tables = [self.basis.tables[at] for at in np.sort(kept)]
            self._use(Basis([table for table in tables if table.scope]), check)
        return len(order) - len(kept)

    def take(self, tables: Sequence[Table], check: Check) -> int:
        """Add functions of somebody else's, as far as there is room; how many."""
        room = MOST_NUMBERS // len(self.pool.states) - len(self.backups.means)
        chosen = []
        for table in tables[: max(0, MOST_FUNCTIONS - len(self.basis))]:
            price = backup_size(self.model, table.scope)
            if price <= LARGEST_BACKUP and price // MERGED <= room:
                chosen.append(table)
                room -= price // MERGED
        if chosen:
            self._use(Basis([*self.basis.tables[1:], *chosen]), check)
        return len(chosen)

    def _left_over(self, step: int) -> Floats:
        assert self.weights is not None
        later = self.weights[0 if self.model.horizon is None else step + 1]
        states = self.pool.states[step]
        targets = targets_of(self.backups, self.backups.entries(later), states)
        fitted = np.zeros(len(states))
        fill_values(self.features, self.weights[step], states, fitted)
        return targets - fitted

    def _affordable(self, candidates: Sequence[Scope], gains: Floats, batch: int) -> list[Scope]:
        """The scopes of largest gain for each function, within the batch and the memory."""
        functions = np.array([n_indicators(self.model, scope) for scope in candidates])
        steps = len(self.pool.states)
        room = MOST_NUMBERS // steps - len(self.backups.means)
        chosen, total = [], 0
        for at in np.argsort(-gains / functions, kind="stable"):
            if gains[at] <= 0.0 or total >= batch:
                break
            size = functions[at] * backup_size(self.model, candidates[at]) // MERGED
            if len(self.basis) + total + functions[at] > MOST_FUNCTIONS or size > room:
                continue
            chosen.append(candidates[at])
            total += int(functions[at])
            room -= size
        return chosen


def n_indicators(model: FactoredMDP, scope: Scope) -> int:
    """Assignments of a scope that have no zero."""
    return table_size(model.sizes[position] - 1 for position in scope)


def first_basis(model: FactoredMDP, pairs: bool) -> Basis:
    """Singles, or pairs of a variable and a parent and of variables in one reward, if affordable.

    Scopes whose expectations would need large tables are left out, the cheapest come first.
    """
    singles: list[Scope] = [(position,) for position in range(len(model.variables))]
    wanted: dict[Scope, None] = dict.fromkeys(singles)
    if pairs:
        for child in range(len(model.variables)):
            for parent in model.parents(child):
                if parent != child:
                    wanted[(min(child, parent), max(child, parent))] = None
        for means in model.reward_means:
            for table in means:
                for one in table.scope:
                    for other in table.scope:
                        if one < other < len(model.variables):
                            wanted[(one, other)] = None
    priced = []
    for scope in wanted:
        price = backup_size(model, scope)
        if price <= LARGEST_BACKUP:
            priced.append((len(scope), price, scope))
    numbers = functions = 0
    chosen = []
    for _, price, scope in sorted(priced):
        count = n_indicators(model, scope)
        numbers += count * price * (model.horizon or 1) // MERGED
        functions += count
        if numbers > MOST_NUMBERS or functions > MOST_FUNCTIONS:
            break
        chosen.append(scope)
    return with_scopes(model, Basis([]), sorted(chosen, key=lambda scope: (len(scope), scope)))
