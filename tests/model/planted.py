"""Random models in which some groups of variables are exclusive, drawn in every way there is."""

from itertools import product

import numpy as np

from fsmdp import ANY, Case, Conditional, FactoredMDP, Reward, Variable

WAYS = ("joint", "latent", "chain", "apart")


def planted_model(seed, ways=WAYS):
    """A model and its planted groups, by name.

    From states in which two members are nonzero anything may happen, so that nothing holds that
    does not hold by induction.
    """
    rng = np.random.default_rng(seed)
    groups = [
        [Variable(f"g{g} {'abc'[m]}", int(rng.integers(2, 4))) for m in range(rng.integers(2, 4))]
        for g in range(rng.integers(1, 3))
    ]
    while np.prod([v.size for group in groups for v in group]) > 100:
        groups.pop()
    if not groups:
        groups = [[Variable("g0 a", 2), Variable("g0 b", 3)]]
    free = [Variable(name, 2) for name in ("left", "right")[: rng.integers(1, 3)]]
    variables = [variable for group in groups for variable in group] + free
    order = rng.permutation(len(variables))
    actions = ["stay", "go", "run"][: rng.integers(1, 4)]
    latents, conditionals = [], []
    for number, group in enumerate(groups):
        others = [v for v in variables if v not in group]
        parents = [*group, *rng.permutation(np.array(others, dtype=object))[:1]]
        way = str(rng.choice(ways))
        if way == "latent":
            latents.append(Variable(f"way {number}", len(_legal(group))))
        conditionals += _group_conditionals(rng, group, parents, way, actions, latents)
    for variable in free:
        looked_at = list(rng.permutation(np.array(variables, dtype=object))[:2])
        drawn = [groups[0][0]] if rng.random() < 0.5 else []
        conditionals.append(
            Conditional(
                variable,
                [
                    Case(who, looked_at, _rows(rng, [*looked_at, *drawn], (2,)), drawn)
                    for who in _cases(rng, actions)
                ],
            )
        )
    rewards = []
    for term in range(2):
        scope = list(rng.permutation(np.array(variables, dtype=object))[:3])
        table = [rng.uniform(-1, 1, [v.size for v in scope]) for _ in range(2)]
        cases = [Case(ANY, scope, table[0])]
        if len(actions) > 1:
            cases.append(Case([actions[1]], scope, table[1]))
        rewards.append(Reward(f"term {term}", cases, low=-1, high=1))
    initial = {}
    for group in groups:
        member = group[rng.integers(len(group))]
        initial[member.name] = rng.dirichlet(np.ones(member.size))
    endless = rng.random() < 0.3
    model = FactoredMDP(
        [variables[at] for at in order],
        actions,
        conditionals,
        rewards,
        horizon=None if endless else 3,
        discount=0.8 if endless else 1.0,
        initial=initial,
        latents=latents,
    )
    return model, [[v.name for v in group] for group in groups]


def _cases(rng, actions):
    return [ANY, [actions[-1]]] if len(actions) > 1 and rng.random() < 0.7 else [ANY]


def _legal(group):
    """Assignments of a group with at most one member nonzero."""
    return [one for one in product(*(range(v.size) for v in group)) if np.count_nonzero(one) <= 1]


def _rows(rng, parents, outcome):
    size = int(np.prod(outcome))
    rows = rng.dirichlet(np.full(size, 0.7), [v.size for v in parents])
    return rows.reshape(*(v.size for v in parents), *outcome)


def _sparse(rng, size):
    """A distribution in which many outcomes never happen."""
    chosen = rng.random(size) < 0.5
    chosen[rng.integers(size)] = True
    weights = np.where(chosen, rng.random(size) + 0.1, 0.0)
    return weights / weights.sum()


def _group_conditionals(rng, group, parents, way, actions, latents):
    whos = _cases(rng, actions)
    sizes = tuple(v.size for v in group)
    legal = _legal(group)
    if way == "latent":
        latent = latents[-1]
        rows = [
            np.array([_sparse(rng, len(legal)) for _ in product(*(range(v.size) for v in parents))])
            for _ in whos
        ]
        shape = (*(v.size for v in parents), len(legal))
        found = [
            Conditional(
                latent,
                [
                    Case(who, parents, table.reshape(shape))
                    for who, table in zip(whos, rows, strict=True)
                ],
            )
        ]
        for at, member in enumerate(group):
            table = np.zeros((len(legal), member.size))
            table[np.arange(len(legal)), [one[at] for one in legal]] = 1
            found.append(Conditional(member, Case(ANY, [], table, [latent])))
        return found
    joints = [_joint_table(rng, group, parents, way == "apart") for _ in whos]
    if way == "joint":
        return [
            Conditional(
                group, [Case(who, parents, joint) for who, joint in zip(whos, joints, strict=True)]
            )
        ]
    found = []
    for at, member in enumerate(group):
        cases = []
        for who, joint in zip(whos, joints, strict=True):
            first = len(parents)
            later = tuple(range(first + at + 1, first + len(sizes)))
            marginal = joint.sum(axis=later)
            if way == "apart":
                table = marginal.sum(axis=tuple(range(first, first + at)))
                cases.append(Case(who, parents, table))
                continue
            total = marginal.sum(axis=-1, keepdims=True)
            even = np.full_like(marginal, 1 / member.size)
            table = np.divide(marginal, total, out=even, where=total > 0)
            cases.append(Case(who, parents, table, group[:at]))
        found.append(Conditional(member, cases))
    return found


def _joint_table(rng, group, parents, apart):
    """P(members | parents), on one member at most from where that holds, else anything.

    `apart`: a single member is random, so that the product of the marginals is the joint.
    """
    legal = _legal(group)
    sizes = tuple(v.size for v in group)
    table = np.zeros((*(v.size for v in parents), *sizes))
    for state in product(*(range(v.size) for v in parents)):
        if np.count_nonzero(state[: len(group)]) > 1:
            table[state] = rng.dirichlet(np.ones(int(np.prod(sizes)))).reshape(sizes)
            continue
        outcomes = legal
        if apart:
            member = rng.integers(len(group))
            outcomes = [one for one in legal if not any(np.delete(one, member))]
        for one, probability in zip(outcomes, _sparse(rng, len(outcomes)), strict=True):
            table[(*state, *one)] = probability
    return table
