"""Claims that no other test would notice to be broken: found by putting mistakes in by hand."""

import numpy as np
import pytest

from fsmdp import (
    ANY,
    Basis,
    Case,
    Conditional,
    FactoredMDP,
    ModelError,
    PolicyError,
    Reward,
    Table,
    Variable,
    evaluate_exactly,
    solve_exactly,
)
from fsmdp.model.conditionals import normalised
from fsmdp.model.marginals import Marginal, backprojection_rounding
from fsmdp.model.structure import LONGEST_HORIZON
from fsmdp.model.tables import bound_table


def coin(**changes):
    """A coin that is thrown again and again, with parts replaced."""
    parts = {
        "variables": [Variable("x", 2)],
        "actions": ["throw"],
        "conditionals": [Conditional("x", [Case(ANY, [], [0.5, 0.5])])],
        "rewards": [],
        "horizon": 3,
    }
    return FactoredMDP(**(parts | changes))


def test_long_rows_that_sum_to_one_up_to_rounding_are_kept_bit_by_bit():
    rng = np.random.default_rng(0)
    rows = rng.random((20, 1000))
    rows /= rows.sum(axis=1, keepdims=True)
    assert (rows.sum(axis=1) != 1).any()
    np.testing.assert_array_equal(normalised(rows), rows)
    off = rows * (1 + 1e-10)
    np.testing.assert_allclose(normalised(off).sum(axis=1), 1.0, rtol=1e-13)


@pytest.mark.parametrize("size", [1.0, 1e9])
@pytest.mark.parametrize("ends", [{"horizon": 4}, {"horizon": None, "discount": 0.9}])
def test_ties_are_told_relative_to_the_values(size, ends):
    larger = size * (1 + 1e-14)  # by far less than 1e-12 of the value
    rewards = [Reward("r", [Case("first", [], size), Case("second", [], larger)], 0, 2 * size)]
    exact = solve_exactly(coin(actions=["first", "second"], rewards=rewards, **ends))
    assert exact.action([0]) == exact.action([1]) == "first"


@pytest.mark.parametrize(
    ("ends", "steps"),
    [
        ({"horizon": 3}, 3.0),
        ({"horizon": 3, "discount": 0.5}, 1.75),
        ({"horizon": None, "discount": 0.75}, 4.0),
    ],
)
def test_the_largest_return_has_every_reward_at_its_upper_bound_at_every_step(ends, steps):
    rewards = [
        Reward("r", [Case(ANY, [], 1.0)], low=0, high=2),
        Reward("s", [Case(ANY, [], 0.0)], low=-5, high=1),
    ]
    model = coin(rewards=rewards, **ends)
    assert model.structure(Basis.singles(model)).largest_return == 3 * steps


def test_the_longest_horizon_is_allowed():
    assert coin(horizon=LONGEST_HORIZON).horizon == LONGEST_HORIZON


@pytest.mark.parametrize("size", [2, 50])
def test_the_rounding_of_a_mean_covers_a_sum_of_so_many_products(size):
    """A sum of n products is off by up to n eps / 2 times their sizes, whether or not it was."""
    probabilities = np.full((1, size), 1 / size)
    function = bound_table((0,), np.where(np.arange(size) % 2, 1e9, -1e9))
    exact, rounded = (
        backprojection_rounding(Marginal((1,), (0,), probabilities, rounding), function)
        for rounding in (0.0, 1e-12)
    )
    eps = float(np.finfo(np.float64).eps)
    assert exact.scope == rounded.scope == (1,)
    assert exact.values[0] >= size * eps / 2 * 1e9
    assert rounded.values[0] - exact.values[0] >= 1e-12 * 1e9


def test_ancestors_are_listed_in_the_order_in_which_they_are_drawn():
    names = [f"x{i}" for i in range(9)]
    alone = [Conditional(name, [Case(ANY, [], [0.5, 0.5])]) for name in names[:-1]]
    last = Conditional("x8", [Case(ANY, [], [[0.9, 0.1], [0.2, 0.8]], drawn=["x1"])])
    model = coin(variables=[Variable(name, 2) for name in names], conditionals=[*alone, last])
    assert model.dynamics.ancestry((8,)).groups[0].mechanisms == (1, 8)


@pytest.mark.parametrize("shape", [(3, 1), (1, 3), (3, 2, 1), (1, 1), (2, 1, 3)])
def test_a_table_by_step_has_a_number_for_each_state(shape):
    """Not even if as many numbers in all would fill some of the steps."""
    with pytest.raises(PolicyError, match=r"policy table: expected shape \(2,\) or \(3, 2\)"):
        evaluate_exactly(coin(), np.zeros(shape, dtype=int))


def test_a_group_is_named_by_three_of_its_actions():
    assert Case(["a", "b", "c"]).label == "action group [a, b, c]"
    assert Case(["a", "b", "c", "d"]).label == "action group [a, b, c, ...]"


def test_a_function_of_a_variable_after_the_last_is_refused():
    model = coin()
    with pytest.raises(ModelError, match="table over"):
        model.marginals(Basis([Table([1], [0.0, 1.0])]))
