"""Files of arrays (NPZ): written whole or not at all, read without pickle and within limits."""

from __future__ import annotations

import io
import json
import os
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import clip, show
from fsmdp.foundation.digests import DIGEST, check_digest, digest_arrays
from fsmdp.foundation.disk import read_file, write_file

UNREADABLE = (
    ValueError,
    TypeError,
    KeyError,
    EOFError,
    AttributeError,
    OSError,
    MemoryError,
    RecursionError,
    RuntimeError,
    SyntaxError,
    zipfile.BadZipFile,
    zlib.error,
)
"""What damaged files make zipfile and numpy raise."""


def write_arrays(
    path: str | os.PathLike[str], arrays: Mapping[str, np.ndarray], *, compress: bool = False
) -> None:
    """Write arrays by name, and their digest, to a file that appears whole or not at all."""
    content = io.BytesIO()
    pack = np.savez_compressed if compress else np.savez
    pack(content, **arrays, **{DIGEST: np.array(digest_arrays(arrays))})  # type: ignore[arg-type]
    write_file(path, content.getvalue())


def read_arrays(
    path: str | os.PathLike[str], largest: int, noun: str, remedy: str
) -> dict[str, np.ndarray]:
    """Read what `write_arrays` wrote; a ModelError if it is anything else, changed or larger."""
    content = read_file(path, largest)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            unpacked = sum(part.file_size for part in packed.infolist())
        if unpacked > largest:
            raise ValueError(f"it unpacks to {unpacked} bytes, expected at most {largest}")
        with np.load(io.BytesIO(content), allow_pickle=False) as stored:
            arrays = {name: np.asarray(stored[name], order="C") for name in stored.files}
        digest = arrays.pop(DIGEST, None)
        expected = digest_arrays(arrays)
    except UNREADABLE as error:
        what = f"{show(str(path))} is not a {noun}"
        raise ModelError(f"{what}: {clip(str(error))}; {remedy}.") from None
    check_digest(None if digest is None else str(digest), expected, show(str(path)), remedy)
    return arrays


def pack_json(data: Any) -> np.ndarray:
    """Plain data as an array of bytes."""
    return np.frombuffer(json.dumps(data, separators=(",", ":")).encode(), dtype=np.uint8)
