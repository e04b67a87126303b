"""What a worker does: one run, from a small setting to its facts and frames."""

from __future__ import annotations

import mmap
import struct
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from fsmdp.errors import FsmdpError, SizeError
from fsmdp.experiments.folder import ModelSource, is_held_as
from fsmdp.experiments.learners import Simulator, build_learner
from fsmdp.experiments.specification import RunSetting
from fsmdp.experiments.store import (
    EPISODE_COLUMNS,
    TIMING_COLUMNS,
    Run,
    RunFiles,
    RunStatus,
    Store,
    select,
    source_of,
    versions,
)
from fsmdp.foundation.threads import is_shortage

if TYPE_CHECKING:
    from fsmdp.learning.run import Watch
    from fsmdp.model.basis import Basis
    from fsmdp.model.mdp import FactoredMDP
    from fsmdp.model.tables import Floats


ENTRY = struct.Struct("=qd")


class Seen(NamedTuple):
    """How far a run is: episodes done, and the sum of their returns."""

    episodes: int = 0
    total: float = 0.0


class Board:
    """A file of two numbers for each run, mapped into memory; never needed for a result."""

    def __init__(self, path: Path, entries: int) -> None:
        self.path = path
        self.entries = entries
        path.write_bytes(bytes(ENTRY.size * entries))

    def read(self) -> list[Seen]:
        """All entries as they stand."""
        content = self.path.read_bytes()
        return [Seen(*ENTRY.unpack_from(content, ENTRY.size * at)) for at in range(self.entries)]

    def place(self, position: int) -> Place:
        """Where a child of this process reports a run."""
        # In full, since workers may have been started from another folder.
        return Place(str(self.path.resolve()), position)


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """One entry of a board."""

    path: str
    position: int

    def reporter(self) -> Watch:
        """A watch for `learn` that writes to the board."""
        with Path(self.path).open("r+b") as file:
            numbers = mmap.mmap(file.fileno(), 0)

        def report(returns: Floats) -> None:
            ENTRY.pack_into(numbers, ENTRY.size * self.position, len(returns), float(returns.sum()))

        return report


@dataclass(frozen=True, slots=True, eq=False)
class RunTask:
    """A run on its way to a worker.

    `folder` and `token` are those of the driver's lock: a worker that finds the token there shares
    the driver's file system and writes checkpoints beside the results; any other writes none.
    `board` is there for workers that are children of the driver.
    """

    setting: RunSetting
    source: ModelSource
    start_value: float | None
    folder: str
    token: str
    board: Place | None = None


def execute(task: RunTask) -> RunFiles:
    """Do a run, or go on with it from its checkpoint. A failure is a result like any other."""
    checkpoint = None
    if is_held_as(Path(task.folder), task.token):
        checkpoint = Store(task.folder).checkpoint(task.setting.id)
    watch = None if task.board is None else task.board.reporter()
    try:
        model, basis = task.source.load()
        start_value = task.start_value
        run = carry_out(task.setting, task.source, model, basis, start_value, checkpoint, watch)
        return RunFiles.of(run)
    except Exception as error:
        return failed(task.setting, task.source, error)


def carry_out(
    setting: RunSetting,
    source: ModelSource,
    model: FactoredMDP | Simulator,
    basis: Basis | None,
    start_value: float | None,
    checkpoint: Path | None,
    watch: Watch | None = None,
) -> Run:
    """Do a run on the model of its source, whatever comes of it: errors are the caller's."""
    from fsmdp.learning.run import learn

    learner = build_learner(
        setting.learner.learner, model, basis, setting.learner.options, setting.seed
    )
    history = learn(
        model.environment if isinstance(model, Simulator) else model,
        learner,
        setting.episodes,
        setting.seed,
        checkpoint=checkpoint,
        checkpoint_every=setting.checkpoint_every,
        watch=watch,
    )
    planning = float(history.seconds_planning.sum())
    facts = _facts(setting, source) | {
        "heuristic": bool(history.heuristic),
        "status": str(RunStatus.DONE),
        "describe": history.learner,
        "seconds_planning": planning,
        "seconds": planning + float(history.seconds_acting.sum()),
    }
    # Learners that claim nothing log NaN, which other readers of Parquet take for a number.
    frame = history.frame(start_value).fill_nan(None)
    return Run.of(facts, *(select(frame, columns) for columns in (EPISODE_COLUMNS, TIMING_COLUMNS)))


def failed(setting: RunSetting, source: ModelSource, error: Exception) -> RunFiles:
    """What a run leaves behind that could not be done."""
    if is_shortage(error):
        error = SizeError("there was not enough memory for this run; use fewer workers, or less.")
    on_purpose = isinstance(error, FsmdpError)
    facts = _facts(setting, source) | {
        "message": str(error) if on_purpose else f"{type(error).__name__}: {error}",
        "traceback": None if on_purpose else "".join(traceback.format_exception(error)),
    }
    return RunFiles(facts)


def _facts(setting: RunSetting, source: ModelSource) -> dict[str, Any]:
    """What is known of a run before it ends well."""
    return {
        "id": setting.id,
        "model": setting.model.id,
        "learner": setting.learner.id,
        "label": setting.learner.label,
        "seed": setting.seed,
        "source": source_of(setting),
        "document_sha256": source.sha256,
        "episodes": setting.episodes,
        "heuristic": False,
        "status": str(RunStatus.FAILED),
        "message": None,
        "options": dict(setting.learner.options),
        "describe": "",
        "seconds_planning": 0.0,
        "seconds": 0.0,
        "versions": versions(),
    }
