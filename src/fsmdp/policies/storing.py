"""Compiled policies as named arrays, for files, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fsmdp.model.actions import Actions
from fsmdp.model.lookup import Lookup
from fsmdp.policies.arrays import CompiledPolicy, joint_of, packed_table, unpacked_table
from fsmdp.policies.folded import Folded
from fsmdp.policies.hashed import Hashed
from fsmdp.policies.joint import nothing_joint
from fsmdp.policies.views import Seeing

PARTS: dict[str, Any] = {"lookup": Lookup, "folded": Folded, "hashed": Hashed, "seeing": Seeing}

ROWS = "joint/rows"
"""Joint actions that a policy knows by position: all else about them is made anew."""


def policy_to_arrays(policy: CompiledPolicy) -> dict[str, np.ndarray]:
    """All arrays by name, those of parts as part/name."""
    found: dict[str, np.ndarray] = {}
    for name, value in policy._asdict().items():
        if name == "joint":
            found[ROWS] = value.rows
        elif name in PARTS:
            found |= {f"{name}/{one}": np.asarray(a) for one, a in value._asdict().items()}
        else:
            found[name] = np.asarray(value)
    found["table"] = unpacked_table(policy.table)
    return found


def array_names() -> set[str]:
    """Names of all arrays of a policy."""
    parts = {f"{part}/{one}" for part, kind in PARTS.items() for one in kind._fields}
    return parts | {ROWS, *CompiledPolicy._fields} - {*PARTS, "joint"}


def policy_from_arrays(
    arrays: Mapping[str, np.ndarray], sizes: Sequence[int], actions: Sequence[str]
) -> CompiledPolicy:
    """The inverse of `policy_to_arrays`, unchecked: see `check_policy`. A ValueError or KeyError if
    arrays are missing.
    """
    given: dict[str, Any] = {}
    for name in CompiledPolicy._fields:
        if name == "joint":
            given[name] = nothing_joint()
        elif name in PARTS:
            part = PARTS[name]
            given[name] = part(**{one: arrays[f"{name}/{one}"] for one in part._fields})
        else:
            given[name] = arrays[name]
    given["table"] = packed_table(given["table"])
    given["kind"] = _number(given["kind"], np.int64, "kind")
    hashed = given["hashed"]
    by_step = bool(_number(hashed.by_step, np.bool_, "by_step"))
    given["hashed"] = hashed._replace(by_step=by_step)
    found = CompiledPolicy(**given)
    if isinstance(actions, Actions):
        found = found._replace(joint=joint_of(found, sizes, actions, arrays[ROWS]))
    return found


def _number(array: np.ndarray, kind: Any, name: str) -> Any:
    if array.shape != () or array.dtype != kind:
        raise ValueError(f"policy: {name} must be one {np.dtype(kind)}")
    return array.item()
