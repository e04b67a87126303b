"""A ground problem to a FactoredMDP, with actions that do the same made one."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import show_count
from fsmdp.io.rddl import expressions as make
from fsmdp.io.rddl.action_groups import NONE, Checker, Choices, fix_impossible, read_choices
from fsmdp.io.rddl.compiling import (
    MOST_ACTIONS,
    ActionFluent,
    Assignment,
    Compiler,
    Folder,
    Local,
    allows,
    assignments,
    count_actions,
    joint_actions,
    outcomes,
)
from fsmdp.io.rddl.distributions import MOST_ENTRIES, Evaluator
from fsmdp.io.rddl.expressions import AND, Expression, constant, substitute
from fsmdp.io.rddl.narrowing import (
    action_space,
    allowed_apart,
    joint_conditions,
    listed_conditions,
    narrow_choices,
    narrow_listed,
    possible_actions,
    restricted,
    terminal_tables,
    values_of,
)
from fsmdp.io.rddl.problem import MOST_VALUES, Problem, rank_of, read_problem
from fsmdp.io.rddl.sources import Source, TooLargeError, UnsupportedError, located
from fsmdp.io.rddl.splitting import MARK
from fsmdp.model.actions import NOOP, Actions
from fsmdp.model.cases import ANY, Case, Cases, actions_alike
from fsmdp.model.conditionals import Conditional
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.rewards import Reward
from fsmdp.model.supports import Exclusive, cover, exclusive_pairs
from fsmdp.model.tables import Table
from fsmdp.model.variables import Variable
from fsmdp.reductions.joining import Joined, join_groups

CHEAPER_FROM = 1000
"""Joint actions from which variables are imported by default.

Two at a time out of 20 or 30, as in AcademicAdvising 5 and 10, have 211 and 466: measured there, a
list is the cheaper form, since the count of what is chosen widens every clique.
"""


class JointFolder(Folder):
    """A formula under each assignment of the action fluents that it looks at."""

    def __init__(self, fluents: Sequence[ActionFluent], most_nondefault: int, limit: int) -> None:
        super().__init__(fluents, ())
        self._fluents = {fluent.name: fluent for fluent in fluents}
        self._most, self._limit = most_nondefault, limit

    def looked_at(self, formula: Expression) -> list[ActionFluent]:
        """The action fluents of a formula."""
        return [f for name, f in self._fluents.items() if name in formula.fluents]

    def local(self, formula: Expression) -> list[Assignment]:
        """Assignments of these, the defaults first."""
        own = self.looked_at(formula)
        count = count_actions(own, self._most)
        if count > self._limit:
            raise TooLargeError(
                f"it looks at {len(own)} action fluents, which have {show_count(count)} joint "
                f"values (limit {self._limit}, the option most_actions of fsmdp.rddl.load); "
                "simplify the formula."
            )
        return list(assignments(own, self._most))

    def variants(self, formula: Expression) -> Iterator[tuple[tuple[int, ...] | None, Expression]]:
        """The formula under each of its local assignments, by position."""
        defaults = {f.name: constant(f.default) for f in self.looked_at(formula)}
        for position, assignment in enumerate(self.local(formula)):
            changed = {name: constant(value) for name, value in assignment}
            yield (position,), substitute(formula, defaults | changed)


def action_variables(problem: Problem, limit: int) -> Actions:
    """The action fluents as variables; value 0 is the default.

    Preconditions on actions alone rule values out.
    """
    by_name = {fluent.name: fluent for fluent in problem.actions}
    forbidden = []
    for condition in _parts(problem.preconditions):
        own = [fluent for name, fluent in by_name.items() if name in condition.fluents]
        sizes = [1 + len(fluent.others) for fluent in own]
        if count_actions(own, problem.most_nondefault) > limit or np.prod(sizes) > limit:
            raise TooLargeError(
                f"a precondition looks at {len(own)} action fluents, too many for a table of joint "
                "values; split it into several."
            )
        never = np.zeros(sizes)
        for assignment in assignments(own, problem.most_nondefault):
            if not allows([condition], own, assignment):
                never[_index(own, assignment)] = 1.0
        if never.any():
            forbidden.append(Table([variable_name(fluent) for fluent in own], never))
    most = problem.most_nondefault
    return Actions(
        [_labelled_variable(f, variable_name(f)) for f in problem.actions],
        at_most=most if most < len(problem.actions) else None,
        forbidden=forbidden,
    )


def _parts(conditions: Sequence[Expression]) -> Iterator[Expression]:
    for condition in conditions:
        if condition.operator == AND:
            yield from _parts(condition.arguments)
        elif condition.is_constant and not condition.value:
            raise UnsupportedError("its preconditions allow no joint action at all; correct them.")
        elif not condition.is_constant:
            yield condition


def variable_name(fluent: ActionFluent) -> str:
    """How the variable of an action fluent is called: after what leaving its default does."""
    return fluent.name if fluent.objects else fluent.text(fluent.others[0])


def _index(fluents: Sequence[ActionFluent], assignment: Assignment) -> tuple[int, ...]:
    values = dict(assignment)
    return tuple(1 + f.others.index(values[f.name]) if f.name in values else 0 for f in fluents)


def joint_case(
    folder: JointFolder,
    formula: Expression,
    grouped: Cases[Local],
    sizes: Mapping[str, int],
    rank: Mapping[str, int],
    states: frozenset[str],
) -> Case:
    """One case for all local assignments: a table over action fluents and all that any looks at.

    Joint values that are never allowed together stand for the defaults: nobody reads them.
    """
    own = folder.looked_at(formula)
    scope = sorted({name for local in grouped.groups for name in local.scope}, key=rank.__getitem__)
    rest = grouped.groups[0].table.shape[len(grouped.groups[0].scope) :]
    shape = [*(sizes[name] for name in scope), *rest]
    tables = []
    for local in grouped.groups:
        spread = [sizes[name] if name in local.scope else 1 for name in scope]
        tables.append(np.broadcast_to(local.table.reshape([*spread, *rest]), shape))
    whole = np.empty([*(1 + len(f.others) for f in own), *shape])
    local_assignments = folder.local(formula)
    whole[...] = tables[grouped.group(0)]
    for position, assignment in enumerate(local_assignments):
        whole[_index(own, assignment)] = tables[grouped.group(position)]
    # Action fluents that nothing turns out to depend on are left out.
    names = [variable_name(fluent) for fluent in own]
    for name in tuple(names):
        axis = names.index(name)
        if (np.diff(whole, axis=axis) == 0).all():
            whole = np.take(whole, 0, axis=axis)
            names.pop(axis)
    parents = [name for name in scope if name in states]
    drawn = [name.removesuffix("'") for name in scope if name not in states]
    return Case(ANY, [*names, *parents], whole, drawn)


def with_reachable_values(problem: Problem, folder: Folder, most_entries: int) -> Problem:
    """The problem with a range for every fluent; an integer of more than MOST_VALUES is refused.

    Cost: the tables of integers and of drawn fluents, once for each step until nothing is new.
    """
    unknown = [
        label
        for label, values in problem.values.items()
        if values is None or label in problem.latents
    ]
    if not unknown:
        return problem
    values = dict(problem.values)
    for label in unknown:
        values[label] = (problem.initial[label],) if label in problem.initial else ()
    order = [label for label in problem.formulas if label in unknown]
    for step in range(problem.horizon):
        log.info("%s: values reached in %d steps", problem.name, step)
        before = dict(values)
        for label in order:
            values[label] = _extended(problem.with_values(values), label, folder, most_entries)
        if values == before:
            break
    return problem.with_values(values)


def _extended(problem: Problem, label: str, folder: Folder, most_entries: int) -> tuple[int, ...]:
    known = {name: values or (0,) for name, values in problem.values.items() if values is not None}
    choices = folder.values if isinstance(folder, Whole) else {}
    ranges = known | {f"{name}'": known[name] for name in problem.states} | choices
    rank = {name: position for position, name in enumerate(ranges)}
    evaluator = Evaluator(ranges, rank, most_entries)
    with located(f"the next value of {label}"):
        reached = outcomes(problem.formulas[label], folder, evaluator)
    found = set(problem.values[label] or ()) | reached
    if len(found) > MOST_VALUES:
        raise TooLargeError(
            f"the integer {label} takes more than {MOST_VALUES} values within the horizon of "
            f"{problem.horizon} steps; expected a small finite range, bound it by min and max."
        )
    return tuple(sorted(found))


NOWHERE = 0
"""What the value of a joined variable stands for when none of its members is true."""


def join_fluents(
    name: str, model: FactoredMDP, values: Mapping[str, tuple[int, ...]]
) -> tuple[FactoredMDP, dict[str, tuple[int, ...]]]:
    """The model with exclusive instances of one fluent joined, and what values stand for.

    A joined variable is called like its members without the arguments that vary: `robot-at`,
    `elevator-at-floor(e1)`. It stands for the position of the true member, counted from 1, or 0 if
    none is, and has a value for each of these that it may come to.
    """
    pairs = exclusive_pairs(model)
    fluents = np.array(
        [
            variable.name.partition("(")[0] if values[variable.name] == (0, 1) else variable.name
            for variable in model.variables
        ]
    )
    groups = cover(pairs & (fluents[:, None] == fluents), model.variables)
    joined = join_groups(model, Exclusive(groups, pairs))
    for label, members in joined.groups.items():
        log.info("%s: %d fluents joined into %s", name, len(members), label)
    return joined.model, _meanings(joined, values)


def _meanings(joined: Joined, values: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    found = {
        variable.name: values.get(variable.name, ())
        for variable in (*joined.model.variables, *joined.model.latents)
    }
    for variable, group, decoded in zip(
        joined.model.variables, joined.members, joined.decoded, strict=True
    ):
        if len(group) > 1:
            found[variable.name] = tuple(
                int(row.argmax()) + 1 if row.any() else NOWHERE for row in decoded
            )
    return found


log = logging.getLogger("fsmdp")

REPORT_EVERY = 50

NO_MEMBERS: Mapping[str, tuple[str, ...]] = MappingProxyType({})

LISTED, FACTORED, AUTO = FORMS = ("listed", "factored", "auto")
"""Forms in which actions are imported."""


@dataclass(frozen=True, slots=True, eq=False)
class Imported:
    """A model, what its variables' values stand for, and what was merged or left out.

    `values` gives, for each variable and latent, the number or the position of an object that
    each of its values stands for; `aliases` the joint actions that each action stands for.
    """

    name: str
    model: FactoredMDP
    values: Mapping[str, tuple[int, ...]]
    aliases: Mapping[str, tuple[str, ...]]
    joint_actions: int
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Wanted:
    """How large a model may get, and the form that it is built in."""

    most_actions: int = MOST_ACTIONS
    most_entries: int = MOST_ENTRIES
    join: bool = False
    actions: str = LISTED


def import_source(source: Source, wanted: Wanted) -> Imported:
    """Read a problem and build its model, with actions in the form asked for."""
    problem, actions = read_problem(source), wanted.actions
    if problem.conditions:
        return _import_conditioned(problem, wanted)
    if actions == FACTORED or (actions == AUTO and not wanted.join and _is_cheaper(problem)):
        try:
            if not problem.terminal:
                return build_jointly(problem, wanted.most_actions, wanted.most_entries)
        except ModelError:
            log.info("%s: a variable for each action fluent does not fit", problem.name)
        try:
            possible = fix_impossible(problem)
            return build_choices(possible, read_choices(possible), wanted.most_entries)
        except ModelError:
            if actions == FACTORED:
                raise
            log.info("%s: action variables do not fit, a list may", problem.name)
    listed = joint_actions(
        problem.actions, problem.most_nondefault, problem.preconditions, wanted.most_actions
    )
    return build(problem, listed, wanted.most_entries, wanted.join)


def _import_conditioned(problem: Problem, wanted: Wanted) -> Imported:
    """A problem whose preconditions look at states: a list of what they leave, or choices."""
    problem = fix_impossible(problem)
    choices = read_choices(problem)
    checker = Checker(choices, problem.most_nondefault)
    listed = wanted.actions == LISTED or wanted.join
    found = None
    if wanted.actions != FACTORED:
        found = checker.assignments(wanted.most_actions if listed else CHEAPER_FROM)
    if found is None and listed:
        raise TooLargeError(
            f"{len(problem.actions)} action fluents make more than {wanted.most_actions} joint "
            "actions, the option most_actions of fsmdp.rddl.load; leave out join and "
            "actions='listed', so that they become variables."
        )
    if found is None:
        return build_choices(problem, choices, wanted.most_entries)
    problem = with_choices(problem, choices)
    texts = {fluent.name: fluent for fluent in choices.fluents}
    nothing = f"~{NOOP}" if NOOP in texts else NOOP
    named = {
        "+".join(texts[name].text(value) for name, value in one) or nothing: one for one in found
    }
    known = {label: values for label, values in problem.values.items() if values is not None}
    named = possible_actions(problem.conditions, problem.actions, named, known)
    if not named:
        raise UnsupportedError("its preconditions allow no joint action at all; correct them.")
    return build(problem, named, wanted.most_entries, wanted.join)


def with_choices(problem: Problem, choices: Choices) -> Problem:
    """The problem with formulas in terms of choices in place of ground action fluents."""

    def rewritten(formula: Expression) -> Expression:
        own = {n: choices.meaning[n] for n in formula.fluents if n in choices.meaning}
        return substitute(formula, own)

    limits = [limit.condition for limit in choices.limits if limit.most is None]
    return replace(
        problem,
        actions=choices.fluents,
        formulas={label: rewritten(one) for label, one in problem.formulas.items()},
        rewards=tuple(map(rewritten, problem.rewards)),
        conditions=tuple(map(rewritten, (*choices.conditions, *limits))),
    )


def build_choices(problem: Problem, choices: Choices, most_entries: int) -> Imported:
    """The model of a ground problem with a variable for each choice.

    Cost: the tables of all formulas over states and choices, each at once.
    """
    problem = with_reachable_values(problem, Whole(choices), most_entries)
    space = action_space(problem, choices)
    count = count_actions(choices.fluents, space.at_most or len(choices.fluents))
    fluents = tuple(space.fluents)
    counted = {f.name: make.fluent(f.name) for f in fluents if f not in choices.fluents}
    conditions = (*choices.preconditions, *choices.conditions, *space.conditions)
    choices = replace(choices, fluents=fluents, meaning={**choices.meaning, **counted})
    narrowed = narrow_choices(replace(problem, conditions=conditions), choices)
    problem = narrowed.problem
    values = _all_values(problem)
    names = [fluent.name for fluent in fluents]
    rank = {name: at for at, name in enumerate((*names, *rank_of(problem)))}
    evaluator = Evaluator(values | values_of(fluents), rank, most_entries)
    inputs = frozenset((*names, *problem.states))
    # Formulas are in terms of choices by now; ground action fluents left in them are latents.
    compiler = Compiler(evaluator, Whole(replace(choices, meaning={})))
    conditionals = []
    for position, (label, formula) in enumerate(problem.formulas.items()):
        if position % REPORT_EVERY == 0:
            log.info("%s: table %d of %d", problem.name, position + 1, len(problem.formulas))
        (local,) = compiler.transition(label, formula).groups
        conditionals.append(Conditional(label, _case(None, local, inputs)))
    rewards = []
    for position, formula in enumerate(problem.rewards):
        grouped = compiler.reward(position, formula)
        case = _case(None, grouped.groups[0], inputs)
        rewards.append(_named_reward(position, grouped, [case]))
    own = frozenset(names)
    for scope, table in joint_conditions(problem, evaluator):
        if own.issuperset(scope):
            space.forbid(scope, 1.0 - table)
    log.info("%s: building the model", problem.name)
    actions = Actions(
        [_action_variable(f) for f in fluents],
        at_most=space.at_most,
        forbidden=[Table(list(scope), table) for scope, table in space.forbidden.items()],
    )
    model = FactoredMDP(
        variables=_variables(problem, values, narrowed.members),
        latents=[Variable(label, len(values[label])) for label in problem.latents],
        actions=actions,
        conditionals=conditionals,
        rewards=rewards,
        horizon=problem.horizon,
        discount=problem.discount,
        initial={label: values[label].index(problem.initial[label]) for label in problem.states},
        allowed=[
            Case(ANY, list(scope), table)
            for scope, table in joint_conditions(problem, evaluator)
            if not own.issuperset(scope)
        ],
        terminal=terminal_tables(problem, evaluator),
    )
    notes = (*problem.notes, *_clipped(evaluator))
    return Imported(problem.name, model, values, {}, count, notes)


def _action_variable(fluent: ActionFluent) -> Variable:
    """The variable of a choice, whose labels are the ground fluents it stands for."""
    if fluent.default and not fluent.objects:
        return Variable(fluent.name, 2, (fluent.text(1), fluent.text(0)))
    return _labelled_variable(fluent, fluent.name)


def _labelled_variable(fluent: ActionFluent, name: str) -> Variable:
    values = (fluent.default, *fluent.others)
    if MARK in name or not fluent.objects:
        return Variable(name, len(values))
    return Variable(name, len(values), tuple(fluent.text(value) for value in values))


def _variables(
    problem: Problem,
    values: Mapping[str, tuple[int, ...]],
    members: Mapping[str, tuple[str, ...]] = NO_MEMBERS,
) -> list[Variable]:
    """State variables; labels name objects, numbers, or the fluents that one stands for."""
    found = []
    for label in problem.states:
        known = values[label]
        labels: tuple[str, ...] = ()
        if label in members:
            own = members[label]
            labels = tuple(own[value - 1] if value else NONE for value in known)
        elif label in problem.objects:
            labels = tuple(problem.objects[label][value] for value in known)
        elif known != (0, 1) and MARK not in label:
            labels = tuple(map(str, known))
        found.append(Variable(label, len(known), labels))
    return found


class Whole(Folder):
    """Formulas as they are, with choices among the fluents that they look at."""

    def __init__(self, choices: Choices) -> None:
        super().__init__((), ())
        self.meaning = choices.meaning
        self.values = values_of(choices.fluents)

    def variants(self, formula: Expression) -> Iterator[tuple[tuple[int, ...] | None, Expression]]:
        """The formula itself."""
        own = {n: self.meaning[n] for n in formula.fluents if n in self.meaning}
        yield None, substitute(formula, own)


def _is_cheaper(problem: Problem) -> bool:
    if problem.most_nondefault < 2:
        return False
    return count_actions(problem.actions, problem.most_nondefault) >= CHEAPER_FROM


def build_jointly(problem: Problem, most_actions: int, most_entries: int) -> Imported:
    """The model of a ground problem with a variable for each action fluent.

    Cost: for each formula, the assignments of its own action fluents times its table.
    """
    actions = action_variables(problem, most_actions)
    folder = JointFolder(problem.actions, problem.most_nondefault, most_actions)
    problem = with_reachable_values(problem, folder, most_entries)
    values, rank = _all_values(problem), rank_of(problem)
    sizes = {name: len(found) for name, found in values.items()}
    evaluator = Evaluator(values, rank, most_entries)
    compiler = Compiler(evaluator, folder)
    states = frozenset(problem.states)
    conditionals = [
        Conditional(
            label,
            joint_case(folder, formula, compiler.transition(label, formula), sizes, rank, states),
        )
        for label, formula in problem.formulas.items()
    ]
    rewards = []
    for position, formula in enumerate(problem.rewards):
        grouped = compiler.reward(position, formula)
        case = joint_case(folder, formula, grouped, sizes, rank, states)
        rewards.append(_named_reward(position, grouped, [case]))
    model = FactoredMDP(
        variables=_variables(problem, values),
        latents=[Variable(label, sizes[label]) for label in problem.latents],
        actions=actions,
        conditionals=conditionals,
        rewards=rewards,
        horizon=problem.horizon,
        discount=problem.discount,
        initial={label: values[label].index(problem.initial[label]) for label in problem.states},
    )
    count = actions.n_joint or actions.count_of_at_most()
    notes = (*problem.notes, *_clipped(evaluator))
    return Imported(problem.name, model, values, {}, count, notes)


def _clipped(evaluator: Evaluator) -> list[str]:
    if not evaluator.clipped:
        return []
    return [
        f"{evaluator.clipped} probabilities outside [0, 1] are put back to 0 or 1; "
        "the simulator stops in such states"
    ]


def build(
    problem: Problem,
    actions: Mapping[str, Assignment],
    most_entries: int = MOST_ENTRIES,
    join: bool = False,
) -> Imported:
    """The model of a ground problem with listed actions, exclusive fluents joined if asked for.

    Cost: for each formula, the joint actions it can tell apart times its table.
    """
    folder = Folder(problem.actions, tuple(actions.values()))
    problem = with_reachable_values(problem, folder, most_entries)
    narrowed = narrow_listed(problem, folder)
    problem = narrowed.problem
    evaluator = Evaluator(_all_values(problem), rank_of(problem), most_entries)
    compiler = Compiler(evaluator, folder)
    transitions: dict[str, Cases[Local]] = {}
    for position, (label, formula) in enumerate(problem.formulas.items()):
        if position % REPORT_EVERY == 0:
            log.info("%s: table %d of %d", problem.name, position + 1, len(problem.formulas))
        transitions[label] = compiler.transition(label, formula)
    rewards = [compiler.reward(at, formula) for at, formula in enumerate(problem.rewards)]
    names = list(actions)
    allowed = listed_conditions(problem, folder, names, evaluator)
    apart = allowed_apart(allowed, names)
    parts: list[Cases[Any]] = [*transitions.values(), *rewards, *apart]
    alike = actions_alike(parts, len(names)).values()
    kept = {first: others for first, *others in alike}
    notes = [*problem.notes, *_clipped(evaluator)]
    log.info("%s: building the model", problem.name)
    values = _all_values(problem)
    variables = _variables(problem, values, narrowed.members)
    model = _model(problem, variables, transitions, rewards, names, kept)
    if allowed or problem.terminal:
        left = {names[position] for position in kept}
        model = model.replace(
            allowed=[case for one in allowed for case in restricted(one, left)],
            terminal=terminal_tables(problem, evaluator),
        )
    if join:
        model, values = join_fluents(problem.name, model, values)
    return Imported(
        problem.name,
        model,
        values,
        {names[one]: tuple(names[other] for other in others) for one, others in kept.items()},
        len(names),
        tuple(notes),
    )


def _all_values(problem: Problem) -> dict[str, tuple[int, ...]]:
    known = {label: values for label, values in problem.values.items() if values is not None}
    return known | {f"{label}'": known[label] for label in problem.states}


def _model(
    problem: Problem,
    variables: Sequence[Variable],
    transitions: Mapping[str, Cases[Local]],
    rewards: Sequence[Cases[Local]],
    names: Sequence[str],
    kept: Mapping[int, Sequence[int]],
) -> FactoredMDP:
    values = _all_values(problem)
    states = frozenset(problem.states)
    actions = [names[position] for position in kept]
    return FactoredMDP(
        variables=variables,
        latents=[Variable(label, len(values[label])) for label in problem.latents],
        actions=actions,
        conditionals=[
            Conditional(label, _cases(grouped, names, kept, states))
            for label, grouped in transitions.items()
        ],
        rewards=[
            _reward(position, grouped, names, kept, states)
            for position, grouped in enumerate(rewards)
        ],
        horizon=problem.horizon,
        discount=problem.discount,
        initial={label: values[label].index(problem.initial[label]) for label in problem.states},
    )


def _cases(
    grouped: Cases[Local],
    names: Sequence[str],
    kept: Mapping[int, Sequence[int]],
    states: frozenset[str],
) -> list[Case]:
    """A case for each group of actions; the default is for ANY action that no other names."""
    members: dict[int, list[str]] = defaultdict(list)
    for action in kept:
        members[grouped.group(action)].append(names[action])
    members.pop(0, None)
    return [
        *(_case(found, grouped.groups[group], states) for group, found in members.items()),
        _case(None, grouped.groups[0], states),
    ]


def _case(actions: list[str] | None, local: Local, states: frozenset[str]) -> Case:
    parents = [name for name in local.scope if name in states]
    drawn = [name.removesuffix("'") for name in local.scope if name not in states]
    return Case(ANY if actions is None else actions, parents, local.table, drawn)


def _reward(
    position: int,
    grouped: Cases[Local],
    names: Sequence[str],
    kept: Mapping[int, Sequence[int]],
    states: frozenset[str],
) -> Reward:
    return _named_reward(position, grouped, _cases(grouped, names, kept, states))


def _named_reward(position: int, grouped: Cases[Local], cases: Sequence[Case]) -> Reward:
    looked_at = dict.fromkeys(name for local in grouped.groups for name in local.scope)
    shown = " ".join(list(looked_at)[:2]) + (" ..." if len(looked_at) > 2 else "")
    return Reward(
        f"r{position + 1} {shown}".strip(),
        cases,
        low=min(float(case.table.min()) for case in cases),
        high=max(float(case.table.max()) for case in cases),
    )
