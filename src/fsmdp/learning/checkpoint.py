"""Checkpoints of a run: plain arrays, written whole or not at all."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

from fsmdp.errors import ModelError
from fsmdp.learning.acting import Acting, Planned
from fsmdp.model.disk import write_file
from fsmdp.model.lookup import Lookup
from fsmdp.simulation.policies import CompiledPolicy

FORMAT = 1


def write_arrays(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """Write a file of arrays, whole or not at all."""
    content = io.BytesIO()
    np.savez(content, **{"format": np.array(FORMAT)} | arrays)  # type: ignore[arg-type]
    write_file(path, content.getvalue())


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """Read what `write_arrays` wrote."""
    try:
        with np.load(path, allow_pickle=False) as found:
            arrays = dict(found)
    except (OSError, ValueError, EOFError) as error:
        raise ModelError(f"checkpoint {path}: cannot be read ({error}); remove it.") from error
    if int(arrays.pop("format", np.array(-1))) != FORMAT:
        raise ModelError(f"checkpoint {path}: expected format {FORMAT}; remove it to start anew.")
    return arrays


def with_prefix(prefix: str, arrays: dict[str, Any]) -> dict[str, np.ndarray]:
    """The same arrays under longer names."""
    return {f"{prefix}/{name}": np.asarray(value) for name, value in arrays.items()}


def under_prefix(prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
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
