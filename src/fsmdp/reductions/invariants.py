"""Invariants: what holds at the start and after every step, whatever is done, and the proof.

All that is found holds together: the states in which every invariant holds include the start, and
no action leads out of them. Only zero probabilities count as impossible.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from fsmdp.errors import ModelError
from fsmdp.model.conditionals import Ancestry
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.projecting import Booleans, Factor, project
from fsmdp.model.supports import step_factors
from fsmdp.model.tables import Integers, Rebuilt, read_only
from fsmdp.model.variables import Scope, Variable

States = Integers
Counts = tuple[tuple[int, ...], ...]
"""What each value of each variable counts for, whole numbers from 0 on."""

LARGEST_LOCAL = 2**12
"""Entries of a table of what a few variables may be together."""

LARGEST_TOTAL = 2**10
"""That values of all variables may count for together."""


@dataclass(frozen=True, slots=True, eq=False)
class LocalInvariant(Rebuilt):
    """A few variables are only ever together at values that are allowed.

    Of one variable: values that are never reached. Of two: values that exclude one another, or one
    that is there because of another that never changes back.
    """

    scope: Scope
    allowed: Booleans  # an axis for each variable

    def __post_init__(self) -> None:
        object.__setattr__(self, "allowed", read_only(np.array(self.allowed, dtype=np.bool_)))

    def holds(self, states: States) -> Booleans:
        """Whether it holds, at each of several states."""
        return np.asarray(self.allowed[tuple(states[:, p] for p in self.scope)])

    def text(self, variables: Sequence[Variable]) -> str:
        """The invariant in words."""
        names = ", ".join(variables[position].name for position in self.scope)
        ruled_out = [
            str(values[0]) if len(values) == 1 else str(tuple(map(int, values)))
            for values in np.argwhere(~self.allowed).tolist()
        ]
        shown = ", ".join(ruled_out[:4]) + (", ..." if len(ruled_out) > 4 else "")
        return f"{names} never at {shown}"


@dataclass(frozen=True, slots=True)
class SumInvariant:
    """least <= sum over variables of what their values count for <= most."""

    scope: Scope
    counts: Counts
    least: int
    most: int

    @property
    def total(self) -> int:
        """The largest sum of all states, reachable or not."""
        return sum(map(max, self.counts))

    def sums(self, states: States) -> States:
        """The sum at each of several states."""
        found = np.zeros(len(states), dtype=np.int64)
        for position, counts in zip(self.scope, self.counts, strict=True):
            found += np.array(counts)[states[:, position]]
        return found

    def holds(self, states: States) -> Booleans:
        """Whether it holds, at each of several states."""
        sums = self.sums(states)
        return np.asarray((sums >= self.least) & (sums <= self.most))

    def text(self, variables: Sequence[Variable]) -> str:
        """The invariant in words."""
        names = [variables[position].name for position in self.scope]
        shown = ", ".join(names[:3]) + (f", ... ({len(names)})" if len(names) > 3 else "")
        if self.least == self.most:
            return f"{shown} count for {self.least}"
        if self.least == 0:
            return f"{shown} count for at most {self.most}"
        if self.most == self.total:
            return f"{shown} count for at least {self.least}"
        return f"{shown} count for {self.least} to {self.most}"


Invariant = LocalInvariant | SumInvariant


def count_each_nonzero(scope: Scope, sizes: Sequence[int]) -> Counts:
    """Each variable counts for one when it is nonzero."""
    return tuple(tuple(int(value > 0) for value in range(sizes[p])) for p in scope)


def check_invariants(invariants: object, model: FactoredMDP) -> tuple[Invariant, ...]:
    """Invariants of this model that hold: each is proved again; a ModelError for others."""
    if isinstance(invariants, LocalInvariant | SumInvariant) or not isinstance(
        invariants, Iterable
    ):
        raise ModelError(
            "invariants: expected a list of them, as fsmdp.find_invariants(model) gives."
        )
    given = tuple(invariants)
    for one in given:
        check_form(one, model.sizes)
    tables: dict[Scope, Booleans] = {}
    for one in given:
        if isinstance(one, LocalInvariant):
            tables[one.scope] = one.allowed & tables.get(one.scope, np.True_)
    sums = [one for one in given if isinstance(one, SumInvariant)]
    proof = _Proof(model, tables, sums, None)
    proof.run()
    held = [one for one, now in zip(sums, proof.sums, strict=True) if one == now]
    for one in given:
        if isinstance(one, LocalInvariant):
            good = bool((proof.tables[one.scope] <= one.allowed).all())
        else:
            good = one in held
        if not good:
            raise ModelError(
                f"invariants: {one.text(model.variables)}: not proved; leave it out, or use those "
                "of fsmdp.find_invariants(model)."
            )
    return given


def check_form(one: object, sizes: Sequence[int]) -> None:
    """Refuse what says nothing of variables of these sizes."""
    if not isinstance(one, LocalInvariant | SumInvariant):
        raise ModelError(f"invariants: expected invariants, found {type(one).__name__}.")
    scope = one.scope
    good = list(scope) == sorted(set(scope)) and all(0 <= p < len(sizes) for p in scope)
    if not good or not scope:
        raise ModelError("invariants: expected sorted positions of variables of the model.")
    shape = tuple(sizes[p] for p in scope)
    if isinstance(one, LocalInvariant):
        good = one.allowed.shape == shape and one.allowed.size <= LARGEST_LOCAL
    else:
        good = tuple(map(len, one.counts)) == shape and one.total <= LARGEST_TOTAL
        good = good and all(number >= 0 for counts in one.counts for number in counts)
    if not good:
        raise ModelError(
            f"invariants: expected a number for each value of the variables, of which tables have "
            f"at most {LARGEST_LOCAL} and sums come to at most {LARGEST_TOTAL}."
        )


def _says_nothing(one: Invariant) -> bool:
    if isinstance(one, LocalInvariant):
        return bool(one.allowed.all())
    return one.least <= sum(map(min, one.counts)) and one.most >= one.total


def prove(
    model: FactoredMDP,
    tables: Mapping[Scope, Booleans],
    sums: Sequence[SumInvariant] = (),
    check: Callable[[], None] | None = None,
) -> tuple[Invariant, ...]:
    """The strongest invariants of these forms that are no stronger than those given.

    Upwards: what the given tables and sums do not allow, but the start has or a step can lead to
    from states in which all of them hold, is allowed from then on; what remains when nothing is
    added is preserved by every step, and holds at the start. What is too large to examine is
    allowed. `check` may raise to end it.
    Cost: for each table and group of actions, an elimination of the mechanisms that draw it; again
    for those whose parents are in a table that grew.
    """
    proof = _Proof(model, tables, sums, check)
    proof.run()
    return proof.found()


class _Proof:
    def __init__(
        self,
        model: FactoredMDP,
        tables: Mapping[Scope, Booleans],
        sums: Sequence[SumInvariant],
        check: Callable[[], None] | None,
    ) -> None:
        self.model, self.check = model, check
        starts = [one > 0 for one in model.initial_distributions()]
        self.tables = {
            scope: np.array(allowed, dtype=np.bool_) | _outer([starts[p] for p in scope])
            for scope, allowed in tables.items()
        }
        self.sums = [_widened(one, _possible_sums(one, starts)) for one in sums]
        self.steps = {
            scope: [*model.dynamics.ancestry(scope)]
            for scope in (*self.tables, *(one.scope for one in sums))
        }
        self.first_drawn = len(model.inputs)
        self.sizes = (*model.input_sizes, *model.dynamics.drawn_sizes)
        # That at most some are nonzero is left out: more actions than there are prove less.
        self.actions: list[Factor] = [
            (tuple(len(model.sizes) + p for p in table.scope), np.asarray(table.values == 0))
            for table in model.actions.forbidden
        ]

    def run(self) -> None:
        waiting: dict[Scope | int, None] = dict.fromkeys((*self.tables, *range(len(self.sums))))
        dependents = self._dependents()
        while waiting:
            if self.check is not None:
                self.check()
            one = next(iter(waiting))
            del waiting[one]
            if self._grown(one):
                waiting |= dict.fromkeys(dependents.get(one, ()))

    def found(self) -> tuple[Invariant, ...]:
        """Those that say something, without what narrower ones say already."""
        local: list[Invariant] = []
        single = {scope[0]: t for scope, t in self.tables.items() if len(scope) == 1}
        for scope, table in sorted(self.tables.items(), key=lambda item: (len(item[0]), item[0])):
            known = _outer([single.get(p, np.ones(self.sizes[p], dtype=np.bool_)) for p in scope])
            if not table.all() and (len(scope) == 1 or not (table >= known).all()):
                local.append(LocalInvariant(scope, table))
        alone = [
            single.get(p, np.ones(size, dtype=np.bool_)) for p, size in enumerate(self.model.sizes)
        ]
        sums = []
        for one in self.sums:
            possible = _possible_sums(one, alone)
            if one.least > min(possible) or one.most < max(possible):
                sums.append(one)
        return (*local, *sums)

    def _dependents(self) -> dict[Scope | int, list[Scope | int]]:
        """For each table or sum, those whose proof depends on it."""
        found: dict[Scope | int, list[Scope | int]] = {n: [n] for n in range(len(self.sums))}
        names: list[tuple[Scope | int, Scope]] = [(scope, scope) for scope in self.tables]
        names += [(number, one.scope) for number, one in enumerate(self.sums)]
        for name, scope in names:
            own = set(scope) if isinstance(name, int) else set()
            seen = {p for ancestry in self.steps[scope] for p in ancestry.parent_scope} | own
            for other in self.tables:
                if seen.issuperset(other):
                    found.setdefault(other, []).append(name)
        return found

    def _grown(self, one: Scope | int) -> bool:
        """Whether a step leads out of one of them, which then allows more."""
        return self._sum_grown(one) if isinstance(one, int) else self._table_grown(one)

    def _table_grown(self, scope: Scope) -> bool:
        table = self.tables[scope]
        if table.all():
            return False
        after = tuple(self.first_drawn + position for position in scope)
        new = table
        for ancestry in self.steps[scope]:
            found = project(self._before(ancestry), self.sizes, set(after).__contains__)
            new = new | (np.True_ if found is None else _spread(*found, after))
        self.tables[scope] = new
        return bool((new != table).any())

    def _sum_grown(self, number: int) -> bool:
        one = self.sums[number]
        if _says_nothing(one):
            return False
        sums: set[int] = set()
        for ancestry in self.steps[one.scope]:
            sizes = list(self.sizes)
            factors = self._before(ancestry, one.scope)
            last = _chain(factors, sizes, one.scope, one.counts)
            factors.append(((last,), _between(sizes[last], one)))
            after = tuple(self.first_drawn + position for position in one.scope)
            last = _chain(factors, sizes, after, one.counts)
            found = project(factors, sizes, {last}.__contains__)
            sums |= set(
                range(one.total + 1) if found is None else np.flatnonzero(found[1]).tolist()
            )
        self.sums[number] = _widened(one, sums)
        return self.sums[number] != one

    def _before(self, ancestry: Ancestry, also: Scope = ()) -> list[Factor]:
        """What can be drawn, from states in which all tables of what is examined hold."""
        factors = [*step_factors(ancestry, self.model.dynamics, self.first_drawn), *self.actions]
        seen = {*ancestry.parent_scope, *also}
        factors += [
            (scope, table)
            for scope, table in self.tables.items()
            if seen.issuperset(scope) and not table.all()
        ]
        return factors


def _chain(factors: list[Factor], sizes: list[int], axes: Sequence[int], counts: Counts) -> int:
    """Add axes that count along others, and what ties them; returns the last, the sum of all."""
    last, largest = -1, 0
    for axis, values in zip(axes, counts, strict=True):
        before = np.arange(largest + 1)
        largest += max(values)
        together = before[:, None] + np.array(values)[None, :]
        allowed = together[:, :, None] == np.arange(largest + 1)
        sizes.append(largest + 1)
        new = len(sizes) - 1
        factors.append(((axis, new), allowed[0]) if last < 0 else ((last, axis, new), allowed))
        last = new
    return last


def _between(size: int, one: SumInvariant) -> Booleans:
    sums = np.arange(size)
    return np.asarray((sums >= one.least) & (sums <= one.most))


def _widened(one: SumInvariant, sums: Iterable[int]) -> SumInvariant:
    every = [one.least, one.most, *sums]
    return SumInvariant(one.scope, one.counts, min(every), max(every))


def _possible_sums(one: SumInvariant, possible: Sequence[Booleans]) -> set[int]:
    sums = {0}
    for position, counts in zip(one.scope, one.counts, strict=True):
        values = {counts[value] for value in np.flatnonzero(possible[position])}
        sums = {before + value for before, value in product(sums, values)}
    return sums


def _outer(parts: Sequence[Booleans]) -> Booleans:
    """Whether all of several hold, an axis for each."""
    found: Booleans = np.ones((), dtype=np.bool_)
    for part in parts:
        found = np.logical_and.outer(found, part)
    return found


def _spread(axes: Sequence[int], table: Booleans, wanted: Sequence[int]) -> Booleans:
    """A table of some axes as one that is broadcast over all that are wanted."""
    shape = [table.shape[list(axes).index(a)] if a in axes else 1 for a in wanted]
    return table.reshape(shape)
