"""Compilation with a cache that forgets what was compiled from older sources.

Numba's own cache depends on the file of a function only: code that was compiled with a helper from
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
import sys
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
from numba.core import caching, serialize, types
from numba.core.registry import CPUDispatcher, cpu_target

Function = TypeVar("Function", bound=Callable[..., object])

unsigned = np.uint64
"""What compiled code indexes with in its innermost loops: of a position that may be negative it
must find out first whether it counts from the end, which takes as long as the look-up."""

untyped: Any = caching
PACKAGE = Path(__file__).parent
KEPT_SECONDS = 7 * 24 * 3600
DIGEST = hashlib.sha256().digest_size


def compiled(
    inline: Literal["never", "always"] = "never", inner: bool = False
) -> Callable[[Function], Function]:
    """Decorator: compile a function to machine code, once for each version of the sources.

    One that is `inner` is called by compiled code alone: what takes Python's arguments apart is
    left out, which for tuples of many arrays takes longer to compile than a small function.
    """

    def decorate(function: Function) -> Function:
        config: Any = numba.config
        njit: Any = numba.njit
        dispatcher = njit(
            nogil=True,
            inline=inline,
            no_cfunc_wrapper=True,  # nobody calls these functions from C
            no_cpython_wrapper=inner,
        )(function)
        if not config.DISABLE_JIT:
            dispatcher._cache = _Cache(function)
            dispatcher.__class__ = _Inner if inner else _Dispatcher
        return cast(Function, dispatcher)

    return decorate


class _Dispatcher(CPUDispatcher):
    """Compiled for numbers, whatever they are; Numba would compile again for each constant."""

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """What a call from compiled code with arguments of these types calls."""
        plain: Any = types.unliteral
        named = {name: plain(kind) for name, kind in kws.items()}
        return super().get_call_template(tuple(map(plain, args)), named)


class _Inner(_Dispatcher):
    """Without what Python would need to call it."""

    def __call__(self, *_: object, **__: object) -> None:
        name = self.py_func.__name__
        raise TypeError(f"{name} is for compiled code only; decorate it without inner=True.")


class _Place(untyped._CacheLocator):  # type: ignore[misc]
    """A folder named after the sources of a function, and not, as Numba's, after where they are.

    So what was compiled before the package was installed is found after.
    """

    def __init__(self, function: Callable[..., object], source: str) -> None:
        self._py_file = source
        self._line = function.__code__.co_firstlineno
        self.folders = cache_folders(stamp_of(frozenset(needed_sources(Path(source)))))

    @classmethod
    def from_function(cls, py_func: Callable[..., object], py_file: str) -> _Place:
        """The place of a function."""
        return cls(py_func, py_file)

    def ensure_cache_path(self) -> None:
        """Nothing: the folder was made when it was chosen, and files see to themselves."""

    def get_cache_path(self) -> str:
        """The folder that new files go to."""
        return str(self.folders[0])

    def get_source_stamp(self) -> str:
        """Nothing: the folder says it."""
        return ""

    def get_disambiguator(self) -> str:
        """The first line, as the names of functions need not differ."""
        return str(self._line)


class _Results(untyped.CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (_Place,)


class _Cache(untyped.FunctionCache):  # type: ignore[misc]
    """Numba's cache with files of ours; without a place for them there is none."""

    _impl_class = _Results

    def __init__(self, function: Callable[..., object]) -> None:
        super().__init__(function)
        name = f"{function.__module__}.{self._impl.filename_base}"
        self._cache_file = CompiledFiles(name, *self._impl.locator.folders)

    def save_overload(self, sig: object, data: object) -> None:
        """Keep what was compiled for a signature, if there is a place for it."""
        with suppress(OSError):
            super().save_overload(sig, data)


class CompiledFiles:
    """What a function was compiled to, one file for each kind of arguments, with a digest.

    What cannot be read, or is not what was written, is compiled again. New files go to the first
    of the folders.
    """

    def __init__(self, name: str, *folders: Path) -> None:
        self._name = name
        self._folders = folders

    def load(self, key: object) -> Any:
        """What was saved under a key; None if there is nothing, or no longer what was saved."""
        name = self._file(key)
        for folder in self._folders:
            with suppress(OSError):
                content = (folder / name).read_bytes()
                digest, body = content[:DIGEST], content[DIGEST:]
                if hashlib.sha256(body).digest() == digest:
                    return pickle.loads(body)
        return None

    def save(self, key: object, data: object) -> None:
        """Keep what a function was compiled to; the file appears whole or not at all."""
        body: bytes = serialize.dumps(data)  # type: ignore[no-untyped-call]
        path = self._folders[0] / self._file(key)
        part = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
        try:
            part.write_bytes(hashlib.sha256(body).digest() + body)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)

    def flush(self) -> None:
        """Forget all that may be forgotten."""
        for folder in self._folders:
            with suppress(OSError):
                for path in folder.glob(f"{self._name}.*"):
                    path.unlink(missing_ok=True)

    def _file(self, key: object) -> str:
        # A key prints as its types, the processor and a hash of the function's code.
        digest = hashlib.sha256(f"{numba.__version__} {key!r}".encode()).hexdigest()
        return f"{self._name}.{digest[:32]}"


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
def cache_folders(stamp: str | None = None) -> tuple[Path, ...]:
    """Folders named after sources, by default all of ours: one to write to, others to read too.

    That is the one beside the sources, or, where that may only be read, one in the user's cache.
    """
    name = f"compiled-{stamp or stamp_of(frozenset(PACKAGE.rglob('*.py')))}"
    beside = PACKAGE / "__pycache__" / name
    for folder in (beside, *(parent / name for parent in _users_cache())):
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            if os.access(folder, os.W_OK):
                os.utime(folder)  # still in use
                _forget_older(folder.parent)
                return (folder,) if folder == beside else (folder, beside)
    return _users_temporary(name), beside


def is_ready(what: str) -> bool:
    """Whether something was once compiled whole: from these sources, for this processor."""
    return any((folder / _mark(what)).exists() for folder in cache_folders())


def set_ready(what: str) -> None:
    """Remember that something was compiled whole."""
    with suppress(OSError):
        (cache_folders()[0] / _mark(what)).touch()


def _mark(what: str) -> str:
    processor = cpu_target.target_context.codegen().magic_tuple()
    facts = f"{numba.__version__} {sys.implementation.cache_tag} {processor}"
    return f"{what.replace(' ', '-')}.{hashlib.sha256(facts.encode()).hexdigest()[:16]}"


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


@cache
def _forget_older(parent: Path) -> None:
    """Remove what nothing has used for a week: what was compiled from sources that are gone.

    Not sooner: a process that started with them may still be running. What fits the sources of
    today stays, used or not: it may have come with the package.
    """
    old = []
    for folder in parent.glob("compiled-*"):
        with suppress(OSError):
            if time.time() - folder.stat().st_mtime > KEPT_SECONDS:
                old.append(folder)
    current = _current_names() if old else frozenset()
    for folder in old:
        if folder.name in current:
            with suppress(OSError):
                os.utime(folder)
        else:
            shutil.rmtree(folder, ignore_errors=True)


def _current_names() -> frozenset[str]:
    sources = frozenset(PACKAGE.rglob("*.py"))
    stamps = {stamp_of(frozenset(needed_sources(source))) for source in sources}
    return frozenset(f"compiled-{stamp}" for stamp in stamps | {stamp_of(sources)})
