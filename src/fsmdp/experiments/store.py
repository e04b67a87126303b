"""Runs on disk: one folder a sweep, one folder a run, everything written whole or not at all.

RUNS/specification.toml    what the user wrote, if anything
RUNS/specification.json    the same with every default filled in
RUNS/models.json           what is known of each model: exact value, certified bound, network
RUNS/provenance.json       what made the results, with which command
RUNS/runs/ID/run.json      how a run ended; it is written last, so the run is done if it exists
RUNS/runs/ID/episodes.parquet, timings.parquet
RUNS/runs/ID/checkpoint.npz    to go on from

JSON files hold a digest of themselves; `run.json` holds those of its run's frames too, and says
which model, learner and seed it is of: a run of another folder or another sweep is refused.
"""

from __future__ import annotations

import io
import json
import os
import platform
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from fsmdp.errors import ModelError
from fsmdp.experiments.specification import RunSetting, Specification
from fsmdp.foundation import disk
from fsmdp.foundation.checks import clip, is_number, is_whole, plural, show, show_names

if TYPE_CHECKING:
    import polars


LARGEST_JSON = 2**28
LARGEST_FRAME = 2**32

SPECIFICATION, SPECIFICATION_TEXT = "specification.json", "specification.toml"
MODELS, PROVENANCE, RUNS = "models.json", "provenance.json", "runs"
RUN, EPISODES, TIMINGS, CHECKPOINT = (
    "run.json",
    "episodes.parquet",
    "timings.parquet",
    "checkpoint.npz",
)
DIGESTS = "digests"
"""The key of `run.json` under which the digests of the run's frames stand."""

WRITTEN = (
    SPECIFICATION,
    SPECIFICATION_TEXT,
    MODELS,
    PROVENANCE,
    RUN,
    EPISODES,
    TIMINGS,
    CHECKPOINT,
)
"""Names of the files of a folder; what is left of writing one has a name made from it."""


class RunStatus(StrEnum):
    """How far a run is."""

    MISSING = "missing"
    PARTIAL = "partial"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, eq=False)
class ModelFacts:
    """What is known of a model, computed once; None where it could not be computed.

    `edges` join variables that share a scope of the cost network, by position; the variables are
    eliminated in `elimination_order`. `w_norm` is the largest 1-norm of a step's weights in the
    plan of the known model. `regret_bound` holds the paper's general theorem at a grid of episodes.
    """

    __pydantic_config__: ClassVar[dict[str, bool]] = {"allow_inf_nan": False}

    text: str
    basis: str
    repr: str
    variables: int
    actions: int
    log10_states: float
    horizon: int | None
    discount: float
    start_value_exact: float | None
    plan_upper_bound: float | None
    plan_policy_mean: float | None
    plan_policy_standard_error: float | None
    induced_width: int | None
    variable_names: tuple[str, ...]
    edges: tuple[tuple[int, int], ...]
    elimination_order: tuple[int, ...]
    w_norm: float | None
    regret_bound: Mapping[str, Any] | None
    document_sha256: str | None = None  # of the model as a document, if it is not a domain's

    @property
    def plan_gap(self) -> float | None:
        """How far the plan of the known model can be from the best, as a fraction of the bound."""
        from fsmdp.bounds.gap import relative_gap

        if self.plan_upper_bound is None or self.plan_policy_mean is None:
            return None
        return relative_gap(self.plan_upper_bound, self.plan_policy_mean)

    @property
    def scale(self) -> float:
        """What rounding of a bound is relative to: the sizes of what is added up to it."""
        return self.w_norm or 0.0

    def reaches(self, episodes: int) -> bool:
        """Whether what is said of regret goes as far as so many episodes."""
        grid = (self.regret_bound or {}).get("episodes")
        return not grid or grid[-1] >= episodes

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> ModelFacts:
        """Facts as they were written; keys of later releases are ignored."""
        from pydantic import TypeAdapter

        found = {one.name: data[one.name] for one in fields(ModelFacts) if one.name in data}
        return TypeAdapter(ModelFacts).validate_python(found)


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """A run that ended: done, or failed with a message and without episodes.

    `facts` is all of its `run.json`. One row of `episodes` and of `timings` per episode.
    """

    id: str
    model: str
    learner: str
    label: str
    seed: int
    status: str
    heuristic: bool
    message: str | None
    facts: dict[str, Any]
    episodes: polars.DataFrame
    timings: polars.DataFrame

    @staticmethod
    def of(facts: dict[str, Any], episodes: polars.DataFrame, timings: polars.DataFrame) -> Run:
        """The run that its facts and frames tell of."""
        return Run(
            **{name: facts[name] for name in _OF_RUN},
            facts=facts,
            episodes=episodes,
            timings=timings,
        )

    @property
    def returns_have_gaps(self) -> bool:
        """Whether the return of some episode is missing, or no number."""
        returns = self.episodes["returns"]
        return not returns.dtype.is_float() or not returns.is_finite().fill_null(False).all()

    def __repr__(self) -> str:
        ended = self.message or plural(self.episodes.height, "episode")
        return f"Run({self.label} on {self.model}, seed {self.seed}: {self.status}, {clip(ended)})"


@dataclass(frozen=True, slots=True, eq=False)
class Results:
    """All that a folder holds. `missing` lists the ids of runs that have not ended."""

    specification: Specification
    models: Mapping[str, ModelFacts]
    runs: tuple[Run, ...]
    provenance: Mapping[str, Any]
    missing: tuple[str, ...] = ()

    def _repr_html_(self) -> str:
        from fsmdp.report.curves import results_table

        return results_table(self)

    def __repr__(self) -> str:
        asked = self.specification
        failed = sum(run.status == RunStatus.FAILED for run in self.runs)
        parts = [
            plural(len(asked.models), "model"),
            plural(len(asked.learners), "learner"),
            plural(len(asked.seeds), "seed"),
            plural(asked.episodes, "episode"),
        ]
        ended = [f"{len(self.runs) - failed} of {plural(len(asked.runs), 'run')} done"]
        ended += [f"{failed} failed"] * bool(failed)
        return f"Results({', '.join(parts)}; {', '.join(ended)})"


@dataclass(frozen=True, slots=True, eq=False)
class RunFiles:
    """A run as the bytes of its files, to be sent between processes; a failed one has no frames.

    Bytes and no frames: a frame would import polars in a thread of the driver, where interrupts
    are then lost.
    """

    facts: dict[str, Any]
    episodes: bytes | None = None
    timings: bytes | None = None

    @staticmethod
    def of(run: Run) -> RunFiles:
        """The files of a run that is done."""
        return RunFiles(run.facts, frame_bytes(run.episodes), frame_bytes(run.timings))


class Store:
    """The folder of a sweep: where things are, and how they are written."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def run_folder(self, run_id: str) -> Path:
        """Where a run's files are."""
        return self.folder / RUNS / run_id

    def checkpoint(self, run_id: str) -> Path:
        """Where a run under way is written to."""
        return self.run_folder(run_id) / CHECKPOINT

    def status(self, run: RunSetting) -> RunStatus:
        """How far a run is, by the files it has; a ModelError if they are of another run.

        One that ended when fewer episodes were asked for is under way again, from its checkpoint.
        """
        folder = self.run_folder(run.id)
        if (folder / RUN).is_file():
            facts = self._json(folder / RUN)
            self._check_facts(run, facts)
            found = facts["status"]
            if found == RunStatus.DONE and facts["episodes"] < run.episodes:
                return RunStatus.PARTIAL
            return RunStatus(found)
        return RunStatus.PARTIAL if (folder / CHECKPOINT).is_file() else RunStatus.MISSING

    def _check_facts(self, run: RunSetting, facts: Mapping[str, Any]) -> None:
        """Refuse a `run.json` of another run than the one that its folder is for."""
        path = self.run_folder(run.id) / RUN
        remedy = "remove the run's folder and run `compare` again"
        expected = _identity(run)
        for key, value in expected.items():
            found = facts.get(key)
            if key == "options" and isinstance(found, dict):
                # A run of an older release lacks options that its learner did not have yet.
                found = value | found
            if found != value or type(found) is not type(value):
                raise ModelError(
                    f"{path}: it is of another run: its {key} is {show(facts.get(key))}, expected "
                    f"{show(value)} by its folder and specification; {remedy}."
                )
        status, had = facts.get("status"), facts.get("episodes")
        if status not in (RunStatus.DONE, RunStatus.FAILED):
            raise ModelError(
                f"{path}: status is {show(status)}, expected done or failed; {remedy}."
            )
        if not is_whole(had) or not 1 <= had <= run.episodes:
            raise ModelError(
                f"{path}: it has {show(had)} episodes, expected 1 to {run.episodes} by the "
                f"specification; {remedy}."
            )

    def is_complete(self, specification: Specification) -> bool:
        """Whether every run is done."""
        return all(map(self.is_done, specification.runs))

    def is_done(self, run: RunSetting) -> bool:
        """Whether a run is done, to its last episode."""
        return self.status(run) is RunStatus.DONE

    def make_folder(self) -> None:
        """The folder itself."""
        disk.make_folder(self.folder)

    def make_run_folders(self, specification: Specification) -> None:
        """A folder for each run, without what a killed process left that no one needs."""
        for run in specification.runs:
            disk.make_folder(self.run_folder(run.id))
        folders = [self.folder, *(self.run_folder(run.id) for run in specification.runs)]
        for folder in folders:
            for name in WRITTEN:
                disk.remove_leftovers(folder / name)

    def write_specification(self, specification: Specification, text: str | None) -> None:
        """The specification with its defaults, and as the user wrote it."""
        if text is not None:
            disk.write_file(self.folder / SPECIFICATION_TEXT, text.encode())
        write_json(self.folder / SPECIFICATION, specification.to_dict())

    def write_models(self, models: Mapping[str, ModelFacts]) -> None:
        """What is known of every model."""
        write_json(self.folder / MODELS, {name: asdict(facts) for name, facts in models.items()})

    def write_provenance(self, provenance: Mapping[str, Any]) -> None:
        """What made the results."""
        write_json(self.folder / PROVENANCE, dict(provenance))

    def write_run(self, run_id: str, files: RunFiles) -> None:
        """A run's files; `run.json` last, since it says that the others are there.

        A run keeps its checkpoint, to go on from there once the cause of a failure is removed, or
        when more episodes are asked for.
        """
        folder, digests = self.run_folder(run_id), {}
        for name, content in ((EPISODES, files.episodes), (TIMINGS, files.timings)):
            if content is not None:
                disk.write_file(folder / name, content)
                digests[name] = disk.digest_bytes(content)
        write_json(folder / RUN, files.facts | {DIGESTS: digests})

    def read_specification(self) -> Specification | None:
        """The specification with its defaults; None in a folder that has none."""
        path = self.folder / SPECIFICATION
        return Specification.from_dict(self._json(path)) if path.is_file() else None

    def read_models(self) -> dict[str, ModelFacts]:
        """What is known of the models; nothing before it was computed."""
        path = self.folder / MODELS
        if not path.is_file():
            return {}
        found = self._json(path)
        try:
            return {name: ModelFacts.from_dict(one) for name, one in found.items()}
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ModelError(
                f"{path}: {type(error).__name__} {clip(str(error))}, expected facts of models as "
                "`compare` writes them; remove the file and run `compare` again."
            ) from None

    def read_provenance(self) -> dict[str, Any]:
        """What made the results; nothing before the first run."""
        path = self.folder / PROVENANCE
        return self._json(path) if path.is_file() else {}

    def read_run(self, run: RunSetting) -> Run:
        """A run that ended."""
        folder = self.run_folder(run.id)
        facts = self._json(folder / RUN)
        self._check_facts(run, facts)
        digests = facts.pop(DIGESTS, None)
        if facts["status"] == RunStatus.FAILED:
            return self._as_run(run.id, RunFiles(facts))
        frames = []
        for name in (EPISODES, TIMINGS):
            content = disk.read_file(folder / name, LARGEST_FRAME)
            remedy = "remove the run's folder and run `compare` again"
            digest = digests.get(name) if isinstance(digests, dict) else None
            disk.check_digest(digest, disk.digest_bytes(content), str(folder / name), remedy)
            frames.append(content)
        return self._as_run(run.id, RunFiles(facts, *frames))

    def check_document(self, run: Run, facts: ModelFacts | None) -> None:
        """Refuse a run on another model of the same name than that of the folder."""
        found = run.facts.get("document_sha256")
        if facts is not None and found != facts.document_sha256:
            raise ModelError(
                f"{self.run_folder(run.id) / RUN}: it is of another model: its document_sha256 is "
                f"{show(found)}, expected {show(facts.document_sha256)} by {MODELS}; remove the "
                "run's folder and run `compare` again."
            )

    def check_checkpoint(self, run: RunSetting, ended: Run | None = None) -> None:
        """Refuse a checkpoint that is damaged, or of another run; a run need not have one."""
        from fsmdp.learning.run import check_whole

        path = self.checkpoint(run.id)
        if path.is_file():
            parts = {"seed": str(run.seed)}
            if ended is not None and ended.status == RunStatus.DONE:
                parts["learner"] = str(ended.facts.get("describe"))
            check_whole(path, parts)

    def _as_run(self, run_id: str, files: RunFiles) -> Run:
        try:
            run = Run.of(
                files.facts,
                read_frame(files.episodes, EPISODE_COLUMNS),
                read_frame(files.timings, TIMING_COLUMNS),
            )
            _check_run(run)
            return run
        except (KeyError, ValueError) as error:
            raise ModelError(
                f"{self.run_folder(run_id)}: {clip(str(error))}; the files are damaged, or another "
                "release wrote them: remove the folder and run `compare` again."
            ) from None

    def _json(self, path: Path) -> dict[str, Any]:
        content = disk.read_file(path, LARGEST_JSON)
        try:
            found = json.loads(content)
        except (ValueError, RecursionError) as error:
            found = clip(str(error))
        if not isinstance(found, dict):
            raise ModelError(f"{path}: expected a JSON object, found {found!r}; remove the file.")
        remedy = "use the release that wrote it, or remove it and run `compare` again"
        disk.check_seal(content, found.pop(disk.DIGEST, None), str(path), remedy)
        return found


def _check_run(run: Run) -> None:
    """Refuse, with a ValueError, a run whose files make no sense."""
    facts, done = run.facts, run.status == RunStatus.DONE
    if not (run.message is None or isinstance(run.message, str)):
        raise ValueError(f"run.json: message {show(run.message)}, expected text or null")
    if not isinstance(run.heuristic, bool):
        raise ValueError(f"run.json: heuristic {show(run.heuristic)}, expected a bool")
    if done and not is_number(facts["seconds"]):
        raise ValueError(f"run.json: seconds {show(facts['seconds'])}")
    if done and (len(run.episodes) != facts["episodes"] or run.returns_have_gaps):
        raise ValueError("episodes.parquet: expected a return for each of the episodes")
    for name, frame in ((EPISODES, run.episodes), (TIMINGS, run.timings)):
        if frame["episode"].to_list() != list(range(1, len(run.episodes) + 1)):
            raise ValueError(f"{name}: expected episodes from 1 on, each once")


def _identity(run: RunSetting) -> dict[str, Any]:
    """What a run is, by the keys of its `run.json`."""
    return {
        "id": run.id,
        "model": run.model.id,
        "learner": run.learner.id,
        "label": run.learner.label,
        "seed": run.seed,
        "options": dict(run.learner.options),
        "source": source_of(run),
    }


def source_of(run: RunSetting) -> list[str | None]:
    """The texts that a run's model, basis and learner were made from."""
    model = run.model
    return [model.model, model.basis, model.structure, run.learner.learner]


_OF_RUN = ("id", "model", "learner", "label", "seed", "status", "heuristic", "message")

EPISODE_COLUMNS = {
    "episode": "Int64",
    "returns": "Float64",
    "optimistic_values": "Float64",
    "slacks": "Float64",
    "widths": "Float64",
    "replans": "Boolean",
    "lifts": "Float64",
    "w_norms": "Float64",
    "observable_regret_bound": "Float64",
    "regret": "Float64",
}
"""Columns of `episodes.parquet`, named as in `History.frame`.

Null where a learner claims no value, or V* is not known.
"""

TIMING_COLUMNS = {"episode": "Int64", "seconds_planning": "Float64", "seconds_acting": "Float64"}
"""Columns of `timings.parquet`: all that may differ between two runs of one setting."""


def read_results(folder: str | os.PathLike[str]) -> Results:
    """What a folder of runs holds, finished or not; a ModelError if it holds none."""
    store = Store(folder)
    specification = store.read_specification()
    if specification is None:
        there = [entry.name for entry in Path(folder).iterdir()] if Path(folder).is_dir() else []
        raise ModelError(
            f"{str(folder)!r} holds no runs: expected a folder with {SPECIFICATION}, found "
            f"{show_names(sorted(there))}; make one with `fsmdp compare SPEC.toml`."
        )
    models = store.read_models()
    ended, missing = [], []
    for run in specification.runs:
        found = store.read_run(run) if _has_ended(store.status(run)) else None
        store.check_checkpoint(run, found)
        if found is None:
            missing.append(run.id)
        else:
            store.check_document(found, models.get(run.model.id))
            ended.append(found)
    return Results(specification, models, tuple(ended), store.read_provenance(), tuple(missing))


def _has_ended(status: RunStatus) -> bool:
    return status in (RunStatus.DONE, RunStatus.FAILED)


def write_json(path: Path, data: Mapping[str, Any]) -> None:
    """A JSON file with a digest that appears whole or not at all, without NaN or infinity."""
    disk.write_file(path, disk.seal(data, indent=1))


def frame_bytes(frame: polars.DataFrame) -> bytes:
    """A frame as the bytes of a Parquet file; equal frames give equal bytes."""
    content = io.BytesIO()
    frame.write_parquet(content, compression="zstd", statistics=False)
    return content.getvalue()


def empty_frame(columns: Mapping[str, str]) -> polars.DataFrame:
    """No rows of the given columns."""
    import polars

    return polars.DataFrame(schema={name: getattr(polars, kind) for name, kind in columns.items()})


def select(frame: polars.DataFrame, columns: Mapping[str, str]) -> polars.DataFrame:
    """Columns of a frame, in their order and of their types."""
    return frame.select(list(columns)).cast(empty_frame(columns).schema)


def read_frame(content: bytes | None, columns: Mapping[str, str] | None = None) -> polars.DataFrame:
    """The inverse of `frame_bytes`; a ValueError if it is anything else, or has other columns."""
    import polars

    if content is None:
        return empty_frame(columns or {})
    try:
        frame = polars.read_parquet(io.BytesIO(content))
    except (polars.exceptions.PolarsError, polars.exceptions.PanicException, OSError) as error:
        raise ValueError(f"not Parquet: {clip(str(error))}") from None
    if columns is not None and frame.schema != empty_frame(columns).schema:
        raise ValueError(f"expected columns {show_names(columns)}, found {show(frame.schema)}")
    return frame


PACKAGES = ("fsmdp", "numpy", "scipy", "highspy", "clarabel", "numba", "polars", "ray", "dask")
"""Those that numbers may depend on, and the engines."""


@cache
def versions() -> dict[str, str]:
    """Versions of the packages that are installed."""
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


@cache
def source_commit() -> str | None:
    """The commit of the sources, `-dirty` if they were changed; None outside a checkout."""
    package = Path(__file__).parent.parent
    try:
        # Only if the sources themselves are tracked: an installed copy may lie in another project.
        _git(package, "ls-files", "--error-unmatch", "__init__.py")
        changed = _git(package, "status", "--porcelain", "--untracked-files=no", ".")
        return _git(package, "rev-parse", "HEAD") + ("-dirty" if changed else "")
    except (OSError, subprocess.SubprocessError):
        return None


def command_line() -> str:
    """The command of this process as a user would write it."""
    name = Path(sys.argv[0]).name
    return shlex.join(["fsmdp" if name == "__main__.py" else name, *sys.argv[1:]])


def now() -> str:
    """The time, with its zone."""
    return time.strftime("%Y-%m-%dT%H:%M:%S%z")


def provenance(executor: str, workers: int, created: str | None) -> dict[str, Any]:
    """What is making results; `finished` is filled in at the end."""
    return {
        "command": command_line(),
        "created": created or now(),
        "finished": None,
        "versions": versions(),
        "python": platform.python_version(),
        "commit": source_commit(),
        "platform": platform.platform(),
        "executor": executor,
        "workers": workers,
    }


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments],
        capture_output=True,
        text=True,
        check=True,
        timeout=10,
    )
    return done.stdout.strip()
