"""Digests: every file that is written says what it holds, so that damage is seen when it is read.

They tell of accidents, not of malice: whoever changes a file can make its digest anew. So what is
read is checked as if there were none.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any

import numpy as np

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import show

DIGEST = "digest"
"""Where files keep it: a member of an NPZ or a key of a JSON object."""

NONE_YET = "0" * 64


def digest_bytes(content: bytes) -> str:
    """SHA-256 of bytes."""
    return sha256(content).hexdigest()


def digest_arrays(arrays: Mapping[str, np.ndarray]) -> str:
    """SHA-256 of names, kinds, shapes and numbers."""
    total = sha256()
    for name in sorted(arrays):
        array = np.asarray(arrays[name])
        total.update(json.dumps([name, array.dtype.str, array.shape]).encode())
        total.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return total.hexdigest()


def digest_of(arrays: Iterable[Any]) -> str:
    """A short name for what arrays hold, in their order."""
    return digest_arrays({f"{i:09}": np.asarray(array) for i, array in enumerate(arrays)})[:16]


def seal(document: Mapping[str, Any], indent: int | None = None) -> bytes:
    """A JSON object with a digest of its own text, counted with zeros in its place."""
    separators = (",", ":") if indent is None else None
    entries = {DIGEST: NONE_YET} | dict(document)
    text = json.dumps(entries, indent=indent, separators=separators, allow_nan=False) + "\n"
    return text.replace(NONE_YET, digest_bytes(text.encode()), 1).encode()


def check_seal(content: bytes, found: object, where: str, remedy: str) -> None:
    """Refuse, with a ModelError, a text that was changed since `seal` put its digest there."""
    expected = None
    if isinstance(found, str) and len(found) == len(NONE_YET):
        blank = content.replace(found.encode(errors="replace"), NONE_YET.encode(), 1)
        expected = digest_bytes(blank)
    check_digest(found, expected, where, remedy)


def check_digest(found: object, expected: str | None, where: str, remedy: str) -> None:
    """Refuse, with a ModelError, content with another digest than the one that came with it."""
    if found is None:
        raise ModelError(
            f"{where}: it has no digest, expected one as this release writes it; it is damaged or "
            f"was written by an older release; {remedy}."
        )
    if found != expected:
        raise ModelError(
            f"{where}: it was changed since it was written, its digest {show(found)} is not that "
            f"of what it holds; {remedy}."
        )
