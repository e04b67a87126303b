"""Exact values of models with allowed actions and terminal states, by every way to compute them."""

import numpy as np
import pytest
from tests.conditioned_models import conditioned, is_allowed, is_terminal, optimal_values

import fsmdp
from fsmdp.errors import ModelError
from fsmdp.exact.flat import enumerate_states, solve_flat
from fsmdp.exact.solve import fit, sweep_back

SEEDS = range(6)


@pytest.mark.parametrize("seed", SEEDS)
def test_all_ways_agree_with_plain_enumeration(seed):
    model = conditioned(seed)
    expected = optimal_values(model)
    plan, keep_all = fit(model, 2**28)
    ways = {
        "enumerated": fsmdp.ExactSolution(model, *solve_flat(enumerate_states(model))[:2]),
        "contracted": sweep_back(model, plan, keep_all, lambda: None),
        "reachable": fsmdp.Exact(reachable=True).plan(model),
    }
    for name, solution in ways.items():
        for state, value in expected.items():
            if name == "reachable" and solution.reached.find(model, state) not in range(
                solution.reached.within(0)
            ):
                continue
            assert solution.value(state) == pytest.approx(value, abs=1e-9), (name, state)


@pytest.mark.parametrize("seed", SEEDS)
def test_discounted_values_without_end_agree_with_many_sweeps(seed):
    model = conditioned(seed, horizon=None, discount=0.8)
    expected = optimal_values(model, sweeps=120)
    plan, keep_all = fit(model, 2**28)
    for solution in (
        fsmdp.solve_exactly(model),
        sweep_back(model, plan, keep_all, lambda: None),
    ):
        for state, value in expected.items():
            assert solution.value(state) == pytest.approx(value, abs=1e-7)


@pytest.mark.parametrize("seed", SEEDS)
def test_solutions_only_take_allowed_actions(seed):
    model = conditioned(seed)
    solution = fsmdp.solve_exactly(model)
    for state in np.ndindex(*model.sizes):
        if not is_terminal(model, state):
            for step in range(1, model.horizon + 1):
                action = model.actions.index(solution.action(state, step))
                assert is_allowed(model, state, action)


def test_a_state_that_allows_nothing_is_an_error_when_it_is_reached():
    model = fsmdp.FactoredMDP(
        [fsmdp.Variable("level", 3)],
        ["up"],
        [fsmdp.Conditional("level", [fsmdp.Case("up", ["level"], np.eye(3)[[1, 2, 2]])])],
        [],
        horizon=5,
        allowed=[fsmdp.Case("up", ["level"], [1, 1, 0])],
    )
    assert not model.conditions.never_stuck
    with pytest.raises(ModelError, match=r"no action is allowed in state \(2,\)"):
        fsmdp.solve_exactly(model)
    fine = model.replace(terminal=[fsmdp.Table("level", [0, 0, 1])])
    assert fine.conditions.never_stuck
    assert fsmdp.solve_exactly(fine).start_value == 0.0


def test_evaluation_refuses_tables_of_forbidden_actions_and_states_that_allow_nothing():
    model = conditioned(1, horizon=3, terminal=False)
    action = next(iter(model.conditions.allowed[0].exceptions))
    with pytest.raises(fsmdp.PolicyError, match="is not allowed in state"):
        fsmdp.evaluate_exactly(model, np.full(model.n_states, action))
    table = np.array(np.arange(model.sizes[0]) > 0, dtype=float)
    stuck = model.replace(
        allowed=[fsmdp.Case(fsmdp.ANY, [model.variables[0]], table)],
        initial=[1, *(0 for _ in model.sizes[1:])],
    )
    with pytest.raises(ModelError, match="no action is allowed"):
        fsmdp.evaluate_exactly(stuck, "random")


def test_a_start_in_which_nothing_is_allowed_is_refused_when_the_model_is_built():
    model = conditioned(1, horizon=3, terminal=False, random_start=False)
    with pytest.raises(ModelError, match="no action is allowed"):
        model.replace(allowed=[fsmdp.Case(fsmdp.ANY, [], 0.0)])


@pytest.mark.parametrize("method", ["auto", "stagewise", "joint", "bundled", "cutting-planes"])
def test_plans_of_models_that_get_stuck_are_refused(method):
    chances = [[0.5, 0.5, 0], [0, 0.5, 0.5], [0.3, 0.3, 0.4]]
    model = fsmdp.FactoredMDP(
        [fsmdp.Variable("s", 3)],
        ["a", "b"],
        [fsmdp.Conditional("s", fsmdp.Case(fsmdp.ANY, ["s"], chances))],
        [fsmdp.Reward("r", fsmdp.Case(fsmdp.ANY, ["s"], [0, 0.5, 1]))],
        horizon=3,
        initial={"s": 1},
        allowed=[fsmdp.Case(fsmdp.ANY, ["s"], [0, 1, 1])],
    )
    with pytest.raises(ModelError, match=r"no action is allowed in state \(0,\)"):
        fsmdp.plan(model, fsmdp.Basis.singles(model), method=method)
