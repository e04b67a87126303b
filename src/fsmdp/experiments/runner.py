"""`compare`: do what is missing of a sweep, and keep it.

A worker does one run, from a small setting to its facts and frames; the driver hands out runs.
"""

from __future__ import annotations

import mmap
import os
import struct
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from fsmdp.errors import ExperimentError, FsmdpError, SizeError
from fsmdp.experiments.executors import Executor, choose_executor
from fsmdp.experiments.folder import (
    FactsTask,
    ModelSource,
    OpenFolder,
    describe_model,
    facts_of_model,
    find_source,
    is_held_as,
    load_setting,
    open_folder,
    source_of_model,
)
from fsmdp.experiments.learners import Simulator, build_learner
from fsmdp.experiments.specification import RunSetting, Specification, safe_name
from fsmdp.experiments.store import (
    EPISODE_COLUMNS,
    TIMING_COLUMNS,
    ModelFacts,
    Results,
    Run,
    RunFiles,
    RunStatus,
    Store,
    read_results,
    select,
    source_of,
    versions,
)
from fsmdp.foundation.checks import plural
from fsmdp.foundation.progress import bar, check_progress
from fsmdp.foundation.threads import is_shortage
from fsmdp.model.tables import Floats

if TYPE_CHECKING:
    from fsmdp.learning.run import Watch
    from fsmdp.model.basis import Basis
    from fsmdp.model.mdp import FactoredMDP

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


Progress = Callable[[Sequence[Seen]], None]
"""Called with how far each run is, in the order of the specification's runs."""

BOARD = ".progress"
SECONDS_BETWEEN_LOOKS = 0.2


def compare(
    specification: Specification,
    folder: str | os.PathLike[str],
    executor: str | Executor = "local",
    workers: int = 2,
    *,
    address: str | None = None,
    text: str | None = None,
    progress: bool | Progress | None = None,
) -> Results:
    """Do the runs of a specification that a folder does not hold yet; failed ones are tried again.

    A process that is killed loses at most the episodes since the last checkpoints; the next call
    goes on from there and ends with the same episodes, byte for byte, whichever the executor.
    A run that fails is kept as failed, with its message, and the others go on.
    `executor` is the name of a registered one ("ray" and "dask" join a cluster at an `address`, or
    else start one on this machine), or an executor that is open. `text` is what the user wrote,
    kept beside the results. `progress=True` shows a bar over the episodes of all runs; a function
    is called with how far each run is.
    """
    sources = {
        model.id: find_source(model, f"models[{position}]")
        for position, model in enumerate(specification.models)
    }
    engine = choose_executor(executor, workers, address) if isinstance(executor, str) else executor
    with (
        _shown(progress, specification) as show,
        open_folder(folder, specification, sources, engine.name, engine.workers, text) as opened,
        engine if isinstance(executor, str) else nullcontext(),
    ):
        facts = _describe(engine, specification, sources, opened.known)
        opened.store.write_models(facts)
        _run(engine, specification, sources, facts, opened, show)
    return read_results(folder)


@contextmanager
def _shown(
    progress: bool | Progress | None, specification: Specification
) -> Iterator[Progress | None]:
    """What to call with how far runs are: the caller's function, a bar, or nothing."""
    check_progress(progress, "of how far each run is")
    if progress is not True:
        yield progress or None
        return
    runs = specification.runs
    in_all = sum(run.episodes for run in runs)
    with bar(plural(len(runs), "run"), in_all, "episodes") as update:

        def show(seen: Sequence[Seen]) -> None:
            done = sum(one.episodes >= run.episodes for one, run in zip(seen, runs, strict=True))
            update(sum(one.episodes for one in seen), f"{done} of {len(runs)} runs done")

        yield show


def _describe(
    engine: Executor,
    specification: Specification,
    sources: dict[str, ModelSource],
    known: Mapping[str, ModelFacts],
) -> dict[str, ModelFacts]:
    tasks = [
        FactsTask(source, specification.episodes)
        for name, source in sources.items()
        if name not in known or not known[name].reaches(specification.episodes)
    ]
    found = dict(known)
    for position, facts in engine.run(describe_model, tasks):
        if isinstance(facts, ExperimentError):
            raise facts
        found[tasks[position].source.setting.id] = facts
    return {name: found[name] for name in sources}


def _run(
    engine: Executor,
    specification: Specification,
    sources: dict[str, ModelSource],
    facts: dict[str, ModelFacts],
    opened: OpenFolder,
    progress: Progress | None,
) -> None:
    store = opened.store
    board = Board(store.folder / BOARD, len(specification.runs))
    position_of = {run.id: position for position, run in enumerate(specification.runs)}
    todo = [run for run in specification.runs if not store.is_done(run)]
    ended = {run.id for run in specification.runs} - {run.id for run in todo}

    def task(run: RunSetting) -> RunTask:
        return RunTask(
            run,
            sources[run.model.id],
            facts[run.model.id].start_value_exact,
            str(store.folder.resolve()),
            opened.token,
            board.place(position_of[run.id]) if engine.children else None,
        )

    def look() -> None:
        if progress is not None:
            progress(
                [
                    seen._replace(episodes=run.episodes) if run.id in ended else seen
                    for run, seen in zip(specification.runs, board.read(), strict=True)
                ]
            )

    try:
        with _looking(look):
            for position, done in engine.run(execute, [task(run) for run in todo]):
                run = todo[position]
                if not isinstance(done, RunFiles):
                    done = failed(run, sources[run.model.id], done)
                store.write_run(run.id, done)
                ended.add(run.id)
        look()
    finally:
        board.path.unlink(missing_ok=True)


@contextmanager
def _looking(look: Callable[[], None]) -> Iterator[None]:
    """Look now and again from a thread of its own, since results are waited for in this one."""
    over = threading.Event()

    def keep_looking() -> None:
        while not over.wait(SECONDS_BETWEEN_LOOKS):
            look()

    thread = threading.Thread(target=keep_looking, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def default_folder(name: str) -> Path:
    """Where results go unless another folder is given."""
    return Path("runs") / safe_name(name)


WatchRun = Callable[[Floats, float | None], None]
"""Called with the returns so far, and V* where it is known."""


def learn_in_folder(
    specification: Specification, output: str | os.PathLike[str], watch: WatchRun
) -> tuple[float | None, Run]:
    """V* where it is known, and the first run of a specification; what goes wrong is raised.

    The run is kept in the folder as `compare` would keep it, checkpoint included.
    """
    setting = specification.runs[0]
    model, basis = load_setting(setting.model, "model")
    source = source_of_model(setting.model, model)
    with open_folder(output, specification, {setting.model.id: source}, "none", 1) as opened:
        store, name = opened.store, setting.model.id
        facts = opened.known.get(name)
        if facts is None or not facts.reaches(setting.episodes):
            facts = facts_of_model(source, setting.episodes, model, basis)
            store.write_models({name: facts})
        best = facts.start_value_exact
        if store.status(setting) is not RunStatus.DONE:
            path = store.checkpoint(setting.id)
            try:
                done = carry_out(
                    setting, source, model, basis, best, path, lambda seen: watch(seen, best)
                )
            except FsmdpError as error:
                store.write_run(setting.id, failed(setting, source, error))
                raise
            store.write_run(setting.id, RunFiles.of(done))
        return best, store.read_run(setting)
