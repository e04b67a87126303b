"""`cross_check`: a model against pyRDDLGym's simulator, over random walks."""

from __future__ import annotations

import logging
import math
import os
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import as_whole, show
from fsmdp.foundation.streams import Purpose, generator
from fsmdp.interop.rddl.actions import joint_actions
from fsmdp.interop.rddl.build import Imported
from fsmdp.interop.rddl.guarding import guarded
from fsmdp.interop.rddl.loading import load_source
from fsmdp.interop.rddl.problem import read_problem
from fsmdp.interop.rddl.simulator import Walker
from fsmdp.interop.rddl.sources import Source, find_source
from fsmdp.model.marginals import compute_marginal
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.variables import Scope

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
