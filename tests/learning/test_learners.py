"""Learners: optimism, ties, replanning, known rewards, and posterior samples."""

from itertools import pairwise

import numpy as np
import pytest
from tests.learning.learning_models import (
    coins,
    contains,
    planned_values,
    record_plans,
    true_means,
)

import fsmdp
from fsmdp import ModelError, domains
from fsmdp.bounds.bellman import network_of_structure
from fsmdp.bounds.finish import greedy_lookup
from fsmdp.bounds.stagewise import StagewiseProgram
from fsmdp.foundation.disk import write_arrays
from fsmdp.learning.cells.confidence import CONFIDENCE
from fsmdp.learning.cells.layout import cells_of
from fsmdp.learning.cells.statistics import Statistics

VARIANTS = {
    "practical": {},
    "paper": {"preset": "paper"},
    "weissman, doubling": {"confidence": "weissman", "replan": 1.0},
} | {
    f"{confidence}, {method}": {"confidence": confidence, "method": method, "replan": "episode"}
    for confidence in CONFIDENCE
    for method in ("stagewise", "joint")
}


def small_models():
    return {
        "correlated coins, noisy rewards": coins(sigma=0.2),
        "random": domains.random_model(seed=3, variables=3, horizon=3),
        "ring": domains.sysadmin(3, horizon=4),
    }


@pytest.mark.parametrize("options", VARIANTS.values(), ids=VARIANTS)
@pytest.mark.parametrize("name", small_models())
@pytest.mark.parametrize("known", [False, True], ids=["learnt rewards", "known rewards"])
def test_plans_are_optimistic_at_every_state_whenever_the_truth_is_inside(name, options, known):
    model = small_models()[name]
    exact = fsmdp.solve_exactly(model)
    learner = fsmdp.UCRLFactored(
        model.structure(fsmdp.Basis.singles(model)),
        known_rewards=model.rewards if known else None,
        **options,
    )
    truth, sets, plans = true_means(model, learner.structure), [], record_plans(learner)
    recorded = learner.replan

    def replan():
        sets.append(learner.bounds())
        return recorded()

    learner.replan = replan
    history = fsmdp.learn(model, learner, episodes=20, seed=1)
    assert len(plans) == history.replans.sum()
    inside = [contains(bounds, *truth) for bounds in sets]
    assert sum(inside) > 0
    for planned in (p for p, is_inside in zip(plans, inside, strict=True) if is_inside):
        for step in range(1, model.horizon + 1):
            values = planned_values(learner, planned, exact.flat.states, step)
            assert (values >= exact.values[step - 1] - 1e-7).all()


def test_the_certified_lift_is_within_the_accuracy_of_the_paper():
    model = domains.sysadmin(4, horizon=5)
    for preset in ("paper", "practical"):
        learner = fsmdp.UCRLFactored(model.structure(fsmdp.Basis.singles(model)), preset)
        history = fsmdp.learn(model, learner, episodes=20)
        assert (history.lifts <= 1 / np.sqrt(np.arange(1, 21))).all()


def test_slack_and_width_bound_the_expected_regret():
    model = domains.sysadmin(4, horizon=5)
    exact = fsmdp.solve_exactly(model)
    learner = fsmdp.UCRLFactored(
        model.structure(fsmdp.Basis.singles(model)), known_rewards=model.rewards
    )
    history = fsmdp.learn(model, learner, episodes=300)
    assert (history.slacks > -1e-6).all()
    assert (history.widths >= 0).all()
    assert (history.slacks + history.widths).mean() >= history.regret(exact.start_value)[-1] / 300


def test_a_new_plan_is_made_as_soon_as_a_cell_has_grown_by_half():
    model = domains.sysadmin(3, horizon=4)
    learner = fsmdp.UCRLFactored(model.structure(fsmdp.Basis.singles(model)))
    at_plan, replan = [], learner.replan

    def recorded():
        at_plan.append(learner.statistics.visits.copy())
        return replan()

    learner.replan = recorded
    history = fsmdp.learn(model, learner, episodes=200)
    assert 5 < history.replans.sum() < 100
    first = learner.cells.n_reward_cells + 1  # rewards count too, the constant does not
    for before, after in pairwise(at_plan):
        grown = after >= np.maximum(before + 1, 1.5 * before)
        assert grown[: first - 1].any() or grown[first:].any()


def test_replanning_every_episode_plans_every_episode():
    model = domains.sysadmin(3, horizon=3)
    for learner in (
        fsmdp.UCRLFactored(model.structure(fsmdp.Basis.singles(model)), replan="episode"),
        fsmdp.PSRLFactored(model.structure(fsmdp.Basis.singles(model))),
    ):
        assert fsmdp.learn(model, learner, episodes=5).replans.all()


@pytest.mark.parametrize("seed", range(5))
def test_cells_stand_where_the_planner_looks_for_them(seed):
    model = domains.random_model(seed)
    structure = model.structure(fsmdp.Basis.pairs(model))
    network, cells = network_of_structure(structure), cells_of(structure)
    for mine, planners in zip(cells.layout.lookup, greedy_lookup(network), strict=True):
        np.testing.assert_array_equal(mine, planners)
    np.testing.assert_array_equal(cells.function, network.backup_columns)
    assert cells.n_reward_cells == network.n_rewards


def test_the_live_program_restarts_from_the_last_basis():
    model = domains.sysadmin(6, horizon=6)
    learner = fsmdp.UCRLFactored(model.structure(fsmdp.Basis.singles(model)))
    program, warm, cold = learner.planner._program, [], []
    solve = program.solve

    def counted(intervals, **options):
        found = solve(intervals, **options)
        warm.append(sum(found.iterations))
        fresh = StagewiseProgram(program.network, program.means)
        cold.append(sum(fresh.solve(intervals, **options).iterations))
        return found

    program.solve = counted
    fsmdp.learn(model, learner, episodes=150)
    assert sum(warm[1:]) < 0.8 * sum(cold[1:])


def test_ties_are_broken_by_the_seed():
    model = domains.sysadmin(6, horizon=2)
    structure = model.structure(fsmdp.Basis.singles(model))

    def first_action(seed):
        learner = fsmdp.UCRLFactored(structure, seed=seed)
        fsmdp.learn(model, learner, episodes=1)
        return tuple(learner.statistics.visits)

    assert first_action(1) == first_action(1)
    assert len({first_action(seed) for seed in range(8)}) > 2


def test_known_rewards_leave_nothing_to_learn_about_them():
    model = domains.sysadmin(3, horizon=3)
    learner = fsmdp.UCRLFactored(
        model.structure(fsmdp.Basis.singles(model)), known_rewards=model.rewards
    )
    bounds = learner.bounds()
    _, rewards = true_means(model, learner.structure)
    np.testing.assert_array_equal(bounds.reward_low, rewards)
    np.testing.assert_array_equal(bounds.rewards, rewards)
    fsmdp.learn(model, learner, episodes=2)
    assert not learner.statistics.reward_sums.any()


def test_some_rewards_may_be_known_and_others_not():
    model = coins(sigma=0.1)
    learner = fsmdp.UCRLFactored(
        model.structure(fsmdp.Basis.singles(model)), known_rewards=model.rewards[1:]
    )
    assert learner.term_known.tolist() == [False, True]
    bounds = learner.bounds()
    np.testing.assert_array_equal(bounds.rewards, [1.0, 1.0, 0.2, 0.7])
    assert learner.delta_rewards == learner.delta_transitions == 0.025


def test_known_rewards_that_do_not_fit_the_structure_are_refused():
    model = domains.sysadmin(2, horizon=2)
    structure = model.structure(fsmdp.Basis.singles(model))

    def reward(name, cases):
        return [fsmdp.Reward(name, cases)]

    any_case = fsmdp.Case(fsmdp.ANY, parents=["machine-0"], table=[0, 1])
    with pytest.raises(ModelError, match="'gold' is not a term of the structure"):
        fsmdp.UCRLFactored(structure, known_rewards=reward("gold", [any_case]))
    term = structure.rewards[0].name
    other = fsmdp.Case(fsmdp.ANY, parents=["machine-1"], table=[0, 1])
    with pytest.raises(ModelError, match="declare the same parents in both"):
        fsmdp.UCRLFactored(structure, known_rewards=reward(term, [other]))
    by_action = [fsmdp.Case(["wait"], parents=[], table=0.0), any_case]
    with pytest.raises(ModelError, match="split the group in the structure"):
        fsmdp.UCRLFactored(structure, known_rewards=reward(term, by_action))


def test_anything_but_the_scale_of_the_theory_is_marked_heuristic():
    model = domains.sysadmin(3, horizon=3)
    structure = model.structure(fsmdp.Basis.singles(model))
    learner = fsmdp.UCRLFactored(structure, scale=0.1)
    history = fsmdp.learn(model, learner, episodes=2)
    assert learner.heuristic
    assert history.heuristic
    assert "heuristic" in repr(learner)
    assert "HEURISTIC" in repr(history)
    assert history.frame()["heuristic"].all()
    assert not fsmdp.UCRLFactored(structure).heuristic


def test_posterior_samples_close_in_on_the_truth():
    model = coins(sigma=0.2, horizon=20)
    learner = fsmdp.PSRLFactored(model.structure(fsmdp.Basis.pairs(model)), replan=1.0)
    before = np.std([learner.sample_means() for _ in range(50)], axis=0)
    fsmdp.learn(model, learner, episodes=400)
    means, rewards = true_means(model, learner.structure)
    draws = np.array([learner.sample_means() for _ in range(50)])
    often = learner.statistics.transition_visits > 300
    assert often.sum() > 5
    assert np.abs(draws - means)[:, often].max() < 0.2
    assert (np.std(draws, axis=0)[1:] < before[1:])[often[1:]].all()
    assert (draws[:, 0] == 1.0).all()
    seen = learner.statistics.reward_visits > 300
    rewards_drawn = np.array([learner.sample_rewards() for _ in range(50)])
    assert np.abs(rewards_drawn - rewards)[:, seen].max() < 0.1


def test_a_posterior_without_noise_is_the_truth_after_one_visit():
    model = coins(sigma=0.0)
    learner = fsmdp.PSRLFactored(model.structure(fsmdp.Basis.singles(model)))
    unseen = learner.sample_rewards()
    assert ((unseen >= 0) & (unseen <= 1)).all()
    fsmdp.learn(model, learner, episodes=30)
    _, rewards = true_means(model, learner.structure)
    np.testing.assert_allclose(learner.sample_rewards(), rewards)


def test_bad_options_are_refused_with_a_remedy():
    model = domains.sysadmin(2, horizon=2)
    structure = model.structure(fsmdp.Basis.singles(model))
    for message, options in {
        "preset: expected one of paper, practical": {"preset": "fast"},
        "delta: expected a probability": {"delta": 0.0},
        "scale: expected a number above 0": {"scale": 0.0},
        "confidence: expected one of weissman": {"confidence": "normal"},
        "replan: expected 'episode'": {"replan": "never"},
        "method: expected one of stagewise, joint": {"method": "ellipsoid"},
    }.items():
        with pytest.raises(ModelError, match=message):
            fsmdp.UCRLFactored(structure, **options)
    with pytest.raises(ModelError, match="expected a Structure, found FactoredMDP"):
        fsmdp.UCRLFactored(model)
    with pytest.raises(ModelError, match="prior: expected a number above 0"):
        fsmdp.PSRLFactored(structure, prior=0)
    endless = domains.sysadmin(2, horizon=None, discount=0.9)
    with pytest.raises(ModelError, match="give a horizon"):
        fsmdp.UCRLFactored(endless.structure(fsmdp.Basis.singles(endless)))


def test_statistics_of_two_runs_add_up_to_those_of_both(tmp_path):
    model = coins(sigma=0.1)
    structure = model.structure(fsmdp.Basis.pairs(model))
    first, second = fsmdp.PSRLFactored(structure), fsmdp.PSRLFactored(structure)
    fsmdp.learn(model, first, episodes=10, seed=1)
    fsmdp.learn(model, second, episodes=15, seed=2)
    both = first.statistics + second.statistics
    assert both.episodes == 25
    assert both.transition_visits.sum() == 25 * 3 * len(structure.basis)
    assert both.outcomes.sum() == both.transition_visits.sum()
    assert both.reward_visits.sum() == 25 * 3 * 2
    both.save(tmp_path / "counts.npz")
    again = Statistics.load(tmp_path / "counts.npz")
    for name, array in both.arrays().items():
        np.testing.assert_array_equal(again.arrays()[name], array)
    other = fsmdp.PSRLFactored(model.structure(fsmdp.Basis.singles(model)))
    with pytest.raises(ModelError, match="same structure"):
        both + other.statistics
    with pytest.raises(ModelError, match="expected statistics to add, found 3"):
        both + 3


def test_files_that_hold_no_statistics_are_refused(tmp_path):
    model, path = coins(), tmp_path / "counts.npz"
    arrays = fsmdp.PSRLFactored(model.structure(fsmdp.Basis.pairs(model))).statistics.arrays()
    for changed, message in (
        ({"visits": -1 - arrays["visits"]}, "no negative counts"),
        ({"starts": arrays["starts"] + 0.5}, "starts: expected counts"),
        ({"reward_sums": arrays["reward_sums"] * np.nan}, "expected finite numbers"),
        ({"reward_sums": arrays["visits"]}, "reward_sums: expected sums"),
        ({"episodes": arrays["visits"]}, "episodes: expected counts"),
    ):
        write_arrays(path, arrays | changed)
        with pytest.raises(ModelError, match=message):
            Statistics.load(path)
    write_arrays(path, {"visits": arrays["visits"]})
    with pytest.raises(ModelError, match=r"a part is missing or wrong \('outcomes'\)"):
        Statistics.load(path)
    with pytest.raises(ModelError, match="No such file"):
        Statistics.load(tmp_path / "nowhere.npz")
    with pytest.raises(ModelError, match="cannot write"):
        fsmdp.PSRLFactored(model.structure(fsmdp.Basis.pairs(model))).statistics.save(tmp_path)


def test_a_learner_goes_on_from_what_it_knows():
    model = domains.sysadmin(3, horizon=3)
    learner = fsmdp.UCRLFactored(model.structure(fsmdp.Basis.singles(model)))
    fsmdp.learn(model, learner, episodes=10, seed=0)
    fsmdp.learn(model, learner, episodes=5, seed=1)
    assert learner.statistics.episodes == 15
    assert learner.statistics.visits[learner.cells.n_reward_cells] == 45


def test_what_was_learnt_is_a_plan_near_the_optimum_and_leaves_the_learner_as_it_was():
    model = domains.sysadmin(4, horizon=6)
    structure = model.structure(fsmdp.Basis.pairs(model))
    exact = fsmdp.solve_exactly(model)
    for make in (fsmdp.UCRLFactored, fsmdp.PSRLFactored):
        asked, left_alone = make(structure, seed=1), make(structure, seed=1)
        fsmdp.learn(model, asked, episodes=300, seed=2)
        fsmdp.learn(model, left_alone, episodes=300, seed=2)
        plan = asked.plan()
        value = exact.flat.initial() @ fsmdp.evaluate_exactly(model, plan)
        assert value > exact.start_value - 0.1
        after, untouched = (
            fsmdp.learn(model, one, episodes=20, seed=3).returns for one in (asked, left_alone)
        )
        assert np.array_equal(after, untouched)


def test_a_learner_that_has_seen_nothing_has_a_plan_too():
    model = domains.sysadmin(3, horizon=3)
    learner = fsmdp.UCRLFactored(model.structure(fsmdp.Basis.singles(model)))
    assert learner.plan().action([1, 1, 1]) in model.actions


def test_no_value_is_claimed_beyond_all_rewards_at_their_bounds():
    model = domains.sysadmin(5, horizon=6, topology="star")
    learner = fsmdp.UCRLFactored(model.structure(fsmdp.Basis.pairs(model)))
    history = fsmdp.learn(model, learner, episodes=30)
    assert learner.structure.largest_return == pytest.approx(6)
    assert history.optimistic_values.max() <= 6 + 1e-12
    assert history.optimistic_values[0] == pytest.approx(6)


def test_only_optimistic_learners_have_an_observable_bound():
    model = domains.sysadmin(3, horizon=3)
    structure = model.structure(fsmdp.Basis.singles(model))
    for make, optimistic in (
        (fsmdp.UCRLFactored, True),
        (fsmdp.UCBVI, True),
        (fsmdp.PSRLFactored, False),
        (fsmdp.TabularPSRL, False),
    ):
        bound = fsmdp.learn(model, make(structure), episodes=5).observable_regret_bound()
        assert np.isfinite(bound).all() == optimistic
        assert np.isnan(bound).all() != optimistic
