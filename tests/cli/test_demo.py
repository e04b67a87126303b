"""The demo, in a small form."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fsmdp.cli import entry
from fsmdp.cli.demo import _best_values, _progress
from fsmdp.experiments.runner import Seen

SMALL = ("--machines", "3", "--large", "14", "--episodes", "20", "--workers", "1", "--seeds", "2")


@pytest.fixture(autouse=True)
def hurried(monkeypatch, in_this_process):
    monkeypatch.setattr("fsmdp.cli.demo.PLAN_SECONDS", 1.0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return str(tmp_path_factory.mktemp("demo") / "runs")


def run(*arguments):
    return CliRunner().invoke(entry.app, ["demo", *SMALL, *arguments])


def test_the_demo_ends_with_a_table_and_the_path_of_a_report(folder):
    done = run("--output", folder)
    assert done.exit_code == 0, done.output
    for words in ("ring 3", "ring 14", "UCRL-Factored", "PSRL-Factored", "refused"):
        assert words in done.output
    assert done.output.strip().endswith("report.html")


def test_the_same_demo_again_has_only_the_report_to_write(folder):
    found = json.loads(run("--output", folder, "--json").output)
    assert found["seed"] == 0
    assert found["models"] == ["sysadmin:ring:3", "sysadmin:ring:14"]
    rows = {(row["model"], row["learner"]): row for row in found["rows"]}
    assert all(row["regret_half_width"] is not None for row in rows.values() if row["regret"])
    assert len(rows) == 8
    small, large = "sysadmin:ring:3", "sysadmin:ring:14"
    assert rows[small, "UCRL-Factored"]["regret_is_bound"] is False
    assert rows[large, "UCRL-Factored"]["regret_is_bound"] is True
    assert rows[large, "UCRL-Factored"]["regret"] > 0
    refused = rows[large, "tabular PSRL"]
    assert refused["regret"] is None
    assert "states" in refused["message"]
    assert "tabular PSRL" in Path(found["report"]).read_text("utf-8")


def test_regret_so_far_is_shown_where_the_best_value_is_known():
    best = _best_values(3, 1)
    assert len(best) == 8
    notes = _progress([9.0, None, 9.0], [Seen(10, 80.0), Seen(10, 80.0), Seen(0, 0.0)])
    assert notes == [(10, "regret 10.0"), (10, "mean return 8.000"), (0, "")]
