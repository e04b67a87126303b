"""Damaged files of every kind: an error or the same numbers, never other numbers."""

import json
import shutil
from dataclasses import asdict
from pathlib import Path

import numpy as np
import polars
import pytest

import fsmdp
from fsmdp import ModelError, domains
from fsmdp.experiments.local import LocalExecutor
from fsmdp.experiments.runner import compare
from fsmdp.experiments.store import SPECIFICATION_TEXT, Store, frame_bytes, read_frame, read_results
from fsmdp.foundation.disk import seal
from fsmdp.io.models import to_dict
from fsmdp.io.rddl.build import Imported
from fsmdp.io.rddl.loading import recall, store
from fsmdp.learning.cells.statistics import Statistics
from fsmdp.learning.run import SERIES
from fsmdp.policies.arrays import policy_to_arrays
from fsmdp.reproduction.claim import Evidence, Form
from fsmdp.reproduction.reproduce import read_evidence, write_evidence
from tests.experiments.sweeps import Here, ring
from tests.mutations import damaged


def model():
    return domains.sysadmin(3, horizon=3)


def learner():
    return fsmdp.PSRLFactored(model().structure(fsmdp.Basis.singles(model())))


def write_plan(folder):
    fsmdp.plan(model(), method="programs").save(folder / "plan.npz")


def read_plan(folder):
    plan = fsmdp.load_plan(folder / "plan.npz")
    arrays = [plan.weights, plan.bound.weights, plan.q_entries, *plan.lookup]
    return (
        [array.tolist() for array in arrays],
        repr(plan),
        plan.upper_bound,
        plan.certificate.lifts.tolist(),
    )


def read_solved(folder):
    plan = fsmdp.load_plan(folder / "plan.npz")
    arrays = [plan.bound.weights, *policy_to_arrays(plan.compiled()).values()]
    return [array.tolist() for array in arrays], plan.upper_bound, plan.incumbent, plan.log


def learn(folder):
    return fsmdp.learn(model(), learner(), 6, checkpoint=folder / "run.npz")


def read_checkpoint(folder):
    history = learn(folder)
    return [repr(getattr(history, name).tolist()) for name in SERIES]


def write_statistics(folder):
    one = learner()
    fsmdp.learn(model(), one, 3)
    one.statistics.save(folder / "counts.npz")


def read_statistics(folder):
    return {n: a.tolist() for n, a in Statistics.load(folder / "counts.npz").arrays().items()}


def write_cache(folder):
    store(Imported("ring", model(), {"x": ("a", "b")}, {}, 4, ("note",)), folder / "ring.model")


def read_cache(folder):
    found = recall(folder / "ring.model", "ring")
    if found is None:
        raise ModelError("imported again")
    return to_dict(found.model), found.values, found.aliases, found.joint_actions, found.notes


def write_runs(folder):
    with LocalExecutor(1) as executor:
        compare(ring(seeds=1, episodes=8), folder, executor)


def read_runs(folder):
    found = read_results(folder)
    return json.dumps(
        [
            found.specification.to_dict(),
            {name: asdict(facts) for name, facts in found.models.items()},
            [[run.facts, run.episodes.to_dicts(), run.timings.to_dicts()] for run in found.runs],
            found.provenance,
            found.missing,
        ]
    )


def write_claim(folder):
    tables = {"curves": polars.DataFrame({"n": [1.5, 2.5], "name": ["a", None]})}
    timed = {"seconds": polars.DataFrame({"s": [0.25, 0.5]})}
    write_evidence(folder, Evidence(tables, timed), Form.TINY, 0, 1.25)


def read_claim(folder):
    found = read_evidence(folder, Form.TINY, 0)
    if found is None:
        raise ModelError("run again")
    evidence, seconds = found
    return [evidence[name].to_dicts() for name in ("curves", "seconds")], seconds


KINDS = {
    "plan": (write_plan, read_plan),
    "plan of the solver": (
        lambda folder: fsmdp.plan(model()).save(folder / "plan.npz"),
        read_solved,
    ),
    "checkpoint": (learn, read_checkpoint),
    "statistics": (write_statistics, read_statistics),
    "model": (
        lambda folder: fsmdp.save(model(), folder / "ring.json"),
        lambda folder: to_dict(fsmdp.load(folder / "ring.json")),
    ),
    "RDDL cache": (write_cache, read_cache),
    "runs": (write_runs, read_runs),
    "evidence": (write_claim, read_claim),
}
NOT_READ = (SPECIFICATION_TEXT, ".csv")


def damage_every_file(kind, folder, count):
    """How many damaged files were refused, of how many."""
    write, read = KINDS[kind]
    write(folder)
    expected, rng = read(folder), np.random.default_rng(0)
    files = [path for path in Path(folder).rglob("*") if path.is_file()]
    files = [path for path in files if not path.name.startswith(".")]
    files = [path for path in files if not path.name.endswith(NOT_READ)]
    refused = 0
    for path in files:
        content = path.read_bytes()
        for wrong in damaged(content, rng, count):
            path.write_bytes(wrong)
            try:
                found = read(folder)
            except ModelError:
                refused += 1
            else:
                assert found == expected, f"{path.name}: other numbers"
        path.write_bytes(content)
    assert read(folder) == expected
    return refused, count * len(files)


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_file_is_refused_or_gives_the_same_numbers(kind, tmp_path):
    refused, tried = damage_every_file(kind, tmp_path, 30)
    assert refused > tried / 3


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_many_damaged_files_are_refused_or_give_the_same_numbers(kind, tmp_path):
    damage_every_file(kind, tmp_path, 400)


def test_frames_swapped_between_runs_are_refused(tmp_path):
    write_runs(tmp_path)
    first, second = sorted((tmp_path / "runs").iterdir())
    shutil.copy(first / "episodes.parquet", second / "episodes.parquet")
    with pytest.raises(ModelError, match=r"episodes.parquet: it was changed since"):
        read_results(tmp_path)


def copy_run(one, other):
    shutil.rmtree(other)
    shutil.copytree(one, other)


def refused_by_all(folder, asked, match):
    """Whether reading, which is what a report does, and going on refuse a folder."""
    with pytest.raises(ModelError, match=match):
        read_results(folder)
    with pytest.raises(ModelError, match=match):
        compare(asked, folder, Here())


def test_a_run_copied_over_that_of_another_seed_is_refused(tmp_path):
    asked = ring(seeds=2, episodes=8)
    compare(asked, tmp_path, Here())
    first, second = (tmp_path / "runs" / run.id for run in asked.runs[:2])
    kept = second / "checkpoint.npz"
    content = kept.read_bytes()
    shutil.copy(first / "checkpoint.npz", kept)
    with pytest.raises(ModelError, match=r"checkpoint .* its seed is 0, this run's is 1"):
        read_results(tmp_path)
    kept.write_bytes(content)
    copy_run(first, second)
    refused_by_all(tmp_path, asked, "run.json: it is of another run: its id is .*seed-0")


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"learners": [{"learner": "psrl", "prior": 3}]}, "its id is"),
        ({"models": [{"model": "sysadmin:ring:3:horizon=4", "basis": "pairs"}]}, "its source is"),
        ({"episodes": 20}, "it has 20 episodes, expected 1 to 8"),
        ({"learners": [{"learner": "psrl", "label": "mine"}]}, "its label is 'mine'"),
    ],
)
def test_a_run_of_another_sweep_is_refused(change, match, tmp_path):
    learners = [{"learner": "psrl"}]
    asked = ring(seeds=1, episodes=8, learners=learners)
    compare(asked, tmp_path / "one", Here())
    other = ring(**{"seeds": 1, "episodes": 8, "learners": learners} | change)
    compare(other, tmp_path / "other", Here())
    (mine,), (theirs,) = asked.runs, other.runs
    copy_run(tmp_path / "other" / "runs" / theirs.id, tmp_path / "one" / "runs" / mine.id)
    refused_by_all(tmp_path / "one", asked, match)


def test_a_run_of_other_options_under_the_same_name_is_refused(tmp_path):
    asked = ring(seeds=1, episodes=8, learners=[{"learner": "psrl"}])
    compare(asked, tmp_path, Here())
    path = tmp_path / "runs" / asked.runs[0].id / "run.json"
    facts = json.loads(path.read_text())
    facts["options"]["prior"] = 3.0
    path.write_bytes(seal({name: one for name, one in facts.items() if name != "digest"}))
    refused_by_all(tmp_path, asked, "its options is .* expected .* by its folder")


def test_a_run_on_another_model_of_the_same_file_name_is_refused(tmp_path):
    def sweep(folder, machines):
        (tmp_path / folder).mkdir()
        path = tmp_path / "ring.json"
        fsmdp.save(domains.sysadmin(machines, horizon=4), path)
        asked = ring(
            seeds=1, episodes=8, models=[{"model": str(path)}], learners=[{"learner": "psrl"}]
        )
        compare(asked, tmp_path / folder, Here())
        return tmp_path / folder / "runs" / asked.runs[0].id

    theirs, mine = sweep("other", 3), sweep("one", 2)
    copy_run(theirs, mine)
    with pytest.raises(ModelError, match=r"run.json: it is of another model"):
        read_results(tmp_path / "one")


def test_a_damaged_checkpoint_is_refused_by_reports_and_by_runs_made_longer(tmp_path):
    asked = ring(seeds=1, episodes=8, learners=[{"learner": "psrl"}])
    compare(asked, tmp_path, Here())
    path = tmp_path / "runs" / asked.runs[0].id / "checkpoint.npz"
    content, rng, refused = path.read_bytes(), np.random.default_rng(0), 0
    for wrong in damaged(content, rng, 60):
        path.write_bytes(wrong)
        try:
            read_results(tmp_path)
        except ModelError:
            refused += 1
    assert refused > 40
    path.write_bytes(content[:-100])
    (run,) = Store(tmp_path).read_specification().runs
    with pytest.raises(ModelError, match="is not a checkpoint"):
        Store(tmp_path).check_checkpoint(run)


def test_a_model_changed_by_hand_says_how_to_keep_the_change(tmp_path):
    path = tmp_path / "ring.json"
    fsmdp.save(model(), path)
    text = path.read_text()
    assert '"horizon":3' in text
    path.write_text(text.replace('"horizon":3', '"horizon":4'))
    with pytest.raises(ModelError, match=r'changed since .* remove its "digest" entry'):
        fsmdp.load(path)
    document = json.loads(path.read_text())
    del document["digest"]
    path.write_text(json.dumps(document, indent=2))
    assert fsmdp.load(path).horizon == 4


def test_bytes_that_make_polars_panic_are_a_value_error():
    rng, refused = np.random.default_rng(0), 0
    content = frame_bytes(polars.DataFrame({"n": [1.0, 2.0, 3.0] * 50, "s": ["a", "b", "c"] * 50}))
    for wrong in damaged(content, rng, 300):
        try:
            read_frame(wrong)
        except ValueError:
            refused += 1
    assert refused > 30
