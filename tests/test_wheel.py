"""A wheel holds all that the library needs: it is built, installed by itself, and run."""

import json
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PIP = ["-m", "pip", "--disable-pip-version-check", "-q"]
DEMO = ["demo", "--machines=2", "--large=3", "--episodes=5", "--seeds=1", "--workers=1", "--json"]
COUNTED = """
import sys
from numba.core import event

class Counter(event.Listener):
    count = 0
    def on_start(self, event):
        self.count += 1
    def on_end(self, event):
        pass

counter = Counter()
event.register("numba:compile", counter)
try:
    from fsmdp.cli import main
    main()
except SystemExit as end:
    assert not end.code
print(counter.count, file=sys.stderr)
"""


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200, **options)
    assert done.returncode == 0, done.stderr[-2000:]
    return done


def built(project, folder, **variables):
    environment = {**os.environ, "FSMDP_COMPILE": "1", **variables}
    run(sys.executable, *PIP, "wheel", "--no-deps", "-w", folder, project, env=environment)
    (wheel,) = folder.glob("fsmdp-*.whl")
    assert wheel.name.endswith("-py3-none-any.whl")
    return wheel


def compiled_files(wheel):
    return [name for name in zipfile.ZipFile(wheel).namelist() if "__pycache__" in name]


@pytest.mark.slow
def test_a_wheel_installs_and_runs_the_demo_in_a_clean_environment(tmp_path):
    wheel = built(ROOT, tmp_path / "dist")
    assert compiled_files(wheel)
    venv.create(tmp_path / "clean", with_pip=True)
    python = tmp_path / "clean" / "bin" / "python"
    clean = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    run(python, *PIP, "install", wheel)
    shipped = set((tmp_path / "clean").rglob("__pycache__/compiled-*/*"))
    for command in (["plan", "sysadmin:ring:8"], ["learn", "sysadmin:ring:8", "--episodes=20"]):
        done = run(python, "-c", COUNTED, *command, cwd=tmp_path, env=clean)
        assert done.stderr.split()[-1] == "0", f"{command} had to compile"
    found = json.loads(run(python, "-m", "fsmdp", *DEMO, cwd=tmp_path, env=clean).stdout)
    # Not in workers either, whose compilations nobody counts: they would have been kept.
    assert set((tmp_path / "clean").rglob("__pycache__/compiled-*/*")) == shipped
    where = run(python, "-c", "import fsmdp; print(fsmdp.__file__)", cwd=tmp_path, env=clean).stdout
    assert where.startswith(str(tmp_path / "clean"))
    assert (tmp_path / found["report"]).is_file()
    assert found["plan"]["policy_mean"] <= found["plan"]["upper_bound"] + 1e-9


@pytest.mark.slow
def test_a_wheel_without_compiled_code_can_be_asked_for(tmp_path):
    assert not compiled_files(built(ROOT, tmp_path, FSMDP_COMPILE="0"))


@pytest.mark.slow
def test_a_wheel_is_built_even_if_compiling_fails(tmp_path):
    project = tmp_path / "project"
    shutil.copytree(ROOT / "src", project / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE", "hatch_build.py"):
        shutil.copy(ROOT / name, project)
    (project / "src" / "fsmdp" / "solver" / "warm.py").write_text("raise OSError('none today')\n")
    assert not compiled_files(built(project, tmp_path / "dist"))
