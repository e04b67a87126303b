"""Regret: theorem bounds, the observable bound, and the paper's notes about them."""

import math

import numpy as np
import pytest
from tests.learning.learning_models import (
    assert_below_the_theorems,
    coins,
    expected_regret,
    policy_value,
    record_plans,
)

import fsmdp
from fsmdp import ModelError, domains
from fsmdp.bounds.bellman import state_means
from fsmdp.domains.exogenous import ExogenousBlock
from fsmdp.domains.influence import Influence
from fsmdp.learning.cells.confidence import CONFIDENCE


def ramp(width):
    """A function of binary variables that runs from 0 to 1."""
    return np.linspace(0, 1, 2**width).reshape((2,) * width)


def symmetric_structure(n=6, zeta=2, functions=None, sigma=1.0):
    """Everything alike: binary variables, zeta parents whatever the action, noisy rewards."""
    variables = [fsmdp.Variable(f"x{i}", 2) for i in range(n)]

    def parents(i):
        return [f"x{(i + step) % n}" for step in range(zeta)]

    scopes = [parents(i) for i in range(n)] if functions is None else functions
    return fsmdp.Structure.from_parents(
        variables,
        ["left", "right"],
        parents={f"x{i}": [fsmdp.Case(fsmdp.ANY, parents=parents(i))] for i in range(n)},
        rewards=[
            fsmdp.Reward(f"r{i}", [fsmdp.Case(fsmdp.ANY, parents=parents(i))], 0, 1, sigma)
            for i in range(len(scopes) - 1)
        ],
        basis=fsmdp.Basis([fsmdp.Table(scope, ramp(len(scope))) for scope in scopes]),
        horizon=5,
    )


@pytest.mark.parametrize("episodes", [1, 10, 1000, 10**6])
@pytest.mark.parametrize("zeta", [2, 3, 4])
@pytest.mark.parametrize("w_norm", [1.0, 50.0])
def test_the_symmetric_bound_dominates_the_general_one_where_it_applies(episodes, zeta, w_norm):
    structure = symmetric_structure(zeta=zeta, functions=[[f"x{i}"] for i in range(6)])
    options = {"episodes": episodes, "delta": 0.1, "w_norm": w_norm, "h_max": 1.0}
    symmetric = fsmdp.symmetric_regret_bound(structure, **options)
    assert symmetric.unmet == ()
    assert symmetric.total >= fsmdp.regret_bound(structure, **options).total


def test_assumptions_that_are_not_met_are_listed():
    structure = symmetric_structure(sigma=2.0)
    found = fsmdp.symmetric_regret_bound(structure, episodes=10, w_norm=0.1, h_max=1.0)
    assert "sigma <= 1" in found.unmet
    assert "W G >= 1" in found.unmet
    assert "NOT MET" in repr(found)


def test_the_general_bound_is_the_sum_of_the_theorem_s_terms():
    structure = symmetric_structure()  # J = 4 cells; each function has 3 parents
    k, delta, w, g = 100, 0.05, 7.0, 2.0
    t, tau, n = 5 * k, 5, structure.cells
    found = fsmdp.regret_bound(structure, episodes=k, delta=delta, w_norm=w, h_max=g)
    assert n == 6 * 8
    assert found.planning == pytest.approx(2 * math.sqrt(k))
    assert found.martingale == pytest.approx(w * g * math.sqrt(2 * t * math.log(2 / delta)))
    logs = math.log(4 * 5 * 4 * t**2 / delta)
    assert found.rewards == pytest.approx(5 * (5 * tau * 4 + 8 * math.sqrt(4 * t * logs)))
    d = 4 * math.log(2) - math.log(delta / (2 * n * 3 * t**2))
    assert found.transitions == pytest.approx(
        w * g * 6 * (5 * tau * 4 + 4 * math.sqrt(4 * 8 * t * d))
    )
    assert found.total == pytest.approx(
        found.planning + found.martingale + found.rewards + found.transitions
    )


def test_the_hoeffding_bound_does_not_grow_with_the_values_of_a_scope():
    ratios = []
    for width in (1, 2, 3, 4):
        scopes = [[f"x{(i + j) % 6}" for j in range(width)] for i in range(6)]
        structure = symmetric_structure(functions=scopes, zeta=1)
        options = {"episodes": 10**8, "w_norm": 10.0, "h_max": 1.0}
        general = fsmdp.regret_bound(structure, **options).transitions
        hoeffding = fsmdp.hoeffding_regret_bound(structure, **options).transitions
        ratios.append(general / hoeffding)
    assert (np.diff(ratios) > 0).all()
    assert ratios[0] > 1


def test_osband_and_van_roy_s_radius_is_the_looser_one():
    # exp(S log delta') <= delta' for delta' < 1: theirs asks for more than delta' needs.
    for values in (1, 2, 3, 10):
        for chance in (0.5, 0.05, 1e-6):
            theirs = 2 * values * math.log(2 / chance)
            ours = 2 * values * math.log(2) - 2 * math.log(chance)
            assert math.exp(values * math.log(chance)) <= chance * (1 + 1e-12)
            assert ours <= theirs * (1 + 1e-12)
            assert (ours == pytest.approx(theirs)) == (values == 1)


VARIANTS = {"practical": {}, "paper": {"preset": "paper"}} | {
    f"{confidence}, {method}": {"confidence": confidence, "method": method}
    for confidence in CONFIDENCE
    for method in ("stagewise", "joint")
}


@pytest.mark.parametrize("options", VARIANTS.values(), ids=VARIANTS)
@pytest.mark.parametrize("model", [coins(sigma=0.2), domains.sysadmin(4, horizon=5)], ids=str)
def test_measured_regret_is_below_the_theorems_and_the_observable_bound(model, options):
    exact = fsmdp.solve_exactly(model)
    learner = fsmdp.UCRLFactored(model.structure(fsmdp.Basis.singles(model)), **options)
    # The bounds themselves are checked wherever regret is measured: see expected_regret.
    _, losses = expected_regret(model, exact, learner, episodes=60, seed=3)
    assert (losses >= -1e-9).all()
    assert losses.sum() > 0, "a run without regret shows nothing"


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("model", [coins(sigma=0.2), domains.sysadmin(4, horizon=5)], ids=str)
def test_measured_regret_is_below_the_theorem_of_the_product_form(model, known):
    exact, episodes = fsmdp.solve_exactly(model), 60
    structure = model.structure(fsmdp.Basis.singles(model))
    rewards = model.rewards if known else None
    learner = fsmdp.UCRLFactored(structure, "product", planner="solver", known_rewards=rewards)
    plans = record_plans(learner)
    history = fsmdp.learn(model, learner, episodes=episodes, seed=3)
    values = [policy_value(exact, planned) for planned in plans]
    losses = exact.start_value - np.array(values)[np.cumsum(history.replans) - 1]
    assert (losses >= -1e-9).all()
    assert losses.sum() > 0, "a run without regret shows nothing"
    assert (np.cumsum(losses) <= history.observable_regret_bound(0.05)).all()
    for k in (1, 10, episodes):
        bound = fsmdp.product_regret_bound(structure, episodes=k)
        assert losses[:k].sum() <= bound.total
        assert bound.slack == bound.planning == 0


def test_the_widths_that_the_product_theorem_adds_up_bound_the_hope_of_one_step():
    # Step 2 of its proof: values hope for no more than B |Val| sqrt(d / n) / 2 of each group.
    model = domains.sysadmin(4, horizon=2)
    structure = model.structure(fsmdp.Basis.singles(model))
    learner = fsmdp.UCRLFactored(
        structure, "product", planner="solver", replan=1.0, known_rewards=model.rewards
    )
    fsmdp.learn(model, learner, episodes=4000, seed=0)
    n = learner.statistics.transition_visits[learner.is_learnt()]
    k, m, cells = learner.episode, 4, learner.cells
    x = np.bincount(cells.function)[cells.function][learner.is_learnt()]
    widths = np.sqrt(4 * 2 * np.log(4 * m * x * k / 0.05) / np.maximum(n, 1))
    widest = np.minimum(1.0, np.where(n == 0, 1.0, widths)).reshape(-1)
    by_group = [widest[cells.function[learner.is_learnt()] == j].max() for j in range(1, 5)]
    exact = fsmdp.solve_exactly(model)
    hope = learner.replan().acting.start_values - exact.values[0]
    assert (hope >= -1e-9).all()
    assert hope.max() <= sum(by_group) + 1e-9  # V_2 has a range of 1
    assert hope.max() > 0


def test_the_product_theorem_is_the_sum_of_its_terms():
    model = domains.sysadmin(4, horizon=5)
    structure = model.structure(fsmdp.Basis.singles(model))
    k, delta, g = 100, 0.05, 0.5
    t, reach, x = 5 * k, 5 * 1.0, 5  # two parents of two values, and rebooted
    found = fsmdp.product_regret_bound(structure, episodes=k, delta=delta, growth=g)
    assert found.martingale == pytest.approx(reach * math.sqrt(t * math.log(1 / delta) / 2))
    d = 4 * 2 * math.log(8 * 4 * x * k / delta)
    late = 2 * math.sqrt(2 * (1 + g) * d * x * t)
    assert found.transitions == pytest.approx(reach * 4 * ((2 + g) * 5 * x + late))
    assert found.rewards == pytest.approx(4 * (2 + g) * 5 * 0.25 * 2)
    assert found.probability == pytest.approx(0.85)
    with pytest.raises(ModelError, match="states none"):
        fsmdp.product_regret_bound(symmetric_structure(), episodes=1)


def test_the_check_against_the_theorems_can_fail():
    model = domains.sysadmin(2, horizon=3)
    learner = fsmdp.UCRLFactored(model.structure(fsmdp.Basis.singles(model)))
    history = fsmdp.learn(model, learner, episodes=5)
    with pytest.raises(AssertionError):
        assert_below_the_theorems(learner, history, np.full(5, 1e6))


def test_a_linear_program_is_not_tight_along_the_trajectory():
    model = domains.sysadmin(4, horizon=5)
    learner = fsmdp.UCRLFactored(
        model.structure(fsmdp.Basis.singles(model)), known_rewards=model.rewards
    )
    history = fsmdp.learn(model, learner, episodes=200)
    assert history.slacks[-50:].mean() > 0.001


def test_the_program_as_printed_goes_on_losing_where_stagewise_planning_stops():
    block = ExogenousBlock(6)
    model = block.model()
    structure = model.structure(block.basis(model))
    best = fsmdp.solve_exactly(model).start_value
    late = {}
    for method in ("joint", "stagewise"):
        learner = fsmdp.UCRLFactored(structure, method=method, empirical_weight=0)
        history = fsmdp.learn(model, learner, episodes=5000)
        late[method] = best - history.returns[-1500:].mean(), history.slacks[-1500:].mean()
    error = 3 * history.returns[-1500:].std() / math.sqrt(1500)
    assert late["joint"][0] - error > 0.8
    assert late["joint"][1] > 1
    assert late["stagewise"][0] + error < 0.5
    assert late["stagewise"][1] < 1e-6


def test_history_keeps_one_row_per_episode():
    model = coins(sigma=0.1)
    learner = fsmdp.UCRLFactored(model.structure(fsmdp.Basis.singles(model)))
    history = fsmdp.learn(model, learner, episodes=12)
    frame = history.frame()
    assert frame.height == len(history) == 12
    assert {"episode", "returns", "optimistic_values", "slacks", "widths", "replans"} <= set(
        frame.columns
    )
    assert (history.seconds_acting > 0).all()
    assert ((history.seconds_planning > 0) == history.replans).all()
    np.testing.assert_allclose(history.regret(2.0), np.cumsum(2.0 - history.returns))
    with pytest.raises(ValueError, match="read-only"):
        history.returns[0] = 0.0
    with pytest.raises(ModelError, match="delta: expected a probability"):
        history.observable_regret_bound(delta=1.0)
    assert "12 episodes" in repr(history)


def test_the_allowance_covers_the_noise_of_returns():
    model = coins(sigma=0.5)
    runs = np.array([fsmdp.rollout(model, "toss", 50, seed=s).returns for s in range(200)])
    exact = fsmdp.evaluate_exactly(model, "toss")
    mean = fsmdp.solve_exactly(model).flat.initial() @ exact
    learner = fsmdp.PSRLFactored(model.structure(fsmdp.Basis.singles(model)))
    allowance = fsmdp.learn(model, learner, episodes=50).martingale_allowance(0.05)
    strays = (np.abs(np.cumsum(runs - mean, axis=1)) > allowance).any(axis=1)
    assert strays.mean() <= 0.05


def test_bounds_refuse_what_makes_no_sense():
    model = domains.sysadmin(2, horizon=2)
    structure = model.structure(fsmdp.Basis.singles(model))
    with pytest.raises(ModelError, match="episodes: expected a whole number"):
        fsmdp.regret_bound(structure, episodes=0)
    with pytest.raises(ModelError, match="delta: expected a probability"):
        fsmdp.regret_bound(structure, episodes=1, delta=2)
    endless = domains.sysadmin(2, horizon=None, discount=0.9)
    with pytest.raises(ModelError, match="finite horizon"):
        fsmdp.regret_bound(endless.structure(fsmdp.Basis.singles(endless)), episodes=1)
    assert "probability 0.85" in repr(fsmdp.regret_bound(structure, episodes=9))


RING_TARGETS = {
    "practical": (18, lambda s, r, i: fsmdp.UCRLFactored(s, seed=i, known_rewards=r)),
    "weissman": (
        100,
        lambda s, r, i: fsmdp.UCRLFactored(s, seed=i, confidence="weissman", known_rewards=r),
    ),
    "posterior sampling": (30, lambda s, r, i: fsmdp.PSRLFactored(s, i, known_rewards=r)),
    "posterior sampling, solver": (
        12,
        lambda s, r, i: fsmdp.PSRLFactored(s, i, planner="solver", known_rewards=r),
    ),
}


def ring_regret(name, seeds, episodes):
    target, make = RING_TARGETS[name]
    model = domains.sysadmin(8, topology="ring", horizon=10)
    exact = fsmdp.solve_exactly(model)
    assert exact.start_value == pytest.approx(9.019, abs=1e-3)
    structure = model.structure(fsmdp.Basis.pairs(model))
    found = [
        expected_regret(model, exact, make(structure, model.rewards, seed), episodes, seed)[1].sum()
        for seed in range(seeds)
    ]
    return np.mean(found), target


@pytest.mark.parametrize("name", ["practical", "weissman"])
def test_regret_on_a_ring_of_8_is_on_course(name):
    regret, target = ring_regret(name, seeds=3, episodes=200)
    assert regret <= target / 2


@pytest.mark.slow
@pytest.mark.parametrize("name", RING_TARGETS)
def test_regret_on_a_ring_of_8_meets_its_target(name):
    regret, target = ring_regret(name, seeds=10, episodes=1000)
    assert regret <= target


REALIZABLE = {
    "influence": lambda m: Influence(nodes=m),
    "exogenous block": lambda m: ExogenousBlock(factors=m),
}


@pytest.mark.slow
@pytest.mark.parametrize("size", [8, 100])
@pytest.mark.parametrize("name", REALIZABLE)
def test_regret_vanishes_where_the_value_function_is_linear(name, size):
    domain = REALIZABLE[name](size)
    model = domain.model()
    basis = domain.basis(model)
    best = state_means("initial", basis.bind(model.variables), model) @ domain.optimal_weights()[0]
    learner = fsmdp.UCRLFactored(model.structure(basis), known_rewards=model.rewards)
    fsmdp.learn(model, learner, episodes=20_000, seed=0)
    late = fsmdp.learn(model, learner, episodes=60_000, seed=1).returns
    assert late.mean() >= 0.98 * best
