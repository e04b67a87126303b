"""Lifted formulas to ground expressions, folded while they are expanded.

Constants of the instance, comparisons of objects and short circuits are worked out at once, so
that an `exists` over all pairs of cells costs little more than the pairs that are adjacent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product as tuples
from typing import Any

from fsmdp.io.rddl import expressions as make
from fsmdp.io.rddl.distributions import MOST_TRIALS
from fsmdp.io.rddl.expressions import Expression
from fsmdp.io.rddl.parsing import is_typed
from fsmdp.io.rddl.sources import UnsupportedError

Binding = Mapping[str, int]
"""The object, by position in its type, that each variable of a formula stands for."""

_REDUCTIONS = {
    "sum": make.total,
    "prod": make.product,
    "forall": make.conjunction,
    "exists": make.disjunction,
}
_JUNCTIONS = {
    "^": make.conjunction,
    "&": make.conjunction,
    "|": make.disjunction,
    "*": make.product,
}


def ground_name(name: str, objects: Sequence[str]) -> str:
    """How a ground fluent is called: running(c1)."""
    return f"{name}({','.join(objects)})" if objects else name


class Grounder:
    """Expands the formulas of one problem, whose kinds are checked; equal parts are expanded once.

    Intermediate fluents that are not random are replaced by their formulas. Those that are become
    `drawn`: names to look up there, drawn once in a step however many formulas use them.
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        self.drawn: dict[str, Expression] = {}
        self.ranges: dict[str, str] = {}
        self._intermediate: dict[str, Expression | None] = {}
        self._fluents: dict[str, Expression] = {}
        self._free: dict[int, tuple[str, ...]] = {}
        self._ordered: dict[int, list[Any]] = {}
        self._known: dict[tuple[int, ...], Expression] = {}
        self._constants = {
            name: values if isinstance(values, list) else [values]
            for name, values in model.non_fluents.items()
        }

    def objects(self, type_name: str) -> Sequence[str]:
        """The objects of a type, in order."""
        found: Sequence[str] = self.model.type_to_objects[type_name]
        return found

    def instances(self, name: str) -> Iterator[tuple[int, ...]]:
        """Every list of arguments of a fluent, as positions of objects."""
        types = self.model.variable_params[name]
        return tuples(*(range(len(self.objects(type_name))) for type_name in types))

    def label(self, name: str, arguments: Sequence[int]) -> str:
        """The name of a ground fluent."""
        types = self.model.variable_params[name]
        objects = [self.objects(kind)[at] for kind, at in zip(types, arguments, strict=True)]
        return ground_name(name, objects)

    def formula(self, name: str, arguments: Sequence[int]) -> Expression:
        """The formula that defines a ground fluent."""
        parameters, node = self.model.cpfs[name]
        names = [parameter for parameter, _ in parameters]
        return self.ground(node, dict(zip(names, arguments, strict=True)))

    def ground(self, node: Any, binding: Binding) -> Expression:
        """A formula with objects in place of its variables. Cost: each distinct part once."""
        key = (id(node), *(binding[name] for name in self._free_variables(node)))
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._ground(node, binding)
        return found

    def _ground(self, node: Any, binding: Binding) -> Expression:
        kind, operator = node.etype
        arguments = node.args
        if kind == "constant":
            return make.constant(arguments)
        if kind == "pvar":
            return self._pvariable(node, binding)
        if kind in ("arithmetic", "boolean"):
            return self._operation(node, operator, binding)
        if kind == "relational":
            return make.apply(operator, [self.ground(one, binding) for one in arguments])
        if kind == "aggregation":
            return self._aggregation(operator, arguments, binding)
        if kind == "control":
            return self._control(operator, arguments, binding)
        if kind == "randomvar":
            return self._distribution(operator, arguments, binding)
        if kind == "func" and operator in make.FUNCTIONS:
            return make.apply(operator, [self.ground(one, binding) for one in arguments])
        raise UnsupportedError(
            f"it uses {kind} {operator}, which the importer does not know; rewrite the formula."
        )

    def _operation(self, node: Any, operator: str, binding: Binding) -> Expression:
        arguments = node.args
        if operator in _JUNCTIONS:
            parts = self._cheap_first(node, operator)
            return _JUNCTIONS[operator](self.ground(part, binding) for part in parts)
        if operator == "=>":
            refuted = make.negation(self.ground(arguments[0], binding))
            if refuted.is_value(True):
                return refuted
            return make.disjunction([refuted, self.ground(arguments[1], binding)])
        parts = [self.ground(part, binding) for part in arguments]
        if operator == "~" and len(parts) == 1:
            return make.negation(parts[0])
        if operator == "<=>":
            return make.equivalence(*parts)
        if operator == "+":
            return make.total(parts)
        if operator == "-" and len(parts) == 1:
            return make.product([make.constant(-1), parts[0]])
        if operator == "-":
            return make.difference(*parts)
        if operator == "/":
            return make.quotient(*parts)
        raise UnsupportedError(f"it uses the operator {operator} with {len(parts)} arguments.")

    def _cheap_first(self, node: Any, operator: str) -> list[Any]:
        """The arguments of nested operators of one kind, those without fluents first."""
        if id(node) not in self._ordered:
            parts: list[Any] = []
            waiting = list(node.args)
            while waiting:
                part = waiting.pop(0)
                if part.etype[1] == operator and part.etype[0] in ("boolean", "arithmetic"):
                    waiting[:0] = part.args
                else:
                    parts.append(part)
            parts.sort(key=lambda part: not self.model.is_non_fluent_expression(part))
            self._ordered[id(node)] = parts
        return self._ordered[id(node)]

    def _aggregation(self, operator: str, arguments: Any, binding: Binding) -> Expression:
        *typed, body = arguments
        parts = (self.ground(body, inner) for inner in self._extended(typed, binding))
        if operator in _REDUCTIONS:
            return _REDUCTIONS[operator](parts)
        listed = list(parts)
        if operator == "avg":
            return make.quotient(make.total(listed), make.constant(len(listed)))
        return make.apply(operator, listed)

    def _extended(self, typed: Sequence[Any], binding: Binding) -> Iterator[Binding]:
        names = [name for _, (name, _) in typed]
        counts = [range(len(self.objects(type_name))) for _, (_, type_name) in typed]
        for positions in tuples(*counts):
            yield {**binding, **dict(zip(names, positions, strict=True))}

    def _control(self, operator: str, arguments: Any, binding: Binding) -> Expression:
        chosen = self.ground(arguments[0], binding)
        if operator == "if":
            if chosen.is_constant:
                return self.ground(arguments[1 if chosen.value else 2], binding)
            then, otherwise = (self.ground(one, binding) for one in arguments[1:])
            return make.choice(chosen, then, otherwise)
        cases = [pair for kind, pair in arguments[1:] if kind == "case"]
        default = next((part for kind, part in arguments[1:] if kind == "default"), None)
        by_position = {self._object(label): part for label, part in cases}
        if not cases:
            return self.ground(default, binding)
        first = self._object_name(cases[0][0])
        count = len(self.objects(self.model.object_to_type[first]))
        listed = [by_position.get(position, default) for position in range(count)]
        return make.selection(chosen, [self.ground(part, binding) for part in listed])

    def _distribution(self, name: str, arguments: Any, binding: Binding) -> Expression:
        if name in ("KronDelta", "DiracDelta"):
            return self.ground(arguments[0], binding)
        if name == "Bernoulli":
            return make.bernoulli(self.ground(arguments[0], binding))
        if name in ("Discrete", "UnnormDiscrete"):
            weights = {self._object(label): part for _, (label, part) in arguments[1:]}
            listed = [weights[at] for at in range(len(self.objects(arguments[0][1])))]
            return make.discrete([self.ground(part, binding) for part in listed], name)
        if name in ("Discrete(p)", "UnnormDiscrete(p)") and len(arguments) == 2:
            typed, (body,) = arguments
            inners = self._extended([typed], binding)
            return make.discrete(
                [self.ground(body, inner) for inner in inners], name.removesuffix("(p)")
            )
        if name == make.BINOMIAL:
            trials = self.ground(arguments[0], binding)
            success = self.ground(arguments[1], binding)
            if trials.is_constant and trials.value in range(MOST_TRIALS + 1):
                return make.total([make.bernoulli(success)] * int(trials.value))
            return make.count_draw(name, [trials, success])
        if name in make.ENDLESS:
            return make.count_draw(name, [self.ground(arguments[0], binding)])
        raise UnsupportedError(f"it draws from {name}, which the importer does not know.")

    def _pvariable(self, node: Any, binding: Binding) -> Expression:
        name, arguments = node.args
        if name.startswith("?"):
            return make.constant(binding[name])
        if name.startswith("@") or (not arguments and self.model.is_object(name)):
            return make.constant(self._object(name))
        return self._at(name, [self._argument(argument, binding) for argument in arguments or ()])

    def _argument(self, argument: Any, binding: Binding) -> Expression:
        if not isinstance(argument, str):
            return self.ground(argument, binding)
        return make.constant(
            binding[argument] if argument.startswith("?") else self._object(argument)
        )

    def _at(self, name: str, positions: Sequence[Expression]) -> Expression:
        """A fluent at arguments, which may themselves be values of fluents."""
        for axis, position in enumerate(positions):
            if not position.is_constant:
                count = len(self.objects(self.model.variable_params[name][axis]))
                before, after = positions[:axis], positions[axis + 1 :]
                return make.selection(
                    position,
                    [self._at(name, [*before, make.constant(at), *after]) for at in range(count)],
                )
        return self._fluent(name, [int(position.value) for position in positions])

    def _fluent(self, name: str, arguments: Sequence[int]) -> Expression:
        kind = self.model.variable_types[name]
        if kind == "non-fluent":
            return make.constant(self._constant(name, arguments))
        if kind == "next-state-fluent":
            return self._named(self.label(name.removesuffix("'"), arguments) + "'")
        if kind in ("interm-fluent", "derived-fluent"):
            return self._defined(name, arguments)
        if kind in ("state-fluent", "action-fluent"):
            return self._named(self.label(name, arguments))
        raise UnsupportedError(f"a formula uses the {kind} {name}.")

    def _named(self, label: str) -> Expression:
        return self._fluents.setdefault(label, make.fluent(label))

    def _constant(self, name: str, arguments: Sequence[int]) -> make.Number:
        flat = 0
        for type_name, position in zip(self.model.variable_params[name], arguments, strict=True):
            flat = flat * len(self.objects(type_name)) + position
        value = self._constants[name][flat]
        return self._object(value) if isinstance(value, str) else value

    def _defined(self, name: str, arguments: Sequence[int]) -> Expression:
        label = self.label(name, arguments)
        if label not in self._intermediate:
            self._intermediate[label] = None
            formula = self.formula(name, arguments)
            if formula.random:
                self.drawn[label] = formula
                self.ranges[label] = self.model.variable_ranges[name]
                formula = self._named(label)
            self._intermediate[label] = formula
        found = self._intermediate[label]
        if found is None:
            raise UnsupportedError(f"{label} is defined in terms of itself; break the cycle.")
        return found

    def _object_name(self, label: Any) -> str:
        name = label if isinstance(label, str) else label.args[0]
        return str(name).removeprefix("@")

    def _object(self, label: Any) -> int:
        return int(self.model.object_to_index[self._object_name(label)])

    def _free_variables(self, node: Any) -> tuple[str, ...]:
        found = self._free.get(id(node))
        if found is None:
            found = self._free[id(node)] = tuple(sorted(self._free_below(node.args)))
        return found

    def _free_below(self, part: Any) -> set[str]:
        """Variables that the arguments of a formula do not bind themselves."""
        if isinstance(part, str):
            return {part} if part.startswith("?") else set()
        if isinstance(part, list | tuple):
            bound = {one[1][0] for one in part if is_typed(one)}
            free = [self._free_below(one) for one in part if not is_typed(one)]
            return set().union(*free) - bound
        return set(self._free_variables(part)) if hasattr(part, "etype") else set()
