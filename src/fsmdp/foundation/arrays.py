"""Files of arrays (NPZ): written whole or not at all, read without pickle and within limits.

The format is a strict part of what numpy reads: members one after another from the first byte on,
then the directory, and nothing else. Headers are rebuilt when a file is read and must be the same
bytes, so that no file can mean one thing to one reader and another to the next.
"""

from __future__ import annotations

import io
import json
import math
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import clip, show
from fsmdp.foundation.digests import DIGEST, check_digest, digest_arrays
from fsmdp.foundation.disk import read_file, write_file

EPOCH = (1980, 1, 1, 0, 0, 0)
UNIX, PRIVATE = 3, 0o600 << 16
"""The date, system and permissions of every member."""

LOCAL, DIRECTORY, END = struct.Struct("<4s5H3I2H"), struct.Struct("<4s6H3I5H2I"), "<4s4H2IH"
ARRAY = re.compile(
    rb"\x93NUMPY\x01\0(..)\{'descr': '([<|][a-zA-Z][0-9]{1,9})', 'fortran_order': False, "
    rb"'shape': (\([0-9, ]*\)), \} *\n",
    re.DOTALL,
)
LARGEST_MEMBER = 2**31 - 1


def write_arrays(
    path: str | os.PathLike[str], arrays: Mapping[str, np.ndarray], *, compress: bool = False
) -> None:
    """Write arrays by name, and their digest, to a file that appears whole or not at all."""
    digest = np.array(digest_arrays(arrays))
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as packed:
        for name, array in [*arrays.items(), (DIGEST, digest)]:
            about = zipfile.ZipInfo(f"{name}.npy", EPOCH)
            about.create_system, about.external_attr = UNIX, PRIVATE
            kind = zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED
            packed.writestr(about, array_bytes(array), kind)
    write_file(path, content.getvalue())


def array_bytes(array: np.ndarray) -> bytes:
    """An array with its header (NPY)."""
    member = io.BytesIO()
    ordered = np.asarray(array, order="C")
    np.lib.format.write_array(member, ordered, version=(1, 0), allow_pickle=False)
    return member.getvalue()


def read_arrays(
    path: str | os.PathLike[str], largest: int, noun: str, remedy: str
) -> dict[str, np.ndarray]:
    """Read what `write_arrays` wrote; a ModelError if it is anything else, changed or larger."""
    content = read_file(path, largest)
    try:
        arrays = {name: _read_array(data) for name, data in read_members(content, largest).items()}
        digest = arrays.pop(DIGEST, None)
        expected = digest_arrays(arrays)
        found = None if digest is None else str(digest)
    except (ValueError, TypeError, MemoryError) as error:
        what = f"{show(str(path))} is not a {noun}"
        raise ModelError(f"{what}: {clip(str(error))}; {remedy}.") from None
    check_digest(found, expected, show(str(path)), remedy)
    return arrays


def read_members(content: bytes, largest: int) -> dict[str, bytes]:
    """The members of an archive by name, without their ending; a ValueError if it is not strict."""
    members: dict[str, bytes] = {}
    directory, at, left = b"", 0, largest
    while content[at : at + 4] == b"PK\3\4":
        if len(content) < at + LOCAL.size:
            raise ValueError("the archive ends too early")
        _, _, _, kind, _, _, check, packed, size, n_name, _ = LOCAL.unpack_from(content, at)
        name = content[at + LOCAL.size : at + LOCAL.size + n_name]
        fields = (20, 0, kind, 0, 33, check, packed, size, len(name))  # of 1980-01-01
        header = LOCAL.pack(b"PK\3\4", *fields, 0) + name
        if kind not in (0, 8) or content[at : at + len(header)] != header:
            raise ValueError(f"the archive's header of {_shown(name)} is not one of this library")
        left -= size
        if size > LARGEST_MEMBER or left < 0:
            raise ValueError(f"it unpacks to more than {largest} bytes, the limit")
        entry = (b"PK\1\2", UNIX << 8 | 20, *fields, 0, 0, 0, 0, PRIVATE, at)
        directory += DIRECTORY.pack(*entry) + name
        at += len(header)
        key = name.decode("ascii").removesuffix(".npy")
        if key in members or not name.endswith(b".npy"):
            raise ValueError(f"the archive's member {_shown(name)} is there twice, or is no array")
        members[key] = _unpacked(content[at : at + packed], kind, size, check, name)
        at += packed
    counts = (0, 0, len(members), len(members), len(directory), at, 0)
    if not members or len(members) >= 2**16:
        raise ValueError("it is not an archive of arrays")
    if content[at:] != directory + struct.pack(END, b"PK\5\6", *counts):
        raise ValueError("the archive's directory does not say what it holds, or more follows")
    return members


def _unpacked(data: bytes, kind: int, size: int, check: int, name: bytes) -> bytes:
    if kind == 0:
        found, whole = data, True
    else:
        stream = zlib.decompressobj(-zlib.MAX_WBITS)
        try:
            found = stream.decompress(data, size + 1)
        except zlib.error as error:
            raise ValueError(f"the archive's member {_shown(name)}: {error}") from None
        whole = stream.eof and not stream.unused_data
    if not whole or len(found) != size or zlib.crc32(found) != check:
        raise ValueError(f"the archive's member {_shown(name)} is damaged")
    return found


def _read_array(data: bytes) -> np.ndarray:
    """An array from the bytes of its member: an exact header, and exactly its numbers."""
    match = ARRAY.match(data)
    if match is None or match.end() % 64 or match[1] != struct.pack("<H", match.end() - 10):
        raise ValueError("an array's header is not one of this library")
    shape = tuple(int(n) for n in re.findall(rb"[0-9]{1,18}", match[3]))
    kind = np.dtype(match[2].decode())
    size = math.prod(shape) * kind.itemsize
    exact = repr(shape).encode() == match[3] and kind.str.encode() == match[2]
    if not exact or kind.kind not in "biufU" or len(data) != match.end() + size:
        raise ValueError("an array's header does not describe what follows it")
    if kind.kind == "b" and data[match.end() :].translate(None, b"\0\1"):
        raise ValueError("an array of truth values holds others")
    array = np.frombuffer(data, kind, offset=match.end()).reshape(shape)
    return array.copy()


def _shown(name: bytes) -> str:
    return show(name.decode("ascii", "replace"))


def unpack_json(array: np.ndarray, largest: int, most_items: int) -> Any:
    """Plain data from an array of bytes: UTF-8, no key twice, finite numbers; else a ValueError.

    Bytes, and entries of lists and objects, are limited before anything is read.
    """
    if array.dtype != np.uint8 or array.ndim != 1:
        raise ValueError("its description is not an array of bytes")
    content = array.tobytes()
    items = sum(content.count(mark) for mark in (b",", b"[", b"{"))
    if len(content) > largest or items > most_items:
        raise ValueError(
            f"its description has {len(content)} bytes and {items} entries, expected at most "
            f"{largest} and {most_items}"
        )

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            raise ValueError("its description has a key twice")
        return dict(pairs)

    def refuse(name: str) -> float:
        raise ValueError(f"its description holds {name}, which is no number of JSON")

    try:
        return json.loads(content.decode("utf-8"), object_pairs_hook=once, parse_constant=refuse)
    except RecursionError:
        raise ValueError("its description is nested too deeply") from None


def pack_json(data: Any) -> np.ndarray:
    """Plain data as an array of bytes."""
    return np.frombuffer(json.dumps(data, separators=(",", ":")).encode(), dtype=np.uint8)
