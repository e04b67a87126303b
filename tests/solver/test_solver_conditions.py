"""The solver on models with allowed actions and terminal states."""

import numpy as np
import pytest
from tests.conditioned_models import conditioned, is_allowed, is_terminal, shop

import fsmdp
from fsmdp.policies.resolve import idle_policy
from fsmdp.solver import parameters as tuned
from fsmdp.solver.search.search import search

SEEDS = range(6)


def only_allowed(model, policy, episodes=200):
    """Follow a policy, and look at each action that it takes in a state that is not terminal."""
    found = fsmdp.simulation.rollout.record(model, policy, episodes, seed=1)
    for states, actions, length in zip(found.states, found.actions, found.lengths, strict=True):
        for state, action in zip(states[:length], actions[:length], strict=True):
            assert not is_terminal(model, state)
            assert is_allowed(model, state, action)
        assert length == model.horizon or is_terminal(model, states[length])


@pytest.mark.parametrize("seed", SEEDS)
def test_plans_meet_the_optimum_and_take_allowed_actions_only(seed):
    model = conditioned(seed, horizon=6)
    best = fsmdp.solve_exactly(model).start_value
    plan = fsmdp.plan(model)
    assert plan.upper_bound >= best - 1e-9
    assert plan.upper_bound == pytest.approx(best, abs=1e-6)
    only_allowed(model, plan)


@pytest.mark.parametrize("method", ["fitted", "programs", "stagewise", "joint"])
@pytest.mark.parametrize("seed", SEEDS)
def test_policies_of_every_method_take_allowed_actions_only(seed, method):
    model = conditioned(seed, horizon=5)
    plan = fsmdp.plan(model, method=method)
    best = fsmdp.solve_exactly(model).start_value
    assert plan.upper_bound >= best - 1e-9
    only_allowed(model, plan)


@pytest.mark.parametrize("seed", SEEDS)
def test_searches_close_on_the_optimum(seed):
    model = conditioned(seed, horizon=5, random_start=False)
    plan = fsmdp.plan(model, fsmdp.Basis.singles(model), method="joint")
    found = search(model, plan.bound.basis, plan.bound.weights)
    best = fsmdp.solve_exactly(model).start_value
    assert found.solved
    assert found.upper_bound == pytest.approx(best, abs=1e-5)
    assert found.lower_bound == pytest.approx(best, abs=1e-5)
    only_allowed(model, found.policy)


@pytest.mark.parametrize("seed", SEEDS)
def test_rollouts_on_line_try_allowed_actions_only(seed):
    model = conditioned(seed, horizon=4)
    online = fsmdp.plan(model, method="stagewise").online(model, simulations=8)
    only_allowed(model, online, episodes=10)


@pytest.mark.parametrize("policy", ["random"])
@pytest.mark.parametrize("seed", SEEDS)
def test_random_play_is_uniform_over_what_is_allowed(seed, policy):
    model = conditioned(seed, horizon=4)
    only_allowed(model, policy)
    exact = fsmdp.evaluate_exactly(model, policy)
    flat = fsmdp.solve_exactly(model).flat
    expected = float(flat.initial() @ exact)
    runs = fsmdp.rollout(model, policy, 20_000, seed=seed)
    assert abs(runs.mean - expected) <= 4 * runs.standard_error + 1e-9


def test_a_policy_that_takes_a_forbidden_action_gets_an_error():
    model = conditioned(1, horizon=4)
    action = next(iter(model.conditions.allowed[0].exceptions))
    name = model.actions[action]
    for policy in (name, lambda state, step: name):
        with pytest.raises(fsmdp.errors.PolicyError, match="is not allowed in state"):
            fsmdp.rollout(model, policy, 500)


@pytest.mark.parametrize("seed", SEEDS)
def test_joined_models_keep_values(seed):
    rng = np.random.default_rng(seed)
    n = 3
    at = [fsmdp.Variable(f"at-{i}", 2) for i in range(n)]
    conditionals = []
    for i in range(n):
        stay = np.eye(2)
        enter = np.eye(2)[[0, 1]]
        conditionals.append(
            fsmdp.Conditional(
                f"at-{i}",
                [
                    fsmdp.Case("right", [f"at-{(i - 1) % n}"], enter),
                    fsmdp.Case(fsmdp.ANY, [f"at-{i}"], stay),
                ],
            )
        )
    rewards = [
        fsmdp.Reward(
            "place", [fsmdp.Case(fsmdp.ANY, ["at-1", "at-2"], rng.normal(size=(2, 2)))], -9, 9
        )
    ]
    model = fsmdp.FactoredMDP(
        at,
        ["stay", "right"],
        conditionals,
        rewards,
        horizon=5,
        initial=[1, 0, 0],
        allowed=[fsmdp.Case("stay", ["at-0"], [1, 0])],
        terminal=[fsmdp.Table("at-2", [0, 1])],
    )
    joined = fsmdp.join(model)
    assert joined.groups
    assert joined.model.terminal
    assert joined.model.allowed
    one = fsmdp.solve_exactly(model).start_value
    assert fsmdp.solve_exactly(joined.model).start_value == pytest.approx(one)
    assert fsmdp.plan(model).upper_bound == pytest.approx(one)


def test_doing_nothing_needs_no_elimination_where_it_is_always_allowed():
    model = shop()
    assert idle_policy(model) == "wait"
    asked = model.replace(allowed=[*model.allowed, fsmdp.Case("wait", ["cash"], [1, 1, 1, 0])])
    policy = idle_policy(asked)
    assert policy.action({"stock": 1, "cash": 2}, 1) == "wait"
    assert policy.action({"stock": 1, "cash": 3}, 1) != "wait"


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_candidates_that_cannot_be_judged_in_time_are_dropped(share, monkeypatch):
    monkeypatch.setattr(tuned, "JUDGING_SHARE", share)
    plan = fsmdp.plan(shop(), exact=False, rounds=1, time_limit=20)
    late = [line.what for line in plan.log if "too slow to be judged in time" in line.what]
    if share:
        assert late == []
        assert len(plan.candidates) > 2
    else:
        assert late
        assert [one.name for one in plan.candidates] == ["doing nothing"]
    assert plan.incumbent is not None
