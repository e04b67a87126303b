"""The examples run, and end with what they promise."""

import runpy
import sys
import warnings
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"

ENDS = {
    "own_model.py": "the policy is optimal up to rounding",
    "rddl_problem.py": "their simulator:",
    "own_environment.py": "at random:",
    "compare_learners.py": "regret.png",
}


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("*.py")))
def test_an_example_runs(name, tmp_path, monkeypatch, capsys):
    arguments = [str(tmp_path / "runs")] if name == "compare_learners.py" else []
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    assert ENDS[name] in capsys.readouterr().out


def test_the_list_of_examples_has_all_of_them():
    listed = (EXAMPLES / "README.md").read_text()
    assert all(f"`{path.name}`" in listed for path in EXAMPLES.glob("*.py"))
