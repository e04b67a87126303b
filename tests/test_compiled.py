"""What was compiled from older sources is forgotten, and damaged files are compiled again."""

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fsmdp import compiled

ADD = """
from fsmdp.compiled import compiled

@compiled()
def add(first, second):
    return first + second
"""
CALL = "import sums; assert sums.add(1, 2) == 3; assert sums.add(1.5, 2) == 3.5"


def test_folders_of_sources_long_gone_are_removed(tmp_path):
    current, recent, old = (tmp_path / f"compiled-{name}" for name in ("now", "recent", "old"))
    for folder in (current, recent, old):
        folder.mkdir()
    long_ago = time.time() - 2 * compiled.KEPT_SECONDS
    os.utime(old, (long_ago, long_ago))
    os.utime(current, (long_ago, long_ago))
    compiled._forget_older(current)
    assert sorted(tmp_path.iterdir()) == sorted([current, recent])


@pytest.fixture
def files(tmp_path):
    return compiled.CompiledFiles(tmp_path, "name")


def test_what_was_saved_is_found_by_its_key_only(files, tmp_path):
    files.save("one", (1, b"code"))
    files.save("two", (2, b"more"))
    assert (files.load("one"), files.load("two")) == ((1, b"code"), (2, b"more"))
    assert files.load("three") is None
    files.flush()
    assert files.load("one") is None
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("count", [200, pytest.param(5000, marks=pytest.mark.slow)])
def test_a_damaged_file_counts_as_missing(count, files, tmp_path):
    files.save("key", (1, b"code" * 50))
    (path,) = tmp_path.iterdir()
    whole, draw = path.read_bytes(), random.Random(0)
    for _ in range(count):
        content = bytearray(whole)
        if draw.random() < 0.3:
            del content[draw.randrange(len(content)) :]
        elif draw.random() < 0.3:
            content = bytearray(draw.randbytes(draw.randrange(400)))
        else:
            content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
        path.write_bytes(content)
        assert files.load("key") is None
    path.write_bytes(whole)
    assert files.load("key") == (1, b"code" * 50)


def test_a_process_compiles_again_what_was_damaged(tmp_path, monkeypatch):
    (tmp_path / "sums.py").write_text(ADD)
    code = (
        "import fsmdp.compiled; from pathlib import Path\n"
        f"fsmdp.compiled.cache_folder = lambda: Path({str(tmp_path / 'cache')!r})\n{CALL}"
    )
    kept = []
    for _ in range(2):
        subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
        files = sorted(path for path in (tmp_path / "cache").rglob("*") if path.is_file())
        kept.append([path.read_bytes() for path in files])
        for path in files:
            path.write_bytes(b"\x80\x05garbage")
    assert len(kept[0]) == 2
    assert all(b"garbage" not in content for content in kept[1])


def test_without_a_home_and_without_a_writable_package_code_is_kept_among_temporary_files(
    tmp_path, monkeypatch
):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    monkeypatch.setattr(compiled, "PACKAGE", tmp_path / "file")
    (tmp_path / "file").write_text("")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    compiled.cache_folder.cache_clear()
    try:
        first = compiled.cache_folder()
        compiled.cache_folder.cache_clear()
        assert compiled.cache_folder() == first
        assert first.parent == tmp_path
        first.chmod(0o777)  # anybody could put code into it
        compiled.cache_folder.cache_clear()
        assert compiled.cache_folder() != first
    finally:
        compiled.cache_folder.cache_clear()
