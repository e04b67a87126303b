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
    assert [edge["log_evidence"] for edge in facts["edges"]] == [
        edge.log_evidence for edge in found.edges
    ]
    assert len(facts["open"]) == len(found.open)
    assert (facts["model"], facts["seed"], facts["episodes"]) == ("sysadmin:ring:3", 3, 400)
    assert facts["transitions"] == 400 * model.horizon


def test_people_see_a_table_of_parents_and_what_stays_open():
    done = run("sysadmin:ring:3", "--episodes=20", "--quiet")
    assert done.exit_code == 0
    found = fsmdp.discover(fsmdp.domains.sysadmin(3), episodes=20)
    assert found.open
    for words in ("machine-2", "200 transitions", "0.95", f"open: {found.open[0].parent}"):
        assert words in done.output


@pytest.mark.parametrize("wrong", ["--delta=0", "--delta=1.5", "--episodes=0", "--max-parents=0"])
def test_numbers_out_of_range_are_refused(wrong):
    done = run("sysadmin:ring:3", wrong)
    assert done.exit_code != 0
    assert wrong.partition("=")[0].strip("-") in str(done.exception) + done.output
