"""Bundles find the joint program's optimum, and their value bounds V* at every round."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planning_problems import known_problem, random_basis, small_models
from test_rational import assert_bounds

import fsmdp
from fsmdp.bounds.bellman import state_means
from fsmdp.bounds.bundle import (
    SAMPLES,
    Blocks,
    Bundled,
    coarse_blocks,
    divided,
    finest_blocks,
    minimise,
    minimise_by_rows,
    slopes,
    tightest,
)
from fsmdp.bounds.certificate import certify
from fsmdp.bounds.clock import Clock, Stopped
from fsmdp.bounds.problem import problem_of_model
from fsmdp.domains import random_model, sysadmin
from fsmdp.errors import ModelError
from fsmdp.model.basis import Basis


@settings(max_examples=25)
@given(small_models(horizons=(1, 2, 3, None)), st.sampled_from(["singles", "pairs", "tables"]))
def test_bundles_find_the_optimum_of_the_joint_program(model, kind):
    basis = random_basis(model, kind, np.random.default_rng(0))
    joint = fsmdp.plan(model, basis, method="joint")
    bundled = fsmdp.plan(model, basis, method="bundled")
    span = max(1.0, abs(joint.bound.trivial))
    assert bundled.upper_bound == pytest.approx(joint.upper_bound, abs=1e-4 * span)
    assert bundled.status == "optimal"
    assert_bounds(model, bundled)


@settings(max_examples=25)
@given(small_models(horizons=(1, 3, 5, None)), st.integers(1, 6))
def test_a_bundle_that_is_stopped_has_a_bound(model, rounds):
    problem = known_problem(model, Basis.pairs(model))
    network, intervals = problem.network, problem.intervals
    means = state_means("initial", network.basis, model)
    found = minimise(network, intervals, means, coarse_blocks(network), max_rounds=rounds)
    certificate, _ = certify(network, intervals, found.weights, means)
    assert certificate.violation <= 1e-9 * max(1.0, abs(found.value))
    assert float(means @ found.weights[0]) == pytest.approx(found.value)
    best = fsmdp.solve_exactly(model).start_value
    assert found.value >= best - 1e-9 * max(1.0, abs(best))


def test_steps_of_a_block_share_weights_and_finer_blocks_are_no_worse():
    model = sysadmin(5, horizon=12)
    problem = problem_of_model(model, Basis.pairs(model))
    parts = problem.network, problem.intervals, problem.means
    blocks, found = coarse_blocks(problem.network), None
    values = []
    while True:
        start = None if found is None else found.shared
        found = minimise(*parts, blocks, start, None if found is None else found.held)
        values.append(found.value)
        for block, link in zip(blocks.block_of_step(), found.weights, strict=True):
            np.testing.assert_allclose(link[1:], found.shared[block, 1:])
        if blocks.is_finest:
            break
        finer = blocks.divided()
        found, blocks = divided(found, blocks, finer), finer
    assert blocks.n_blocks == 12
    assert all(b <= a + 1e-9 for a, b in pairwise(values))
    assert values[-1] == pytest.approx(
        fsmdp.plan(model, Basis.pairs(model), method="joint").upper_bound, abs=1e-4
    )


def test_links_cover_every_step_once_with_its_discount():
    blocks = Blocks((3, 1, 2), 0.5)
    assert [link.steps for link in blocks.links] == [(0, 1), (2,), (3,), (4,), (5,)]
    assert [(link.own, link.after) for link in blocks.links] == [
        (0, 0),
        (0, 1),
        (1, 2),
        (2, 2),
        (2, None),
    ]
    assert [link.weight for link in blocks.links] == [1.5, 0.25, 0.125, 0.0625, 0.03125]


def test_the_measure_conserves_the_basis_and_its_slopes_are_those_of_the_bound():
    """Ring of 6, horizon 8: the numbers of the design notes."""
    model = sysadmin(6, horizon=8)
    pairs = [(i, j) for i in range(6) for j in range(i)]

    def product_of(i, j):
        return fsmdp.Table([min(i, j), max(i, j)], np.array([[0.0, 0.0], [0.0, 1.0]]))

    basis, left = Basis.singles(model), list(pairs)
    bounds = []
    for _ in range(3):
        problem = problem_of_model(model, basis)
        blocks = finest_blocks(problem.network)
        found = minimise(problem.network, problem.intervals, problem.means, blocks)
        bounds.append(found.value)
        own = np.abs(slopes(model, basis, blocks, found.cuts, found.measure)).sum(axis=0)
        assert own.max() < 1e-4
        candidates = Basis([product_of(*pair) for pair in left])
        scores = np.abs(slopes(model, candidates, blocks, found.cuts, found.measure)).sum(axis=0)
        assert scores[1:].max() > 0.01
        chosen = np.argsort(-scores[1:])[:3]
        basis = Basis([*basis.tables[1:], *(product_of(*left[k]) for k in chosen)])
        left = [pair for k, pair in enumerate(left) if k not in chosen]
    everything = fsmdp.plan(
        model,
        Basis([*Basis.singles(model).tables[1:], *(product_of(*p) for p in pairs)]),
        method="joint",
    )
    exact = fsmdp.solve_exactly(model).start_value
    assert exact == pytest.approx(7.4128, abs=1e-4)
    assert bounds[0] == pytest.approx(7.5159, abs=1e-4)
    assert everything.upper_bound == pytest.approx(7.4888, abs=1e-4)
    assert bounds[0] > bounds[1] > bounds[2] > everything.upper_bound > exact
    # 6 of the 15 pairs do more than half of what all of them do.
    assert bounds[0] - bounds[2] > 0.6 * (bounds[0] - everything.upper_bound)


def test_bundles_refuse_what_is_known_up_to_intervals():
    model = random_model(1, horizon=2)
    problem = problem_of_model(model, Basis.singles(model))
    wider = replace(problem.intervals, high=problem.intervals.high + 0.1)
    with pytest.raises(ModelError, match="known models"):
        Bundled().solve(replace(problem, intervals=wider))


@settings(max_examples=15)
@given(small_models(horizons=(1, 3, None)), st.sampled_from([None, 4]))
def test_rows_of_blocks_find_what_bundles_find(model, size):
    problem = problem_of_model(model, Basis.pairs(model), mini_bucket=size)
    parts = problem.network, problem.intervals, problem.means, coarse_blocks(problem.network)
    rows, bundle = minimise_by_rows(*parts), minimise(*parts)
    span = max(1.0, abs(bundle.value))
    assert rows.value == pytest.approx(bundle.value, abs=1e-4 * span)
    certificate, _ = certify(problem.network, problem.intervals, rows.weights, problem.start)
    assert certificate.violation <= 1e-9 * span


def test_samples_of_the_duals_conserve_the_basis_up_to_noise():
    model = sysadmin(6, horizon=8)
    problem = problem_of_model(model, Basis.singles(model))
    blocks = finest_blocks(problem.network)
    found = minimise_by_rows(problem.network, problem.intervals, problem.means, blocks)
    assert found.value == pytest.approx(7.5159, abs=1e-4)
    for link in range(8):
        assert found.measure[found.cuts.steps == link].sum() == pytest.approx(1.0)
    own = slopes(model, problem.network.basis, blocks, found.cuts, found.measure)
    assert np.abs(own[:, 0]).max() < 1e-9  # mass is conserved exactly
    assert np.abs(own).max() < 6 / np.sqrt(SAMPLES)


@pytest.mark.parametrize("looks", range(12))
def test_a_bundle_may_be_stopped_at_any_look_at_the_clock(looks):
    """Before the first weights were looked at there is nothing; then there is always a bound."""
    model = sysadmin(5, horizon=6)
    problem = problem_of_model(model, Basis.singles(model))

    class Counted(Clock):
        left_to_look = looks

        def check(self):
            self.left_to_look -= 1
            if self.left_to_look < 0:
                raise Stopped

    try:
        _, found = tightest(problem, Counted())
    except Stopped:
        assert looks < 8
        return
    best = fsmdp.solve_exactly(model).start_value
    assert np.isfinite(found.value)
    assert found.value >= best - 1e-9
