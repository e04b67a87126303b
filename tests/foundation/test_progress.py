"""Progress of long work, on a terminal, in a notebook, and told to a function."""

import io
import re
import sys
import tempfile
import time
import types
import warnings

import pytest
from tests.experiments.sweeps import Here

import fsmdp
from fsmdp.foundation import progress
from fsmdp.solver.plan import METHODS

RING = fsmdp.domains.sysadmin(4)
LEARNER = fsmdp.RandomLearner(RING.structure(fsmdp.Basis.singles(RING)))


class Terminal(io.StringIO):
    def isatty(self):
        return True


def terminal(monkeypatch, patience=0.0):
    """An error stream that is a terminal; called in a test, since pytest sets its own before."""
    found = Terminal()
    monkeypatch.setattr(sys, "stderr", found)
    monkeypatch.setattr(progress, "PATIENCE", patience)
    monkeypatch.setenv("TERM", "xterm")
    return found


class Cell:
    """What a notebook's cell shows, one text after the other."""

    def __init__(self):
        self.shown = []

    def display(self, page, display_id):
        assert display_id
        self.shown.append(page)
        return types.SimpleNamespace(update=self.shown.append)


@pytest.fixture
def cell(monkeypatch):
    found = Cell()
    display = types.ModuleType("IPython.display")
    display.HTML, display.display = str, found.display
    for name in ("ipykernel", "IPython"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setattr(progress, "BETWEEN_UPDATES", 0.0)
    return found


def patient(state, step):
    time.sleep(0.001)
    return "wait"


LONG = {
    "simulating": lambda progress=True: fsmdp.rollout(RING, patient, 20, progress=progress),
    "learning": lambda: fsmdp.learn(fsmdp.make_env(RING), LEARNER, episodes=300, progress=True),
    "planning": lambda: fsmdp.plan(RING, time_limit=5, progress=True),
    "4 runs": lambda: fsmdp.compare(
        RING,
        ["random", "psrl"],
        seeds=2,
        episodes=20,
        output=tempfile.mkdtemp(),
        executor=Here(),
        progress=True,
    ),
}


@pytest.mark.parametrize("what", LONG)
def test_a_terminal_shows_a_bar(what, monkeypatch):
    screen = terminal(monkeypatch)
    LONG[what]()
    assert what in screen.getvalue()


@pytest.mark.parametrize("what", LONG)
def test_a_notebook_shows_a_bar_and_takes_it_away(what, cell):
    LONG[what]()
    assert what in cell.shown[0]
    assert "<progress" in cell.shown[0]
    assert cell.shown[-1] == ""


@pytest.mark.parametrize("method", METHODS)
def test_every_method_shows_a_bar_with_the_time(method, monkeypatch):
    screen = terminal(monkeypatch)
    small = fsmdp.domains.sysadmin(2, horizon=2)  # an ellipsoid takes long
    fsmdp.plan(small, fsmdp.Basis.singles(small), method, progress=True)
    assert "planning" in screen.getvalue()
    assert "0:00:0" in screen.getvalue()


def test_a_function_is_refused_where_there_is_no_log_to_call_it_with():
    with pytest.raises(fsmdp.ModelError, match="progress: Programs keeps no log"):
        fsmdp.plan(RING, method="programs", progress=print)


def test_a_notebook_shows_the_time_of_work_that_says_nothing(cell, monkeypatch):
    monkeypatch.setattr(progress, "BETWEEN_LOOKS", 0.01)
    with progress.bar("thinking", None):
        time.sleep(0.2)
    assert "thinking" in cell.shown[0]
    assert cell.shown[-1] == ""


def test_a_narrow_terminal_cuts_the_note_and_keeps_bar_and_time(monkeypatch):
    screen = terminal(monkeypatch)
    monkeypatch.setenv("COLUMNS", "80")
    with progress.bar("planning, at most 60 s", None) as update:
        update(0, "gap 12.3 %, policy 1234.56, bound 1406.78; " + "a long way to a policy " * 5)
        time.sleep(0.3)
    shown = next(
        line
        for line in re.sub(r"\x1b\[[^a-zA-Z]*[a-zA-Z]", "", screen.getvalue())
        .replace("\r", "\n")
        .splitlines()
        if "gap" in line
    )
    assert len(shown) <= 80
    assert shown.count("━") == 20
    assert "0:00:0" in shown
    assert "gap 12.3 %, policy 1234.5" in shown


def test_a_notebook_counts_and_escapes():
    bar = progress.NotebookBar("a<b", 10, "episodes")
    assert bar.html(5, "x&y", 3.2) == (
        '<div>a&lt;b <progress value="5" max="10"></progress> 5/10 episodes, 3 s x&amp;y</div>'
    )
    assert "<progress></progress> 3 s" in progress.NotebookBar("a", None, "").html(5, "", 3.2)


def test_what_is_over_soon_shows_nothing(monkeypatch):
    screen = terminal(monkeypatch, patience=60.0)
    began = time.perf_counter()
    fsmdp.rollout(RING, "random", progress=True)
    assert screen.getvalue() == ""
    assert time.perf_counter() - began < 30


def test_nothing_is_shown_unless_asked_or_without_a_terminal(monkeypatch):
    screen = terminal(monkeypatch)
    LONG["simulating"](progress=False)
    assert screen.getvalue() == ""
    plain = io.StringIO()
    monkeypatch.setattr(sys, "stderr", plain)
    LONG["simulating"]()
    assert plain.getvalue() == ""


def test_a_function_is_called_with_lines_of_the_log():
    seen, told = [], []
    found = fsmdp.plan(RING, progress=seen.append, callback=told.append)
    assert seen == told
    assert seen[-1].upper_bound == found.upper_bound


def test_loading_tells_what_it_is_doing(tmp_path):
    fsmdp.save(RING, tmp_path / "ring.json")
    assert fsmdp.load(tmp_path / "ring.json", progress=True).horizon == RING.horizon
    pytest.importorskip("pyRDDLGym")
    lines = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fsmdp.rddl.load("SysAdmin_MDP_ippc2011", 1, cache=False, progress=lines.append)
    assert any("parsing" in line for line in lines)


@pytest.mark.parametrize("wrong", [3, "yes", int])
def test_anything_else_is_refused(wrong):
    with pytest.raises(fsmdp.ModelError, match="progress: expected True or a function"):
        fsmdp.rollout(RING, "random", progress=wrong)
    with pytest.raises(fsmdp.ModelError, match="progress: expected True or a function"):
        fsmdp.plan(RING, progress=wrong)
    with pytest.raises(fsmdp.ModelError, match="progress: expected True or a function"):
        fsmdp.compare(RING, "random", progress=wrong)
