"""Compilation with a cache that forgets what was compiled from older sources.

Numba's own cache looks at the file of a function only: code that was compiled with a helper from
another file goes on running after the helper has changed. It also runs what it finds in its files,
or fails on it, whatever has become of them.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import re
import shutil
import stat
import tempfile
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

import numba
import numpy as np
from numba.core import caching, serialize

Function = TypeVar("Function", bound=Callable[..., object])

unsigned = np.uint64
"""What compiled code indexes with in its innermost loops: of a position that may be negative it
must find out first whether it counts from the end, which takes as long as the look-up."""

untyped: Any = caching
PACKAGE = Path(__file__).parent
KEPT_SECONDS = 7 * 24 * 3600
DIGEST = hashlib.sha256().digest_size


def compiled(inline: Literal["never", "always"] = "never") -> Callable[[Function], Function]:
    """Decorator: compile a function to machine code, once for each version of the sources."""

    def decorate(function: Function) -> Function:
        config: Any = numba.config
        dispatcher: Any = numba.njit(nogil=True, inline=inline)(function)
        if not config.DISABLE_JIT:
            before = config.CACHE_DIR
            stamp = stamp_of(frozenset(needed_sources(Path(function.__code__.co_filename))))
            config.CACHE_DIR = str(cache_folder(stamp))
            try:
                dispatcher._cache = _Cache(function)
            finally:
                config.CACHE_DIR = before
        return cast(Function, dispatcher)

    return decorate


class _Cache(untyped.FunctionCache):  # type: ignore[misc]
    """Numba's cache with files of ours; without a place for them there is none."""

    def __init__(self, function: Callable[..., object]) -> None:
        super().__init__(function)
        self._cache_file = CompiledFiles(Path(self._cache_path), self._impl.filename_base)

    def save_overload(self, sig: object, data: object) -> None:
        """Keep what was compiled for a signature, if there is a place for it."""
        with suppress(OSError):
            super().save_overload(sig, data)


class CompiledFiles:
    """What a function was compiled to, one file for each kind of arguments, with a digest.

    What cannot be read, or is not what was written, is compiled again.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name = name

    def load(self, key: object) -> Any:
        """What was saved under a key; None if there is nothing, or no longer what was saved."""
        try:
            content = self._path(key).read_bytes()
        except OSError:
            return None
        digest, body = content[:DIGEST], content[DIGEST:]
        return pickle.loads(body) if hashlib.sha256(body).digest() == digest else None

    def save(self, key: object, data: object) -> None:
        """Keep what a function was compiled to; the file appears whole or not at all."""
        body: bytes = serialize.dumps(data)  # type: ignore[no-untyped-call]
        path = self._path(key)
        part = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
        try:
            part.write_bytes(hashlib.sha256(body).digest() + body)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)

    def flush(self) -> None:
        """Forget all."""
        for path in self._folder.glob(f"{self._name}.*"):
            path.unlink(missing_ok=True)

    def _path(self, key: object) -> Path:
        # A key prints as its types, the processor and a hash of the function's code.
        digest = hashlib.sha256(f"{numba.__version__} {key!r}".encode()).hexdigest()
        return self._folder / f"{self._name}.{digest[:32]}"


IMPORT = re.compile(r"^from fsmdp(\.[\w.]+)? import (\([^)]*\)|[^\n]*)", re.M)
"""Imports at the top of a module: what compiled code can use of other modules."""


@cache
def _imports(source: Path) -> tuple[Path, ...]:
    """Modules of ours that a module imports at its top."""
    found: list[Path] = []
    for package, names in IMPORT.findall(source.read_text("utf-8")):
        folder = PACKAGE / package.strip(".").replace(".", "/")
        candidates = [folder, *(folder / name for name in re.findall(r"\w+", names))]
        found += [one for path in candidates for one in (path.with_suffix(".py"),) if one.is_file()]
    return tuple(found)


def needed_sources(source: Path) -> set[Path]:
    """The sources that decide what a function of a module compiles to: all that it imports."""
    found: set[Path] = set()
    left = [source] if source.is_file() else []
    while left:
        one = left.pop()
        if one not in found:
            found.add(one)
            left += _imports(one)
    return found


@cache
def stamp_of(sources: frozenset[Path]) -> str:
    """What changes with any of these sources."""
    stamp = hashlib.sha256()
    for source in sorted(sources):
        stamp.update(f"{source.name} {_digest(source)}\n".encode())
    return stamp.hexdigest()[:16]


@cache
def _digest(source: Path) -> str:
    return hashlib.sha256(source.read_bytes()).hexdigest()


@cache
def cache_folder(stamp: str | None = None) -> Path:
    """A folder named after sources, by default all of ours: beside them, or in the user's cache."""
    name = f"compiled-{stamp or stamp_of(frozenset(PACKAGE.rglob('*.py')))}"
    for parent in (PACKAGE / "__pycache__", *_users_cache()):
        with suppress(OSError):
            folder = parent / name
            folder.mkdir(parents=True, exist_ok=True)
            if os.access(folder, os.W_OK):
                os.utime(folder)  # still in use
                _forget_older(folder)
                return folder
    return _users_temporary(name)


def _users_cache() -> list[Path]:
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        return [(Path(base) if base else Path.home() / ".cache") / "fsmdp"]
    except RuntimeError:  # no home is known, as in some containers
        return []


def _users_temporary(name: str) -> Path:
    """A folder among temporary files; a new one if that of this name may be another user's."""
    number = os.getuid() if hasattr(os, "getuid") else 0
    folder = Path(tempfile.gettempdir()) / f"fsmdp-{number}-{name}"
    with suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        facts = folder.lstat()
        if stat.S_ISDIR(facts.st_mode) and facts.st_uid == number and not facts.st_mode & 0o022:
            return folder
    return Path(tempfile.mkdtemp(prefix="fsmdp-"))


def _forget_older(folder: Path) -> None:
    """Remove what nothing has used for a week: what was compiled from sources that are gone.

    Not sooner: a process that started with them may still be running.
    """
    for other in folder.parent.glob("compiled-*"):
        if other != folder and time.time() - other.stat().st_mtime > KEPT_SECONDS:
            shutil.rmtree(other, ignore_errors=True)
