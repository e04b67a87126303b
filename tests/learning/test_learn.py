"""The loop: models and environments give the same counts, and what does not fit is refused."""

import gymnasium
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
