"""Plain enumeration in nested loops: what fast code is compared with."""

from itertools import product

import numpy as np


def next_state_probabilities(model, state, action):
    """P(next state | state, action) by walking through every joint draw, one at a time."""
    n_variables = len(model.variables)
    sizes = [v.size for v in (*model.variables, *model.latents)]
    found = dict.fromkeys(product(*map(range, model.sizes)), 0.0)
    for drawn in product(*map(range, sizes)):
        probability = 1.0
        for conditional in model.conditionals:
            probability *= _probability(model, conditional, state, action, drawn)
            if probability == 0.0:
                break
        found[drawn[:n_variables]] += probability
    return found


def _probability(model, conditional, state, action, drawn):
    current = {v.name: state[i] for i, v in enumerate(model.variables)}
    new = {v.name: drawn[i] for i, v in enumerate((*model.variables, *model.latents))}
    case = find_case(conditional.cases, model.actions[action])
    index = (
        *(current[name] for name in case.parents),
        *(new[name] for name in case.drawn),
        *(new[name] for name in conditional.children),
    )
    return float(case.table[index])


def find_case(cases, action):
    """The case that names the action, or else the one for ANY."""
    for case in cases:
        if isinstance(case.actions, tuple) and action in case.actions:
            return case
    return next(case for case in cases if not isinstance(case.actions, tuple))


def marginal(probabilities, scope, sizes):
    """Sum a distribution over next states down to the variables of a scope."""
    table = np.zeros([sizes[p] for p in scope])
    for state, probability in probabilities.items():
        table[tuple(state[p] for p in scope)] += probability
    return table


def mean_reward(model, state, action):
    """Sum of the terms' means."""
    current = {v.name: state[i] for i, v in enumerate(model.variables)}
    total = 0.0
    for reward in model.rewards:
        case = find_case(reward.cases, model.actions[action])
        total += float(case.table[tuple(current[name] for name in case.parents)])
    return total


def all_states(model):
    """Every state, last variable fastest."""
    return list(product(*map(range, model.sizes)))
