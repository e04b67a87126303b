"""Simulated episodes against enumerated probabilities."""

import numpy as np
import pytest
from benchmarks._plain_simulation import simulate_plainly
from scipy import stats
from tests.oracle import next_state_probabilities

import fsmdp
from fsmdp import ModelError, PolicyError, domains, evaluate_exactly, rollout, solve_exactly
from fsmdp.policies.arrays import given_action
from fsmdp.simulation.simulate import compile_model, new_record, simulate

SIGNIFICANCE = 1e-3


def draw_next_states(model, state, action, count, seed):
    """Next states of independent steps from one (state, action)."""
    compiled = compile_model(model)
    given, record = (
        given_action(compiled.n_variables, model.actions),
        new_record(compiled, count, 1),
    )
    given.give(action)
    values = np.zeros(compiled.n_slots, dtype=np.int64)
    rng = np.random.default_rng(seed)
    rewards = np.zeros(1)
    one = new_record(compiled, 0, 0)
    for episode in range(count):
        values[: len(state)] = state
        simulate(compiled, given.policy, rng, 1.0, False, 0, 1, values, rewards, one)
        record.states[episode, 1] = values[: len(state)]
    return record.states[:, 1]


def p_value(model, state, action, seed, count=4000):
    """Chi-square of simulated next states against their enumerated joint distribution."""
    expected = next_state_probabilities(model, state, action)
    possible = [s for s, probability in expected.items() if probability > 0]
    drawn = [tuple(s) for s in draw_next_states(model, state, action, count, seed).tolist()]
    assert set(drawn) <= set(possible)
    counts = np.array([drawn.count(s) for s in possible], dtype=float)
    means = count * np.array([expected[s] for s in possible])
    common = means >= 5
    if not common.all():
        counts = np.append(counts[common], counts[~common].sum())
        means = np.append(means[common], means[~common].sum())
    if len(means) == 1:
        return 1.0
    return float(stats.chisquare(counts, means, sum_check=False).pvalue)


@pytest.mark.parametrize("seed", range(8))
def test_next_state_frequencies_match_the_joint_distribution(seed):
    model = domains.random_model(seed)
    rng = np.random.default_rng(seed)
    state = tuple(int(rng.integers(size)) for size in model.sizes)
    action = int(rng.integers(len(model.actions)))
    # Bonferroni over the seeds, so that a right simulator passes all of them.
    assert p_value(model, state, action, seed) > SIGNIFICANCE / 8


def test_the_frequency_test_notices_a_missing_correlation():
    model = domains.influence(4)
    independent = draw_next_states(model, (0, 1, 0, 1), 0, 4000, 0)
    rng = np.random.default_rng(1)
    for column in independent.T:
        rng.shuffle(column)
    expected = next_state_probabilities(model, (0, 1, 0, 1), 0)
    drawn = [tuple(s) for s in independent.tolist()]
    possible = [s for s, probability in expected.items() if probability * 4000 >= 5]
    counts = [drawn.count(s) for s in possible]
    means = [4000 * expected[s] for s in possible]
    assert stats.chisquare(counts, means, sum_check=False).pvalue < 1e-6
    assert p_value(model, (0, 1, 0, 1), 0, 0) > SIGNIFICANCE


def test_correlation_between_next_values_is_that_of_the_model():
    model = domains.influence(4)
    state = (0, 1, 0, 1)
    expected = next_state_probabilities(model, state, 0)
    states = np.array(list(expected))
    weights = np.array(list(expected.values()))
    true = np.cov(states.T, aweights=weights, ddof=0)
    drawn = draw_next_states(model, state, 0, 20_000, 3)
    found = np.cov(drawn.T, ddof=0)
    assert np.abs(true[~np.eye(4, dtype=bool)]).max() > 0.02
    np.testing.assert_allclose(found, true, atol=0.015)


@pytest.mark.parametrize("seed", range(4))
def test_rollouts_estimate_the_exact_value(seed):
    model = domains.random_model(seed)
    exact = solve_exactly(model)
    for policy, value in (
        (exact, exact.start_value),
        ("random", float(exact.flat.initial() @ evaluate_exactly(model, "random"))),
        (model.actions[0], float(exact.flat.initial() @ evaluate_exactly(model, model.actions[0]))),
    ):
        runs = rollout(model, policy, episodes=4000, seed=seed)
        assert abs(runs.mean - value) <= 4.5 * runs.standard_error + 1e-9


def test_the_same_seed_gives_the_same_episodes_in_compiled_code_and_through_python():
    model = domains.sysadmin(5)
    exact = solve_exactly(model)
    compiled = rollout(model, exact, episodes=50, seed=7)
    through_python = rollout(model, lambda s, step: exact.action(s, step), episodes=50, seed=7)
    by_index = rollout(model, lambda s, step: model.actions.index(exact.action(s, step)), 50, 7)
    np.testing.assert_allclose(compiled.returns, through_python.returns, atol=1e-12)
    np.testing.assert_allclose(compiled.returns, by_index.returns, atol=1e-12)
    assert (rollout(model, exact, 50, seed=8).returns != compiled.returns).any()


def test_more_episodes_begin_with_the_same_ones():
    model = domains.sysadmin(5)
    few, many = rollout(model, "random", 30, seed=1), rollout(model, "random", 30_000, seed=1)
    np.testing.assert_array_equal(few.returns, many.returns[:30])


def test_noise_has_the_stated_standard_deviation_and_no_bias():
    noisy = fsmdp.FactoredMDP(
        [fsmdp.Variable("x", 2)],
        ["wait"],
        [fsmdp.Conditional("x", [fsmdp.Case(fsmdp.ANY, [], [0.5, 0.5])])],
        [fsmdp.Reward("r", [fsmdp.Case(fsmdp.ANY, [], 0.25)], 0, 1, sigma=0.5)],
        1,
    )
    runs = rollout(noisy, "wait", 20_000, seed=0)
    assert abs(runs.mean - 0.25) < 5 * runs.standard_error
    assert runs.returns.std() == pytest.approx(0.5, rel=0.03)


def test_an_endless_discounted_return_is_cut_where_it_no_longer_counts():
    model = domains.sysadmin(3, horizon=None, discount=0.8)
    exact = solve_exactly(model)
    runs = rollout(model, exact, 3000, seed=0)
    assert 0.8**runs.steps <= 1e-6
    assert abs(runs.mean - exact.start_value) < 4.5 * runs.standard_error


def test_progress_is_told_until_the_end():
    told = []
    rollout(domains.sysadmin(40), "random", 10_000, progress=lambda n, of: told.append((n, of)))
    assert told[-1] == (10_000, 10_000)
    assert [n for n, _ in told] == sorted({n for n, _ in told})


def test_one_episode_has_no_standard_error():
    runs = rollout(domains.sysadmin(3), "wait", 1)
    assert runs.standard_error == np.inf
    assert "1 episode)" in repr(runs)


def test_fewer_steps_than_the_horizon_are_simulated_on_request():
    assert rollout(domains.sysadmin(3), "wait", 5, steps=1).returns.tolist() == [1.0] * 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"episodes": 0}, "episodes: expected a whole number from 1 to .*, found 0"),
        ({"episodes": 2.5}, "episodes: .*found 2.5"),
        ({"episodes": float("nan")}, "episodes: .*found nan"),
        ({"episodes": "9"}, "episodes: .*found '9'"),
        ({"episodes": None}, "episodes: .*found None"),
        ({"episodes": 10**30}, "episodes: .*from 1 to 1000000000, found"),
        ({"steps": 11}, "steps: expected a whole number from 1 to 10, found 11"),
        ({"steps": 0}, "steps: .*found 0"),
        ({"steps": 1.0}, "steps: .*found 1.0"),
        ({"seed": None}, "seed: expected a whole number of at least 0, found None"),
        ({"seed": -1}, "seed: .*found -1"),
        ({"seed": 0.5}, "seed: .*found 0.5"),
        ({"seed": "0"}, "seed: .*found '0'"),
        ({"progress": 3}, "progress: expected True or a function"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(ModelError, match=message):
        rollout(domains.sysadmin(3), "wait", **options)


def test_an_action_the_model_does_not_have_is_refused():
    with pytest.raises(PolicyError, match="unknown action 'fly'"):
        rollout(domains.sysadmin(3), lambda state, step: "fly", 1)


def test_blocks_of_three_children_are_unpacked_in_the_right_order():
    table = np.zeros((2, 3, 2))
    table[1, 2, 0] = 1.0
    model = fsmdp.FactoredMDP(
        [fsmdp.Variable("a", 2), fsmdp.Variable("b", 3), fsmdp.Variable("c", 2)],
        ["wait"],
        [fsmdp.Conditional(["a", "b", "c"], [fsmdp.Case(fsmdp.ANY, [], table)])],
        [],
        1,
    )
    assert draw_next_states(model, (0, 0, 0), 0, 3, 0).tolist() == [[1, 2, 0]] * 3


@pytest.mark.parametrize("seed", range(25))
def test_compiled_episodes_equal_the_plain_simulator_draw_for_draw(seed):
    model = domains.random_model(seed)
    chooser = np.random.default_rng(seed)
    table = chooser.integers(len(model.actions), size=(model.horizon, *model.sizes))
    plain = simulate_plainly(
        model, lambda s, step: int(table[(step - 1, *s)]), 20, np.random.default_rng(seed)
    )
    compiled = rollout(model, lambda s, step: int(table[(step - 1, *s)]), 20, seed)
    np.testing.assert_allclose(compiled.returns, plain, rtol=1e-12, atol=1e-12)


def test_only_models_are_simulated():
    with pytest.raises(ModelError, match="rollout: expected a FactoredMDP, found str 'sysadmin'"):
        rollout("sysadmin", "random")


def test_a_discount_too_near_one_needs_a_number_of_steps():
    model = domains.sysadmin(3, horizon=None, discount=1 - 1e-9)
    with pytest.raises(ModelError, match="give steps="):
        rollout(model, "wait", 1)
    assert rollout(model, "wait", 1, steps=5).steps == 5


def test_returns_are_read_only():
    with pytest.raises(ValueError, match="read-only"):
        rollout(domains.sysadmin(3), "wait", 2).returns[0] = 1.0


def test_tables_are_followed_by_compiled_code_as_the_solution_is():
    model = domains.sysadmin(4)
    exact = solve_exactly(model)
    expected = rollout(model, exact, 50, seed=3).returns
    for table in (exact.actions, exact.actions.reshape(10, 2, 2, 2, 2)):
        np.testing.assert_array_equal(rollout(model, table, 50, seed=3).returns, expected)
    always = np.full((2, 2, 2, 2), 2, dtype=np.uint8)
    waiting = rollout(model, model.actions[2], 50, seed=3).returns
    np.testing.assert_array_equal(rollout(model, always, 50, seed=3).returns, waiting)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (np.zeros(9, int), r"expected shape \(16,\) or \(10, 16\), .* found \(9,\)"),
        (np.full(16, 5), r"entry \(0,\) is 5, expected the position of an action, 0 to 4"),
        (fsmdp.ExactSolution, "the class ExactSolution is not a policy"),
        (None, "None is not a policy"),
    ],
)
def test_what_cannot_be_followed_is_refused_before_compiled_code_sees_it(policy, message):
    with pytest.raises(PolicyError, match=message):
        rollout(domains.sysadmin(4), policy, 1)


def test_an_action_called_random_is_repeated():
    model = fsmdp.FactoredMDP(
        [fsmdp.Variable("x", 2)],
        ["rest", "random"],
        [fsmdp.Conditional("x", [fsmdp.Case(fsmdp.ANY, [], [0.5, 0.5])])],
        [fsmdp.Reward("r", [fsmdp.Case("random", [], 1.0), fsmdp.Case("rest", [], 0.0)])],
        3,
    )
    assert rollout(model, "random", 20).returns.tolist() == [3.0] * 20
