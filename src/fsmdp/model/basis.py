"""Bases: the local functions whose weighted sum stands for a value function."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import TYPE_CHECKING

import numpy as np

from fsmdp.errors import ModelError, SizeError
from fsmdp.foundation.checks import as_items, as_tuple, check_size, plural, show, show_count
from fsmdp.foundation.equality import Compared
from fsmdp.foundation.numbers import facts_table
from fsmdp.model.tables import Floats, Table, as_scope, bound_table
from fsmdp.model.variables import (
    Scope,
    Variable,
    as_variables,
    find_positions,
    positions_by_name,
    table_size,
)

if TYPE_CHECKING:
    from fsmdp.model.mdp import FactoredMDP
    from fsmdp.model.structure import Structure

LARGEST_BASIS = 2**26
MOST_AXES = 32  # of an array, in every numpy


@dataclass(frozen=True, slots=True, eq=False)
class Basis(Compared):
    """Tables h_0, h_1, ..., with h_0 = 1 always there and first.

    The ready-made bases take the variables of a model, of a structure, or given as a list.
    """

    tables: tuple[Table, ...]

    def __init__(self, tables: Sequence[Table] | Table = ()) -> None:
        given = as_tuple(tables, Table, "tables of a basis", "write [Table(scope, values), ...]")
        constant = bound_table((), np.ones(()))
        others = [table for table in given if table.scope or not _is_one(table)]
        object.__setattr__(self, "tables", (constant, *others))

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return Basis, (self.tables[1:],)

    @classmethod
    def singles(cls, model: FactoredMDP | Structure | Sequence[Variable]) -> Basis:
        """The constant, and an indicator for each non-zero value of each variable."""
        variables = _variables_of(model, "Basis.singles")
        return cls._of_indicators(variables, [(p,) for p in range(len(variables))])

    @classmethod
    def pairs(cls, model: FactoredMDP) -> Basis:
        """Singles, and the products of each variable with each of its declared parents."""
        from fsmdp.model.mdp import check_model

        check_model(model, "Basis.pairs")
        singles = [(position,) for position in range(len(model.variables))]
        pairs = sorted(
            {
                (min(child, parent), max(child, parent))
                for child in range(len(model.variables))
                for parent in model.parents(child)
                if parent != child
            }
        )
        return cls._of_indicators(model.variables, [*singles, *pairs])

    @classmethod
    def blocks(
        cls,
        model: FactoredMDP | Structure | Sequence[Variable],
        scopes: Sequence[Sequence[str | int | Variable] | str],
    ) -> Basis:
        """Every function of each scope: the constant, and indicators of all assignments but one.

        The indicator of the all-zero assignment is the constant less the others, so it is left
        out: the span is the same and no function is represented twice.
        """
        variables = _variables_of(model, "Basis.blocks")
        positions = positions_by_name(variables)
        tables: list[Table] = []
        remedy = "give a list of scopes, each a list of names"
        blocks = as_items(scopes, "Basis.blocks, scopes", "a list of scopes", remedy)
        found = [
            tuple(sorted(find_positions(as_scope(s, "block"), positions, f"block {show(s)}")))
            for s in blocks
        ]
        _refuse_if_huge([table_size(variables[p].size for p in scope) for scope in found])
        if any(len(scope) > MOST_AXES for scope in found):
            raise SizeError(
                f"Basis.blocks: a scope has {max(map(len, found))} variables, expected at most "
                f"{MOST_AXES}; leave out those of size 1, on which nothing depends."
            )
        for scope in dict.fromkeys(found):
            sizes = tuple(variables[position].size for position in scope)
            tables += [
                _indicator(scope, sizes, assignment)
                for assignment in product(*map(range, sizes))
                if any(assignment)
            ]
        return cls(tables)

    @classmethod
    def _of_indicators(cls, variables: Sequence[Variable], scopes: Sequence[Scope]) -> Basis:
        """Indicators of the assignments with no zero; with smaller scopes they span the rest."""
        sizes = [tuple(variables[position].size for position in scope) for scope in scopes]
        _refuse_if_huge([table_size(shape) for shape in sizes])
        return cls(
            [
                _indicator(scope, shape, assignment)
                for scope, shape in zip(scopes, sizes, strict=True)
                for assignment in product(*(range(1, size) for size in shape))
            ]
        )

    def bind(self, variables: Sequence[Variable]) -> Basis:
        """The same basis with every scope as sorted positions, shapes checked.

        A table that is 1 everywhere is the constant, which is there already: it is left out.
        """
        others = self.tables[1:]
        if all(_is_bound(table, variables) and not _is_one(table) for table in others):
            return self
        bound = [table.bind(variables) for table in others]
        return Basis([table for table in bound if not _is_one(table)])

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """Scope of each function; the basis must be bound."""
        return tuple(table.scope for table in self.tables)

    def evaluate(self, state: Sequence[int]) -> Floats:
        """h_j(state) for every j."""
        return np.array([table.value(state) for table in self.tables])

    def __len__(self) -> int:
        return len(self.tables)

    def __iter__(self) -> Iterator[Table]:
        return iter(self.tables)

    def _repr_html_(self) -> str:
        sizes = Counter(table.values.ndim for table in self.tables)
        by_size = ((f"of {plural(n, 'variable')}", sizes[n]) for n in sorted(sizes))
        return facts_table(f"Basis of {plural(len(self), 'function')}", by_size)

    def __repr__(self) -> str:
        largest = max(table.values.ndim for table in self.tables)
        return (
            f"Basis({plural(len(self), 'function')}, scopes of up to {plural(largest, 'variable')})"
        )


def _variables_of(model: object, where: str) -> tuple[Variable, ...]:
    variables = getattr(model, "variables", model)
    try:
        return as_variables(variables, where)
    except ModelError as error:
        if isinstance(variables, Sequence):  # it is a list, and the message says what is wrong
            raise
        raise ModelError(
            f"{where}: expected a FactoredMDP, a Structure or a list of Variables, found "
            f"{show(model)}; build a model first."
        ) from error


def _is_one(table: Table) -> bool:
    return bool((table.values == 1.0).all())


def _is_bound(table: Table, variables: Sequence[Variable]) -> bool:
    scope = table.scope
    return (
        all(type(position) is int for position in scope)
        and all(low < high for low, high in pairwise(scope))
        and all(0 <= position < len(variables) for position in scope)
        and table.values.shape == tuple(variables[position].size for position in scope)
    )


def _indicator(scope: Scope, sizes: Sequence[int], assignment: Sequence[int]) -> Table:
    values = np.zeros(sizes)
    values[tuple(assignment)] = 1.0
    return bound_table(scope, values)


def _refuse_if_huge(sizes: Sequence[int]) -> None:
    check_size(
        sum(size * size for size in sizes),
        LARGEST_BASIS,
        "a basis of indicators would hold",
        f"the largest scope has {show_count(max(sizes, default=0))} assignments: use smaller "
        "scopes, or your own tables",
        unit="numbers",
    )


def check_basis(basis: object) -> Basis:
    """Refuse anything that is not a Basis, naming the ready-made ones."""
    if isinstance(basis, Basis):
        return basis
    raise ModelError(
        f"expected a Basis, found {type(basis).__name__}; use Basis.singles(model), "
        "Basis.pairs(model), Basis.blocks(model, scopes) or Basis([Table(...), ...])."
    )
