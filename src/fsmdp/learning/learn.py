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
from fsmdp.learning.acting import Learner, Logs, Planned
from fsmdp.learning.checkpoint import (
    planned_from_arrays,
    planned_to_arrays,
    read_arrays,
    under_prefix,
    with_prefix,
    write_arrays,
)
from fsmdp.learning.history import SERIES, History
from fsmdp.learning.statistics import Statistics
from fsmdp.learning.worlds import World, open_world
from fsmdp.model.tables import Floats

Progress = Callable[[int, int], None]
"""Called with the number of episodes done and the number in all."""

Watch = Callable[[Floats], None]
"""Called with the returns of the episodes done."""

BATCH = 10_000
"""Most episodes between two reports of progress."""


def learn(
    world: Any,
    learner: Learner,
    episodes: int,
    seed: int = 0,
    *,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: int = 100,
    progress: Progress | None = None,
    watch: Watch | None = None,
) -> History:
    """Let a learner live through episodes of a FactoredMDP or a Gymnasium environment.

    `seed` draws the episodes; what the learner draws depends on its own seed. A model and its
    environment give the same counts. A learner that has already learnt goes on from what it knows;
    the history is that of this call.

    With `checkpoint` everything is written to that file every `checkpoint_every` episodes and at
    the end. If the file exists, the run goes on from it (with a fresh learner of the same options)
    and ends with the same history, bit for bit, as if it had never stopped; seconds excepted.
    """
    if episodes < 1:
        raise ModelError(f"episodes: expected at least 1, found {episodes}.")
    if checkpoint_every < 1:
        raise ModelError(f"checkpoint_every: expected at least 1, found {checkpoint_every}.")
    env_rng, _ = np.random.default_rng(seed).spawn(2)
    run = _Run(open_world(world, learner, env_rng), learner, episodes, seed)
    path = None if checkpoint is None else Path(checkpoint)
    if path is not None and path.exists():
        run.resume(path)
    while run.done < episodes:
        last = min(episodes, run.done + BATCH)
        if path is not None:
            last = min(last, (run.done // checkpoint_every + 1) * checkpoint_every)
        run.advance(last)
        if path is not None and (run.done % checkpoint_every == 0 or run.done == episodes):
            run.write(path)
        if progress is not None:
            progress(run.done, episodes)
        if watch is not None:
            watch(run.series["returns"][: run.done])
    return run.history()


class _Run:
    """A run in progress: how far it is, what is being followed, and what was logged."""

    def __init__(self, world: World, learner: Learner, episodes: int, seed: int) -> None:
        self.world, self.learner = world, learner
        self.done = 0
        self.planned: Planned | None = None
        self.due = True
        self.series: dict[str, Any] = {name: np.zeros(episodes) for name in SERIES}
        self.series["replans"] = np.zeros(episodes, dtype=np.bool_)
        self.logs = Logs(**{name: self.series[name] for name in Logs._fields})
        self.identity = f"seed {seed}, {_options(learner)}, {learner.structure!r}"

    def advance(self, last: int) -> None:
        """Plan if it is due, then run episodes until the next plan is."""
        series, began = self.series, time.perf_counter()
        if self.due or self.planned is None:
            self.planned = self.learner.replan()
            series["replans"][self.done] = True
            series["seconds_planning"][self.done] = time.perf_counter() - began
        planned, began = self.planned, time.perf_counter()
        reached, self.due = self.world.run(planned.acting, self.logs, self.done, last)
        ran = slice(self.done, reached)
        series["seconds_acting"][ran] = (time.perf_counter() - began) / (reached - self.done)
        series["lifts"][ran] = planned.lift
        series["w_norms"][ran] = planned.w_norm
        self.done = reached

    def write(self, path: Path) -> None:
        """Everything that the episodes to come depend on, and those that were."""
        assert self.planned is not None
        write_arrays(
            path,
            with_prefix("statistics", self.learner.statistics.arrays())
            | with_prefix("learner", self.learner.state())
            | with_prefix("planned", planned_to_arrays(self.planned))
            | with_prefix("series", {n: s[: self.done] for n, s in self.series.items()})
            | {
                "identity": np.array(self.identity),
                "done": np.array(self.done),
                "due": np.array(self.due),
                "world": np.array(json.dumps(self.world.random_state())),
            },
        )

    def resume(self, path: Path) -> None:
        """Take up a run that was written."""
        arrays = read_arrays(path)
        if str(arrays["identity"]) != self.identity:
            raise ModelError(
                f"checkpoint {path} is of another run ({arrays['identity']}), this one is "
                f"{self.identity}; use another file, or remove it."
            )
        if self.learner.statistics.episodes:
            raise ModelError(
                f"checkpoint {path}: the learner has already seen "
                f"{self.learner.statistics.episodes} episodes; resume with a fresh one."
            )
        self.done = min(int(arrays["done"]), len(self.series["returns"]))
        if self.done < int(arrays["done"]):
            raise ModelError(
                f"checkpoint {path} already holds {int(arrays['done'])} episodes; ask for at least "
                "as many."
            )
        for name, values in under_prefix("series", arrays).items():
            self.series[name][: self.done] = values
        self.due = bool(arrays["due"])
        self.planned = planned_from_arrays(under_prefix("planned", arrays))
        self.learner.statistics = Statistics.from_arrays(under_prefix("statistics", arrays))
        self.learner.restore(under_prefix("learner", arrays))
        self.world.set_random_state(json.loads(str(arrays["world"])))

    def history(self) -> History:
        """What happened."""
        learner = self.learner
        return History(
            structure=learner.structure,
            learner=_options(learner),
            heuristic=learner.heuristic,
            **self.series,
        )


def _options(learner: Learner) -> str:
    return f"{learner.name}({learner.describe()})"
