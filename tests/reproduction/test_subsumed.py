"""Not subsumed: each measurement against a plain one, and what would change its verdict."""

from itertools import product

import numpy as np
import polars
import pytest
from tests.learning.baselines.baseline_models import switch, twins

import fsmdp
from fsmdp.domains import proposition_one, sysadmin
from fsmdp.exact.flat import enumerate_states
from fsmdp.reproduction.claim import Evidence, Verdict
from fsmdp.reproduction.claims import subsumed

HOLDS, CORRECTED, FAILS = Verdict.HOLDS, Verdict.CORRECTED, Verdict.FAILS
SIZES = np.array([2, 4, 6])


def eluder_table(dimension=2.0, cells=1.0):
    return polars.DataFrame(
        {
            "variables": SIZES,
            "eluder_at_least": dimension**SIZES,
            "our_reward_cells": 5 * cells**SIZES,
            "our_transition_cells": [0, 0, 0],
        }
    )


def growing(column, *factors):
    """A model for each factor, whose column grows by it with each variable."""
    return polars.concat(
        [
            polars.DataFrame({"variables": SIZES, column: factor**SIZES}).with_columns(
                model=polars.lit(f"model {number}")
            )
            for number, factor in enumerate(factors)
        ]
    )


def actions_table(ours=(11, 161), many=(1.5, 522.0), few=(200.0, 300.0)):
    return polars.DataFrame(
        {
            "variables": [10, 160],
            "dimension": [51, 801],
            "our_actions": ours,
            "exponential": many,
            "few": few,
        }
    )


def times_table(seconds=1.0, paper=4.5, one=2.5):
    sizes = SIZES.astype(float)
    return polars.DataFrame(
        {
            "variables": SIZES,
            "cutting_planes": sizes**paper,
            "one_program": sizes**one,
            "joint_seconds": sizes**seconds,
            "stagewise_seconds": sizes,
        }
    )


@pytest.mark.parametrize(
    ("contrast", "table", "verdict"),
    [
        (subsumed.ELUDER, eluder_table(), HOLDS),
        (subsumed.ELUDER, eluder_table(cells=2.0), CORRECTED),
        (subsumed.ELUDER, eluder_table(dimension=1.1), FAILS),
        (subsumed.BELLMAN, growing("rank", 2.0, 1.5), HOLDS),
        (subsumed.BELLMAN, growing("rank", 2.0, 1.1), CORRECTED),
        (subsumed.BELLMAN, growing("rank", 1.0, 1.1), FAILS),
        (subsumed.BLOCKS, growing("blocks", 2.0, 1.5), HOLDS),
        (subsumed.BLOCKS, growing("blocks", 2.0, 1.1), CORRECTED),
        (subsumed.BLOCKS, growing("blocks", 1.0, 1.1), FAILS),
        (subsumed.ACTIONS, actions_table(), HOLDS),
        (subsumed.ACTIONS, actions_table(few=(3.0, 5.0)), CORRECTED),
        (subsumed.ACTIONS, actions_table(ours=(11, 600)), FAILS),
        (subsumed.TIMES, times_table(one=4.5), HOLDS),
        (subsumed.TIMES, times_table(seconds=3.0), HOLDS),
        (subsumed.TIMES, times_table(), CORRECTED),
        (subsumed.TIMES, times_table(seconds=5.0), FAILS),
    ],
)
def test_a_contrast_s_verdict_goes_by_its_numbers(contrast, table, verdict):
    judged = contrast.judge(table)
    assert judged.verdict is verdict
    assert any(letter.isdigit() for letter in judged.measured)


def fabricated(**tables):
    usual = {
        "eluder": eluder_table(),
        "bellman": growing("rank", 2.0),
        "blocks": growing("blocks", 2.0),
        "actions": actions_table(),
    }
    return Evidence(usual | tables, {"times": tables.pop("times", times_table(one=4.5))})


@pytest.mark.parametrize(
    ("evidence", "verdict"),
    [
        (fabricated(), HOLDS),
        (fabricated(eluder=eluder_table(cells=2.0)), CORRECTED),
        (fabricated(blocks=growing("blocks", 1.0)), FAILS),
        (fabricated(eluder=eluder_table(cells=2.0), actions=actions_table(ours=(9, 900))), FAILS),
    ],
)
def test_the_claim_is_as_its_worst_contrast(evidence, verdict):
    assert subsumed.judge(evidence).verdict is verdict
    assert len({chart.name for chart in subsumed.draw(evidence)}) == 5
    assert str(verdict) in subsumed.summary(evidence)["verdict"].to_list()


def test_members_of_the_family_have_the_q_functions_that_are_looked_at():
    for seed in range(3):
        flat = enumerate_states(proposition_one(3, seed))
        exact = fsmdp.solve_exactly(proposition_one(3, seed))
        q = flat.rewards + flat.transitions @ exact.values[1]
        np.testing.assert_array_equal(q[0], 0)
        np.testing.assert_array_equal(q[1], subsumed.member_rewards(3, seed))
    assert subsumed.lower_bound(3, 0) == 8


def test_a_point_that_others_have_told_about_is_not_independent():
    everything = np.eye(5)
    assert subsumed.independent_length(5, lambda k: everything[k, : k + 1], 0.5) == 5
    assert subsumed.independent_length(5, lambda k: np.ones(k + 1), 0.5) == 1
    # Multiples of one vector: the first point that shows it tells the rest.
    direction = np.array([0.0, 0.0, 1.0, 1.0])
    assert subsumed.independent_length(4, lambda k: direction[: k + 1], 0.5) == 0
    assert subsumed.independent_length(2, lambda k: direction[2 : k + 3], 0.5) == 1


def paths(flat, f, policy):
    """Average Bellman errors of one function under one policy, path by path."""
    horizon, n_states = f.shape[0], f.shape[2]
    values = np.vstack([f.max(axis=1), np.zeros(n_states)])
    found = np.zeros(horizon)
    for states in product(range(n_states), repeat=horizon):
        chance = flat.initial()[states[0]]
        for step, state in enumerate(states):
            if step:
                before = states[step - 1]
                chance *= flat.transitions[policy[step - 1, before], before, state]
        for step, state in enumerate(states):
            action = f[step, :, state].argmax()
            following = flat.transitions[action, state] @ values[step + 1]
            found[step] += chance * (values[step, state] - flat.rewards[action, state] - following)
    return found


def test_average_bellman_errors_are_those_of_all_paths():
    model = twins(horizon=3)
    flat = enumerate_states(model)
    functions = subsumed.random_functions(model, flat, 3, seed=1)
    found = subsumed.bellman_errors(flat, functions)
    for row, column in product(range(3), repeat=2):
        policy = functions[row].argmax(axis=1)
        expected = paths(flat, functions[column], policy)
        np.testing.assert_allclose([step[row, column] for step in found], expected, atol=1e-12)


def test_optimal_values_have_no_bellman_error():
    model = sysadmin(2, horizon=3)
    flat, exact = enumerate_states(model), fsmdp.solve_exactly(model)
    q = flat.rewards + np.einsum("ast,lt->las", flat.transitions, exact.values[1:])
    other = subsumed.random_functions(model, flat, 4, seed=0)
    for step in subsumed.bellman_errors(flat, np.concatenate([other, q[None]])):
        np.testing.assert_allclose(step[:, -1], 0, atol=1e-12)
        assert np.abs(step[:, :-1]).max() > 0.1


def test_rank_counts_singular_values():
    rng = np.random.default_rng(0)
    assert subsumed.rank(rng.normal(size=(6, 2)) @ rng.normal(size=(2, 6))) == 2
    assert subsumed.rank(np.zeros((3, 3))) == 0


def latent(n_shown=2):
    """Two hidden states, each shown by one of `n_shown` values at random."""
    stay = np.array([[0.7, 0.3], [0.4, 0.6]])
    shown = np.array([0.2, 0.8] if n_shown == 2 else [1.0])
    rows = np.kron(stay, shown[None]).repeat(n_shown, axis=0)
    return fsmdp.FactoredMDP(
        [fsmdp.Variable("seen", 2 * n_shown)],
        ["wait"],
        [fsmdp.Conditional("seen", [fsmdp.Case(fsmdp.ANY, ["seen"], rows)])],
        [fsmdp.Reward("r", [fsmdp.Case(fsmdp.ANY, ["seen"], np.repeat([0.0, 1.0], n_shown))])],
        horizon=3,
        initial={"seen": np.kron([0.5, 0.5], shown)},
    )


def partitions(items):
    """All ways to divide items into blocks."""
    if not items:
        yield []
        return
    first, *rest = items
    for division in partitions(rest):
        yield [[first], *division]
        for at in range(len(division)):
            yield [*division[:at], [first, *division[at]], *division[at + 1 :]]


def describes(flat, division):
    """Whether P(s' | s, a) = P(b' | b, a) q(s' | b') for some q, and rewards go by blocks."""
    coming = np.vstack([flat.transitions.reshape(-1, len(flat.states)), flat.initial()])
    for block in division:
        part = coming[:, block]
        totals = part.sum(axis=1, keepdims=True)
        shares = part[totals[:, 0] > 0] / totals[totals[:, 0] > 0]
        if len(shares) and np.abs(shares - shares[0]).max() > 1e-9:
            return False
        leaving = flat.transitions[:, block], flat.rewards[:, block]
        if any(np.abs(rows - rows[:, :1]).max() > 1e-9 for rows in leaving):
            return False
    return True


@pytest.mark.parametrize(
    ("model", "expected"),
    [(latent(), 2), (latent(1), 2), (switch(), 2), (sysadmin(2), 4), (twins(), None)],
)
def test_no_division_into_fewer_blocks_describes_a_model(model, expected):
    flat = enumerate_states(model)
    met = np.flatnonzero(subsumed.reachable(flat))
    numbers = subsumed.block_numbers(flat)
    assert len(numbers) == len(met)
    # States that are never met are in blocks of their own, which are not counted.
    never = [[s] for s in range(len(flat.states)) if s not in met]
    fewest = min(len(one) for one in partitions(met.tolist()) if describes(flat, [*one, *never]))
    assert numbers.max() + 1 == fewest
    assert expected in (None, fewest)
    if expected == 2 and len(met) == 4:
        functions = subsumed.random_functions(model, flat, 8, 0)
        assert max(map(subsumed.rank, subsumed.bellman_errors(flat, functions))) <= 2


def test_backed_up_values_are_linear_in_cells():
    model = sysadmin(3, horizon=3)
    basis = fsmdp.Basis.singles(model)
    flat = enumerate_states(model)
    h = np.array([basis.evaluate(state) for state in flat.states])
    features = subsumed.random_functions(model, flat, 200, seed=0)[:, 0].reshape(200, -1)
    for seed in range(3):
        weights = np.random.default_rng(seed).normal(size=len(basis))
        q = (flat.rewards + flat.transitions @ (h @ weights)).ravel()
        fitted = features.T @ np.linalg.lstsq(features.T, q, rcond=None)[0]
        np.testing.assert_allclose(fitted, q, atol=1e-8)
    anything = np.random.default_rng(9).normal(size=q.shape)
    left = features.T @ np.linalg.lstsq(features.T, anything, rcond=None)[0] - anything
    assert np.abs(left).max() > 0.01, "everything is linear in so many functions"
