"""Boolean fluents of which at most one is true, as one variable with a value for each.

`robot-at(x, y)` says where a robot is; as booleans, most states have it nowhere or in several
places at once, and a value function has to be bounded there too. One variable has none of them.
That at most one stays true is proved from the formulas, under every joint action.
"""

from __future__ import annotations

import logging
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations

from fsmdp.interop.rddl import expressions as make
from fsmdp.interop.rddl.compiling import Folder, outcomes
from fsmdp.interop.rddl.distributions import Evaluator
from fsmdp.interop.rddl.errors import TooLargeError, UnsupportedError
from fsmdp.interop.rddl.expressions import Expression, substitute
from fsmdp.interop.rddl.problem import Problem, Values, rank_of

log = logging.getLogger("fsmdp")

MOST_JOINED_ENTRIES = 2**18
"""A joined variable whose table would be larger is left as it is."""

NOWHERE = 0
"""The value of a joined variable when none of its members is true."""


def join_exclusive(problem: Problem, folder: Folder, most_entries: int) -> Problem:
    """The problem with every provably exclusive group of fluents joined.

    A joined variable is called like its members without the arguments that vary: `robot-at`,
    `elevator-at-floor(e1)`. It stands for the position of the true member, counted from 1, or 0 if
    none is, and has a value for each of these that it may come to.
    Cost: the members' formulas once for each member.
    """
    waiting, before = list(_candidates(problem)), None
    while problem is not before:  # what was too large may fit once others are joined
        before, left = problem, []
        for name, members in waiting:
            if not set(members) <= set(problem.states):
                continue  # an earlier, larger group has some of them
            joined = _joined(problem, name, members, folder, most_entries)
            if joined is None:
                left.append((name, members))
                continue
            log.info("%s: %d fluents joined into %s", problem.name, len(members), name)
            problem = joined
        waiting = left
    return problem


def _candidates(problem: Problem) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Groups of one fluent's instances that agree on some arguments, the largest groups first."""
    by_fluent: dict[str, dict[str, tuple[str, ...]]] = defaultdict(dict)
    for label in problem.states:
        fluent, _, rest = label.partition("(")
        if rest and problem.values[label] == (0, 1):
            by_fluent[fluent][label] = tuple(rest.removesuffix(")").split(","))
    for fluent, instances in by_fluent.items():
        arity = len(next(iter(instances.values())))
        for kept in range(arity):
            for fixed in combinations(range(arity), kept):
                groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
                for label, arguments in instances.items():
                    groups[tuple(arguments[at] for at in fixed)].append(label)
                for values, members in groups.items():
                    if len(members) > 1:
                        name = f"{fluent}({','.join(values)})" if values else fluent
                        yield name, tuple(members)


def _joined(
    problem: Problem, name: str, members: Sequence[str], folder: Folder, most_entries: int
) -> Problem | None:
    """The problem with one group joined, or None if that cannot be proved right or is large."""
    start = [position for position, label in enumerate(members, 1) if problem.initial[label]]
    primed = {f"{label}'" for label in members}
    if len(start) > 1 or any(not primed.isdisjoint(f.fluents) for f in problem.formulas.values()):
        return None
    known = {label: values for label, values in problem.values.items() if values is not None}
    # Members become constants; other integers have no range yet, and stop the attempt.
    ranges = known | {f"{label}'": known[label] for label in problem.states if label in known}
    evaluator = Evaluator(ranges, rank_of(problem), most_entries)
    chains: list[Expression] = []
    followers: list[set[int]] = []
    for held in range(len(members) + 1):
        values = {label: make.constant(at == held) for at, label in enumerate(members, 1)}
        try:
            formulas = [substitute(problem.formulas[label], values) for label in members]
            if not _at_most_one(formulas, folder, evaluator):
                return None
            chains.append(_first_true(formulas))
            followers.append(outcomes(chains[-1], folder, evaluator))
        except (TooLargeError, UnsupportedError, KeyError):
            return None
    first = start[0] if start else NOWHERE
    whole = make.selection(make.fluent(name), chains)
    found = _replaced(problem, name, members, whole, _reached(first, followers), first)
    return found if _fits(found, name, folder) else None


def _reached(first: int, followers: Sequence[set[int]]) -> Values:
    """The values that can come after the first one, itself included."""
    found, waiting = {first}, [first]
    while waiting:
        new = followers[waiting.pop()] - found
        found |= new
        waiting += new
    return tuple(sorted(found))


def _at_most_one(formulas: Sequence[Expression], folder: Folder, evaluator: Evaluator) -> bool:
    possible = [formula for formula in formulas if not formula.is_value(False)]
    return not any(
        1 in outcomes(make.conjunction(pair), folder, evaluator)
        for pair in combinations(possible, 2)
    )


def _first_true(formulas: Sequence[Expression]) -> Expression:
    """The position, from 1, of the formula that is true; 0 if none is."""
    chain = make.constant(NOWHERE)
    for position in range(len(formulas), 0, -1):
        chain = make.choice(formulas[position - 1], make.constant(position), chain)
    return chain


def _replaced(
    problem: Problem,
    name: str,
    members: Sequence[str],
    whole: Expression,
    options: Values,
    start: int,
) -> Problem:
    """The problem in which the joined variable stands where its first member stood."""
    first, gone = members[0], frozenset(members)
    variable = make.fluent(name)
    if len(options) == 1:
        variable = make.constant(start)  # it never changes, so nobody need look at it
    tests = {
        label: make.apply("==", [variable, make.constant(position)])
        for position, label in enumerate(members, 1)
    }
    formulas = {
        name if label == first else label: whole if label == first else substitute(formula, tests)
        for label, formula in problem.formulas.items()
        if label == first or label not in gone
    }
    return replace(
        problem,
        states=tuple(
            name if label == first else label
            for label in problem.states
            if label == first or label not in gone
        ),
        values={k: v for k, v in problem.values.items() if k not in gone} | {name: options},
        formulas=formulas,
        rewards=tuple(substitute(term, tests) for term in problem.rewards),
        preconditions=tuple(substitute(one, tests) for one in problem.preconditions),
        initial={k: v for k, v in problem.initial.items() if k not in gone} | {name: start},
    )


def _fits(problem: Problem, name: str, folder: Folder) -> bool:
    def size(label: str) -> int:
        values = problem.values[label.removesuffix("'")]
        return MOST_JOINED_ENTRIES if values is None else len(values)

    return all(
        size(name) * math.prod(size(label) for label in variant.fluents) <= MOST_JOINED_ENTRIES
        for _, variant in folder.variants(problem.formulas[name])
    )
