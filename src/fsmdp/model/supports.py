"""Where something can happen in a step: the assignments that give it a positive probability."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from fsmdp.model.cases import Cases
from fsmdp.model.conditionals import Ancestry, Dynamics
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.projecting import Booleans, Factor, project
from fsmdp.model.tables import Rebuilt, read_only
from fsmdp.model.variables import Scope, Variable

MOST_CUBES = 2**12


@dataclass(frozen=True, slots=True)
class Cube:
    """A set of assignments: some variables at given values, all others free."""

    scope: Scope
    values: tuple[int, ...]


Cubes = tuple[Cube, ...]
EVERYWHERE: Cubes = (Cube((), ()),)


def where_nonzero(
    scope: Scope, ancestry: Ancestry, dynamics: Dynamics, sizes: Sequence[int]
) -> Cubes:
    """Current values from which all variables of a scope can be nonzero after a step.

    Zero probabilities alone count as impossible, whatever is multiplied: the arithmetic is that of
    truth values, in which nothing underflows. Above a limit the answer is EVERYWHERE, a superset.
    Cost: elimination of what is drawn, each table of at most MOST_SUPPORT_ENTRIES.
    """
    every_size = (*sizes, *dynamics.drawn_sizes)
    factors = step_factors(ancestry, dynamics, len(sizes))
    for position in scope:
        factors.append(((len(sizes) + position,), np.arange(sizes[position]) > 0))
    found = project(factors, every_size, lambda axis: axis < len(sizes))
    if found is None:
        return EVERYWHERE
    return as_cubes(*found)


def step_factors(ancestry: Ancestry, dynamics: Dynamics, n_inputs: int) -> list[Factor]:
    """What can be drawn in a step, as truth values; axes are inputs, then what is drawn."""
    factors = []
    for index, kernel in zip(ancestry.mechanisms, ancestry.kernels, strict=True):
        drawn = (n_inputs + d for d in (*kernel.drawn, *dynamics.mechanisms[index].children))
        factors.append(((*kernel.parents, *drawn), kernel.table > 0))
    return factors


def as_cubes(scope: Scope, possible: Booleans) -> Cubes:
    """Disjoint cubes that cover a set of assignments; EVERYWHERE if they would be very many."""
    found: list[Cube] = []
    if not _split(scope, possible, (), (), found):
        return EVERYWHERE
    return tuple(found)


def _split(
    scope: Scope, possible: Booleans, fixed: Scope, values: tuple[int, ...], found: list[Cube]
) -> bool:
    """Add the cubes of a table to those found; False if there are too many."""
    if not possible.any():
        return True
    if possible.all():
        found.append(Cube(fixed, values))
        return len(found) < MOST_CUBES
    axis = _axis_to_split(possible)
    rest = scope[:axis] + scope[axis + 1 :]
    here = (*fixed, scope[axis])
    slices = np.moveaxis(possible, axis, 0)
    if (slices == slices[0]).all():
        return _split(rest, slices[0], fixed, values, found)
    return all(
        _split(rest, part, here, (*values, value), found) for value, part in enumerate(slices)
    )


def _axis_to_split(possible: Booleans) -> int:
    """An idle axis, or else one with the most slices that need no further splitting."""
    best, settled = 0, -1
    for axis in range(possible.ndim):
        slices = np.moveaxis(possible, axis, 0)
        if (slices == slices[0]).all():
            return axis
        flat = slices.reshape(len(slices), -1)
        done = int((flat.all(axis=1) | ~flat.any(axis=1)).sum())
        if done > settled:
            best, settled = axis, done
    return best


MOST_COMPARISONS = 2**25
"""Comparisons of cubes, over the whole proof; a proof that needs more is given up."""


@dataclass(frozen=True, slots=True, eq=False)
class Exclusive(Rebuilt):
    """Groups of variables of which at most one is nonzero, and all pairs that were proved.

    `pairs[i, j]` says that variables i and j are never nonzero together, `pairs[i, i]` that i is
    always 0. Groups are disjoint. The states in which every pair holds are closed: the start is
    one of them, and no action leads out.
    """

    groups: tuple[Scope, ...]
    pairs: Booleans  # (n_variables, n_variables)

    def __post_init__(self) -> None:
        object.__setattr__(self, "pairs", read_only(self.pairs))


def exclusive_pairs(model: FactoredMDP) -> Booleans:
    """All pairs that are proved never to be nonzero together; (i, i) where i is always 0.

    Induction over one step. All pairs that cannot be nonzero together at the start are assumed;
    a pair falls if, from some state in which all pairs still assumed hold, some action can put
    both nonzero; what remains when no more fall holds forever.
    Only zero probabilities count as impossible, and what is too large to enumerate as possible.
    Cost: for each pair the action groups that tell it apart, times the cubes of assignments from
    which each of the two can be nonzero; again for pairs whose parents lose one.
    """
    return prove_pairs(model, ~_together_at_start(model))


def prove_pairs(model: FactoredMDP, assumed: Booleans) -> Booleans:
    """The largest part of the assumed pairs that a step preserves.

    What is assumed must hold at the start, and be symmetric.
    """
    steps = _Steps(model)
    masks = [_bits(np.flatnonzero(row)) for row in assumed]
    waiting = {(i, j) for i in range(len(masks)) for j in _positions(masks[i]) if i <= j}
    while waiting:
        steps.assume(masks)
        fallen = [pair for pair in sorted(waiting) if steps.possible(*pair)]
        if steps.left < 0:
            return np.zeros_like(assumed)
        for i, j in fallen:
            masks[i] &= ~(1 << j)
            masks[j] &= ~(1 << i)
        waiting = steps.pairs_that_look_at(fallen, masks)
    held = np.zeros_like(assumed)
    for i, mask in enumerate(masks):
        held[i, _positions(mask)] = True
    return held


def _together_at_start(model: FactoredMDP) -> Booleans:
    """Whether two variables can both be nonzero at the start, which draws each by itself."""
    off = np.array([(one[1:] > 0).any() for one in model.initial_distributions()])
    return np.asarray(np.logical_and.outer(off, off))


@dataclass(frozen=True, slots=True)
class _Literals:
    """A cube in bits, one for each value but 0 of each variable and one for its 0."""

    needs: int
    excludes: int  # other values of what it needs
    off: tuple[int, ...]  # variables it needs nonzero


class _Steps:
    """Which variables can be nonzero after a step, under assumptions about the state before it."""

    def __init__(self, model: FactoredMDP) -> None:
        self._model = model
        self._first = [0, *accumulate(model.sizes)]  # bit of each variable's 0
        self._ones = [self._cases((i,)) for i in range(len(model.sizes))]
        # As declared: two together may depend on what neither depends on by itself.
        self._reads = [_bits(model.parents(i)) for i in range(len(model.sizes))]
        self._drawn_with = [
            {index for ancestry in model.dynamics.ancestry((i,)) for index in ancestry.mechanisms}
            for i in range(len(model.sizes))
        ]
        self._twos: dict[Scope, Cases[tuple[_Literals, ...]]] = {}
        self._forbidden: dict[int, int] = {}
        self._masks: list[int] = []
        self._off_bits = [
            sum(1 << bit for bit in range(self._first[i] + 1, self._first[i + 1]))
            for i in range(len(model.sizes))
        ]
        self.left = MOST_COMPARISONS

    def assume(self, masks: Sequence[int]) -> None:
        """Pairs that hold before the step: for each variable, the bits of those it excludes."""
        self._masks = list(masks)
        self._forbidden = {}

    def possible(self, i: int, j: int) -> bool:
        """Whether some action can lead to both being nonzero."""
        if i == j:
            return any(self._consistent(cubes) for cubes in self._ones[i])
        if self._drawn_with[i] & self._drawn_with[j]:
            if (i, j) not in self._twos:
                self._twos[i, j] = self._cases((i, j))
            return any(self._consistent(cubes) for cubes in self._twos[i, j])
        one, other = self._ones[i], self._ones[j]
        listed = {*one.exceptions, *other.exceptions}
        combinations = {(one.group(action), other.group(action)) for action in listed}
        if len(listed) < len(self._model.actions):
            combinations.add((0, 0))
        return any(
            self._compatible(one.groups[first], other.groups[second])
            for first, second in sorted(combinations)
        )

    def pairs_that_look_at(
        self, fallen: Sequence[tuple[int, int]], masks: Sequence[int]
    ) -> set[tuple[int, int]]:
        """Pairs, of those still assumed, whose parents include both of a pair that has fallen."""
        partners: dict[int, int] = {}
        for i, j in fallen:
            partners[i] = partners.get(i, 0) | 1 << j
            partners[j] = partners.get(j, 0) | 1 << i
        every = _bits(partners)
        # For each variable: what has fallen together with one of its parents.
        visited = []
        for reads in self._reads:
            bits = 0
            for position in _positions(reads & every):
                bits |= partners[position]
            visited.append(bits)
        return {
            (i, j)
            for i, mask in enumerate(masks)
            for j in _positions(mask >> i << i)
            if (visited[i] | visited[j]) & (self._reads[i] | self._reads[j])
        }

    def _cases(self, scope: Scope) -> Cases[tuple[_Literals, ...]]:
        dynamics, sizes = self._model.dynamics, self._model.sizes
        cases = dynamics.ancestry(scope).map(
            lambda ancestry: where_nonzero(scope, ancestry, dynamics, sizes)
        )
        return cases.merge_equal(lambda cubes: cubes).map(self._literals)

    def _literals(self, cubes: Cubes) -> tuple[_Literals, ...]:
        found = []
        for cube in cubes:
            needs = excludes = 0
            for position, value in zip(cube.scope, cube.values, strict=True):
                every = sum(1 << b for b in range(self._first[position], self._first[position + 1]))
                one = 1 << (self._first[position] + value)
                needs |= one
                excludes |= every & ~one
            off = tuple(p for p, value in zip(cube.scope, cube.values, strict=True) if value)
            found.append(_Literals(needs, excludes, off))
        return tuple(found)

    def _forbids(self, one: _Literals) -> int:
        """Bits that no state has together with those that a cube needs."""
        key = id(one)
        if key not in self._forbidden:
            bits = one.excludes
            for position in one.off:
                for other in _positions(self._masks[position]):
                    bits |= self._off_bits[other]
            self._forbidden[key] = bits
        return self._forbidden[key]

    def _consistent(self, literals: Sequence[_Literals]) -> bool:
        self.left -= len(literals)
        return any(not one.needs & self._forbids(one) for one in literals)

    def _compatible(self, some: Sequence[_Literals], others: Sequence[_Literals]) -> bool:
        """Whether a state is in a cube of each; variables that none of the two needs are 0."""
        allowed = [one.needs for one in others if not one.needs & self._forbids(one)]
        for one in some:
            forbidden = self._forbids(one)
            if one.needs & forbidden:
                continue
            self.left -= len(allowed)
            if self.left < 0 or any(not needs & forbidden for needs in allowed):
                return True
        return False


def cover(pairs: Booleans, variables: Sequence[Variable]) -> tuple[Scope, ...]:
    """Disjoint groups of pairwise exclusive variables, those that save the most states first.

    Variables that are called alike (`at(x1)` and `at(x2)`, `unit-1` and `unit-2`) are grouped
    first, then whole groups: a robot's place is not torn apart because some of its cells go
    with something else too. A variable that is always 0 goes to the first group, or else to the
    first variable, with all of whose members it is paired.
    Cost: n^2 operations on sets of bits for each group.
    """
    sizes = [variable.size for variable in variables]
    families = [family(variable.name) for variable in variables]
    alive = [i for i, size in enumerate(sizes) if size > 1 and not pairs[i, i]]
    alike = np.array([[one == other for other in families] for one in families])
    units = _joined_units([(i,) for i in alive], pairs & alike, sizes)
    groups = _joined_units(units, pairs, sizes)
    for constant in (i for i, size in enumerate(sizes) if size > 1 and pairs[i, i]):
        for at, group in enumerate(groups):
            if all(pairs[constant, other] for other in group):
                groups[at] = (*group, constant)
                break
    return tuple(tuple(sorted(group)) for group in groups if len(group) > 1)


def family(name: str) -> str:
    """What variables that are called alike share: the name without arguments or number."""
    return re.sub(r"[\W_]*\d+$", "", name.partition("(")[0])


def saving(group: Sequence[int], sizes: Sequence[int]) -> float:
    """Logarithm of the factor by which joining a group lowers the number of states."""
    apart = math.fsum(math.log(sizes[i]) for i in group)
    return apart - math.log(1 + sum(sizes[i] - 1 for i in group))


def _joined_units(units: Sequence[Scope], pairs: Booleans, sizes: Sequence[int]) -> list[Scope]:
    """Units, some of them joined to larger ones, those that save the most states first."""
    members = np.zeros((len(units), len(pairs)))
    for u, unit in enumerate(units):
        members[u, list(unit)] = 1.0
    lengths = members.sum(axis=1)
    together = members @ pairs @ members.T == np.outer(lengths, lengths)  # all pairs are exclusive
    np.fill_diagonal(together, False)
    neighbours = [_bits(np.flatnonzero(row)) for row in together]
    found: list[Scope] = []
    left = _bits(range(len(units)))
    while left:
        joinable = [u for u in _positions(left) if neighbours[u] & left]
        if not joinable:
            return [*found, *(units[u] for u in _positions(left))]
        cliques = [_clique(u, neighbours, left) for u in joinable]
        joined = [tuple(sorted(i for u in clique for i in units[u])) for clique in cliques]
        gains = [saving(group, sizes) for group in joined]
        best = max(range(len(joined)), key=lambda at: (gains[at], [-i for i in joined[at]]))
        found.append(joined[best])
        left &= ~_bits(cliques[best])
    return found


def _clique(seed: int, neighbours: Sequence[int], left: int) -> Scope:
    """A maximal clique with a given member, grown by whoever keeps the most candidates."""
    clique, candidates = [seed], neighbours[seed] & left
    while candidates:
        best = max(
            _positions(candidates),
            key=lambda i: ((neighbours[i] & candidates).bit_count(), -abs(i - seed), -i),
        )
        clique.append(best)
        candidates &= neighbours[best]
    return tuple(sorted(clique))


def _bits(positions: Iterable[int]) -> int:
    bits = 0
    for position in positions:
        bits |= 1 << int(position)
    return bits


def _positions(bits: int) -> list[int]:
    found = []
    while bits:
        low = bits & -bits
        found.append(low.bit_length() - 1)
        bits ^= low
    return found
