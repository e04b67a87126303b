"""Expressions over ground fluents, folded as they are built.

An expression is a tree: each occurrence of a distribution in it is a draw of its own, also where
two places of a tree are the same object. So a rule that drops a repeated argument may be used on
expressions without draws only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product as tuples

from fsmdp.io.rddl.sources import UnsupportedError

Number = bool | int | float

CONSTANT = "constant"
FLUENT = "fluent"
AND = "and"
BERNOULLI = "Bernoulli"
DISCRETE = "Discrete"
UNNORMALISED = "UnnormDiscrete"
BINOMIAL = "Binomial"
POISSON = "Poisson"
GEOMETRIC = "Geometric"
ENDLESS = (POISSON, GEOMETRIC)
"""Distributions over all natural numbers."""

DRAWS = frozenset((BERNOULLI, DISCRETE, UNNORMALISED, BINOMIAL, *ENDLESS))
NOTHING: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """An operator and its arguments, or a constant, or a ground fluent.

    `fluents` are all ground fluents below; `random` says whether anything below is drawn.
    """

    operator: str
    arguments: tuple[Expression, ...] = ()
    value: Number = 0
    name: str = ""
    fluents: frozenset[str] = NOTHING
    random: bool = False

    @property
    def is_constant(self) -> bool:
        """Whether it is a number."""
        return self.operator == CONSTANT

    def is_value(self, value: Number) -> bool:
        """Whether it is a given number."""
        return self.operator == CONSTANT and self.value == value


def constant(value: Number) -> Expression:
    """A number; truth values are 0 and 1."""
    return Expression(CONSTANT, value=value)


TRUE = constant(True)
FALSE = constant(False)


def fluent(name: str) -> Expression:
    """The value of a ground fluent."""
    return Expression(FLUENT, name=name, fluents=frozenset((name,)))


def combine(operator: str, arguments: Sequence[Expression], random: bool = False) -> Expression:
    """An operator on arguments, without folding."""
    fluents = NOTHING.union(*(argument.fluents for argument in arguments))
    drawn = random or any(argument.random for argument in arguments)
    return Expression(operator, tuple(arguments), fluents=fluents, random=drawn)


def _flat(operator: str, arguments: Iterable[Expression]) -> Iterable[Expression]:
    for argument in arguments:
        if argument.operator == operator:
            yield from argument.arguments
        else:
            yield argument


def _junction(operator: str, arguments: Iterable[Expression], absorbing: bool) -> Expression:
    kept: dict[int, Expression] = {}
    for position, argument in enumerate(_flat(operator, arguments)):
        if argument.is_constant:
            if bool(argument.value) is absorbing:
                return TRUE if absorbing else FALSE
            continue
        # A second draw is not a repetition of the first.
        kept[-1 - position if argument.random else id(argument)] = argument
    if not kept:
        return FALSE if absorbing else TRUE
    if len(kept) == 1:
        return next(iter(kept.values()))
    return combine(operator, list(kept.values()))


def conjunction(arguments: Iterable[Expression]) -> Expression:
    """All of them; arguments after the first that is false are not asked for."""
    return _junction(AND, arguments, absorbing=False)


def disjunction(arguments: Iterable[Expression]) -> Expression:
    """Any of them; arguments after the first that is true are not asked for."""
    return _junction("or", arguments, absorbing=True)


def negation(argument: Expression) -> Expression:
    """Not."""
    if argument.is_constant:
        return FALSE if argument.value else TRUE
    return argument.arguments[0] if argument.operator == "not" else combine("not", [argument])


def equivalence(left: Expression, right: Expression) -> Expression:
    """Both or neither."""
    for one, other in ((left, right), (right, left)):
        if one.is_constant:
            return other if one.value else negation(other)
    return combine("==", [left, right])


def total(arguments: Iterable[Expression]) -> Expression:
    """Their sum."""
    kept, fixed = [], 0.0
    for argument in _flat("+", arguments):
        if argument.is_constant:
            fixed += argument.value
        else:
            kept.append(argument)
    if not kept:
        return constant(fixed)
    if fixed:
        kept.append(constant(fixed))
    return kept[0] if len(kept) == 1 else combine("+", kept)


def product(arguments: Iterable[Expression]) -> Expression:
    """Their product; arguments after the first that is zero are not asked for."""
    kept, factor = [], 1.0
    for argument in _flat("*", arguments):
        if argument.is_constant:
            if not argument.value:
                return constant(0)
            factor *= argument.value
        else:
            kept.append(argument)
    if not kept:
        return constant(factor)
    if factor != 1:
        kept.insert(0, constant(factor))
    return kept[0] if len(kept) == 1 else combine("*", kept)


def difference(left: Expression, right: Expression) -> Expression:
    """left - right."""
    return total([left, product([constant(-1), right])])


def quotient(left: Expression, right: Expression) -> Expression:
    """left / right."""
    if right.is_value(0):
        raise UnsupportedError(
            "an expression divides by zero whatever the state; correct the domain or its constants."
        )
    if left.is_constant and right.is_constant:
        return constant(left.value / right.value)
    return left if right.is_value(1) else combine("/", [left, right])


COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    "==": lambda left, right: left == right,
    "~=": lambda left, right: left != right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}

FUNCTIONS: Mapping[str, Callable[..., float]] = {
    "abs": abs,
    "sgn": lambda x: (x > 0) - (x < 0),
    "round": round,
    "floor": math.floor,
    "ceil": math.ceil,
    "cos": math.cos,
    "sin": math.sin,
    "tan": math.tan,
    "exp": math.exp,
    "ln": math.log,
    "log": lambda x, base: math.log(x) / math.log(base),
    "sqrt": math.sqrt,
    "gamma": math.gamma,
    "lngamma": math.lgamma,
    "div": lambda x, y: x // y,
    "mod": lambda x, y: x % y,
    "fmod": lambda x, y: x % y,
    "min": min,
    "max": max,
    "pow": math.pow,
    "hypot": math.hypot,
}

SELECTIONS: Mapping[str, Callable[..., float]] = {
    "minimum": lambda *values: min(values),
    "maximum": lambda *values: max(values),
    "argmin": lambda *values: values.index(min(values)),
    "argmax": lambda *values: values.index(max(values)),
}

SCALAR_FUNCTIONS = {**COMPARISONS, **FUNCTIONS, **SELECTIONS}


def apply(operator: str, arguments: Sequence[Expression]) -> Expression:
    """A comparison, a function or a selection, computed at once where it is of numbers."""
    if all(argument.is_constant for argument in arguments):
        values = [argument.value for argument in arguments]
        try:
            return constant(SCALAR_FUNCTIONS[operator](*values))
        except (ArithmeticError, ValueError, TypeError) as error:
            raise UnsupportedError(
                f"{operator} of {values} cannot be computed ({error}); correct the domain."
            ) from None
    return combine(operator, arguments)


def choice(condition: Expression, then: Expression, otherwise: Expression) -> Expression:
    """if condition then ... else ..."""
    if condition.is_constant:
        return then if condition.value else otherwise
    if then is otherwise:
        return then
    if then.is_constant and otherwise.is_constant:
        if then.value == otherwise.value:
            return then
        if then.value is True and otherwise.value is False:
            return condition
        if then.value is False and otherwise.value is True:
            return negation(condition)
    return combine("if", [condition, then, otherwise])


def selection(index: Expression, alternatives: Sequence[Expression]) -> Expression:
    """The alternative at an index, which is drawn once where it is random."""
    if index.is_constant:
        return alternatives[int(index.value)]
    first = alternatives[0]
    if all(one.is_constant and one.value == first.value for one in alternatives):
        return first
    return combine("select", [index, *alternatives])


def bernoulli(probability: Expression) -> Expression:
    """True with a probability."""
    if probability.is_constant and probability.value in (0, 1):
        return TRUE if probability.value else FALSE
    return combine(BERNOULLI, [probability], random=True)


def discrete(weights: Sequence[Expression], operator: str = DISCRETE) -> Expression:
    """An index, with probabilities that are given or, if unnormalised, in proportion to weights."""
    if all(weight.is_constant for weight in weights):
        positive = [index for index, weight in enumerate(weights) if weight.value]
        # Weights that make no sense are left for the evaluator, which says so.
        if len(positive) == 1:
            weight = weights[positive[0]].value
            if weight == 1 or (operator == UNNORMALISED and 0 < weight < math.inf):
                return constant(positive[0])
    return combine(operator, weights, random=True)


def count_draw(operator: str, arguments: Sequence[Expression]) -> Expression:
    """A natural number drawn from one of the distributions of counts."""
    return combine(operator, arguments, random=True)


_BUILDERS: Mapping[str, Callable[[Sequence[Expression]], Expression]] = {
    "and": conjunction,
    "or": disjunction,
    "not": lambda arguments: negation(arguments[0]),
    "+": total,
    "*": product,
    "/": lambda arguments: quotient(arguments[0], arguments[1]),
    "if": lambda arguments: choice(arguments[0], arguments[1], arguments[2]),
    "select": lambda arguments: selection(arguments[0], arguments[1:]),
    BERNOULLI: lambda arguments: bernoulli(arguments[0]),
    DISCRETE: discrete,
    UNNORMALISED: lambda arguments: discrete(arguments, UNNORMALISED),
    BINOMIAL: lambda arguments: count_draw(BINOMIAL, arguments),
    POISSON: lambda arguments: count_draw(POISSON, arguments),
    GEOMETRIC: lambda arguments: count_draw(GEOMETRIC, arguments),
}


def substitute(expression: Expression, values: Mapping[str, Expression]) -> Expression:
    """The expression with some fluents replaced by others or by numbers, folded again.

    Cost: the nodes above a replaced fluent, each once.
    """
    replaced = frozenset(values)
    done: dict[int, Expression] = {}

    def visit(node: Expression) -> Expression:
        if replaced.isdisjoint(node.fluents):
            return node
        found = done.get(id(node))
        if found is None:
            found = done[id(node)] = rebuild(node)
        return found

    def rebuild(node: Expression) -> Expression:
        if node.operator == FLUENT:
            return values[node.name]
        if node.operator == "if":
            condition = visit(node.arguments[0])
            if condition.is_constant:
                return visit(node.arguments[1 if condition.value else 2])
        if node.operator in ("and", "or", "*"):
            return _BUILDERS[node.operator](map(visit, node.arguments))  # type: ignore[arg-type]
        arguments = [visit(argument) for argument in node.arguments]
        build = _BUILDERS.get(node.operator)
        return build(arguments) if build else apply(node.operator, arguments)

    return visit(expression)


MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
"""The comparison that holds with the two sides exchanged."""

NEGATED = {"==": "~=", "~=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def opposite(expression: Expression) -> Expression:
    """Not, with the negation moved down to comparisons and fluents."""
    operator, arguments = expression.operator, expression.arguments
    if operator == "not":
        return arguments[0]
    if operator == AND:
        return disjunction(map(opposite, arguments))
    if operator == "or":
        return conjunction(map(opposite, arguments))
    if operator in NEGATED and not expression.random:
        return combine(NEGATED[operator], arguments)
    return negation(expression)


MOST_CLAUSES = 256
"""Conditions that one disjunction of conjunctions is written out as, at most."""


def conjuncts(expression: Expression, boolean: Container[str] = NOTHING) -> list[Expression]:
    """Conditions that hold together exactly if a formula without draws does.

    Negations are moved down, and a disjunction of conjunctions is written out while that gives
    few conditions, since each of them looks at less: a => (b and c) is a => b and a => c. A sum
    of `boolean` fluents that must be 0 is a condition for each of them.
    """
    operator, arguments = expression.operator, expression.arguments
    if expression.is_constant:
        return [] if expression.value else [FALSE]
    if operator == AND:
        return [one for argument in arguments for one in conjuncts(argument, boolean)]
    if operator == "not" and arguments[0].operator in (AND, "or", "not", *NEGATED):
        return conjuncts(opposite(arguments[0]), boolean)
    if operator == "==" and any(argument.operator == "+" for argument in arguments):
        both = (combine("<=", arguments), combine(">=", arguments))
        return [one for part in both for one in conjuncts(part, boolean)]
    if operator in NEGATED and _is_count(arguments[0], boolean) and arguments[1].is_constant:
        counted, bound = _flat("+", [arguments[0]]), arguments[1].value
        if (operator == "<=" and 0 <= bound < 1) or (operator == "<" and 0 < bound <= 1):
            return [negation(one) for one in counted]
        if (operator == ">=" and bound <= 0) or (operator == ">" and bound < 0):
            return []
    if operator != "or":
        return [expression]
    clauses = [conjuncts(argument, boolean) for argument in arguments]
    count = math.prod(map(len, clauses))
    if count > MOST_CLAUSES or count == 1:
        return (
            [disjunction(conjunction(clause) for clause in clauses)] if count == 1 else [expression]
        )
    found = [disjunction(chosen) for chosen in tuples(*clauses)]
    return [one for one in found if not one.is_value(True)]


def _is_count(part: Expression, boolean: Container[str]) -> bool:
    """Whether a part is a sum of boolean fluents."""
    return all(one.operator == FLUENT and one.name in boolean for one in _flat("+", [part]))


def disjuncts(expression: Expression) -> list[Expression]:
    """Conditions of which some holds exactly if a formula without draws does."""
    return [opposite(one) for one in conjuncts(opposite(expression))]
