"""An environment that does not keep to Gymnasium's rules, in one way at a time."""

import gymnasium
import numpy as np

import fsmdp

HORIZON = 3


class Unreadable:
    """Something that no array can be made of."""

    def __array__(self, *_, **__):
        raise RuntimeError("no array")

    def __len__(self):
        raise RuntimeError("no length")

    def __repr__(self):
        raise RuntimeError("no text")


class Lying(gymnasium.Env):
    """Two switches that are set at random; `lie` changes what a call returns, from a step on."""

    def __init__(self, lie=tuple, call="step", since=1):
        self.observation_space = gymnasium.spaces.MultiDiscrete([2, 3])
        self.action_space = gymnasium.spaces.Discrete(2)
        self.lie, self.call, self.since, self.steps = lie, call, since, 0

    def shown(self):
        return self.np_random.integers([2, 3])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        found = (self.shown(), {})
        return self.lie(found) if self.call == "reset" else found

    def step(self, action):
        self.steps += 1
        info = {"rewards": np.array([0.25, 0.5])}
        found = (self.shown(), 0.75, False, self.steps == HORIZON, info)
        return self.lie(found) if self.call == "step" and self.steps >= self.since else found


def structure(horizon=HORIZON):
    variables = [fsmdp.Variable("a", 2), fsmdp.Variable("b", 3)]
    cases = [fsmdp.Case(fsmdp.ANY, parents=["a"])]
    table = [fsmdp.Case(fsmdp.ANY, parents=["a"], table=[0.5, 0.5])]
    return fsmdp.Structure.from_parents(
        variables,
        ["wait", "go"],
        parents={"a": cases, "b": cases},
        rewards=[fsmdp.Reward(name, table, low=0, high=1) for name in ("one", "two")],
        basis=fsmdp.Basis.singles(variables),
        horizon=horizon,
    )


def at(position, value):
    """A lie: another value at a position of what is returned."""
    return lambda found: (*found[:position], value, *found[position + 1 :])


def raising(error):
    def lie(found):
        raise error

    return lie


def terms(value):
    return at(4, {"rewards": value})


NO_NUMBERS = {
    "NaN": np.nan,
    "infinite": np.inf,
    "nothing": None,
    "text": "1",
    "two numbers": np.array([1.0, 2.0]),
    "an object": object(),
    "unreadable": Unreadable(),
    "a complex number": 1j,
}
NO_FLAGS = {
    "an array": np.array([False, True]),
    "an empty array": np.array([], dtype=bool),
    "nothing": None,
    "text": "no",
    "a number": 0,
    "unreadable": Unreadable(),
}
NO_STATES = {
    "of another shape": np.array([0]),
    "one number": 0,
    "too large": np.array([0, 3]),
    "negative": np.array([-1, 0]),
    "NaN": np.array([0, np.nan]),
    "infinite": np.array([0, np.inf]),
    "huge": np.array([0, 2**63], dtype=np.uint64),
    "fractions": np.array([0, 0.5]),
    "text": "00",
    "nothing": None,
    "a dictionary": {"a": 0, "b": 0},
    "ragged": [0, [1, 2]],
    "unreadable": Unreadable(),
}
NO_TERMS = {
    "too few": [0.5],
    "too many": [0.5, 0.5, 0.5],
    "NaN": [0.5, np.nan],
    "infinite": [0.5, -np.inf],
    "text": ["a", "b"],
    "nothing": None,
    "one number": 0.5,
    "unreadable": Unreadable(),
    "out of bounds": [0.5, 7.0],
}
ERRORS = {
    "an error": ZeroDivisionError("by nothing"),
    "the end": SystemExit(3),
    "a lookup": KeyError("x"),
    "an assertion": AssertionError(),
}

STEPS = {
    "four values": lambda found: found[:4],
    "six values": lambda found: (*found, 0),
    "nothing": lambda found: None,
    "a list": lambda found: list(found),
    "a number": lambda found: 1.5,
    "unreadable": lambda found: Unreadable(),
    **{f"observation {name}": at(0, value) for name, value in NO_STATES.items()},
    **{f"reward {name}": at(1, value) for name, value in NO_NUMBERS.items()},
    **{f"terminated {name}": at(2, value) for name, value in NO_FLAGS.items()},
    **{f"truncated {name}": at(3, value) for name, value in NO_FLAGS.items()},
    **{
        f"info {name}": at(4, value)
        for name, value in (("nothing", None), ("text", "x"), ("a list", []))
    },
    **{f"raising {name}": raising(error) for name, error in ERRORS.items()},
}
"""Lies of a step that every command sees."""

REWARDS = {
    "no rewards by term": at(4, {}),
    **{f"rewards {name}": terms(value) for name, value in NO_TERMS.items()},
}
"""Lies of a step about rewards by term, which learners see."""

RESETS = {
    "no tuple": lambda found: found[0],
    "three values": lambda found: (*found, 0),
    "nothing": lambda found: None,
    **{f"observation {name}": at(0, value) for name, value in NO_STATES.items()},
    "info nothing": at(1, None),
    **{f"raising {name}": raising(error) for name, error in ERRORS.items()},
}

SPACES = {
    "no observation space": {"observation_space": None},
    "other sizes": {"observation_space": gymnasium.spaces.MultiDiscrete([2, 2])},
    "another variable": {"observation_space": gymnasium.spaces.MultiDiscrete([2, 3, 2])},
    "one number of other states": {"observation_space": gymnasium.spaces.Discrete(5)},
    "real observations": {"observation_space": gymnasium.spaces.Box(0, 1, (2,))},
    "no action space": {"action_space": None},
    "more actions": {"action_space": gymnasium.spaces.Discrete(3)},
    "several actions": {"action_space": gymnasium.spaces.MultiDiscrete([2, 2])},
    "real actions": {"action_space": gymnasium.spaces.Box(0, 1, (2,))},
}


def with_spaces(**spaces):
    env = Lying()
    for name, space in spaces.items():
        setattr(env, name, space)
    return env


def environments():
    """(label, environment, whether its lie is one about rewards by term) for every lie."""
    for name, lie in STEPS.items():
        yield f"step: {name}", Lying(lie), False
    for name, lie in REWARDS.items():
        yield f"step: {name}", Lying(lie, since=2), True
    for name, lie in RESETS.items():
        yield f"reset: {name}", Lying(lie, "reset"), False
    for name, spaces in SPACES.items():
        yield f"spaces: {name}", with_spaces(**spaces), False
