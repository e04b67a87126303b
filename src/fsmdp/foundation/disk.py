"""Files on disk: written whole or not at all, read within limits."""

import io
import json
import math
import os
import re
import stat
import struct
import threading
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import clip, show

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows, where a file that is open cannot be removed
    fcntl = None  # type: ignore[assignment]

PART = ".part"
"""How the names of files end that are being written."""


def write_file(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file that appears whole or not at all; a ModelError if it cannot be written.

    It is written aside, forced to the disk and then put in its place, so a process that is killed
    at any moment leaves the old file or the new one, and at worst what it wrote aside, which the
    next process that writes the same file removes. What is no regular file stays as it is.
    """
    target = _as_path(path, "write")
    part = None
    try:
        target = target.resolve()  # a link goes on leading where it leads
        if target.exists() and not target.is_file():
            raise ValueError("it is a folder, a pipe or a device; give the path of a regular file")
        _remove_leftovers_once(target.absolute())
        part = target.with_name(f".{target.name}.{os.getpid()}-{threading.get_ident()}{PART}")
        with part.open("wb") as file:
            _hold(file)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)
    except (OSError, ValueError) as error:
        raise ModelError(f"cannot write {show(str(target))}: {_reason(error)}.") from None
    finally:
        if part is not None:
            with suppress(OSError, ValueError):
                part.unlink()


def remove_leftovers(path: str | os.PathLike[str]) -> None:
    """Remove what killed processes wrote aside for a file; what is being written stays."""
    target = Path(path)
    ours = re.compile(rf"\.{re.escape(target.name)}\.\d+-\d+{re.escape(PART)}")
    with suppress(OSError):
        for other in target.absolute().parent.iterdir():
            if ours.fullmatch(other.name) and other.is_file() and not _is_held(other):
                other.unlink(missing_ok=True)


def read_file(path: str | os.PathLike[str], largest: int) -> bytes:
    """The bytes of a regular file of at most so many; a ModelError if it cannot be read."""
    source = _as_path(path, "read")
    try:
        return _read_bytes(source, largest)
    except (OSError, ValueError) as error:
        raise ModelError(f"cannot read {show(str(source))}: {_reason(error)}.") from None


def make_folder(path: str | os.PathLike[str]) -> Path:
    """A folder that is there, with those above it; a ModelError if it cannot be made."""
    folder = _as_path(path, "make the folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise ModelError(
            f"cannot make the folder {show(str(folder))}: {_reason(error)}; name another folder."
        ) from None
    return folder


def check_path(path: object) -> Path:
    """The path of a file that can be written: its folder is there, and it is no folder itself."""
    target = _as_path(path, "write")
    shown = show(str(target))
    try:
        with suppress(FileNotFoundError):
            target.stat()
        folder = target.absolute().parent
        is_folder, has_folder = target.is_dir(), folder.is_dir()
    except (OSError, ValueError) as error:
        raise ModelError(f"cannot write {shown}: {_reason(error)}; give another path.") from None
    if is_folder:
        raise ModelError(f"cannot write {shown}: it is a folder; give the path of a file in it.")
    if target.exists() and not target.is_file():
        raise ModelError(f"cannot write {shown}: it is a pipe or a device; give another path.")
    if not has_folder:
        raise ModelError(f"cannot write {shown}: its folder is not there; make it first.")
    if not os.access(folder, os.W_OK):
        raise ModelError(f"cannot write {shown}: no permission in its folder; use another one.")
    return target


@lru_cache(1024)
def _remove_leftovers_once(target: Path) -> None:
    remove_leftovers(target)


def _hold(file: BinaryIO) -> None:
    """Hold a file until it is closed, which a killed process cannot fail to do."""
    if fcntl is not None:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _is_held(path: Path) -> bool:
    if fcntl is None:  # pragma: no cover - Windows
        return False
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    return False


def _as_path(path: object, doing: str) -> Path:
    try:
        return Path(path)  # type: ignore[arg-type]
    except TypeError:
        raise ModelError(
            f"cannot {doing} {show(path)}: expected the path of a file, found a "
            f"{type(path).__name__}; give a string or a Path."
        ) from None


def _reason(error: OSError | ValueError) -> str:
    return clip(getattr(error, "strerror", None) or str(error))


def _read_bytes(source: Path, largest: int) -> bytes:
    """The bytes of a regular file; a pipe or a device, which may have no end, is not waited for."""

    def open_at_once(name: str, flags: int) -> int:
        return os.open(name, flags | getattr(os, "O_NONBLOCK", 0))

    with open(source, "rb", opener=open_at_once) as file:
        facts = os.fstat(file.fileno())
        if not stat.S_ISREG(facts.st_mode):
            raise ValueError("it is a pipe or a device, expected a regular file; copy it to one")
        content = b"" if facts.st_size > largest else file.read(largest + 1)
        if max(facts.st_size, len(content)) > largest:
            raise ValueError(f"it has {facts.st_size} bytes, expected at most {largest}")
        return content


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
