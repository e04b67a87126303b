"""Confidence sets: the formulas, Algorithm 3 against a linear program, and coverage."""

import math

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import binom
from tests.learning.learning_models import coins, contains, count_into, true_means

import fsmdp
from fsmdp.learning.cells.confidence import (
    CONFIDENCE,
    bernstein,
    empirical_moments,
    hoeffding,
    reward_bounds,
    weissman,
)
from fsmdp.learning.cells.statistics import Statistics
from fsmdp.policies.resolve import resolve
from fsmdp.simulation.simulate import compile_model, new_record, simulate


@pytest.fixture(scope="module")
def model():
    return coins(sigma=0.3)


@pytest.fixture(scope="module")
def learner(model):
    return fsmdp.UCRLFactored(model.structure(fsmdp.Basis.pairs(model)))


def random_statistics(learner, seed, most=30):
    """Counts that add up, with some cells never visited."""
    rng, cells = np.random.default_rng(seed), learner.cells
    statistics = Statistics.empty(cells)
    starts = cells.layout.outcome_start
    for cell in range(cells.n_transition_cells):
        n = int(rng.integers(most)) * int(rng.random() < 0.8)
        share = rng.dirichlet(np.ones(cells.n_values[cell]))
        end = starts[cell] + cells.n_values[cell]
        statistics.outcomes[starts[cell] : end] = rng.multinomial(n, share)
        statistics.transition_visits[cell] = n
    statistics.reward_visits[:] = rng.integers(most, size=cells.n_reward_cells)
    statistics.reward_sums[:] = rng.random(cells.n_reward_cells) * statistics.reward_visits
    return statistics


def cell_data(learner, statistics, cell):
    """Number of visits, empirical distribution and values of h_j in a cell."""
    starts, j = learner.cells.layout.outcome_start, learner.cells.function[cell]
    n = statistics.transition_visits[cell]
    values = learner.structure.basis.tables[j].values.ravel()
    return n, statistics.outcomes[starts[cell] :][: len(values)] / max(n, 1), values


def extreme_mean(values, empirical, radius, sign):
    """max or min of p @ values over distributions within an L1 radius, as a linear program."""
    m = len(values)
    cost = np.concatenate([-sign * values, np.zeros(m)])
    closer = np.block([[np.eye(m), -np.eye(m)], [-np.eye(m), -np.eye(m)]])
    budget = np.concatenate([np.zeros(m), np.ones(m)])[None]
    found = linprog(
        cost,
        A_ub=np.vstack([closer, budget]),
        b_ub=np.concatenate([empirical, -empirical, [radius]]),
        A_eq=np.concatenate([np.ones(m), np.zeros(m)])[None],
        b_eq=[1.0],
    )
    return -sign * found.fun


def weissman_radius(learner, cell, n, k, delta):
    structure, j = learner.structure, learner.cells.function[cell]
    values, parents = learner.cells.n_values[cell], learner.cells.n_parents[cell]
    assert values == 2 ** len(structure.basis.scopes[j])
    d = 2 * values * math.log(2) - 2 * math.log(delta / (2 * structure.cells * parents * k**2))
    return min(2.0, math.sqrt(d / n))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("k", [1, 40])
def test_algorithm_3_finds_both_ends_of_the_ball(learner, seed, k):
    statistics = random_statistics(learner, seed, most=300)
    low, high = weissman(learner.cells, statistics, k, 0.05)
    for cell in range(learner.cells.n_transition_cells):
        n, empirical, values = cell_data(learner, statistics, cell)
        radius = 2.0 if n == 0 else weissman_radius(learner, cell, n, k, 0.05)
        assert high[cell] == pytest.approx(extreme_mean(values, empirical, radius, +1), abs=1e-7)
        assert low[cell] == pytest.approx(extreme_mean(values, empirical, radius, -1), abs=1e-7)


def test_algorithm_3_works_for_functions_of_several_values():
    variables = [fsmdp.Variable("gauge", 5)]
    structure = fsmdp.Structure.from_parents(
        variables,
        ["wait"],
        parents={"gauge": [fsmdp.Case(fsmdp.ANY, parents=["gauge"])]},
        rewards=[],
        basis=fsmdp.Basis([fsmdp.Table(["gauge"], [0.3, -2.0, 5.0, 0.3, 1.0])]),
        horizon=2,
    )
    learner = fsmdp.UCRLFactored(structure)
    statistics = random_statistics(learner, 5, most=4000)
    low, high = weissman(learner.cells, statistics, 7, 0.05)
    for cell in range(1, learner.cells.n_transition_cells):
        n, empirical, values = cell_data(learner, statistics, cell)
        d = 2 * len(values) * math.log(2) - 2 * math.log(0.05 / (2 * 5 * 7**2))
        radius = 2.0 if n == 0 else min(2.0, math.sqrt(d / n))
        assert high[cell] == pytest.approx(extreme_mean(values, empirical, radius, +1), abs=1e-7)
        assert low[cell] == pytest.approx(extreme_mean(values, empirical, radius, -1), abs=1e-7)


def test_hoeffding_is_its_formula(learner):
    statistics = random_statistics(learner, 1, most=500)
    low, high = hoeffding(learner.cells, statistics, 9, 0.05)
    n_cells = learner.structure.cells
    for cell in range(1, learner.cells.n_transition_cells):
        n, empirical, values = cell_data(learner, statistics, cell)
        if n:
            mean = empirical @ values
            radius = math.sqrt(math.log(2 * n_cells * math.pi**2 * n**2 / (6 * 0.05)) / (2 * n))
            assert high[cell] == pytest.approx(min(1.0, mean + radius))
            assert low[cell] == pytest.approx(max(0.0, mean - radius))


def test_bernstein_is_its_formula_met_with_hoeffding(learner):
    statistics = random_statistics(learner, 2, most=3000)
    low, high = bernstein(learner.cells, statistics, 9, 0.05)
    wide_low, wide_high = hoeffding(learner.cells, statistics, 9, 0.025)
    n_cells, tighter = learner.structure.cells, 0
    for cell in range(1, learner.cells.n_transition_cells):
        n, empirical, values = cell_data(learner, statistics, cell)
        if n < 2:
            assert (low[cell], high[cell]) == (wide_low[cell], wide_high[cell])
            continue
        mean = empirical @ values
        variance = empirical @ (values - mean) ** 2 * n / (n - 1)
        logs = math.log(4 * n_cells * math.pi**2 * n**2 / (6 * 0.025))
        radius = math.sqrt(2 * variance * logs / n) + 7 * logs / (3 * (n - 1))
        assert high[cell] == pytest.approx(min(wide_high[cell], mean + radius))
        assert low[cell] == pytest.approx(max(wide_low[cell], mean - radius))
        tighter += mean + radius < wide_high[cell]
    assert tighter > 0


def test_moments_are_those_of_the_values_seen(learner):
    statistics = random_statistics(learner, 3)
    means, variances = empirical_moments(learner.cells, statistics)
    for cell in range(learner.cells.n_transition_cells):
        n, empirical, values = cell_data(learner, statistics, cell)
        if n > 1:
            seen = np.repeat(values, np.rint(empirical * n).astype(int))
            assert means[cell] == pytest.approx(seen.mean())
            assert variances[cell] == pytest.approx(seen.var(ddof=1))


def test_reward_bounds_are_their_formulas_clipped(learner):
    statistics = random_statistics(learner, 4)
    cells, k, delta = learner.cells, 12, 0.1
    n = statistics.reward_visits
    for by_visits in (False, True):
        low, high = reward_bounds(cells, statistics, k, delta, by_visits=by_visits)
        for cell in range(cells.n_reward_cells):
            if n[cell] == 0:
                assert (low[cell], high[cell]) == (0.0, 1.0)
                continue
            d = 4 * 0.3**2 * math.log(4 * 2 * 2 * k / delta)  # two terms of two cells
            if by_visits:
                d = 2 * 0.3**2 * math.log(2 * 4 * math.pi**2 * n[cell] ** 2 / (6 * delta))
            mean, radius = statistics.reward_sums[cell] / n[cell], math.sqrt(d / n[cell])
            assert high[cell] == pytest.approx(min(1.0, mean + radius))
            assert low[cell] == pytest.approx(max(0.0, mean - radius))


def test_a_reward_without_noise_is_known_after_one_visit():
    model = coins(sigma=0.0)
    learner = fsmdp.UCRLFactored(model.structure(fsmdp.Basis.singles(model)))
    fsmdp.learn(model, learner, episodes=1)
    bounds, visits = learner.bounds(), learner.statistics.reward_visits
    _, rewards = true_means(model, learner.structure)
    np.testing.assert_allclose(bounds.reward_low[visits > 0], rewards[visits > 0])
    np.testing.assert_allclose(bounds.rewards[visits > 0], rewards[visits > 0])
    assert (bounds.rewards[visits == 0] == 1.0).all()


@pytest.mark.parametrize("name", CONFIDENCE)
def test_nothing_seen_leaves_everything_open_but_the_constant(learner, name):
    empty = Statistics.empty(learner.cells)
    low, high = CONFIDENCE[name].means(learner.cells, empty, 1, 0.05, 1.0)
    np.testing.assert_array_equal(low, learner.cells.lowest)
    np.testing.assert_array_equal(high, learner.cells.highest)
    assert (low[0], high[0]) == (1.0, 1.0)
    low, high = CONFIDENCE[name].means(learner.cells, random_statistics(learner, 0), 5, 0.05, 1.0)
    assert (low[0], high[0]) == (1.0, 1.0)


@pytest.mark.parametrize("seed", range(2))
def test_chernoff_is_its_formula_inside_hoeffding(learner, seed):
    statistics = random_statistics(learner, seed, most=3000)
    low, high = CONFIDENCE["chernoff"].means(learner.cells, statistics, 9, 0.05, 1.0)
    wide_low, wide_high = hoeffding(learner.cells, statistics, 9, 0.05)
    assert (low >= wide_low - 1e-9).all()
    assert (high <= wide_high + 1e-9).all()
    n_cells, looked_at = learner.structure.cells, 0
    for cell in range(1, learner.cells.n_transition_cells):
        n, empirical, values = cell_data(learner, statistics, cell)
        if n == 0:
            assert (low[cell], high[cell]) == (0.0, 1.0)
            continue
        p = empirical @ values
        allowed = math.log(2 * n_cells * math.pi**2 * n**2 / (6 * 0.05)) / n
        for q in (low[cell], high[cell]):
            if 0 < q < 1:
                found = sum(a * math.log(a / b) for a, b in ((p, q), (1 - p, 1 - q)) if a > 0)
                assert found == pytest.approx(allowed, rel=1e-5)
                looked_at += 1
    assert looked_at > 5


@pytest.mark.parametrize("seed", range(2))
def test_mixtures_are_the_means_that_bets_do_not_refute_inside_chernoff(learner, seed):
    statistics = random_statistics(learner, seed, most=300)
    low, high = CONFIDENCE["mixture"].means(learner.cells, statistics, 9, 0.05, 1.0)
    wide_low, wide_high = CONFIDENCE["chernoff"].means(learner.cells, statistics, 9, 0.05, 1.0)
    assert (low >= wide_low - 1e-9).all()
    assert (high <= wide_high + 1e-9).all()
    # Bets on a grid of means, each by the likelihood ratio, weighed as the mixture weighs them.
    angles = (np.arange(20_000) + 0.5) / 20_000 * math.pi / 2
    grid = np.sin(angles) ** 2  # Beta(1/2, 1/2) is uniform in the angle
    looked_at = 0
    for cell in range(1, learner.cells.n_transition_cells):
        n, empirical, values = cell_data(learner, statistics, cell)
        if n == 0:
            assert (low[cell], high[cell]) == (0.0, 1.0)
            continue
        total = n * (empirical @ values)
        for q in (low[cell], high[cell]):
            if 1e-9 < q < 1 - 1e-9:
                logs = total * np.log(grid / q) + (n - total) * np.log((1 - grid) / (1 - q))
                paid = np.exp(logs).mean() / 2
                if total in (0, n):  # all on one end
                    paid += np.exp(-n * math.log(q if total else 1 - q)) / 4
                assert paid == pytest.approx(learner.structure.cells / 0.05, rel=1e-4)
                looked_at += 1
    assert looked_at > 5


@pytest.mark.parametrize("name", [n for n in CONFIDENCE if n not in ("chernoff", "mixture")])
def test_a_quarter_of_the_scale_halves_the_radii(learner, name):
    statistics = random_statistics(learner, 6, most=10_000)
    many = statistics.transition_visits > 3000
    low, high = CONFIDENCE[name].means(learner.cells, statistics, 5, 0.05, 1.0)
    narrow_low, narrow_high = CONFIDENCE[name].means(learner.cells, statistics, 5, 0.05, 0.25)
    inside = (low > learner.cells.lowest + 1e-9) & (high < learner.cells.highest - 1e-9)
    unclipped = many & inside
    assert unclipped.sum() > 3
    np.testing.assert_allclose((high - low)[unclipped], 2 * (narrow_high - narrow_low)[unclipped])


def runs_that_leave(model, learner, names, scale, runs, episodes, delta):
    """For each kind of set, in how many runs the truth left it in some cell at some episode."""
    means, rewards = true_means(model, learner.structure)
    compiled, policy = compile_model(model), resolve(model, "random").arrays
    left = dict.fromkeys(names, 0)
    record, values = new_record(compiled, 1, model.horizon), np.zeros(compiled.n_slots, np.int64)
    learners = {
        name: fsmdp.UCRLFactored(learner.structure, confidence=name, delta=delta, scale=scale)
        for name in names
    }
    for seed in range(runs):
        rng, inside = np.random.default_rng(seed), dict.fromkeys(names, True)
        statistics = Statistics.empty(learner.cells)
        for _ in range(episodes):
            simulate(
                compiled, policy, rng, 1.0, True, 0, model.horizon, values, np.zeros(1), record
            )
            count_into(learner.cells, statistics, record)
            for name in names:
                learners[name].statistics = statistics
                inside[name] &= contains(learners[name].bounds(), means, rewards)
        for name in names:
            left[name] += not inside[name]
    return left


FULL = pytest.param(500, marks=pytest.mark.slow)
"""Fewer runs tell only of sets that fail often: of 20, five must fail, of 500 forty."""


@pytest.mark.parametrize("runs", [100, FULL])
def test_the_truth_leaves_the_sets_in_at_most_a_fraction_delta_of_runs(model, learner, runs):
    delta = 0.05
    left = runs_that_leave(model, learner, list(CONFIDENCE), 1.0, runs, 40, delta)
    for name, count in left.items():
        assert binom.sf(count - 1, runs, delta) > 0.01, f"{name}: left in {count} of {runs} runs"


@pytest.mark.parametrize("runs", [100, FULL])
def test_radii_of_a_third_fail_the_same_test(model, learner, runs):
    delta = 0.05
    left = runs_that_leave(model, learner, list(CONFIDENCE), 1 / 9, runs, 40, delta)
    for name, count in left.items():
        assert binom.sf(count - 1, runs, delta) < 1e-6, f"{name}: left in {count} of {runs} runs"


def planning_runs_that_leave(model, name, scale, runs, delta, episodes=20):
    """In how many runs the truth left the sets while the learner itself chose the actions."""
    structure = model.structure(fsmdp.Basis.pairs(model))
    means, rewards = true_means(model, structure)
    left = 0
    for seed in range(runs):
        learner = fsmdp.UCRLFactored(
            structure, confidence=name, delta=delta, scale=scale, seed=seed, replan="episode"
        )
        inside, replan = [], learner.replan

        def checked(learner=learner, inside=inside, replan=replan):
            inside.append(contains(learner.bounds(), means, rewards))
            return replan()

        learner.replan = checked
        fsmdp.learn(model, learner, episodes, seed=seed)
        inside.append(contains(learner.bounds(), means, rewards))
        assert len(inside) == episodes + 1
        left += not all(inside)
    return left


PLANNED_MODELS = {
    "correlated coins": coins(sigma=0.3),
    "random blocks": fsmdp.domains.random_model(seed=5, variables=3, horizon=3),
}


@pytest.mark.parametrize("runs", [20, FULL])
@pytest.mark.parametrize("name", CONFIDENCE)
@pytest.mark.parametrize("which", PLANNED_MODELS)
def test_the_truth_stays_inside_when_the_learner_chooses_the_actions(which, name, runs):
    left = planning_runs_that_leave(PLANNED_MODELS[which], name, 1.0, runs, delta=0.05)
    assert binom.sf(left - 1, runs, 0.05) > 0.01, f"{name}: left in {left} of {runs} runs"


@pytest.mark.parametrize("runs", [20, FULL])
@pytest.mark.parametrize("name", CONFIDENCE)
def test_radii_of_a_third_fail_that_test_too(name, runs):
    left = planning_runs_that_leave(coins(sigma=0.3), name, 1 / 9, runs, delta=0.05)
    assert binom.sf(left - 1, runs, 0.05) < 1e-4, f"{name}: left in {left} of {runs} runs"
