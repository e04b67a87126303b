"""A ground problem: its fluents, a formula for each, and the terms of its reward."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from typing import Any

from fsmdp.foundation.checks import is_whole, show
from fsmdp.io.rddl import expressions as make
from fsmdp.io.rddl.compiling import ActionFluent
from fsmdp.io.rddl.expressions import Expression, Number
from fsmdp.io.rddl.grounding import Grounder
from fsmdp.io.rddl.parsing import check_meaning, parse
from fsmdp.io.rddl.sources import Source, UnsupportedError, located

log = logging.getLogger("fsmdp")

MOST_VALUES = 64
"""Values of an integer."""

Values = tuple[int, ...]
"""The values of a fluent; truth values are 0 and 1, objects their positions in their type."""


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """Everything a model is built from, before any table exists.

    `formulas` define each drawn intermediate fluent and each next value, in an order in which
    they can be drawn; a next value is called like its fluent, and a formula that looks at one
    writes it with a prime. `values` is None for integers whose range is not known yet.
    `preconditions` look at actions alone, `conditions` at states too: an action is allowed where
    all of them hold. An episode is over where one of `terminal` holds. `objects` names the values
    of state fluents of an enumerated type.
    """

    name: str
    states: tuple[str, ...]
    latents: tuple[str, ...]
    values: Mapping[str, Values | None]
    formulas: Mapping[str, Expression]
    rewards: tuple[Expression, ...]
    actions: tuple[ActionFluent, ...]
    most_nondefault: int
    preconditions: tuple[Expression, ...]
    initial: Mapping[str, int]
    horizon: int
    discount: float
    notes: tuple[str, ...]
    conditions: tuple[Expression, ...] = ()
    terminal: tuple[Expression, ...] = ()
    objects: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def with_values(self, values: Mapping[str, Values | None]) -> Problem:
        """The same problem with other ranges."""
        return replace(self, values=values)


def rank_of(problem: Problem) -> dict[str, int]:
    """The order of axes: current values, then what is drawn in the same step."""
    drawn = (*problem.latents, *(f"{label}'" for label in problem.states))
    return {name: position for position, name in enumerate((*problem.states, *drawn))}


def read_problem(source: Source) -> Problem:
    """Parse and ground a problem; an UnsupportedError says what a factored MDP cannot express."""
    log.info("%s: parsing", source.name)
    model, notes = parse(source)
    _refuse_unsupported(model)
    check_meaning(model, source)
    log.info("%s: grounding", source.name)
    return _ground(model, Grounder(model), source.name, notes)


def _refuse_unsupported(model: Any) -> None:
    """What no amount of folding would mend, told before anything is expanded."""
    if model.observ_fluents:
        raise UnsupportedError(
            f"the state is only partly observed ({', '.join(model.observ_fluents)}); "
            "expected an MDP, take the MDP version of the domain."
        )
    for kind, ranges in (("state", model.state_ranges), ("action", model.action_ranges)):
        for fluent, range_name in ranges.items():
            if range_name == "real":
                raise UnsupportedError(
                    f"the {kind} fluent {fluent} is continuous; expected bool, an "
                    "enumerated type or integers with a finite range, discretise it."
                )
    horizon, discount = model.horizon, model.discount
    if not is_whole(horizon) or horizon < 1 or not 0 < discount <= 1:
        raise UnsupportedError(
            f"horizon {show(horizon)} and discount {show(discount)}; expected a whole number of "
            "steps, at least 1, and a discount above 0 and at most 1."
        )


def _constraints(
    model: Any, grounder: Grounder, actions: frozenset[str]
) -> tuple[list[Expression], list[str]]:
    """State-action constraints that concern actions, and notes on all of them.

    pyRDDLGym ignores them. One that looks at actions says which are allowed; one on states alone
    says what never happens, and is no property of an action.
    """
    ground = [grounder.ground(node, {}) for node in getattr(model.ast.domain, "constraints", [])]
    open_ones = [one for constraint in ground for one in _parts(constraint)]
    kept = [one for one in open_ones if not one.fluents.isdisjoint(actions) or one.is_constant]
    notes = []
    if any(one.fluents <= actions for one in kept):
        notes.append(
            "state-action constraints forbid some joint actions, which are left out; pyRDDLGym's "
            "simulator would allow them"
        )
    if any(not one.fluents <= actions for one in kept):
        notes.append(
            "state-action constraints allow some actions in some states only; pyRDDLGym's "
            "simulator would allow them everywhere"
        )
    if len(open_ones) > len(kept):
        notes.append("state-action constraints on states alone are ignored, as in pyRDDLGym")
    if model.invariants:
        notes.append(
            "state invariants are not enforced: states that violate them are states of the model, "
            "though they may never be reached"
        )
    return kept, notes


def _parts(constraint: Expression) -> tuple[Expression, ...]:
    if constraint.operator == make.AND:
        return constraint.arguments
    return () if constraint.is_value(True) else (constraint,)


def _allowed(
    preconditions: list[Expression],
    actions: frozenset[str],
    states: frozenset[str],
    boolean: set[str],
) -> tuple[tuple[Expression, ...], tuple[Expression, ...]]:
    """Preconditions on actions alone, and those that look at states, each as little as may be."""
    open_ones = [one for one in preconditions if not one.is_value(True)]
    if all(one.fluents <= actions for one in open_ones):
        return tuple(open_ones), ()
    for one in open_ones:
        _refuse_drawn(one, actions | states, "a precondition")
    parts = [part for one in open_ones for part in make.conjuncts(one, boolean)]
    alone = tuple(part for part in parts if part.fluents <= actions)
    return alone, tuple(part for part in parts if not part.fluents <= actions)


def _refuse_drawn(condition: Expression, known: frozenset[str], what: str) -> None:
    if condition.random or not condition.fluents <= known:
        raise UnsupportedError(
            f"{what} looks at something drawn in the same step; expected current values only."
        )


def _ground(model: Any, grounder: Grounder, name: str, notes: tuple[str, ...]) -> Problem:
    values: dict[str, Values | None] = {}
    formulas: dict[str, Expression] = {}
    initial: dict[str, int] = {}
    objects: dict[str, tuple[str, ...]] = {}
    for fluent, started in model.state_fluents.items():
        starts = started if isinstance(started, list) else [started]
        for arguments, start in zip(grounder.instances(fluent), starts, strict=True):
            label = grounder.label(fluent, arguments)
            with located(f"the next value of {label}"):
                formulas[label] = grounder.formula(fluent + "'", arguments)
            values[label] = _values(grounder, model.variable_ranges[fluent])
            if model.variable_ranges[fluent] in model.type_to_objects:
                objects[label] = tuple(grounder.objects(model.variable_ranges[fluent]))
            initial[label] = _position(model, start)
    if not formulas:
        raise UnsupportedError("it has no state fluents.")
    with located("the reward"):
        rewards = split_sum(grounder.ground(model.reward, {}))
    states = tuple(formulas)
    ground_preconditions = [grounder.ground(node, {}) for node in model.preconditions]
    actions = tuple(_action_fluents(model, grounder, ground_preconditions))
    action_names = frozenset(action.name for action in actions)
    constraints, more_notes = _constraints(model, grounder, action_names)
    boolean = {action.name for action in actions if not action.objects}
    boolean |= {label for label in states if values[label] == (0, 1)}
    preconditions, conditions = _allowed(
        [*ground_preconditions, *constraints], action_names, frozenset(states), boolean
    )
    terminal = [
        part for node in model.terminations for part in make.disjuncts(grounder.ground(node, {}))
    ]
    for one in terminal:
        _refuse_drawn(one, frozenset(states), "a termination condition")
    for label, formula in grounder.drawn.items():
        values[label] = _values(grounder, grounder.ranges[label])
        formulas[label] = formula
    ordered = in_drawing_order(formulas, frozenset(grounder.drawn))
    return Problem(
        name=name,
        states=states,
        latents=tuple(grounder.drawn),
        values=values,
        formulas=ordered,
        rewards=tuple(term for one in rewards for term in _current(one, ordered, states)),
        actions=actions,
        most_nondefault=int(model.max_allowed_actions),
        preconditions=preconditions,
        initial=initial,
        horizon=int(model.horizon),
        discount=float(model.discount),
        notes=(*notes, *more_notes),
        conditions=conditions,
        terminal=tuple(one for one in terminal if not one.is_value(False)),
        objects=objects,
    )


def _current(
    reward: Expression, formulas: Mapping[str, Expression], states: tuple[str, ...]
) -> tuple[Expression, ...]:
    """The terms of a reward with next values that are certain replaced by their formulas."""
    following = {f"{label}'": label for label in states}
    drawn = following.keys() | (formulas.keys() - set(states))
    rank = {label: position for position, label in enumerate(formulas)}
    replaced = reward
    while not drawn.isdisjoint(replaced.fluents):
        last = max(drawn & replaced.fluents, key=lambda name: rank[following.get(name) or name])
        formula = formulas[following.get(last, last)]
        if formula.random:
            raise UnsupportedError(
                f"the reward looks at {last}, which is drawn at random in the same step; expected "
                "a function of the state and the action."
            )
        replaced = make.substitute(replaced, {last: formula})
    return (reward,) if replaced is reward else split_sum(replaced)


def _values(grounder: Grounder, range_name: str) -> Values | None:
    if range_name == "bool":
        return (0, 1)
    if range_name == "int":
        return None
    if range_name == "real":
        return None  # refused if a value turns out not to be a whole number
    return tuple(range(len(grounder.objects(range_name))))


def _position(model: Any, value: Any) -> int:
    return int(model.object_to_index[value]) if isinstance(value, str) else int(value)


def _action_fluents(
    model: Any, grounder: Grounder, preconditions: Sequence[Expression]
) -> Iterator[ActionFluent]:
    ranges = _ranges(preconditions)
    for fluent, range_name in model.action_ranges.items():
        default = _position(model, model.variable_defaults[fluent])
        for arguments in grounder.instances(fluent):
            label = grounder.label(fluent, arguments)
            if range_name != "int":
                objects = () if range_name == "bool" else tuple(grounder.objects(range_name))
                yield ActionFluent(label, default, objects)
                continue
            low, high = ranges.get(label, (-math.inf, math.inf))
            if not high - low < MOST_VALUES or not low <= default <= high:
                raise UnsupportedError(
                    f"the action fluent {label} is an integer whose values from {low:g} to "
                    f"{high:g}, by the preconditions on it alone, are not among {MOST_VALUES} "
                    f"around its default {default}; bound it by <= and >=."
                )
            first, last = math.ceil(low), math.floor(high)
            values = tuple(map(str, range(first, last + 1)))
            yield ActionFluent(label, default, values, low=first)


def _ranges(preconditions: Sequence[Expression]) -> dict[str, tuple[float, float]]:
    """Bounds of fluents by comparisons of each alone with a number."""
    found: dict[str, tuple[float, float]] = {}
    for condition in (part for one in preconditions for part in make.conjuncts(one)):
        if condition.operator not in ("<=", ">=", "<", ">"):
            continue
        left, right = condition.arguments
        operator = condition.operator
        if left.is_constant and right.operator == make.FLUENT:
            left, right, operator = right, left, make.MIRRORED[operator]
        if left.operator == make.FLUENT and right.is_constant:
            low, high = found.get(left.name, (-math.inf, math.inf))
            number = float(right.value)
            strict = 1.0 if number.is_integer() and operator in ("<", ">") else 0.0
            if operator in ("<=", "<"):
                high = min(high, number - strict)
            else:
                low = max(low, number + strict)
            found[left.name] = low, high
    return found


def in_drawing_order(
    formulas: Mapping[str, Expression], latents: frozenset[str]
) -> dict[str, Expression]:
    """Latents and next values after those that their formulas look at."""
    uses = {
        label: [
            other.removesuffix("'")
            for other in sorted(formula.fluents)
            if other in latents or other.endswith("'")
        ]
        for label, formula in formulas.items()
    }
    try:
        order = tuple(TopologicalSorter(uses).static_order())
    except CycleError as error:
        circle = ", ".join(error.args[1])
        raise UnsupportedError(
            f"next values depend on one another in a cycle ({circle})."
        ) from None
    return {label: formulas[label] for label in order}


def split_sum(expression: Expression, factor: Number = 1) -> tuple[Expression, ...]:
    """The terms of a sum, with constant factors multiplied through; equal ones stay apart."""
    if expression.operator == "+":
        parts = [split_sum(argument, factor) for argument in expression.arguments]
        return tuple(term for part in parts for term in part)
    if expression.operator == "*" and expression.arguments[0].is_constant:
        number, *others = expression.arguments
        if len(others) == 1:
            return split_sum(others[0], factor * number.value)
    if expression.is_constant:
        whole = expression.value * factor
        return (make.constant(whole),) if whole else ()
    return (make.product([make.constant(factor), expression]),)
