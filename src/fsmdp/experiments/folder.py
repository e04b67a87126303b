"""Opening a folder of runs: one process at a time, and only for a sweep that fits what it holds."""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
import socket
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fsmdp.errors import ExperimentError, FsmdpError, ModelError
from fsmdp.experiments.learners import Simulator, completed_options, make_simulator
from fsmdp.experiments.specification import ModelSetting, Specification
from fsmdp.experiments.store import ModelFacts, Store, command_line, now, provenance
from fsmdp.io.readers import basis_name, find_reader, read_basis, read_model

if TYPE_CHECKING:
    from fsmdp.model.basis import Basis
    from fsmdp.model.mdp import FactoredMDP
    from fsmdp.model.structure import Structure


EXACT_LIMIT = 2**27
"""Most states^2 x actions x horizon that are enumerated for the sake of an exact value."""

PLAN_SECONDS = 60.0
PLAN_EPISODES = 2000
GRID = 40

OF_PLAN = ("plan_upper_bound", "plan_policy_mean", "plan_policy_standard_error", "w_norm")
NO_NETWORK = {"induced_width": None, "edges": (), "elimination_order": ()}


@dataclass(frozen=True, slots=True, eq=False)
class ModelSource:
    """A model on its way to a worker: the text of a domain, or the model itself as a document.

    A worker on another machine need not have the user's files, nor the packages that read them.
    """

    setting: ModelSetting
    document: str | None

    @property
    def sha256(self) -> str | None:
        """What tells two versions of a document apart."""
        return None if self.document is None else hashlib.sha256(self.document.encode()).hexdigest()

    def load(self) -> tuple[FactoredMDP, Basis] | tuple[Simulator, None]:
        """The model and its basis, or an environment, whose structure has its own."""
        from fsmdp.io.models import from_bytes

        if self.setting.structure is not None:
            return make_simulator(self.setting.model, self.setting.structure, "models"), None

        if self.document is None:
            model = read_model(self.setting.model)
        else:
            model = from_bytes(self.document.encode())
        return model, read_basis(model, self.setting.basis)


@dataclass(frozen=True, slots=True, eq=False)
class FactsTask:
    """A model to be described, for sweeps of so many episodes."""

    source: ModelSource
    episodes: int


def load_setting(
    setting: ModelSetting, where: str
) -> tuple[FactoredMDP, Basis] | tuple[Simulator, None]:
    """The model and basis of a setting, or its environment, with a finite horizon."""
    try:
        model, basis = ModelSource(setting, None).load()
    except ModelError as error:
        raise ModelError(f"{where}: {error}") from None
    check_horizon(
        model.given_structure if isinstance(model, Simulator) else model, setting.model, where
    )
    return model, basis  # type: ignore[return-value]  # a pair of the same kind


def check_horizon(model: FactoredMDP | Structure, text: str, where: str) -> None:
    """Refuse what has no end: learners work through episodes."""
    if model.horizon is None:
        raise ModelError(
            f"{where}: {text!r} has an infinite horizon, expected a finite one, since learners "
            "work through episodes; give it a horizon."
        )


def source_of_model(setting: ModelSetting, model: FactoredMDP | Simulator) -> ModelSource:
    """A model as it is sent to workers."""
    from fsmdp.io.models import to_dict

    if isinstance(model, Simulator) or find_reader(setting.model).portable:
        return ModelSource(setting, None)
    return ModelSource(setting, json.dumps(to_dict(model), separators=(",", ":")))


def find_source(setting: ModelSetting, where: str) -> ModelSource:
    """Read a model once, so that a mistake is found before anything runs."""
    return source_of_model(setting, load_setting(setting, where)[0])


def describe_model(task: FactsTask) -> ModelFacts:
    """Everything a report says about the model of a source."""
    return facts_of_model(task.source, task.episodes, *task.source.load())


def facts_of_model(
    source: ModelSource, episodes: int, model: FactoredMDP | Simulator, basis: Basis | None
) -> ModelFacts:
    """Everything a report says about a model.

    What cannot be computed within limits (the network too wide, too many states) is None.
    """
    structure = model.structure(basis)  # type: ignore[arg-type]  # a pair of the same kind
    return ModelFacts(
        text=source.setting.model,
        basis=basis_name(source.setting.basis),
        repr=repr(structure if isinstance(model, Simulator) else model),
        variables=len(structure.variables),
        actions=structure.actions.n_actions,
        log10_states=sum(math.log10(variable.size) for variable in structure.variables),
        horizon=structure.horizon,
        discount=structure.discount,
        variable_names=tuple(variable.name for variable in structure.variables),
        regret_bound=_theorem(structure, episodes),
        document_sha256=source.sha256,
        **_of_simulator() if basis is None else _of_model(source.setting.model, model, basis),
    )


def _of_model(text: str, model: Any, basis: Basis) -> dict[str, Any]:
    """What a known model adds to its structure."""
    return {
        "start_value_exact": exact_start_value(text, model),
        **_planned(model, basis),
        **_network(model, basis),
    }


def _of_simulator() -> dict[str, Any]:
    """Of an environment nothing is known but the structure."""
    return {"start_value_exact": None, **dict.fromkeys(OF_PLAN), **NO_NETWORK}


def exact_start_value(text: str, model: FactoredMDP) -> float | None:
    """V* at the start: in closed form, by enumeration if it is cheap, or None."""
    from fsmdp.exact.solve import solve_exactly

    closed = find_reader(text).start_value(text)
    if closed is not None:
        return closed
    entries = model.n_states**2 * model.n_actions * (model.horizon or 1)
    return float(solve_exactly(model).start_value) if entries <= EXACT_LIMIT else None


def _planned(model: FactoredMDP, basis: Basis) -> dict[str, Any]:
    """The plan of the known model: its certified bound, and what its policy earns."""
    import numpy as np

    from fsmdp.bounds.joint import Programs
    from fsmdp.simulation.gap import certified_gap

    try:
        found = Programs(time_limit=PLAN_SECONDS).plan(model, basis)
        gap = certified_gap(model, found, PLAN_EPISODES, baselines=False)
    except FsmdpError:
        return dict.fromkeys(OF_PLAN)
    w_norm = float(np.abs(found.weights).sum(axis=1).max())
    values = (found.upper_bound, gap.runs.mean, gap.runs.standard_error, w_norm)
    return {name: float(value) for name, value in zip(OF_PLAN, values, strict=True)}


def _network(model: FactoredMDP, basis: Basis) -> dict[str, Any]:
    """Which variables share a scope, and the order they are eliminated in.

    That of all scopes together, or of the default action's if the planner's width is theirs.
    """
    from fsmdp.bounds.bellman import joined_variables, network_of_model
    from fsmdp.elimination.order import best_order

    try:
        elimination = network_of_model(model, basis)[0].elimination
    except FsmdpError:
        return dict(NO_NETWORK)
    network = elimination.network
    scopes = network.all_scopes
    order = best_order(scopes, network.sizes)
    if order.induced_width != elimination.induced_width:
        narrow = best_order(network.default_scopes, network.sizes)
        if narrow.induced_width == elimination.induced_width:
            scopes, order = network.default_scopes, narrow
    return {
        "induced_width": elimination.induced_width,
        "edges": joined_variables(scopes),
        "elimination_order": tuple(order.variables),
    }


def _theorem(structure: Structure, episodes: int) -> dict[str, Any]:
    """The paper's general regret bound, term by term, at a grid of episodes."""
    import numpy as np

    from fsmdp.learning.theory import regret_bound

    grid = np.unique(np.geomspace(1, episodes, GRID).round().astype(int)).tolist()
    bounds = [regret_bound(structure, episodes=k) for k in grid]
    terms = ("planning", "martingale", "rewards", "transitions")
    return {
        "episodes": grid,
        "general": {
            "terms": {name: [getattr(bound, name) for bound in bounds] for name in terms},
            "total": [bound.total for bound in bounds],
        },
    }


try:
    import fcntl
except ImportError:  # pragma: no cover - Windows
    fcntl = None  # type: ignore[assignment]

LOCK = ".lock"

log = logging.getLogger("fsmdp")


@contextmanager
def locked(folder: Path, command: str) -> Iterator[str]:
    """Hold the folder and give a token that tells it from all others; ExperimentError if held.

    The operating system releases the lock when its process ends, by whatever means. The token
    stands in the lock file, so that a worker can tell whether it sees this very folder.
    """
    path = folder / LOCK
    token = uuid.uuid4().hex
    try:
        file = path.open("a+")
    except OSError as error:
        raise ExperimentError(
            f"cannot lock {str(folder)!r}: {error.strerror or error}; give a folder that can be "
            "written with --output."
        ) from None
    with file:
        if fcntl is None:  # pragma: no cover - Windows
            log.warning("this platform has no advisory locks: start one process a folder")
        else:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise ExperimentError(_held(path)) from None
        file.seek(0)
        file.truncate()
        holder = {
            "process": os.getpid(),
            "host": socket.gethostname(),
            "since": time.strftime("%Y-%m-%d %H:%M:%S"),
            "command": command,
            "token": token,
        }
        file.write(json.dumps(holder))
        file.flush()
        try:
            yield token
        finally:
            file.seek(0)
            file.truncate()


def is_held_as(folder: Path, token: str) -> bool:
    """Whether this is the folder whose lock was taken with the token, seen from any machine."""
    return _holder(folder / LOCK).get("token") == token


def _holder(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _held(path: Path) -> str:
    holder = _holder(path)
    who = (
        f"process {holder.get('process')} on {holder.get('host')} since {holder.get('since')} "
        f"({holder.get('command')})"
        if holder
        else "another process"
    )
    return (
        f"{str(path.parent)!r} is in use by {who}; wait for it to end, or give another folder with "
        "--output."
    )


@dataclass(frozen=True, slots=True, eq=False)
class OpenFolder:
    """A folder that this process holds. `known` are the facts of models it has already."""

    store: Store
    token: str
    known: Mapping[str, ModelFacts]


@contextmanager
def open_folder(
    folder: str | os.PathLike[str],
    specification: Specification,
    sources: Mapping[str, ModelSource],
    executor: str,
    workers: int,
    text: str | None = None,
) -> Iterator[OpenFolder]:
    """Hold a folder for a sweep, and note what makes the results, and when they were finished.

    A folder that lacks nothing keeps the note of what made it.
    """
    store = Store(folder)
    store.make_folder()
    with locked(store.folder, command_line()) as token:
        _check_extends(store, specification)
        known = store.read_models()
        _check_documents(known, sources, store)
        store.make_run_folders(specification)
        store.write_specification(specification, text)
        before = store.read_provenance()
        if before.get("finished") and store.is_complete(specification):
            yield OpenFolder(store, token, known)
            return
        about = provenance(executor, workers, before.get("created"))
        store.write_provenance(about)
        yield OpenFolder(store, token, known)
        store.write_provenance(about | {"finished": now()})


def _check_extends(store: Store, new: Specification) -> None:
    """Refuse a folder of other runs: a sweep may grow, what it holds may not change meaning."""
    old = store.read_specification()
    if old is None:
        return
    before, after = old.to_dict(), new.to_dict()
    asked = {learner["learner"] for learner in after["learners"]}
    for learner in before["learners"]:
        if learner["learner"] not in asked:
            continue  # nor is it imported, if it is somebody's own
        learner["options"] = completed_options(learner["learner"], learner["options"])
    where = f"{str(store.folder)!r} holds runs of another specification"
    remedy = "give another folder with --output"
    if before["name"] != after["name"]:
        raise ModelError(
            f"{where}: its name is {before['name']!r}, found {after['name']!r}; {remedy}."
        )
    if before["episodes"] > after["episodes"]:
        raise ModelError(
            f"{where}: its runs have {before['episodes']} episodes, found {after['episodes']}; "
            f"runs can be made longer, not shorter: ask for at least as many, or {remedy}."
        )
    for key in ("seeds", "models", "learners"):
        for one in before[key]:
            if one not in after[key]:
                name = one["id"] if isinstance(one, dict) else one
                raise ModelError(
                    f"{where}: {name!r} of its {key} is missing or different now; expected all of "
                    f"them, and possibly more; {remedy}."
                )


def _check_documents(
    known: Mapping[str, ModelFacts], sources: Mapping[str, ModelSource], store: Store
) -> None:
    for name, facts in known.items():
        if name in sources and facts.document_sha256 != sources[name].sha256:
            raise ModelError(
                f"{str(store.folder)!r} holds runs of {facts.text!r} as it was before; the model "
                "has changed since, give another folder with --output."
            )
