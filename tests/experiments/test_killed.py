"""`fsmdp compare` as a process that is killed, interrupted, or started twice."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest
from tests.experiments.sweeps import assert_readable, episodes_of

from fsmdp.experiments.reading import read_specification
from fsmdp.experiments.runner import compare
from fsmdp.experiments.store import CHECKPOINT, RUNS, read_results

TEXT = """
name = "ring"
episodes = 400
seeds = 2
checkpoint_every = 10
[[models]]
model = "sysadmin:ring:3:horizon=4"
[[learners]]
learner = "psrl"
[[learners]]
learner = "ucrl"
replan = "episode"
"""
PATIENCE = 120.0


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    """A specification's file, and the episodes of the sweep that nobody disturbed."""
    folder = tmp_path_factory.mktemp("sweep")
    path = folder / "ring.toml"
    path.write_text(TEXT)
    compare(read_specification(path)[0], folder / "whole")
    return path, episodes_of(folder / "whole")


def start(path, folder, *more):
    """`fsmdp compare` in a process group of its own."""
    command = [sys.executable, "-m", "fsmdp", "compare", str(path), "--output", str(folder), *more]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def checkpoints(folder):
    return {path: path.stat().st_mtime_ns for path in folder.glob(f"{RUNS}/*/{CHECKPOINT}")}


def wait_for(condition, process):
    """Until something holds, or the process has ended."""
    began = time.monotonic()
    while not condition() and process.poll() is None:
        assert time.monotonic() - began < PATIENCE
        time.sleep(0.01)


def kill_at_random_moments(path, folder, kills, seed=0):
    """How many kills came in the middle of runs; in turn soon after the start and while writing."""
    draw = random.Random(seed)
    hits = 0
    for number in range(kills):
        process = start(path, folder)
        if number % 4 == 3:
            time.sleep(draw.uniform(0.0, 2.0))
        else:
            before = checkpoints(folder) if folder.is_dir() else {}
            wait_for(lambda before=before: checkpoints(folder) != before, process)
            time.sleep(draw.uniform(0.0, 0.3))
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=PATIENCE)
        if folder.is_dir():
            assert_readable(folder)
            hits += bool(checkpoints(folder))
    return hits


def finish(path, folder):
    process = start(path, folder, "--json")
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    return out


@pytest.mark.parametrize("kills", [3, pytest.param(10, marks=pytest.mark.slow)])
def test_a_sweep_that_was_killed_ends_with_the_same_bytes(kills, sweep, tmp_path):
    path, whole = sweep
    folder = tmp_path / "runs"
    hits = kill_at_random_moments(path, folder, kills)
    assert hits > 0
    finish(path, folder)
    assert episodes_of(folder) == whole
    assert not checkpoints(folder)
    assert not [left for left in folder.rglob(".*.part") if left.is_file()]


def test_a_second_process_stops_and_an_interrupted_first_can_go_on(sweep, tmp_path):
    path, whole = sweep
    folder = tmp_path / "runs"
    first = start(path, folder)
    wait_for(lambda: checkpoints(folder), first)
    os.killpg(first.pid, signal.SIGSTOP)  # it must not end before the second has looked
    second = start(path, folder)
    _, err = second.communicate(timeout=PATIENCE)
    os.killpg(first.pid, signal.SIGCONT)
    assert second.returncode == 2
    assert f"in use by process {first.pid} on" in err
    assert "fsmdp compare" in err
    os.killpg(first.pid, signal.SIGINT)  # as a terminal does
    out, err = first.communicate(timeout=PATIENCE)
    assert first.returncode == 130, (out, err)
    assert "the same command goes on from there" in err
    assert "Traceback" not in err
    assert len(read_results(folder).missing) > 0
    finish(path, folder)
    assert episodes_of(folder) == whole
