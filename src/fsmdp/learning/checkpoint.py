"""Checkpoints of a run: plain arrays, written whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import clip, show
from fsmdp.foundation.disk import digest_of, read_arrays, write_arrays
from fsmdp.learning.cells.statistics import LARGEST_FILE
from fsmdp.learning.history import SERIES
from fsmdp.learning.learners.learner import Acting, Learner, Planned
from fsmdp.model.structure import Structure
from fsmdp.policies.arrays import policy_from_arrays, policy_to_arrays

FORMAT = 7

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
    found = take(path, lambda: one(arrays, "format", np.int64))
    if found != FORMAT:
        raise ModelError(
            f"checkpoint {show(str(path))} has format {found}, expected {FORMAT}; {REMEDY}."
        )
    _check_identity(path, arrays, identity)
    return arrays


def check_whole(path: str | os.PathLike[str], parts: Identity) -> None:
    """Refuse, with a ModelError, a checkpoint that is damaged, or whose run has other parts.

    Whether it can be taken up, which depends on its learner, is left to `read_checkpoint`.
    """
    _check_identity(path, read_arrays(path, LARGEST_FILE, "checkpoint", REMEDY), parts)


def _check_identity(
    path: str | os.PathLike[str], arrays: Mapping[str, np.ndarray], identity: Identity
) -> None:
    written = take(path, lambda: dict(json.loads(one(arrays, "identity", np.str_))))
    for part in identity:
        if written.get(part) != identity[part]:
            raise ModelError(
                f"checkpoint {show(str(path))} is of another run: its {part} is "
                f"{clip(str(written.get(part)))}, this run's is {clip(identity[part])}; {REMEDY}."
            )


def take(path: str | os.PathLike[str], part: Callable[[], Taken]) -> Taken:
    """A part of a checkpoint, or a ModelError if it is missing or wrong."""
    try:
        return part()
    except (KeyError, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise ModelError(
            f"checkpoint {show(str(path))}: a part is missing or wrong ({clip(str(error))}); "
            f"{REMEDY}."
        ) from None


def one(arrays: Mapping[str, np.ndarray], name: str, kind: type[np.generic]) -> Any:
    """The single number, truth value or text of an array of that kind, or a ValueError."""
    array = arrays[name]
    if array.ndim or not np.issubdtype(array.dtype, kind):
        raise ValueError(f"{name}: expected one {np.dtype(kind).name}")
    return array.item()


def identify(learner: Learner) -> Identity:
    """What a learner is, as far as a run depends on it: options, seed, structure, known rewards."""
    structure, cells = learner.structure, learner.cells
    told = [
        [[variable.name, variable.size] for variable in structure.variables],
        structure.actions.as_json(),
        structure.horizon,
        structure.discount,
        [[term.name, term.low, term.high, term.sigma] for term in structure.rewards],
        structure.independent,
    ]
    laid_out = [*cells.layout.lookup, *cells.layout[1:], cells.values]
    return {
        "learner": f"{learner.name}({learner.describe()})",
        "learner's seed": str(learner.seed),
        "structure": f"{structure!r}, {digest_of([np.array(json.dumps(told)), *laid_out])}",
        "known rewards, features or policy": digest_of(learner.given()),
    }


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
    policy = policy_to_arrays(acting.pop("policy"))
    return (
        with_prefix("acting", acting)
        | with_prefix("policy", policy)
        | {"lift": np.array(planned.lift), "w_norm": np.array(planned.w_norm)}
    )


def planned_from_arrays(arrays: dict[str, np.ndarray], structure: Structure) -> Planned:
    """The inverse of `planned_to_arrays`; a ValueError if numbers are not what they can be."""
    sizes = [variable.size for variable in structure.variables]
    policy = policy_from_arrays(under_prefix("policy", arrays), sizes, structure.actions)
    logged = under_prefix("acting", arrays)
    for name in ("values", "q", "widths", "start_values"):
        if not is_claimed(logged[name]) and not np.isnan(logged[name]).all():
            raise ValueError(f"{name}: expected finite numbers, or NaN and nothing else")
    acting = Acting(policy=policy, **logged)
    lift, w_norm = (one(arrays, name, np.float64) for name in ("lift", "w_norm"))
    if np.isinf([lift, w_norm]).any():
        raise ValueError("lift, w_norm: expected numbers that are not infinite")
    return Planned(acting, lift, w_norm)


def is_claimed(numbers: Any) -> bool:
    """Whether numbers are finite; a learner that claims nothing logs NaN."""
    return bool(np.isfinite(numbers).all())


def check_series(series: Mapping[str, np.ndarray], done: int, planned: Planned) -> None:
    """Refuse, with a ValueError, series of other lengths or kinds, or with gaps.

    NaN may stand only where the plan that is followed claims nothing.
    """
    acting = planned.acting
    behind: dict[str, tuple[Any, ...]] = {
        "optimistic_values": (acting.values, acting.start_values),
        "slacks": (acting.values, acting.q),
        "widths": (acting.widths,),
        "lifts": (planned.lift,),
        "w_norms": (planned.w_norm,),
    }
    for name in SERIES:
        array, kind = series[name], np.bool_ if name == "replans" else np.float64
        if array.shape != (done,) or array.dtype != kind:
            raise ValueError(f"{name}: expected {done} of kind {np.dtype(kind)}")
        claimed = all(is_claimed(source) for source in behind.get(name, ()))
        if not np.isfinite(array).all() if claimed else np.isinf(array).any():
            raise ValueError(f"{name}: expected finite numbers")
        if name.startswith("seconds") and (array < 0).any():
            raise ValueError(f"{name}: expected no negative seconds")
