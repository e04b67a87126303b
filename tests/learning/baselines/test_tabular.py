"""Learners that enumerate: what their sources promise, and the loop's contract with them."""

import numpy as np
import pytest
from tests.learning.baselines.baseline_models import (
    expected_regret,
    planned_values,
    policy_value,
    structure_of,
    switch,
)
from tests.learning.learning_models import coins, record_plans

import fsmdp
from fsmdp import ModelError, SizeError, domains

EVERY = {
    "psrl": fsmdp.TabularPSRL,
    "ucbvi-ch": lambda *a, **o: fsmdp.UCBVI(*a, bonus="hoeffding", **o),
    "ucbvi-bf": fsmdp.UCBVI,
    "ucrl2": fsmdp.UCRL2,
    "mbie": fsmdp.MBIE,
    "product": fsmdp.UCRLProduct,
}
OPTIMISTIC = [name for name in EVERY if name not in ("psrl", "product")]


@pytest.mark.parametrize("name", OPTIMISTIC)
@pytest.mark.parametrize("known", [True, False], ids=["known rewards", "noisy rewards"])
def test_values_are_optimistic_at_every_state_and_step(name, known):
    model = coins(sigma=0.2)
    exact = fsmdp.solve_exactly(model)
    learner = EVERY[name](structure_of(model), known_rewards=model.rewards if known else None)
    plans = record_plans(learner)
    history = fsmdp.learn(model, learner, episodes=300, seed=1)
    assert plans
    for planned in plans:
        assert (planned_values(learner, planned) >= exact.values[:-1] - 1e-9).all()
    assert np.abs(history.slacks).max() < 1e-6
    assert (history.widths >= 0).all()


def test_regret_falls_with_psrl():
    model = domains.sysadmin(3, horizon=5)
    regret = expected_regret(
        model, fsmdp.TabularPSRL(structure_of(model), known_rewards=model.rewards), 400
    )
    assert regret[-100:].mean() < 0.25 * regret[:100].mean()
    assert regret[-100:].mean() < 0.01 * fsmdp.solve_exactly(model).start_value


def test_psrl_learns_noisy_rewards_too():
    model = coins(sigma=0.3, horizon=4)
    regret = np.mean(
        [
            expected_regret(model, fsmdp.TabularPSRL(structure_of(model), seed=seed), 1500, seed)
            for seed in range(4)
        ],
        axis=0,
    )
    assert regret[-100:].mean() < 0.02 * fsmdp.solve_exactly(model).start_value
    assert regret[-200:].mean() < 0.5 * regret[:50].mean()


def test_a_posterior_sample_is_a_model_and_closes_in_on_the_truth():
    model = coins(sigma=0.0, horizon=50)
    learner = fsmdp.TabularPSRL(structure_of(model), prior=1e-9)
    drawn = learner.sample_transitions()  # even where hardly any mass is drawn
    np.testing.assert_allclose(drawn.sum(axis=2), 1)
    fsmdp.learn(model, learner, episodes=200)
    flat = fsmdp.solve_exactly(model).flat
    often = learner.visits > 500
    assert often.sum() >= 4
    assert np.abs(learner.sample_transitions() - flat.transitions)[often].max() < 0.1
    np.testing.assert_allclose(learner.sample_rewards()[often], flat.rewards[often])


@pytest.mark.parametrize("bonus", ["hoeffding", "bernstein"])
def test_regret_falls_with_ucbvi_when_its_bonus_is_small(bonus):
    model = domains.sysadmin(2, horizon=4)
    scale = {"hoeffding": 1e-6, "bernstein": 1e-4}[bonus]
    learner = fsmdp.UCBVI(
        structure_of(model), bonus, known_rewards=model.rewards, scale=scale, episodes=400
    )
    regret = expected_regret(model, learner, 400)
    assert regret[-100:].mean() < 0.25 * regret[:100].mean()
    assert learner.heuristic


def test_the_bernstein_bonus_is_the_smaller_one_and_both_are_as_written():
    model = switch(horizon=3)
    widths = {}
    for bonus in ("hoeffding", "bernstein"):
        learner = fsmdp.UCBVI(
            structure_of(model), bonus, episodes=10, delta=0.1, known_rewards=model.rewards
        )
        learner.visits[:] = 10**8
        learner.outcomes[:] = 10**8 // 2
        widths[bonus] = learner.replan().acting.widths[:, -4:]
    log, n, reach = np.log(5 * 2 * 2 * 30 / 0.1), 1e8, 3 * 1.1
    np.testing.assert_allclose(widths["hoeffding"][:2], 2 * 7 * reach * log / np.sqrt(n))
    spread = 0.5  # of the values at the last step: 0 and 1, equally likely
    expected = np.sqrt(8 * log * spread**2 / n) + 14 * reach * log / (3 * n)
    expected += np.sqrt(8 * reach**2 / n)
    np.testing.assert_allclose(widths["bernstein"][1], 2 * expected)


@pytest.mark.parametrize("name", EVERY)
def test_the_same_seed_gives_the_same_history_and_resuming_changes_nothing(name, tmp_path):
    model = domains.sysadmin(2, horizon=3)

    def run(episodes=25, **options):
        learner = EVERY[name](structure_of(model), seed=3, known_rewards=model.rewards)
        history = fsmdp.learn(model, learner, episodes, seed=4, **options)
        return learner, history

    (one, first), (other, second) = run(), run()
    path = tmp_path / "run.npz"
    run(episodes=10, checkpoint=path, checkpoint_every=4)
    resumed, third = run(checkpoint=path)
    for learner, history in ((other, second), (resumed, third)):
        np.testing.assert_array_equal(first.returns, history.returns)
        np.testing.assert_array_equal(first.optimistic_values, history.optimistic_values)
        np.testing.assert_array_equal(one.outcomes, learner.outcomes)


@pytest.mark.parametrize("name", EVERY)
def test_an_environment_gives_the_counts_of_its_model(name):
    model = coins(sigma=0.1)
    one, other = EVERY[name](structure_of(model)), EVERY[name](structure_of(model))
    fsmdp.learn(model, one, episodes=12, seed=5)
    fsmdp.learn(fsmdp.make_env(model), other, episodes=12, seed=5)
    np.testing.assert_array_equal(one.outcomes, other.outcomes)
    np.testing.assert_allclose(one.statistics.reward_sums, other.statistics.reward_sums)
    assert one.visits.sum() == 12 * model.horizon
    np.testing.assert_array_equal(one.outcomes.sum(axis=2), one.visits)


@pytest.mark.parametrize("name", EVERY)
def test_models_that_are_too_large_are_refused_with_the_alternative(name):
    model = domains.sysadmin(14, horizon=3)
    with pytest.raises(SizeError) as refused:
        EVERY[name](structure_of(model))
    for part in ("16384 states", "15 actions", "2^32", "the limit is 2^25", "PSRLFactored"):
        assert part in str(refused.value)
    huge = domains.sysadmin(60, horizon=3)
    with pytest.raises(SizeError, match=r"2\^60 states"):
        EVERY[name](structure_of(huge))
    small = domains.sysadmin(2, horizon=3)
    with pytest.raises(SizeError, match=r"the limit is 32"):
        EVERY[name](structure_of(small), limit=32)


@pytest.mark.parametrize("name", EVERY)
def test_what_is_no_structure_is_refused(name):
    with pytest.raises(ModelError, match="expected a Structure, found FactoredMDP"):
        EVERY[name](switch())


def test_bad_options_are_refused_with_a_remedy():
    structure = structure_of(switch())
    for make, options, message in (
        (fsmdp.TabularPSRL, {"prior": 0}, "prior: expected a number above 0"),
        (fsmdp.UCBVI, {"bonus": "normal"}, "bonus: expected one of hoeffding, bernstein"),
        (fsmdp.UCBVI, {"delta": 1.0}, "delta: expected a probability"),
        (fsmdp.UCBVI, {"scale": 0}, "scale: expected a number above 0"),
        (fsmdp.UCBVI, {"episodes": 0}, "episodes: expected a whole number from 1"),
    ):
        with pytest.raises(ModelError, match=message):
            make(structure, **options)


def test_options_are_shown():
    structure = structure_of(switch())
    learner = fsmdp.UCBVI(structure, "hoeffding", 0.1, scale=0.5, episodes=7)
    assert repr(learner) == (
        "UCBVI(hoeffding, 7 episodes, delta 0.1, heuristic: scale 0.5; 0 episodes seen)"
    )
    assert "Dirichlet prior 0.5" in repr(fsmdp.TabularPSRL(structure))


def test_the_policy_of_a_tabular_learner_is_optimal_once_it_knows_the_model():
    model = switch()
    exact, structure = fsmdp.solve_exactly(model), structure_of(model)
    for name, make in EVERY.items():
        learner = make(structure, known_rewards=model.rewards)
        learner.statistics.visits[:] = 10**12
        learner.outcomes[:] = np.round(exact.flat.transitions * 10**12)
        if name == "product":  # rest from 0 and 1, then push, which is the smaller group
            learner.statistics.outcomes[1:7] = np.array([10, 0, 5, 5, 2, 8]) * 10**11
        assert policy_value(exact, learner.replan()) == pytest.approx(exact.start_value), name
