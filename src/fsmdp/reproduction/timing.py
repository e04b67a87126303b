"""Seconds, as far as a busy machine lets them be known."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


def seconds_of(action: Callable[[], Result], repeats: int = 3) -> tuple[float, Result]:
    """Shortest of several runs, since other processes can only add time, and the last result."""
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        result = action()
        times.append(time.perf_counter() - began)
    return min(times), result
