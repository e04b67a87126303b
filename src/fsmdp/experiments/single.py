"""A single run in this process, with or without a folder for its results."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from fsmdp.errors import FsmdpError
from fsmdp.experiments.facts import FactsTask, describe_model, exact_start_value, find_source
from fsmdp.experiments.folder import open_folder
from fsmdp.experiments.own import Simulator
from fsmdp.experiments.specification import Specification
from fsmdp.experiments.store import Run, RunStatus
from fsmdp.experiments.work import carry_out, failed
from fsmdp.model.tables import Floats

Watch = Callable[[Floats, float | None], None]
"""Called with the returns so far, and V* where it is known."""


def learn_once(
    specification: Specification,
    output: str | os.PathLike[str] | None,
    checkpoint: str | os.PathLike[str] | None,
    watch: Watch,
) -> tuple[float | None, Run]:
    """V* where it is known, and the first run of a specification; what goes wrong is raised.

    With an output folder the run is kept there as `compare` would keep it, checkpoint included.
    """
    setting = specification.runs[0]
    source = find_source(setting.model, "model")
    if output is None:
        model, _ = source.load()
        best = None
        if not isinstance(model, Simulator):
            best = exact_start_value(setting.model.model, model)
        path = None if checkpoint is None else Path(checkpoint)
        files = carry_out(setting, source, best, path, watch=lambda seen: watch(seen, best))
        return best, files.as_run()
    with open_folder(output, specification, {source.setting.id: source}, "none", 1) as opened:
        store, name = opened.store, source.setting.id
        facts = opened.known.get(name)
        if facts is None or not facts.reaches(setting.episodes):
            facts = describe_model(FactsTask(source, setting.episodes))
            store.write_models({name: facts})
        best = facts.start_value_exact
        if store.status(setting) is not RunStatus.DONE:
            try:
                path = store.checkpoint(setting.id)
                files = carry_out(setting, source, best, path, watch=lambda seen: watch(seen, best))
            except FsmdpError as error:
                store.write_run(setting.id, failed(setting, source, error))
                raise
            store.write_run(setting.id, files)
        return best, store.read_run(setting)
