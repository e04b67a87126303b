"""Reductions: maps of states, chains of them, and what their values say of the original's."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fsmdp
from fsmdp.errors import ModelError
from fsmdp.exact.flat import enumerate_states
from fsmdp.reductions.actions import ListActions
from fsmdp.reductions.joining import Join
from fsmdp.reductions.projection import Project
from fsmdp.reductions.reduction import (
    REDUCTIONS,
    Chain,
    Reduction,
    StateMap,
    compose,
    keep_variables,
    reductions_of,
    state_map,
    unchanged,
)
from fsmdp.solver.warmup import tiny


def value_of(model, policy):
    """What a policy earns from the start, by enumeration."""
    return float(enumerate_states(model).initial() @ fsmdp.evaluate_exactly(model, policy))


def random_map(rng, sizes, n_new, most=3):
    """New variables of one or several members, with random codes."""
    found = []
    for _ in range(n_new):
        members = rng.choice(len(sizes), size=int(rng.integers(1, 3)), replace=False)
        default = int(rng.integers(most))
        found.append(
            [(int(m), [default, *rng.integers(most, size=sizes[m] - 1).tolist()]) for m in members]
        )
    return found


def by_hand(variables, state):
    return [
        next((codes[state[m]] for m, codes in reversed(own) if state[m] > 0), own[0][1][0])
        for own in variables
    ]


@given(st.integers(0, 10**6))
@settings(max_examples=40)
def test_a_new_variable_has_the_code_of_its_last_nonzero_member(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 4, size=4).tolist()
    variables = random_map(rng, sizes, 3)
    states = rng.integers(sizes, size=(30, 4))
    found = state_map(variables).apply(states)
    assert found.tolist() == [by_hand(variables, state) for state in states.tolist()]
    assert (state_map(variables).apply(states[0]) == found[0]).all()


@given(st.integers(0, 10**6))
@settings(max_examples=80)
def test_a_composed_map_is_one_after_the_other_or_refused(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 4, size=4).tolist()
    first = state_map(random_map(rng, sizes, 3))
    second = state_map(random_map(rng, [3, 3, 3], 2))
    states = rng.integers(sizes, size=(60, 4))
    try:
        found = compose(first, second)
    except ModelError:
        return
    assert (found.apply(states) == second.apply(first.apply(states))).all()


def test_joined_variables_can_be_left_out_after_joining():
    first = state_map([[(0, [0, 1]), (1, [0, 2])], [(2, [0, 1])]])
    second = keep_variables([0], [3, 2])
    states = np.array([[0, 0, 1], [1, 0, 0], [0, 1, 1]])
    assert compose(first, second).apply(states).tolist() == [[0], [1], [2]]
    with pytest.raises(ModelError, match="as for the others of its group"):
        state_map([[(0, [0, 1]), (1, [1, 2])]])


@pytest.mark.parametrize("endless", [False, True])
def test_a_chain_of_reductions_is_a_reduction(endless):
    listed = tiny(None, 0.5) if endless else tiny()
    model = fsmdp.factored(listed)
    assert model.actions.variables
    reduced = Chain("both", (ListActions(), Join())).apply(model)
    assert reduced.rewritten
    assert (reduced.relation, reduced.label) == ("equal", "joined ")
    assert reduced.original is model
    best, solution = fsmdp.solve_exactly(listed), fsmdp.solve_exactly(reduced.model)
    assert solution.start_value == pytest.approx(best.start_value)
    assert solution.start_value < reduced.bound(solution.start_value) < solution.start_value + 1e-9
    policy = reduced.policy(solution)
    value = value_of(model.listed(), policy)
    assert value == pytest.approx(best.start_value)
    assert model.mean_reward([0, 0, 1], policy.action([0, 0, 1])) >= 0
    states = np.array([[0, 0, 1], [1, 0, 0], [0, 1, 1]])
    assert (reduced.back(reduced.states(states)) == states).all()
    for copied in (pickle.loads(pickle.dumps(reduced)), copy.deepcopy(reduced)):
        assert (copied.states(states) == reduced.states(states)).all()
        assert (copied.name, copied.relation) == (reduced.name, reduced.relation)


def test_a_chain_ends_where_a_part_does_not_help():
    model = fsmdp.domains.sysadmin(3)
    assert Chain("both", (ListActions(), Join())).apply(model) is None
    many = fsmdp.domains.sysadmin(12, administrators="each")
    assert ListActions().apply(many) is None
    (only,) = reductions_of(model)
    assert only.model is model
    assert not only.rewritten
    assert (only.label, only.bound(1.0)) == ("", 1.0)


def test_listed_actions_are_the_same_model():
    model = fsmdp.domains.sysadmin(3, administrators=2)
    listed = ListActions().apply(model)
    assert not listed.rewritten
    assert listed.slack == 0.0
    best = fsmdp.solve_exactly(listed.model)
    acting = listed.policy(best)
    assert acting.action([0, 0, 0]) in model.actions
    value = value_of(listed.model, acting)
    assert value == pytest.approx(best.start_value)


def test_a_projection_bounds_nothing_but_its_policy_acts():
    model = fsmdp.domains.sysadmin(4, horizon=4)
    uniform = [np.full(size, 1 / size) for size in model.sizes]
    reduced = Project([1, 2], range(len(model.rewards)), uniform).apply(model)
    assert reduced.relation == "heuristic"
    assert reduced.bound(0.0) == np.inf
    assert reduced.back(np.zeros((1, 2), dtype=np.int64)) is None
    solution = fsmdp.solve_exactly(reduced.model)
    policy = reduced.policy(solution)
    assert policy.action([0, 1, 0, 1]) == solution.action((1, 0))
    assert fsmdp.rollout(model, policy, 50).mean > 0
    chained = Chain("two", (Once(unchanged), Once(lambda one: reduced))).apply(model)
    assert chained is reduced


class Once(Reduction):
    """What a function makes of a model."""

    name = "once"

    def __init__(self, function):
        self.function = function

    def apply(self, model):
        return self.function(model)


def test_the_registry_holds_what_the_solver_tries():
    assert list(REDUCTIONS) == ["joined"]
    with pytest.raises(ModelError, match="expected a Reduction"):
        REDUCTIONS.add(Join)
    assert isinstance(unchanged(tiny()).state_map, StateMap)
