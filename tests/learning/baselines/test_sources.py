"""Each baseline against what its source says, computed anew on tiny problems."""

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
from fsmdp import domains


def unit_chain(horizon=3):
    """Rewards in [0, 1] and known, as UCBVI's source has them."""
    return domains.sysadmin(2, horizon=horizon)


def ucb_q_values(kind, visits, outcomes, rewards, last_q, horizon, log, in_range=False):
    """Algorithm 2 of Azar, Osband and Munos, line by line, with Algorithm 3 or 4 as the bonus.

    b' is H^2, as long as visits are below 10^4 H S^2 A L^2. With `in_range`, means with their bonus
    stay in the range of what they are means of, which is all that ours adds.
    """
    n_actions, n_states = visits.shape
    following, q = np.zeros(n_states), np.zeros((horizon, n_actions, n_states))
    for row in reversed(range(horizon)):
        for a, s in product(range(n_actions), range(n_states)):
            n = visits[a, s]
            p = outcomes[a, s] / n
            if kind == "hoeffding":
                bonus = 7 * horizon * log * np.sqrt(1 / n)
            else:
                variance = p @ (following - p @ following) ** 2
                bonus = np.sqrt(8 * log * variance / n) + 14 * horizon * log / (3 * n)
                bonus += np.sqrt(8 * p.sum() * horizon**2 / n)
            mean = p @ following + bonus
            mean = min(mean, following.max()) if in_range else mean
            q[row, a, s] = min(last_q[row, a, s], horizon, rewards[a, s] + mean)
        following = q[row].max(axis=0)
    return q


@pytest.mark.parametrize("kind", ["hoeffding", "bernstein"])
def test_ucbvi_is_its_source_but_for_means_kept_in_range(kind):
    model = unit_chain()
    flat, horizon = fsmdp.solve_exactly(model).flat, model.horizon
    learner = fsmdp.UCBVI(structure_of(model), kind, 0.1, episodes=50, known_rewards=model.rewards)
    log = np.log(5 * 4 * 3 * horizon * 50 / 0.1)
    as_printed = kept = np.full((horizon, *flat.rewards.shape), np.inf)
    rng = np.random.default_rng(0)
    for factor in (1, 10**3, 10**6, 10**9):  # so few visits that caps bind, up to so many
        learner.outcomes[:] = factor * rng.integers(1, 9, size=learner.outcomes.shape)
        learner.visits[:] = learner.outcomes.sum(axis=2)
        found = learner.replan().acting.q[:, -learner.visits.size :].reshape(kept.shape)
        counted = kind, learner.visits, learner.outcomes, flat.rewards
        as_printed = ucb_q_values(*counted, as_printed, horizon, log)
        kept = ucb_q_values(*counted, kept, horizon, log, in_range=True)
        np.testing.assert_allclose(found, kept, rtol=1e-9)
        assert (found <= as_printed + 1e-9).all()
    assert np.abs(found - as_printed).max() < 0.1, "with many visits the caps must not matter"


@pytest.mark.parametrize("kind", ["hoeffding", "bernstein"])
def test_ucbvi_is_optimistic_and_its_values_never_rise(kind):
    model = unit_chain()
    exact = fsmdp.solve_exactly(model)
    scale = {"hoeffding": 1e-6, "bernstein": 3e-4}[kind]  # at full size nothing is learnt so soon
    learner = fsmdp.UCBVI(structure_of(model), kind, known_rewards=model.rewards, scale=scale)
    plans = record_plans(learner)
    fsmdp.learn(model, learner, episodes=1500, seed=0)
    values = np.array([planned_values(learner, planned) for planned in plans])
    assert (values >= exact.values[:-1] - 1e-9).all()
    assert (np.diff(values, axis=0) <= 1e-9).all()
    assert values[-1, 0, -1] < values[0, 0, -1] - 0.01, "it must have learnt something"


def test_ucrl2_plans_as_linear_programs_over_its_balls_do():
    model = switch(horizon=4)
    learner = fsmdp.UCRL2(structure_of(model), known_rewards=model.rewards, scale=0.05)
    fsmdp.learn(model, learner, episodes=60, seed=2)
    flat, radii = fsmdp.solve_exactly(model).flat, learner.radii()
    assert 0 < radii.min() < radii.max() < 2, "balls that are everything or nothing prove nothing"
    values = best_values_in_balls(learner, flat.rewards, radii)
    np.testing.assert_allclose(planned_values(learner, learner.replan()), values, atol=1e-7)


def test_ucrl2_s_balls_hold_the_truth_far_more_often_than_delta():
    model = coins(sigma=0.2)
    flat, left = fsmdp.solve_exactly(model).flat, 0
    for seed in range(40):
        learner = fsmdp.UCRL2(structure_of(model), delta=0.5, seed=seed)
        fsmdp.learn(model, learner, episodes=30, seed=seed)
        rows = learner.outcomes / np.maximum(learner.visits, 1)[:, :, None]
        far = np.abs(rows - flat.transitions).sum(axis=2)
        left += (far > learner.radii())[learner.visits > 0].any()
    assert left == 0  # Lemma 17: at most delta / (15 t^6) at step t


def product_learner(seed):
    model = domains.sysadmin(3, horizon=3)
    learner = fsmdp.UCRLProduct(structure_of(model), known_rewards=model.rewards, scale=0.01)
    fsmdp.learn(model, learner, episodes=40, seed=seed)
    return model, learner


def best_product(learner, action, state, values):
    """Best mean over products: each binary variable at one end of its ball or the other."""
    ends = []
    for variable in range(3):
        cell = learner.variables.transitions[action, state, variable]
        n, start = learner.statistics.transition_visits[cell], learner.cells.layout.outcome_start
        up = learner.statistics.outcomes[start[cell] + 1] / max(n, 1)
        half = learner.radii()[cell] / 2
        ends.append([0.0, 1.0] if n == 0 else [max(0, up - half), min(1, up + half)])
    best = -np.inf
    for chosen in product(*ends):
        joint = np.ones(1)
        for up in chosen:
            joint = np.kron(joint, [1 - up, up])
        best = max(best, joint @ values)
    return best


@pytest.mark.parametrize("seed", range(3))
def test_products_are_never_below_the_best_one_and_equal_it_when_values_add_up(seed):
    model, learner = product_learner(seed)
    flat = fsmdp.solve_exactly(model).flat
    planned = learner.replan()
    values = planned_values(learner, planned)
    size = learner.visits.size
    q = planned.acting.q[:, -size:].reshape(model.horizon, *learner.visits.shape)
    gaps = []
    for row in range(model.horizon - 1):
        for action, state in product(range(learner.n_actions), range(learner.n_states)):
            best = best_product(learner, action, state, values[row + 1])
            gaps.append(q[row, action, state] - flat.rewards[action, state] - best)
    gaps = np.reshape(gaps, (model.horizon - 1, -1))
    assert gaps.min() >= -1e-9
    # At the last step V is the reward, a sum over machines: there the order does not matter.
    np.testing.assert_allclose(gaps[-1], 0, atol=1e-9)


def test_lsvi_is_the_ridge_regression_of_its_source():
    model = switch(horizon=3)
    rng = np.random.default_rng(4)
    phi = rng.normal(size=(2, 2, 3))
    phi /= np.linalg.norm(phi, axis=2, keepdims=True).max()
    learner = fsmdp.LSVIUCB(structure_of(model), phi, known_rewards=model.rewards, scale=1e-9)
    fsmdp.learn(model, learner, episodes=25, seed=1)
    flat = fsmdp.solve_exactly(model).flat
    last = flat.rewards.max(axis=0)
    # w = argmin sum (V(s') - min V - phi . w)^2 + |w|^2, visit by visit, by least squares
    rows, targets = [np.eye(3)], [np.zeros(3)]
    for a, s, following in product(range(2), range(2), range(2)):
        count = learner.outcomes[a, s, following]
        rows.append(np.repeat(phi[s, a][None], count, axis=0))
        targets.append(np.full(count, last[following] - last.min()))
    w = np.linalg.lstsq(np.vstack(rows), np.concatenate(targets))[0]
    means = np.clip(last.min() + phi @ w, last.min(), last.max()).T
    q = learner.replan().acting.q[1, -4:].reshape(2, 2)
    np.testing.assert_allclose(q, flat.rewards + means, atol=1e-3)
    assert learner.beta() == pytest.approx(
        np.sqrt(1e-9) * 3 * 3 * np.sqrt(np.log(2 * 3 * 3 * 26 / 0.05))
    )


def test_psrl_draws_from_the_posterior():
    model = coins(sigma=0.5, horizon=4)
    learner = fsmdp.TabularPSRL(structure_of(model), seed=1, prior=0.5)
    fsmdp.learn(model, learner, episodes=10, seed=2)
    draws = np.array([learner.sample_transitions() for _ in range(4000)])
    counts = 0.5 + learner.outcomes
    total = counts.sum(axis=2, keepdims=True)
    np.testing.assert_allclose(draws.mean(axis=0), counts / total, atol=0.03)
    variance = counts * (total - counts) / (total**2 * (total + 1))
    np.testing.assert_allclose(draws.var(axis=0), variance, atol=0.01)
    # Normal prior N(1, 1) for two terms in [0, 1], noise of variance 2 * 0.25
    rewards = np.array([learner.sample_rewards() for _ in range(4000)])
    seen = learner.statistics.reward_sums.reshape(2, 2, 4).sum(axis=0)
    mean = (1.0 + seen / 0.5) / (1 + learner.visits / 0.5)
    often = learner.visits > 3  # where the draws are hardly ever clipped to [0, 2]
    assert often.sum() >= 4
    np.testing.assert_allclose(rewards.mean(axis=0)[often], mean[often], atol=0.05)


def test_psrl_loses_less_than_random_actions():
    """On average 0.285 of what they lose, over 240 seeds, with a deviation of 0.08."""
    model = domains.sysadmin(3, horizon=5)
    regrets = []
    for seed in range(8):
        learner = fsmdp.TabularPSRL(structure_of(model), known_rewards=model.rewards, seed=seed)
        regrets.append(expected_regret(model, learner, 200, seed).sum())
    flat = fsmdp.solve_exactly(model)
    at_random = flat.flat.initial() @ fsmdp.evaluate_exactly(model, "random")
    assert np.mean(regrets) < 0.4 * 200 * (flat.start_value - at_random)
