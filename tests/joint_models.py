"""Random models whose actions are made of variables, small enough to list."""

from itertools import product

import numpy as np

import fsmdp

MOST_JOINT = 2**12


def joint_actions(rng, most=MOST_JOINT):
    """Action variables with or without a limit and forbidden values; some action is allowed."""
    while True:
        sizes = rng.choice([1, 2, 2, 2, 3], size=rng.integers(1, 7))
        if np.prod(sizes) > most:
            continue
        variables = [fsmdp.Variable(f"a{i}", int(size)) for i, size in enumerate(sizes)]
        at_most = int(rng.integers(1, len(sizes) + 1)) if rng.random() < 0.5 else None
        forbidden = []
        for _ in range(rng.integers(0, 3)):
            scope = sorted(rng.permutation(len(sizes))[: rng.integers(1, 4)].tolist())
            never = rng.random([sizes[p] for p in scope]) < 0.3
            forbidden.append(fsmdp.Table([variables[p].name for p in scope], never.astype(float)))
        try:
            return fsmdp.Actions(variables, at_most, forbidden)
        except fsmdp.ModelError:
            continue


def joint_model(seed, horizon=3, discount=1.0, most=MOST_JOINT):
    """Two to four variables, a latent now and then, blocks and values drawn one after another."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 4, size=rng.integers(2, 4))
    variables = [fsmdp.Variable(f"x{i}", int(size)) for i, size in enumerate(sizes)]
    actions = joint_actions(rng, most)
    latents = [fsmdp.Variable("noise", 2)] if rng.random() < 0.5 else []

    def some(among, most):
        count = min(len(among), int(rng.integers(0, most + 1)))
        return [among[at] for at in rng.permutation(len(among))[:count]]

    def case(children, drawn):
        parents = some([*some(variables, 2), *some(actions.variables, 2)], 4)
        seen = some(drawn, 1)
        shape = [v.size for v in (*parents, *seen)]
        outcomes = int(np.prod([v.size for v in children]))
        table = rng.dirichlet(np.full(outcomes, 0.7), size=shape)
        return fsmdp.Case(
            fsmdp.ANY, parents, table.reshape(*shape, *(v.size for v in children)), drawn=seen
        )

    conditionals = [fsmdp.Conditional(latent, case([latent], [])) for latent in latents]
    drawn = list(latents)
    blocks = [variables[:2], *([v] for v in variables[2:])] if rng.random() < 0.3 else None
    for block in blocks or [[v] for v in variables]:
        conditionals.append(fsmdp.Conditional(block, case(block, drawn)))
        drawn += block
    rewards = []
    for number in range(rng.integers(1, 4)):
        parents = [*some(variables, 2), *some(actions.variables, 2)]
        means = rng.uniform(-1, 1, size=[v.size for v in parents])
        rewards.append(fsmdp.Reward(f"r{number}", fsmdp.Case(fsmdp.ANY, parents, means), -1, 1))
    initial = {v.name: int(rng.integers(v.size)) for v in variables}
    return fsmdp.FactoredMDP(
        variables, actions, conditionals, rewards, horizon, initial, discount, latents
    )


def all_states(model):
    """Every state, last variable fastest."""
    return list(product(*map(range, model.sizes)))


def allowed_by_hand(actions):
    """Every allowed joint action, by looking at each assignment."""
    found = []
    for values in product(*map(range, actions.sizes)):
        if actions.at_most is not None and sum(v > 0 for v in values) > actions.at_most:
            continue
        if any(t.values[tuple(values[p] for p in t.scope)] for t in actions.forbidden):
            continue
        found.append(values)
    return found


def conditioned_joint_model(seed, terminal=True, **options):
    """A model of `joint_models` with conditions on states and action variables together."""
    rng = np.random.default_rng(seed)
    base = joint_model(seed, most=64, **options)
    allowed = []
    idle = base.actions.values(base.actions.idle())
    for _ in range(rng.integers(1, 4)):
        own = [base.variables[rng.integers(len(base.variables))]]
        count = min(len(base.actions.variables), int(rng.integers(1, 3)))
        chosen = sorted(rng.permutation(len(base.actions.variables))[:count].tolist())
        parents = [*own, *(base.actions.variables[p] for p in chosen)]
        table = (rng.random([v.size for v in parents]) < 0.6).astype(float)
        table[(slice(None), *(idle[p] for p in chosen))] = 1.0
        allowed.append(fsmdp.Case(fsmdp.ANY, parents, table))
    ends = []
    if terminal:
        variable = base.variables[rng.integers(len(base.variables))]
        over = np.zeros(variable.size)
        over[(base.initial[base.variables.index(variable)] + 1) % variable.size] = 1.0
        ends.append(fsmdp.Table(variable, over))
    return base.replace(allowed=allowed, terminal=ends)


def allowed_in(model, state):
    """Joint actions that are allowed in a state, by looking at each assignment."""
    found = []
    for values in allowed_by_hand(model.actions):
        named = dict(zip([v.name for v in model.variables], state, strict=True))
        named |= dict(zip([v.name for v in model.actions.variables], values, strict=True))
        if all(case.table[tuple(named[p] for p in case.parents)] != 0 for case in model.allowed):
            found.append(values)
    return found
