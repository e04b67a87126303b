"""Correlated transitions: the tiny run, and what would change its verdict."""

import numpy as np
import polars
import pytest

from fsmdp.domains import maintenance, sysadmin
from fsmdp.exact.flat import enumerate_states
from fsmdp.exact.solve import solve_exactly
from fsmdp.reproduction.claim import Evidence, Form, Verdict
from fsmdp.reproduction.claims import correlated
from fsmdp.reproduction.claims.correlated import GRIDWORLD, MAINTENANCE, OURS, PRODUCT

EPISODES = np.arange(1, 1001)


def silent(_):
    pass


@pytest.fixture(scope="module")
def tiny():
    return correlated.run(Form.TINY, 0, silent)


def fabricated(**regrets):
    """Evidence with a given regret after each episode, by model and learner."""
    usual = {
        "ours": np.sqrt(EPISODES),
        "product": 0.8 * EPISODES,
        "ours_grid": np.minimum(EPISODES, 20),
        "product_grid": np.minimum(EPISODES, 20),
    } | regrets
    names = {
        "ours": (MAINTENANCE, OURS),
        "product": (MAINTENANCE, PRODUCT),
        "ours_grid": (GRIDWORLD, OURS),
        "product_grid": (GRIDWORLD, PRODUCT),
    }
    regret = polars.concat(
        [
            polars.DataFrame(
                {"episode": EPISODES, "regret": np.asarray(usual[key], float)}
            ).with_columns(model=polars.lit(model), learner=polars.lit(learner))
            for key, (model, learner) in names.items()
        ]
    )
    values = [
        {"model": MAINTENANCE, "optimal_value": 9.2, "worth_of_product_policy": 8.4},
        {"model": GRIDWORLD, "optimal_value": 0.0, "worth_of_product_policy": 0.0},
    ]
    table = polars.DataFrame(values).with_columns(product_value=9.5, distance=0.5)
    return Evidence({"regret": regret, "values": table})


def test_the_claim_holds_in_the_tiny_run(tiny):
    assert correlated.judge(tiny).verdict is Verdict.HOLDS


def test_the_chart_has_both_learners_and_both_values(tiny):
    regret, expected = correlated.draw(tiny).panels
    assert len(regret.lines) == 2
    assert len(expected.lines) == 4


def test_the_claim_holds_when_ours_settles_and_the_product_learner_does_not():
    assert correlated.judge(fabricated()).verdict is Verdict.HOLDS


@pytest.mark.parametrize(
    "product", [np.sqrt(EPISODES), 0.3 * EPISODES], ids=["settles", "below its limit"]
)
def test_a_product_learner_that_loses_little_calls_for_a_correction(product):
    assert correlated.judge(fabricated(product=product)).verdict is Verdict.CORRECTED


@pytest.mark.parametrize("which", ["ours", "ours_grid"])
def test_the_claim_fails_when_ours_goes_on_losing(which):
    assert correlated.judge(fabricated(**{which: 0.5 * EPISODES})).verdict is Verdict.FAILS


def test_no_regret_at_all_is_settled():
    evidence = fabricated(ours_grid=0.0 * EPISODES)
    assert correlated.judge(evidence).verdict is Verdict.HOLDS


def test_the_product_of_marginals_is_the_model_when_variables_are_independent():
    model = sysadmin(3)
    product = correlated.product_of_marginals(model)
    np.testing.assert_allclose(
        enumerate_states(product).transitions, enumerate_states(model).transitions, atol=1e-12
    )


def test_the_product_of_marginals_of_units_squares_their_chance_of_failing():
    flat = enumerate_states(correlated.product_of_marginals(maintenance(shock=0.2, alone=0.1)))
    both = flat.transitions[0, flat.index((0, 0)), flat.index((1, 1))]
    assert both == pytest.approx((0.2 + 0.8 * 0.1) ** 2)


def test_independent_units_had_better_run_until_one_has_failed():
    exact = solve_exactly(correlated.product_of_marginals(maintenance()))
    best = {state: exact.action(state) for state in ((0, 0), (0, 1), (1, 0), (1, 1))}
    assert best == {(0, 0): "run", (0, 1): "service", (1, 0): "service", (1, 1): "service"}


def test_independence_changes_what_is_best_for_the_units_but_not_in_the_gridworld():
    units = correlated.exact_values(maintenance())
    assert units["worth_of_product_policy"] < units["optimal_value"] - 0.5
    assert units["product_value"] > units["optimal_value"] + 0.2
    lanes = correlated.exact_values(correlated.lanes())
    assert lanes["distance"] > 0.5
    assert lanes["worth_of_product_policy"] == lanes["optimal_value"] == 0.0
