"""Functions of one scope share what is counted, and optimism stays within what can be earned."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog
from tests.learning.learning_models import planned_values, shop

import fsmdp
from fsmdp.bounds.stagewise import left_to_earn
from fsmdp.errors import SizeError
from fsmdp.learning.cells.confidence import empirical_moments, weissman
from fsmdp.learning.cells.layout import cells_of
from fsmdp.learning.cells.products import indicators_of
from fsmdp.model.cases import Cases


@pytest.fixture(scope="module")
def model():
    return shop()


def all_states(model):
    return [tuple(s) for s in np.ndindex(*(v.size for v in model.variables))]


def test_functions_of_one_scope_and_parents_share_counts(model):
    structure = model.structure(fsmdp.Basis.blocks(model, [[0, 1], [2]]))
    learner = fsmdp.UCRLFactored(structure, seed=0, independent=False)
    fsmdp.learn(model, learner, episodes=20, seed=1)
    cells, statistics = learner.cells, learner.statistics
    # 16 cells of the constant, (season, tea) and (season, salt): two action groups of eight each.
    assert cells.layout.n_outcomes == 1 + 16 * 8 + 16 * 4
    assert statistics.outcomes.sum() == 3 * 20 * model.horizon
    assert cells.n_sets == 32 < cells.n_learnt == 16 * 7 + 16 * 3
    means, _ = empirical_moments(cells, statistics)
    for cell in range(cells.n_transition_cells):
        n = statistics.transition_visits[cell]
        if n:
            start = cells.layout.outcome_start[cell]
            h = structure.basis.tables[cells.function[cell]].values.ravel()
            seen = statistics.outcomes[start : start + len(h)]
            assert seen.sum() == n
            assert means[cell] == pytest.approx(seen @ h / n)


def test_balls_of_shared_cells_are_paid_for_once(model):
    structure = model.structure(fsmdp.Basis.singles(model))
    cells, learner = cells_of(structure), fsmdp.UCRLFactored(structure)
    fsmdp.learn(model, learner, episodes=300, seed=0)
    _, high = weissman(learner.cells, learner.statistics, 1, 0.05)
    paid = replace(cells, n_sets=cells.n_learnt)
    _, dearer = weissman(paid, learner.statistics, 1, 0.05)
    assert (high <= dearer).all()
    assert (high < dearer).any()


def test_posterior_draws_of_one_scope_are_one_distribution(model):
    structure = model.structure(fsmdp.Basis.blocks(model, [[1], [2]]))
    learner = fsmdp.PSRLFactored(structure)
    means, cells = learner.sample_means(), learner.cells
    for start in np.unique(cells.layout.outcome_start[1:]):
        sharing = np.flatnonzero(cells.layout.outcome_start == start)
        assert len(sharing) == 3  # indicators of the values but 0
        assert means[sharing].sum() <= 1 + 1e-12


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("covered", [False, True])
def test_extremes_over_indicators_are_those_of_a_linear_program(model, seed, covered):
    rng = np.random.default_rng(seed)
    values = range(4) if covered else range(1, 4)
    tables = [fsmdp.Table(["tea"], np.eye(4)[v]) for v in values]
    structure = model.structure(fsmdp.Basis(tables))
    together = indicators_of(structure)
    assert together is not None
    n, k = int(together.n_entries[1]), len(tables)
    truth = rng.dirichlet(np.ones(4), size=n)[:, list(values)]
    spread = 0.3 * rng.random((2, n, k))
    low = np.concatenate([[1.0], np.clip(truth - spread[0], 0, 1).T.ravel()])
    high = np.concatenate([[1.0], np.clip(truth + spread[1], 0, 1).T.ravel()])
    weights = np.concatenate([[0.5], rng.normal(size=k)])
    for sign in (1.0, -1.0):
        means = together.means(weights, low, high, sign)[1:].reshape(k, n)
        for entry in range(n):
            box = [(low[1 + j * n + entry], high[1 + j * n + entry]) for j in range(k)]
            total = {"A_eq": [[1.0] * k], "b_eq": [1.0]}
            limit = total if covered else {"A_ub": [[1.0] * k], "b_ub": [1.0]}
            best = linprog(-sign * weights[1:], bounds=box, **limit)
            assert sign * (weights[1:] @ means[:, entry]) == pytest.approx(-best.fun, abs=1e-9)


@pytest.mark.parametrize("kind", ["singles", "pairs", "blocks"])
def test_values_stay_between_the_optimum_and_the_ceiling(model, kind):
    basis = {
        "singles": fsmdp.Basis.singles,
        "pairs": fsmdp.Basis.pairs,
        "blocks": lambda m: fsmdp.Basis.blocks(m, [[0, 1], [0, 2]]),
    }[kind](model)
    exact, states = fsmdp.solve_exactly(model), all_states(model)
    learner = fsmdp.UCRLFactored(model.structure(basis), known_rewards=model.rewards)
    ceilings = left_to_earn(learner.network, learner.planned_for(learner.bounds()))
    for episodes in (0, 5, 60):
        if episodes:
            fsmdp.learn(model, learner, episodes=episodes, seed=episodes)
        planned = learner.replan()
        for step in (1, 2, model.horizon):
            values = planned_values(learner, planned, states, step)
            best = np.array([exact.value(state, step) for state in states])
            assert (values >= best - 1e-7).all()
            assert (values <= ceilings[step - 1] + 1e-6).all()
        assert planned.w_norm <= 6 * len(set(basis.scopes)) * ceilings[0]
    history = fsmdp.learn(model, learner, episodes=5, seed=9)
    assert (history.optimistic_values <= model.structure(basis).largest_return + 1e-9).all()


def test_the_tighter_of_two_bases_is_followed(model):
    structure = model.structure(fsmdp.Basis.pairs(model))
    learner = fsmdp.UCRLFactored(structure, known_rewards=model.rewards, empirical_weight=0)
    fsmdp.learn(model, learner, episodes=3, seed=0)
    start = learner.start_means()
    found, asked = [], []
    for planner in (learner.planner, learner.coarse):

        def record(*given, plan=planner.plan):
            asked.append(plan(*given))
            return asked[-1]

        found.append(record)
    learner.planner.plan = found[0]
    learner.coarse = type("Coarse", (), {"plan": staticmethod(found[1])})()
    planned = learner.replan()
    both = [float(start @ one.weights[0]) for one in asked]
    assert len(both) == 2
    first = planned_values(learner, planned, [(0, 1, 1)])[0]
    assert first == pytest.approx(min(both))


def taxi(horizon):
    """One block of four variables, 500 states, six actions."""
    sizes = {"row": 5, "column": 5, "passenger": 5, "goal": 4}
    variables = [fsmdp.Variable(name, size) for name, size in sizes.items()]
    actions = ["south", "north", "east", "west", "take", "leave"]
    everything = [fsmdp.Case([action], list(sizes)) for action in actions]
    return fsmdp.Structure.from_parents(
        variables,
        actions,
        parents=dict.fromkeys(sizes, everything),
        rewards=[fsmdp.Reward("pay", everything, low=-10, high=20)],
        basis=fsmdp.Basis.blocks(variables, [list(sizes)]),
        horizon=horizon,
    )


@pytest.mark.parametrize("learner", [fsmdp.UCRLFactored, fsmdp.PSRLFactored])
def test_what_does_not_fit_is_refused_before_it_is_allocated(learner, monkeypatch):
    monkeypatch.setattr("fsmdp.learning.learners.factored.network_of_structure", None)
    with pytest.raises(SizeError, match=r"plans for 200 steps of 500 functions have 2\^29 numbers"):
        learner(taxi(200))


def test_too_many_outcomes_are_refused():
    variables = [fsmdp.Variable(f"dial-{n}", 30) for n in range(3)]
    everything = [fsmdp.Case(fsmdp.ANY, [v.name for v in variables[:2]])]
    corner = np.zeros((30, 30, 30))
    corner[-1, -1, -1] = 1.0
    structure = fsmdp.Structure.from_parents(
        variables,
        ["wait"],
        parents={v.name: everything for v in variables},
        rewards=[],
        basis=fsmdp.Basis([fsmdp.Table([v.name for v in variables], corner)]),
        horizon=1,
    )
    cells_of(structure)  # 900 cells of 27,000 values
    larger = replace(structure, parents=(structure.parents[0], of_all(variables)))
    with pytest.raises(SizeError, match="next values to be counted"):
        cells_of(larger)


def of_all(variables):
    return Cases((tuple(range(len(variables))),))


@pytest.mark.parametrize(("iterations", "is_constant"), [(0, True), (100, False)])
def test_stages_that_do_not_end_fall_back_on_a_constant(monkeypatch, iterations, is_constant):
    monkeypatch.setattr("fsmdp.bounds.stagewise.MOST_ITERATIONS", iterations)
    model = fsmdp.domains.sysadmin(4)
    structure = model.structure(fsmdp.Basis.singles(model))
    learner = fsmdp.UCRLFactored(structure, known_rewards=model.rewards, empirical_weight=0)
    exact, states = fsmdp.solve_exactly(model), all_states(model)
    values = planned_values(learner, learner.replan(), states)
    assert (values >= np.array([exact.value(state, 1) for state in states]) - 1e-7).all()
    assert (np.ptp(values) < 1e-9) == is_constant
