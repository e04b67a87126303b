"""The kind of every part of a formula: truth values, numbers, or objects of a type.

A formula that passes looks at variables that are bound, at fluents with arguments of the right
types, and applies every operator to what it is for, as pyRDDLGym's simulator demands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from fsmdp.foundation.checks import clip, plural, show, show_names
from fsmdp.interop.rddl.errors import InvalidError, UnsupportedError, located
from fsmdp.interop.rddl.expressions import FUNCTIONS
from fsmdp.interop.rddl.sources import Source
from fsmdp.interop.rddl.values import PRIMITIVE, check_number

BOOL, NUMBER = "bool", "int or real"  # no type can be called so

Scope = Mapping[str, str]
"""The type of each variable that is bound."""

BINARY = frozenset(("div", "mod", "fmod", "min", "max", "pow", "log", "hypot"))
_ARGUMENTS = {"KronDelta": 1, "DiracDelta": 1, "Bernoulli": 1, "Binomial": 2}


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
            f"it draws from {name}, which has infinitely many values or is not known here; use "
            "Bernoulli or Discrete."
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
