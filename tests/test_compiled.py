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


def test_folders_of_sources_long_gone_are_removed(tmp_path, monkeypatch):
    simulate = compiled.PACKAGE / "simulation" / "simulate.py"
    stamp = compiled.stamp_of(frozenset(compiled.needed_sources(simulate)))
    unused, recent, old = (tmp_path / f"compiled-{name}" for name in (stamp, "recent", "old"))
    for folder in (unused, recent, old):
        folder.mkdir()
    long_ago = time.time() - 2 * compiled.KEPT_SECONDS
    os.utime(old, (long_ago, long_ago))
    os.utime(unused, (long_ago, long_ago))  # installed long ago, and never imported
    compiled._forget_older(tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted([unused, recent])
    assert time.time() - unused.stat().st_mtime < compiled.KEPT_SECONDS  # not looked at each time


@pytest.fixture
def files(tmp_path):
    return compiled.CompiledFiles("name", tmp_path)


def test_what_may_only_be_read_is_read_and_what_is_new_goes_elsewhere(tmp_path):
    ours, shipped = tmp_path / "ours", tmp_path / "shipped"
    ours.mkdir()
    shipped.mkdir()
    compiled.CompiledFiles("name", shipped).save("one", 1)
    both = compiled.CompiledFiles("name", ours, shipped)
    assert both.load("one") == 1
    both.save("two", 2)
    assert both.load("two") == 2
    assert (len(list(ours.iterdir())), len(list(shipped.iterdir()))) == (1, 1)
    (path,) = ours.iterdir()
    path.write_bytes(b"garbage")
    assert both.load("two") is None
    (path,) = shipped.iterdir()
    (ours / path.name).write_bytes(b"garbage")
    assert both.load("one") == 1


def test_a_package_that_may_only_be_read_is_still_looked_into(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(compiled, "PACKAGE", tmp_path / "package")
    beside = tmp_path / "package" / "__pycache__" / "compiled-stamp"
    beside.mkdir(parents=True)
    (beside / compiled._mark("an engine")).touch()
    # The superuser may write anywhere, so permissions alone would not do.
    monkeypatch.setattr(os, "access", lambda path, mode: beside not in (path, *path.parents))
    monkeypatch.setattr(compiled, "stamp_of", lambda sources: "stamp")
    compiled.cache_folders.cache_clear()
    try:
        ours = tmp_path / "cache" / "fsmdp" / "compiled-stamp"
        assert compiled.cache_folders() == (ours, beside)
        assert compiled.is_ready("an engine")
        assert not compiled.is_ready("another")
        compiled.set_ready("another")
        assert compiled.is_ready("another")
        assert len(list(ours.iterdir())) == 1
        monkeypatch.setattr("numba.__version__", "another")
        assert not compiled.is_ready("an engine")
    finally:
        compiled.cache_folders.cache_clear()


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
        f"fsmdp.compiled.cache_folders = lambda *_: (Path({str(tmp_path / 'cache')!r}),)\n{CALL}"
    )
    (tmp_path / "cache").mkdir()
    kept = []
    for _ in range(2):
        subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
        files = sorted(path for path in (tmp_path / "cache").rglob("*") if path.is_file())
        kept.append([path.read_bytes() for path in files])
        for path in files:
            path.write_bytes(b"\x80\x05garbage")
    assert len(kept[0]) == 2
    assert all(b"garbage" not in content for content in kept[1])


def test_code_is_compiled_again_when_anything_that_it_can_use_has_changed():
    simulate = compiled.PACKAGE / "simulation" / "simulate.py"
    needed = compiled.needed_sources(simulate)
    for part in ("simulation/simulate.py", "policies/arrays.py", "model/lookup.py", "compiled.py"):
        assert compiled.PACKAGE / part in needed
    for part in ("cli/plan.py", "learning/run.py", "bounds/joint.py"):
        assert compiled.PACKAGE / part not in needed
    before = compiled.stamp_of(frozenset(needed))
    assert before != compiled.stamp_of(frozenset(needed - {compiled.PACKAGE / "model/lookup.py"}))


def test_every_global_of_compiled_code_is_from_sources_that_its_stamp_covers():
    """Whatever a compiled function names must be watched, or an old one would go on running."""
    import ast

    package = compiled.PACKAGE
    watched = 0
    for source in package.rglob("*.py"):
        text = source.read_text("utf-8")
        if "@compiled(" not in text:
            continue
        needed = compiled.needed_sources(source)
        for node in ast.parse(text).body:
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("fsmdp."):
                path = (package / node.module.partition(".")[2].replace(".", "/")).with_suffix(
                    ".py"
                )
                names = [package / path.with_suffix("") / f"{a.name}.py" for a in node.names]
                assert path in needed or all(name in needed for name in names), (source, path)
                watched += 1
    assert watched > 50


def test_a_helper_in_another_file_that_changes_is_compiled_again(tmp_path):
    package = tmp_path / "fsmdp"
    package.mkdir()
    helper, user = package / "helper.py", package / "user.py"
    helper.write_text("VALUE = 1\n")
    user.write_text("from fsmdp.helper import VALUE\n")
    code = (
        "import sys, fsmdp.compiled as c; from pathlib import Path\n"
        f"c.PACKAGE = Path({str(package)!r})\n"
        f"print(c.stamp_of(frozenset(c.needed_sources(Path({str(user)!r})))))"
    )

    def stamp():
        done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
        return done.stdout

    first = stamp()
    assert stamp() == first
    helper.write_text("VALUE = 2\n")
    assert stamp() != first


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
    compiled.cache_folders.cache_clear()
    try:
        first = compiled.cache_folders()[0]
        compiled.cache_folders.cache_clear()
        assert compiled.cache_folders()[0] == first
        assert first.parent == tmp_path
        first.chmod(0o777)  # anybody could put code into it
        compiled.cache_folders.cache_clear()
        assert compiled.cache_folders()[0] != first
    finally:
        compiled.cache_folders.cache_clear()


def test_an_inner_function_is_called_by_compiled_code_alone(tmp_path, monkeypatch):
    """Without its guard Python would jump to where no code is."""
    (tmp_path / "sums.py").write_text(
        ADD.replace("@compiled()", "@compiled(inner=True)")
        + "\n\n@compiled()\ndef twice(number):\n    return add(number, 1) + add(number, number)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(compiled, "cache_folders", lambda *_: (tmp_path,))
    import sums

    assert sums.twice(3) == 10
    with pytest.raises(TypeError, match="add is for compiled code"):
        sums.add(1, 2)
    # Once for all numbers: a constant such as 1 has a type of its own.
    assert [str(one) for one in sums.add.signatures] == ["(int64, int64)"]
