"""`cross_check`: a model against pyRDDLGym's simulator, over random walks."""

from __future__ import annotations

import logging
import math
import os
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import as_whole, show, show_names
from fsmdp.foundation.streams import Purpose, generator
from fsmdp.io.rddl.build import AUTO, Imported, Wanted
from fsmdp.io.rddl.grounding import Grounder
from fsmdp.io.rddl.loading import guarded, load_source
from fsmdp.io.rddl.parsing import parse, pyrddlgym
from fsmdp.io.rddl.problem import Problem, read_problem
from fsmdp.io.rddl.sources import InvalidError, Source, find_source
from fsmdp.io.rddl.translation import (
    Ground,
    JointActions,
    States,
    ground_action,
    ground_of,
    is_joined,
    name_of_nothing,
)
from fsmdp.model.actions import Choice
from fsmdp.model.conditionals import Ancestry
from fsmdp.model.marginals import compute_marginal
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.tables import Floats
from fsmdp.model.variables import Scope

TRIALS = 200
"""Actions that are tried in a state until one is allowed."""

PROPOSED = 4
"""Sets of ground fluents in every state for which both say whether they are allowed."""


class Walker:
    """pyRDDLGym's own simulator of the lifted problem, beside a model that is checked."""

    def __init__(
        self,
        source: Source,
        problem: Problem,
        imported: Imported,
        checked: FactoredMDP,
        rng: np.random.Generator,
    ) -> None:
        from pyRDDLGym.core.simulator import RDDLSimulator

        lifted, _ = parse(source)
        with pyrddlgym(source, []):
            self.simulator = RDDLSimulator(lifted, rng=rng, keep_tensors=True)
        self.source, self.lifted, self.rng = source, lifted, rng
        self.problem, self.model = problem, checked
        self.refused = 0
        self.verdicts = 0
        self.disagreements: list[str] = []
        self.can_start_anywhere = all(values is not None for values in problem.values.values())
        # Constraints that pyRDDLGym does not know may forbid more than its preconditions.
        self.is_stricter = bool(getattr(lifted.ast.domain, "constraints", []))
        grounder = Grounder(lifted)
        self._places = {
            grounder.label(name, arguments): (name, arguments)
            for name in lifted.action_fluents
            for arguments in grounder.instances(name)
        }
        self._objects = lifted.object_to_index
        self._fluents = {
            grounder.label(name, arguments): (name, arguments)
            for name in lifted.state_fluents
            for arguments in grounder.instances(name)
        }
        self._labels = list(self._fluents)
        self._index = {
            label: {value: at for at, value in enumerate(imported.values[label])}
            for label in self._labels
            if label in imported.values
        }
        self._states = States(checked)
        self._actions = JointActions(checked)
        nothing = name_of_nothing(checked.actions)
        self._names: dict[frozenset[tuple[str, bool | str]], str] = {}
        if not checked.actions.variables:
            for one in checked.actions:
                for name in (one, *imported.aliases.get(one, ())):
                    self._names[frozenset(ground_action(name, nothing).items())] = one
        self._listed = list(self._names)

    def walk(self, random_start: bool) -> Iterator[tuple[list[int], Choice, float, list[int]]]:
        """State, action, reward and a next state of each step, as the model writes them.

        The walk goes on from another next state, drawn for itself.
        """
        self.simulator.reset()
        if random_start:
            self._randomise()
        before = self._state()
        for _ in range(self.problem.horizon):
            if self._is_over(before):
                return
            found = self._allowed_action(before)
            if found is None:
                return
            ground, choice = found
            tensors = self._tensors(ground)
            here = dict(self.simulator.subs)
            try:
                reward = self._step(tensors)
                after = self._state()
                self.simulator.subs = here
                self._step(tensors)
            except InvalidError:
                # States that no walk from the start reaches may make no sense to the simulator.
                if not random_start:
                    raise
                self.refused += 1
                return
            yield list(before), choice, reward, list(after)
            before = self._state()

    def _is_over(self, state: tuple[int, ...]) -> bool:
        with pyrddlgym(self.source, []):
            theirs = bool(self.simulator.check_terminal_states())
        self._compare(theirs, self.model.is_terminal(state), f"the end in {show(state)}")
        return theirs

    def _compare(self, theirs: bool, ours: bool, what: str) -> None:
        self.verdicts += 1
        if theirs != ours:
            self.disagreements.append(f"{what}: {theirs} in the simulator, {ours} in the model")

    def _allowed_action(self, state: tuple[int, ...]) -> tuple[Ground, Choice] | None:
        """A random action that both allow; every verdict on the way must be the same."""
        fallback: tuple[Ground, Choice] | None = None
        for trial in range(TRIALS):
            ground = self._proposed(trial)
            if len(ground) > self.problem.most_nondefault:
                continue
            choice = self._choice(ground)
            ours = choice is not None and self.model.conditions.allows(state, choice)
            theirs = self._allows(ground)
            if ours or not self.is_stricter:
                self._compare(theirs, ours, f"{show(ground)} in {show(state)}")
            if ours and theirs:
                assert choice is not None
                fallback = (ground, choice)
                if trial >= PROPOSED:
                    break
        return fallback if fallback is not None else self._any_action(state)

    def _proposed(self, trial: int) -> Ground:
        """Ground fluents to set: at random, or of an action of the model."""
        if self._listed and trial >= PROPOSED:
            return dict(self._listed[int(self.rng.integers(len(self._listed)))])
        labels = list(self._places)
        count = int(self.rng.integers(min(4, len(labels)) + 1))
        found: Ground = {}
        fluents = {fluent.name: fluent for fluent in self.problem.actions}
        for at in self.rng.permutation(len(labels))[:count]:
            fluent = fluents[labels[int(at)]]
            value = fluent.others[int(self.rng.integers(len(fluent.others)))]
            found |= ground_action(fluent.text(value), "")
        return found

    def _any_action(self, state: tuple[int, ...]) -> tuple[Ground, Choice] | None:
        """The first action that the model allows, where chance found none."""
        space = self.model.actions
        if space.variables:
            row = next(self.model.conditions.joint_actions(state), None)
            choice: Choice | None = row
        else:
            mask = self.model.conditions.mask(np.array([state]))[0]
            choice = int(self.rng.choice(np.flatnonzero(mask))) if mask.any() else None
        if choice is None:
            return None
        ground = ground_of(space, choice)
        self._compare(self._allows(ground), True, f"{show(ground)} in {show(state)}")
        return ground, choice

    def _choice(self, ground: Ground) -> Choice | None:
        space = self.model.actions
        if not space.variables:
            name = self._names.get(frozenset(ground.items()))
            return None if name is None else space.position(name)
        values = self._actions.values(ground)
        return values if values is not None and space.allows(values) else None

    def _allows(self, ground: Ground) -> bool:
        with pyrddlgym(self.source, []):
            return bool(
                self.simulator.check_action_preconditions(self._tensors(ground), silent=True)
            )

    def _step(self, tensors: Mapping[str, Any]) -> float:
        with pyrddlgym(self.source, []):
            return float(self.simulator.step(tensors)[1])

    def _tensors(self, ground: Ground) -> dict[str, Any]:
        actions = {name: np.copy(value) for name, value in self.simulator.noop_actions.items()}
        for label, value in ground.items():
            name, arguments = self._places[label]
            number = self._objects.get(value, value) if isinstance(value, str) else value
            actions[name][tuple(arguments)] = number
        return actions

    def _state(self) -> tuple[int, ...]:
        flat = [np.ravel(self.simulator.subs[name]) for name in self.lifted.state_fluents]
        values: dict[str, int] = {}
        for label, value in zip(self._labels, np.concatenate(flat), strict=True):
            at = self._index.get(label)
            if at is None:  # a fluent that a joined variable stands for
                values[label] = int(value)
            elif int(value) in at:
                values[label] = at[int(value)]
            else:
                raise ModelError(
                    f"the simulator gives {label} the value {int(value)}, which the model does "
                    f"not have; expected one of {show_names(map(str, at))}."
                )
        return self._states.state(values)

    def _randomise(self) -> None:
        for name, range_name in self.lifted.state_ranges.items():
            old = np.asarray(self.simulator.subs[name])
            size = 2 if range_name == "bool" else len(self.lifted.type_to_objects[range_name])
            drawn = self.rng.integers(size, size=old.shape)
            self.simulator.subs[name] = np.asarray(drawn).astype(old.dtype)
        for variable in filter(is_joined, self.model.variables):  # one of these is true
            chosen = variable.labels[int(self.rng.integers(variable.size))]
            for label in variable.labels:
                if label in self._fluents:
                    name, arguments = self._fluents[label]
                    self.simulator.subs[name][tuple(arguments)] = label == chosen


log = logging.getLogger("fsmdp")

REWARD_TOLERANCE = 1e-9
MOST_PAIRS = 64
MOST_PARENTS = 2**14
"""Assignments of all that next values depend on, up to which their law is one table."""

ROUNDING = 1e-12
"""Probabilities that differ less from 0 or 1 are that, after sums and products."""

MOST_MECHANISMS = 12
"""What has to be drawn for next values, up to which their law is one table."""


@dataclass(frozen=True, slots=True, eq=False)
class CrossCheck:
    """What a comparison found.

    `largest_reward_error` is relative to the largest reward met; `impossible` lists next
    values that the model gives no probability; `least_p` is the smallest p-value of `tests`
    comparisons of frequencies, which together raise a false alarm with probability at most
    `level`. `refused` counts walks from random states that the simulator broke off. `verdicts`
    counts states and actions of which both said whether the episode is over and whether the action
    is allowed; `disagreements` lists those on which they differ.
    """

    name: str
    steps: int
    refused: int
    largest_reward_error: float
    impossible: tuple[str, ...]
    tests: int
    least_p: float
    least_at: str
    level: float
    verdicts: int = 0
    disagreements: tuple[str, ...] = ()

    @property
    def rewards_agree(self) -> bool:
        """Whether every reward was the model's."""
        return self.largest_reward_error <= REWARD_TOLERANCE

    @property
    def transitions_agree(self) -> bool:
        """Whether all that happened could happen, and about as often as it should."""
        return not self.impossible and self.least_p * max(1, self.tests) >= self.level

    @property
    def passed(self) -> bool:
        """Whether the model and the simulator agree."""
        return self.rewards_agree and self.transitions_agree and not self.disagreements

    def require(self) -> CrossCheck:
        """This result if they agree, a ModelError that says where if they do not."""
        if self.disagreements:
            raise ModelError(
                f"{self.name}: allowed actions or ends differ from the simulator's, "
                f"{self.disagreements[0]}."
            )
        if not self.rewards_agree:
            raise ModelError(
                f"{self.name}: a reward differs from the simulator's by "
                f"{self.largest_reward_error:.3g}, expected at most {REWARD_TOLERANCE:g}."
            )
        if not self.transitions_agree:
            where = self.impossible[0] if self.impossible else self.least_at
            raise ModelError(
                f"{self.name}: next values differ from the simulator's at {where} (p-value "
                f"{self.least_p:.3g} in {self.tests} tests, level {self.level:g})."
            )
        return self


def cross_check(
    domain: str | os.PathLike[str],
    instance: str | int | os.PathLike[str],
    *,
    model: FactoredMDP | None = None,
    walks: int = 20,
    level: float = 1e-6,
    seed: int = 0,
    cache: bool = True,
) -> CrossCheck:
    """Follow random walks in pyRDDLGym's simulator and compare each step with the model.

    Rewards must agree to 1e-9. For each variable, and for pairs of variables that share a draw,
    next values are counted and set against the model's probabilities: in each case that the model
    tells apart by an exact binomial test, over all cases together by Bernstein's inequality. The
    next values that are counted are drawn apart from those that the walk goes on with, so that
    given the walk they are independent; with the level divided among the tests (Bonferroni) a
    right model fails with probability at most `level`.
    Walks have the length of the horizon; every other one starts in a random state, where the
    problem has no integers. `model` may be another model than the imported one, with the same
    variables and actions.
    Cost: `walks` times the horizon, twice, steps of the simulator.
    """
    source = find_source(domain, instance)
    as_whole(walks, "walks", 1)
    imported = load_source(source, Wanted(actions=AUTO), cache)
    checked = imported.model if model is None else model
    return guarded(source.name, lambda: _checked(source, imported, checked, walks, level, seed))


def _checked(
    source: Source, imported: Imported, checked: FactoredMDP, walks: int, level: float, seed: int
) -> CrossCheck:
    problem = read_problem(source)
    expected = [variable.name for variable in imported.model.variables]
    if [variable.name for variable in checked.variables] != expected:
        raise ModelError(
            f"cross_check: the model has other variables than {source.name}; expected its ground "
            "state fluents in order, load it with fsmdp.rddl.load."
        )
    rng = generator(seed, Purpose.CROSS_CHECK)
    walker = Walker(source, problem, imported, checked, rng)
    steps = _Steps()
    for walk in range(walks):
        log.info("%s: walk %d of %d", source.name, walk + 1, walks)
        for step in walker.walk(walk % 2 == 1 and walker.can_start_anywhere):
            steps.add(*step)
    found = _compare(checked, steps.rows, source.name, walker.refused, level)
    return replace(found, verdicts=walker.verdicts, disagreements=tuple(walker.disagreements))


Step = tuple[list[int], Choice, float, list[int]]


class _Steps:
    """What a simulator did, step by step."""

    def __init__(self) -> None:
        self.rows: list[Step] = []

    def add(self, before: list[int], action: Choice, reward: float, after: list[int]) -> None:
        self.rows.append((before, action, reward, after))


def _compare(
    model: FactoredMDP, steps: Sequence[Step], name: str, refused: int, level: float
) -> CrossCheck:
    means = np.array([model.mean_reward(before, action) for before, action, _, _ in steps])
    rewards = np.array([reward for _, _, reward, _ in steps])
    errors = np.abs(means - rewards) / (np.abs(rewards).max(initial=0.0) or 1.0)
    impossible: list[str] = []
    p_values: list[tuple[float, str]] = []
    for scope in [(p,) for p in range(len(model.variables))] + _pairs_sharing_draws(model):
        together: dict[tuple[int, ...], list[float]] = defaultdict(lambda: [0.0, 0.0])
        names = ", ".join(model.variables[p].name for p in scope)
        for cell in _cells(model, scope, steps):
            where = f"next ({names}) = {cell.value} {cell.where}"
            if cell.probability <= 0.0:
                impossible.append(where)
                continue
            p_values.append((_binomial_p_value(cell), where))
            expected = cell.trials * cell.probability
            together[cell.value][0] += cell.count - expected
            together[cell.value][1] += expected * (1 - cell.probability)
        for value, (excess, variance) in together.items():
            bound = _bernstein_p_value(excess, variance)
            p_values.append((bound, f"next ({names}) = {value} over all states"))
    least_p, least_at = min(p_values, default=(1.0, "nowhere"))
    return CrossCheck(
        name,
        len(steps),
        refused,
        float(errors.max(initial=0.0)),
        tuple(impossible),
        len(p_values),
        least_p,
        least_at,
        level,
    )


@dataclass(frozen=True, slots=True)
class _Cell:
    """How often a value came in a case, of how many, and its probability in the model."""

    value: tuple[int, ...]
    where: str
    count: int
    trials: int
    probability: float


def _cells(model: FactoredMDP, scope: Scope, steps: Sequence[Step]) -> Iterator[_Cell]:
    """Each value in each case that was met.

    Values that the model is certain of and that always came are left out; one that came although
    the model excludes it has probability 0, and so has one that did not although it must.
    """
    laws = _Laws(model, scope)
    counts: dict[Any, Counter[tuple[int, ...]]] = defaultdict(Counter)
    rows: dict[Any, tuple[str, Floats]] = {}
    for state, action, _, following in steps:
        key, where, row = laws.at(state, action)
        rows[key] = where, row
        counts[key][tuple(int(following[p]) for p in scope)] += 1
    for key, found in counts.items():
        where, row = rows[key]
        trials = found.total()
        for value in np.ndindex(row.shape):
            probability, count = float(row[value]), found[value]
            if 0.0 < probability < 1.0:
                yield _Cell(value, where, count, trials, probability)
            elif count != trials * probability:
                yield _Cell(value, where, count, trials, 0.0)


class _Laws:
    """Distributions of some next values given a state and an action.

    From a table over all that they depend on where that is small; otherwise for each state and
    action by itself, and those with equal distributions are one case.
    """

    def __init__(self, model: FactoredMDP, scope: Scope) -> None:
        self.model, self.scope = model, scope
        self.ancestries = model.dynamics.ancestry(scope)
        sizes = model.input_sizes
        small = all(
            math.prod(sizes[p] for p in one.parent_scope) <= MOST_PARENTS
            and len(one.mechanisms) <= MOST_MECHANISMS
            for one in self.ancestries
        )
        self.cases = compute_marginal(scope, model.dynamics, sizes) if small else None
        self._known: dict[tuple[int, tuple[int, ...]], Floats] = {}

    def at(self, state: Sequence[int], action: Choice) -> tuple[Any, str, Floats]:
        """A key that is equal in equal cases, how messages call the case, and the distribution."""
        case, values = (action, ()) if isinstance(action, int) else (0, action)
        inputs = (*state, *values)
        if self.cases is not None:
            group = self.cases.group(case)
            one = self.cases.groups[group]
            parents = tuple(int(inputs[p]) for p in one.parent_scope)
            where = f"in group {group}, parents {show(parents)}"
            return (group, parents), where, one.probabilities[parents]
        group = self.ancestries.group(case)
        ancestry = self.ancestries.groups[group]
        parents = tuple(int(inputs[p]) for p in ancestry.parent_scope)
        if (group, parents) not in self._known:
            self._known[group, parents] = self._law(ancestry, inputs)
        row = self._known[group, parents]
        return row.tobytes(), "in some states", row

    def _law(self, ancestry: Ancestry, inputs: Sequence[int]) -> Floats:
        """Multiply what is drawn and sum out all but the scope, what is certain first."""
        mechanisms = self.model.dynamics.mechanisms
        known: dict[int, int] = {}
        factors: list[tuple[tuple[int, ...], Floats]] = []
        for index, kernel in zip(ancestry.mechanisms, ancestry.kernels, strict=True):
            children = mechanisms[index].children
            at = tuple(inputs[p] for p in kernel.parents)
            at += tuple(known.get(p, slice(None)) for p in kernel.drawn)  # type: ignore[arg-type]
            table = kernel.table[at]
            free = tuple(p for p in kernel.drawn if p not in known)
            if not free and len(children) == 1 and table.max() == 1.0:
                known[children[0]] = int(table.argmax())
            else:
                factors.append(((*free, *children), table))
        return self._summed_out(factors, known)

    def _summed_out(
        self, factors: list[tuple[tuple[int, ...], Floats]], known: Mapping[int, int]
    ) -> Floats:
        sizes = self.model.dynamics.drawn_sizes
        waiting = {p for scope, _ in factors for p in scope} - set(self.scope)
        while waiting:
            unions = {
                p: sorted({q for scope, _ in factors if p in scope for q in scope} - {p})
                for p in waiting
            }
            chosen = min(sorted(waiting), key=lambda p: math.prod(sizes[q] for q in unions[p]))
            waiting.remove(chosen)
            own = [factor for factor in factors if chosen in factor[0]]
            factors = [factor for factor in factors if chosen not in factor[0]]
            factors.append((tuple(unions[chosen]), _product(own, unions[chosen])))
        free = [p for p in self.scope if p not in known]
        table = _product([f for f in factors if f[0]], free)
        for axis, position in enumerate(self.scope):
            if position in known:
                whole = np.zeros((*table.shape[:axis], sizes[position], *table.shape[axis:]))
                whole[(slice(None),) * axis + (known[position],)] = table
                table = whole
        table = np.where(np.abs(table - 1.0) < ROUNDING, 1.0, table)
        return np.ascontiguousarray(np.where(table < ROUNDING, 0.0, table))


def _product(factors: Sequence[tuple[tuple[int, ...], Floats]], kept: Sequence[int]) -> Floats:
    labels: dict[int, int] = {}
    operands: list[Any] = []
    for scope, table in factors:
        operands += [table, [labels.setdefault(p, len(labels)) for p in scope]]
    if not operands:
        return np.ones(())
    return np.asarray(np.einsum(*operands, [labels[p] for p in kept]))


def _pairs_sharing_draws(model: FactoredMDP) -> list[Scope]:
    """Variables whose next values depend on the same draw: they may be correlated."""
    drawn_by = model.dynamics.drawn_by
    ancestors = []
    for position in range(len(model.variables)):
        groups = model.dynamics.ancestry((position,))
        ancestors.append({index for ancestry in groups for index in ancestry.mechanisms})
    pairs: list[Scope] = [
        (one, other)
        for one, other in combinations(range(len(model.variables)), 2)
        if ancestors[one] & ancestors[other] or drawn_by[one] == drawn_by[other]
    ]
    return pairs[:: max(1, math.ceil(len(pairs) / MOST_PAIRS))]


def _binomial_p_value(cell: _Cell) -> float:
    from scipy.stats import binom

    low = binom.cdf(cell.count, cell.trials, cell.probability)
    high = binom.sf(cell.count - 1, cell.trials, cell.probability)
    return float(min(1.0, 2 * min(low, high)))


def _bernstein_p_value(excess: float, variance: float) -> float:
    """P(|sum of (X_i - p_i)| >= |excess|) <= 2 exp(-excess^2 / (2 variance + 2 |excess| / 3))."""
    if not excess:
        return 1.0
    return min(1.0, 2 * math.exp(-(excess**2) / (2 * variance + 2 * abs(excess) / 3)))
