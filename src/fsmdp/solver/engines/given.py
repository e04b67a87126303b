"""Policies that the caller has: made into arrays, judged, and improved on."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from fsmdp.bounds.clock import Clock
from fsmdp.errors import PolicyError
from fsmdp.foundation.checks import show, show_count
from fsmdp.model.mdp import FactoredMDP
from fsmdp.policies.resolve import ArrayPolicy, array_policy, resolve
from fsmdp.solver import parameters as tuned
from fsmdp.solver.engine import CandidatePolicy, Engine, Findings, Stage

if TYPE_CHECKING:
    from fsmdp.solver.state import SolverState


def as_policies(policies: object) -> tuple[Any, ...]:
    """A list of policies; one by itself is a mistake, since a table is a list, too."""
    if isinstance(policies, tuple | list):
        return tuple(policies)
    raise PolicyError(
        f"policies: expected a list of policies, found {show(policies)}; write policies=[...]."
    )


def given_policies(model: FactoredMDP, policies: tuple[Any, ...]) -> list[ArrayPolicy]:
    """Policies as arrays, with names. A function is asked at every state and step, once.

    Cost: of a function, a call for each state and step.
    """
    found = []
    for number, policy in enumerate(policies, 1):
        name = _name(policy, number)
        followed = resolve(model, policy)
        if followed.arrays is None:
            policy = _tabulated(model, followed.act, name)
        found.append(array_policy(name, model, policy))
    return found


def _name(policy: object, number: int) -> str:
    if isinstance(policy, str):
        return f"given: {policy}"
    own = getattr(policy, "__name__", None) or getattr(policy, "name", None)
    return f"given: {own}" if isinstance(own, str) else f"given policy {number}"


def _tabulated(model: FactoredMDP, act: Any, name: str) -> Any:
    """The table of a function: what it does in each state, at each step of a finite horizon."""
    steps = model.horizon or 1
    if model.n_states * steps > tuned.TABULATED_DECISIONS:
        raise PolicyError(
            f"policies, {name}: a function is asked at every state and step, which would be "
            f"{show_count(model.n_states * steps)} times, the limit is "
            f"{show_count(tuned.TABULATED_DECISIONS)}; give an object with action(state, step) "
            "and compiled(), as in docs/extending.md, a table, or a plan."
        )
    table = np.zeros((steps, model.n_states), dtype=np.int64)
    space = model.listed().actions
    for number, state in enumerate(product(*map(range, model.sizes))):
        if model.terminal and model.is_terminal(state):
            continue
        for step in range(steps):
            choice = act(state, step + 1)
            if not isinstance(choice, int):
                choice = space.index(model.actions.name(choice))
            table[step, number] = choice
    return table


@dataclass(frozen=True, slots=True)
class Given(Engine):
    """The policies that the caller has."""

    def applies(self, state: SolverState) -> str | float:
        """If there are any."""
        return 0.0 if state.given else "no policies were given"

    def run(self, state: SolverState, clock: Clock) -> Findings:  # noqa: ARG002
        """A candidate each."""
        for policy in state.given:
            yield CandidatePolicy(policy.name, policy)


GIVEN = Given(
    "given-policies",
    Stage.FIRST,
    "The policies that the caller has; the states that they visit join the pools of all fits.",
)
