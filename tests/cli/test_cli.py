"""The command line, as a user meets it."""

import json
import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import fsmdp
from fsmdp import domains
from fsmdp.bounds import planner
from fsmdp.bounds.gap import Line
from fsmdp.bounds.problem import problem_of_model
from fsmdp.cli import entry as cli
from fsmdp.cli.plan import row_of


def run(*arguments):
    return CliRunner().invoke(cli.app, arguments)


def run_main(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["fsmdp", *arguments])
    return cli.run()


def test_a_model_too_wide_is_one_message_and_exit_code_3(monkeypatch, capsys):
    def narrow(*arguments, **options):
        return problem_of_model(*arguments, **options | {"limit": 2})

    monkeypatch.setattr(planner, "problem_of_model", narrow)
    assert run_main(monkeypatch, "plan", "sysadmin:ring:4", "--method", "programs") == 3
    assert "induced width" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["sysadmn:8"], "did you mean 'sysadmin'"),
        (["none.json"], "cannot read 'none.json'"),
        (["sysadmin:ring:4", "--output", "no/such/plan.npz"], "its folder is not there"),
        (["sysadmin:ring:4", "--basis", "triples"], "expected one of singles, pairs, objects"),
        (["sysadmin:ring:4", "--method", "magic"], "one of auto"),
        (["sysadmin:ring:4", "--weights", "equal"], "expected 'initial', 'uniform'"),
    ],
)
def test_a_mistake_is_one_message_and_exit_code_2(arguments, message, monkeypatch, capsys):
    assert run_main(monkeypatch, "plan", *arguments) == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert "Traceback" not in printed.err


def test_plan_prints_one_object_for_machines(tmp_path):
    fsmdp.save(domains.sysadmin(4), tmp_path / "ring.json")
    for text in ("sysadmin:ring:4", str(tmp_path / "ring.json")):
        done = run("plan", text, "--method", "programs", "--json", "--episodes", "200")
        assert done.exit_code == 0, done.output
        found = json.loads(done.output)
        assert found["status"] == "optimal"
        assert found["upper_bound"] == pytest.approx(9.42169, abs=1e-4)
        assert {"log10_states", "induced_width", "rows", "objective", "violation"} <= set(found)
        assert found["policy_mean"] < found["upper_bound"]


@pytest.mark.parametrize("options", [[], ["--method", "programs"]], ids=["solver", "programs"])
def test_plan_prints_a_table_and_writes_the_plan(tmp_path, options):
    path = tmp_path / "plan.npz"
    done = run("plan", "sysadmin:star:4", "--basis", "pairs", "--output", str(path), *options)
    assert done.exit_code == 0, done.output
    assert "certified upper bound" in done.output
    assert fsmdp.load_plan(path).status == "optimal"


def test_a_solved_model_shows_nothing_of_linear_programs_that_were_not_needed():
    done = run("plan", "sysadmin:ring:4")
    assert done.exit_code == 0, done.output
    assert "by exact values" in done.output
    for words in ("violation", "linear program", "functions", "rows"):
        assert words not in done.stdout


def test_a_bound_of_zero_is_shown_as_zero_and_without_advice():
    done = run("plan", "gridworld:3:3")
    assert done.exit_code == 0, done.output
    assert "│ 0, by the largest rewards" in done.stdout
    assert "no policy more than 0" in " ".join(done.stdout.replace("│", "").split())
    assert "induced width" not in done.stdout  # no program was solved
    assert "more time" not in done.stdout
    assert not re.search(r"\de[+-]\d", done.output)


def test_a_line_of_the_log_rounds_its_bound_up_unless_it_is_attained():
    line = Line(1.0, "fit", 7.2281, 0.1562, 8.125002, 0.1)
    assert "7.23 ± 0.16      8.12501   10.0 %" in row_of(line)
    solved = Line(1.0, "exact values", 8.125002, 0.0, 8.125002, 0.0)
    assert "   8.125        8.125    0.0 %" in row_of(solved)
    nothing = Line(1.0, "fit", -7.2281, 0.1562, 7.4e-11, None)
    assert "-7.23 ± 0.16            0        -" in row_of(nothing, scale=800.0)


def test_a_terminal_of_one_column_still_shows_the_plan(monkeypatch):
    monkeypatch.setenv("COLUMNS", "1")
    done = run("plan", "sysadmin:ring:3")
    assert done.exit_code == 0, done.output
    assert "certified upper" in done.output


@pytest.mark.parametrize(
    "wrong", [["--gap", "inf"], ["--time-limit", "inf"], ["--weights", "foo"]], ids=" ".join
)
def test_what_cannot_be_asked_for_is_refused_before_a_log_begins(wrong):
    done = run("plan", "sysadmin:ring:3", *wrong)
    assert isinstance(done.exception, fsmdp.ModelError)
    assert not done.output


def test_a_module_that_cannot_be_found_is_named():
    for words in (
        ["plan", "nomod:make"],
        ["plan", "sysadmin:3", "--basis", "nomod:make"],
        ["learn", "sysadmin:3", "--learner", "nomod:make"],
    ):
        done = run(*words)
        assert "Nor can module 'nomod' be imported, which is looked for" in str(done.exception)


def test_plan_acts_on_line_where_that_can_help(tmp_path):
    ring = ("plan", "sysadmin:ring:6", "--online", "--json", "--milliseconds", "0.5")
    done = run(*ring, "--basis", "singles", "--online-episodes", "3", "--time-limit", "20")
    found = json.loads(done.output)
    assert found["online_episodes"] == 3
    assert found["online_mean"] <= found["upper_bound"]
    assert {"policy", "gap", "log", "model", "seed"} <= found.keys()
    assert {"seconds", "what", "incumbent", "standard_error", "upper_bound", "gap"} <= set(
        found["log"][-1]
    )
    solved = json.loads(run(*ring).output)
    assert (solved["gap"], solved["online_episodes"]) == (0.0, 0)
    assert solved["online_mean"] == solved["policy_mean"]
    shown = run("plan", "sysadmin:ring:4", "--online").output
    assert "nothing is simulated" in shown


def test_an_interrupt_within_a_command_reaches_the_start(monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("fsmdp.io.readers.read_model", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run_main(monkeypatch, "inspect", "sysadmin:ring:4")


def test_help_shows_examples_without_heavy_imports():
    code = (
        "import sys\nfrom typer.testing import CliRunner\nfrom fsmdp.cli import entry as cli\n"
        "done = CliRunner().invoke(cli.app, ['demo', '--help'])\n"
        "assert 'Examples' in done.output, done.output\n"
        "print([m for m in ('numba', 'scipy', 'gymnasium', 'highspy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_learner_of_a_users_own_module_learns(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "learner_of_mine.py").write_text(
        "import fsmdp\n\n\ndef make(structure, seed, prior=2.0):\n"
        "    return fsmdp.PSRLFactored(structure, seed=seed, prior=prior)\n"
    )
    own = ("--learner", "learner_of_mine:make", "--option", "prior=3")
    done = run("learn", "sysadmin:ring:2", "--episodes", "3", *own, "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["options"]["prior"] == 3.0
