"""Boolean state fluents of which provably at most one is true, as one variable.

Formulas that look at all places of an agent have a table over all of them, unless it is known that
the agent is in one place at a time. That is proved from the formulas of the next values by
induction over steps, for all fluents of a kind that differ in some arguments.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from fsmdp.io.rddl import expressions as make
from fsmdp.io.rddl.distributions import Evaluator, Law
from fsmdp.io.rddl.expressions import Expression, substitute
from fsmdp.io.rddl.problem import Problem
from fsmdp.io.rddl.sources import TooLargeError, UnsupportedError

log = logging.getLogger("fsmdp")

MOST_CASES = 2**14
"""Assignments of actions and other fluents that a proof goes through in each place."""

MOST_SUCCESSORS = 32
"""Fluents of a group that may become true from one place."""

FEWEST_MEMBERS = 3

ANY_OBJECT = "*"
"""Stands in the name of a joined variable for the arguments that differ."""


@dataclass(frozen=True, slots=True)
class OneHot:
    """A variable that says which of some fluents is true: its value counts from 1, 0 is none."""

    label: str
    members: tuple[str, ...]
    values: tuple[int, ...]
    formula: Expression


def join_exclusive(
    problem: Problem,
    wide: frozenset[str],
    meaning: Mapping[str, Expression],
    choices: Mapping[str, Sequence[int]],
) -> tuple[Problem, dict[str, tuple[str, ...]]]:
    """The problem with groups of exclusive fluents as variables, and their members.

    Only groups with several members among the `wide` fluents are looked at. `meaning` writes
    action fluents in terms of `choices`, whose values are given.
    """
    prover = _Prover(problem, meaning, choices)
    found: dict[str, OneHot] = {}
    joined: set[str] = set()
    for label, members in _candidates(problem, wide):
        if label in problem.values or joined.intersection(members):
            continue
        try:
            group = prover.prove(label, members)
        except (TooLargeError, UnsupportedError):
            group = None
        if group is not None:
            log.info("%s: %d fluents are one variable, %s", problem.name, len(members), label)
            found[label] = group
            joined.update(members)
    if not found:
        return problem, {}
    return _rewritten(problem, list(found.values())), {
        label: group.members for label, group in found.items()
    }


def _candidates(problem: Problem, wide: frozenset[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Fluents that differ in some arguments, those that differ in most first."""
    by_name: dict[str, list[str]] = defaultdict(list)
    for label in problem.states:
        if problem.values[label] == (0, 1) and "(" in label:
            by_name[label.partition("(")[0]].append(label)
    for name, labels in by_name.items():
        if len(wide.intersection(labels)) < FEWEST_MEMBERS:
            continue
        arguments = {label: label[len(name) + 1 : -1].split(",") for label in labels}
        n = len(arguments[labels[0]])
        for count in range(n, 0, -1):
            for free in combinations(range(n), count):
                groups: dict[str, list[str]] = defaultdict(list)
                for label in labels:
                    shown = [
                        ANY_OBJECT if at in free else one for at, one in enumerate(arguments[label])
                    ]
                    groups[f"{name}({','.join(shown)})"].append(label)
                for label, members in groups.items():
                    if len(wide.intersection(members)) >= FEWEST_MEMBERS:
                        yield label, tuple(members)


class _Prover:
    def __init__(
        self,
        problem: Problem,
        meaning: Mapping[str, Expression],
        choices: Mapping[str, Sequence[int]],
    ) -> None:
        self.problem = problem
        self.meaning = meaning
        known = {name: values for name, values in problem.values.items() if values is not None}
        self.values = {**known, **choices}
        self.rank = {name: at for at, name in enumerate(self.values)}

    def prove(self, label: str, members: tuple[str, ...]) -> OneHot | None:
        """The variable of some fluents, if at most one is true at any time."""
        problem = self.problem
        started = [at for at, name in enumerate(members, 1) if problem.initial[name]]
        if len(started) > 1:
            return None
        own = frozenset(members)
        formulas = [problem.formulas[name] for name in members]
        if any(f"{name}'" in one.fluents for one in formulas for name in members):
            return None
        position = {name: at for at, name in enumerate(members)}
        looking: dict[int, list[int]] = defaultdict(list)
        idle = dict.fromkeys(members, make.FALSE)
        nothing = [substitute(one, _restricted(idle, one)) for one in formulas]
        appearing = [at for at, one in enumerate(nothing) if not one.is_value(False)]
        for at, one in enumerate(formulas):
            for name in one.fluents & own:
                looking[position[name]].append(at)
        conditions = [
            one
            for one in problem.conditions
            if not own.isdisjoint(one.fluents) and one.fluents <= own | self.meaning.keys()
        ]
        nowhere = [substitute(one, _restricted(idle, one)) for one in conditions]
        alternatives: list[Expression] = []
        always = bool(started)
        for here in range(-1, len(members)):
            possible = appearing if here < 0 else sorted({*appearing, *looking[here]})
            if len(possible) > MOST_SUCCESSORS:
                return None
            changed = idle if here < 0 else {**idle, members[here]: make.TRUE}
            parts = [
                substitute(formulas[at], _restricted(changed, formulas[at])) for at in possible
            ]
            allowed = [
                substitute(one, _restricted(changed, one))
                if here >= 0 and members[here] in one.fluents
                else rest
                for one, rest in zip(conditions, nowhere, strict=True)
            ]
            exact = self._is_exclusive(parts, allowed)
            if exact is None:
                return None
            if here >= 0:
                always &= exact
            alternatives.append(_chosen(possible, parts, exact))
        first = 1 if always else 0
        if always:
            alternatives[0] = make.constant(1)
        return OneHot(
            label,
            members,
            tuple(range(first, len(members) + 1)),
            make.selection(make.fluent(label), alternatives),
        )

    def _is_exclusive(
        self, parts: Sequence[Expression], allowed: Sequence[Expression]
    ) -> bool | None:
        """Whether exactly one part becomes true; None if several may."""
        used = frozenset[str]().union(*(part.fluents for part in parts))
        allowed = [one for one in allowed if not one.is_constant]
        relevant = [one for one in allowed if not used.isdisjoint(one.fluents)]
        parts = [substitute(part, _restricted(self.meaning, part)) for part in parts]
        relevant = [substitute(one, _restricted(self.meaning, one)) for one in relevant]
        evaluator = Evaluator(self.values, self.rank, MOST_CASES)
        scope: frozenset[str] = frozenset().union(*(one.fluents for one in (*parts, *relevant)))
        names = sorted(scope, key=self.rank.__getitem__)
        if evaluator.size(names) > MOST_CASES:
            return None
        shape = [len(self.values[name]) for name in names]
        may, must = np.zeros(shape), np.zeros(shape)
        for part in parts:
            law = evaluator.law(part)
            chance = _chance(law).reshape(
                [len(self.values[name]) if name in law.scope else 1 for name in names]
            )
            may += chance > 0
            must += chance >= 1
        fine = np.ones(shape, dtype=np.bool_)
        for one in relevant:
            found = evaluator.numbers(one)
            fine &= (
                found.array.reshape(
                    [len(self.values[name]) if name in found.scope else 1 for name in names]
                )
                != 0
            )
        if (may[fine] > 1).any():
            return None
        return bool((must[fine] == 1).all())


def _chance(law: Law) -> np.ndarray:
    if 1.0 in law.outcomes:
        return np.asarray(law.probabilities[..., law.outcomes.index(1.0)])
    return np.zeros(law.probabilities.shape[:-1])


def _restricted(values: Mapping[str, Expression], formula: Expression) -> dict[str, Expression]:
    return {name: values[name] for name in formula.fluents if name in values}


def _chosen(possible: Sequence[int], parts: Sequence[Expression], exact: bool) -> Expression:
    """The number of the member that becomes true: the parts exclude each other."""
    found = make.constant(0)
    for order, (at, part) in enumerate(zip(possible, parts, strict=True)):
        value = make.constant(at + 1)
        found = value if exact and not order else make.choice(part, value, found)
    return found


def _rewritten(problem: Problem, groups: Sequence[OneHot]) -> Problem:
    replaced: dict[str, Expression] = {}
    for group in groups:
        chosen, following = make.fluent(group.label), make.fluent(f"{group.label}'")
        for value, name in enumerate(group.members, 1):
            number = make.constant(value)
            replaced[name] = make.apply("==", [chosen, number])
            replaced[f"{name}'"] = make.apply("==", [following, number])

    def rewritten(formula: Expression) -> Expression:
        return substitute(formula, _restricted(replaced, formula))

    first = {group.members[0]: group for group in groups}
    states: list[str] = []
    values = dict(problem.values)
    formulas: dict[str, Expression] = {}
    initial: dict[str, int] = {}
    for name in problem.states:
        if name in first:
            group = first[name]
            states.append(group.label)
            values[group.label] = group.values
            started = [at for at, one in enumerate(group.members, 1) if problem.initial[one]]
            initial[group.label] = started[0] if started else 0
        elif name not in replaced:
            states.append(name)
            initial[name] = problem.initial[name]
    for name, formula in problem.formulas.items():
        if name in first:
            formulas[first[name].label] = rewritten(first[name].formula)
        elif name not in replaced:
            formulas[name] = rewritten(formula)
    return replace(
        problem,
        states=tuple(states),
        values={name: found for name, found in values.items() if name not in replaced},
        formulas=formulas,
        rewards=tuple(map(rewritten, problem.rewards)),
        conditions=tuple(map(rewritten, problem.conditions)),
        terminal=tuple(map(rewritten, problem.terminal)),
        initial=initial,
    )
