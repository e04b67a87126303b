"""The command line, as a user meets it."""

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from fsmdp import cli


def run(*arguments):
    return CliRunner().invoke(cli.app, arguments)


def test_the_demo_prints_a_table_whose_simulation_agrees_with_the_exact_values():
    done = run("demo", "--machines", "4", "--episodes", "2000")
    assert done.exit_code == 0
    assert "A ring of 4 machines" in done.output
    assert "9.3601" in done.output


def test_the_demo_prints_one_object_for_machines():
    done = run("demo", "--machines", "3", "--episodes", "4000", "--json")
    found = json.loads(done.output)
    assert {row["policy"] for row in found["policies"]} == {"optimal", "random", "never reboot"}
    for row in found["policies"]:
        assert abs(row["mean"] - row["exact"]) < 5 * row["standard_error"]


def test_a_model_too_large_to_enumerate_is_one_message_and_exit_code_3(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["fsmdp", "demo", "--machines", "60"])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == 3
    assert "enumeration needs 61 x" in capsys.readouterr().err


def test_an_interrupt_ends_with_130(monkeypatch):
    def interrupt():
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "app", interrupt)
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == 130


def test_help_shows_examples_without_heavy_imports():
    code = (
        "import sys\nfrom typer.testing import CliRunner\nfrom fsmdp import cli\n"
        "done = CliRunner().invoke(cli.app, ['demo', '--help'])\n"
        "assert 'Examples' in done.output, done.output\n"
        "print([m for m in ('numba', 'scipy', 'gymnasium', 'highspy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
