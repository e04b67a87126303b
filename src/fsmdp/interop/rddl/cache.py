"""Imported models on disk, by the text they came from, so that reading one again is fast.

A file holds a header in JSON, a vector of numbers and their digest: loading runs no code, and the
model is built and checked like any other.
"""

from __future__ import annotations

import json
import logging
import math
import os
import tempfile
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from fsmdp.errors import ModelError
from fsmdp.foundation.disk import pack_json, read_arrays, write_arrays
from fsmdp.interop.rddl.build import Imported
from fsmdp.model.cases import ANY, Case
from fsmdp.model.conditionals import Conditional
from fsmdp.model.files import actions_from_json, actions_to_json
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.rewards import Reward
from fsmdp.model.tables import Floats
from fsmdp.model.variables import Variable

log = logging.getLogger("fsmdp")

VERSION = 5
"""Raised whenever the importer would build another model from the same text."""

LARGEST_FILE = 2**28


def cache_folder() -> Path:
    """Where imported models are kept: $XDG_CACHE_HOME/fsmdp/rddl, or ~/.cache/fsmdp/rddl."""
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        folder = Path(base) if base else Path.home() / ".cache"
    except RuntimeError:  # no home is known, as in some containers
        folder = Path(tempfile.gettempdir())
    return folder / "fsmdp" / "rddl"


def cache_path(digest: str, limits: Sequence[int]) -> Path:
    """The file of a text imported under given limits."""
    key = sha256(json.dumps([VERSION, digest, *limits]).encode()).hexdigest()
    return cache_folder() / f"{key[:40]}.model"


def store(imported: Imported, path: Path) -> None:
    """Keep an imported model; a folder that cannot be written to is no error."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_arrays(path, _encode(imported))
    except (OSError, ModelError) as error:
        log.info("%s: not kept for next time (%s)", imported.name, error)


def recall(path: Path, name: str) -> Imported | None:
    """A model kept earlier, or None if there is none that can be read."""
    if not path.is_file():
        return None
    try:
        return _decode(read_arrays(path, LARGEST_FILE, "model", "it is made again"), name)
    except (ModelError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        log.info("%s: the kept model cannot be read (%s); importing again", name, error)
        return None


class _Tables:
    """Distinct tables one after another, and where each one begins."""

    def __init__(self) -> None:
        self.parts: list[Floats] = []
        self._known: dict[bytes, int] = {}
        self._end = 0

    def place(self, table: Floats) -> int:
        content = np.ascontiguousarray(table).tobytes()
        if content not in self._known:
            self._known[content] = self._end
            self.parts.append(np.ravel(table))
            self._end += table.size
        return self._known[content]


def _encode(imported: Imported) -> dict[str, np.ndarray]:
    model, tables = imported.model, _Tables()

    def cases(listed: Sequence[Case]) -> list[Any]:
        return [
            [
                list(case.actions) if isinstance(case.actions, tuple) else None,
                case.parents,
                case.drawn,
                case.table.shape,
                tables.place(case.table),
            ]
            for case in listed
        ]

    header = {
        "variables": [[v.name, v.size] for v in model.variables],
        "latents": [[v.name, v.size] for v in model.latents],
        "actions": actions_to_json(model.actions),
        "conditionals": [[c.children, cases(c.cases)] for c in model.conditionals],
        "rewards": [[r.name, cases(r.cases), r.low, r.high] for r in model.rewards],
        "horizon": model.horizon,
        "discount": model.discount,
        "initial": model.initial,
        "values": imported.values,
        "aliases": imported.aliases,
        "joint_actions": imported.joint_actions,
        "notes": imported.notes,
    }
    numbers = np.concatenate([np.zeros(0), *tables.parts])
    return {"about": pack_json(header), "numbers": numbers}


def _decode(arrays: Mapping[str, np.ndarray], name: str) -> Imported:
    header: Mapping[str, Any] = json.loads(arrays["about"].tobytes())
    numbers = arrays["numbers"]

    def cases(listed: Sequence[Any]) -> list[Case]:
        found = []
        for actions, parents, drawn, shape, start in listed:
            table = numbers[start : start + math.prod(shape)].reshape(shape)
            found.append(Case(ANY if actions is None else actions, parents, table, drawn))
        return found

    model = FactoredMDP(
        variables=[Variable(*pair) for pair in header["variables"]],
        latents=[Variable(*pair) for pair in header["latents"]],
        actions=actions_from_json(header["actions"]),
        conditionals=[Conditional(names, cases(part)) for names, part in header["conditionals"]],
        rewards=[
            Reward(label, cases(part), low, high) for label, part, low, high in header["rewards"]
        ],
        horizon=header["horizon"],
        discount=header["discount"],
        initial=header["initial"],
    )
    return Imported(
        name,
        model,
        {label: tuple(values) for label, values in header["values"].items()},
        {action: tuple(others) for action, others in header["aliases"].items()},
        header["joint_actions"],
        tuple(header["notes"]),
    )
