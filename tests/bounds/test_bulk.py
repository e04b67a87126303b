"""Actions in many states at once are those in each."""

import numpy as np
import pytest

import fsmdp


def _states(model, count, seed=0):
    return np.random.default_rng(seed).integers(0, model.sizes, (count, len(model.sizes)))


PLANS = {
    "greedy": lambda model: fsmdp.plan(model, method="programs"),
    "exact": fsmdp.plan,
    "fitted": lambda model: fsmdp.plan(model, method="fitted"),
}


@pytest.mark.parametrize("kind", PLANS)
def test_actions_in_many_states_are_those_in_each(kind):
    model = fsmdp.domains.random_model(3)
    plan, states = PLANS[kind](model), _states(model, 60)
    for step in (1, model.horizon):
        one_by_one = [plan.action(state, step) for state in states]
        assert plan.actions(states, step).tolist() == one_by_one
        at = plan.actions(states, step, positions=True)
        assert [model.actions[a] for a in at] == one_by_one
        assert plan.actions(states.tolist(), step).tolist() == one_by_one


def test_more_states_than_one_thread_takes():
    model = fsmdp.domains.sysadmin(8)
    plan, states = fsmdp.plan(model, method="programs"), _states(model, 10_000)
    chosen = plan.actions(states)
    for position in (0, 4999, 5000, 9999):
        assert chosen[position] == plan.action(states[position])


def test_states_are_given_by_name_as_well():
    model = fsmdp.domains.sysadmin(3)
    plan = fsmdp.plan(model, method="programs")
    names = [variable.name for variable in model.variables]
    state = dict(zip(names, (1, 0, 1), strict=True))
    backwards = dict(reversed(state.items()))
    assert plan.action(backwards) == plan.action((1, 0, 1))
    assert plan.value(backwards) == plan.value((1, 0, 1))
    assert plan.q_values(backwards).tolist() == plan.q_values((1, 0, 1)).tolist()
    assert plan.actions([state, (1, 1, 1)]).tolist() == [
        plan.action(state),
        plan.action((1, 1, 1)),
    ]
    exact = fsmdp.solve_exactly(model)
    assert exact.action(backwards) == exact.action((1, 0, 1))


@pytest.mark.parametrize(
    ("states", "message"),
    [
        ((1, 0, 1), "state: expected"),
        ({"machine-0": 1}, "for a single state use plan.action"),
        ([{"machine-0": 1}], "no value for variable 'machine-1'"),
        ([{"machine-0": 1, "pump": 0}], "unknown variable 'pump'"),
        (np.zeros((2, 4), dtype=int), "expected whole numbers of shape"),
        (np.zeros((2, 3)), "found float64"),
        (np.array([[0, 0, 0], [0, 2, 0]]), "'machine-1' is 2"),
        ([(0, 0, -1)], "'machine-2' is -1"),
    ],
)
def test_states_that_are_none_are_refused(states, message):
    plan = fsmdp.plan(fsmdp.domains.sysadmin(3), method="programs")
    with pytest.raises(fsmdp.ModelError, match=message):
        plan.actions(states)


def test_states_that_cannot_be_written_to_can_be_asked_about():
    plan = fsmdp.plan(fsmdp.domains.sysadmin(3), method="programs")
    states = np.ones((2, 3), dtype=np.int64)
    states.flags.writeable = False
    assert plan.actions(states).tolist() == [plan.action((1, 1, 1))] * 2


def test_no_states_have_no_actions():
    plan = fsmdp.plan(fsmdp.domains.sysadmin(3), method="programs")
    assert len(plan.actions(np.zeros((0, 3), dtype=int))) == 0
    assert len(plan.actions([])) == 0
