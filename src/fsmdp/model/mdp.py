"""FactoredMDP: the generative truth, from which one can simulate."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import index as as_index

import numpy as np
from numpy.typing import ArrayLike

from fsmdp.errors import ModelError, PolicyError
from fsmdp.model.basis import Basis, check_basis
from fsmdp.model.cases import Cases
from fsmdp.model.conditionals import ROW_TOLERANCE, Conditional, Dynamics, resolve_dynamics
from fsmdp.model.marginals import Marginals, compute_marginal, compute_marginals
from fsmdp.model.rewards import Reward, resolve_rewards
from fsmdp.model.structure import RewardTerm, Structure, check_horizon, index_actions
from fsmdp.model.tables import Floats, Table, read_only_array
from fsmdp.model.variables import (
    Scope,
    Variable,
    check_state,
    find_positions,
    is_whole,
    positions_by_name,
    table_size,
)

Start = int | Floats
"""How a variable starts: at a value, or drawn from a distribution."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FactoredMDP:
    """A Markov decision process whose state is a vector of small variables.

    Each step draws the conditionals in order; a conditional may look at current values
    (`parents`), at values drawn before it in the same step and at latents (`drawn`), so next
    values may be correlated given (state, action). Rewards are sums of local terms.
    `initial` gives a value or a distribution for each variable (0 for those it does not name).
    """

    variables: tuple[Variable, ...]
    actions: tuple[str, ...]
    conditionals: tuple[Conditional, ...]
    rewards: tuple[Reward, ...]
    horizon: int | None
    discount: float
    latents: tuple[Variable, ...]
    initial: tuple[Start, ...]
    dynamics: Dynamics = field(init=False)
    reward_means: tuple[Cases[Table], ...] = field(init=False)
    _action_positions: Mapping[str, int] = field(init=False)

    def __init__(
        self,
        variables: Sequence[Variable],
        actions: Sequence[str],
        conditionals: Sequence[Conditional],
        rewards: Sequence[Reward],
        horizon: int | None,
        initial: Mapping[str, int | ArrayLike] | Sequence[int] | None = None,
        discount: float = 1.0,
        latents: Sequence[Variable] = (),
    ) -> None:
        def store(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        store("variables", tuple(variables))
        store("actions", (actions,) if isinstance(actions, str) else tuple(actions))
        store("conditionals", tuple(conditionals))
        store("rewards", tuple(rewards))
        store("latents", tuple(latents))
        if not self.variables:
            raise ModelError("variables: expected at least one, found none; name what changes.")
        store("_action_positions", index_actions(self.actions))
        check_horizon(horizon, discount)
        store("horizon", None if horizon is None else int(horizon))
        store("discount", float(discount))
        store(
            "dynamics",
            resolve_dynamics(
                self.conditionals, self.variables, self.latents, self._action_positions
            ),
        )
        store("reward_means", resolve_rewards(self.rewards, self.variables, self._action_positions))
        store("initial", _resolve_initial(initial, self.variables))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of values of each variable."""
        return tuple(variable.size for variable in self.variables)

    @property
    def n_states(self) -> int:
        """Number of states, exactly, however large."""
        return table_size(self.sizes)

    @property
    def log10_states(self) -> float:
        """Decimal logarithm of the number of states."""
        return math.fsum(math.log10(size) for size in self.sizes)

    def parents(self, variable: str | int) -> Scope:
        """Variables on whose current values the next value depends, under some action."""
        (position,) = find_positions([variable], positions_by_name(self.variables), "parents")
        cases = compute_marginal((position,), self.dynamics, self.sizes)
        return tuple(sorted({parent for marginal in cases for parent in marginal.parent_scope}))

    def marginals(self, basis: Basis) -> Marginals:
        """Distribution of each basis function's next values, all else summed out."""
        return compute_marginals(check_basis(basis).bind(self.variables), self.dynamics, self.sizes)

    def structure(self, basis: Basis) -> Structure:
        """What a learner is told: parents as declared, whatever the probabilities are."""
        bound = check_basis(basis).bind(self.variables)
        by_scope = {
            scope: self.dynamics.ancestry(scope).map(lambda ancestry: ancestry.parent_scope)
            for scope in set(bound.scopes)
        }
        return Structure(
            self.variables,
            self.actions,
            self.horizon,
            self.discount,
            tuple(
                RewardTerm(
                    reward.name,
                    means.map(lambda table: table.scope),
                    reward.low,
                    reward.high,
                    reward.sigma,
                )
                for reward, means in zip(self.rewards, self.reward_means, strict=True)
            ),
            bound,
            tuple(by_scope[scope] for scope in bound.scopes),
        )

    def action_index(self, action: str | int) -> int:
        """Position of an action given by name or position."""
        if isinstance(action, str):
            if action in self._action_positions:
                return self._action_positions[action]
        else:
            try:
                position = as_index(action)
            except TypeError:
                position = -1
            if 0 <= position < len(self.actions):
                return position
        shown = ", ".join(self.actions[:6]) + (", ..." if len(self.actions) > 6 else "")
        raise PolicyError(
            f"unknown action {action!r}; expected one of {shown}, or a position from 0 to "
            f"{len(self.actions) - 1}."
        )

    def check_state(self, state: Sequence[int]) -> tuple[int, ...]:
        """The state as a tuple of integers, or a ModelError saying what is wrong with it."""
        return check_state(state, self.variables)

    def mean_reward(self, state: Sequence[int], action: str | int) -> float:
        """Expected reward of an action in a state."""
        position, state = self.action_index(action), self.check_state(state)
        return math.fsum(means.at(position).value(state) for means in self.reward_means)

    def initial_distributions(self) -> tuple[Floats, ...]:
        """Distribution of each variable at the start; a fixed value is a distribution too."""
        return tuple(
            np.eye(size)[start] if isinstance(start, int) else start
            for size, start in zip(self.sizes, self.initial, strict=True)
        )

    def __repr__(self) -> str:
        states = f"{self.n_states}" if self.log10_states < 7 else f"10^{self.log10_states:.1f}"
        ends = f"horizon {self.horizon}" if self.horizon else f"discount {self.discount}"
        return (
            f"FactoredMDP({len(self.variables)} variables, {states} states, "
            f"{len(self.actions)} actions, {len(self.rewards)} reward terms, {ends})"
        )


def _resolve_initial(
    initial: Mapping[str, int | ArrayLike] | Sequence[int] | None, variables: Sequence[Variable]
) -> tuple[Start, ...]:
    starts: list[Start] = [0] * len(variables)
    if initial is None:
        return tuple(starts)
    if not isinstance(initial, Mapping):
        if len(initial) != len(variables):
            raise ModelError(
                f"initial: expected {len(variables)} values, one per variable, found "
                f"{len(initial)}; or give a dictionary by name."
            )
        initial = {v.name: value for v, value in zip(variables, initial, strict=True)}
    positions = positions_by_name(variables)
    for name, value in initial.items():
        (position,) = find_positions([name], positions, "initial")
        starts[position] = _resolve_start(value, variables[position])
    return tuple(starts)


def _resolve_start(value: int | ArrayLike, variable: Variable) -> Start:
    where = f"initial of {variable.name!r}"
    if is_whole(value):
        if not 0 <= value < variable.size:
            raise ModelError(
                f"{where}: value {value} is out of range, expected 0 to {variable.size - 1}."
            )
        return int(value)
    distribution = read_only_array(value, where)
    if distribution.shape != (variable.size,):
        raise ModelError(
            f"{where}: expected a value from 0 to {variable.size - 1} or {variable.size} "
            f"probabilities, found shape {distribution.shape}."
        )
    if distribution.min() < 0 or abs(distribution.sum() - 1) > ROW_TOLERANCE:
        raise ModelError(
            f"{where}: probabilities run from {distribution.min():.6g} and sum to "
            f"{distribution.sum():.10g}, expected none below 0 and a sum of 1; normalise them."
        )
    return distribution
