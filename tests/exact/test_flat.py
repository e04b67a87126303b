"""The enumerating oracle against plainer enumeration still."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracle import all_states, mean_reward, next_state_probabilities

from fsmdp import (
    ANY,
    Basis,
    Case,
    Conditional,
    FactoredMDP,
    ModelError,
    PolicyError,
    Reward,
    SizeError,
    Variable,
    domains,
    evaluate_exactly,
    solve_exactly,
)
from fsmdp.exact.flat import enumerate_states

X = Variable("x", 2)


def model(**changes):
    """A coin that is thrown again and again, with parts replaced."""
    parts = {
        "variables": [X],
        "actions": ["throw"],
        "conditionals": [Conditional("x", [Case(ANY, [], [0.5, 0.5])])],
        "rewards": [],
        "horizon": 3,
    }
    return FactoredMDP(**(parts | changes))


@given(seed=st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_transitions_and_rewards_equal_nested_loops(seed):
    model = domains.random_model(seed)
    flat = enumerate_states(model)
    states = all_states(model)
    assert [tuple(state) for state in flat.states.tolist()] == states
    rng = np.random.default_rng(seed)
    for action in range(len(model.actions)):
        for row in rng.choice(len(states), size=min(3, len(states)), replace=False):
            expected = list(next_state_probabilities(model, states[row], action).values())
            np.testing.assert_allclose(flat.transitions[action, row], expected, atol=1e-12)
            expected_reward = mean_reward(model, states[row], action)
            assert flat.rewards[action, row] == pytest.approx(expected_reward)
            assert model.mean_reward(states[row], action) == pytest.approx(expected_reward)


def best_of_all_policies(model, state, step):
    """Value by plain recursion over the tree of outcomes."""
    if step > model.horizon:
        return 0.0
    return max(
        mean_reward(model, state, action)
        + model.discount
        * sum(
            probability * best_of_all_policies(model, after, step + 1)
            for after, probability in next_state_probabilities(model, state, action).items()
            if probability
        )
        for action in range(len(model.actions))
    )


def test_values_equal_recursion_over_the_tree():
    model = domains.sysadmin(2, horizon=3, discount=0.9)
    exact = solve_exactly(model)
    for state in all_states(model):
        for step in (1, 2, 3):
            expected = best_of_all_policies(model, state, step)
            assert exact.value(state, step) == pytest.approx(expected)


def test_following_the_optimal_actions_earns_the_optimal_value():
    model = domains.random_model(11)
    exact = solve_exactly(model)
    np.testing.assert_allclose(evaluate_exactly(model, exact), exact.values[0], atol=1e-12)
    assert evaluate_exactly(model, "random").mean() < exact.uniform_value


def test_infinite_horizon_is_the_limit_of_finite_ones():
    endless = solve_exactly(domains.sysadmin(3, horizon=None, discount=0.8))
    long = solve_exactly(domains.sysadmin(3, horizon=150, discount=0.8))
    np.testing.assert_allclose(endless.values[0], long.values[0], atol=1e-10)
    assert endless.value((1, 1, 1), step=7) == endless.value((1, 1, 1))
    policy = evaluate_exactly(endless.flat.model, endless)
    np.testing.assert_allclose(policy, endless.values[0], atol=1e-10)


def test_a_fixed_action_is_a_policy():
    model = domains.sysadmin(3)
    always = evaluate_exactly(model, "wait")
    np.testing.assert_allclose(always, evaluate_exactly(model, lambda state, step: 0))


def test_too_many_states_are_refused_with_size_and_limit():
    with pytest.raises(
        SizeError, match=r"1001 x \(10\^301.0 states\)\^2 = 2\^2010 .*limit.* 2\^28"
    ):
        enumerate_states(domains.sysadmin(1000))


@pytest.mark.parametrize("step", [0, 11])
def test_a_step_outside_the_horizon_is_refused(step):
    with pytest.raises(ModelError, match=f"step {step}: expected 1 to 10"):
        solve_exactly(domains.sysadmin(2)).value((1, 1), step)


@pytest.mark.parametrize("policy", ["optimal", 3])
def test_what_is_no_policy_is_refused(policy):
    with pytest.raises(PolicyError, match="expected a plan, an exact solution, a function"):
        evaluate_exactly(domains.sysadmin(2), policy)


def test_the_start_value_weighs_states_by_the_initial_distribution():
    model = domains.random_model(5)
    exact = solve_exactly(model)
    assert exact.start_value == pytest.approx(float(exact.flat.initial() @ exact.values[0]))
    assert exact.flat.initial().sum() == pytest.approx(1)
    assert "start value" in repr(exact)


class TestExactSolutions:
    def test_arrays_are_read_only(self):
        exact = solve_exactly(model())
        arrays = (exact.values, exact.actions, exact.flat.transitions, exact.flat.rewards)
        assert not any(array.flags.writeable for array in (*arrays, exact.flat.states))

    @pytest.mark.parametrize("ends", [{"horizon": 4}, {"horizon": None, "discount": 0.9}])
    def test_the_first_of_equal_actions_is_taken(self, ends):
        equal = Reward("r", [Case("a", [], 0.1 + 0.2), Case("b", [], 0.3), Case("c", [], 0.2)])
        exact = solve_exactly(model(actions=["c", "b", "a"], rewards=[equal], **ends))
        assert {exact.action([0]), exact.action([1])} == {"b"}  # a is larger by rounding only

    def test_seventy_variables_of_one_value_are_solved(self):
        many = [X, *(Variable(f"y{i}", 1) for i in range(70))]
        built = model(
            variables=many,
            conditionals=[
                Conditional(
                    "x", [Case(ANY, [f"y{i}" for i in range(29)], np.full((1,) * 29 + (2,), 0.5))]
                ),
                *(Conditional(v, [Case(ANY, [], [[1.0]] * 2, drawn=["x"])]) for v in many[1:]),
            ],
            rewards=[Reward("r", [Case(ANY, ["x"], [0, 1])])],
        )
        exact = solve_exactly(built)
        assert exact.value([1] + [0] * 70) == pytest.approx(2.0)
        assert len(built.marginals(Basis.singles(built))) == 2
        assert evaluate_exactly(built, exact).tolist() == pytest.approx([1.0, 2.0])

    def test_latents_that_would_not_fit_are_refused_before_they_are_drawn(self):
        latents = [Variable(f"z{i}", 4) for i in range(15)]

        def seen_by_the_coin(seen):
            table = np.full((4,) * len(seen) + (2,), 0.5)
            return model(
                latents=latents,
                conditionals=[
                    *(Conditional(z, [Case(ANY, [], [0.25] * 4)]) for z in latents),
                    Conditional("x", [Case(ANY, [], table, drawn=seen)]),
                ],
            )

        few = seen_by_the_coin(latents[:2])  # the others are forgotten as soon as they are drawn
        assert solve_exactly(few).start_value == 0.0
        with pytest.raises(SizeError, match=r"\(2 states\) x \(64 joint values drawn in a step\)"):
            enumerate_states(few, limit=200)

    def test_a_long_horizon_counts_against_the_limit(self):
        with pytest.raises(SizeError, match="1000000 steps x 2 states"):
            solve_exactly(model(horizon=10**6), limit=10**5)

    def test_a_start_in_a_large_variable_needs_no_matrix(self):
        size = 2**16
        row = np.zeros(size)
        row[0] = 1.0
        big = model(
            variables=[Variable("x", size)],
            conditionals=[Conditional("x", [Case(ANY, [], row)])],
            initial={"x": size - 1},
        )
        (distribution,) = big.initial_distributions()
        assert distribution.argmax() == size - 1
        assert distribution.sum() == 1.0
