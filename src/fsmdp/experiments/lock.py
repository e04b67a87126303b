"""One process at a time in a folder of runs."""

from __future__ import annotations

import json
import logging
import os
import socket
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fsmdp.errors import ExperimentError

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows
    fcntl = None  # type: ignore[assignment]

LOCK = ".lock"

log = logging.getLogger("fsmdp")


@contextmanager
def locked(folder: Path, command: str) -> Iterator[str]:
    """Hold the folder and give a token that tells it from all others; ExperimentError if held.

    The operating system releases the lock when its process ends, by whatever means. The token
    stands in the lock file, so that a worker can tell whether it sees this very folder.
    """
    path = folder / LOCK
    token = uuid.uuid4().hex
    try:
        file = path.open("a+")
    except OSError as error:
        raise ExperimentError(
            f"cannot lock {str(folder)!r}: {error.strerror or error}; give a folder that can be "
            "written with --output."
        ) from None
    with file:
        if fcntl is None:  # pragma: no cover - Windows
            log.warning("this platform has no advisory locks: start one process a folder")
        else:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise ExperimentError(_held(path)) from None
        file.seek(0)
        file.truncate()
        holder = {
            "process": os.getpid(),
            "host": socket.gethostname(),
            "since": time.strftime("%Y-%m-%d %H:%M:%S"),
            "command": command,
            "token": token,
        }
        file.write(json.dumps(holder))
        file.flush()
        yield token


def is_held_as(folder: Path, token: str) -> bool:
    """Whether this is the folder whose lock was taken with the token, seen from any machine."""
    return _holder(folder / LOCK).get("token") == token


def _holder(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _held(path: Path) -> str:
    holder = _holder(path)
    who = (
        f"process {holder.get('process')} on {holder.get('host')} since {holder.get('since')} "
        f"({holder.get('command')})"
        if holder
        else "another process"
    )
    return (
        f"{str(path.parent)!r} is in use by {who}; wait for it to end, or give another folder with "
        "--output."
    )
