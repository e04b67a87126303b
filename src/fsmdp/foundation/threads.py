"""Work on all cores: compiled code does not hold the interpreter's lock."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import pairwise


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


def split(count: int, least: int) -> list[slice]:
    """Positions in parts for all cores, none of which has fewer than `least` (but the only one)."""
    parts = max(1, min(count // max(1, least), cores()))
    ends = [count * part // parts for part in range(parts + 1)]
    return [slice(first, last) for first, last in pairwise(ends)]
