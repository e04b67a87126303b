"""Checkpoints: a run that was stopped ends as if it had not been, and no other file will do."""

import pytest
from tests.learning.learning_models import (
    NAMES,
    assert_same_counts,
    assert_same_history,
    learners,
)

import fsmdp
from fsmdp import ModelError, domains


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("use_env", [False, True], ids=["model", "environment"])
def test_a_run_that_was_cut_off_resumes_bit_for_bit(name, use_env, tmp_path):
    model = domains.sysadmin(4, horizon=5)
    make = learners(model.structure(fsmdp.Basis.pairs(model)), model.rewards)[name]
    world = fsmdp.make_env(model) if use_env else model
    whole_learner, path = make(), tmp_path / "run.npz"
    whole = fsmdp.learn(world, whole_learner, episodes=23, seed=4)

    class CutOffError(Exception):
        pass

    def cut_off(done, episodes):
        if done >= 13:
            raise CutOffError

    options = {"episodes": 23, "seed": 4, "checkpoint": path, "checkpoint_every": 5}
    with pytest.raises(CutOffError):
        fsmdp.learn(world, make(), **options, progress=cut_off)
    world = fsmdp.make_env(model) if use_env else model
    resumed_learner = make()
    resumed = fsmdp.learn(world, resumed_learner, **options)
    assert_same_history(whole, resumed)
    assert_same_counts(whole_learner, resumed_learner)
    again = fsmdp.learn(world, make(), **options)
    assert_same_history(whole, again)
    assert not list(tmp_path.glob("*.partial"))


def test_a_checkpoint_of_another_run_is_refused(tmp_path):
    model = domains.sysadmin(3, horizon=3)
    structure = model.structure(fsmdp.Basis.singles(model))
    path = tmp_path / "run.npz"
    fsmdp.learn(model, fsmdp.UCRLFactored(structure), episodes=4, checkpoint=path)
    with pytest.raises(ModelError, match="is of another run"):
        fsmdp.learn(model, fsmdp.UCRLFactored(structure), 4, seed=1, checkpoint=path)
    with pytest.raises(ModelError, match="is of another run"):
        fsmdp.learn(model, fsmdp.UCRLFactored(structure, delta=0.1), 4, checkpoint=path)
    with pytest.raises(ModelError, match="already holds 4 episodes"):
        fsmdp.learn(model, fsmdp.UCRLFactored(structure), 3, checkpoint=path)
    used = fsmdp.UCRLFactored(structure)
    fsmdp.learn(model, used, 1)
    with pytest.raises(ModelError, match="resume with a fresh one"):
        fsmdp.learn(model, used, 4, checkpoint=path)
    path.write_bytes(b"not arrays")
    with pytest.raises(ModelError, match="is no checkpoint: File is not a zip file"):
        fsmdp.learn(model, fsmdp.UCRLFactored(structure), 4, checkpoint=path)
