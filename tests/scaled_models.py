"""The same model with rewards in another unit, or with a constant added to one of their terms."""

import numpy as np

import fsmdp


def with_rewards(model, change):
    """The model with `change(number, term)` for every number of its rewards."""
    rewards = []
    for term, reward in enumerate(model.rewards):
        cases = [
            fsmdp.Case(case.actions, case.parents, change(case.table, term))
            for case in reward.cases
        ]
        low, high = (float(change(np.float64(end), term)) for end in (reward.low, reward.high))
        sigma = float(change(np.float64(reward.sigma), term) - change(np.float64(0.0), term))
        rewards.append(fsmdp.Reward(reward.name, cases, low, high, sigma))
    return fsmdp.FactoredMDP(
        model.variables,
        model.actions,
        model.conditionals,
        rewards,
        model.horizon,
        dict(zip((v.name for v in model.variables), model.initial, strict=True)),
        model.discount,
        model.latents,
    )


def scaled(model, unit):
    """All rewards in another unit."""
    return with_rewards(model, lambda numbers, _: numbers * unit)


def shifted(model, constant, term=0):
    """A constant added to one term, under all actions."""
    return with_rewards(model, lambda numbers, at: numbers + constant * (at == term))


def dyadic(model):
    """Rewards rounded to multiples of 2^-10, so that constants can be added exactly."""
    return with_rewards(model, lambda numbers, _: np.round(numbers * 1024) / 1024)


def discounted(model, discount):
    """The same model without a horizon."""
    return fsmdp.FactoredMDP(
        model.variables,
        model.actions,
        model.conditionals,
        model.rewards,
        None,
        dict(zip((v.name for v in model.variables), model.initial, strict=True)),
        discount,
        model.latents,
    )
