"""A supply chain as a new user would write it: action variables, a latent, wide tables."""

import numpy as np

import fsmdp

LEVELS, SITES = 8, 5


def supply_chain(sites=SITES, levels=LEVELS, **ends):
    """Stocks along a chain; orders and one transport at a time; one demand for all shops.

    The first site orders up to three units. A transport moves up to two units from a site to the
    next. Of a common demand, a latent, each site sells what it has. Tables are over all that a
    user would name: own stock, the stock before it, and both action variables.
    """
    names = [f"stock-{i}" for i in range(sites)]
    order, transport = fsmdp.Variable("order", 4), fsmdp.Variable("transport", sites)
    demand = fsmdp.Variable("demand", 3)
    conditionals = [fsmdp.Conditional("demand", fsmdp.Case(fsmdp.ANY, [], [0.5, 0.3, 0.2]))]
    for i, name in enumerate(names):
        before = names[i - 1] if i else None
        parents = [*([before] if before else []), name, "order", "transport"]
        sizes = [*([levels] if before else []), levels, 4, sites, 3]
        table = np.zeros((*sizes, levels))
        for index in np.ndindex(*sizes):
            own, ordered, moved, sold = index[-5 + 1 :]
            stock = own
            if i == 0:
                stock += ordered
            if moved == i and moved > 0:
                stock += min(2, index[0])
            if moved == i + 1 and moved < sites:
                stock -= min(2, own)
            stock = min(max(stock - max(0, sold - i % 2), 0), levels - 1)
            table[(*index, stock)] = 1.0
        case = fsmdp.Case(fsmdp.ANY, parents, table, drawn=["demand"])
        conditionals.append(fsmdp.Conditional(name, case))
    sales = np.minimum(np.arange(levels), 1.1) / 2 - 0.03 * np.arange(levels)
    rewards = [
        fsmdp.Reward(f"sales-{i}", fsmdp.Case(fsmdp.ANY, [name], sales), low=-1, high=1)
        for i, name in enumerate(names)
    ]
    cost = fsmdp.Case(fsmdp.ANY, ["order"], -0.12 * np.arange(4))
    rewards.append(fsmdp.Reward("orders", cost, low=-1, high=0))
    return fsmdp.FactoredMDP(
        [fsmdp.Variable(name, levels) for name in names],
        fsmdp.Actions([order, transport]),
        conditionals,
        rewards,
        latents=[demand],
        initial=dict.fromkeys(names, 2),
        **ends or {"horizon": 25},
    )
