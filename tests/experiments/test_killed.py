"""`fsmdp compare` as a process that is killed, interrupted, started twice, or out of space."""

import contextlib
import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from tests.experiments.sweeps import Here, assert_readable, episodes_of

from fsmdp.experiments.runner import compare
from fsmdp.experiments.specification import read_specification
from fsmdp.experiments.store import CHECKPOINT, RUNS, read_results

TEXT = """
name = "ring"
episodes = 60
seeds = 2
checkpoint_every = 5
[[models]]
model = "sysadmin:ring:3:horizon=4"
[[learners]]
learner = "psrl"
[[learners]]
learner = "ucrl"
replan = "episode"
"""
ROOT = Path(__file__).parents[2]
HALTING = ("-c", "from tests.experiments.halting import main; main()")
DEADLINE = 300.0  # so that a test that hangs fails in the end; nothing else depends on it
POINTS = [
    *(f"{when} {CHECKPOINT} {often}" for when in ("before", "after") for often in (1, 2, 7)),
    *(f"{when} run.json {often}" for when in ("before", "after") for often in (1, 3)),
    *("before episodes.parquet 1", "after episodes.parquet 1", "after timings.parquet 2"),
    *("before models.json 1", "after specification.json 1", "before provenance.json 1"),
]


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    """A specification's file, and the episodes of the sweep that nobody disturbed."""
    folder = tmp_path_factory.mktemp("sweep")
    path = folder / "ring.toml"
    path.write_text(TEXT)
    finish(path, folder / "whole")
    return path, episodes_of(folder / "whole")


def start(path, folder, *more, program=("-m", "fsmdp"), **options):
    """`fsmdp compare` in a process group of its own."""
    command = [sys.executable, *program, "compare", str(path), "--output", str(folder), *more]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, **pipes, start_new_session=True, **options)


@contextlib.contextmanager
def halted(path, folder, point, marker, workers=2):
    """A sweep, and the process of it that has halted at a point; the sweep cannot end before."""
    environment = os.environ | {"HALT": point, "HALTED": str(marker)}
    options = {"program": HALTING, "env": environment, "cwd": ROOT}
    process = start(path, folder, "--workers", str(workers), **options)
    try:
        wait_until(lambda: (marker.is_file() and marker.read_text()) or process.poll() is not None)
        assert process.poll() is None, process.communicate()
        yield process, int(marker.read_text())
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=DEADLINE)
        marker.unlink(missing_ok=True)


def wait_until(condition):
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < DEADLINE
        time.sleep(0.01)


def checkpoints(folder):
    return sorted(folder.glob(f"{RUNS}/*/{CHECKPOINT}"))


def parts(folder):
    return [path for path in folder.rglob(".*.part") if path.is_file()]


def finish(path, folder):
    """Do what is missing in this process, which saves the start of others."""
    compare(read_specification(path)[0], folder, Here())


@pytest.mark.parametrize("kills", [3, pytest.param(30, marks=pytest.mark.slow)])
def test_a_sweep_that_was_killed_ends_with_the_same_bytes(kills, sweep, tmp_path):
    path, whole = sweep
    draw = random.Random(kills)
    for number in range(-(-kills // 5)):
        folder, left = tmp_path / f"runs-{number}", min(5, kills - 5 * number)
        # The first two always: one leaves a checkpoint, the other what is written aside for the
        # next. Every kill leaves less to do, so that there is one late point, and it comes third.
        points = [f"after {CHECKPOINT} 1", f"before {CHECKPOINT} 1"]
        late, early = [POINTS[2], POINTS[5]], [POINTS[i] for i in (0, 1, 3, 4)]
        points += [draw.choice(late), *draw.choices(early, k=left - 3)]
        for point in points:
            with halted(path, folder, point, tmp_path / "halted") as (process, _):
                process.kill()
                process.communicate(timeout=DEADLINE)  # ends when the workers have ended too
                assert_readable(folder)
                assert checkpoints(folder)
                assert not point.startswith("before") or parts(folder)
        finish(path, folder)
        assert episodes_of(folder) == whole
        assert len(checkpoints(folder)) == len(whole)
        assert not parts(folder)


@pytest.mark.parametrize(
    "point",
    [
        "before run.json 1",
        *(
            pytest.param(one, marks=pytest.mark.slow)
            for one in POINTS
            if one != "before run.json 1"
        ),
    ],
)
def test_a_sweep_can_be_killed_at_any_point(point, sweep, tmp_path):
    path, whole = sweep
    folder = tmp_path / "runs"
    with halted(path, folder, point, tmp_path / "halted", workers=1) as (process, _):
        process.kill()
        process.communicate(timeout=DEADLINE)
        assert_readable(folder)
    finish(path, folder)
    assert episodes_of(folder) == whole
    assert not parts(folder)


def test_the_workers_of_a_killed_process_end_by_themselves(sweep, tmp_path):
    with halted(sweep[0], tmp_path / "runs", f"after {CHECKPOINT} 1", tmp_path / "halted") as found:
        process, worker = found
        children = psutil.Process(process.pid).children(recursive=True)
        assert worker in [child.pid for child in children]
        process.kill()
        process.communicate(timeout=DEADLINE)  # which ends when the last one lets go of the pipes
        wait_until(lambda: not any(map(is_alive, children)))


def is_alive(process):
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.status() != psutil.STATUS_ZOMBIE
    return False


def test_a_second_process_stops_and_an_interrupted_first_can_go_on(sweep, tmp_path):
    path, whole = sweep
    folder = tmp_path / "runs"
    with halted(path, folder, f"after {CHECKPOINT} 1", tmp_path / "halted") as (first, _):
        second = start(path, folder)
        _, err = second.communicate(timeout=DEADLINE)
        assert second.returncode == 2
        assert f"in use by process {first.pid} on" in err
        assert f"compare {path}" in err
        os.killpg(first.pid, signal.SIGINT)  # as a terminal does
        out, err = first.communicate(timeout=DEADLINE)
        assert first.returncode == 130, (out, err)
        assert err.startswith("fsmdp: interrupted; what was done is in")
        assert err.endswith("the same command continues from there.\n")
        assert (out, err.count("\n")) == ("", 1)
    assert len(read_results(folder).missing) > 0
    same = start(path, folder, "--json", "--workers", "1")
    _, err = same.communicate(timeout=DEADLINE)
    assert same.returncode == 0, err
    assert episodes_of(folder) == whole


def test_a_full_disk_costs_no_more_than_the_episodes_since_the_last_checkpoint(tmp_path):
    """A limit on the size of files stands for the disk: checkpoints grow, and then fail."""
    longer, folder = tmp_path / "longer.toml", tmp_path / "runs"
    often = 'replan = "episode"\n'
    text = TEXT.replace("episodes = 60", "episodes = 100").replace("seeds = 2", "seeds = 1")
    longer.write_text(text.replace(often, ""))
    finish(longer, tmp_path / "whole")
    size = 30_000  # more than the first checkpoints have, less than the last
    limit = start(
        longer,
        folder,
        *("--workers", "1"),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)),
    )
    out, err = limit.communicate(timeout=DEADLINE)
    assert limit.returncode == 1, (out, err)
    assert "File too large" in out
    assert err == (
        "fsmdp: 2 of 2 runs failed; the same command tries them again, from their last "
        "checkpoints.\n"
    )
    assert len(checkpoints(folder)) == 2
    assert not parts(folder)
    # A run that began anew would write all of its checkpoints, and halt.
    point = f"before {CHECKPOINT} {100 // 5}"
    halting = os.environ | {"HALT": point, "HALTED": str(tmp_path / "halted")}
    again = start(longer, folder, "--workers", "1", program=HALTING, env=halting, cwd=ROOT)
    _, err = again.communicate(timeout=DEADLINE)
    assert (again.returncode, err) == (0, "")
    assert not (tmp_path / "halted").exists()
    assert episodes_of(folder) == episodes_of(tmp_path / "whole")
