"""Help in words, in sections, and completion in the shell."""

import json
import os
import re
import subprocess
import sys

import pytest
import typer.main
from typer.testing import CliRunner

from fsmdp.cli.app import SECTIONS
from fsmdp.cli.entry import app
from fsmdp.domains import DOMAINS
from fsmdp.experiments.learners import options_of
from fsmdp.learning.learners.registry import LEARNERS

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
    }
    table = " ".join(shown("inspect", "--list").split())
    assert "three-legs (ring)" in table
    assert "machines*: a whole number (8)" in table


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("fsmdp si", "simulate"),
        ("fsmdp plan sysad", "sysadmin"),
        ("fsmdp plan sysadmin:8 --method cut", "cutting-planes"),
        ("fsmdp learn sysadmin:8 --learner tab", "tabular-psrl"),
        ("fsmdp plan sysadmin:8 --time", "--time-limit"),
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
