"""Work on all cores: compiled code does not hold the interpreter's lock."""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path


def cores() -> int:
    """Cores that this process may use, which may be fewer than the machine has."""
    allowed: Callable[[int], set[int]] | None = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed is not None else os.cpu_count() or 1


def in_threads(run: Callable[[int], None], parts: int) -> None:
    """Call run(0), ..., run(parts - 1), some at the same time; the first error is raised."""
    from concurrent.futures import ThreadPoolExecutor

    workers = min(parts, cores())
    if workers <= 1:
        for part in range(parts):
            run(part)
        return
    waiting = iter(range(parts))

    def work(_: int) -> None:
        # Parts are taken, not handed out: they may be as short as what handing one out costs.
        for part in waiting:
            run(part)

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(work, range(workers)))


BLAS_SETTINGS = (
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"),
    *("BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"),
)
"""By which a user says how many threads linear algebra has."""


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Linear algebra with one thread, unless the environment says how many.

    Matrices of fits and programs are small: a second thread mostly waits for the first, and on a
    busy machine for its turn. Cores are used by tasks of our own instead.
    """
    if any(name in os.environ for name in BLAS_SETTINGS):
        yield
        return
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:  # an installation without it is slower, and otherwise the same
        yield
        return
    with threadpool_limits(limits=1, user_api="blas"):
        yield


def split(count: int, least: int) -> list[slice]:
    """Positions in parts for all cores, none of which has fewer than `least` (but the only one)."""
    parts = max(1, min(count // max(1, least), cores()))
    ends = [count * part // parts for part in range(parts + 1)]
    return [slice(first, last) for first, last in pairwise(ends)]


FORGET = "5"
"""What makes Linux begin a new peak (proc_pid_clear_refs(5))."""


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
