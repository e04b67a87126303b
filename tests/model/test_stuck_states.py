"""Whether every state allows an action: what is proved, against all states gone through."""

from itertools import product

import numpy as np
import pytest

import fsmdp
from fsmdp import ANY, Actions, Case, Conditional, FactoredMDP, Table, Variable


def random_conditions(seed, joint):
    """A model of random conditions on all actions, often with a state that allows nothing."""
    rng = np.random.default_rng(seed)
    variables = [Variable(f"x{i}", int(rng.integers(2, 4))) for i in range(4)]
    deciding = [Variable(f"a{i}", int(rng.integers(2, 4))) for i in range(3)]
    actions = ["left", "right", "stay"]
    if joint:
        most = [None, None, 1, 2][rng.integers(4)]
        forbidden = [Table(["a0", "a1"], rng.random((deciding[0].size, deciding[1].size)) < 0.2)]
        forbidden[0].values.flags.writeable = False
        actions = Actions(deciding, most, forbidden if not forbidden[0].values[0, 0] else [])
    allowed = []
    for at in range(rng.integers(3, 6)):
        named = ANY if joint else [actions[at % 3]]
        inputs = [*variables, *deciding] if joint else variables
        chosen = rng.choice(len(inputs), size=2, replace=False)
        scope = [inputs[i] for i in sorted(chosen)]
        shape = [one.size for one in scope]
        allowed.append(Case(named, scope, rng.random(shape) < rng.choice([0.6, 0.9])))
    ends = [Table(["x0"], rng.random(variables[0].size) < 0.3)]
    ends = ends if rng.random() < 0.7 else []
    laws = [Conditional(one, Case(ANY, [], np.full(one.size, 1 / one.size))) for one in variables]
    start = {one.name: np.full(one.size, 1 / one.size) for one in variables}
    return FactoredMDP(variables, actions, laws, [], 3, start, allowed=allowed, terminal=ends)


def stuck_states(model):
    """States that are not terminal and allow nothing, one after another."""
    every = model.actions.rows().tolist() if model.actions.variables else list(model.actions)
    for state in product(*map(range, model.sizes)):
        if not model.is_terminal(state) and not any(model.allows(state, one) for one in every):
            yield state


@pytest.mark.parametrize("joint", [False, True])
def test_what_is_proved_of_stuck_states_agrees_with_all_states(joint):
    found = []
    for seed in range(60):
        model = random_conditions(seed, joint)
        found.append(model.conditions.never_stuck)
        assert found[-1] == (next(stuck_states(model), None) is None), seed
    assert 5 < sum(found) < 55  # both happen


def test_many_variables_are_proved_by_elimination():
    names = [f"x{i}" for i in range(40)]
    variables = [Variable(name, 2) for name in names]
    laws = [Conditional(name, Case(ANY, [], [0.5, 0.5])) for name in names]
    # An action for each pair of neighbours, possible where they differ; all alike is terminal.
    moves = [f"swap {i}" for i in range(39)]
    differ = [Case(move, names[i : i + 2], [[0, 1], [1, 0]]) for i, move in enumerate(moves)]
    model = FactoredMDP(variables, moves, laws, [], 3, {"x0": 1}, allowed=differ)
    assert not model.conditions.never_stuck
    # Two neighbours in the middle always differ, or the episode is over: proved.
    over = Table(names[5:7], [[1, 0], [0, 1]])
    assert model.replace(terminal=[over], initial={"x5": 1}).conditions.never_stuck


def test_inspect_and_plan_say_what_was_not_proved():
    from fsmdp.cli.inspect import model_facts

    names = ["up", "down"]
    allowed = [Case("go", ["up"], [0, 1]), Case("go", ["down"], [1, 1])]
    still = [Conditional(name, Case(ANY, [name], np.eye(2))) for name in names]
    model = FactoredMDP(
        [Variable(name, 2) for name in names], ["go"], still, [], 3, {"up": 1}, allowed=allowed
    )
    assert model_facts(model)["some_action_always_allowed"] is False
    with pytest.warns(fsmdp.FsmdpWarning, match="not proved that each state allows an action"):
        fsmdp.plan(model)
    assert model_facts(model.replace(allowed=()))["some_action_always_allowed"] is True
