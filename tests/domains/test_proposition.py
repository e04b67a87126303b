"""Proposition 1: V* is 0 while Q* leaves the span of any small basis."""

from __future__ import annotations

import numpy as np
import pytest

from fsmdp.domains import proposition_one
from fsmdp.errors import ModelError
from fsmdp.exact.flat import enumerate_states
from fsmdp.exact.solve import solve_exactly


def optimal_q(model):
    """Q* of every (action, state) in one vector."""
    exact = solve_exactly(model)
    later = exact.flat.transitions @ exact.values[1]
    return (exact.flat.rewards + later).ravel()


def residual(matrix, target):
    fitted = matrix @ np.linalg.lstsq(matrix, target, rcond=None)[0]
    return float(np.abs(fitted - target).max())


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("horizon", [1, 4])
def test_optimal_value_is_zero_everywhere_and_safe_is_the_only_best_action(seed, horizon):
    exact = solve_exactly(proposition_one(3, seed, horizon))
    assert not exact.values.any()
    assert set(exact.actions.ravel()) == {0}


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("bits", [2, 3, 4])
def test_optimal_q_leaves_the_span_of_a_random_basis(bits, seed):
    functions = 2**bits - 1
    matrix = np.random.default_rng(seed).normal(size=(2 * 2**bits, functions))
    assert residual(matrix, optimal_q(proposition_one(bits, seed))) > 0.01


def test_optimal_q_leaves_the_span_of_singles_for_all_but_few_members():
    states = enumerate_states(proposition_one(4)).states
    singles = np.hstack([np.ones((16, 1)), states])
    matrix = np.kron(np.eye(2), singles)  # one copy for each action
    misses = [residual(matrix, optimal_q(proposition_one(4, s))) > 0.01 for s in range(50)]
    # At most 2^-(16 - 5) of the family is linear in them: one in 2,048.
    assert all(misses)


@pytest.mark.parametrize("seed", range(10))
def test_a_member_is_deterministic_and_risky_never_reaches_the_optimum(seed):
    flat = enumerate_states(proposition_one(4, seed))
    safe, risky = flat.transitions
    assert set(np.unique(flat.transitions)) == {0.0, 1.0}
    np.testing.assert_array_equal(safe[:, 0], 1.0)
    assert not risky[:, 0].any()
    assert not flat.rewards[0].any()
    assert set(flat.rewards[1]) == {-1.0, -0.5}


def test_successors_and_rewards_are_drawn_uniformly():
    flats = [enumerate_states(proposition_one(3, seed)) for seed in range(300)]
    arrivals = sum(flat.transitions[1].sum(axis=0) for flat in flats)[1:]
    expected = 300 * 8 / 7
    # Chi-squared with 6 degrees of freedom exceeds 27.9 once in 10,000 draws.
    assert ((arrivals - expected) ** 2 / expected).sum() < 27.9
    dearer = sum((flat.rewards[1] == -1.0).sum() for flat in flats)
    assert abs(dearer - 1200) < 4 * np.sqrt(2400 / 4)


def test_episodes_start_anywhere():
    np.testing.assert_allclose(enumerate_states(proposition_one(3)).initial(), 1 / 8)


def test_parents_are_all_bits_under_risky_and_none_under_safe():
    model = proposition_one(5)
    for mechanism in model.dynamics.mechanisms:
        assert mechanism.cases.at(0).parents == ()
        assert mechanism.cases.at(1).parents == (0, 1, 2, 3, 4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bits": 13}, "bits is 13, expected a whole number from 1 to 12; use 12 or fewer"),
        ({"bits": 0}, "bits is 0, expected a whole number from 1 to 12; use 1 or more"),
        ({"seed": -1}, "seed is -1"),
        ({"horizon": 0}, "horizon: expected"),
    ],
)
def test_bad_arguments_are_refused_with_a_remedy(options, message):
    with pytest.raises(ModelError, match=message):
        proposition_one(**options)
