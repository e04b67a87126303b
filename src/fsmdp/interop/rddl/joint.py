"""A ground problem as a model whose action fluents are variables: no list of joint actions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from fsmdp.foundation.checks import show_count
from fsmdp.interop.rddl.actions import ActionFluent, Assignment, allows, assignments, count_actions
from fsmdp.interop.rddl.compiling import Folder, Local
from fsmdp.interop.rddl.errors import TooLargeError, UnsupportedError
from fsmdp.interop.rddl.expressions import AND, Expression, constant, substitute
from fsmdp.interop.rddl.problem import Problem
from fsmdp.model.actions import Actions
from fsmdp.model.cases import ANY, Case, Cases
from fsmdp.model.tables import Table
from fsmdp.model.variables import Variable

CHEAPER_FROM = 1000
"""Joint actions from which variables are imported by default.

Two at a time out of 20 or 30, as in AcademicAdvising 5 and 10, have 211 and 466: measured there, a
list is the cheaper form, since the count of what is chosen widens every clique.
"""


class JointFolder(Folder):
    """A formula under each assignment of the action fluents that it looks at."""

    def __init__(self, fluents: Sequence[ActionFluent], most_nondefault: int, limit: int) -> None:
        super().__init__(fluents, ())
        self._fluents = {fluent.name: fluent for fluent in fluents}
        self._most, self._limit = most_nondefault, limit

    def looked_at(self, formula: Expression) -> list[ActionFluent]:
        """The action fluents of a formula."""
        return [f for name, f in self._fluents.items() if name in formula.fluents]

    def local(self, formula: Expression) -> list[Assignment]:
        """Assignments of these, the defaults first."""
        own = self.looked_at(formula)
        count = count_actions(own, self._most)
        if count > self._limit:
            raise TooLargeError(
                f"it looks at {len(own)} action fluents, which have {show_count(count)} joint "
                f"values (limit {self._limit}); pass most_actions=... or simplify the formula."
            )
        return list(assignments(own, self._most))

    def variants(self, formula: Expression) -> Iterator[tuple[tuple[int, ...] | None, Expression]]:
        """The formula under each of its local assignments, by position."""
        defaults = {f.name: constant(f.default) for f in self.looked_at(formula)}
        for position, assignment in enumerate(self.local(formula)):
            changed = {name: constant(value) for name, value in assignment}
            yield (position,), substitute(formula, defaults | changed)


def action_variables(problem: Problem, limit: int) -> Actions:
    """The action fluents as variables; value 0 is the default.

    Preconditions on actions alone rule values out; one that looks at the state is refused.
    """
    by_name = {fluent.name: fluent for fluent in problem.actions}
    forbidden = []
    for condition in _parts(problem.preconditions):
        own = [fluent for name, fluent in by_name.items() if name in condition.fluents]
        sizes = [1 + len(fluent.others) for fluent in own]
        if count_actions(own, problem.most_nondefault) > limit or np.prod(sizes) > limit:
            raise TooLargeError(
                f"a precondition looks at {len(own)} action fluents, too many for a table of joint "
                "values; import with actions='listed'."
            )
        never = np.zeros(sizes)
        for assignment in assignments(own, problem.most_nondefault):
            if not allows([condition], own, assignment):
                never[_index(own, assignment)] = 1.0
        if never.any():
            forbidden.append(Table([variable_name(fluent) for fluent in own], never))
    most = problem.most_nondefault
    return Actions(
        [Variable(variable_name(f), 1 + len(f.others)) for f in problem.actions],
        at_most=most if most < len(problem.actions) else None,
        forbidden=forbidden,
    )


def _parts(conditions: Sequence[Expression]) -> Iterator[Expression]:
    for condition in conditions:
        if condition.operator == AND:
            yield from _parts(condition.arguments)
        elif condition.is_constant and not condition.value:
            raise UnsupportedError("its preconditions allow no joint action at all; correct them.")
        elif not condition.is_constant:
            yield condition


def variable_name(fluent: ActionFluent) -> str:
    """How the variable of an action fluent is called: after what leaving its default does."""
    return fluent.name if fluent.objects else fluent.text(fluent.others[0])


def _index(fluents: Sequence[ActionFluent], assignment: Assignment) -> tuple[int, ...]:
    values = dict(assignment)
    return tuple(1 + f.others.index(values[f.name]) if f.name in values else 0 for f in fluents)


def joint_case(
    folder: JointFolder,
    formula: Expression,
    grouped: Cases[Local],
    sizes: Mapping[str, int],
    rank: Mapping[str, int],
    states: frozenset[str],
) -> Case:
    """One case for all local assignments: a table over action fluents and all that any looks at.

    Joint values that are never allowed together stand for the defaults: nobody reads them.
    """
    own = folder.looked_at(formula)
    scope = sorted({name for local in grouped.groups for name in local.scope}, key=rank.__getitem__)
    rest = grouped.groups[0].table.shape[len(grouped.groups[0].scope) :]
    shape = [*(sizes[name] for name in scope), *rest]
    tables = []
    for local in grouped.groups:
        spread = [sizes[name] if name in local.scope else 1 for name in scope]
        tables.append(np.broadcast_to(local.table.reshape([*spread, *rest]), shape))
    whole = np.empty([*(1 + len(f.others) for f in own), *shape])
    local_assignments = folder.local(formula)
    whole[...] = tables[grouped.group(0)]
    for position, assignment in enumerate(local_assignments):
        whole[_index(own, assignment)] = tables[grouped.group(position)]
    # Action fluents that nothing turns out to depend on are left out.
    names = [variable_name(fluent) for fluent in own]
    for name in tuple(names):
        axis = names.index(name)
        if (np.diff(whole, axis=axis) == 0).all():
            whole = np.take(whole, 0, axis=axis)
            names.pop(axis)
    parents = [name for name in scope if name in states]
    drawn = [name.removesuffix("'") for name in scope if name not in states]
    return Case(ANY, [*names, *parents], whole, drawn)
