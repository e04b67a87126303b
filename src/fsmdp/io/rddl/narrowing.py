"""A problem whose formulas all have small tables, and conditions as tables.

Where a table would be large, exclusive fluents become one variable first, and what is still large
is split by auxiliary variables. Problems whose tables are small stay as they are.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from fsmdp.io.rddl import expressions as make
from fsmdp.io.rddl.action_groups import Choices, Limit, exclusive_sums
from fsmdp.io.rddl.compiling import ActionFluent, Assignment, Folder
from fsmdp.io.rddl.distributions import Evaluator, trim
from fsmdp.io.rddl.expressions import Expression, substitute
from fsmdp.io.rddl.one_hot import join_exclusive
from fsmdp.io.rddl.problem import Problem, in_drawing_order
from fsmdp.io.rddl.sources import located
from fsmdp.io.rddl.splitting import MARK, MOST_CURRENT, MOST_ROWS, Splitter, primed
from fsmdp.model.cases import ANY, Case, Cases
from fsmdp.model.tables import Floats, Table

MOST_COMPARED = 2**12
"""Assignments that are gone through to see whether conditions can hold together."""

Scoped = tuple[tuple[str, ...], Floats]


@dataclass(frozen=True, slots=True)
class Narrowed:
    """A problem with small tables, and the members of variables that stand for several fluents."""

    problem: Problem
    members: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def narrow_listed(problem: Problem, folder: Folder) -> Narrowed:
    """The problem with every table small under every joint action."""
    splitter = Splitter(_known(problem), problem.states)
    found, members = _joined(problem, _wide_listed(problem, folder, splitter))
    if members:
        splitter = Splitter(_known(found), found.states)
    formulas = {
        label: splitter.next_value(one) if _is_wide(one, folder, splitter, MOST_ROWS) else one
        for label, one in found.formulas.items()
    }
    rewards = [
        term
        for one in found.rewards
        for term in (
            splitter.reward(one) if _is_wide(one, folder, splitter, MOST_CURRENT) else [one]
        )
    ]
    conditions = [splitter.condition(one) for one in found.conditions]
    return Narrowed(_with_auxiliaries(found, splitter, formulas, rewards, conditions), members)


def _wide_listed(problem: Problem, folder: Folder, splitter: Splitter) -> frozenset[str]:
    """Fluents that some large table looks at."""
    found: set[str] = set()
    for formulas, limit in (
        (problem.formulas.values(), MOST_ROWS),
        (problem.rewards, MOST_CURRENT),
        ((*problem.conditions, *problem.terminal), MOST_CURRENT),
    ):
        for formula in formulas:
            if _is_wide(formula, folder, splitter, limit):
                found |= formula.fluents
    return frozenset(found)


def _is_wide(formula: Expression, folder: Folder, splitter: Splitter, limit: int) -> bool:
    if splitter.rows(formula) <= limit:
        return False
    return any(splitter.rows(variant) > limit for _, variant in folder.variants(formula))


def _known(problem: Problem) -> dict[str, tuple[int, ...]]:
    known = {label: values for label, values in problem.values.items() if values is not None}
    return known | {f"{label}'": known[label] for label in problem.states}


def _joined(
    problem: Problem, wide: frozenset[str], choices: Choices | None = None
) -> tuple[Problem, Mapping[str, tuple[str, ...]]]:
    if not wide:
        return problem, {}
    fluents = problem.actions if choices is None else choices.fluents
    meaning = (
        {fluent.name: make.fluent(fluent.name) for fluent in fluents}
        if choices is None
        else choices.meaning
    )
    return join_exclusive(problem, wide, meaning, values_of(fluents))


def values_of(fluents: Sequence[ActionFluent]) -> dict[str, tuple[int, ...]]:
    """The values of action fluents, the default first, as an action variable counts them."""
    return {fluent.name: (fluent.default, *fluent.others) for fluent in fluents}


def _with_auxiliaries(
    problem: Problem,
    splitter: Splitter,
    formulas: Mapping[str, Expression],
    rewards: Sequence[Expression],
    conditions: Sequence[Expression],
) -> Problem:
    terminal = [splitter.condition(one) for one in problem.terminal]
    changed = replace(
        problem, rewards=tuple(rewards), conditions=tuple(conditions), terminal=tuple(terminal)
    )
    if not splitter.latents and not splitter.current:
        return replace(changed, formulas=dict(formulas))
    initial = dict(problem.initial)
    for label, formula in splitter.current.items():
        values = {name: make.constant(initial[name]) for name in formula.fluents}
        initial[label] = int(substitute(formula, values).value)
    whole = {
        **formulas,
        **splitter.latents,
        **{label: primed(formula) for label, formula in splitter.current.items()},
    }
    latents = (*problem.latents, *splitter.latents)
    states = (*problem.states, *splitter.current)
    return replace(
        changed,
        states=states,
        latents=latents,
        values={label: splitter.values[label] for label in (*states, *latents)},
        formulas=in_drawing_order(whole, frozenset(latents)),
        initial=initial,
    )


def narrow_choices(problem: Problem, choices: Choices) -> Narrowed:
    """The problem with every table small over states and choices at once."""
    values = values_of(choices.fluents)
    sizes = {name: len(found) for name, found in values.items()}

    def rewritten(formula: Expression) -> Expression:
        own = {n: choices.meaning[n] for n in formula.fluents if n in choices.meaning}
        return substitute(formula, own)

    splitter = Splitter(_known(problem) | values, problem.states)
    wide: set[str] = set()
    for formula in (*problem.formulas.values(), *problem.rewards, *problem.conditions):
        if splitter.rows(rewritten(formula)) > MOST_CURRENT:
            wide |= formula.fluents
    for formula in problem.terminal:
        if splitter.rows(formula) > MOST_CURRENT:
            wide |= formula.fluents
    found, members = _joined(problem, frozenset(wide), choices)
    if members:
        splitter = Splitter(_known(found) | values, found.states)
    single = {name for name, one in choices.meaning.items() if sizes.get(one.name) == 2}

    def next_value(label: str, formula: Expression) -> Expression:
        whole = rewritten(formula)
        rows = splitter.rows(whole)
        if rows <= MOST_CURRENT and rows * len(splitter.values[label]) <= MOST_ROWS:
            return whole
        own = {}
        for name in choices.meaning:
            if name not in formula.fluents:
                continue
            if name in single:
                own[name] = choices.meaning[name]
            else:
                own[name] = make.fluent(name)
                splitter.latents.setdefault(name, choices.meaning[name])
                splitter.values.setdefault(name, (0, 1))
        return splitter.next_value(substitute(formula, own), MOST_CURRENT)

    formulas = {label: next_value(label, one) for label, one in found.formulas.items()}
    rewards = []
    for one in found.rewards:
        if splitter.rows(rewritten(one)) > MOST_CURRENT:
            one = exclusive_sums(one, choices.limits)
        rewards += splitter.reward(rewritten(one), MOST_CURRENT)
    conditions = [splitter.condition(rewritten(one)) for one in found.conditions]
    return Narrowed(_with_auxiliaries(found, splitter, formulas, rewards, conditions), members)


def possible_actions(
    conditions: Sequence[Expression],
    fluents: Sequence[ActionFluent],
    actions: Mapping[str, Assignment],
    values: Mapping[str, Sequence[int]],
) -> dict[str, Assignment]:
    """The joint actions whose conditions can hold in some state, as far as small tables tell."""
    folder = Folder(fluents, tuple(actions.values()))
    own: dict[int, list[Expression]] = defaultdict(list)
    never: set[int] = set()
    everyone = range(len(actions))
    for condition in conditions:
        named: set[int] = set()
        rest = None
        for positions, variant in folder.variants(condition):
            if positions is None:
                rest = variant
                continue
            named.update(positions)
            _note(variant, positions, own, never)
        if rest is not None and not rest.is_value(True):
            _note(rest, [at for at in everyone if at not in named], own, never)
    rank = {name: at for at, name in enumerate(values)}
    known: dict[tuple[int, ...], bool] = {}
    for at, parts in own.items():
        key = tuple(sorted(map(id, parts)))
        if at not in never and key not in known:
            known[key] = _can_hold(parts, values, rank)
        if at not in never and not known[key]:
            never.add(at)
    return {name: one for at, (name, one) in enumerate(actions.items()) if at not in never}


def _note(
    variant: Expression,
    positions: Sequence[int],
    own: dict[int, list[Expression]],
    never: set[int],
) -> None:
    if variant.is_value(False):
        never.update(positions)
    elif not variant.is_constant:
        for at in positions:
            own[at].append(variant)


def _can_hold(
    parts: Sequence[Expression], values: Mapping[str, Sequence[int]], rank: Mapping[str, int]
) -> bool:
    """Whether conditions on the same few fluents can hold together; True where that is not seen."""
    by_fluent: dict[str, list[Expression]] = defaultdict(list)
    for part in (one for one in parts if one.fluents <= values.keys()):
        for name in part.fluents:
            by_fluent[name].append(part)
    for name, several in by_fluent.items():
        scope: set[str] = {name}
        kept = []
        for part in several:
            if math.prod(len(values[n]) for n in scope | part.fluents) <= MOST_COMPARED:
                scope |= part.fluents
                kept.append(part)
        if len(kept) > 1:
            together = Evaluator(values, rank).numbers(make.conjunction(kept))
            if not together.array.any():
                return False
    return True


def listed_conditions(
    problem: Problem, folder: Folder, names: Sequence[str], evaluator: Evaluator
) -> list[Case]:
    """What is allowed, as cases of listed actions; conditions on the same fluents are one."""
    by_action: list[dict[tuple[str, ...], Floats]] = [{} for _ in names]
    for condition in problem.conditions:
        named: set[int] = set()
        rest: Scoped | None = None
        for positions, variant in folder.variants(condition):
            with located("a precondition"):
                found = trim(evaluator.numbers(variant))
            if positions is None:
                rest = found.scope, found.array
                continue
            named.update(positions)
            for at in positions:
                _multiply(by_action[at], found.scope, found.array)
        if rest is not None and not (rest[1] == 1).all():
            for at in range(len(names)):
                if at not in named:
                    _multiply(by_action[at], *rest)
    alike: dict[tuple[tuple[str, ...], bytes], tuple[Floats, list[str]]] = {}
    for at, tables in enumerate(by_action):
        for scope, table in tables.items():
            key = scope, np.ascontiguousarray(table).tobytes()
            alike.setdefault(key, (table, []))[1].append(names[at])
    return [
        Case(ANY if len(who) == len(names) else who, list(scope), table)
        for (scope, _), (table, who) in alike.items()
    ]


def _multiply(tables: dict[tuple[str, ...], Floats], scope: tuple[str, ...], table: Floats) -> None:
    table = (table != 0).astype(np.float64)
    if not table.all():
        tables[scope] = tables[scope] * table if scope in tables else table


def allowed_apart(allowed: Sequence[Case], names: Sequence[str]) -> list[Cases[int]]:
    """Which actions each case speaks of, so that those that differ in this stay apart."""
    position = {name: at for at, name in enumerate(names)}
    return [
        Cases((0, 1), {position[name]: 1 for name in case.actions})
        for case in allowed
        if isinstance(case.actions, tuple)
    ]


def restricted(case: Case, actions: set[str]) -> list[Case]:
    """A case for those of its actions that are left, if any is."""
    if not isinstance(case.actions, tuple):
        return [case]
    left = [name for name in case.actions if name in actions]
    return [Case(left, case.parents, case.table)] if left else []


def joint_conditions(problem: Problem, evaluator: Evaluator) -> list[Scoped]:
    """What is allowed, as tables over states and choices; those over the same are one."""
    tables: dict[tuple[str, ...], Floats] = {}
    for condition in problem.conditions:
        with located("a precondition"):
            found = trim(evaluator.numbers(condition))
        _multiply(tables, found.scope, found.array)
    return list(tables.items())


def terminal_tables(problem: Problem, evaluator: Evaluator) -> list[Table]:
    """Where episodes are over, as tables; conditions on the same fluents are one."""
    tables: dict[tuple[str, ...], Floats] = {}
    for condition in problem.terminal:
        with located("a termination condition"):
            found = trim(evaluator.numbers(condition))
        over = (found.array != 0).astype(np.float64)
        known = tables.get(found.scope)
        tables[found.scope] = over if known is None else np.maximum(known, over)
    return [Table(list(scope), table) for scope, table in tables.items() if table.any()]


MOST_PAIRS = 2**12
"""Pairs of choices that tables are made of for a limit of one."""


@dataclass(slots=True)
class Space:
    """Choices in order, with those that count towards a limit, and what they rule out together."""

    fluents: list[ActionFluent]
    at_most: int | None = None
    forbidden: dict[tuple[str, ...], Floats] = field(default_factory=dict)
    conditions: list[Expression] = field(default_factory=list)

    def forbid(self, scope: tuple[str, ...], table: Floats) -> None:
        """Rule out where a table is not zero; tables over the same choices are one."""
        known = self.forbidden.get(scope)
        self.forbidden[scope] = table if known is None else np.maximum(known, table)


def action_space(problem: Problem, choices: Choices) -> Space:
    """Limits and preconditions on actions alone, as structure of the action space.

    A limit on the number of all choices is `at_most`; one fluent of several choices becomes tables
    over pairs of them. Any other limit is counted by auxiliary choices, one after another, each of
    which is determined by the choice before it; a limit that looks at states is a condition on
    the last of them.
    """
    space = Space(list(choices.fluents))
    splitter = Splitter(_known(problem), problem.states)
    n = len(problem.actions)
    if problem.most_nondefault < n:
        space.at_most = problem.most_nondefault
    for number, limit in enumerate(choices.limits):
        weights = choices.weights(limit)
        if not weights:
            continue
        most = _largest(limit, splitter)
        if limit.most is not None and _counts_all(weights, choices):
            space.at_most = min(int(most), len(choices.fluents), space.at_most or n)
        elif limit.most is not None and _is_one_of(weights, most):
            _forbid_pairs(space, weights)
        else:
            spent = _chain(space, weights, most, number)
            if limit.most is None:
                space.conditions.append(make.apply("<=", [spent, limit.bound]))
    if space.at_most is not None and len(space.fluents) > len(choices.fluents):
        # Auxiliary choices are no actions, so the limit is counted by them too.
        every = {
            f.name: np.array([0.0] + [1.0] * ((len(f.objects) or 2) - 1)) for f in choices.fluents
        }
        _chain(space, every, space.at_most, len(choices.limits))
        space.at_most = None
    return space


def _counts_all(weights: Mapping[str, Floats], choices: Choices) -> bool:
    return len(weights) == len(choices.fluents) and all(
        (counts[1:] == 1).all() and len(counts) == (len(f.objects) or 2)
        for f in choices.fluents
        for counts in [weights[f.name]]
    )


def _is_one_of(weights: Mapping[str, Floats], most: float) -> bool:
    pairs = len(weights) * (len(weights) - 1) // 2
    lightest = min(float(counts[counts > 0].min()) for counts in weights.values())
    return pairs <= MOST_PAIRS and 2 * lightest > most


def _forbid_pairs(space: Space, weights: Mapping[str, Floats]) -> None:
    names = list(weights)
    for at, one in enumerate(names):
        for other in names[at + 1 :]:
            both = (weights[one][:, None] > 0) & (weights[other][None] > 0)
            space.forbid((one, other), both.astype(np.float64))


def _chain(space: Space, weights: Mapping[str, Floats], most: float, number: int) -> Expression:
    """Auxiliary choices that add up what is chosen, in the order of the choices, and the sum."""
    sums: list[float] = [0.0]
    before: str | None = None
    for name in [fluent.name for fluent in space.fluents if fluent.name in weights]:
        counts = weights[name]
        reached = sorted({a + float(b) for a in sums for b in counts if a + b <= most + 1e-9})
        label = f"spent{MARK}{number + 1}.{name}"
        wrong = np.ones((len(sums), len(counts), len(reached)))
        for i, a in enumerate(sums):
            for j, b in enumerate(counts.tolist()):
                if a + b <= most + 1e-9:
                    wrong[i, j, reached.index(a + b)] = 0.0
        table = wrong[0] if before is None else wrong
        scope = (name, label) if before is None else (before, name, label)
        space.forbid(scope, table)
        at = next(i for i, fluent in enumerate(space.fluents) if fluent.name == name)
        shown = tuple(f"{label}={value:g}" for value in reached)
        space.fluents.insert(at + 1, ActionFluent(label, 0, shown))
        sums, before = reached, label
    assert before is not None
    return make.selection(make.fluent(before), [make.constant(value) for value in sums])


def _largest(limit: Limit, splitter: Splitter) -> float:
    """The bound, or the largest value of one that looks at states."""
    if limit.most is not None:
        return limit.most
    known, total = splitter.outcomes(limit.bound), sum(limit.weights.values())
    return min(total, max(known)) if known else total
