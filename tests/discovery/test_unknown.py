"""A learner that is not told who depends on whom, against one that is."""

from dataclasses import replace

import numpy as np
import pytest
from tests.learning.learning_models import (
    assert_same_history,
    policy_value,
    record_plans,
)

import fsmdp
from fsmdp.errors import ModelError
from fsmdp.model.cases import Cases
from fsmdp.policies.arrays import BY_CHANCE


def told_nothing(model):
    """A structure whose parents are all wrong: there are none."""
    structure = model.structure(fsmdp.Basis.pairs(model))
    return structure.with_parents([Cases(((),))] * len(model.variables))


def expected_regret(model, learner, episodes, seed):
    exact, plans = fsmdp.solve_exactly(model), record_plans(learner)
    history = fsmdp.learn(model, learner, episodes, seed=seed)
    values = np.array([policy_value(exact, planned) for planned in plans])
    return float((exact.start_value - values[np.cumsum(history.replans) - 1]).sum())


def test_it_ends_with_the_structure_that_it_was_not_told():
    model = fsmdp.domains.sysadmin(4, horizon=10)
    learner = fsmdp.UCRLDiscovering(told_nothing(model), known_rewards=model.rewards, seed=1)
    before = learner.found.parents
    history = fsmdp.learn(model, learner, episodes=400, seed=1)
    truth = model.structure(fsmdp.Basis.pairs(model))
    assert not any(scope for cases in before for scope in cases)
    for found, true in zip(learner.found.parents, truth.parents, strict=True):
        for action in range(len(model.actions)):
            assert found.at(action) == true.at(action)
    assert history.heuristic
    assert not history.optimistic
    assert np.isfinite(history.optimistic_values).all()
    assert np.isnan(history.slacks).all()
    assert history.returns[-100:].mean() > history.returns[:20].mean()


def test_what_it_counts_in_the_end_is_what_one_who_was_told_counts():
    model = fsmdp.domains.sysadmin(3, horizon=5)
    learner = fsmdp.UCRLDiscovering(told_nothing(model), seed=0)
    fsmdp.learn(model, learner, episodes=50, seed=0)
    data = learner.transitions()
    assert len(data) == 250
    assert (data.inputs[1:5] == data.outcomes[:4]).all()
    inner = []
    real = fsmdp.UCRLFactored.replan

    def spy(self):
        inner.append(self)
        return real(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fsmdp.UCRLFactored, "replan", spy)
        learner.replan()
    (one,) = inner
    assert one.statistics.episodes == 50
    one.statistics.check_counts(one.cells, 50)
    total = one.statistics.reward_sums.sum()
    assert total == pytest.approx(learner.seen.terms.sum())
    assert total > 0


@pytest.mark.parametrize("use_env", [False, True], ids=["model", "environment"])
def test_a_run_that_was_cut_off_resumes_bit_for_bit(use_env, tmp_path):
    model = fsmdp.domains.sysadmin(3, horizon=5)

    def world():
        return fsmdp.make_env(model) if use_env else model

    def learner():
        return fsmdp.UCRLDiscovering(told_nothing(model), known_rewards=model.rewards, seed=2)

    whole = fsmdp.learn(world(), learner(), episodes=40, seed=4)
    options = {"seed": 4, "checkpoint": tmp_path / "run.npz", "checkpoint_every": 10}
    fsmdp.learn(world(), learner(), episodes=20, **options)
    assert_same_history(whole, fsmdp.learn(world(), learner(), episodes=40, **options))


def test_states_that_are_none_are_refused():
    model = fsmdp.domains.sysadmin(3, horizon=5)
    learner = fsmdp.UCRLDiscovering(told_nothing(model))
    fsmdp.learn(model, learner, episodes=5)
    state = learner.state()
    for name, wrong in (
        ("seen states", state["seen states"] + 2),
        ("seen actions", state["seen actions"] - 9),
        ("seen terms", state["seen terms"][:, 1:]),
        ("seen steps", state["seen steps"] * 2),
        ("searched", np.array(10**6)),
    ):
        with pytest.raises(ValueError, match=r"transition|step"):
            fsmdp.UCRLDiscovering(told_nothing(model)).restore(state | {name: wrong})


def test_what_is_remembered_gives_back_the_episodes_that_were_recorded():
    model = fsmdp.domains.sysadmin(3, horizon=5, administrators=2)
    structure = model.structure(fsmdp.Basis.singles(model))
    learner = fsmdp.UCRLDiscovering(structure)
    played = fsmdp.record(model, "random", 7, seed=1)
    lengths = [5, 3, 1, 5, 2, 5, 4]  # episodes may end early
    for episode, length in enumerate(lengths):
        learner.remember(type(played)(*(part[episode : episode + 1] for part in played)), length)
    found, steps = learner.seen.episodes(5)
    assert steps.tolist() == lengths
    for episode, length in enumerate(lengths):
        before, after = played.states[episode, :length], played.states[episode, length, :3]
        np.testing.assert_array_equal(found.states[episode, :length], before)
        np.testing.assert_array_equal(found.states[episode, length, :3], after)
        rewards = played.rewards[episode, :length]
        np.testing.assert_array_equal(found.rewards[episode, :length], rewards)


def test_action_variables_and_ends_of_episodes_are_learnt_too():
    joint = fsmdp.domains.sysadmin(3, horizon=5, administrators=2)
    learner = fsmdp.UCRLDiscovering(
        replace(joint.structure(fsmdp.Basis.singles(joint))), known_rewards=joint.rewards
    )
    fsmdp.learn(joint, learner, episodes=300, seed=0)
    named = [variable.name for variable in joint.structure(fsmdp.Basis.singles(joint)).inputs]
    first = {named[p] for scope in learner.found.parents[1] for p in scope}
    assert {"machine-0", "reboot-0"} <= first
    with pytest.raises(ModelError, match="max_parents"):
        fsmdp.UCRLDiscovering(told_nothing(joint), max_parents=0)


@pytest.mark.slow
def test_regret_is_within_twice_that_of_the_one_who_was_told():
    model = fsmdp.domains.sysadmin(8, horizon=10)
    structure = model.structure(fsmdp.Basis.pairs(model))
    regrets = {fsmdp.UCRLDiscovering: [], fsmdp.UCRLFactored: []}
    for seed in range(3):
        for make, found in regrets.items():
            learner = make(structure, known_rewards=model.rewards, seed=seed)
            found.append(expected_regret(model, learner, 2000, seed))
    unknown, told = map(np.mean, regrets.values())
    assert unknown < 2 * told


def test_actions_are_taken_at_random_until_all_were_tried_a_few_times():
    model = fsmdp.domains.sysadmin(4, horizon=10)
    learner = fsmdp.UCRLDiscovering(told_nothing(model), known_rewards=model.rewards)
    plans = record_plans(learner)
    history = fsmdp.learn(model, learner, episodes=30, seed=0)
    at_random = [planned.acting.policy.kind == BY_CHANCE for planned in plans]
    steps = 10 * np.flatnonzero(history.replans)  # seen when each plan was made
    assert at_random == (steps <= 2 * len(model.actions) * np.log1p(steps)).tolist()
    assert at_random[:3] == [True, True, True]
    assert not at_random[-1]
