"""Compilation with a cache that forgets what was compiled from older sources.

Numba's own cache looks at the file of a function only: code that was compiled with a helper from
another file goes on running after the helper has changed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., object])

PACKAGE = Path(__file__).parent
KEPT_SECONDS = 24 * 3600


def compiled(inline: Literal["never", "always"] = "never") -> Callable[[Function], Function]:
    """Decorator: compile a function to machine code, once for each version of the sources."""

    def decorate(function: Function) -> Function:
        config: Any = numba.config
        compile_with_cache: Any = numba.njit(cache=True, nogil=True, inline=inline)
        before = config.CACHE_DIR
        config.CACHE_DIR = str(cache_folder())
        try:
            return cast(Function, compile_with_cache(function))
        finally:
            config.CACHE_DIR = before

    return decorate


@cache
def cache_folder() -> Path:
    """A folder named after the sources as they are: beside them, or in the user's cache."""
    stamp = hashlib.sha256()
    for source in sorted(PACKAGE.rglob("*.py")):
        facts = source.stat()
        stamp.update(
            f"{source.relative_to(PACKAGE)} {facts.st_mtime_ns} {facts.st_size}\n".encode()
        )
    name = f"compiled-{stamp.hexdigest()[:16]}"
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fsmdp"
    for parent in (PACKAGE / "__pycache__", user):
        folder = parent / name
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if os.access(folder, os.W_OK):
                _forget_older(folder)
                return folder
        except OSError:
            continue
    return Path(tempfile.mkdtemp(prefix="fsmdp-"))


def _forget_older(folder: Path) -> None:
    """Remove what was compiled from sources that have been gone for a day.

    Not sooner: a process that started with them may still be running.
    """
    for other in folder.parent.glob("compiled-*"):
        if other != folder and time.time() - other.stat().st_mtime > KEPT_SECONDS:
            shutil.rmtree(other, ignore_errors=True)
