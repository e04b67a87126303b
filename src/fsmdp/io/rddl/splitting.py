"""Large formulas, split at their operators by auxiliary variables.

A disjunction over thirty neighbours is a table of 2^30 entries, or thirty small ones: parts of it
become auxiliary variables, each a deterministic function of a few others. Where next values look at
them they are latents, drawn before. Rewards, allowed actions and ends look at current values, so
there an auxiliary variable is a state variable, whose next value is the same function of the next
values. Both leave the value of every policy as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product as tuples

import numpy as np

from fsmdp.io.rddl import expressions as make
from fsmdp.io.rddl.distributions import Evaluator
from fsmdp.io.rddl.expressions import Expression, combine, substitute

MOST_ROWS = 2**17
"""Assignments of what a next value looks at, from which its formula is split."""

MOST_CURRENT = 2**15
"""The same for rewards, allowed actions and ends."""

AUXILIARY_ROWS = 2**10
"""Assignments of what an auxiliary variable looks at, where a split can be that fine."""

MOST_OUTCOMES = 256
"""Values of an auxiliary variable."""

MARK = "#"
"""In the name of every auxiliary variable, and of no fluent."""

_NAMES = {
    "and": "all",
    "or": "any",
    "+": "sum",
    "*": "product",
    "minimum": "least",
    "maximum": "greatest",
}
_BOOLEAN = frozenset(("and", "or", "not", "==", "~=", "<", "<=", ">", ">=", make.BERNOULLI))


class Splitter:
    """Splits formulas until their tables fit, and collects the auxiliary variables.

    `values` are those of all fluents; those not in it (action fluents, where joint actions are
    listed) are constant in every table. Auxiliary variables are added to `values`.
    """

    def __init__(self, values: dict[str, tuple[int, ...]], states: Iterable[str]) -> None:
        self.values = values
        self.states = frozenset(states)
        self.latents: dict[str, Expression] = {}
        self.current: dict[str, Expression] = {}
        self._keys: dict[int, tuple[Expression, int]] = {}
        self._numbers: dict[object, int] = {}
        self._known: dict[tuple[bool, int], Expression] = {}
        self._shrunk: dict[tuple[bool, int, int], tuple[Expression, Expression]] = {}
        self._outcomes: dict[int, tuple[Expression, tuple[float, ...] | None]] = {}

    def rows(self, formula: Expression) -> int:
        """Assignments of all that a formula looks at."""
        return math.prod(len(self.values[n]) for n in formula.fluents if n in self.values)

    def next_value(self, formula: Expression, limit: int = MOST_ROWS) -> Expression:
        """A formula of a next value, with latents in place of parts."""
        return self._shrink(formula, limit, False)

    def condition(self, formula: Expression, limit: int = MOST_CURRENT) -> Expression:
        """A formula of current values, with auxiliary state variables in place of parts."""
        if self.rows(formula) <= limit:
            return formula
        return self._shrink(formula, limit, True)

    def reward(self, formula: Expression, limit: int = MOST_CURRENT) -> list[Expression]:
        """Terms whose sum is a formula of current values, split further where they are large."""
        if self.rows(formula) <= limit:
            return [formula]
        terms = list(_terms(formula))
        if len(terms) > 1:
            return [one for term in terms for one in self.reward(term, limit)]
        return [self._shrink(formula, limit, True)]

    def _may_stand_alone(self, part: Expression, current: bool) -> bool:
        return not current or (not part.random and part.fluents <= self.states)

    def _shrink(self, formula: Expression, limit: int, current: bool) -> Expression:
        if self.rows(formula) <= limit:
            return formula
        key = (current, limit, id(formula))
        found = self._shrunk.get(key)
        # A formula that draws is another draw wherever it stands.
        if found is None or formula.random:
            found = self._shrunk[key] = (formula, self._split(formula, limit, current))
        return found[1]

    def _split(self, formula: Expression, limit: int, current: bool) -> Expression:
        if formula.operator == make.FLUENT:
            return formula
        arguments = [self._shrink(one, limit, current) for one in formula.arguments]
        if formula.operator in _NAMES:
            arguments = self._packed(formula.operator, arguments, limit, current)
        else:
            arguments = self._replaced(formula.operator, arguments, limit, current)
        return _rebuilt(formula, arguments)

    def _packed(
        self, operator: str, arguments: list[Expression], limit: int, current: bool
    ) -> list[Expression]:
        """Arguments of an associative operator, several at a time replaced by a variable.

        Conditions and rewards of many actions share what they look at, so that there one variable
        is made of all parts that look at states alone.
        """
        changed = False
        while True:
            free = [one for one in arguments if self._may_stand_alone(one, current)]
            whole = self.rows(combine(operator, arguments)) > limit
            if not whole and not (current and changed and len(free) > 1):
                return arguments
            rest = [one for one in arguments if not self._may_stand_alone(one, current)]
            packed = self._once(operator, free, limit, current)
            if packed is None:
                return arguments
            arguments, changed = [*rest, *packed], True

    def _once(
        self, operator: str, arguments: list[Expression], limit: int, current: bool
    ) -> list[Expression] | None:
        bins: list[list[Expression]] = []
        rows = 0
        for argument in arguments:
            alone = self.rows(argument)
            whole = self.rows(combine(operator, [*bins[-1], argument])) if bins else 0
            # Parts that look at the same are one, however large that is.
            if bins and whole <= max(AUXILIARY_ROWS, rows, alone):
                bins[-1].append(argument)
                rows = whole
            else:
                bins.append([argument])
                rows = alone
        if len(bins) == len(arguments) > 1:
            bins = self._pairs(operator, arguments, limit)
        found, changed = [], False
        for part in bins:
            joint = part[0] if len(part) == 1 else combine(operator, part)
            named = self._auxiliary(joint, current)
            found.append(joint if named is None else named)
            changed |= named is not None
        return [one for part in found for one in _flat(operator, part)] if changed else None

    def _pairs(
        self, operator: str, arguments: list[Expression], limit: int
    ) -> list[list[Expression]]:
        """Arguments two by two, where a table over both is within the limit."""
        bins = []
        for at in range(0, len(arguments), 2):
            pair = arguments[at : at + 2]
            fits = self.rows(combine(operator, pair)) <= limit
            bins += [pair] if fits else [[one] for one in pair]
        return bins

    def _replaced(
        self, operator: str, arguments: list[Expression], limit: int, current: bool
    ) -> list[Expression]:
        """Arguments of another operator, the largest replaced by variables until all fits."""
        order = sorted(range(len(arguments)), key=lambda at: -self.rows(arguments[at]))
        for at in order:
            if self.rows(combine(operator, arguments)) <= limit:
                break
            if self._may_stand_alone(arguments[at], current):
                named = self._auxiliary(arguments[at], current)
                if named is not None:
                    arguments[at] = named
        return arguments

    def _auxiliary(self, part: Expression, current: bool) -> Expression | None:
        """A variable with the value of a part; None if that would not make anything smaller."""
        if part.operator == make.FLUENT or not self._may_stand_alone(part, current):
            return None
        key = (current, self._key(part))
        if not part.random and key in self._known:
            return self._known[key]
        if part.operator in ("and", "or") and not part.random:
            opposite = self._known.get((current, self._key(make.opposite(part))))
            if opposite is not None:
                return make.negation(opposite)
        outcomes = self.outcomes(part)
        if outcomes is None or len(outcomes) >= self.rows(part):
            return None
        if any(not float(value).is_integer() for value in outcomes):
            # Values of variables are whole numbers: this one is the position of the outcome.
            variable, named = self._coded(part, outcomes, current)
        else:
            variable = self._new(part, tuple(map(int, outcomes)), current)
            named = make.fluent(variable)
        if not part.random:
            self._known[key] = named
        return named

    def _coded(
        self, part: Expression, outcomes: Sequence[float], current: bool
    ) -> tuple[str, Expression]:
        coded = make.constant(0)
        for position, value in enumerate(outcomes[1:], 1):
            same = make.apply(">=", [part, make.constant(value)])
            coded = make.choice(same, make.constant(position), coded)
        variable = self._new(coded, tuple(range(len(outcomes))), current, part)
        chosen = make.fluent(variable)
        return variable, make.selection(chosen, [make.constant(value) for value in outcomes])

    def _new(
        self,
        formula: Expression,
        values: tuple[int, ...],
        current: bool,
        named_after: Expression | None = None,
    ) -> str:
        where = self.current if current else self.latents
        word = _NAMES.get((named_after or formula).operator, "part")
        label = f"{word}{MARK}{len(self.current) + len(self.latents) + 1}"
        where[label] = formula
        self.values[label] = values
        if current:
            self.states |= {label}
            self.values[f"{label}'"] = values
        return label

    def _key(self, part: Expression) -> int:
        """A number that is equal for equal expressions, whatever the order of their arguments."""
        found = self._keys.get(id(part))
        if found is None:
            below = [self._key(one) for one in part.arguments]
            if part.operator in (*_NAMES, "==", "~="):
                below.sort()
            content = (part.operator, part.name, float(part.value), *below)
            number = self._numbers.setdefault(content, len(self._numbers))
            found = self._keys[id(part)] = (part, number)
        return found[1]

    def outcomes(self, part: Expression) -> tuple[float, ...] | None:
        """Values that a part can take, in order, or a few more; None if they are too many."""
        found = self._outcomes.get(id(part))
        if found is None:
            found = self._outcomes[id(part)] = (part, self._find_outcomes(part))
        return found[1]

    def _find_outcomes(self, part: Expression) -> tuple[float, ...] | None:
        operator = part.operator
        if part.is_constant:
            return (float(part.value),)
        if operator == make.FLUENT:
            return tuple(map(float, self.values.get(part.name, (0, 1))))
        if operator in _BOOLEAN:
            return (0.0, 1.0)
        if operator in ("if", "select"):
            return self._union(part.arguments[1:])
        if operator in _SETS and all(n in self.values for n in part.fluents):
            exact = self._evaluated(part)
            if exact is not None:
                return exact
        if operator in _SETS:
            return self._combined(part.arguments, _SETS[operator])
        return self._evaluated(part)

    def _union(self, parts: Sequence[Expression]) -> tuple[float, ...] | None:
        found: set[float] = set()
        for part in parts:
            known = self.outcomes(part)
            if known is None:
                return None
            found |= set(known)
        return tuple(sorted(found)) if len(found) <= MOST_OUTCOMES else None

    def _combined(
        self, parts: Sequence[Expression], function: Callable[[float, float], float]
    ) -> tuple[float, ...] | None:
        found: set[float] | None = None
        for part in parts:
            known = self.outcomes(part)
            if known is None:
                return None
            found = set(known) if found is None else {function(a, b) for a in found for b in known}
            if len(found) > MOST_OUTCOMES:
                return None
        return tuple(sorted(found or ()))

    def _evaluated(self, part: Expression) -> tuple[float, ...] | None:
        """The values that it takes, from its table, where that is small."""
        names = sorted(part.fluents)
        values: Mapping[str, Sequence[int]] = {n: self.values.get(n, (0, 1)) for n in names}
        if math.prod(map(len, values.values())) > MOST_CURRENT:
            return None
        evaluator = Evaluator(values, {name: at for at, name in enumerate(names)})
        if part.random:
            known: Iterable[float] = evaluator.law(part).outcomes
        else:
            known = np.unique(evaluator.numbers(part).array).tolist()
        found = tuple(sorted(known))
        if len(found) > MOST_OUTCOMES or not np.isfinite(found).all():
            return None
        return found


_SETS: Mapping[str, Callable[[float, float], float]] = {
    "+": lambda one, other: one + other,
    "*": lambda one, other: one * other,
    "minimum": min,
    "maximum": max,
    "min": min,
    "max": max,
}


def _flat(operator: str, part: Expression) -> tuple[Expression, ...]:
    return part.arguments if part.operator == operator else (part,)


def _rebuilt(formula: Expression, arguments: Sequence[Expression]) -> Expression:
    """The same operator on other arguments, one of which may have become its only one."""
    if formula.operator in _NAMES and len(arguments) == 1:
        return arguments[0]
    same = len(arguments) == len(formula.arguments) and all(
        one is other for one, other in zip(arguments, formula.arguments, strict=True)
    )
    if same:
        return formula
    return combine(formula.operator, arguments, random=formula.operator in make.DRAWS)


def _terms(formula: Expression) -> Iterable[Expression]:
    """Terms whose sum is a formula: sums inside conditions and products are multiplied out."""
    operator, arguments = formula.operator, formula.arguments
    if operator == "+":
        for argument in arguments:
            yield from _terms(argument)
    elif operator == "if":
        condition, then, otherwise = arguments
        zero = make.constant(0)
        yes, no = list(_terms(then)), list(_terms(otherwise))
        if len(yes) + len(no) <= 2 and (then.is_constant or otherwise.is_constant):
            yield formula
            return
        for term in yes:
            if not term.is_value(0):
                yield make.choice(condition, term, zero)
        for term in no:
            if not term.is_value(0):
                yield make.choice(condition, zero, term)
    elif operator == "*" and not formula.random:
        inner = [list(_terms(one)) for one in arguments]
        if math.prod(map(len, inner)) > max(map(len, inner)):
            yield formula  # several sums: their products would look at as much
            return
        for chosen in tuples(*inner):
            yield make.product(chosen)
    else:
        yield formula


def primed(formula: Expression) -> Expression:
    """The same function of next values."""
    return substitute(formula, {name: make.fluent(f"{name}'") for name in formula.fluents})
