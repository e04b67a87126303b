"""An executor and a figure of one's own: one class, one function, and a line for each."""

from typing import ClassVar

import numpy as np
import pytest

import fsmdp
from fsmdp.experiments.executors import EXECUTORS
from fsmdp.report import write_report
from fsmdp.report.charts import Chart, Line, Panel
from fsmdp.report.curves import CHARTS


class Backwards:
    """Carries runs out in this process, the last one first."""

    name = "backwards"
    children = False
    order: ClassVar[list[int]] = []

    def __init__(self, workers, address=None):
        self.workers = 1

    def run(self, function, tasks):
        for position in reversed(range(len(tasks))):
            self.order.append(position)
            yield position, function(tasks[position])

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass


def best_so_far(trials, facts):
    """The highest return up to each episode, as a mean over seeds."""
    lines = [
        Line(
            one.label,
            np.arange(1.0, one.n_episodes + 1),
            np.maximum.accumulate(one.required("returns"), axis=1).mean(axis=0),
            one.learner,
        )
        for one in trials
    ]
    return Chart("best-so-far", "Best return so far", "By episode.", (Panel("return", lines),))


@pytest.fixture
def registered():
    EXECUTORS.register("backwards", Backwards)
    CHARTS.register("best-so-far", best_so_far)
    Backwards.order.clear()
    yield
    EXECUTORS.remove("backwards")
    CHARTS.remove("best-so-far")


def sweep(folder, executor):
    learners = [{"learner": "psrl", "known_rewards": True}, {"learner": "random"}]
    return fsmdp.compare(
        "sysadmin:ring:3", learners, seeds=2, episodes=10, output=folder, executor=executor
    )


def test_the_executor_carries_runs_out_and_changes_no_result(registered, tmp_path):
    mine = sweep(tmp_path / "mine", "backwards")
    usual = sweep(tmp_path / "usual", "local")
    assert Backwards.order[-4:] == [3, 2, 1, 0]
    for one, other in zip(mine.runs, usual.runs, strict=True):
        assert one.id == other.id
        assert one.episodes.equals(other.episodes)


def test_the_figure_is_on_the_page_and_among_the_pictures(registered, tmp_path):
    results = sweep(tmp_path / "runs", "backwards")
    report = write_report(results, tmp_path / "page")
    assert "Best return so far" in report.path.read_text(encoding="utf-8")
    assert list((tmp_path / "page").rglob("*best-so-far*.svg"))


def test_a_figure_that_fails_is_left_out_and_named(registered, tmp_path):
    results = sweep(tmp_path / "runs", "backwards")
    CHARTS.register("odd", lambda trials, facts: 1 / 0)
    try:
        with pytest.warns(fsmdp.FsmdpWarning, match="figure 'odd' is left out: ZeroDivisionError"):
            report = write_report(results, tmp_path / "page", figures=False)
    finally:
        CHARTS.remove("odd")
    assert "Best return so far" in report.path.read_text(encoding="utf-8")
