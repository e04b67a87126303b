"""The loop of learning: plan, follow the plan, count, and plan again when it is due."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import as_whole
from fsmdp.foundation.disk import check_path
from fsmdp.foundation.progress import Report, reporting
from fsmdp.foundation.streams import Purpose, generator
from fsmdp.learning.cells.kernel import Logs
from fsmdp.learning.cells.statistics import Statistics
from fsmdp.learning.checkpoint import (
    check_series,
    identify,
    one,
    planned_from_arrays,
    planned_to_arrays,
    read_checkpoint,
    take,
    under_prefix,
    with_prefix,
    write_checkpoint,
)
from fsmdp.learning.environments import EpisodeRunner, Source, open_runner
from fsmdp.learning.history import SERIES, History
from fsmdp.learning.learners.learner import Learner, Planned, check_learner, check_planned
from fsmdp.learning.options import as_seed
from fsmdp.model.tables import Floats

MOST_EPISODES = 10**9
Watch = Callable[[Floats], None]
"""Called with the returns of the episodes done."""

BATCH = 10_000
"""Most episodes between two reports of progress."""


def learn(
    environment: Source,
    learner: Learner,
    episodes: int,
    seed: int = 0,
    *,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: int = 100,
    progress: bool | Report | None = None,
    watch: Watch | None = None,
) -> History:
    """Let a learner live through episodes of a FactoredMDP or a Gymnasium environment.

    `seed` draws the episodes; what the learner draws depends on its own seed. A model and its
    environment give the same counts. A learner that has already learnt goes on from what it knows;
    the history is that of this call.

    With `checkpoint` everything is written to that file every `checkpoint_every` episodes and at
    the end. If the file exists, the run goes on from it (with a fresh learner of the same options)
    and ends with the same history, bit for bit, as if it had never stopped; seconds excepted.

    `progress`: True shows a bar once it takes longer than two seconds; a function is called with
    the episodes done and their number in all. `watch` is called with the returns so far.
    """
    episodes = as_whole(episodes, "episodes", 1, MOST_EPISODES)
    checkpoint_every = as_whole(checkpoint_every, "checkpoint_every", 1)
    check_learner(learner)
    rng = generator(as_seed(seed), Purpose.LEARNING)
    run = _Run(open_runner(environment, learner, rng), learner, episodes, seed)
    path = None if checkpoint is None else check_path(checkpoint)
    if path is not None and path.exists():
        run.resume(path)
    with reporting(progress, "learning", episodes) as report:
        while run.done < episodes:
            last = min(episodes, run.done + BATCH)
            if path is not None:
                last = min(last, (run.done // checkpoint_every + 1) * checkpoint_every)
            run.advance(last)
            if path is not None and (run.done % checkpoint_every == 0 or run.done == episodes):
                run.write(path)
            if report is not None:
                report(run.done, episodes)
            if watch is not None:
                watch(run.series["returns"][: run.done])
    return run.history()


class _Run:
    """A run in progress: how far it is, what is being followed, and what was logged."""

    def __init__(self, runner: EpisodeRunner, learner: Learner, episodes: int, seed: int) -> None:
        self.runner, self.learner = runner, learner
        self.done = 0
        self.planned: Planned | None = None
        self.due = True
        self.series: dict[str, Any] = {name: np.zeros(episodes) for name in SERIES}
        self.series["replans"] = np.zeros(episodes, dtype=np.bool_)
        self.logs = Logs(**{name: self.series[name] for name in Logs._fields})
        self.most = learner.structure.largest_return
        self.identity = {"seed": str(seed), "environment": runner.identity()} | identify(learner)

    def advance(self, last: int) -> None:
        """Plan if it is due, then run episodes until the next plan is."""
        series, began = self.series, time.perf_counter()
        if self.due or self.planned is None:
            self.planned = check_planned(self.learner.replan(), self.learner)
            series["replans"][self.done] = True
            series["seconds_planning"][self.done] = time.perf_counter() - began
        planned, began = self.planned, time.perf_counter()
        reached, self.due = self.runner.run(planned.acting, self.logs, self.done, last)
        ran = slice(self.done, reached)
        series["seconds_acting"][ran] = (time.perf_counter() - began) / (reached - self.done)
        values = series["optimistic_values"]
        values[ran] = np.minimum(values[ran], self.most)  # still above V*, and NaN stays NaN
        series["lifts"][ran] = planned.lift
        series["w_norms"][ran] = planned.w_norm
        self.done = reached

    def write(self, path: Path) -> None:
        """Everything that the episodes to come depend on, and those that were."""
        assert self.planned is not None
        write_checkpoint(
            path,
            self.identity,
            with_prefix("statistics", self.learner.statistics.arrays())
            | with_prefix("learner", self.learner.state())
            | with_prefix("planned", planned_to_arrays(self.planned))
            | with_prefix("series", {n: s[: self.done] for n, s in self.series.items()})
            | {
                "done": np.array(self.done),
                "due": np.array(self.due),
                "environment": np.array(json.dumps(self.runner.random_state())),
            },
        )

    def resume(self, path: Path) -> None:
        """Take up a run that was written."""
        learner = self.learner
        arrays = read_checkpoint(path, self.identity)
        if learner.statistics.episodes:
            raise ModelError(
                f"checkpoint {path}: the learner has already seen {learner.statistics.episodes} "
                "episodes; resume with a fresh one."
            )
        done = take(path, lambda: as_whole(one(arrays, "done", np.int64), "done", 1))
        if done > len(self.series["returns"]):
            raise ModelError(
                f"checkpoint {path} already holds {done} episodes, asked for "
                f"{len(self.series['returns'])}; ask for at least as many."
            )
        statistics = take(path, lambda: Statistics.from_arrays(under_prefix("statistics", arrays)))
        take(path, lambda: statistics.check_fit(learner.cells))
        take(path, lambda: statistics.check_counts(learner.cells, done))
        planned = take(
            path, lambda: planned_from_arrays(under_prefix("planned", arrays), learner.structure)
        )
        self.planned = take(path, lambda: check_planned(planned, learner))
        series = under_prefix("series", arrays)
        take(path, lambda: check_series(series, done, planned))
        for name, values in self.series.items():
            values[:done] = series[name]
        take(path, lambda: learner.restore(under_prefix("learner", arrays)))
        take(
            path,
            lambda: self.runner.set_random_state(json.loads(one(arrays, "environment", np.str_))),
        )
        self.due = take(path, lambda: one(arrays, "due", np.bool_))
        self.done, learner.statistics = done, statistics

    def history(self) -> History:
        """What happened."""
        learner = self.learner
        return History(
            structure=learner.structure,
            learner=f"{learner.name}({learner.describe()})",
            heuristic=learner.heuristic,
            optimistic=bool(learner.optimistic),
            cells=learner.cells,
            statistics=learner.statistics + Statistics.empty(learner.cells),  # a copy
            **self.series,
        )
