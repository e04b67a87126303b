"""`fsmdp discover`, as a user meets it."""

import json

import pytest
from typer.testing import CliRunner

import fsmdp
from fsmdp.cli import entry


def run(*arguments):
    return CliRunner().invoke(entry.app, ["discover", *arguments])


def test_the_command_finds_what_python_finds_and_names_what_it_played():
    done = run("sysadmin:ring:3", "--episodes=400", "--max-parents=2", "--seed=3", "--json")
    assert done.exit_code == 0
    facts = json.loads(done.output)
    model = fsmdp.domains.sysadmin(3)
    found = fsmdp.discover(model, episodes=400, max_parents=2, seed=3)
    assert facts["parents"] == {name: list(parents) for name, parents in found.parents.items()}
    assert [edge["log_evidence"] for edge in facts["evidence"]] == [
        edge.log_evidence for edge in found.evidence
    ]
    assert len(facts["undecided"]) == len(found.undecided)
    assert (facts["model"], facts["seed"], facts["episodes"]) == ("sysadmin:ring:3", 3, 400)
    assert facts["transitions"] == 400 * model.horizon


def test_people_see_a_table_of_parents_and_what_stays_open():
    done = run("sysadmin:ring:3", "--episodes=20", "--quiet")
    assert done.exit_code == 0
    found = fsmdp.discover(fsmdp.domains.sysadmin(3), episodes=20)
    assert found.undecided
    for words in (
        "machine-2",
        "200 transitions",
        "0.95",
        f"undecided: {found.undecided[0].parent}",
    ):
        assert words in done.output


def test_what_cannot_be_told_apart_is_shown_first():
    done = run("gridworld", "--anywhere=0", "--quiet")
    assert "cell-1-2 (or cell-1-1 and cell-1-3)" in done.output
    first = next(line for line in done.output.splitlines() if line.startswith("undecided"))
    assert "cannot be distinguished from" in first


@pytest.mark.parametrize(
    "wrong", ["--delta=0", "--anywhere=2", "--delta=1.5", "--episodes=0", "--max-parents=0"]
)
def test_numbers_out_of_range_are_refused(wrong):
    done = run("sysadmin:ring:3", wrong)
    assert done.exit_code != 0
    assert wrong.partition("=")[0].strip("-") in str(done.exception) + done.output
