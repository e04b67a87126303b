"""A ground problem to a FactoredMDP, with actions that do the same made one."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fsmdp.errors import ModelError
from fsmdp.interop.rddl.actions import MOST_ACTIONS, count_actions, joint_actions
from fsmdp.interop.rddl.compiling import Compiler, Folder, Local
from fsmdp.interop.rddl.distributions import MOST_ENTRIES, Evaluator
from fsmdp.interop.rddl.exclusive import join_fluents
from fsmdp.interop.rddl.joint import CHEAPER_FROM, JointFolder, action_variables, joint_case
from fsmdp.interop.rddl.problem import Problem, rank_of, read_problem
from fsmdp.interop.rddl.ranges import with_reachable_values
from fsmdp.interop.rddl.sources import Source
from fsmdp.model.cases import ANY, Case, Cases, actions_alike
from fsmdp.model.conditionals import Conditional
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.rewards import Reward
from fsmdp.model.variables import Variable

log = logging.getLogger("fsmdp")

REPORT_EVERY = 50

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
    if actions == FACTORED or (actions == AUTO and not wanted.join and _is_cheaper(problem)):
        try:
            return build_jointly(problem, wanted.most_actions, wanted.most_entries)
        except ModelError:
            if actions == FACTORED:
                raise
            log.info("%s: action variables do not fit, a list may", problem.name)
    return build(problem, wanted.most_actions, wanted.most_entries, wanted.join)


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
        variables=[Variable(label, sizes[label]) for label in problem.states],
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
    most_actions: int = MOST_ACTIONS,
    most_entries: int = MOST_ENTRIES,
    join: bool = False,
) -> Imported:
    """The model of a ground problem, with exclusive fluents joined if asked for.

    Cost: for each formula, the joint actions it can tell apart times its table.
    """
    actions = joint_actions(
        problem.actions, problem.most_nondefault, problem.preconditions, most_actions
    )
    folder = Folder(problem.actions, tuple(actions.values()))
    problem = with_reachable_values(problem, folder, most_entries)
    evaluator = Evaluator(_all_values(problem), rank_of(problem), most_entries)
    compiler = Compiler(evaluator, folder)
    transitions: dict[str, Cases[Local]] = {}
    for position, (label, formula) in enumerate(problem.formulas.items()):
        if position % REPORT_EVERY == 0:
            log.info("%s: table %d of %d", problem.name, position + 1, len(problem.formulas))
        transitions[label] = compiler.transition(label, formula)
    rewards = [compiler.reward(at, formula) for at, formula in enumerate(problem.rewards)]
    names = list(actions)
    alike = actions_alike([*transitions.values(), *rewards], len(names)).values()
    kept = {first: others for first, *others in alike}
    notes = [*problem.notes, *_clipped(evaluator)]
    log.info("%s: building the model", problem.name)
    model, values = _model(problem, transitions, rewards, names, kept), _all_values(problem)
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
    transitions: Mapping[str, Cases[Local]],
    rewards: Sequence[Cases[Local]],
    names: Sequence[str],
    kept: Mapping[int, Sequence[int]],
) -> FactoredMDP:
    values = _all_values(problem)
    states = frozenset(problem.states)
    actions = [names[position] for position in kept]
    return FactoredMDP(
        variables=[Variable(label, len(values[label])) for label in problem.states],
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
