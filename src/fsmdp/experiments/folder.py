"""Opening a folder of runs: one process at a time, and only for a sweep that fits what it holds."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from fsmdp.errors import ModelError
from fsmdp.experiments.facts import ModelSource
from fsmdp.experiments.learners import completed_options
from fsmdp.experiments.lock import locked
from fsmdp.experiments.provenance import command_line, now, provenance
from fsmdp.experiments.specification import Specification
from fsmdp.experiments.store import ModelFacts, Store


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
