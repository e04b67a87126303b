"""Models whose numbers are hard on floating-point arithmetic."""

import numpy as np

import fsmdp


def odd_row(rng, size):
    """Probabilities down to 1e-300, zeros, and a sum that misses 1 by up to 9e-10."""
    row = 10.0 ** rng.uniform(-300, 0, size) if rng.random() < 0.5 else rng.random(size)
    row[rng.random(size) < 0.2] = 0.0
    row[rng.integers(size)] = 1.0
    row /= row.sum()
    return row * (1 + rng.choice([0.0, 9e-10, -9e-10]) * rng.random())


def odd_model(seed, horizon, discount=1.0):
    """Two or three variables with a latent, rare events, and rewards from 1e-12 to 1e12."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 4, size=rng.integers(2, 4))
    variables = [fsmdp.Variable(f"x{i}", int(size)) for i, size in enumerate(sizes)]
    latents = [fsmdp.Variable("noise", 2)] if rng.random() < 0.5 else []
    actions = ["one", "two", "three"][: rng.integers(1, 4)]

    def table(shape, child):
        return np.array([odd_row(rng, child) for _ in range(int(np.prod(shape)))]).reshape(
            *shape, child
        )

    conditionals = [
        fsmdp.Conditional(latent, fsmdp.Case(fsmdp.ANY, [], odd_row(rng, 2))) for latent in latents
    ]
    for variable in variables:
        cases = []
        for action in actions:
            parents = [v for v in variables if rng.random() < 0.5]
            drawn = [latent for latent in latents if rng.random() < 0.5]
            shape = [v.size for v in (*parents, *drawn)]
            names = [v.name for v in parents]
            cases.append(
                fsmdp.Case(
                    [action], names, table(shape, variable.size), drawn=[v.name for v in drawn]
                )
            )
        conditionals.append(fsmdp.Conditional(variable, cases))
    rewards = []
    for i, variable in enumerate(variables):
        values = rng.choice([-1, 1]) * 10.0 ** rng.uniform(-12, 12) * rng.random(variable.size)
        case = fsmdp.Case(fsmdp.ANY, [variable.name], values)
        rewards.append(fsmdp.Reward(f"r{i}", case, float(values.min()), float(values.max())))
    initial = {v.name: odd_row(rng, v.size) for v in variables if rng.random() < 0.5}
    return fsmdp.FactoredMDP(
        variables, actions, conditionals, rewards, horizon, initial, discount, latents
    )
