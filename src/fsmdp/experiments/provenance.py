"""Provenance: which versions of what made a result."""

from __future__ import annotations

import platform
import shlex
import subprocess
import sys
import time
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("fsmdp", "numpy", "scipy", "highspy", "clarabel", "numba", "polars", "ray", "dask")
"""Those that numbers may depend on, and the engines."""


@cache
def versions() -> dict[str, str]:
    """Versions of the packages that are installed."""
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


@cache
def source_commit() -> str | None:
    """The commit of the sources, `-dirty` if they were changed; None outside a checkout."""
    package = Path(__file__).parent.parent
    try:
        # Only if the sources themselves are tracked: an installed copy may lie in another project.
        _git(package, "ls-files", "--error-unmatch", "__init__.py")
        changed = _git(package, "status", "--porcelain", "--untracked-files=no", ".")
        return _git(package, "rev-parse", "HEAD") + ("-dirty" if changed else "")
    except (OSError, subprocess.SubprocessError):
        return None


def command_line() -> str:
    """The command of this process as a user would write it."""
    name = Path(sys.argv[0]).name
    return shlex.join(["fsmdp" if name == "__main__.py" else name, *sys.argv[1:]])


def now() -> str:
    """The time, with its zone."""
    return time.strftime("%Y-%m-%dT%H:%M:%S%z")


def provenance(executor: str, workers: int, created: str | None) -> dict[str, Any]:
    """What is making results; `finished` is filled in at the end."""
    return {
        "command": command_line(),
        "created": created or now(),
        "finished": None,
        "versions": versions(),
        "python": platform.python_version(),
        "commit": source_commit(),
        "platform": platform.platform(),
        "executor": executor,
        "workers": workers,
    }


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments],
        capture_output=True,
        text=True,
        check=True,
        timeout=10,
    )
    return done.stdout.strip()
