"""Learners that do not learn: uniform actions, and a policy that was handed in."""

from dataclasses import replace

import numpy as np

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import as_whole, check_size, show, show_count
from fsmdp.foundation.kinds import OneOf
from fsmdp.learning.learners.baselines.enumerated import all_states, state_strides
from fsmdp.learning.learners.learner import NEVER, CountingLearner, Learner, Planned
from fsmdp.learning.learners.registry import LearnerContext, LearnerEntry, Options
from fsmdp.model.basis import Basis
from fsmdp.model.cases import Cases
from fsmdp.model.structure import Structure
from fsmdp.model.tables import Integers
from fsmdp.model.variables import Scope, table_size
from fsmdp.policies.arrays import (
    BY_TABLE,
    CompiledPolicy,
    by_chance,
    policy_arrays,
    policy_to_arrays,
)
from fsmdp.policies.joint import listed_joint
from fsmdp.policies.resolve import Act, Policy, resolve

TABLE_LIMIT = 2**22
"""Most (step, state) at which a policy is asked for its action."""


class _Follower(CountingLearner):
    """Follows one policy throughout. Nothing is claimed about values, so those logged are NaN."""

    name = "Follower"

    def __init__(self, structure: Structure) -> None:
        super().__init__(structure)
        # Rewards are returns only: nothing is learnt from them, term by term or otherwise.
        self.term_known = np.ones(len(structure.rewards), dtype=np.bool_)
        self._policy = by_chance(structure.conditions)

    def counted_structure(self) -> Structure:
        """One cell for everything: nothing is distinguished."""
        nowhere: Cases[Scope] = Cases(((),))
        return replace(
            self.structure,
            rewards=tuple(replace(term, parents=nowhere) for term in self.structure.rewards),
            basis=Basis(),
            parents=(nowhere,),
            contexts=(),
        )

    def describe(self) -> str:
        """The options that matter."""
        return ""

    def given(self) -> list[np.ndarray]:
        """The policy, as it is followed."""
        return [*super().given(), *policy_to_arrays(self._policy).values()]

    def replan(self) -> Planned:
        """The same policy as ever."""
        never = np.full(len(self.statistics.visits), NEVER, dtype=np.int64)
        return self.unclaimed(self._policy, never)


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
        if not isinstance(label, str):
            raise ModelError(f"label: expected a text, found {show(label)}; leave it out.")
        self._policy = compile_given(structure, policy, as_whole(limit, "limit", 1))
        self.label = label or (policy if isinstance(policy, str) else type(policy).__name__)

    def describe(self) -> str:
        """What is followed."""
        return self.label


def compile_given(structure: Structure, policy: Policy, limit: int = TABLE_LIMIT) -> CompiledPolicy:
    """The policy as arrays. Cost: none for a plan, horizon * |states| actions for a function."""
    followed = resolve(structure, policy)
    if followed.arrays is not None:
        return followed.arrays
    assert followed.act is not None  # chance alone has no function, and it is compiled
    table, joint = _table(structure, followed.act, limit), None
    n_states = table.shape[1]
    if structure.actions.variables:
        rows, table = np.unique(table.reshape(-1, table.shape[-1]), axis=0, return_inverse=True)
        table = table.reshape(-1, n_states)
        joint = listed_joint(structure.actions, len(structure.variables), rows)
    return policy_arrays(BY_TABLE, state_strides(structure), table, joint=joint)


def _table(structure: Structure, act: Act, limit: int) -> Integers:
    """Actions by step and state; of joint ones the values, along a further axis."""
    assert structure.horizon is not None
    n_states = table_size(variable.size for variable in structure.variables)
    check_size(
        structure.horizon * n_states,
        limit,
        f"FixedPolicy: a table of this policy has {structure.horizon} steps x "
        f"{show_count(n_states)} states =",
        "give a Plan, which needs no table, or a larger limit=",
    )
    states, space = all_states(structure), structure.actions
    over = structure.conditions.is_terminal(states).tolist()
    idle = space.choice(0, np.zeros(len(space.variables), dtype=np.int64))  # where nothing is done
    chosen = [
        [
            idle if ended else act(tuple(state), step + 1)
            for state, ended in zip(states.tolist(), over, strict=True)
        ]
        for step in range(structure.horizon)
    ]
    return np.array(chosen, dtype=np.int64)


def _build_plan(context: LearnerContext, options: Options) -> Learner:
    method = options["method"]
    label = f"plan of the known model, {method}"
    return FixedPolicy(context.structure, context.policy(method), label=label)


def _build_optimal(context: LearnerContext, _: Options) -> Learner:
    return FixedPolicy(context.structure, context.policy("exact"), label="exact optimum")


def _build_random(context: LearnerContext, _: Options) -> Learner:
    return RandomLearner(context.structure)


PLAN = LearnerEntry(
    "plan",
    "known-model plan",
    "follows the plan of the known model and learns nothing",
    _build_plan,
    {"method": (OneOf(("programs", "stagewise", "joint", "cutting-planes", "fitted")), "programs")},
    uses_basis=True,
)

OPTIMAL = LearnerEntry(
    "optimal",
    "exact optimum",
    "follows the optimal policy; small models only",
    _build_optimal,
)

RANDOM_ACTIONS = LearnerEntry(
    "random", "random actions", "every action with the same chance", _build_random
)
