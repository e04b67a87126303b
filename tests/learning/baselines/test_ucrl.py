"""UCRL2 and its product form: balls, optimism, doubling, and what independence costs."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import linprog
from tests.learning.baselines.baseline_models import (
    expected_regret,
    planned_values,
    policy_value,
    structure_of,
    switch,
    twins,
)
from tests.learning.learning_models import coins, record_plans

import fsmdp
from fsmdp import ModelError, domains
from fsmdp.learning.learners.baselines.ucrl2 import fill_ball_means


def extreme_mean(row, values, radius, sign):
    """The same extreme by a linear program: p = row + up - down."""
    n = len(row)
    found = linprog(
        np.concatenate([-sign * values, sign * values]),
        A_ub=np.vstack([np.ones(2 * n), np.hstack([-np.eye(n), np.eye(n)])]),
        b_ub=[radius, *row],
        A_eq=[np.concatenate([np.ones(n), -np.ones(n)])],
        b_eq=[0],
    )
    return row @ values - sign * found.fun


def best_values_in_balls(learner, rewards, radii):
    """Values by step and state: a linear program over the ball of every (action, state)."""
    rows = learner.outcomes / learner.visits[:, :, None]
    n_actions, n_states = learner.visits.shape
    following, values = np.zeros(n_states), []
    for _ in range(learner.horizon):
        q = [
            [
                rewards[a, s] + extreme_mean(rows[a, s], following, radii[a, s], 1)
                for s in range(n_states)
            ]
            for a in range(n_actions)
        ]
        following = np.max(q, axis=0)
        values.append(following)
    return values[::-1]


def test_the_inner_maximisation_is_that_of_the_linear_program():
    rng = np.random.default_rng(0)
    outcomes = rng.integers(0, 6, size=(2, 5, 5))
    outcomes[0, 0] = 0
    visits = outcomes.sum(axis=2)
    radii, values = rng.uniform(0, 2, size=(2, 5)), rng.normal(size=5)
    low, high = np.zeros((2, 5)), np.zeros((2, 5))
    fill_ball_means(outcomes, visits, radii, values, np.argsort(-values), low, high)
    assert (low[0, 0], high[0, 0]) == (values.min(), values.max())
    for cell in zip(*np.nonzero(visits), strict=True):
        row = outcomes[cell] / visits[cell]
        assert high[cell] == pytest.approx(extreme_mean(row, values, radii[cell], 1))
        assert low[cell] == pytest.approx(extreme_mean(row, values, radii[cell], -1))


def test_radii_are_those_of_the_sources():
    model = switch(horizon=3)
    tabular = fsmdp.UCRL2(structure_of(model), delta=0.1)
    tabular.visits[:] = 10**4
    expected = np.sqrt(14 * 2 * np.log(2 * 2 * (4 * 10**4 + 1) / 0.1) / 10**4)
    np.testing.assert_allclose(tabular.radii(), expected)
    product = fsmdp.UCRLProduct(structure_of(model), delta=0.1)
    product.statistics.visits[:] = 10**4
    product.statistics.episodes = 6
    # 1 variable of 2 values with 3 cells: two at rest, one when pushed
    expected = np.sqrt(4 * 2 * np.log(4 * 1 * 3 * 7 / 0.1) / 10**4)
    np.testing.assert_allclose(product.radii()[1:4], expected)


def test_ucrl2_plans_when_visits_of_a_pair_have_doubled():
    model = domains.sysadmin(2, horizon=4)
    learner = fsmdp.UCRL2(structure_of(model))
    at_plan, replan = [], learner.replan

    def recorded():
        at_plan.append(learner.visits.copy())
        return replan()

    learner.replan = recorded
    history = fsmdp.learn(model, learner, episodes=300)
    assert 5 < history.replans.sum() < 100
    for before, after in pairwise(at_plan):
        assert (after >= np.maximum(1, 2 * before)).any()


@pytest.mark.parametrize("known", [True, False], ids=["known rewards", "noisy rewards"])
def test_products_are_optimistic_when_variables_are_independent(known):
    model = domains.random_model(seed=4, variables=3, horizon=3)
    exact = fsmdp.solve_exactly(model)
    learner = fsmdp.UCRLProduct(
        structure_of(model), known_rewards=model.rewards if known else None, scale=0.5
    )
    plans = record_plans(learner)
    fsmdp.learn(model, learner, episodes=150, seed=1)
    assert plans
    for planned in plans:
        assert (planned_values(learner, planned) >= exact.values[:-1] - 1e-9).all()


@pytest.mark.parametrize("make", [fsmdp.UCRL2, fsmdp.UCRLProduct])
def test_regret_falls(make):
    model = domains.sysadmin(2, horizon=4)
    parts = []
    for seed in range(8):
        learner = make(structure_of(model), known_rewards=model.rewards, scale=1e-3, seed=seed)
        parts.append(expected_regret(model, learner, 400, seed))
    regret = np.mean(parts, axis=0)
    assert regret[-100:].mean() < 0.25 * regret[:100].mean()


def test_a_product_of_the_truth_is_the_truth_when_variables_are_independent():
    model = domains.sysadmin(3, horizon=4)
    exact = fsmdp.solve_exactly(model)
    learner = fsmdp.UCRLProduct(structure_of(model), known_rewards=model.rewards, scale=1e-6)
    fsmdp.learn(model, learner, episodes=3000, seed=1)
    planned = learner.replan()
    assert planned_values(learner, planned)[0, -1] == pytest.approx(exact.start_value, rel=0.02)
    assert policy_value(exact, planned) == pytest.approx(exact.start_value, rel=0.01)


def test_products_converge_to_a_wrong_value_when_variables_fail_together():
    model = twins()
    exact, structure = fsmdp.solve_exactly(model), structure_of(model)
    assert exact.start_value == pytest.approx(3 * 0.5)
    options = {"known_rewards": model.rewards, "scale": 1e-3}
    ends = {}
    for learner in (
        fsmdp.UCRLProduct(structure, **options),
        fsmdp.UCRL2(structure, **options),
        fsmdp.UCBVI(structure, **options),
        fsmdp.TabularPSRL(structure, known_rewards=model.rewards),
    ):
        fsmdp.learn(model, learner, episodes=1000, seed=0)
        planned = learner.replan()
        ends[learner.name] = planned_values(learner, planned)[0, 0], policy_value(exact, planned)
    believed, earned = ends.pop("UCRLProduct")
    assert believed == pytest.approx(3 * 0.4, abs=0.05)
    assert earned == pytest.approx(3 * 0.4)
    for name, (value, of_policy) in ends.items():
        assert value == pytest.approx(exact.start_value, abs=0.15), name
        assert of_policy > 0.95 * exact.start_value, name


def test_noisy_rewards_are_learnt_term_by_term():
    model = coins(sigma=0.2)
    learner = fsmdp.UCRLProduct(structure_of(model), scale=1e-3)
    fsmdp.learn(model, learner, episodes=2000, seed=0)
    low, high = learner.variables.rewards(learner.optimism.delta)
    truth = fsmdp.solve_exactly(model).flat.rewards
    assert (np.abs(low - truth) < 0.05).all()
    assert (np.abs(high - truth) < 0.05).all()


def test_a_basis_that_misses_a_variable_is_refused():
    model = twins()
    left = model.structure(fsmdp.Basis([fsmdp.Table(["left"], [0, 1])]))
    with pytest.raises(ModelError, match="no basis function of the structure depends on 'right'"):
        fsmdp.UCRLProduct(left)
    with pytest.raises(ModelError, match="expected a Structure"):
        fsmdp.UCRLProduct(model)
    for make in (fsmdp.UCRL2, fsmdp.UCRLProduct):
        with pytest.raises(ModelError, match="delta: expected a probability"):
            make(structure_of(model), delta=0)
        with pytest.raises(ModelError, match="scale: expected a number above 0"):
            make(structure_of(model), scale=0)
