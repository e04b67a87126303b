"""Help in words, in sections, and completion in the shell."""

import json
import os
import re
import subprocess
import sys

import pytest
import typer.main
from typer.testing import CliRunner

from fsmdp.cli import app as lists
from fsmdp.cli.app import NARROWEST, SECTIONS
from fsmdp.cli.discover import MOST_EPISODES
from fsmdp.cli.entry import app
from fsmdp.domains import DOMAINS
from fsmdp.experiments.learners import options_of
from fsmdp.io.rddl import sources
from fsmdp.learning.learners.registry import LEARNERS
from fsmdp.simulation.rollout import MOST_RECORDED

COMMANDS = sorted(typer.main.get_command(app).commands)


def shown(*arguments):
    done = CliRunner().invoke(app, arguments, env={"COLUMNS": "120", "TERM": "dumb"})
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)], ids=" ".join)
def test_help_has_words_and_no_types(command):
    assert not re.search(r"<[a-z]+|\blist\[|TEXT|INTEGER", shown(*command, "--help"))


def test_every_command_stands_in_a_section_in_their_order():
    assert sorted(name for names in SECTIONS.values() for name in names) == COMMANDS
    page = shown("--help")
    places = [
        page.index(word)
        for title, names in SECTIONS.items()
        for word in (f"─ {title} ─", *(f"│ {name} " for name in names))
    ]
    assert places == sorted(places)


def test_the_help_of_learn_lists_every_option_of_every_learner():
    page = shown("learn", "--help")
    paragraphs = dict(re.findall(r"^ ([\w-]+): (.*?)(?=^ *$|\Z)", page, re.S | re.M))
    for name, entry in LEARNERS.items():
        text = " ".join(paragraphs[name].split())
        for option, (_, default) in options_of(entry).items():
            assert f"{option}:" in text
            if isinstance(default, float):
                assert f"{default} unless given" in text


def test_the_list_of_domains_has_defaults_and_choices():
    found = json.loads(shown("inspect", "--list", "--json"))
    assert set(found) == set(DOMAINS)
    assert found["sysadmin"]["defaults"] == {
        "machines": 8,
        "topology": "ring",
        "horizon": 10,
        "discount": 1.0,
        "administrators": None,
    }
    table = " ".join(shown("inspect", "--list").split())
    assert "three-legs (ring)" in table
    assert "machines*: a whole number (8)" in table
    assert "one reboot at a time (none)" in table


def test_choices_and_default_are_told_apart():
    assert "one of paper, practical, product (practical unless given)" in " ".join(
        shown("learn", "--help").split()
    )


def test_the_most_episodes_of_discovery_are_those_that_are_recorded():
    assert MOST_EPISODES == MOST_RECORDED
    assert f"x<={MOST_RECORDED}" in shown("discover", "--help")


@pytest.mark.parametrize("columns", ["0", "1"])
@pytest.mark.parametrize(
    "command",
    ["--help", "inspect sysadmin:2", "simulate sysadmin:2", "learn sysadmin:2 --episodes 2"],
)
def test_no_screen_is_too_narrow_to_show_anything(command, columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    done = CliRunner().invoke(app, command.split())
    longest = max(map(len, done.stdout.splitlines()))
    assert done.exit_code == 0
    assert 20 < longest <= NARROWEST


@pytest.mark.parametrize(
    ("complete", "begun", "expected"),
    [
        (lists.complete_problem, "Traf", ["Traffic"]),
        (lists.complete_problem, "Traffic:1", ["Traffic:1", "Traffic:10"]),
        (lists.complete_problem, "pub", ["published"]),
        (lists.complete(lists.claims), "ora", ["oracle"]),
        (lists.complete(lists.policies), "opt", ["optimal"]),
        (lists.complete(lists.policies), "found", ["found.npz"]),
    ],
)
def test_names_are_completed(complete, begun, expected, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "found.npz").touch()
    assert complete(begun) == expected


def test_rddl_problems_are_completed():
    pytest.importorskip("rddlrepository")
    assert "rddl:SysAdmin_MDP_ippc2011" in lists.complete_model("rddl:Sys")
    assert lists.complete_model("rddl:SysAdmin_MDP_ippc2011:9") == ["rddl:SysAdmin_MDP_ippc2011:9"]


def test_without_the_extra_no_rddl_problem_is_completed(monkeypatch):
    monkeypatch.setattr(sources, "find_spec", lambda _: None)
    sources.repository.cache_clear()
    assert lists.complete_model("rddl:Sys") == []


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("fsmdp si", "simulate"),
        ("fsmdp plan sysad", "sysadmin"),
        ("fsmdp plan sysadmin:8 --method cut", "cutting-planes"),
        ("fsmdp learn sysadmin:8 --learner tab", "tabular-psrl"),
        ("fsmdp plan sysadmin:8 --time", "--time-limit"),
        ("fsmdp ippc Elev", "Elevators"),
        ("fsmdp reproduce --only subs", "subsumed"),
        ("fsmdp simulate sysadmin:8 --policy opt", "optimal"),
    ],
)
def test_the_shell_completes(words, expected):
    asked = {
        "_FSMDP_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    code = "import sys; sys.argv = ['fsmdp']; from fsmdp.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=os.environ | asked
    )
    assert done.stdout.split() == [expected], done.stderr
