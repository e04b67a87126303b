"""A wheel holds all that the library needs: it is built, installed by itself, and run."""

import json
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DEMO = ["demo", "--machines=2", "--large=3", "--episodes=5", "--seeds=1", "--workers=1", "--json"]


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200, **options)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.slow
def test_a_wheel_installs_and_runs_the_demo_in_a_clean_environment(tmp_path):
    pip = ["-m", "pip", "--disable-pip-version-check", "-q"]
    run(sys.executable, *pip, "wheel", "--no-deps", "-w", tmp_path / "dist", ROOT)
    (wheel,) = (tmp_path / "dist").glob("fsmdp-*.whl")
    venv.create(tmp_path / "clean", with_pip=True)
    python = tmp_path / "clean" / "bin" / "python"
    clean = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    run(python, *pip, "install", wheel)
    found = json.loads(run(python, "-m", "fsmdp", *DEMO, cwd=tmp_path, env=clean))
    where = run(python, "-c", "import fsmdp; print(fsmdp.__file__)", cwd=tmp_path, env=clean)
    assert where.startswith(str(tmp_path / "clean"))
    assert (tmp_path / found["report"]).is_file()
    assert found["plan"]["policy_mean"] <= found["plan"]["upper_bound"] + 1e-9
