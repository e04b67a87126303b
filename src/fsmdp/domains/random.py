"""Random: seeded random models in which every feature of a factored MDP can occur."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from fsmdp.domains.registry import Domain, check_switch, check_whole, register
from fsmdp.errors import ModelError
from fsmdp.model.cases import ANY, Case
from fsmdp.model.conditionals import Conditional
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.rewards import Reward
from fsmdp.model.tables import Floats
from fsmdp.model.variables import LARGEST_VARIABLE, Variable

BLOCK_CHANCE = 0.3
DETERMINISTIC_CHANCE = 0.25
MOST_GROUPS = 3
MOST_DRAWN = 2
LARGEST_TABLE = 2**20
LARGEST_PART = 1000  # of variables, actions, latents and rewards


def random_model(
    seed: int = 0,
    variables: int = 4,
    actions: int = 3,
    horizon: int | None = 4,
    discount: float = 1.0,
    *,
    largest_size: int = 3,
    largest_parents: int = 2,
    latents: int = 1,
    rewards: int = 3,
    blocks: bool = True,
    drawn: bool = True,
    groups: bool = True,
    deterministic: bool = True,
    noise: bool = True,
    random_start: bool = True,
) -> FactoredMDP:
    """A random model; the same arguments always give the same one.

    Variables `x0`, `x1`, ... and latents `z0`, ... have 2 to `largest_size` values and are drawn
    in random order. Each conditional, in each action group, has up to `largest_parents` current
    parents, and up to two among what is drawn before it, of its own; a row is uniform on the
    simplex, or a single value. Each reward term is a random table between random bounds around 0.

    What a switch set to False leaves out: `blocks` two children drawn jointly; `drawn` drawn
    parents that are state variables (latents=0 leaves out the latents, too); `groups` differences
    between actions; `deterministic` tables of zeros and ones; `noise` reward noise;
    `random_start` distributions of the initial values.
    Cost: (variables + rewards) tables of up to largest_size^(largest_parents + 4) entries.
    """
    for name, value, least, most in (
        ("seed", seed, 0, None),
        ("variables", variables, 1, LARGEST_PART),
        ("actions", actions, 1, LARGEST_PART),
        ("largest_size", largest_size, 2, LARGEST_VARIABLE),
        ("largest_parents", largest_parents, 0, LARGEST_PART),
        ("latents", latents, 0, LARGEST_PART),
        ("rewards", rewards, 0, LARGEST_PART),
    ):
        check_whole("random", name, value, least, most)
    for name, switch in (
        ("blocks", blocks),
        ("drawn", drawn),
        ("groups", groups),
        ("deterministic", deterministic),
        ("noise", noise),
        ("random_start", random_start),
    ):
        check_switch("random", name, switch)
    exponent = min(largest_parents, variables) + 4
    if largest_size**exponent > LARGEST_TABLE:
        raise ModelError(
            f"random: tables could have {largest_size}^{exponent} entries, expected at most "
            f"{LARGEST_TABLE}; use a smaller largest_size or largest_parents."
        )
    rng = np.random.default_rng(seed)
    state = [Variable(f"x{i}", _size(rng, largest_size)) for i in range(variables)]
    hidden = [Variable(f"z{i}", _size(rng, largest_size)) for i in range(latents)]
    names = [f"a{i}" for i in range(actions)]
    sampler = _Sampler(rng, state, names, largest_parents, groups, deterministic)
    return FactoredMDP(
        variables=state,
        actions=names,
        latents=hidden,
        conditionals=_conditionals(sampler, hidden, blocks, drawn),
        rewards=[sampler.reward(f"r{i}", noise) for i in range(rewards)],
        horizon=horizon,
        discount=discount,
        initial={v.name: sampler.start(v, random_start) for v in state},
    )


def _size(rng: np.random.Generator, largest: int) -> int:
    return int(rng.integers(2, largest + 1))


def _conditionals(
    sampler: _Sampler, hidden: Sequence[Variable], blocks: bool, drawn: bool
) -> list[Conditional]:
    rng, everything = sampler.rng, [*sampler.state, *hidden]
    order = [everything[position] for position in rng.permutation(len(everything))]
    cuts = [0]
    while cuts[-1] < len(order):
        children = 2 if blocks and rng.random() < BLOCK_CHANCE else 1
        cuts.append(min(cuts[-1] + children, len(order)))
    conditionals = []
    for first, end in pairwise(cuts):
        earlier = [v for v in order[:first] if drawn or v in hidden]
        conditionals.append(sampler.conditional(order[first:end], earlier))
    return conditionals


@dataclass(frozen=True, slots=True, eq=False)
class _Sampler:
    """Draws the pieces of one model from one generator."""

    rng: np.random.Generator
    state: Sequence[Variable]
    actions: Sequence[str]
    largest_parents: int
    groups: bool
    deterministic: bool

    def conditional(self, children: Sequence[Variable], earlier: Sequence[Variable]) -> Conditional:
        cases = []
        for number, group in enumerate(self._action_groups()):
            parents = self._some(self.state, self.largest_parents)
            drawn = self._some(earlier, MOST_DRAWN)
            table = self._rows(_sizes([*parents, *drawn]), _sizes(children))
            cases.append(
                Case(group if number else ANY, _names(parents), table, drawn=_names(drawn))
            )
        return Conditional(_names(children), cases)

    def reward(self, name: str, noise: bool) -> Reward:
        low, high = self.rng.uniform((-1.0, 0.0), (0.0, 1.0)).tolist()
        cases = []
        for number, group in enumerate(self._action_groups()):
            parents = self._some(self.state, self.largest_parents)
            table = self.rng.uniform(low, high, _sizes(parents))
            cases.append(Case(group if number else ANY, _names(parents), table))
        return Reward(name, cases, low, high, sigma=self.rng.uniform(0, 0.5) if noise else 0.0)

    def start(self, variable: Variable, random_start: bool) -> int | Floats:
        if random_start and self.rng.random() < 0.5:
            return self.rng.dirichlet(np.ones(variable.size))
        return int(self.rng.integers(variable.size))

    def _action_groups(self) -> list[list[str]]:
        """A random partition of the actions into groups, none of them empty."""
        most = min(MOST_GROUPS, len(self.actions)) if self.groups else 1
        group_of_action = self.rng.integers(self.rng.integers(1, most + 1), size=len(self.actions))
        return [
            [self.actions[action] for action in np.flatnonzero(group_of_action == group).tolist()]
            for group in np.unique(group_of_action)
        ]

    def _some(self, candidates: Sequence[Variable], most: int) -> list[Variable]:
        """Up to `most` of the candidates, in random order."""
        count = int(self.rng.integers(0, min(most, len(candidates)) + 1))
        chosen = self.rng.permutation(len(candidates))[:count]
        return [candidates[position] for position in chosen]

    def _rows(self, parent_sizes: tuple[int, ...], child_sizes: tuple[int, ...]) -> Floats:
        outcomes = math.prod(child_sizes)
        if self.deterministic and self.rng.random() < DETERMINISTIC_CHANCE:
            rows = np.eye(outcomes)[self.rng.integers(outcomes, size=parent_sizes)]
        else:
            rows = self.rng.dirichlet(np.ones(outcomes), size=parent_sizes)
        return rows.reshape(*parent_sizes, *child_sizes)


def _names(variables: Sequence[Variable]) -> list[str]:
    return [variable.name for variable in variables]


def _sizes(variables: Sequence[Variable]) -> tuple[int, ...]:
    return tuple(variable.size for variable in variables)


register(
    Domain(
        "random",
        random_model,
        "a random model with every feature, by seed",
        positional=1,
        environment="fsmdp/Random-v0",
    )
)
