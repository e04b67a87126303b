"""What a process leaves that is killed while it writes, the next to write the file removes."""

import os
import stat
import subprocess
import sys

import pytest

from fsmdp.errors import ModelError
from fsmdp.foundation.disk import check_path, remove_leftovers, write_file

WRITE_AND_HANG = """
import os, sys
from fsmdp.foundation.disk import write_file

def hang(_):
    print("written aside", flush=True)
    sys.stdin.read()

os.fsync = hang
write_file(sys.argv[1], b"new")
"""
NOT_OURS = [
    *(".mine.part", "run.npz.12-34.part", ".run.npz.part", ".run.npz.x-y.part"),
    *(".run.npz.12-34.part.txt", ".other.npz.12-34.part", ".run_npz.12-34.part"),
]


@pytest.fixture
def writer(tmp_path):
    """A process that has written a file aside and not yet put it in its place."""
    target = tmp_path / "run.npz"
    command = [sys.executable, "-c", WRITE_AND_HANG, str(target)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as process:
        assert process.stdout.readline() == b"written aside\n"
        yield process, target
        process.kill()


def parts(target):
    return list(target.parent.glob(f".{target.name}.*.part"))


def test_what_a_killed_process_left_is_removed_by_the_next_to_write_the_file(writer):
    process, target = writer
    process.kill()
    process.wait()
    assert len(parts(target)) == 1
    write_file(target.with_name("another"), b"")
    assert len(parts(target)) == 1
    write_file(target, b"newer")
    assert target.read_bytes() == b"newer"
    assert not parts(target)


def test_what_is_being_written_is_left_alone(writer):
    process, target = writer
    remove_leftovers(target)
    assert len(parts(target)) == 1
    process.stdin.close()
    assert process.wait() == 0
    assert target.read_bytes() == b"new"
    assert not parts(target)


def test_files_of_others_are_never_removed(tmp_path):
    for name in NOT_OURS:
        (tmp_path / name).write_text("mine")
    (tmp_path / ".run.npz.56-78.part").mkdir()
    (tmp_path / ".run.npz.12-34.part").write_text("left")
    remove_leftovers(tmp_path / "run.npz")
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {*NOT_OURS, ".run.npz.56-78.part"}


def test_what_is_no_regular_file_stays_as_it_is(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for attempt in (lambda: write_file(pipe, b"x"), lambda: check_path(pipe)):
        with pytest.raises(ModelError, match="a pipe or a device"):
            attempt()
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    with pytest.raises(ModelError, match="folder"):
        write_file(tmp_path, b"x")


def test_a_link_goes_on_leading_where_it_leads(tmp_path):
    (tmp_path / "real").write_bytes(b"old")
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "real")
    write_file(link, b"new")
    assert link.is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"
