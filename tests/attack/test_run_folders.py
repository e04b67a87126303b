"""Damaged, swapped and foreign files of runs: refused, or the numbers are the same."""

import json
import shutil
from collections import Counter
from itertools import permutations

import numpy as np
import pytest

from fsmdp.errors import FsmdpError
from fsmdp.experiments.runner import compare
from fsmdp.foundation.disk import seal
from fsmdp.report import write_report
from tests.experiments.sweeps import Here, episodes_of, ring
from tests.mutations import damaged, mutated_data
from tests.test_damage import learn, read_checkpoint, read_runs

COUNT = 150
ALL = ("run.json", "episodes.parquet", "timings.parquet", "checkpoint.npz")


@pytest.fixture(scope="module")
def asked():
    return ring(episodes=20, seeds=2)


@pytest.fixture(scope="module")
def whole(asked, tmp_path_factory):
    """A sweep that is done."""
    folder = tmp_path_factory.mktemp("whole")
    compare(asked, folder, Here())
    return folder


def tried(read, expected):
    """What came of reading: refused, the same or others."""
    try:
        return "same" if read() == expected else "OTHER NUMBERS"
    except FsmdpError:
        return "refused"


def say(capsys, what, counts):
    with capsys.disabled():
        print(f"\n{what}: {sum(counts.values())} tried, {dict(counts)}")
    assert counts["OTHER NUMBERS"] == 0
    assert counts["refused"] > 0


def files_of(folder):
    found = [path for path in folder.rglob("*") if path.is_file()]
    return sorted(p for p in found if not p.name.startswith(".") and p.suffix != ".toml")


@pytest.mark.slow
def test_damaged_files_of_a_sweep(asked, whole, tmp_path, capsys):
    """Read as a report reads them; going on gives the runs that were there, or an error."""
    folder, rng = tmp_path / "runs", np.random.default_rng(0)
    shutil.copytree(whole, folder)
    expected, episodes = read_runs(folder), episodes_of(whole)
    counts, resumed = Counter(), Counter()
    for path in files_of(folder):
        content = path.read_bytes()
        for number, wrong in enumerate(damaged(content, rng, COUNT)):
            if wrong == content:
                continue
            path.write_bytes(wrong)
            counts[tried(lambda: read_runs(folder), expected)] += 1
            if number % 10 == 0:
                again = tmp_path / "again"
                shutil.copytree(folder, again)
                resumed[tried(lambda again=again: go_on(asked, again), episodes)] += 1
                shutil.rmtree(again)
        path.write_bytes(content)
    say(capsys, "damaged files of a sweep, read", counts)
    say(capsys, "damaged files of a sweep, gone on with", resumed)


def go_on(asked, folder):
    compare(asked, folder, Here())
    return episodes_of(folder)


@pytest.mark.slow
def test_damaged_checkpoints_of_a_run_under_way(tmp_path, capsys):
    folder, rng = tmp_path / "runs", np.random.default_rng(0)
    asked, longer = (ring(episodes=n, seeds=1, learners=[{"learner": "psrl"}]) for n in (20, 30))
    compare(asked, folder, Here())
    compare(longer, tmp_path / "longer", Here())
    (run,) = asked.runs
    for name in ALL[:3]:
        (folder / "runs" / run.id / name).unlink()
    path = folder / "runs" / run.id / "checkpoint.npz"
    content, counts, resumed = path.read_bytes(), Counter(), Counter()
    expected = episodes_of(tmp_path / "longer")
    for wrong in damaged(content, rng, COUNT):
        path.write_bytes(wrong)
        counts[tried(lambda: len(write_report_of(folder, tmp_path)), 1)] += 1
        again = tmp_path / "again"
        shutil.copytree(folder, again)
        resumed[tried(lambda again=again: finish(longer, again), expected)] += 1
        shutil.rmtree(again)
    say(capsys, "damaged checkpoints, reported", counts)
    say(capsys, "damaged checkpoints, gone on with", resumed)


def write_report_of(folder, elsewhere):
    """Runs that a report says are not finished; there is nothing to report but them."""
    try:
        return write_report(folder, elsewhere / "report", figures=False).missing
    except FsmdpError as error:
        if "no run has finished" not in str(error):
            raise
        return ["one"]


def finish(asked, folder):
    """Episodes of a sweep that went on; a run that failed is an error."""
    for run in compare(asked, folder, Here()).runs:
        if run.message is not None:
            assert "checkpoint" in run.message
            raise FsmdpError(run.message)
    return episodes_of(folder)


@pytest.mark.slow
def test_files_swapped_between_runs(whole, tmp_path, capsys):
    folder, counts = tmp_path / "runs", Counter()
    shutil.copytree(whole, folder)
    expected = read_runs(folder)
    for one, other in permutations(sorted((folder / "runs").iterdir()), 2):
        for some in (*((name,) for name in ALL), ALL[:2], ALL[:3], ALL[1:3], ALL):
            kept = {name: (other / name).read_bytes() for name in some}
            for name in some:
                shutil.copy(one / name, other / name)
            counts[tried(lambda: read_runs(folder), expected)] += 1
            for name, content in kept.items():
                (other / name).write_bytes(content)
    say(capsys, "files swapped between runs", counts)
    assert counts["same"] == 0


@pytest.mark.slow
def test_wrong_facts_with_valid_digests(whole, tmp_path, capsys):
    """What another run's facts would have to say is refused; no wrong type is a traceback."""
    folder, counts = tmp_path / "runs", Counter()
    shutil.copytree(whole, folder)
    path = next(iter(sorted((folder / "runs").iterdir()))) / "run.json"
    content = path.read_bytes()
    facts = {name: one for name, one in json.loads(content).items() if name != "digest"}
    for label, wrong in mutated_data(facts):
        try:
            path.write_bytes(seal(wrong))
        except ValueError:  # NaN, which is not written
            continue
        found = tried(lambda: len(json.loads(read_runs(folder))), 5)
        counts[found] += 1
        if any(wrong.get(key) != facts[key] for key in ("id", "model", "seed", "source", "label")):
            assert found == "refused", label
    path.write_bytes(content)
    say(capsys, "facts with valid digests", counts)


@pytest.mark.slow
def test_damaged_checkpoints_of_learn(tmp_path, capsys):
    learn(tmp_path)
    path, rng, counts = tmp_path / "run.npz", np.random.default_rng(0), Counter()
    content, expected = path.read_bytes(), read_checkpoint(tmp_path)
    for wrong in damaged(content, rng, 10 * COUNT):
        path.write_bytes(wrong)
        counts[tried(lambda: read_checkpoint(tmp_path), expected)] += 1
    say(capsys, "damaged checkpoints of learn", counts)
