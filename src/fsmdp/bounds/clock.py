"""Time limits and Ctrl-C: whoever works for long asks the clock whether to go on."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from types import FrameType
from typing import TypeVar

import numpy as np
from scipy import sparse

from fsmdp.model.tables import Floats

REACH = 10.0
"""A dual bound speaks of all columns up to so many times those found, or so many units."""


CONFIRMED = 1e-6
"""A program is solved if its dual bound is as close to its certified value, in spans of values."""


class Status(StrEnum):
    """How a solve ended. Only infeasible and unbounded leave nothing to certify.

    `optimal` says that the linear program was solved, confirmed by its dual; it does not say that
    the policy is.
    """

    OPTIMAL = "optimal"
    TIME_LIMIT = "time-limit"
    INTERRUPTED = "interrupted"
    ITERATION_LIMIT = "iteration-limit"
    STALLED = "stalled"
    INFEASIBLE = "infeasible"
    UNBOUNDED = "unbounded"
    INACCURATE = "inaccurate"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """What a solve returned; `values` may be all zeros if it found nothing."""

    status: Status
    values: Floats  # (n_columns,)
    objective: float
    iterations: int
    seconds: float
    duals: Floats | None = None  # (n_rows,), where they were asked for


def unsolved(status: Status | None, n_columns: int, seconds: float) -> Solution:
    """A solve that was stopped before it found anything."""
    return Solution(status or Status.FAILED, np.zeros(n_columns), 0.0, 0, seconds)


def dual_bound(cost: Floats, matrix: sparse.csr_matrix, lower: Floats, found: Solution) -> float:
    """A value that no solution of min cost @ x, matrix @ x >= lower within reach goes below.

    For any z >= 0: cost @ x >= lower @ z - |cost - matrix' z| @ |x|. So it holds whatever the
    solver did, for all x with |x_j| at most REACH times the larger of what was found and 1.
    """
    if found.duals is None or not np.isfinite(found.duals).all():
        return -np.inf
    duals = np.maximum(found.duals, 0.0)
    left_over = np.abs(cost - matrix.T @ duals)
    reach = REACH * np.maximum(np.abs(found.values), 1.0)
    return float(lower @ duals - left_over @ reach)


Found = TypeVar("Found")

PATIENCE = 0.25
"""Seconds past the end that a solver has to stop by itself before it is left behind."""


class Stopped(Exception):  # noqa: N818 - not an error: what was found so far is handed out
    """Time is up, or someone pressed Ctrl-C."""


class Clock:
    """How much time is left; a clock without a limit only listens for Ctrl-C."""

    def __init__(self, limit: float | None = None) -> None:
        self._ends = None if limit is None else time.perf_counter() + limit
        self._interrupted = threading.Event()
        self._others: tuple[threading.Event, ...] = ()

    def part(self, reserve: float) -> Clock:
        """A clock that ends earlier, by the seconds that something after it will need."""
        other = Clock()
        other._interrupted, other._others = self._interrupted, self._others
        if self._ends is not None:
            other._ends = max(time.perf_counter(), self._ends - reserve)
        return other

    def forgive(self, seconds: float) -> None:
        """End so much later: for what is not the caller's business, such as compiling."""
        if self._ends is not None:
            self._ends += seconds

    def branch(self, seconds: float | None = None) -> Clock:
        """A clock that stops when this one does, after so many seconds, or by itself."""
        other = Clock(seconds)
        ends = [end for end in (self._ends, other._ends) if end is not None]
        other._ends = min(ends, default=None)
        other._others = (*self._others, self._interrupted)
        return other

    def share(self, fraction: float) -> Clock:
        """A clock that ends when a fraction of the time that is left has passed."""
        left = self.left()
        return self if left is None else self.part((1 - fraction) * left)

    def left(self) -> float | None:
        """Seconds until the end, not below 0; None without a limit."""
        return None if self._ends is None else max(0.0, self._ends - time.perf_counter())

    def has(self, seconds: float) -> bool:
        """Whether something that takes so long would be ready in time."""
        left = self.left()
        return self.status is None and (left is None or seconds <= left)

    @property
    def status(self) -> Status | None:
        """Why to stop, or None as long as there is time."""
        if self._interrupted.is_set() or any(event.is_set() for event in self._others):
            return Status.INTERRUPTED
        if self._ends is not None and time.perf_counter() >= self._ends:
            return Status.TIME_LIMIT
        return None

    def check(self) -> None:
        """Raise `Stopped` if it is time to."""
        if self.status is not None:
            raise Stopped

    def interrupt(self) -> None:
        """Stop as soon as possible."""
        self._interrupted.set()

    def run(self, work: Callable[[], Found]) -> Found:
        """Run something that cannot ask by itself; `Stopped` if it is not ready in time.

        It runs in a thread that is left behind then, and is expected to check the clock, too.
        """
        if self is NO_LIMIT:
            return work()
        self.check()
        results: list[Found] = []
        errors: list[BaseException] = []
        ready = threading.Event()

        def target() -> None:
            try:
                results.append(work())
            except BaseException as error:
                errors.append(error)
            finally:
                ready.set()

        threading.Thread(target=target, name="fsmdp solver").start()
        while not ready.wait(_until(self.left())):
            if self.status is not None and not ready.wait(PATIENCE):
                raise Stopped
        if errors:
            raise errors[0]
        return results[0]

    @contextmanager
    def listening(self) -> Iterator[None]:
        """While this lasts, the first Ctrl-C stops the clock; the second raises as usual."""
        usual = signal.getsignal(signal.SIGINT)
        in_main_thread = threading.current_thread() is threading.main_thread()
        if not in_main_thread or not callable(usual):
            yield
            return

        def handle(number: int, frame: FrameType | None) -> None:
            if self._interrupted.is_set():
                usual(number, frame)
            self.interrupt()

        signal.signal(signal.SIGINT, handle)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, usual)


NO_LIMIT = Clock()
"""For those whom nobody can interrupt: everything runs to its end, in the caller's thread."""


def _until(left: float | None) -> float:
    """How long to wait at a time: a pressed Ctrl-C is noticed in between."""
    return 0.2 if left is None else min(0.2, left)
