"""How commands end when what they write to, or where they run, is not as usual."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fsmdp.cli import entry, screen
from fsmdp.interop.rddl import cache


def command(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "fsmdp", *arguments], stderr=subprocess.PIPE, check=False, **options
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device here")
def test_a_full_disk_is_one_line_and_exit_code_2():
    with Path("/dev/full").open("wb") as full:
        done = command("inspect", "--list", "--json", stdout=full)
    assert done.returncode == 2
    assert done.stderr.startswith(b"fsmdp: ")
    assert b"Traceback" not in done.stderr


def test_numbers_that_json_lacks_are_null(capsys):
    screen.print_json({"mean": float("nan"), "rows": [{"best": float("-inf")}, (1.5, None)]})
    assert json.loads(capsys.readouterr().out) == {
        "mean": None,
        "rows": [{"best": None}, [1.5, None]],
    }


def test_markup_in_the_name_of_a_plan_file_stays_text(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = "q[bold]x[/b].npz"
    arguments = ["plan", "sysadmin:ring:3", "--episodes", "10", "--output"]
    (tmp_path / "q[bold]x[").mkdir()
    done = CliRunner().invoke(entry.app, [*arguments, name])
    assert done.exit_code == 0, done.exception
    assert name in done.output


def test_without_a_home_imported_models_are_kept_among_temporary_files(monkeypatch):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    assert cache.cache_folder().parts[-2:] == ("fsmdp", "rddl")


def test_an_interrupted_reproduction_says_what_is_kept(monkeypatch, tmp_path):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("fsmdp.reproduction.reproduce.reproduce", interrupt)
    done = CliRunner().invoke(entry.app, ["reproduce", "--output", str(tmp_path)])
    assert done.exit_code == 130
    assert "claims that were finished are in" in done.output
