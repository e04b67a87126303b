"""Joint actions that are allowed in some states only: the model and its list agree everywhere."""

import numpy as np
import pytest
from scipy.stats import chisquare
from tests.joint_models import all_states, allowed_in, conditioned_joint_model, joint_model

import fsmdp
from fsmdp.policies.joint import random_actions

SEEDS = range(10)


@pytest.mark.parametrize("seed", SEEDS)
def test_joint_actions_are_allowed_as_the_tables_say(seed):
    model = conditioned_joint_model(seed, terminal=False)
    listed = model.listed()
    for state in all_states(model):
        expected = allowed_in(model, state)
        assert sorted(model.conditions.joint_actions(state)) == sorted(expected)
        names = {model.actions.name(values) for values in expected}
        assert set(listed.allowed_actions(state)) == names
        by_variable = model.allowed_actions(state)
        for at, variable in enumerate(model.actions.variables):
            assert by_variable[variable.name] == tuple(sorted({row[at] for row in expected}))


@pytest.mark.parametrize("seed", SEEDS)
def test_bounds_and_policies_agree_with_the_listed_model(seed):
    model = conditioned_joint_model(seed)
    best = fsmdp.solve_exactly(model).start_value
    basis = fsmdp.Basis.singles(model)
    for method in ("joint", "cutting-planes", "bundled", "stagewise", "fitted"):
        plan = fsmdp.plan(model, basis, method=method)
        listed = fsmdp.plan(model.listed(), basis, method=method)
        assert plan.upper_bound >= best - 1e-9
        if method in ("joint", "bundled"):
            assert plan.upper_bound == pytest.approx(listed.upper_bound, abs=1e-5)
        for state in all_states(model):
            if not model.is_terminal(state):
                chosen = model.actions.values(plan.action(state))
                assert model.allows(state, chosen), (method, state)
    plan = fsmdp.plan(model)
    assert plan.upper_bound == pytest.approx(best, abs=1e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_factored_and_listed_models_are_the_same(seed):
    model = conditioned_joint_model(seed)
    listed = model.listed()
    best = fsmdp.solve_exactly(listed)
    try:
        again = fsmdp.factored(listed)
    except fsmdp.ModelError:
        pytest.skip("the names do not say what the variables are")
    assert fsmdp.solve_exactly(again).start_value == pytest.approx(best.start_value)
    for state in all_states(model):
        for name in listed.actions:
            assert again.allows(state, name) == listed.allows(state, name)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_joint_actions_are_uniform_over_what_is_allowed(seed):
    model = conditioned_joint_model(seed, terminal=False)
    chance, rng = random_actions(model.conditions), np.random.default_rng(seed)
    state = all_states(model)[rng.integers(model.n_states)]
    expected = allowed_in(model, state)
    _, drawn = chance.draw(np.tile(np.array(state), (3000, 1)), rng)
    positions = [expected.index(tuple(row)) for row in drawn.tolist()]
    counts = np.bincount(positions, minlength=len(expected))
    assert len(expected) == 1 or chisquare(counts).pvalue > 1e-4


@pytest.mark.parametrize("seed", SEEDS)
def test_rollouts_follow_and_try_allowed_joint_actions_only(seed):
    model = conditioned_joint_model(seed)
    for policy in ("random", fsmdp.plan(model, method="stagewise").online(model, simulations=4)):
        found = fsmdp.simulation.rollout.record(model, policy, 10)
        n = len(model.variables)
        for states, length in zip(found.states, found.lengths, strict=True):
            for row in states[:length].tolist():
                assert model.allows(row[:n], tuple(row[n:]))


def test_a_condition_that_names_actions_is_refused_where_they_are_variables():
    model = joint_model(0)
    with pytest.raises(fsmdp.ModelError, match="expected ANY"):
        model.replace(allowed=[fsmdp.Case("a0", [], 1.0)])
