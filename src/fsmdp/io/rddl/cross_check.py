"""`cross_check`: a model against pyRDDLGym's simulator, over random walks."""

from __future__ import annotations

import logging
import math
import os
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import as_whole, show, show_names
from fsmdp.foundation.streams import Purpose, generator
from fsmdp.io.rddl.build import Imported
from fsmdp.io.rddl.compiling import Assignment, joint_actions
from fsmdp.io.rddl.grounding import Grounder
from fsmdp.io.rddl.loading import guarded, load_source
from fsmdp.io.rddl.parsing import parse, pyrddlgym
from fsmdp.io.rddl.problem import Problem, read_problem
from fsmdp.io.rddl.sources import InvalidError, Source, find_source
from fsmdp.model.marginals import compute_marginal
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.variables import Scope


class Walker:
    """pyRDDLGym's own simulator of the lifted problem."""

    def __init__(
        self,
        source: Source,
        problem: Problem,
        actions: Mapping[str, Assignment],
        rng: np.random.Generator,
    ) -> None:
        from pyRDDLGym.core.simulator import RDDLSimulator

        lifted, _ = parse(source)
        with pyrddlgym(source, []):
            self.simulator = RDDLSimulator(lifted, rng=rng, keep_tensors=True)
        self.source = source
        self.lifted = lifted
        self.rng = rng
        self.horizon = problem.horizon
        self.refused = 0
        self.has_integers = any(values is None for values in problem.values.values())
        grounder = Grounder(lifted)
        self._places = {
            grounder.label(name, arguments): (name, arguments)
            for name in lifted.action_fluents
            for arguments in grounder.instances(name)
        }
        self._assignments = actions

    def walk(
        self, random_start: bool, values: Sequence[tuple[int, ...]]
    ) -> Iterator[tuple[list[int], str, float, list[int]]]:
        """State, action, reward and a next state of each step, values by position.

        The walk goes on from another next state, drawn for itself.
        """
        names = list(self._assignments)
        index = [{value: at for at, value in enumerate(known)} for known in values]
        self.simulator.reset()
        if random_start:
            self._randomise()
        before = self._state(index)
        for _ in range(self.horizon):
            action = names[int(self.rng.integers(len(names)))]
            tensors = self._tensors(self._assignments[action])
            here = dict(self.simulator.subs)
            try:
                reward = self._step(tensors)
                after = self._state(index)
                self.simulator.subs = here
                self._step(tensors)
            except InvalidError:
                # States that no walk from the start reaches may make no sense to the simulator.
                if not random_start:
                    raise
                self.refused += 1
                return
            yield before, action, reward, after
            before = self._state(index)

    def _step(self, tensors: Mapping[str, Any]) -> float:
        with pyrddlgym(self.source, []):
            return float(self.simulator.step(tensors)[1])

    def _tensors(self, assignment: Assignment) -> dict[str, Any]:
        actions = {name: np.copy(value) for name, value in self.simulator.noop_actions.items()}
        for label, value in assignment:
            name, arguments = self._places[label]
            actions[name][tuple(arguments)] = value
        return actions

    def _state(self, index: Sequence[dict[int, int]]) -> list[int]:
        flat = [np.ravel(self.simulator.subs[name]) for name in self.lifted.state_fluents]
        values = [int(value) for value in np.concatenate(flat)]
        for position, (at, value) in enumerate(zip(index, values, strict=True)):
            if value not in at:
                raise ModelError(
                    f"the simulator gives state fluent {position + 1} the value {value}, which the "
                    f"model does not have; expected one of {show_names(map(str, at))}."
                )
        return [at[value] for at, value in zip(index, values, strict=True)]

    def _randomise(self) -> None:
        for name, range_name in self.lifted.state_ranges.items():
            old = np.asarray(self.simulator.subs[name])
            size = 2 if range_name == "bool" else len(self.lifted.type_to_objects[range_name])
            drawn = self.rng.integers(size, size=old.shape)
            self.simulator.subs[name] = np.asarray(drawn).astype(old.dtype)


log = logging.getLogger("fsmdp")

REWARD_TOLERANCE = 1e-9
MOST_PAIRS = 64


@dataclass(frozen=True, slots=True, eq=False)
class CrossCheck:
    """What a comparison found.

    `largest_reward_error` is relative to the largest reward met; `impossible` lists next
    values that the model gives no probability; `least_p` is the smallest p-value of `tests`
    comparisons of frequencies, which together raise a false alarm with probability at most
    `level`. `refused` counts walks from random states that the simulator broke off.
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
        return self.rewards_agree and self.transitions_agree

    def require(self) -> CrossCheck:
        """This result if they agree, a ModelError that says where if they do not."""
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
    imported = load_source(source, cache=cache)
    checked = imported.model if model is None else model
    return guarded(source.name, lambda: _checked(source, imported, checked, walks, level, seed))


def _checked(
    source: Source, imported: Imported, checked: FactoredMDP, walks: int, level: float, seed: int
) -> CrossCheck:
    problem = read_problem(source)
    if tuple(variable.name for variable in checked.variables) != problem.states:
        raise ModelError(
            f"cross_check: the model has other variables than {source.name}; expected its ground "
            "state fluents in order, load it with fsmdp.rddl.load."
        )
    rng = generator(seed, Purpose.CROSS_CHECK)
    actions = joint_actions(problem.actions, problem.most_nondefault, problem.preconditions)
    walker = Walker(source, problem, actions, rng)
    kept = {other: one for one, others in imported.aliases.items() for other in (one, *others)}
    position = {action: at for at, action in enumerate(checked.actions)}
    steps = _Steps()
    for walk in range(walks):
        log.info("%s: walk %d of %d", source.name, walk + 1, walks)
        values = [imported.values[label] for label in problem.states]
        random_start = walk % 2 == 1 and not walker.has_integers
        for before, action, reward, after in walker.walk(random_start, values):
            steps.add(before, position[kept[action]], reward, after)
    return _compare(checked, steps.arrays(), source.name, walker.refused, level)


class _Steps:
    """What a simulator did, step by step."""

    def __init__(self) -> None:
        self.rows: list[tuple[list[int], int, float, list[int]]] = []

    def add(self, before: list[int], action: int, reward: float, after: list[int]) -> None:
        self.rows.append((before, action, reward, after))

    def arrays(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
        before, action, reward, after = zip(*self.rows, strict=True)
        return np.array(before), np.array(action), np.array(reward), np.array(after)


def _compare(
    model: FactoredMDP,
    steps: tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]],
    name: str,
    refused: int,
    level: float,
) -> CrossCheck:
    before, actions, rewards, after = steps
    means = np.array([model.mean_reward(s, int(a)) for s, a in zip(before, actions, strict=True)])
    errors = np.abs(means - rewards) / (np.abs(rewards).max(initial=0.0) or 1.0)
    impossible: list[str] = []
    p_values: list[tuple[float, str]] = []
    for scope in [(p,) for p in range(len(model.variables))] + _pairs_sharing_draws(model):
        together: dict[tuple[int, ...], list[float]] = defaultdict(lambda: [0.0, 0.0])
        names = ", ".join(model.variables[p].name for p in scope)
        for cell in _cells(model, scope, before, actions, after):
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
        len(actions),
        refused,
        float(errors.max()),
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


def _cells(
    model: FactoredMDP,
    scope: Scope,
    before: NDArray[Any],
    actions: NDArray[Any],
    after: NDArray[Any],
) -> Iterator[_Cell]:
    """Each value in each case that was met.

    Values that the model is certain of and that always came are left out; one that came although
    the model excludes it has probability 0, and so has one that did not although it must.
    """
    cases = compute_marginal(scope, model.dynamics, model.sizes)
    counts: dict[tuple[int, tuple[int, ...]], Counter[tuple[int, ...]]] = defaultdict(Counter)
    for state, action, following in zip(before, actions, after, strict=True):
        group = cases.group(int(action))
        parents = tuple(int(state[p]) for p in cases.groups[group].parent_scope)
        counts[group, parents][tuple(int(following[p]) for p in scope)] += 1
    for (group, parents), found in counts.items():
        row = cases.groups[group].probabilities[parents]
        trials = found.total()
        for value in np.ndindex(row.shape):
            probability, count = float(row[value]), found[value]
            where = f"in group {group}, parents {show(parents)}"
            if 0.0 < probability < 1.0:
                yield _Cell(value, where, count, trials, probability)
            elif count != trials * probability:
                yield _Cell(value, where, count, trials, 0.0)


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
