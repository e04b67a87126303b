"""From an expression to a table: all values of the fluents it looks at, at once.

Each occurrence of a distribution is an independent draw, so given the fluents that an expression
looks at, its arguments are independent of one another.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fsmdp.foundation.checks import show_count, show_names
from fsmdp.io.rddl import expressions as make
from fsmdp.io.rddl.expressions import Expression
from fsmdp.io.rddl.sources import TooLargeError, UnsupportedError
from fsmdp.model.tables import Floats

MOST_ENTRIES = 2**20
MOST_OUTCOMES = 256
MOST_TRIALS = 64
"""Trials of a Binomial."""

CUT_OFF = 64
"""Numbers from here on are one outcome of a draw from all natural numbers."""

TRIMMED_AT_ONCE = 2**12  # small tables lose idle axes early, before they make others large
SUM_TOLERANCE = 1e-5
RANGE_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """A number for each assignment of a scope."""

    scope: tuple[str, ...]
    array: Floats  # (*sizes of scope)


@dataclass(frozen=True, slots=True, eq=False)
class Law:
    """A distribution over numbers for each assignment of a scope."""

    scope: tuple[str, ...]
    outcomes: tuple[float, ...]
    probabilities: Floats  # (*sizes of scope, n_outcomes)


_ARRAYS: Mapping[str, Callable[..., Floats]] = {
    "and": lambda left, right: np.minimum(left, right),
    "or": lambda left, right: np.maximum(left, right),
    "+": np.add,
    "*": np.multiply,
    "/": np.divide,
    "==": lambda left, right: (left == right).astype(np.float64),
    "~=": lambda left, right: (left != right).astype(np.float64),
    "<": lambda left, right: (left < right).astype(np.float64),
    "<=": lambda left, right: (left <= right).astype(np.float64),
    ">": lambda left, right: (left > right).astype(np.float64),
    ">=": lambda left, right: (left >= right).astype(np.float64),
    "not": lambda only: 1.0 - only,
    "minimum": np.minimum,
    "maximum": np.maximum,
    "min": np.minimum,
    "max": np.maximum,
    "abs": np.abs,
}
_ASSOCIATIVE = frozenset(("and", "or", "+", "*", "minimum", "maximum"))


class Evaluator:
    """Evaluates expressions; parts that occur twice are evaluated once.

    `values` are those of each fluent, `rank` the order of axes. `clipped` counts probabilities
    that had to be put back between 0 and 1.

    Of a draw from all natural numbers, those from CUT_OFF on are one outcome, `tail`. Functions
    of it are monotone, or refused; one that is the same at CUT_OFF and at infinity is the same at
    all numbers between, so that its law is exact.
    """

    def __init__(
        self,
        values: Mapping[str, Sequence[int]],
        rank: Mapping[str, int],
        limit: int = MOST_ENTRIES,
        tail: float = math.inf,
    ) -> None:
        self.tail = tail
        self.is_endless = False
        self.values = values
        self.rank = rank
        self.limit = limit
        self.clipped = 0
        self._known: dict[int, tuple[Expression, Values | Law]] = {}

    def evaluate(self, expression: Expression) -> Values | Law:
        """Numbers if nothing is drawn, a law otherwise; refused beyond the limit."""
        found = self._known.get(id(expression))
        if found is None:
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                result = self._evaluate(expression)
            if isinstance(result, Values) and result.array.size <= TRIMMED_AT_ONCE:
                result = trim(result)
            # The expression is kept with its result, so that its id is not used again.
            found = self._known[id(expression)] = (expression, result)
        return found[1]

    def law(self, expression: Expression) -> Law:
        """The distribution of an expression; without draws it is certain."""
        found = self._as_law(self.evaluate(expression))
        if self.is_endless and math.isinf(self.tail):
            self._check_tail(expression, found)
        return found

    def _check_tail(self, expression: Expression, found: Law) -> None:
        other = Evaluator(self.values, self.rank, self.limit, float(CUT_OFF))
        same = other.law(expression)
        if any(map(math.isinf, found.outcomes)) or not (
            found.scope == same.scope
            and found.outcomes == same.outcomes
            and np.array_equal(found.probabilities, same.probabilities)
        ):
            raise UnsupportedError(
                "it draws from a Poisson or Geometric distribution, and numbers from "
                f"{CUT_OFF} on make a difference; cut it off, by min or a comparison, in the "
                "formula in which it is drawn."
            )

    def numbers(self, expression: Expression) -> Values:
        """The values of an expression in which nothing is drawn."""
        found = self.evaluate(expression)
        if isinstance(found, Law):
            raise UnsupportedError("a random value stands where a fixed one is expected.")
        return found

    def size(self, scope: Sequence[str]) -> int:
        """Number of assignments of a scope."""
        return math.prod(len(self.values[name]) for name in scope)

    def _evaluate(self, expression: Expression) -> Values | Law:
        operator = expression.operator
        if operator == make.CONSTANT:
            return Values((), np.asarray(float(expression.value)))
        if operator == make.FLUENT:
            name = expression.name
            return Values((name,), np.array(self.values[name], dtype=np.float64))
        if operator == make.BERNOULLI:
            return self._bernoulli(expression.arguments[0])
        if operator in (make.DISCRETE, make.UNNORMALISED):
            return self._discrete(expression)
        arguments = [self.evaluate(argument) for argument in expression.arguments]
        if operator == make.BINOMIAL:
            return self._binomial(*arguments)
        if operator in make.ENDLESS:
            return self._endless(operator, arguments[0])
        if operator in ("if", "select"):
            return self._mixture(operator, arguments)
        if operator in _ASSOCIATIVE:
            result = arguments[0]
            for argument in arguments[1:]:
                result = self._apply(operator, [result, argument])
            return result
        return self._apply(operator, arguments)

    def _joint_scope(self, parts: Sequence[Values | Law], factor: int = 1) -> tuple[str, ...]:
        names = {name for part in parts for name in part.scope}
        scope = tuple(sorted(names, key=self.rank.__getitem__))
        entries = self.size(scope) * factor
        if entries > self.limit:
            raise TooLargeError(
                f"a table over {len(scope)} fluents ({show_names(scope)}) would have "
                f"{show_count(entries)} entries (limit {self.limit}, the option most_entries of "
                "fsmdp.rddl.load); simplify the formula."
            )
        return scope

    def _spread(self, part: Values, scope: Sequence[str]) -> Floats:
        """An array whose axes are those of a larger scope, of length 1 where it does not vary."""
        return part.array.reshape(
            [len(self.values[name]) if name in part.scope else 1 for name in scope]
        )

    def _spread_law(self, part: Law, scope: Sequence[str]) -> Floats:
        shape = [len(self.values[name]) if name in part.scope else 1 for name in scope]
        return part.probabilities.reshape([*shape, len(part.outcomes)])

    def _full(self, array: Floats, scope: Sequence[str]) -> Floats:
        return np.broadcast_to(array, [len(self.values[name]) for name in scope])

    def _apply(self, operator: str, parts: Sequence[Values | Law]) -> Values | Law:
        certain = [part for part in parts if isinstance(part, Values)]
        if len(certain) == len(parts):
            scope = self._joint_scope(parts)
            arrays = [self._spread(part, scope) for part in certain]
            found = _ARRAYS.get(operator)
            if found is None:
                scalar = np.frompyfunc(_scalar(operator), len(arrays), 1)
                found = lambda *given: np.asarray(scalar(*given), dtype=np.float64)  # noqa: E731
            return Values(scope, self._full(found(*arrays), scope))
        return self._combine_laws(operator, [self._as_law(part) for part in parts])

    def _combine_laws(self, operator: str, laws: Sequence[Law]) -> Law:
        """The law of a function of independent draws: sum over their outcomes."""
        _check_monotone(operator, laws)
        scalar = _scalar(operator)
        scope = self._joint_scope(laws)
        weights = [self._spread_law(law, scope) for law in laws]
        found: dict[float, Floats] = {}

        def visit(position: int, values: tuple[float, ...], weight: Floats | float) -> None:
            if position == len(laws):
                value = scalar(*values)
                found[value] = found[value] + weight if value in found else np.asarray(weight)
                return
            for index, outcome in enumerate(laws[position].outcomes):
                part = weights[position][..., index]
                if part.any():
                    visit(position + 1, (*values, outcome), weight * part)

        visit(0, (), 1.0)
        return self._law_of(scope, found)

    def _law_of(self, scope: tuple[str, ...], found: Mapping[float, Floats]) -> Law:
        if len(found) > MOST_OUTCOMES:
            raise TooLargeError(
                f"an expression over {show_names(scope)} takes {len(found)} values (limit "
                f"{MOST_OUTCOMES}); expected a fluent with few values."
            )
        outcomes = tuple(sorted(found))
        if self.size(scope) * len(outcomes) > self.limit:
            self._joint_scope([Values(scope, np.zeros(()))], len(outcomes))
        stacked = [self._full(found[outcome], scope) for outcome in outcomes]
        return Law(scope, outcomes, np.stack(stacked, axis=-1))

    def _as_law(self, part: Values | Law) -> Law:
        if isinstance(part, Law):
            return part
        undefined = np.isnan(part.array)
        found = {
            float(value): (part.array == value).astype(np.float64)
            for value in np.unique(part.array[~undefined])
        }
        if undefined.any():
            found[math.nan] = undefined.astype(np.float64)
        return self._law_of(part.scope, found)

    def _mixture(self, operator: str, parts: Sequence[Values | Law]) -> Values | Law:
        """if and select: the law of the chosen alternative, weighed by the choice."""
        chosen, *alternatives = parts
        if operator == "if":
            alternatives.reverse()  # `else` where the condition is 0, `then` where it is 1
        scope = self._joint_scope(parts)
        certain = [self._spread(part, scope) for part in alternatives if isinstance(part, Values)]
        if isinstance(chosen, Values) and len(certain) == len(alternatives):
            index = self._spread(chosen, scope)
            result = certain[-1]
            for position in reversed(range(len(certain) - 1)):
                result = np.where(index == position, certain[position], result)
            return Values(scope, self._full(result, scope))
        law = self._as_law(chosen)
        weights = self._spread_law(law, scope)
        found: dict[float, Floats] = {}
        for at, outcome in enumerate(law.outcomes):
            part = self._as_law(alternatives[int(outcome)])
            probabilities = self._spread_law(part, scope)
            for other, value in enumerate(part.outcomes):
                weight = weights[..., at] * probabilities[..., other]
                found[value] = found[value] + weight if value in found else weight
        return self._law_of(scope, found)

    def _binomial(self, trials: Values | Law, success: Values | Law) -> Law:
        """The number of successes, given a number of trials for each assignment."""
        if isinstance(trials, Law) or isinstance(success, Law):
            raise UnsupportedError("the parameters of a Binomial are random; draw them before.")
        scope = self._joint_scope([trials, success])
        n = self._full(self._spread(trials, scope), scope)
        p = self._full(self._spread(success, scope), scope)
        if n.size and not (
            np.isin(n, range(MOST_TRIALS + 1)).all() and ((p >= 0) & (p <= 1)).all()
        ):
            raise UnsupportedError(
                f"the parameters of a Binomial leave their range; expected a whole number of "
                f"trials from 0 to {MOST_TRIALS} and a probability."
            )
        found = {}
        for count in range(int(n.max(initial=0)) + 1):
            ways = np.vectorize(math.comb)(n.astype(int), count)
            chance = ways * p**count * (1 - p) ** np.maximum(n - count, 0)
            found[float(count)] = np.where(count <= n, chance, 0.0)
        return self._law_of(scope, found)

    def _endless(self, operator: str, parameter: Values | Law) -> Law:
        """A Poisson or Geometric number, with all from CUT_OFF on as one outcome."""
        if isinstance(parameter, Law):
            raise UnsupportedError(f"the parameter of a {operator} is random; draw it before.")
        array = parameter.array
        if operator == make.POISSON:
            if not (array >= 0).all() or not np.isfinite(array).all():
                raise UnsupportedError("the rate of a Poisson is negative or not finite.")
            found = {
                float(k): np.exp(-array) * array**k / math.factorial(k) for k in range(CUT_OFF)
            }
        else:  # the number of trials until the first success, 1 at least
            if not ((array > 0) & (array <= 1)).all():
                raise UnsupportedError("the probability of a Geometric is not above 0, up to 1.")
            found = {float(k): array * (1 - array) ** (k - 1) for k in range(1, CUT_OFF)}
        self.is_endless = True
        found[self.tail] = np.maximum(0.0, 1.0 - sum(found.values()))
        return self._law_of(parameter.scope, found)

    def _mean(self, expression: Expression) -> Values:
        part = self.evaluate(expression)
        if isinstance(part, Values):
            return part
        return Values(part.scope, part.probabilities @ np.array(part.outcomes))

    def _bernoulli(self, argument: Expression) -> Law:
        success = self._mean(argument)
        array = np.nan_to_num(success.array, nan=-1.0)
        outside = (array < -RANGE_TOLERANCE) | (array > 1 + RANGE_TOLERANCE)
        self.clipped += int(outside.sum())
        array = np.clip(array, 0.0, 1.0)
        self._joint_scope([success], 2)
        return Law(success.scope, (0.0, 1.0), np.stack([1 - array, array], axis=-1))

    def _discrete(self, expression: Expression) -> Law:
        parts = [self._mean(argument) for argument in expression.arguments]
        scope = self._joint_scope(parts, len(parts))
        spread = [self._full(self._spread(part, scope), scope) for part in parts]
        weights = np.stack(spread, axis=-1)
        sums = weights.sum(axis=-1, keepdims=True)
        tolerance = math.inf if expression.operator == make.UNNORMALISED else SUM_TOLERANCE
        negative = np.any(weights < 0, axis=-1, keepdims=True)
        wrong = ~(np.abs(sums - 1) <= tolerance) | ~(sums > 0) | negative
        if wrong.any():
            at = tuple(int(i) for i in np.argwhere(wrong[..., 0])[0])
            where = ", ".join(
                f"{name}={self.values[name][i]}" for name, i in zip(scope, at, strict=True)
            )
            raise UnsupportedError(
                f"the probabilities of a {expression.operator} sum to {float(sums[at][0]):.6g} "
                f"where {where or 'nothing is looked at'}; expected none below 0 and a sum of 1."
            )
        return Law(scope, tuple(map(float, range(len(parts)))), weights / sums)


MONOTONE = frozenset(("+", "minimum", "maximum", "min", "max", "<", "<=", ">", ">="))


def _check_monotone(operator: str, laws: Sequence[Law]) -> None:
    """Refuse a function of an endless draw that is not known to be monotone."""
    if not any(math.isinf(value) for law in laws for value in law.outcomes):
        return
    if operator in MONOTONE or (operator == "*" and len(laws) == 2 and _is_factor(laws)):
        return
    raise UnsupportedError(
        f"{operator} is applied to a draw from a Poisson or Geometric distribution; expected it to "
        "be cut off by min or a comparison first."
    )


def _is_factor(laws: Sequence[Law]) -> bool:
    """Whether one of two laws is a number other than 0."""
    return any(len(law.outcomes) == 1 and law.outcomes[0] != 0 for law in laws)


def _scalar(operator: str) -> Callable[..., float]:
    """A function of numbers; where it has no value that is NaN, which may never be looked at."""
    function = make.SCALAR_FUNCTIONS.get(operator, _ARRAYS.get(operator))
    assert function is not None

    def of_numbers(*given: float) -> float:
        try:
            value = float(function(*given))
        except (ArithmeticError, ValueError):
            return math.nan
        # One object stands for NaN, which equals nothing, so that it can be a key.
        return math.nan if math.isnan(value) else value

    return of_numbers


def trim(part: Values) -> Values:
    """The same numbers without the fluents on which they do not depend."""
    return Values(*_trimmed(part.scope, part.array))


def trim_law(law: Law) -> Law:
    """The same law without the fluents on which it does not depend."""
    scope, probabilities = _trimmed(law.scope, law.probabilities)
    return Law(scope, law.outcomes, probabilities)


def _trimmed(scope: tuple[str, ...], array: Floats) -> tuple[tuple[str, ...], Floats]:
    """Drop the axes of a scope along which nothing changes; other axes come after them."""
    kept = list(scope)
    for name in scope:
        axis = kept.index(name)
        first = array.take([0], axis=axis)
        if (array == first).all():
            array = first.squeeze(axis=axis)
            kept.remove(name)
    return tuple(kept), array
