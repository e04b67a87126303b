"""Checkpoints: a run that was stopped ends as if it had not been, and no other file will do."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from tests.learning.learning_models import (
    NAMES,
    assert_same_counts,
    assert_same_history,
    learners,
)

import fsmdp
from fsmdp import ModelError, domains
from fsmdp.foundation.disk import read_arrays, write_arrays
from fsmdp.policies.arrays import FOLDED

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("use_env", [False, True], ids=["model", "environment"])
def test_a_run_that_was_cut_off_resumes_bit_for_bit(name, use_env, tmp_path):
    model = domains.sysadmin(4, horizon=5)
    make = learners(model.structure(fsmdp.Basis.pairs(model)), model.rewards)[name]
    environment = fsmdp.make_env(model) if use_env else model
    whole_learner, path = make(), tmp_path / "run.npz"
    whole = fsmdp.learn(environment, whole_learner, episodes=23, seed=4)

    class CutOffError(Exception):
        pass

    def cut_off(done, episodes):
        if done >= 13:
            raise CutOffError

    options = {"episodes": 23, "seed": 4, "checkpoint": path, "checkpoint_every": 5}
    with pytest.raises(CutOffError):
        fsmdp.learn(environment, make(), **options, progress=cut_off)
    environment = fsmdp.make_env(model) if use_env else model
    resumed_learner = make()
    resumed = fsmdp.learn(environment, resumed_learner, **options)
    assert_same_history(whole, resumed)
    assert_same_counts(whole_learner, resumed_learner)
    again = fsmdp.learn(environment, make(), **options)
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
    with pytest.raises(ModelError, match="is not a checkpoint: it is not an archive"):
        fsmdp.learn(model, fsmdp.UCRLFactored(structure), 4, checkpoint=path)


def short_run(path, make=None, environment=None, episodes=4, **options):
    model = domains.sysadmin(2, horizon=3)
    structure = model.structure(fsmdp.Basis.singles(model))
    learner = fsmdp.PSRLFactored(structure) if make is None else make(structure)
    return fsmdp.learn(environment or model, learner, episodes, checkpoint=path, **options)


OTHER_RUNS = {
    "seed": {"seed": 1},
    "learner": {"make": fsmdp.UCRLFactored},
    "learner's seed": {"make": lambda s: fsmdp.PSRLFactored(s, seed=7)},
    "growth": {"make": lambda s: fsmdp.PSRLFactored(s, replan=0.5)},
    "known rewards": {
        "make": lambda s: fsmdp.PSRLFactored(
            s, known_rewards=domains.sysadmin(2, horizon=3).rewards
        )
    },
    "environment": {"environment": fsmdp.make_env(domains.sysadmin(2, horizon=3))},
}


@pytest.mark.parametrize("what", OTHER_RUNS)
def test_a_checkpoint_is_taken_up_by_the_same_run_only(what, tmp_path):
    path = tmp_path / "run.npz"
    short_run(path)
    with pytest.raises(ModelError, match=r"is of another run: its .* this run's is .* start anew"):
        short_run(path, **OTHER_RUNS[what])


def test_a_model_with_other_probabilities_is_another_run(tmp_path):
    def switch(chance):
        case = fsmdp.Case(fsmdp.ANY, [], [1 - chance, chance])
        return fsmdp.FactoredMDP(
            [fsmdp.Variable("x", 2)], ["wait"], [fsmdp.Conditional("x", [case])], [], 2, [0]
        )

    path, structure = tmp_path / "run.npz", switch(0.5).structure(fsmdp.Basis.singles(switch(0.5)))
    fsmdp.learn(switch(0.5), fsmdp.PSRLFactored(structure), 3, checkpoint=path)
    fsmdp.learn(switch(0.5), fsmdp.PSRLFactored(structure), 3, checkpoint=path)
    with pytest.raises(ModelError, match="another run: its environment is FactoredMDP"):
        fsmdp.learn(switch(0.6), fsmdp.PSRLFactored(structure), 3, checkpoint=path)


@pytest.mark.parametrize("given", ["features", "policy"])
def test_what_a_learner_was_given_is_part_of_the_run(given, tmp_path):
    path = tmp_path / "run.npz"

    def make(structure, number):
        if given == "policy":
            return fsmdp.FixedPolicy(structure, lambda state, step: number)
        return fsmdp.LSVIUCB(structure, np.roll(np.eye(12), number, axis=0).reshape(4, 3, 12))

    short_run(path, lambda s: make(s, 1))
    short_run(path, lambda s: make(s, 1), episodes=6)
    with pytest.raises(ModelError, match="its known rewards, features or policy is"):
        short_run(path, lambda s: make(s, 2), episodes=6)


def test_damaged_files_are_refused(tmp_path):
    path, damaged = tmp_path / "run.npz", tmp_path / "damaged.npz"
    short_run(path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(60):
        content = bytearray(whole[: rng.integers(len(whole))] if rng.random() < 0.3 else whole)
        for at in rng.integers(max(1, len(content)), size=3):
            content[at : at + 1] = bytes([rng.integers(256)])
        damaged.write_bytes(content)
        try:
            short_run(damaged)
        except fsmdp.FsmdpError as error:
            assert "start anew" in str(error)  # noqa: PT017
            refused += 1
    assert refused > 40


def arrays_of(path):
    return read_arrays(path, 2**30, "checkpoint", "no remedy")


WRONG_PARTS = {
    "statistics/visits": lambda a: a[:-1],
    "statistics/outcomes": lambda a: -1 - a,
    "statistics/reward_sums": lambda a: a * np.nan,
    "statistics/episodes": lambda a: a.astype(float),
    "learner/rng": lambda a: np.array("{}"),
    "planned/acting/q": lambda a: a[:, 1:],
    "planned/acting/replan_at": lambda a: a.astype(float),
    "planned/policy/kind": lambda a: np.array(7),
    "planned/policy/entries": lambda a: a[:, 1:],
    "planned/policy/lookup/input_slot": lambda a: a + 10**6,
    "planned/policy/lookup/defaults": lambda a: a - 10**6,
    "series/returns": lambda a: a[1:],
    "environment": lambda a: np.array("not json"),
    "done": lambda a: np.array("four"),
    "format": lambda a: a + 1,
    "identity": lambda a: np.array("[]"),
}


@pytest.mark.parametrize("name", WRONG_PARTS)
def test_a_part_that_is_wrong_or_missing_is_refused(name, tmp_path):
    path = tmp_path / "run.npz"
    short_run(path)
    arrays = arrays_of(path)
    for changed in ({name: WRONG_PARTS[name](arrays[name])}, {}):
        others = {n: a for n, a in arrays.items() if n != name}
        write_arrays(path, others | changed)
        with pytest.raises(ModelError, match="remove this one to start anew"):
            short_run(path, episodes=6)


def test_a_folded_policy_goes_on_where_it_stopped_and_is_checked(tmp_path):
    model = domains.sysadmin(2, horizon=3)
    plan = fsmdp.plan(model, fsmdp.Basis.singles(model), method="programs")

    def follower(structure):
        return fsmdp.FixedPolicy(structure, plan)

    path = tmp_path / "run.npz"
    short_run(path, follower)
    arrays = arrays_of(path)
    assert arrays["planned/policy/kind"] == FOLDED
    whole = short_run(None, follower, episodes=6)
    np.testing.assert_array_equal(short_run(path, follower, episodes=6).returns, whole.returns)
    for name, wrong in (("input_slot", 10**6), ("member_action", -(10**6)), ("offset", 1)):
        part = f"planned/policy/folded/{name}"
        write_arrays(path, arrays | {part: arrays[part] + wrong})
        with pytest.raises(ModelError, match="remove this one to start anew"):
            short_run(path, follower, episodes=6)


def test_a_place_where_nothing_can_be_written_is_refused_at_once(tmp_path):
    for path, message in (
        (tmp_path, "it is a folder"),
        (tmp_path / "nowhere" / "run.npz", "its folder is not there"),
        (tmp_path / ("x" * 300), "File name too long"),
        ("\0", "null"),
        (3, "expected the path of a file, found a int"),
    ):
        with pytest.raises(ModelError, match=message):
            short_run(path)


KILLED = """
import sys
from tests.learning.test_checkpoint import long_run

def go_on(done, of):
    print(done, flush=True)
    sys.stdin.readline()  # one line for each episode that may still come

name, path, environment, episodes = sys.argv[1:]
long_run(name, path, environment == "env", int(episodes), go_on)
"""

LONG_RUNS = {
    "UCRLFactored": lambda s, r: fsmdp.UCRLFactored(s, replan="episode", known_rewards=r),
    "PSRLFactored": lambda s, r: fsmdp.PSRLFactored(s, known_rewards=r),
    "UCBVI": lambda s, r: fsmdp.UCBVI(s, known_rewards=r, scale=1e-4),
}


def long_run(name, path, use_env, episodes, progress=None):
    model = domains.sysadmin(3, horizon=4)
    learner = LONG_RUNS[name](model.structure(fsmdp.Basis.singles(model)), model.rewards)
    environment = fsmdp.make_env(model) if use_env else model
    options = {"checkpoint": path, "checkpoint_every": 3, "progress": progress}
    return learner, fsmdp.learn(environment, learner, episodes=episodes, seed=6, **options)


@pytest.mark.parametrize("kills", [2, pytest.param(5, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("name", "use_env"), [*((n, False) for n in LONG_RUNS), ("UCBVI", True)])
def test_a_process_that_is_killed_again_and_again_ends_with_the_same_history(
    name, use_env, kills, tmp_path
):
    path, rng = tmp_path / "run.npz", np.random.default_rng(3)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "cwd": ROOT}
    episodes = 80 * kills  # more than the processes that are killed may come to
    where = "env" if use_env else "model"
    command = [sys.executable, "-c", KILLED, name, str(path), where, str(episodes)]
    began = []
    for _ in range(kills):
        with subprocess.Popen(command, **pipes) as process:
            process.stdin.write("\n" * 60)
            process.stdin.flush()
            shown = [int(process.stdout.readline()) for _ in range(rng.integers(6, 30))]
            time.sleep(rng.uniform(0, 0.03))
            process.kill()
            assert process.wait() == -signal.SIGKILL
        began.append(shown[0])
        assert int(arrays_of(path)["done"]) >= shown[-1] - 3
    assert began == sorted(set(began)), "a run must go on where its file ends"
    learner, resumed = long_run(name, path, use_env, episodes)
    whole_learner, whole = long_run(name, None, use_env, episodes)
    assert_same_history(whole, resumed)
    assert_same_counts(whole_learner, learner)
