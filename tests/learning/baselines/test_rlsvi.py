"""RLSVI: the regression of its source, deep exploration, and what is remembered."""

import numpy as np
import pytest
from tests.learning.baselines.baseline_models import structure_of
from tests.learning.baselines.test_known_cells import chain
from tests.learning.learning_models import assert_same_counts, assert_same_history, coins

import fsmdp
from fsmdp import ModelError, SizeError, domains


def told_by_place(model):
    """One function, whose cells tell every (place, action) apart."""
    number = fsmdp.Table(["place"], np.arange(float(model.variables[0].size)))
    return model.structure(fsmdp.Basis([number]))


def test_weights_are_drawn_around_the_ridge_regression_of_what_was_seen():
    model = coins(sigma=0.1, horizon=1)
    learner = fsmdp.RLSVI(structure_of(model), 3, noise=0.2, prior=0.4)
    fsmdp.learn(model, learner, episodes=40)
    seen, largest = learner.seen, 2.0  # two terms in [0, 1], one step
    rows = np.zeros((40, learner.n_features))
    np.put_along_axis(rows, learner.features_of(), 1.0, axis=1)
    n_met = learner.features_of().shape[1]
    assert n_met == 2 + len(learner.structure.basis)
    precision = rows.T @ rows / (0.2 * largest) ** 2
    precision += n_met / (0.4 * largest) ** 2 * np.eye(learner.n_features)
    mean = np.linalg.solve(precision, rows.T @ seen.rewards / (0.2 * largest) ** 2)
    totals = np.array([q_of(learner, seen) for _ in range(800)])
    covariance = rows @ np.linalg.inv(precision) @ rows.T
    np.testing.assert_allclose(totals.mean(axis=0), rows @ mean, atol=0.05)
    np.testing.assert_allclose(totals.var(axis=0), np.diag(covariance), rtol=0.2)


def q_of(learner, seen):
    """Q_1 of a new draw at each (state, action) that was seen, from the entries of its policy."""
    policy = learner.replan().acting.policy
    entries = policy.entries[0]
    at = learner.cells_at(seen.states, seen.actions)
    return entries[at].sum(axis=1)


def test_a_chain_is_walked_to_its_end_where_chance_never_comes():
    model = chain(10)
    structure = told_by_place(model)
    learner = fsmdp.RLSVI(structure, 0)
    far = fsmdp.learn(model, learner, episodes=120, seed=1).returns > 0.9
    assert far[60:].mean() > 0.8
    # Without noise it settles for the little that is paid at once; chance needs 2^9 episodes.
    greedy = fsmdp.RLSVI(structure, 0, noise=1e-6, prior=1e-6)
    assert not (fsmdp.learn(model, greedy, episodes=120, seed=1).returns > 0.9).any()
    at_random = fsmdp.learn(model, fsmdp.RandomLearner(structure), episodes=120, seed=1)
    assert (at_random.returns > 0.9).sum() < 5


def test_losses_fall_with_the_basis_of_our_own_learners():
    model = domains.sysadmin(4, horizon=6)
    best = fsmdp.solve_exactly(model).start_value
    early, late = [], []
    for seed in range(5):
        learner = fsmdp.RLSVI(structure_of(model), known_rewards=model.rewards, seed=seed)
        history = fsmdp.learn(model, learner, episodes=400, seed=seed)
        early.append(history.returns[:20].mean())
        late.append(history.returns[-200:].mean())
        assert history.heuristic
        assert np.isnan(history.optimistic_values).all()
    assert best - np.mean(late) < 0.03 * best
    assert np.mean(late) > np.mean(early)


@pytest.mark.parametrize("world", ["model", "environment"])
def test_every_transition_is_remembered_once(world):
    model = coins(horizon=3)
    learner = fsmdp.RLSVI(structure_of(model), replan=2.0)
    source = fsmdp.make_env(model) if world == "environment" else model
    history = fsmdp.learn(source, learner, episodes=30, seed=3)
    seen = learner.seen
    assert len(seen.actions) == 90
    assert (seen.states[1:][seen.steps[1:] > 0] == seen.following[:-1][seen.steps[1:] > 0]).all()
    np.testing.assert_allclose(seen.rewards.reshape(30, 3).sum(axis=1), history.returns)
    # What is remembered, counted again, is what was counted.
    at = learner.cells.layout.cell_of[learner.cells_at(seen.states, seen.actions)]
    counted = np.bincount(at.ravel(), minlength=len(learner.statistics.visits))
    np.testing.assert_array_equal(counted, learner.statistics.visits)
    assert history.replans.sum() < 10


def test_a_run_that_was_cut_off_resumes_bit_for_bit(tmp_path):
    model, path = domains.sysadmin(3, horizon=4), tmp_path / "run.npz"

    def run(episodes, checkpoint=None):
        learner = fsmdp.RLSVI(structure_of(model), 1)
        return learner, fsmdp.learn(model, learner, episodes=episodes, checkpoint=checkpoint)

    whole_learner, whole = run(12)
    run(7, path)
    resumed_learner, resumed = run(12, path)
    assert_same_history(whole, resumed)
    assert_same_counts(whole_learner, resumed_learner)


@pytest.mark.parametrize(
    ("part", "wrong"),
    [
        ("seen states", lambda a: a + 9),
        ("seen actions", lambda a: a[:-1]),
        ("seen terms", lambda a: a * np.nan),
        ("seen steps", lambda a: a.astype(float)),
    ],
)
def test_memories_that_cannot_be_are_not_taken_back(part, wrong):
    model = coins()
    learner = fsmdp.RLSVI(structure_of(model))
    fsmdp.learn(model, learner, episodes=4)
    state = learner.state()
    learner.restore(state)
    with pytest.raises(ValueError, match="seen"):
        learner.restore(state | {part: wrong(state[part])})


def test_what_cannot_be_regressed_is_refused(monkeypatch):
    joint = domains.sysadmin(3, administrators="each", horizon=3)
    with pytest.raises(ModelError, match="made of variables"):
        fsmdp.RLSVI(structure_of(joint))
    monkeypatch.setattr("fsmdp.learning.learners.baselines.lsvi.MOST_FEATURES", 10)
    with pytest.raises(SizeError, match="features"):
        fsmdp.RLSVI(structure_of(domains.sysadmin(3, horizon=3)))
    with pytest.raises(ModelError, match="noise"):
        fsmdp.RLSVI(structure_of(coins()), noise=0)


def test_more_than_there_is_room_for_is_not_remembered(monkeypatch):
    model = coins()
    learner = fsmdp.RLSVI(structure_of(model))
    monkeypatch.setattr("fsmdp.learning.learners.memory.MOST_NUMBERS", 10)
    with pytest.raises(SizeError, match="remembers every transition"):
        fsmdp.learn(model, learner, episodes=1)
