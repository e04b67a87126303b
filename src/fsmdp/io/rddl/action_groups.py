"""What preconditions say about actions alone: which fluents exclude each other, and limits.

Boolean action fluents of which at most one can be true become one choice with a value for each of
them, so that neither 2^n joint actions nor tables over pairs of them are ever written out. A limit
on a weighted number of true fluents is kept as a limit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from fsmdp.io.rddl import expressions as make
from fsmdp.io.rddl.compiling import ActionFluent, Assignment
from fsmdp.io.rddl.distributions import Evaluator
from fsmdp.io.rddl.expressions import Expression, substitute
from fsmdp.io.rddl.problem import Problem
from fsmdp.io.rddl.sources import UnsupportedError
from fsmdp.model.tables import Floats

MOST_CHECKED = 2**12
"""Joint values of the fluents of a precondition that are looked up in a table."""

MOST_NAMED = 3
"""Fluents that a choice among fluents of different objects is named after."""

ROUNDING = 1e-9
"""By which a sum may exceed a limit."""

NONE = "none"
"""What value 0 of a choice is called: all its fluents are false."""


@dataclass(frozen=True, slots=True)
class Limit:
    """The weighted number of true action fluents is at most a bound, which may look at states.

    `by_value` has what each value of a fluent that is not boolean counts, its default first.
    """

    weights: Mapping[str, float]
    bound: Expression
    by_value: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    @property
    def most(self) -> float | None:
        """The bound, if it is a number."""
        return float(self.bound.value) if self.bound.is_constant else None

    @property
    def is_one(self) -> bool:
        """Whether any two of its fluents exceed it."""
        positive = [w for one in self.by_value.values() for w in one if w]
        lightest = min((*self.weights.values(), *positive))
        return self.most is not None and 2 * lightest > self.most

    def exclusive(self) -> list[str]:
        """Fluents any two of which exceed the limit."""
        if self.most is None:
            return []
        return [name for name, weight in self.weights.items() if 2 * weight > self.most]

    @property
    def condition(self) -> Expression:
        """The same as a formula."""
        terms = [make.product([make.constant(w), make.fluent(n)]) for n, w in self.weights.items()]
        return make.apply("<=", [make.total(terms), self.bound])


@dataclass(frozen=True, slots=True)
class Choices:
    """The action fluents of a problem after exclusive ones are one choice.

    `fluents` are choices and fluents that stay as they are, `meaning` what each ground action
    fluent is in terms of them. `limits` and `preconditions` on actions alone, and `conditions`
    that look at states too, are written with the ground fluents.
    """

    fluents: tuple[ActionFluent, ...]
    meaning: Mapping[str, Expression]
    members: Mapping[str, tuple[str, ...]]
    limits: tuple[Limit, ...]
    preconditions: tuple[Expression, ...]
    conditions: tuple[Expression, ...]

    def weights(self, limit: Limit) -> dict[str, Floats]:
        """What each value of each choice counts towards a limit."""
        found: dict[str, Floats] = {}
        for fluent in self.fluents:
            names = self.members.get(fluent.name)
            if fluent.name in limit.by_value:
                counts = np.array(limit.by_value[fluent.name])
            elif names is None:
                weight = limit.weights.get(fluent.name, 0.0)
                counts = np.array([0.0] + [weight] * len(fluent.others))
            else:
                counts = np.array([0.0, *(limit.weights.get(name, 0.0) for name in names)])
            if counts.any():
                found[fluent.name] = counts
        return found


def fix_impossible(problem: Problem) -> Problem:
    """The problem without boolean action fluents that preconditions never allow to be true."""
    defaults = {f.name for f in problem.actions if not f.objects and not f.default}
    parts = [one for condition in problem.preconditions for one in make.conjuncts(condition)]
    parts += problem.conditions
    never: set[str] = set()
    names = frozenset(fluent.name for fluent in problem.actions)
    known = {fluent.name: fluent for fluent in problem.actions}
    for part in parts:
        if part.operator == "not" and part.arguments[0].name in defaults:
            never.add(part.arguments[0].name)
        limit = read_limit(part, known)
        if limit is not None and limit.most is not None:
            never |= {n for n, weight in limit.weights.items() if weight > limit.most} & defaults
    values = dict.fromkeys(never, make.FALSE)
    left = [one for part in parts for one in make.conjuncts(substitute(part, values))]
    return replace(
        problem,
        formulas={label: substitute(one, values) for label, one in problem.formulas.items()},
        rewards=tuple(substitute(one, values) for one in problem.rewards),
        actions=tuple(fluent for fluent in problem.actions if fluent.name not in never),
        preconditions=tuple(one for one in left if one.fluents <= names),
        conditions=tuple(one for one in left if not one.fluents <= names),
    )


def read_limit(condition: Expression, actions: Mapping[str, ActionFluent]) -> Limit | None:
    """A condition as a limit on action fluents, if it is one."""
    if condition.operator not in ("<=", "<", ">=", ">"):
        return None
    left, right = condition.arguments
    if condition.operator in (">=", ">"):
        left, right = right, left
    sums = _Sums(actions)
    for side, sign in ((left, 1.0), (right, -1.0)):
        if not sums.collect(side, sign):
            return None
    weights, rest = sums.weights, sums.rest
    by_value = {name: tuple(counts) for name, counts in sums.by_value.items() if any(counts)}
    if not (weights or by_value) or any(weight <= 0 for weight in weights.values()):
        return None
    if any(counts[0] or min(counts) < 0 for counts in by_value.values()):
        return None
    if by_value and any(not one.is_constant for one in rest):
        return None
    bound = make.product([make.constant(-1), make.total(rest)])
    if condition.operator in ("<", ">"):
        if not all(weight.is_integer() for weight in weights.values()):
            return None
        bound = make.total([bound, make.constant(-1)])
        if bound.is_constant:
            bound = make.constant(-((-bound.value) // 1))
    return Limit(dict(weights), bound, by_value)


class _Sums:
    """The terms of a comparison: weights of action fluents, and what looks at states alone."""

    def __init__(self, actions: Mapping[str, ActionFluent]) -> None:
        self.actions = actions
        self.weights: dict[str, float] = defaultdict(float)
        self.by_value: dict[str, list[float]] = {}
        self.rest: list[Expression] = []

    def collect(self, part: Expression, factor: float) -> bool:
        """Add up the terms of a sum; False if actions are in it in another way."""
        own = part.fluents & self.actions.keys()
        if not own:
            self.rest.append(make.product([make.constant(factor), part]))
            return True
        if part.operator == "+":
            return all(self.collect(one, factor) for one in part.arguments)
        if part.operator == "*" and len(part.arguments) == 2 and part.arguments[0].is_constant:
            number, other = part.arguments
            return self.collect(other, factor * number.value)
        fluent = self.actions[next(iter(own))]
        if len(part.fluents) > 1:
            return False
        if not fluent.objects and part.operator == make.FLUENT:
            self.weights[fluent.name] += factor
            return True
        if not fluent.objects:
            return False
        values = (fluent.default, *fluent.others)
        counts = [
            factor * float(substitute(part, {fluent.name: make.constant(value)}).value)
            for value in values
        ]
        known = self.by_value.get(fluent.name, [0.0] * len(values))
        self.by_value[fluent.name] = [a + b for a, b in zip(known, counts, strict=True)]
        return True


def read_choices(problem: Problem) -> Choices:
    """Exclusive action fluents as choices. Cost: exclusive sets times their fluents."""
    boolean = {f.name: f for f in problem.actions if not f.objects and not f.default}
    known = {fluent.name: fluent for fluent in problem.actions}
    limits, preconditions, conditions = [], [], []
    for part in problem.preconditions:
        limit = read_limit(part, known)
        if limit is not None and limit.weights.keys() <= boolean.keys():
            limits.append(limit)
        else:
            preconditions.append(part)
    for part in problem.conditions:
        limit = read_limit(part, known)
        if limit is not None and limit.weights.keys() <= boolean.keys():
            limits.append(limit)
        else:
            conditions.append(part)
    # Explicit exclusions come first: a budget excludes the expensive ones of all objects as well.
    plain = [limit.exclusive() for limit in limits if limit.is_one]
    plain += _pairs(preconditions, boolean.keys())
    others = [limit.exclusive() for limit in limits if not limit.is_one]
    groups = _cover(plain, list(boolean))
    taken = {name for group in groups for name in group}
    groups += _cover([[n for n in one if n not in taken] for one in others], list(boolean))
    member_of = {name: group for group in groups for name in group}
    fluents: list[ActionFluent] = []
    meaning: dict[str, Expression] = {}
    members: dict[str, tuple[str, ...]] = {}
    for fluent in problem.actions:
        group = member_of.get(fluent.name)
        if group is None:
            fluents.append(fluent)
            meaning[fluent.name] = make.fluent(fluent.name)
        elif fluent.name == group[0]:
            label = _group_name(group, {f.name for f in fluents})
            chosen = make.fluent(label)
            fluents.append(ActionFluent(label, 0, (NONE, *group), choice=True))
            members[label] = tuple(group)
            for value, name in enumerate(group, 1):
                meaning[name] = make.apply("==", [chosen, make.constant(value)])
    kept = tuple(limit for limit in limits if not _is_kept(limit, member_of))
    return Choices(tuple(fluents), meaning, members, kept, tuple(preconditions), tuple(conditions))


def _pairs(preconditions: Sequence[Expression], boolean: Container[str]) -> list[list[str]]:
    """Pairs of fluents that are never true together, as sets that grow while all exclude all."""
    found: dict[str, set[str]] = defaultdict(set)
    for part in preconditions:
        if part.operator == "or" and len(part.arguments) == 2:
            left, right = part.arguments
            if left.operator == right.operator == "not":
                first, second = left.arguments[0].name, right.arguments[0].name
                if first and second:
                    found[first].add(second)
                    found[second].add(first)
    cliques = []
    for name, others in found.items():
        clique = {name}
        for other in sorted(others, key=lambda one: (-len(found[one]), one)):
            if clique <= found[other]:
                clique.add(other)
        cliques.append(sorted(one for one in clique if one in boolean))
    return cliques


def _cover(exclusive: Sequence[Sequence[str]], order: Sequence[str]) -> list[list[str]]:
    """Disjoint groups of exclusive fluents, the largest first; members in their order."""
    rank = {name: position for position, name in enumerate(order)}
    found = []
    waiting = [set(one) for one in exclusive]
    while waiting:
        waiting.sort(key=len)
        largest = waiting.pop()
        if len(largest) < 2:
            break
        found.append(sorted(largest, key=rank.__getitem__))
        waiting = [one - largest for one in waiting]
    return found


def exclusive_sums(formula: Expression, limits: Sequence[Limit]) -> Expression:
    """A formula without draws, with disjunctions of which one part holds at a time as sums.

    Two parts that need different fluents of a limit of one never hold together.
    """
    sets = [frozenset(limit.exclusive()) for limit in limits if limit.is_one]

    def visit(node: Expression) -> Expression:
        if node.operator == "or":
            needed = [_needed(argument) for argument in node.arguments]
            for one in sets:
                chosen = [names & one for names in needed]
                if all(chosen) and len({min(names) for names in chosen}) == len(chosen):
                    return make.total(node.arguments)
            return node
        if node.operator in ("+", "*", "if"):
            return make.combine(node.operator, [visit(one) for one in node.arguments])
        return node

    return visit(formula)


def _needed(part: Expression) -> frozenset[str]:
    """Fluents that are true wherever a part is."""
    parts = part.arguments if part.operator == make.AND else (part,)
    return frozenset(one.name for one in parts if one.operator == make.FLUENT)


def _is_kept(limit: Limit, member_of: Mapping[str, list[str]]) -> bool:
    """Whether groups alone keep a limit: all that it counts is in one group, and light enough."""
    if limit.most is None or limit.by_value:
        return False
    groups = {id(member_of.get(name, name)) for name in limit.weights}
    return (
        len(groups) == 1
        and next(iter(limit.weights)) in member_of
        and max(limit.weights.values()) <= limit.most
    )


def _group_name(group: Sequence[str], taken: set[str]) -> str:
    """assign-to(*) for all of one fluent, *(a1) for different ones of an object."""
    fluents = {name.partition("(")[0] for name in group}
    arguments = [name.partition("(")[2].removesuffix(")").split(",") for name in group]
    if len(fluents) == 1:
        shown = [one[0] if len(set(one)) == 1 else "*" for one in zip(*arguments, strict=True)]
        name = f"{next(iter(fluents))}({','.join(shown)})"
    else:
        common = set(arguments[0]).intersection(*map(set, arguments[1:])) - {""}
        shown = [one for one in dict.fromkeys(arguments[0]) if one in common]
        name = f"*({','.join(shown)})" if shown else "/".join(sorted(fluents)[:MOST_NAMED])
    while name in taken:
        name += "*"
    return name


class Checker:
    """Preconditions on actions alone, as tables over choices that are checked one by one."""

    def __init__(self, choices: Choices, most_nondefault: int) -> None:
        self.fluents = choices.fluents
        self.most = most_nondefault
        position = {fluent.name: at for at, fluent in enumerate(self.fluents)}
        values = {f.name: (f.default, *f.others) for f in self.fluents}
        evaluator = Evaluator(values, position, MOST_CHECKED)
        self.tables: dict[int, list[tuple[list[int], Floats]]] = defaultdict(list)
        self.late: list[Expression] = []
        for condition in choices.preconditions:
            part = substitute(condition, choices.meaning)
            if part.is_constant:
                if not part.value:
                    raise UnsupportedError(
                        "its preconditions allow no joint action at all; correct them."
                    )
                continue
            if evaluator.size(tuple(part.fluents)) > MOST_CHECKED:
                self.late.append(part)
                continue
            found = evaluator.numbers(part)
            scope = [position[name] for name in found.scope]
            self.tables[max(scope, default=0)].append((scope, found.array))
        self.limits = [
            ({position[name]: counts for name, counts in choices.weights(limit).items()}, most)
            for limit in choices.limits
            if (most := limit.most) is not None
        ]

    def assignments(self, limit: int) -> list[Assignment] | None:
        """Joint actions, fewest fluents off their defaults first; None if more than a limit.

        Cost: a search through the choices in order, which leaves a branch as soon as a table or a
        limit rules it out.
        """
        found: list[tuple[int, ...]] = []
        for row in self._search():
            found.append(row)
            if len(found) > limit:
                return None
        values = [(fluent.default, *fluent.others) for fluent in self.fluents]
        changed = [tuple((at, values[at][v]) for at, v in enumerate(row) if v) for row in found]
        changed.sort(key=lambda pairs: (len(pairs), [at for at, _ in pairs], pairs))
        return [tuple((self.fluents[at].name, v) for at, v in pairs) for pairs in changed]

    def _search(self) -> Iterator[tuple[int, ...]]:
        """Positions of values, the default's being 0, of all joint actions."""
        n = len(self.fluents)
        row = [-1] * n
        sizes = [1 + len(fluent.others) for fluent in self.fluents]
        weights = [
            [(number, one[at]) for number, (one, _) in enumerate(self.limits) if at in one]
            for at in range(n)
        ]
        bounds = [most + ROUNDING for _, most in self.limits]
        used = [0.0] * len(bounds)
        spent = 0
        at = 0
        while at >= 0:
            if at == n:
                if self._holds(row):
                    yield tuple(row)
                at -= 1
                continue
            if row[at] >= 0:  # take back the value tried before
                spent -= row[at] > 0
                for number, counts in weights[at]:
                    used[number] -= counts[row[at]]
            row[at] += 1
            if row[at] == sizes[at]:
                row[at] = -1
                at -= 1
                continue
            spent += row[at] > 0
            for number, counts in weights[at]:
                used[number] += counts[row[at]]
            if (
                spent <= self.most
                and all(used[number] <= bounds[number] for number, _ in weights[at])
                and all(table[tuple(row[p] for p in scope)] for scope, table in self.tables[at])
            ):
                at += 1

    def _holds(self, row: Sequence[int]) -> bool:
        if not self.late:
            return True
        values = {
            fluent.name: make.constant((fluent.default, *fluent.others)[position])
            for fluent, position in zip(self.fluents, row, strict=True)
        }
        return all(bool(substitute(part, values).value) for part in self.late)
