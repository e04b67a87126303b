"""Independence that is stated: products from parts, models drawn whole, and a test of it."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom
from tests.learning.learning_models import coins, contains, shop, true_means

import fsmdp
from fsmdp.errors import ModelError
from fsmdp.learning.cells.products import products_of
from fsmdp.learning.sampled import model_of


def singles_alone(structure):
    """The claim that every variable is drawn by itself, true or not."""
    return fsmdp.Structure.from_parents(
        structure.variables,
        structure.actions,
        parents={
            variable.name: [
                fsmdp.Case([action], [structure.variables[p].name for p in scopes.at(a)])
                for a, action in enumerate(structure.actions)
            ]
            for variable, scopes in zip(
                structure.variables,
                [
                    structure.parents[structure.basis.scopes.index((p,))]
                    for p in range(len(structure.variables))
                ],
                strict=True,
            )
        },
        rewards=[],
        basis=structure.basis,
        horizon=structure.horizon,
        independent=True,
    )


def test_a_model_tells_what_is_drawn_together():
    ring = fsmdp.domains.sysadmin(4)
    assert ring.structure(fsmdp.Basis.singles(ring)).independent == ((0,), (1,), (2,), (3,))
    correlated = coins()
    assert correlated.structure(fsmdp.Basis.singles(correlated)).independent == ((0, 1),)
    influence = fsmdp.domains.influence(4)
    assert len(influence.structure(fsmdp.Basis.singles(influence)).independent) == 1


def test_a_structure_by_hand_states_nothing_unless_told():
    variables = [fsmdp.Variable(name, 2) for name in "abc"]
    told = {
        "parents": {v.name: [fsmdp.Case(fsmdp.ANY, [v.name])] for v in variables},
        "rewards": [],
        "basis": fsmdp.Basis.singles(variables),
        "horizon": 2,
    }

    def structure(**more):
        return fsmdp.Structure.from_parents(variables, ["wait"], **told, **more)

    assert structure().independent == ()
    assert structure(independent=True).independent == ((0,), (1,), (2,))
    assert structure(independent=["b"]).independent == ((1,), (0, 2))
    mixed = structure(independent=[["c", "a"], "b"])
    assert mixed.independent == ((0, 2), (1,))
    assert mixed.group_parents[0].groups == ((0, 2),)
    with pytest.raises(ModelError, match="independent"):
        structure(independent=["b", ["a", "b"]])
    with pytest.raises(ModelError, match="independent"):
        structure(independent=3)
    with pytest.raises(ModelError, match="states none"):
        fsmdp.PSRLFactored(structure(), planner="solver")
    with pytest.raises(ModelError, match="planner"):
        fsmdp.PSRLFactored(structure(independent=True), planner="oracle")


@pytest.mark.parametrize("kind", ["pairs", "blocks", "generic"])
def test_products_of_true_parts_are_the_true_means(kind):
    model = shop()
    basis = {
        "pairs": lambda: fsmdp.Basis.pairs(model),
        "blocks": lambda: fsmdp.Basis.blocks(model, [[0, 1, 2]]),
        "generic": lambda: fsmdp.Basis(
            [fsmdp.Table(["tea", "salt"], np.random.default_rng(0).normal(size=(4, 4)))]
        ),
    }[kind]()
    structure = model.structure(basis)
    found = products_of(structure)
    assert found is not None
    learner = fsmdp.UCRLFactored(structure)
    counted_means, _ = true_means(model, found.counted)
    low, high = found.ends(counted_means, counted_means, learner.first_cell)
    np.testing.assert_allclose(low, counted_means, atol=1e-12)
    np.testing.assert_allclose(high, counted_means, atol=1e-12)


def test_products_of_intervals_hold_every_product_of_distributions_inside():
    model, rng = shop(), np.random.default_rng(1)
    table = fsmdp.Table(["tea", "salt"], rng.normal(size=(4, 4)))
    structure = model.structure(fsmdp.Basis([*fsmdp.Basis.singles(model).tables[1:], table]))
    learner = fsmdp.UCRLFactored(structure)
    fsmdp.learn(model, learner, episodes=30, seed=0)
    bounds, n = learner.bounds(), len(structure.basis)
    first, cells = learner.first_cell, learner.cells
    rows = slice(first[n - 1], None)
    assert (cells.function[rows] == n - 1).all()
    parts = [[first[j] for j, s in enumerate(structure.basis.scopes) if s == (p,)] for p in (1, 2)]
    own = next(one for one in learner.products.products if one.function == n - 1)
    reached = np.full((2, own.box_at.shape[1]), [[np.inf], [-np.inf]])
    for cell in range(own.box_at.shape[1]):
        for _ in range(200):
            draws = []
            for number, firsts in enumerate(parts):
                factor = learner.products.factors[number]
                at = (own.box_at[number, cell] - factor.first_box) // factor.n_values
                lows = np.array([bounds.low[f + at] for f in firsts])
                highs = np.array([bounds.high[f + at] for f in firsts])
                share = lows + rng.random(3) * (highs - lows)
                while share.sum() > 1:
                    share = lows + (share - lows) * rng.random()
                draws.append(np.array([1 - share.sum(), *share]))
            mean = draws[0] @ table.values @ draws[1]
            reached[0, cell] = min(reached[0, cell], mean)
            reached[1, cell] = max(reached[1, cell], mean)
    assert (bounds.low[rows] <= reached[0] + 1e-9).all()
    assert (bounds.high[rows] >= reached[1] - 1e-9).all()


def test_the_interval_of_a_product_of_indicators_is_the_product_of_intervals():
    model = fsmdp.domains.sysadmin(4)
    learner = fsmdp.UCRLFactored(model.structure(fsmdp.Basis.pairs(model)))
    fsmdp.learn(model, learner, episodes=50, seed=0)
    bounds, found = learner.bounds(), learner.products
    assert len(found.counted.basis) == len(learner.structure.basis)  # singles are there already
    for one in found.products:
        cells = [(one.box_at[k] - found.factors[0].first_box) for k in range(2)]
        factors = {f.first_box: f for f in found.factors}
        for cell in range(one.box_at.shape[1]):
            low = high = 1.0
            for k in range(2):
                begin = max(b for b in factors if b <= one.box_at[k, cell])
                factor = factors[begin]
                row = learner.first_cell[factor.functions[0]] + (one.box_at[k, cell] - begin) // 2
                low, high = low * bounds.low[row], high * bounds.high[row]
            at = learner.first_cell[one.function] + cell
            assert bounds.low[at] == pytest.approx(low)
            assert bounds.high[at] == pytest.approx(high)
        assert len(cells) == 2


# So many trials that radii of a third would be refuted.
@pytest.mark.parametrize(
    ("sets", "trials"),
    [
        *(("chernoff", 20), ("bernstein", 20), ("weissman", 60)),
        *(pytest.param(name, 60, marks=pytest.mark.slow) for name in ("chernoff", "bernstein")),
    ],
)
def test_product_sets_miss_the_truth_no_more_often_than_promised(sets, trials):
    model, delta = fsmdp.domains.sysadmin(3, horizon=5), 0.2
    structure = model.structure(fsmdp.Basis.pairs(model))
    means, rewards = true_means(model, structure)
    missed = 0
    for seed in range(trials):
        learner = fsmdp.UCRLFactored(structure, delta=delta, seed=seed, confidence=sets)
        assert learner.products is not None
        for episodes in (1, 2, 5, 20):
            fsmdp.learn(model, learner, episodes=episodes, seed=100 * seed + episodes)
            if not contains(learner.bounds(), means, rewards):
                missed += 1
                break
    assert missed <= binom.ppf(0.999, trials, delta)


def test_correlated_models_keep_their_cells():
    model = coins()
    structure = model.structure(fsmdp.Basis.pairs(model))
    assert products_of(structure) is None
    assert fsmdp.UCRLFactored(structure).products is None


def test_the_paper_counts_functions_as_they_are():
    model = fsmdp.domains.sysadmin(4)
    structure = model.structure(fsmdp.Basis.pairs(model))
    assert fsmdp.UCRLFactored(structure, preset="paper").products is None
    assert fsmdp.UCRLFactored(structure, independent=False).products is None
    told = fsmdp.UCRLFactored(structure)
    assert "products of independent parts" in told.describe()
    assert told.cells.n_learnt < fsmdp.UCRLFactored(structure, independent=False).cells.n_learnt


@pytest.mark.parametrize("administrators", [None, 2])
def test_much_counting_draws_the_true_model(administrators):
    options = {} if administrators is None else {"administrators": administrators}
    model = fsmdp.domains.sysadmin(3, horizon=4, **options)
    structure = model.structure(fsmdp.Basis.singles(model))
    learner = fsmdp.PSRLFactored(structure, planner="solver", known_rewards=model.rewards, seed=3)
    fsmdp.learn(model, fsmdp.RandomLearner(structure), episodes=1, seed=0)
    fsmdp.learn(model, learner, episodes=3000, seed=0)
    shares = learner.sets.shares(learner.sample_outcomes())
    drawn = model_of(
        structure, learner.groups, learner.cells, shares, learner.known_means, learner.statistics
    )
    best = fsmdp.solve_exactly(model).start_value
    assert fsmdp.solve_exactly(drawn).start_value == pytest.approx(best, abs=0.15)
    assert drawn.initial_distributions()[0].argmax() == 1  # all machines begin up


def test_the_solver_inside_posterior_sampling_ends_near_the_optimum():
    model = fsmdp.domains.sysadmin(6, horizon=8)
    structure = model.structure(fsmdp.Basis.singles(model))
    learner = fsmdp.PSRLFactored(structure, planner="solver", known_rewards=model.rewards)
    history = fsmdp.learn(model, learner, episodes=400, seed=0)
    best = fsmdp.solve_exactly(model).start_value
    assert history.returns[-200:].mean() > 0.97 * best
    assert history.replans.sum() < 40
    assert np.isnan(history.optimistic_values).all()
    assert not history.optimistic
    again = fsmdp.PSRLFactored(structure, planner="solver", known_rewards=model.rewards)
    same = fsmdp.learn(model, again, episodes=400, seed=0)
    np.testing.assert_array_equal(history.returns, same.returns)


def test_a_large_draw_is_fitted_and_the_program_is_a_candidate(monkeypatch):
    monkeypatch.setattr("fsmdp.learning.sampled.EXACTLY", -1.0)
    model = fsmdp.domains.sysadmin(5, horizon=6)
    structure = model.structure(fsmdp.Basis.singles(model))
    learner = fsmdp.PSRLFactored(structure, planner="solver", known_rewards=model.rewards)
    history = fsmdp.learn(model, learner, episodes=300, seed=0)
    assert history.returns[-150:].mean() > 0.95 * fsmdp.solve_exactly(model).start_value


def test_checkpoints_of_the_solver_go_on_as_if_never_stopped(tmp_path):
    model = fsmdp.domains.sysadmin(4, horizon=5)
    structure = model.structure(fsmdp.Basis.pairs(model))

    def run(episodes, path):
        learner = fsmdp.PSRLFactored(structure, planner="solver", known_rewards=model.rewards)
        return fsmdp.learn(model, learner, episodes, checkpoint=path, checkpoint_every=7)

    run(20, tmp_path / "one.npz")
    longer, whole = run(40, tmp_path / "one.npz"), run(40, tmp_path / "two.npz")
    np.testing.assert_array_equal(longer.returns, whole.returns)


def test_a_wrong_claim_is_detected_on_the_maintenance_domain():
    model = fsmdp.domains.maintenance()
    basis = fsmdp.Basis.pairs(model)
    structure = model.structure(basis)
    assert len(structure.independent) < len(model.variables)
    claimed = singles_alone(model.structure(fsmdp.Basis.singles(model)))
    runs = transitions(model, 3000, 0)
    check = fsmdp.check_independence(runs, claimed)
    assert not check
    assert check.refuted[0].log_evidence >= check.needed
    together = {g: set(group) for g, group in enumerate(structure.independent)}
    names = [variable.name for variable in model.variables]
    for one in check.refuted:
        positions = {names.index(name) for name in one.variables}
        assert any(positions <= group for group in together.values())


def test_the_claim_is_checked_on_a_history():
    model = coins()
    true = model.structure(fsmdp.Basis.pairs(model))
    told = replace(true, independent=((0,), (1,)), group_parents=(true.parents[1], true.parents[2]))
    learner = fsmdp.PSRLFactored(told)
    history = fsmdp.learn(model, learner, episodes=1000, seed=0)
    found = fsmdp.check_independence(history)
    assert found.refuted
    assert "REFUTED for left, right" in repr(found)
    assert fsmdp.check_independence(learner, delta=0.01).refuted
    with pytest.raises(ModelError, match="states no groups"):
        fsmdp.check_independence(fsmdp.learn(model, fsmdp.PSRLFactored(true), episodes=1))
    with pytest.raises(ModelError, match="expected a history"):
        fsmdp.check_independence(3)
    with pytest.raises(ModelError, match="need a structure"):
        fsmdp.check_independence(([], [], []))


def test_true_independence_is_hardly_ever_refuted():
    model, trials = fsmdp.domains.sysadmin(3, horizon=5), 60
    structure = model.structure(fsmdp.Basis.pairs(model))
    refuted = 0
    for seed in range(trials):
        history = fsmdp.learn(model, fsmdp.RandomLearner(structure), episodes=1, seed=seed)
        data = transitions(model, 60, seed)
        refuted += not fsmdp.check_independence(data, structure, delta=0.2)
        assert history.cells is not None
    assert refuted <= binom.ppf(0.999, trials, 0.2)
    assert "not refuted" in repr(fsmdp.check_independence(data, structure))


@pytest.mark.parametrize(
    "data",
    [
        ([[0, 0, 0]], [0], [[0, 0]]),
        ([[0, 0, 5]], [0], [[0, 0, 0]]),
        ([[0, 0, 0]], [77], [[0, 0, 0]]),
        ([[0.5, 0, 0]], [0], [[0, 0, 0]]),
    ],
)
def test_transitions_that_cannot_be_are_refused(data):
    model = fsmdp.domains.sysadmin(3)
    with pytest.raises(ModelError, match="data"):
        fsmdp.check_independence(data, model.structure(fsmdp.Basis.singles(model)))


def transitions(model, episodes, seed):
    """States, actions and next states of episodes at random."""
    env = fsmdp.make_env(model)
    rng = np.random.default_rng(seed)
    env.reset(seed=seed)
    states, actions, following = [], [], []
    for _ in range(episodes):
        state, _ = env.reset()
        for _ in range(model.horizon):
            action = int(rng.integers(len(model.actions)))
            reached, *_ = env.step(action)
            states.append(state)
            actions.append(action)
            following.append(reached)
            state = reached
    return np.array(states), np.array(actions), np.array(following)


def test_evidence_is_a_quotient_of_chances():
    from fsmdp.discovery.discover import log_evidence

    # Two outcomes: the mixture gives 1/2 * 3/4 to the same pair twice, independence gives 1.
    twice = np.array([[2, 0], [0, 0]])
    assert log_evidence(twice, [[0], [1]]) == pytest.approx(np.log(1 / 4 * 1.5 / 3))
    total = 0.0
    for first, second in product(range(4), repeat=2):
        counts = np.zeros(4, dtype=np.int64)
        for one in (first, second):
            counts[one] += 1
        table = counts.reshape(2, 2)
        largest = 1.0
        for axis in range(2):
            own = table.sum(axis=axis)
            largest *= np.prod(np.where(own > 0, (own / 2.0) ** own, 1.0))
        total += np.exp(log_evidence(table, [[0], [1]])) * largest
    assert total == pytest.approx(1.0)  # the mixture's chances add up
