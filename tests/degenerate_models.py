"""Models at the edge of what a model may be, by name."""

import numpy as np

import fsmdp


def _model(
    sizes, actions=("a", "b"), reward=1.0, horizon=3, discount=1.0, initial=None, **conditions
):
    """Independent variables; the first one's value is rewarded, up to `reward` (None: nothing)."""
    variables = [fsmdp.Variable(f"x{i}", size) for i, size in enumerate(sizes)]
    conditionals = [
        fsmdp.Conditional(
            one, [fsmdp.Case(fsmdp.ANY, [one.name], np.full((one.size,) * 2, 1 / one.size))]
        )
        for one in variables
    ]
    rewards = []
    if reward is not None:
        values = np.linspace(0.0, reward, sizes[0]) if sizes[0] > 1 else np.array([reward])
        case = fsmdp.Case(fsmdp.ANY, [variables[0].name], values)
        rewards = [fsmdp.Reward("r", [case], low=min(0.0, reward), high=max(0.0, reward))]
    actions = actions if isinstance(actions, fsmdp.Actions) else list(actions)
    return fsmdp.FactoredMDP(
        variables, actions, conditionals, rewards, horizon, initial or {}, discount, **conditions
    )


def _chosen(*sizes):
    return fsmdp.Actions([fsmdp.Variable(f"u{i}", size) for i, size in enumerate(sizes)])


ENDLESS = {"horizon": None, "discount": 0.9}

DEGENERATE = {
    "one value": _model((1,)),
    "one value and action": _model((1,), ("a",)),
    "one value without end": _model((1,), **ENDLESS),
    "two variables of one value": _model((1, 1)),
    "a variable of one value": _model((1, 2)),
    "a variable of one value without end": _model((2, 1), **ENDLESS),
    "rewards of zero": _model((2, 2), reward=0.0),
    "rewards of zero without end": _model((2, 2), reward=0.0, **ENDLESS),
    "no rewards": _model((2, 2), reward=None),
    "no rewards without end": _model((2, 2), reward=None, **ENDLESS),
    "negative rewards": _model((2, 2), reward=-1.0),
    "one action": _model((3, 2), ("a",)),
    "horizon 1": _model((2, 2), horizon=1),
    "horizon 1 and one value": _model((1,), ("a",), horizon=1),
    "a discount next to 0": _model((2, 2), horizon=None, discount=1e-300),
    "a discount next to 0, three steps": _model((2, 2), discount=1e-300),
    "a start that excludes values": _model((3, 2), initial={"x0": [0, 0, 1.0], "x1": [1.0, 0]}),
    "an action variable of one value": _model((2, 2), _chosen(1)),
    "action variables of one and two values": _model((2, 2), _chosen(1, 2)),
    "nothing to choose and one value": _model((1,), _chosen(1), **ENDLESS),
    "an action that is never allowed": _model((2, 2), allowed=[fsmdp.Case("a", ["x0"], [0, 0])]),
    "one action in each state": _model(
        (2, 2), allowed=[fsmdp.Case("a", ["x0"], [0, 1]), fsmdp.Case("b", ["x0"], [1, 0])]
    ),
    "over after a step": _model((2, 2), terminal=[fsmdp.Table(["x0", "x1"], [[0, 1], [1, 1]])]),
    "over after a step, without end": _model(
        (2, 2), terminal=[fsmdp.Table(["x0", "x1"], [[0, 1], [1, 1]])], **ENDLESS
    ),
    "an end and a negative reward": _model(
        (2, 2), reward=-1.0, terminal=[fsmdp.Table("x1", [0, 1])], **ENDLESS
    ),
    "a value of an action variable that is never allowed": _model(
        (2, 1), _chosen(2, 3), allowed=[fsmdp.Case(fsmdp.ANY, ["u1", "x1"], [[1], [1], [0]])]
    ),
    "an action that has to be taken": _model(
        (2, 2), _chosen(2), allowed=[fsmdp.Case(fsmdp.ANY, ["x0", "u0"], [[1, 0], [0, 1]])]
    ),
}

BASES = {
    "default": lambda model: None,
    "empty": lambda model: fsmdp.Basis([]),
    "singles": fsmdp.Basis.singles,
    "pairs": fsmdp.Basis.pairs,
}
