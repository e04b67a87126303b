"""Structure: what a learner is told. Scopes, groups and bounds; no probability."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fsmdp.errors import ModelError
from fsmdp.model.basis import Basis, check_basis
from fsmdp.model.cases import Case, Cases, common_groups, partition
from fsmdp.model.rewards import Reward
from fsmdp.model.variables import (
    Scope,
    Variable,
    find_positions,
    is_number,
    is_whole,
    positions_by_name,
    table_size,
)


@dataclass(frozen=True, slots=True, eq=False)
class RewardTerm:
    """What is known of one reward term before learning: where it looks, its bounds, its noise."""

    name: str
    parents: Cases[Scope]
    low: float
    high: float
    sigma: float


@dataclass(frozen=True, slots=True, eq=False)
class Structure:
    """Variables, actions, horizon, reward terms, basis, and each basis function's parents."""

    variables: tuple[Variable, ...]
    actions: tuple[str, ...]
    horizon: int | None
    discount: float
    rewards: tuple[RewardTerm, ...]
    basis: Basis
    parents: tuple[Cases[Scope], ...]  # one per basis function

    @classmethod
    def from_parents(
        cls,
        variables: Sequence[Variable],
        actions: Sequence[str],
        *,
        parents: Mapping[str, Sequence[Case]],
        rewards: Sequence[Reward],
        basis: Basis,
        horizon: int | None,
        discount: float = 1.0,
    ) -> Structure:
        """A structure written by hand: the parents of each variable by action group.

        Cases carry no tables here: `Case(["repair"], parents=[])`. A basis function's parents are
        those of all its variables together, which holds however correlated the variables are.
        """
        variables, actions = tuple(variables), tuple(actions)
        positions = positions_by_name(variables)
        action_positions = index_actions(actions)
        check_horizon(horizon, discount)
        check_basis(basis)
        for name in parents:
            find_positions([name], positions, "parents of a structure")
        missing = [variable.name for variable in variables if variable.name not in parents]
        if missing:
            raise ModelError(
                f"parents of a structure: {missing[0]!r} has none listed ({len(missing)} missing); "
                "expected cases for every variable, give [Case(ANY, parents=[])] for none."
            )

        def resolve(cases: Sequence[Case], where: str) -> Cases[Scope]:
            return partition(cases, action_positions, where).map(
                lambda case: tuple(sorted(find_positions(case.parents, positions, where)))
            )

        by_variable = [resolve(parents[v.name], f"parents of {v.name!r}") for v in variables]
        bound = basis.bind(variables)
        return cls(
            variables,
            actions,
            horizon,
            discount,
            tuple(
                RewardTerm(r.name, resolve(r.cases, f"reward {r.name!r}"), r.low, r.high, r.sigma)
                for r in rewards
            ),
            bound,
            tuple(
                common_groups([by_variable[position] for position in scope]).map(_union)
                for scope in bound.scopes
            ),
        )

    @property
    def cells(self) -> int:
        """Number of (basis function, action group, parent assignment) that a learner estimates."""
        return sum(
            table_size(self.variables[p].size for p in scope)
            for cases in self.parents[1:]
            for scope in cases
        )

    def __repr__(self) -> str:
        return (
            f"Structure({len(self.variables)} variables, {len(self.actions)} actions, "
            f"{len(self.basis)} basis functions, {self.cells} cells, horizon {self.horizon})"
        )


def _union(scopes: Sequence[Scope]) -> Scope:
    return tuple(sorted({position for scope in scopes for position in scope}))


def index_actions(actions: Sequence[str]) -> dict[str, int]:
    """Where each action stands, refusing none at all, unnamed ones and names that stand twice."""
    if not actions:
        raise ModelError("actions: expected at least one, found none; name what can be done.")
    positions: dict[str, int] = {}
    for position, action in enumerate(actions):
        if not isinstance(action, str) or not action:
            raise ModelError(
                f"action number {position}: a name is a non-empty string, found {action!r}; "
                "name the action."
            )
        if action in positions:
            raise ModelError(
                f"action {action!r} is there twice; expected each name once, rename one of them."
            )
        positions[action] = position
    return positions


def check_horizon(horizon: int | None, discount: float) -> None:
    """Refuse a horizon below 1, a discount outside (0, 1], and an endless sum without discount."""
    if horizon is not None and (not is_whole(horizon) or horizon < 1):
        raise ModelError(
            f"horizon: expected a whole number of at least 1, or None for an infinite horizon, "
            f"found {horizon!r}; give the number of steps of an episode."
        )
    if not is_number(discount):
        raise ModelError(f"discount: expected a number, found {discount!r}; 1 means none.")
    if not 0 < discount <= 1:
        raise ModelError(
            f"discount: expected a number above 0 and at most 1, found {discount}; 1 means none."
        )
    if horizon is None and discount >= 1:
        raise ModelError(
            "horizon is None (infinite) and discount is 1: values would be infinite; give a "
            "horizon, or a discount below 1."
        )
