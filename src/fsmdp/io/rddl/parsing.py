"""The text of a problem as pyRDDLGym's lifted model, parsed quietly and without leaving files."""

from __future__ import annotations

import io
import logging
import math
import re
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from functools import cache, partial
from typing import Any

from fsmdp.errors import FsmdpError, ModelError
from fsmdp.foundation.checks import clip, is_number, is_whole, plural, show, show_count, show_names
from fsmdp.io.rddl.expressions import FUNCTIONS
from fsmdp.io.rddl.sources import (
    INSTALL,
    InvalidError,
    Source,
    TooLargeError,
    UnsupportedError,
    located,
)

MOST_TOKENS = 2**19
MOST_GROUNDINGS = 2**21
MOST_FLUENTS = 2**15
MOST_PARTS = 800_000
"""Ground parts of formulas; the largest problem of the competitions has 773,202."""

_TOKEN = re.compile(r"[\w'@?-]+|[^\w\s]")


def check_length(source: Source) -> None:
    """Refuse a text that takes long to parse. Cost: the text, at the speed of a search in it."""
    for file, text in zip(source.files, source.texts, strict=True):
        tokens = sum(1 for _ in _TOKEN.finditer(text))
        if tokens > MOST_TOKENS:
            raise TooLargeError(
                f"{file} has {show_count(tokens)} words and signs (limit {MOST_TOKENS}); use "
                "fewer objects or values."
            )


def check_groundings(tree: Any) -> None:
    """Refuse a problem with too many ground fluents, or constants."""
    counts = _object_counts(tree)
    sizes = {
        variable: math.prod(counts.get(one, 1) for one in variable.param_types or ())
        for variable in tree.domain.pvariables
    }
    changing = {variable: size for variable, size in sizes.items() if not variable.is_non_fluent()}
    if any(variable.is_state_fluent() and variable.range == "real" for variable in sizes):
        changing = {}  # continuous, and soon refused for that
    for what, found, limit in (
        ("fluents and constants", sizes, MOST_GROUNDINGS),
        ("fluents", changing, MOST_FLUENTS),
    ):
        total = sum(found.values())
        if total > limit:
            largest = max(found, key=found.__getitem__)
            raise TooLargeError(
                f"its {what} have {show_count(total)} ground instances (limit {limit}), of which "
                f"{largest.name} has {show_count(found[largest])}; use fewer objects, or fewer "
                "arguments."
            )


def _object_counts(tree: Any) -> dict[str, int]:
    objects = dict(one for one in tree.non_fluents.objects or () if one is not None)
    return {
        name: len(objects.get(name, ())) if values == "object" else len(values)
        for name, values in tree.domain.types
    }


def check_expansion(model: Any) -> None:
    """Refuse formulas with too many ground parts, each once for all objects that it speaks of."""
    counts = {name: len(objects) for name, objects in model.type_to_objects.items()}
    formulas = [
        *(
            (f"the formula of {name}", node, dict(given))
            for name, (given, node) in model.cpfs.items()
        ),
        ("the reward", model.reward, {}),
        *(("a precondition", node, {}) for node in model.preconditions),
        *(("a constraint", node, {}) for node in model.ast.domain.constraints),
    ]
    total, largest = 0, (0, "")
    for where, node, types in formulas:
        parts = _parts(node, types, counts)[0]
        total, largest = total + parts, max(largest, (parts, where))
    if total > MOST_PARTS:
        raise TooLargeError(
            f"its formulas have {show_count(total)} ground parts (limit {MOST_PARTS}), most of "
            f"them {largest[1]} ({show_count(largest[0])}); use fewer objects, or sums over fewer "
            "of them."
        )


def _parts(
    node: Any, types: Mapping[str, str], counts: Mapping[str, int]
) -> tuple[int, frozenset[str]]:
    """Ground parts of a formula, and the variables that it leaves free."""
    if isinstance(node, str):
        return 0, frozenset((node,) if node.startswith("?") else ())
    if isinstance(node, list | tuple):
        bound = {one[1][0]: one[1][1] for one in node if is_typed(one)}
        inner = {**types, **bound}
        total, free, names = 0, frozenset[str](), frozenset[str]()
        for one in node:
            if not is_typed(one):
                parts, names = _parts(one, inner, counts)
                total, free = total + parts, free | names
        if bound:  # the body comes once for each list of objects, also if it looks at few of them
            total += math.prod(counts[inner[name]] for name in names | bound.keys())
            total -= math.prod(counts[inner[name]] for name in names)
        return total, free - bound.keys()
    if not hasattr(node, "etype"):
        return 0, frozenset()
    total, free = (
        (0, frozenset[str]()) if node.etype[0] == "constant" else _parts(node.args, types, counts)
    )
    return total + math.prod(counts[types[name]] for name in free), free


def is_typed(part: Any) -> bool:
    """Whether a part of a formula says of which type a variable is."""
    return isinstance(part, tuple) and part[:1] == ("typed_var",)


BOOL, NUMBER = "bool", "int or real"  # no type can be called so

Scope = Mapping[str, str]
"""The type of each variable that is bound."""

BINARY = frozenset(("div", "mod", "fmod", "min", "max", "pow", "log", "hypot"))
_ARGUMENTS = {
    "KronDelta": 1,
    "DiracDelta": 1,
    "Bernoulli": 1,
    "Binomial": 2,
    "Poisson": 1,
    "Geometric": 1,
}


def check_formulas(model: Any, source: Source) -> None:
    """Check every formula of a problem; an InvalidError says which one, and what is wrong in it."""
    kinds = Kinds(model)
    for name, (parameters, node) in model.cpfs.items():
        with located(partial(_formula, source, name, f"the formula of {name}")):
            names = [parameter for parameter, _ in parameters]
            if len(set(names)) < len(names):
                raise InvalidError(f"its parameters {show_names(names)} repeat one; rename it.")
            wanted = model.variable_ranges[name]
            kinds.expect(node, dict(parameters), NUMBER if wanted in ("int", "real") else wanted)
    with located(partial(_formula, source, "reward", "the reward")):
        kinds.kind(model.reward, {})  # of an object, its position is taken
    for where, nodes in (
        ("a precondition", model.preconditions),
        ("a state invariant", model.invariants),
        ("a termination condition", model.terminations),
        ("a state-action constraint", model.ast.domain.constraints),
    ):
        for node in nodes:
            with located(where):
                kinds.expect(node, {}, BOOL)


def _formula(source: Source, name: str, what: str) -> str:
    return f"{source.definition(name)}: {what}"


class Kinds:
    """Works out the kinds of parts; raises where one does not fit another."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def expect(self, node: Any, scope: Scope, wanted: str) -> str:
        """The kind of a part, which must be the one wanted; truth values count as numbers."""
        found = self.kind(node, scope)
        if found != wanted and not (found == BOOL and wanted == NUMBER):
            raise InvalidError(
                f"{_text(node)} is {_named(found)}; expected {_named(wanted)}, correct it."
            )
        return found

    def kind(self, node: Any, scope: Scope) -> str:
        """BOOL, NUMBER, or the type whose objects a part stands for."""
        kind, operator = node.etype
        arguments = node.args
        if kind == "constant":
            if not isinstance(arguments, bool):
                check_number(arguments, "a number")
            return BOOL if isinstance(arguments, bool) else NUMBER
        if kind == "pvar":
            name, given = arguments
            return self._fluent(name, given or (), scope)
        if kind == "arithmetic":
            return self._all(arguments, scope, NUMBER, NUMBER)
        if kind == "boolean":
            return self._all(arguments, scope, BOOL, BOOL)
        if kind == "relational":
            return self._comparison(operator, arguments, scope)
        if kind == "aggregation":
            return self._aggregation(operator, arguments, scope)
        if kind == "control":
            choose = self._condition if operator == "if" else self._switch
            return choose(arguments, scope)
        if kind == "randomvar":
            return self._distribution(node, operator, arguments, scope)
        if kind == "func" and operator in FUNCTIONS:
            _count(node, arguments, 2 if operator in BINARY else 1)
            return self._all(arguments, scope, NUMBER, NUMBER)
        raise UnsupportedError(
            f"it uses {node[0] if kind == 'UNKOWN' else operator}, which the importer does not "
            "know; rewrite the formula."
        )

    def _all(self, nodes: Sequence[Any], scope: Scope, wanted: str, result: str) -> str:
        for node in nodes:
            self.expect(node, scope, wanted)
        return result

    def _alike(self, nodes: Sequence[Any], scope: Scope, what: str) -> str:
        """The one kind of several parts; truth values among numbers are numbers."""
        kinds = list(dict.fromkeys(self.kind(node, scope) for node in nodes))
        if set(kinds) == {BOOL, NUMBER}:
            return NUMBER
        if len(kinds) > 1:
            raise InvalidError(
                f"{what} {_text(nodes[0])} and {_text(nodes[-1])}, which are "
                f"{' and '.join(map(_named, kinds))}; expected parts of one kind, correct them."
            )
        return kinds[0]

    def _comparison(self, operator: str, nodes: Sequence[Any], scope: Scope) -> str:
        kind = self._alike(nodes, scope, f"{operator} compares")
        if kind not in (BOOL, NUMBER) and operator not in ("==", "~="):
            raise InvalidError(
                f"{operator} compares {_named(kind)}, {_text(nodes[0])}; objects have no order, "
                "use == or ~=."
            )
        return BOOL

    def _aggregation(self, operator: str, arguments: Sequence[Any], scope: Scope) -> str:
        *typed, body = arguments
        inner = self._bound(typed, scope)
        if operator in ("forall", "exists"):
            return self.expect(body, inner, BOOL)
        self.expect(body, inner, NUMBER)
        if operator not in ("argmin", "argmax"):
            return NUMBER
        if len(typed) != 1:
            raise InvalidError(
                f"{operator} is over {plural(len(typed), 'variable')}; expected one."
            )
        return str(typed[0][1][1])

    def _bound(self, typed: Sequence[Any], scope: Scope) -> Scope:
        inner = dict(scope)
        for _, (name, type_name) in typed:
            if type_name not in self.model.type_to_objects:
                raise InvalidError(
                    f"{name} : {type_name} is of a type that is not declared; expected one of "
                    f"{show_names(self.model.type_to_objects)}."
                )
            if name in inner:
                raise InvalidError(f"{name} is bound twice; rename one of the two.")
            inner[name] = type_name
        return inner

    def _condition(self, arguments: Sequence[Any], scope: Scope) -> str:
        self.expect(arguments[0], scope, BOOL)
        return self._alike(arguments[1:], scope, "if chooses between")

    def _switch(self, arguments: Sequence[Any], scope: Scope) -> str:
        chosen, *cases = arguments
        kind = self.kind(chosen, scope)
        labels = [self._label(pair[0]) for name, pair in cases if name == "case"]
        if kind in (BOOL, NUMBER):
            raise InvalidError(
                f"switch looks at {_text(chosen)}, which is {_named(kind)}; expected a fluent "
                "of an enumerated type, use if."
            )
        whole = any(name == "default" for name, _ in cases)
        self._check_labels("a switch", labels, kind, whole)
        bodies = [pair[1] if name == "case" else pair for name, pair in cases]
        return self._alike(bodies, scope, "switch chooses between")

    def _distribution(self, node: Any, name: str, arguments: Sequence[Any], scope: Scope) -> str:
        if name in _ARGUMENTS:
            _count(node, arguments, _ARGUMENTS[name])
            if name in ("KronDelta", "DiracDelta"):
                return self.kind(arguments[0], scope)
            self._all(arguments, scope, NUMBER, NUMBER)
            return BOOL if name == "Bernoulli" else NUMBER
        if name in ("Discrete", "UnnormDiscrete"):
            type_name = arguments[0][1]
            self._bound([("typed_var", ("?", type_name))], {})
            cases = [pair for _, pair in arguments[1:]]
            self._check_labels(f"a {name}", [self._label(label) for label, _ in cases], type_name)
            for label, part in cases:
                if isinstance(part, str):
                    raise UnsupportedError(f"a {name} gives {label} what is left; give a number.")
                self.expect(part, scope, NUMBER)
            return str(type_name)
        if name in ("Discrete(p)", "UnnormDiscrete(p)"):
            *typed, bodies = arguments
            inner = self._bound(typed, scope)
            if len(typed) != 1:
                raise InvalidError(f"{name} is over {len(typed)} variables; expected one.")
            self._all(bodies, inner, NUMBER, NUMBER)
            return str(typed[0][1][1])
        raise UnsupportedError(
            f"it draws from {name}, which is continuous or not known here; use Bernoulli or "
            "Discrete."
        )

    def _label(self, label: Any) -> str:
        name = label if isinstance(label, str) else label.args[0]
        return str(name).removeprefix("@")

    def _check_labels(
        self, what: str, labels: Sequence[str], type_name: str, whole: bool = False
    ) -> None:
        objects = self.model.type_to_objects[type_name]
        for label in labels:
            if label not in objects:
                raise InvalidError(
                    f"{what} has a case for {show(label)}; expected objects of the type "
                    f"{type_name} ({show_names(objects)})."
                )
            if labels.count(label) > 1:
                raise InvalidError(f"{what} has two cases for {label}; remove one.")
        if not whole and len(labels) < len(objects):
            missing = [one for one in objects if one not in labels]
            raise InvalidError(
                f"{what} has no case for {show_names(missing)}; expected one for every object of "
                f"the type {type_name}."
            )

    def _fluent(self, name: str, arguments: Sequence[Any], scope: Scope) -> str:
        model = self.model
        if name.startswith("?"):
            return self._variable(name, scope)
        if name.startswith("@") or (not arguments and name in model.object_to_type):
            if not name.startswith("@") and model.variable_params.get(name) == []:
                raise InvalidError(f"{name} is an object and a fluent as well; rename one of them.")
            return self._object(name)
        if name not in model.variable_types:
            raise InvalidError(f"{name} is not declared; declare it, or correct its name.")
        types = model.variable_params[name]
        if len(arguments) != len(types):
            raise InvalidError(
                f"{name} has {plural(len(arguments), 'argument')}; expected {len(types)} "
                f"({', '.join(types) or 'none'})."
            )
        for position, (argument, wanted) in enumerate(zip(arguments, types, strict=True), 1):
            found = self._argument(argument, scope)
            if found != wanted:
                raise InvalidError(
                    f"argument {position} of {name}, {_text(argument)}, is {_named(found)}; "
                    f"expected {_named(wanted)}."
                )
        range_name = model.variable_ranges[name]
        return str(range_name) if range_name not in PRIMITIVE[1:] else NUMBER

    def _argument(self, argument: Any, scope: Scope) -> str:
        if not isinstance(argument, str):
            return self.kind(argument, scope)
        if argument.startswith("?"):
            return self._variable(argument, scope)
        return self._object(argument)

    def _variable(self, name: str, scope: Scope) -> str:
        if name not in scope:
            raise InvalidError(
                f"the variable {name} is not bound; expected one of {show_names(scope)}, or a sum, "
                "forall or exists around it that binds it."
            )
        return scope[name]

    def _object(self, name: str) -> str:
        found = self.model.object_to_type.get(name.removeprefix("@"))
        if found is None:
            raise InvalidError(
                f"{clip(str(name))} is not an object of any type; declare it, or correct its name."
            )
        return str(found)


def _count(node: Any, arguments: Sequence[Any], wanted: int) -> None:
    if len(arguments) != wanted:
        raise InvalidError(
            f"{_text(node)} has {plural(len(arguments), 'argument')}; expected {wanted}."
        )


def _named(kind: str) -> str:
    named = {BOOL: "a truth value", NUMBER: "a number"}
    return named.get(kind, f"an object of the type {kind}")


def _text(node: Any) -> str:
    """A part of a formula as it was written, about."""
    from pyRDDLGym.core.debug.decompiler import RDDLDecompiler

    text = node if isinstance(node, str) else RDDLDecompiler().decompile_expr(node)
    return clip(" ".join(str(text).split()))


PRIMITIVE = ("bool", "int", "real")
LARGEST_NUMBER = 2**53
"""Whole numbers up to here are exact as floating-point numbers."""


def check_declarations(model: Any) -> None:
    """Ranges are types, types have objects, and values given to fluents are of their range."""
    for name, objects in model.type_to_objects.items():
        if not objects:
            raise InvalidError(f"the type {name} has no objects; expected at least one, add some.")
    for name, range_name in model.variable_ranges.items():
        kind = model.variable_types[name]
        if kind != "next-state-fluent" and name.endswith("'"):
            raise InvalidError(f"the {kind} {name} is declared with a prime; remove the prime.")
        if range_name not in PRIMITIVE and range_name not in model.type_to_objects:
            raise InvalidError(
                f"the {kind} {name} has the range {show(range_name)}; expected bool, int, real or "
                f"a type ({show_names(model.type_to_objects)})."
            )
    for section, given in (
        ("init-state", model.state_fluents),
        ("non-fluents", model.non_fluents),
        ("default", _defaults(model)),
    ):
        for name, values in given.items():
            for value in values if isinstance(values, list) else [values]:
                _check_value(model, name, value, section)


def _defaults(model: Any) -> Mapping[str, Any]:
    return {name: value for name, value in model.variable_defaults.items() if value is not None}


def _check_value(model: Any, name: str, value: Any, section: str) -> None:
    range_name = model.variable_ranges[name]
    if range_name == "bool":
        fits, expected = isinstance(value, bool), "true or false"
    elif range_name == "int":
        fits, expected = is_whole(value) or isinstance(value, bool), "a whole number"
    elif range_name == "real":
        fits, expected = is_number(value) or isinstance(value, bool), "a number"
    else:
        objects = model.type_to_objects[range_name]
        fits = isinstance(value, str) and value in objects
        expected = f"one of {show_names(objects)}"
    if not fits:
        raise InvalidError(
            f"{section}: {name} is {show(value)}; expected {expected}, its range is {range_name}."
        )
    if not isinstance(value, str):
        check_number(value, f"{section}: {name}")


def check_number(value: bool | int | float, where: str) -> None:
    """Refuse a number that is not finite, or a whole one too large to be exact."""
    exact = abs(value) <= LARGEST_NUMBER if isinstance(value, int) else math.isfinite(value)
    if not exact:
        raise InvalidError(
            f"{where} is {show(value)}; expected a finite number, and a whole one of at most 2^53; "
            "correct it."
        )


_ASSOCIATIVE = ("+", "*", "^", "&", "|")


def balance(tree: Any) -> None:
    """Unwrap every formula of a parsed problem, and make its chains balanced trees.

    a + b - c + d becomes (a + b) + ((-c) + d). Cost: the nodes, each once.
    """
    waiting = list(formulas(tree))
    while waiting:
        node = waiting.pop()
        if isinstance(node, list | tuple):
            waiting += [one for one in node if not isinstance(one, str)]
        elif hasattr(node, "_expr"):
            _unwrap(node)
            if node.etype[0] != "constant":
                _shorten(node)
                waiting.append(node.args)


def formulas(tree: Any) -> Iterator[Any]:
    """Every formula of a parsed problem."""
    domain = tree.domain
    yield from (definition.expr for definition in domain.cpfs[1])
    yield domain.reward
    for section in (domain.preconds, domain.terminals, domain.invariants, domain.constraints):
        yield from section


def _unwrap(node: Any) -> None:
    inner = node._expr
    while hasattr(inner, "_expr"):
        inner = inner._expr
    node._expr = inner


def _shorten(node: Any) -> None:
    operator = node._expr[0]
    if operator not in (*_ASSOCIATIVE, "-") or len(node._expr[1]) != 2:
        return
    additive = operator in ("+", "-")
    make, parts = type(node), []
    waiting = [(node, False)]
    while waiting:
        part, negative = waiting.pop()
        _unwrap(part)
        inner = part._expr[0]
        same = inner in ("+", "-") if additive else inner == operator
        if same and len(part._expr[1]) == 2:
            left, right = part._expr[1]
            waiting += [(right, negative ^ (inner == "-")), (left, negative)]
        else:
            parts.append(make(("-", (part,))) if negative else part)
    if len(parts) == 2:
        return
    joiner = "+" if additive else operator
    while len(parts) > 2:
        pairs = [
            make((joiner, (one, other)))
            for one, other in zip(parts[::2], parts[1::2], strict=False)
        ]
        parts = [*pairs, *parts[len(pairs) * 2 :]]
    node._expr = (joiner, tuple(parts))


SECTIONS = {
    "domain": "a domain { ... } block",
    "instance": "an instance { ... } block",
    "non_fluents": "a non-fluents { ... } block",
    "pvariables": "the section pvariables { ... }; in the domain",
    "cpfs": "the section cpfs { ... }; in the domain",
    "reward": "the section reward = ...; in the domain",
    "objects": "the section objects { ... }; in the instance",
}

_one_at_a_time = threading.Lock()


def parse(source: Source) -> tuple[Any, tuple[str, ...]]:
    """The lifted model of a problem (types, fluents with their values, formulas), and notes.

    The text and what it declares are checked beyond what pyRDDLGym checks; sizes are estimated
    before anything of that size is made. What is wrong is an InvalidError, and what pyRDDLGym
    warns about or prints is a note.
    """
    check_length(source)
    said: list[str] = []
    tree = _tree(source, said)
    balance(tree)
    check_groundings(tree)
    with pyrddlgym(source, said):
        from pyRDDLGym.core.compiler.model import RDDLLiftedModel

        model = RDDLLiftedModel(tree)
    check_declarations(model)
    return model, tuple(f"pyRDDLGym: {_plain(line)}" for line in dict.fromkeys(said))


def check_meaning(model: Any, source: Source) -> None:
    """Refuse formulas that make no sense, would be huge, or look at what they must not."""
    check_formulas(model, source)
    check_expansion(model)
    with pyrddlgym(source, []):
        from pyRDDLGym.core.compiler.levels import RDDLLevelAnalysis

        RDDLLevelAnalysis(model).build_call_graph()


def _tree(source: Source, said: list[str]) -> Any:
    parser = _parser()
    with _one_at_a_time, pyrddlgym(source, said):
        parser.source = source
        parser.lexer.source = source
        parser.lexer._lexer.lineno = 1
        tree = parser.parse(source.text)
    for section in ("horizon", "discount"):
        if not hasattr(tree.instance, section):
            raise InvalidError(
                f"{source.files[-1]}: no {section} is given; expected {section} = ...; in the "
                "instance block."
            )
    return tree


@contextmanager
def pyrddlgym(source: Source, said: list[str]) -> Iterator[None]:
    """Quietly; whatever pyRDDLGym raises, bare and of many kinds, becomes one of our errors."""
    files = " and ".join(dict.fromkeys(source.files))
    output = io.StringIO()
    try:
        with redirect_stdout(output), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
    except (FsmdpError, RecursionError, MemoryError):
        raise
    except NotImplementedError as error:
        raise UnsupportedError(f"pyRDDLGym does not support it: {_plain(error)}") from None
    except KeyError as error:
        missing = SECTIONS.get(str(error.args[0]), f"{show(error.args[0])}")
        raise InvalidError(f"{files}: expected {missing}, found none; add it.") from None
    except Exception as error:
        raise InvalidError(
            f"{files}: pyRDDLGym refuses it: {_plain(error)}; correct the files."
        ) from None
    said += [*output.getvalue().splitlines(), *(str(warning.message) for warning in caught)]


@cache
def _parser() -> Any:
    """One parser for all problems: making its tables takes far longer than parsing."""
    try:
        from pyRDDLGym.core.parser.parser import RDDLlex, RDDLParser
    except ImportError as error:
        raise ModelError(
            f"reading RDDL needs the package pyRDDLGym, which cannot be imported ({error}); "
            f"install it with {INSTALL}."
        ) from None

    class Lexer(RDDLlex):  # type: ignore[misc]
        """pyRDDLGym's, which would leave out characters that it does not know."""

        source: Source

        def t_error(self, token: Any) -> None:
            raise InvalidError(
                f"{self.source.place(token.lexpos)}: {show(token.value[0])} is not a character of "
                "RDDL; remove it, or put it into a comment."
            )

    class Parser(RDDLParser):  # type: ignore[misc]
        """pyRDDLGym's, which does not say in which file and column an error is."""

        source: Source

        def p_error(self, token: Any) -> None:
            if token is None:
                place, found = self.source.place(len(self.source.text) - 2), "the end of the text"
            else:
                place, found = self.source.place(token.lexpos), show(token.value)
            raise InvalidError(
                f"{place}: {found} cannot stand here; correct the text there or just before "
                "(a bracket or a semicolon may be missing)."
            )

    parser = Parser(lexer=None, verbose=False)
    parser.lexer = Lexer()
    quiet = logging.Logger("rddl", logging.CRITICAL)
    parser.lexer.build(errorlog=quiet)
    parser.build(debug=False, write_tables=False, errorlog=quiet)
    return parser


def _plain(said: Exception | str) -> str:
    """A message without colours, on one line."""
    text = " ".join(re.sub(r"\x1b\[[0-9;]*m", "", str(said)).split()) or type(said).__name__
    return text if len(text) <= 300 else text[:297] + "..."
