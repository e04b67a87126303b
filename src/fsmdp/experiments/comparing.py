"""`compare` from Python: all that the command does, without a file to write first."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fsmdp.errors import ModelError
from fsmdp.experiments.runner import Progress, default_folder
from fsmdp.experiments.runner import compare as run
from fsmdp.experiments.specification import CHECKPOINT_EVERY, DEFAULT_BASIS, safe_name, specify
from fsmdp.foundation.checks import show
from fsmdp.foundation.disk import make_folder
from fsmdp.foundation.progress import check_progress
from fsmdp.io.models import save
from fsmdp.model.mdp import FactoredMDP

if TYPE_CHECKING:
    from fsmdp.experiments.executors import Executor
    from fsmdp.experiments.store import Results

Model = str | FactoredMDP | Mapping[str, Any]
Models = Model | Sequence[Model] | Mapping[str, Model]
Learners = str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]]

MODELS = "models"
"""Folder, in that of the runs, of models that were given as objects."""


def compare(
    models: Models,
    learners: Learners,
    *,
    seeds: int | Sequence[int] = 1,
    episodes: int = 100,
    output: str | os.PathLike[str] | None = None,
    basis: str | Sequence[Sequence[str]] = DEFAULT_BASIS,
    name: str = "comparison",
    checkpoint_every: int = CHECKPOINT_EVERY,
    executor: str | Executor = "local",
    workers: int = 2,
    address: str | None = None,
    progress: bool | Progress | None = None,
) -> Results:
    """Run every learner on every model with every seed, and return what came of it.

    A model is what the command line takes ("sysadmin:ring:8", "rddl:SysAdmin_MDP_ippc2011:1", a
    file, "my_module:make") or a FactoredMDP; by name in a dictionary, or in a list. A dictionary
    with the keys of a specification's [[models]] will do too: {"model": ..., "basis": ...}, or
    {"environment": "my_module:make", "structure": "my_module:structure"}. A learner is its name
    ("ucrl") or a dictionary with its options: {"learner": "ucrl", "confidence": "hoeffding",
    "label": "ours"}. `basis` is that of models that name none: a name, a file, "my_module:basis",
    or blocks of variables. `seeds` is how many, from 0 on, or which. Results are kept in `output`
    (`runs/NAME`); the same call goes on where it was killed, and does nothing twice; more episodes,
    seeds, models or learners do what is missing. `fsmdp.plot.compare(output)` and `fsmdp report`
    draw them. `progress=True` shows a bar over the episodes of all runs once they take longer than
    two seconds; a function is called with a list that has `episodes` and `total` (the sum of their
    returns) of each run, several times a second.
    """
    check_progress(progress, "of how far each run is")
    if output is not None and not isinstance(output, str | os.PathLike):
        raise ModelError(
            f"output: expected the path of a folder, found {show(output)}; leave it out for "
            f"{default_folder(name)}."
        )
    folder = Path(default_folder(name) if output is None else output)
    listed = [learners] if isinstance(learners, str | Mapping) else learners
    if not isinstance(listed, Sequence) or not listed:
        raise ModelError(
            f"learners: expected names such as 'ucrl', or dictionaries with options, found "
            f"{show(learners)}."
        )
    specification = specify(
        {
            "name": name,
            "episodes": episodes,
            "seeds": seeds if isinstance(seeds, int) else list(seeds),
            "checkpoint_every": checkpoint_every,
            "models": [_table(one, basis) for one in _texts(models, folder)],
            "learners": [{"learner": one} if isinstance(one, str) else dict(one) for one in listed],
        }
    )
    return run(specification, folder, executor, workers, address=address, progress=progress)


def _table(model: Mapping[str, Any], basis: str | Sequence[Sequence[str]]) -> dict[str, Any]:
    """One of a specification's models, with the basis of all unless it has its own."""
    if {"basis", "blocks", "environment"} & model.keys():
        return dict(model)
    return {**model, ("basis" if isinstance(basis, str) else "blocks"): basis}


def _texts(models: Models, folder: Path) -> Iterator[Mapping[str, Any]]:
    """What a specification says of each model; those given as objects are written to files."""
    named: list[tuple[str | None, Any]]
    if isinstance(models, Mapping) and not {"model", "environment"} & models.keys():
        named = [(str(label), one) for label, one in models.items()]
    elif isinstance(models, str | FactoredMDP | Mapping):
        named = [(None, models)]
    elif isinstance(models, Sequence):
        named = [(None, one) for one in models]
    else:
        named = [(None, models)]
    for position, (label, one) in enumerate(named):
        if isinstance(one, str):
            yield {"model": one}
        elif isinstance(one, Mapping):
            yield one
        elif isinstance(one, FactoredMDP):
            path = make_folder(folder / MODELS) / f"{safe_name(label or f'model-{position}')}.json"
            save(one, path)
            yield {"model": str(path)}
        else:
            raise ModelError(
                f"models: expected a FactoredMDP or what the command line takes "
                f"('sysadmin:ring:8'), found {show(one)}."
            )
