"""A reader of one's own: models written as grids of characters, one file and one registration."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import fsmdp
from fsmdp.cli.entry import app
from fsmdp.io.readers import READERS, Reader, complete_model, read_model


def read_corridor(text):
    """A file such as `..$..`: walk left or right, and earn 1 in each step at the dollar."""
    cells = Path(text).read_text().strip()
    places = len(cells)
    moved = {
        name: np.eye(places)[np.clip(np.arange(places) + by, 0, places - 1)]
        for name, by in (("left", -1), ("right", 1))
    }
    return fsmdp.FactoredMDP(
        variables=[fsmdp.Variable("place", places)],
        actions=list(moved),
        conditionals=[
            fsmdp.Conditional(
                "place", [fsmdp.Case([name], ["place"], table) for name, table in moved.items()]
            )
        ],
        rewards=[
            fsmdp.Reward(
                "found", fsmdp.Case(fsmdp.ANY, ["place"], [float(one == "$") for one in cells])
            )
        ],
        horizon=5,
        initial={"place": 0},
    )


@pytest.fixture
def corridor(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hall.corridor").write_text("..$..\n")
    READERS.add(
        Reader(
            "corridor",
            lambda text: text.endswith(".corridor"),
            read_corridor,
            lambda _: (path.name for path in tmp_path.glob("*.corridor")),
            usage="FILE.corridor, a line of cells",
        )
    )
    yield "hall.corridor"
    READERS.remove("corridor")


def test_every_command_reads_the_new_format(corridor, tmp_path):
    assert fsmdp.solve_exactly(read_model(corridor)).start_value == pytest.approx(2.0)

    def command(*arguments):
        done = CliRunner().invoke(app, [*arguments, "--json"])
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    plan = str(tmp_path / "plan.npz")
    assert command("plan", corridor, "--output", plan)["upper_bound"] == pytest.approx(2.0)
    assert command("verify", corridor, plan)["proved"] is True
    assert command("inspect", corridor)["variables"] == 1
    assert command("learn", corridor, "--episodes", "3")["start_value_exact"] == pytest.approx(2.0)
    (tmp_path / "sweep.toml").write_text(
        'name = "hall"\nepisodes = 3\nmodels = [{ model = "hall.corridor" }]\n'
        'learners = [{ learner = "random" }]\n'
    )
    assert command("compare", "sweep.toml", "--workers", "1")["rows"][0]["done"] == 1


def test_the_new_format_is_listed(corridor):
    shown = CliRunner().invoke(app, ["inspect", "--list"], env={"COLUMNS": "200"}).output
    assert "FILE.corridor, a line of cells" in shown
    assert "plan-file" not in shown  # it only refuses


def test_shells_complete_the_new_format(corridor):
    assert complete_model("hall") == [corridor]


def test_without_the_reader_the_text_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(fsmdp.ModelError, match="unknown domain"):
        read_model("hall.corridor")
