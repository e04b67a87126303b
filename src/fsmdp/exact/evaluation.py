"""Exact evaluation: what a given policy earns from every state."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np

from fsmdp.exact.flat import (
    ENTRY_LIMIT,
    Actions,
    FlatMDP,
    action_type,
    all_assignments,
    back_up_all,
    can_enumerate,
    enumerate_states,
)
from fsmdp.exact.solve import DENSE_LIMIT, ExactSolution, fit
from fsmdp.foundation.checks import as_whole
from fsmdp.model.mdp import FactoredMDP, backup_rounding, check_model
from fsmdp.model.tables import Floats, Integers
from fsmdp.policies.resolve import Policy, is_table, policy_table, resolve


def evaluate_exactly(model: FactoredMDP, policy: Policy, limit: int = ENTRY_LIMIT) -> Floats:
    """Expected return of a policy from every state at the first step.

    States in the order of `FlatMDP.states`. With an infinite horizon the policy is taken at step 1
    and followed forever: one that depends on the step is not what is evaluated then. Cost: as
    `Exact` over all states; a policy that is a function is also called for each state and step.
    """
    choose = _choosing(check_model(model, "evaluate_exactly"), policy)
    model = model.listed()
    limit = as_whole(limit, "limit", 1)
    given: object = policy if is_table(policy) else None
    if isinstance(policy, ExactSolution) and policy.reached is None:
        given = policy.actions
    table = None if given is None else policy_table(model, given)
    _check_allowed(model, table)

    def chosen(row: int) -> Actions | None:
        """Positions of actions by state, or None if they are drawn at random."""
        if choose is None:
            return None
        if table is not None:
            return np.asarray(table[min(row, len(table) - 1)], dtype=action_type(model))
        states = product(*map(range, model.sizes))
        count = model.n_states
        listed = (choose(state, row + 1) for state in states)
        return np.fromiter(listed, dtype=action_type(model), count=count)

    if can_enumerate(model, min(limit, DENSE_LIMIT)):
        return _evaluate_flat(enumerate_states(model, limit), chosen)
    from fsmdp.exact.sweeps import Sweeper

    plan, _ = fit(model, limit)
    sweeper = Sweeper(model, plan)

    def back_up(later: Floats, values: Floats, actions: Actions, tie: float, row: int) -> None:  # noqa: ARG001
        sweeper.given(later, values, stationary if model.horizon is None else chosen(row), _pass)

    stationary = chosen(0) if model.horizon is None else None
    parts = model, model.n_states, back_up, backup_rounding(model, 0), False
    values, _, _ = back_up_all(*parts)
    return values.reshape(-1)


def _check_allowed(model: FactoredMDP, table: Integers | None) -> None:
    """Refuse states in which nothing is allowed, and tables of actions that are not."""
    conditions = model.conditions
    if not conditions.allowed or (table is None and conditions.never_stuck):
        return
    states = all_assignments(model.sizes)
    goes_on = ~conditions.is_terminal(states)
    mask = conditions.mask(states)
    stuck = np.flatnonzero(goes_on & ~mask.any(axis=1))
    if len(stuck):
        raise conditions.stuck(states[stuck[0]].tolist())
    for row in () if table is None else table:
        wrong = np.flatnonzero(goes_on & ~mask[np.arange(len(states)), row])
        if len(wrong):
            conditions.check(states[wrong[0]].tolist(), int(row[wrong[0]]))


def _choosing(model: FactoredMDP, policy: Policy) -> Callable[[tuple[int, ...], int], int] | None:
    """The position of the action in a state; None for chance."""
    act = resolve(model, policy).act
    if act is None:
        return None

    def choose(state: tuple[int, ...], step: int) -> int:
        if model.terminal and model.is_terminal(state):
            return 0  # where nothing is done, any action will do
        chosen = act(state, step)
        return chosen if isinstance(chosen, int) else model.action_index(chosen)

    return choose


def _pass() -> None:
    """Go on."""


def _evaluate_flat(flat: FlatMDP, chosen: Callable[[int], Actions | None]) -> Floats:
    model, every = flat.model, np.arange(len(flat.states))

    def backup(row: int) -> tuple[Floats, Floats]:
        actions = chosen(row)
        if actions is None:
            share = np.isfinite(flat.rewards) / np.isfinite(flat.rewards).sum(axis=0)
            rewards = np.where(share > 0, flat.rewards, 0.0)
            means = np.einsum("as,asn->sn", share, flat.transitions)
            return (share * rewards).sum(axis=0), means
        return flat.rewards[actions, every], flat.transitions[actions, every]

    if model.horizon is None:
        rewards, transitions = backup(0)
        system = np.eye(len(every)) - model.discount * transitions
        return np.asarray(np.linalg.solve(system, rewards), dtype=np.float64)
    values = np.zeros(len(every))
    for row in reversed(range(model.horizon)):
        rewards, transitions = backup(row)
        values = rewards + model.discount * transitions @ values
    return values
