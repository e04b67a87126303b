"""Registries: one list of each kind, to which a package of one's own can add."""

import json
import math
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from fsmdp.cli import app as lists
from fsmdp.cli import entry
from fsmdp.domains import DOMAINS
from fsmdp.errors import ModelError
from fsmdp.experiments.executors import EXECUTORS, choose_executor
from fsmdp.foundation.registry import Registry
from fsmdp.io.readers import BASES
from fsmdp.report.curves import CHARTS

OWN = """
import fsmdp
from fsmdp.foundation.kinds import WHOLE
from fsmdp.io.readers import BASES


def queue(places=3):
    rise = [[min(1, 0.1 * n + 0.3), 1 - min(1, 0.1 * n + 0.3)] for n in range(2)]
    return fsmdp.FactoredMDP(
        variables=[fsmdp.Variable(f"place-{n}", 2) for n in range(places)],
        actions=["wait"],
        conditionals=[
            fsmdp.Conditional(f"place-{n}", fsmdp.Case(fsmdp.ANY, [f"place-{n}"], rise))
            for n in range(places)
        ],
        rewards=[fsmdp.Reward("free", fsmdp.Case(fsmdp.ANY, ["place-0"], [1, 0]))],
        horizon=3,
    )


fsmdp.domains.register(
    fsmdp.domains.Domain(
        "queue", queue, "places", {"places": WHOLE}, positional=1, environment="own/Queue-v0"
    )
)
BASES.register("first", lambda model: fsmdp.Basis.singles(model))
"""

SWEEP = """
name = "own"
episodes = 3
models = [{ model = "queue:2", basis = "first" }]
learners = [{ learner = "psrl", basis = "first" }, { learner = "random" }]
"""


@pytest.fixture
def own_package(tmp_path, monkeypatch):
    """A package of a user's, installed: a module, and metadata that names it."""
    (tmp_path / "own_queue.py").write_text(OWN)
    metadata = tmp_path / "own_queue-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: own-queue\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[fsmdp]\nown = own_queue\n")
    paths = [str(tmp_path), *filter(None, sys.path)]
    monkeypatch.setenv("PYTHONPATH", ":".join(dict.fromkeys(paths)))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def fsmdp_command(*arguments):
    command = [sys.executable, "-m", "fsmdp", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_an_installed_package_adds_to_the_command_line_and_to_worker_processes(own_package):
    (own_package / "own.toml").write_text(SWEEP)
    done = fsmdp_command("compare", "own.toml", "--json", "--workers", "1")
    assert done.returncode == 0, done.stderr
    assert [row["done"] for row in json.loads(done.stdout)["rows"]] == [1, 1]
    assert "first" in fsmdp_command("simulate", "--help").stdout
    made = "import gymnasium, fsmdp; print(gymnasium.make('own/Queue-v0', places=4).action_space)"
    done = subprocess.run([sys.executable, "-c", made], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "Discrete(1)"


def test_a_package_that_cannot_be_imported_is_named(own_package):
    (own_package / "own_queue.py").write_text("import no_such_module")
    done = fsmdp_command("inspect", "queue:2")
    assert done.returncode == 2
    assert "package 'own-queue': cannot import 'own_queue'" in done.stderr
    assert "Traceback" not in done.stderr
    assert fsmdp_command("simulate", "sysadmin:3", "--episodes", "2").returncode == 0


@pytest.mark.parametrize("registry", [DOMAINS, BASES, EXECUTORS, CHARTS], ids=lambda r: r.kind)
def test_a_name_that_is_not_registered_is_answered_with_those_that_are(registry):
    first = next(iter(registry))
    with pytest.raises(ModelError, match=f"unknown {registry.kind} '{first}x'; did you mean"):
        registry.find(f"{first}x")
    with pytest.raises(ModelError) as caught:
        registry.find("???")
    assert all(name in str(caught.value) for name in registry)
    with pytest.raises(ModelError, match="is registered already; choose another name"):
        registry.register(first, registry[first])


@pytest.mark.parametrize("name", ["", "two words", "a:b", "-x", "é", None, 3])
def test_names_that_could_not_be_typed_are_refused(name):
    with pytest.raises(ModelError, match="expected a name of letters"):
        Registry("thing").register(name, object())


def test_a_name_is_replaced_only_when_asked():
    things = Registry("thing")
    things.register("one", 1)
    things.register("one", 2, replace=True)
    assert dict(things) == {"one": 2}


def test_entries_that_stand_elsewhere_are_imported_when_they_are_asked_for():
    things = Registry("thing", import_paths={"pi": "math:pi", "gone": "no_such_module:thing"})
    things.register("mine", 1)
    assert list(things) == ["pi", "gone", "mine"]
    assert len(things) == 3
    assert "gone" in things
    assert things["pi"] == things.find("pi") == math.pi
    with pytest.raises(ModuleNotFoundError):
        things["gone"]
    with pytest.raises(ModelError, match="'gone' is registered already"):
        things.register("gone", 3)
    things.register("gone", 3, replace=True)
    assert dict(things) == {"pi": math.pi, "gone": 3, "mine": 1}


@pytest.mark.parametrize(
    ("command", "word"),
    [
        ("plan", "METHODS"),
        ("plan", "BASES"),
        ("simulate", "BASES"),
        ("learn", "LEARNERS"),
        ("learn", "BASES"),
        ("compare", "EXECUTORS"),
        ("reproduce", "CLAIMS"),
    ],
)
def test_help_lists_what_is_registered(command, word):
    shown = CliRunner().invoke(entry.app, [command, "--help"], env={"COLUMNS": "300"}).output
    assert lists.listed(lists.LISTS[word]()) in shown
    assert word not in shown


def test_an_executor_of_one_s_own_is_chosen_by_its_name(monkeypatch):
    made = []
    monkeypatch.setattr(EXECUTORS, "_entries", dict(EXECUTORS))
    EXECUTORS.register("mine", lambda workers, address: made.append((workers, address)))
    choose_executor("mine", 3, "here")
    assert made == [(3, "here")]
