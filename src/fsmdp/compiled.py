"""Compilation with a cache that forgets what was compiled from older sources.

Numba's own cache looks at the file of a function only: code that was compiled with a helper from
another file goes on running after the helper has changed.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., object])

PACKAGE = Path(__file__).parent


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
                return folder
        except OSError:
            continue
    return Path(tempfile.mkdtemp(prefix="fsmdp-"))
