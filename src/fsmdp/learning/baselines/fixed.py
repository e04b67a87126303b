"""Learners that do not learn: uniform actions, and a policy that was handed in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from fsmdp.errors import ModelError, PolicyError, SizeError
from fsmdp.learning.acting import Acting, Planned
from fsmdp.learning.baselines.states import all_states, check_structure, state_strides
from fsmdp.learning.layout import cells_of
from fsmdp.learning.statistics import Statistics
from fsmdp.model.basis import Basis
from fsmdp.model.cases import Cases
from fsmdp.model.lookup import Integers
from fsmdp.model.policies import RANDOM, ActsByState, Policy
from fsmdp.model.structure import Structure
from fsmdp.model.variables import Scope, table_size
from fsmdp.planning.bellman import network_of_structure
from fsmdp.planning.plan import Plan
from fsmdp.simulation.policies import (
    BY_CHANCE,
    BY_TABLE,
    GREEDILY,
    CompiledPolicy,
    policy_arrays,
)

NEVER = np.iinfo(np.int64).max

TABLE_LIMIT = 2**22
"""Most (step, state) at which a policy is asked for its action."""


class _Follower:
    """Follows one policy for ever. Nothing is claimed about values, so those logged are NaN."""

    name = "Follower"
    heuristic = False

    def __init__(self, structure: Structure) -> None:
        check_structure(self.name, structure)
        nowhere: Cases[Scope] = Cases(((),))
        bare = replace(
            structure,
            rewards=tuple(replace(term, parents=nowhere) for term in structure.rewards),
            basis=Basis(),
            parents=(nowhere,),
        )
        self.structure = structure
        self.cells = cells_of(bare, network_of_structure(bare))
        self.statistics = Statistics.empty(self.cells)
        # Rewards are returns only: nothing is learnt from them, term by term or otherwise.
        self.term_known = np.ones(len(structure.rewards), dtype=np.bool_)
        self._policy = policy_arrays(BY_CHANCE, _no_strides(structure))

    def describe(self) -> str:
        """The options that matter."""
        return ""

    def replan(self) -> Planned:
        """The same policy as ever."""
        assert self.structure.horizon is not None
        n_cells, unclaimed = len(self.statistics.visits), np.nan
        acting = Acting(
            self._policy,
            np.full((self.structure.horizon, 1), unclaimed),
            np.zeros((self.structure.horizon, n_cells)),
            np.full((self.structure.horizon, n_cells), unclaimed),
            np.full(n_cells, NEVER),
        )
        return Planned(acting, 0.0, unclaimed)

    def state(self) -> dict[str, np.ndarray]:
        """Nothing."""
        return {}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Nothing to take back."""

    def __repr__(self) -> str:
        return f"{self.name}({self.describe()}; {self.statistics.episodes} episodes seen)"


class RandomLearner(_Follower):
    """Takes every action with the same probability, whatever happened; for models of any size.

    The seed of `learn` draws the actions. Values, slacks and widths of its history are NaN.
    """

    name = "RandomLearner"


class FixedPolicy(_Follower):
    """Follows a policy that somebody else found: a plan, an exact solution, a function, a name.

    A function takes (state, step) with steps from 1, as everywhere. A `Plan` is followed in models
    of any size; any other policy is asked once for its action at every step and state, which is
    refused above `limit`. Values, slacks and widths of its history are NaN.
    """

    name = "FixedPolicy"

    def __init__(
        self, structure: Structure, policy: Policy, *, label: str = "", limit: int = TABLE_LIMIT
    ) -> None:
        super().__init__(structure)
        self._policy = compile_given(structure, policy, limit)
        self.label = label or (policy if isinstance(policy, str) else type(policy).__name__)

    def describe(self) -> str:
        """What is followed."""
        return self.label


def compile_given(structure: Structure, policy: Policy, limit: int = TABLE_LIMIT) -> CompiledPolicy:
    """The policy as arrays. Cost: none for a plan, horizon * |states| actions otherwise."""
    if isinstance(policy, Plan):
        _check_plan(structure, policy)
        return policy_arrays(
            GREEDILY, _no_strides(structure), lookup=policy.lookup, entries=policy.q_entries
        )
    if isinstance(policy, str):
        if policy in structure.actions:
            always = np.array([[structure.actions.index(policy)]], dtype=np.int64)
            return policy_arrays(BY_TABLE, _no_strides(structure), always)
        if policy == RANDOM:
            return policy_arrays(BY_CHANCE, _no_strides(structure))
        raise PolicyError(
            f"FixedPolicy: unknown policy {policy!r}; expected a plan, an exact solution, a "
            'function (state, step) -> action, the name of an action, or "random".'
        )
    chooses = policy.action if isinstance(policy, ActsByState) else policy
    if not callable(chooses):
        raise PolicyError(
            f"FixedPolicy: a {type(policy).__name__} is no policy; expected a plan, an exact "
            'solution, a function (state, step) -> action, the name of an action, or "random".'
        )
    return policy_arrays(BY_TABLE, state_strides(structure), _table(structure, chooses, limit))


def _table(
    structure: Structure, chooses: Callable[[tuple[int, ...], int], str | int], limit: int
) -> Integers:
    assert structure.horizon is not None
    n_states = table_size(variable.size for variable in structure.variables)
    if structure.horizon * n_states > limit:
        raise SizeError(
            f"FixedPolicy: a table of this policy has {structure.horizon} steps x {n_states:.4g} "
            f"states, the limit is {limit}; give a Plan, which needs no table, or a larger limit=."
        )
    positions = {action: position for position, action in enumerate(structure.actions)}
    states = [tuple(map(int, state)) for state in all_states(structure)]
    table = np.zeros((structure.horizon, n_states), dtype=np.int64)
    for row in range(structure.horizon):
        for column, state in enumerate(states):
            chosen = chooses(state, row + 1)
            position = positions.get(chosen, -1) if isinstance(chosen, str) else int(chosen)
            if not 0 <= position < len(positions):
                raise PolicyError(
                    f"FixedPolicy: in state {state} at step {row + 1} the policy takes {chosen!r}; "
                    f"expected one of {', '.join(map(repr, list(positions)[:6]))} or its position."
                )
            table[row, column] = position
    return table


def _check_plan(structure: Structure, plan: Plan) -> None:
    for what, found, expected in (
        ("variables", _sizes(plan.variables), _sizes(structure.variables)),
        ("actions", len(plan.actions), len(structure.actions)),
        ("horizon", plan.horizon or structure.horizon, structure.horizon),
    ):
        if found != expected:
            raise ModelError(
                f"FixedPolicy: the plan has {what} {found}, the structure {expected}; plan in the "
                "model that the structure describes."
            )


def _sizes(variables: Sequence[object]) -> list[int]:
    return [getattr(variable, "size", 0) for variable in variables]


def _no_strides(structure: Structure) -> Integers:
    return np.zeros(len(structure.variables), dtype=np.int64)
