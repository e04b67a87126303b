"""MBIE and MatrixRL, each against its source computed anew, on problems that fit on a page."""

import math
from itertools import product

import numpy as np
import pytest
from tests.learning.baselines.baseline_models import (
    expected_regret,
    planned_values,
    structure_of,
    switch,
)
from tests.learning.baselines.test_ucrl import best_values_in_balls
from tests.learning.learning_models import coins, record_plans

import fsmdp
from fsmdp import ModelError, SizeError, domains
from fsmdp.learning.learners.baselines.lsvi import one_hot_features, state_features


def test_mbie_plans_as_linear_programs_over_its_intervals_do():
    model = switch(horizon=3)
    learner = fsmdp.MBIE(structure_of(model), known_rewards=model.rewards, scale=0.05)
    fsmdp.learn(model, learner, episodes=60, seed=2)
    flat, radii = fsmdp.solve_exactly(model).flat, learner.radii()
    for a, s in product(range(2), range(2)):
        n = learner.visits[a, s]
        delta_n = 6 * 0.05 / (2 * 2 * 2 * math.pi**2 * n**2)
        expected = math.sqrt(0.05 * 2 * (math.log(2**2 - 2) - math.log(delta_n)) / n)
        assert radii[a, s] == pytest.approx(min(2.0, expected))
    values = best_values_in_balls(learner, flat.rewards, radii)
    np.testing.assert_allclose(planned_values(learner, learner.replan()), values, atol=1e-7)


def test_mbie_is_optimistic_and_closes_in_on_the_optimum():
    model = switch()
    exact = fsmdp.solve_exactly(model)
    learner = fsmdp.MBIE(structure_of(model), known_rewards=model.rewards)
    plans = record_plans(learner)
    fsmdp.learn(model, learner, episodes=800, seed=1)
    gaps = [planned_values(learner, planned)[0, 0] - exact.start_value for planned in plans]
    assert min(gaps) >= -1e-9
    assert gaps[-1] < 0.6 * gaps[0]


def test_mbie_s_balls_miss_the_truth_no_more_often_than_delta():
    model = coins(sigma=0.0)
    flat, left = fsmdp.solve_exactly(model).flat, 0
    for seed in range(40):
        learner = fsmdp.MBIE(structure_of(model), delta=0.5, seed=seed)
        fsmdp.learn(model, learner, episodes=30, seed=seed)
        rows = learner.outcomes / np.maximum(learner.visits, 1)[:, :, None]
        far = np.abs(rows - flat.transitions).sum(axis=2)
        left += (far > learner.radii())[learner.visits > 0].any()
    assert left <= 20
    with pytest.raises(SizeError, match="MBIE writes every state out"):
        fsmdp.MBIE(structure_of(domains.sysadmin(30, horizon=3)))


def matrix_learner(model, following=None, scale=1e-13, episodes=40):
    structure = structure_of(model)
    learner = fsmdp.MatrixRL(
        structure,
        one_hot_features(structure),
        following,
        known_rewards=model.rewards,
        scale=scale,
    )
    fsmdp.learn(model, learner, episodes=episodes, seed=1)
    return learner


def test_with_one_hot_features_the_matrix_is_the_table_of_counts():
    model = domains.sysadmin(2, horizon=3)
    learner = matrix_learner(model)
    flat = fsmdp.solve_exactly(model).flat
    rows = learner.outcomes / (learner.visits[:, :, None] + 1)
    following, values = np.zeros(4), []
    for _ in range(3):
        lowest = following.min()
        means = np.clip(lowest + rows @ (following - lowest), lowest, following.max())
        following = (flat.rewards + means).max(axis=0)
        values.append(following)
    np.testing.assert_allclose(planned_values(learner, learner.replan()), values[::-1], atol=1e-3)


def test_the_matrix_and_its_bonus_are_those_of_the_source():
    model = domains.sysadmin(2, horizon=2)
    psi = state_features(structure_of(model))
    learner = matrix_learner(model, psi, scale=1e-4)
    flat = fsmdp.solve_exactly(model).flat
    phi = np.eye(12)  # one for each (action, state)
    n, outcomes = learner.visits.ravel(), learner.outcomes.reshape(12, 4)
    gram = psi.T @ psi
    a_inverse = np.linalg.inv(np.eye(12) + np.diag(n))
    matrix = a_inverse @ (phi.T @ outcomes @ psi) @ np.linalg.inv(gram)
    last = flat.rewards.max(axis=0)
    sums = psi.T @ (last - last.min())
    longest = max(np.linalg.norm(np.linalg.solve(gram, row)) ** 2 for row in psi)
    beta = 1e-4 * (1 + longest) * math.log(41 * 2 / 0.05)
    bonus = np.sqrt(12 * beta) * np.sqrt(np.diag(a_inverse)) * np.linalg.norm(sums)
    means = np.clip(last.min() + matrix @ sums + bonus, last.min(), last.max()).reshape(3, 4)
    q = learner.replan().acting.q[0, -12:].reshape(3, 4)
    order = [[s * 3 + a for s in range(4)] for a in range(3)]
    assert learner.features.argmax(axis=1).reshape(3, 4).tolist() == order
    np.testing.assert_allclose(q, flat.rewards + means, atol=1e-9)
    assert ((means > last.min()) & (means < last.max())).any(), "caps everywhere prove nothing"


def test_matrixrl_learns_what_its_features_can_tell():
    model = domains.sysadmin(3, horizon=4)
    structure = structure_of(model)
    learner = fsmdp.MatrixRL(
        structure,
        one_hot_features(structure),
        state_features(structure),
        known_rewards=model.rewards,
        scale=1e-5,
    )
    losses = expected_regret(model, learner, 300)
    assert losses[-50:].mean() < 0.5 * losses[:50].mean()
    assert learner.heuristic


def test_features_of_states_that_depend_on_one_another_or_do_not_fit_are_refused():
    structure = structure_of(switch())
    with pytest.raises(ModelError, match="depend on one another"):
        fsmdp.MatrixRL(structure, one_hot_features(structure), np.ones((2, 2)))
    with pytest.raises(ModelError, match=r"following: expected shape \(2, 'd'\)"):
        fsmdp.MatrixRL(structure, one_hot_features(structure), np.ones((3, 1)))
