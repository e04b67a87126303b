"""How much memory this process has held at most, and how much it may have."""

from __future__ import annotations

import re
from pathlib import Path

FORGET = "5"
"""What Linux takes as the wish to begin a new peak (proc_pid_clear_refs(5))."""


def begin_peak() -> bool:
    """Let the peak begin here; False where it stays that of the whole process."""
    try:
        Path("/proc/self/clear_refs").write_text(FORGET)
    except OSError:
        return False
    return True


def peak_memory() -> int | None:
    """The most bytes that were held at a time since the peak began; None where nobody tells."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return None
    found = re.search(r"^VmHWM:\s*(\d+) kB", status, re.MULTILINE)
    return None if found is None else 1024 * int(found[1])


def address_space() -> int | None:
    """Bytes that this process may map at most (`ulimit -v`); None without a limit."""
    try:
        import resource
    except ImportError:  # not on POSIX
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def is_shortage(error: BaseException) -> bool:
    """Whether an error says that memory was too short; threads need some to start."""
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and "can't start new thread" in str(error)
    )
