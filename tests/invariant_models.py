"""Small models with invariants that are known."""

import numpy as np

import fsmdp


def tokens(cells=5, start=2, horizon=3):
    """Neighbouring cells can be swapped: as many are taken as at the start, forever."""
    names = [f"cell-{i}" for i in range(cells)]
    swaps = [f"swap-{i}" for i in range(cells - 1)]
    stay = np.eye(2)
    conditionals = []
    for i, name in enumerate(names):
        cases = [fsmdp.Case(fsmdp.ANY, [name], stay)]
        if i > 0:
            cases.append(fsmdp.Case([swaps[i - 1]], [names[i - 1]], stay))
        if i < cells - 1:
            cases.append(fsmdp.Case([swaps[i]], [names[i + 1]], stay))
        conditionals.append(fsmdp.Conditional(name, cases))
    rewards = [
        fsmdp.Reward(
            f"on {name}", fsmdp.Case(fsmdp.ANY, [name], [0.0, float(worth)]), low=0, high=worth
        )
        for worth, name in enumerate(names, 1)
    ]
    # More than there are tokens would be best, and cannot be.
    crowd = np.zeros((2, 2, 2))
    crowd[1, 1, 1] = 10.0
    rewards.append(fsmdp.Reward("crowd", fsmdp.Case(fsmdp.ANY, names[-3:], crowd), low=0, high=10))
    return fsmdp.FactoredMDP(
        variables=[fsmdp.Variable(name, 2) for name in names],
        actions=["wait", *swaps],
        conditionals=conditionals,
        rewards=rewards,
        horizon=horizon,
        initial={name: int(i < start) for i, name in enumerate(names)},
    )


def one_way(horizon=4):
    """A door that stays open once it is, and a room that is entered through it alone."""
    chance = 0.5
    return fsmdp.FactoredMDP(
        variables=[fsmdp.Variable("open", 2), fsmdp.Variable("inside", 2)],
        actions=["wait", "push", "enter"],
        conditionals=[
            fsmdp.Conditional(
                "open",
                [
                    fsmdp.Case(fsmdp.ANY, ["open"], np.eye(2)),
                    fsmdp.Case(["push"], ["open"], [[1 - chance, chance], [0.0, 1.0]]),
                ],
            ),
            fsmdp.Conditional(
                "inside",
                [
                    fsmdp.Case(fsmdp.ANY, ["inside"], np.eye(2)),
                    fsmdp.Case(
                        ["enter"],
                        ["open", "inside"],
                        [[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]],
                    ),
                ],
            ),
        ],
        # Inside behind a closed door would be best, and cannot be.
        rewards=[
            fsmdp.Reward(
                "quiet",
                fsmdp.Case(fsmdp.ANY, ["open", "inside"], [[0.0, 5.0], [0.0, 1.0]]),
                low=0,
                high=5,
            )
        ],
        horizon=horizon,
        initial={"open": 0, "inside": 0},
    )
