"""The loop: models and environments give the same counts, and what does not fit is refused."""

from dataclasses import replace

import gymnasium
import numpy as np
import pytest
from tests.learning.learning_models import (
    NAMES,
    assert_same_counts,
    assert_same_history,
    coins,
    learners,
)

import fsmdp
from fsmdp import ModelError, domains


@pytest.mark.parametrize("name", NAMES)
def test_the_environment_of_a_model_gives_the_counts_of_the_model(name):
    model = coins(sigma=0.2)
    make = learners(model.structure(fsmdp.Basis.pairs(model)))[name]
    compiled, stepped = make(), make()
    one = fsmdp.learn(model, compiled, episodes=30, seed=5)
    other = fsmdp.learn(fsmdp.make_env(model), stepped, episodes=30, seed=5)
    assert_same_counts(compiled, stepped)
    assert_same_history(one, other, exact=False)


def test_a_structure_written_by_hand_learns_what_the_model_s_own_does():
    model = domains.sysadmin(3, horizon=4)
    by_hand = fsmdp.Structure.from_parents(
        [fsmdp.Variable(f"machine-{i}", 2) for i in range(3)],
        ["wait", "reboot-0", "reboot-1", "reboot-2"],
        parents={
            f"machine-{i}": [
                fsmdp.Case(fsmdp.ANY, parents=[f"machine-{i}", f"machine-{(i - 1) % 3}"]),
                fsmdp.Case([f"reboot-{i}"], parents=[]),
            ]
            for i in range(3)
        },
        rewards=model.rewards,
        basis=fsmdp.Basis([fsmdp.Table([f"machine-{i}"], [0, 1]) for i in range(3)]),
        horizon=4,
    )
    told = fsmdp.UCRLFactored(model.structure(fsmdp.Basis.singles(model)))
    written = fsmdp.UCRLFactored(by_hand)
    env = gymnasium.make("fsmdp/SysAdmin-v0", machines=3, horizon=4)
    fsmdp.learn(model, told, episodes=20, seed=2)
    fsmdp.learn(env, written, episodes=20, seed=2)
    assert_same_counts(told, written)


def test_progress_is_reported():
    model, seen = domains.sysadmin(2, horizon=2), []
    learner = fsmdp.PSRLFactored(model.structure(fsmdp.Basis.singles(model)))
    fsmdp.learn(model, learner, episodes=3, progress=lambda done, of: seen.append((done, of)))
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_a_model_that_does_not_fit_the_structure_is_refused():
    model = domains.sysadmin(3, horizon=3)
    learner = fsmdp.PSRLFactored(model.structure(fsmdp.Basis.singles(model)))
    with pytest.raises(ModelError, match="4 variables, the structure 3"):
        fsmdp.learn(domains.sysadmin(4, horizon=3), learner, episodes=1)
    with pytest.raises(ModelError, match="horizon 5, the structure 3"):
        fsmdp.learn(domains.sysadmin(3, horizon=5), learner, episodes=1)
    with pytest.raises(ModelError, match="expected a FactoredMDP or a Gymnasium environment"):
        fsmdp.learn("sysadmin", learner, episodes=1)
    with pytest.raises(ModelError, match="episodes: expected a whole number"):
        fsmdp.learn(model, learner, episodes=0)
    with pytest.raises(ModelError, match="checkpoint_every: expected a whole number"):
        fsmdp.learn(model, learner, episodes=1, checkpoint_every=0)


def coin(name="x", actions=("toss",), horizon=2, discount=1.0, low=0.0, sigma=0.0, reward="gold"):
    return fsmdp.FactoredMDP(
        [fsmdp.Variable(name, 2)],
        list(actions),
        [fsmdp.Conditional(name, [fsmdp.Case(fsmdp.ANY, [], [0.5, 0.5])])],
        [fsmdp.Reward(reward, [fsmdp.Case(fsmdp.ANY, [], 0.5)], low=low, sigma=sigma)],
        horizon,
        [0],
        discount=discount,
    )


OTHER_MODELS = {
    "variable number 0 is 'y' in the model and 'x' in the structure": {"name": "y"},
    "action number 0 is 'flip' in the model and 'toss'": {"actions": ["flip"]},
    "has 2 actions, the structure 1": {"actions": ["toss", "flip"]},
    "reward term number 0 is 'silver' in the model and 'gold'": {"reward": "silver"},
    "has horizon 3, the structure 2": {"horizon": 3},
    "has discount 0.9, the structure 1": {"discount": 0.9},
    "has bounds .-1, 1. and sigma 0 in the model, .0, 1. and 0": {"low": -1},
    "has bounds .0, 1. and sigma 0.5 in the model": {"sigma": 0.5},
}


@pytest.mark.parametrize("message", OTHER_MODELS)
def test_a_model_that_the_structure_does_not_describe_is_refused(message):
    structure = coin().structure(fsmdp.Basis.singles(coin()))
    fsmdp.learn(coin(), fsmdp.PSRLFactored(structure), episodes=1)
    with pytest.raises(ModelError, match=message):
        fsmdp.learn(coin(**OTHER_MODELS[message]), fsmdp.PSRLFactored(structure), episodes=1)


def test_statistics_of_another_structure_are_refused_before_they_are_counted_in():
    model = domains.sysadmin(3, horizon=3)
    learner, other = (
        fsmdp.PSRLFactored(model.structure(basis(model)))
        for basis in (fsmdp.Basis.pairs, fsmdp.Basis.singles)
    )
    learner.statistics = other.statistics
    with pytest.raises(ModelError, match="statistics of a learner of the same kind and structure"):
        fsmdp.learn(model, learner, episodes=1)


class Mine(fsmdp.PSRLFactored):
    """A learner of a user's own, with something wrong."""

    name = "Mine"
    change = staticmethod(lambda planned: planned)

    def replan(self):
        return self.change(super().replan())


def acting(**changes):
    return lambda planned: replace(planned, acting=planned.acting._replace(**changes))


def policy(**changes):
    return lambda planned: acting(policy=planned.acting.policy._replace(**changes))(planned)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda planned: None, "Mine.replan: expected a Planned with an Acting, found None"),
        (acting(q=np.zeros((3, 1))), r"q holds float64 numbers of shape \(3, 1\), expected"),
        (acting(values=np.zeros((1, 1))), "values holds"),
        (acting(replan_at=np.zeros(3)), "replan_at holds float64"),
        (policy(kind=9), "expected a kind from 0 to 4"),
        (
            policy(kind=1, table=np.full((1, 8, 1), 99, dtype=np.uint8)),
            "expected actions from 0 to 3",
        ),
        (policy(kind=1, strides=np.array([4, 2, 1])), "expected a column for each state"),
        (policy(kind=1, strides=np.array([1])), "expected a stride for each variable"),
        (policy(kind=1, table=np.zeros((1, 8))), "table must be uint8"),
        (policy(entries=np.zeros((3, 2))), "expected tables of 2 numbers in all"),
    ],
)
def test_plans_that_lead_out_of_their_arrays_are_refused(change, message):
    model = domains.sysadmin(3, horizon=3)
    learner = Mine(model.structure(fsmdp.Basis.singles(model)))
    learner.change = change
    with pytest.raises(ModelError, match=message):
        fsmdp.learn(model, learner, episodes=1)


def test_what_is_no_learner_is_refused():
    model = domains.sysadmin(2, horizon=2)
    structure = model.structure(fsmdp.Basis.singles(model))
    with pytest.raises(ModelError, match=r"expected a learner.*which has no structure; make one"):
        fsmdp.learn(model, "ucrl", episodes=1)
    with pytest.raises(ModelError, match=r"expected a learner, .* found "):
        fsmdp.learn(model, fsmdp.UCRLFactored, episodes=1)
    for name in ("cells", "statistics", "term_known"):
        learner = fsmdp.UCRLFactored(structure)
        setattr(learner, name, None)
        with pytest.raises(ModelError, match=r"learn: .*expected"):
            fsmdp.learn(model, learner, episodes=1)


def test_a_tiny_prior_draws_distributions_all_the_same():
    model = domains.sysadmin(2, horizon=2)
    learner = fsmdp.PSRLFactored(model.structure(fsmdp.Basis.singles(model)), prior=1e-300)
    means = np.array([learner.sample_means() for _ in range(50)])
    assert set(means[:, 1:].ravel()) == {0.0, 1.0}
    assert len(fsmdp.learn(model, learner, episodes=3)) == 3
