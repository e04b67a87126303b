"""Checkpoints of a run: plain arrays, written whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import numpy as np

from fsmdp.errors import ModelError
from fsmdp.learning.acting import Acting, Learner, Planned
from fsmdp.learning.statistics import LARGEST_FILE
from fsmdp.model.arrays import read_arrays, write_arrays
from fsmdp.model.checks import clip, show
from fsmdp.model.lookup import Lookup
from fsmdp.simulation.policies import CompiledPolicy

FORMAT = 2

REMEDY = "use another file, or remove this one to start anew"

Taken = TypeVar("Taken")

Identity = dict[str, str]
"""What a run is, by the name of the part: another value of any part makes it another run."""


def write_checkpoint(
    path: str | os.PathLike[str], identity: Identity, arrays: Mapping[str, np.ndarray]
) -> None:
    """Write a file of arrays beside the old one, then put it in its place."""
    about = {"format": np.array(FORMAT), "identity": np.array(json.dumps(identity))}
    write_arrays(path, about | dict(arrays))


def read_checkpoint(path: str | os.PathLike[str], identity: Identity) -> dict[str, np.ndarray]:
    """The arrays of a checkpoint of this very run; anything else is a ModelError."""
    arrays = read_arrays(path, LARGEST_FILE, "checkpoint", REMEDY)
    found = take(path, lambda: int(arrays.pop("format")))
    if found != FORMAT:
        raise ModelError(
            f"checkpoint {show(str(path))} has format {found}, expected {FORMAT}; {REMEDY}."
        )
    written = take(path, lambda: dict(json.loads(str(arrays.pop("identity")))))
    for part in identity:
        if written.get(part) != identity[part]:
            raise ModelError(
                f"checkpoint {show(str(path))} is of another run: its {part} is "
                f"{clip(str(written.get(part)))}, this run's is {clip(identity[part])}; {REMEDY}."
            )
    return arrays


def take(path: str | os.PathLike[str], part: Callable[[], Taken]) -> Taken:
    """A part of a checkpoint, or a ModelError if it is missing or wrong."""
    try:
        return part()
    except (KeyError, ValueError, TypeError, IndexError, AttributeError, RecursionError) as error:
        raise ModelError(
            f"checkpoint {show(str(path))}: a part is missing or wrong ({clip(str(error))}); "
            f"{REMEDY}."
        ) from None


def identify(learner: Learner) -> Identity:
    """What a learner is, as far as a run depends on it: options, seed, structure, known rewards."""
    structure, cells = learner.structure, learner.cells
    told = [
        [[variable.name, variable.size] for variable in structure.variables],
        structure.actions,
        structure.horizon,
        structure.discount,
        [[term.name, term.low, term.high, term.sigma] for term in structure.rewards],
    ]
    laid_out = [*cells.layout.lookup, *cells.layout[1:], cells.values]
    given = learner.given() if hasattr(learner, "given") else [learner.term_known]
    return {
        "learner": f"{learner.name}({learner.describe()})",
        "learner's seed": str(getattr(learner, "seed", None)),
        "structure": f"{structure!r}, {digest([np.array(json.dumps(told)), *laid_out])}",
        "known rewards, features or policy": digest(given),
    }


def digest(arrays: Iterable[Any]) -> str:
    """A short name for what arrays hold."""
    total = hashlib.sha256()
    for array in map(np.asarray, arrays):
        total.update(f"{array.dtype.str} {array.shape} ".encode())
        total.update(np.ascontiguousarray(array).tobytes())
    return total.hexdigest()[:16]


def with_prefix(prefix: str, arrays: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The same arrays under longer names."""
    return {f"{prefix}/{name}": np.asarray(value) for name, value in arrays.items()}


def under_prefix(prefix: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The inverse of `with_prefix`."""
    start = prefix + "/"
    return {name[len(start) :]: a for name, a in arrays.items() if name.startswith(start)}


def planned_to_arrays(planned: Planned) -> dict[str, np.ndarray]:
    """A plan that is being followed, as arrays."""
    acting = planned.acting._asdict()
    policy = acting.pop("policy")._asdict()
    lookup = policy.pop("lookup")._asdict()
    return (
        with_prefix("acting", acting)
        | with_prefix("policy", policy)
        | with_prefix("lookup", lookup)
        | {"lift": np.array(planned.lift), "w_norm": np.array(planned.w_norm)}
    )


def planned_from_arrays(arrays: dict[str, np.ndarray]) -> Planned:
    """The inverse of `planned_to_arrays`."""
    policy: dict[str, Any] = dict(under_prefix("policy", arrays))
    policy["kind"] = int(policy["kind"])
    lookup = Lookup(**under_prefix("lookup", arrays))
    acting = Acting(
        policy=CompiledPolicy(**policy, lookup=lookup), **under_prefix("acting", arrays)
    )
    return Planned(acting, float(arrays["lift"]), float(arrays["w_norm"]))
