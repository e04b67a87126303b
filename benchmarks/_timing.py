"""The shortest of several runs, which is the least disturbed."""

import time


def best_time(action, repeats=5):
    """Shortest of several runs: other processes can only add time."""
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        action()
        times.append(time.perf_counter() - began)
    return min(times)
