"""Random models with allowed actions and terminal states, and their values by nested loops."""

from itertools import product

import numpy as np

import fsmdp
from fsmdp.domains.random import random_model
from tests import oracle


def conditioned(seed, *, horizon=4, discount=1.0, variables=3, actions=4, terminal=True, **options):
    """A random model with conditions on actions, perhaps with terminal states."""
    base = random_model(
        seed, variables, actions=actions, horizon=horizon, discount=discount, **options
    )
    return with_conditions(base, seed, terminal)


def with_conditions(base, seed, terminal=True):
    """A model with random conditions on all listed actions but the first, and perhaps ends."""
    rng, actions = np.random.default_rng(seed), len(base.actions)
    names, sizes = [v.name for v in base.variables], base.sizes
    most = min(2, len(names)) + 1

    def drawn():
        chosen = rng.choice(len(names), size=rng.integers(1, most), replace=False)
        return sorted(chosen.tolist())

    allowed = []
    for _ in range(3 if actions > 1 else 0):
        scope = drawn()
        table = rng.random([sizes[p] for p in scope]) < 0.6
        named = rng.choice(base.actions[1:], size=rng.integers(1, actions), replace=False)
        allowed.append(
            fsmdp.Case([str(n) for n in named], [names[p] for p in scope], table.astype(float))
        )
    ends = []
    if terminal:
        for _ in range(2):
            scope = drawn()
            table = (rng.random([sizes[p] for p in scope]) < 0.2).astype(float)
            table[
                tuple(
                    int(base.initial[p]) if isinstance(base.initial[p], int) else 0 for p in scope
                )
            ] = 0
            ends.append(fsmdp.Table([names[p] for p in scope], table))
    return base.replace(allowed=allowed, terminal=ends)


def is_allowed(model, state, action):
    """Whether every entry that speaks of an action is nonzero, read off the cases as written."""
    current = {v.name: value for v, value in zip(model.variables, state, strict=True)}
    name = model.actions[action]
    for case in model.allowed:
        speaks = not isinstance(case.actions, tuple) or name in case.actions
        if speaks and case.table[tuple(current[parent] for parent in case.parents)] == 0:
            return False
    return True


def is_terminal(model, state):
    """Whether some table is nonzero, read off the tables as written."""
    current = {v.name: value for v, value in zip(model.variables, state, strict=True)}
    return any(
        table.values[tuple(current[name] for name in table.scope)] != 0 for table in model.terminal
    )


def optimal_values(model, sweeps=None):
    """V*_1 of every state by plain backward induction over allowed actions (or by many sweeps)."""
    states = list(product(*map(range, model.sizes)))
    values = dict.fromkeys(states, 0.0)
    moves = {}
    for state in states:
        if is_terminal(model, state):
            continue
        for action in range(len(model.actions)):
            if is_allowed(model, state, action):
                moves[state, action] = (
                    oracle.mean_reward(model, state, action),
                    oracle.next_state_probabilities(model, state, action),
                )
    for _ in range(sweeps or model.horizon):
        values = {
            state: max(
                (
                    reward + model.discount * sum(p * values[s] for s, p in after.items())
                    for (at, _), (reward, after) in moves.items()
                    if at == state
                ),
                default=0.0,
            )
            for state in states
        }
    return values


def shop(**changes):
    """Stock is bought and sold; nothing can be sold that is not there; without cash it is over."""
    moves = np.eye(4)
    sold, bought = moves[[0, 0, 1, 2]], moves[[1, 2, 3, 3]]
    parts = {
        "variables": [fsmdp.Variable("stock", 4), fsmdp.Variable("cash", 4)],
        "actions": ["wait", "buy", "sell"],
        "conditionals": [
            fsmdp.Conditional(
                "stock",
                [
                    fsmdp.Case("sell", ["stock"], sold),
                    fsmdp.Case("buy", ["stock"], bought),
                    fsmdp.Case(fsmdp.ANY, ["stock"], moves),
                ],
            ),
            fsmdp.Conditional(
                "cash",
                [
                    fsmdp.Case("sell", ["cash"], moves[[1, 2, 3, 3]]),
                    fsmdp.Case("buy", ["cash"], moves[[0, 0, 1, 2]]),
                    fsmdp.Case(fsmdp.ANY, ["cash"], 0.8 * moves + 0.2 * moves[[0, 0, 1, 2]]),
                ],
            ),
        ],
        "rewards": [
            fsmdp.Reward("sales", [fsmdp.Case("sell", [], 1.0), fsmdp.Case(fsmdp.ANY, [], 0.0)])
        ],
        "horizon": 12,
        "initial": {"stock": 1, "cash": 2},
        "allowed": [fsmdp.Case("sell", ["stock"], [0, 1, 1, 1])],
        "terminal": [fsmdp.Table("cash", [1, 0, 0, 0])],
    }
    return fsmdp.FactoredMDP(**(parts | changes))
