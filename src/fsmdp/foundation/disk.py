"""Files on disk: written whole or not at all, read within limits."""

from __future__ import annotations

import os
import re
import stat
import threading
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

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
