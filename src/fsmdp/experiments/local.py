"""Processes on this machine, through loky, which comes with joblib."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import Pipe, resource_tracker
from multiprocessing.connection import Connection
from typing import Any

from joblib.externals.loky import ProcessPoolExecutor
from joblib.externals.loky.backend import resource_tracker as loky_tracker

from fsmdp.errors import ExperimentError, ModelError
from fsmdp.experiments.executors import RETRIES, Result, Task
from fsmdp.foundation.checks import show

LIBRARIES = ("OMP", "OPENBLAS", "MKL", "NUMBA")
ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in LIBRARIES}
"""What the environment must say before numpy is imported."""


def use_one_thread() -> None:
    """Ask libraries for one thread; works only before numpy is imported.

    Sums may round differently with another number of threads.
    """
    for name, value in ONE_THREAD.items():
        os.environ.setdefault(name, value)


class Lifeline:
    """A pipe that nobody writes to: its other end is closed when this process is gone, however."""

    def __init__(self) -> None:
        self.child_end, self._own_end = Pipe(duplex=False)

    def cut(self) -> None:
        """End the processes that hold on to it."""
        self._own_end.close()
        self.child_end.close()


def end_with(lifeline: Connection) -> None:
    """Called in a child: end it, in the midst of whatever it does, once its parent is gone.

    What a child has written is whole or not there at all, and the next process does its run again.
    """

    def wait() -> None:
        lifeline.poll(None)
        os._exit(1)

    threading.Thread(target=wait, name="fsmdp-lifeline", daemon=True).start()


@contextmanager
def deaf_to_interrupts() -> Iterator[None]:
    """Processes that are started within never see an interrupt; this process sees it afterwards.

    A terminal sends Ctrl-C to children too, which would print tracebacks; their parent ends them.
    """
    if not hasattr(signal, "pthread_sigmask"):  # pragma: no cover - Windows
        yield
        return
    # Both would be started with the first child, and then make this thread hear again.
    resource_tracker.ensure_running()
    loky_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class LocalExecutor:
    """A pool of processes, each with one thread for linear algebra and compiled code."""

    name = "local"
    children = True

    def __init__(self, workers: int, address: str | None = None) -> None:
        if address is not None:
            raise ModelError(
                f"address: executor 'local' has none, found {show(address)}; leave it out, or "
                "choose an executor that joins a cluster."
            )
        self.workers = workers
        self._pool: Any = None
        self._size = 0
        self._lifeline: Lifeline | None = None

    def run(
        self, function: Callable[[Task], Result], tasks: Sequence[Task]
    ) -> Iterator[tuple[int, Result | ExperimentError]]:
        """Positions of tasks with their results.

        The death of a worker breaks the whole pool and nobody can tell whose fault it was, so what
        is left is done in a new pool, a few times over if nothing gets done in between.
        """
        left = dict(enumerate(tasks))
        deaths = 0
        while left:
            try:
                for position, result in self._results(function, left):
                    del left[position]
                    deaths = 0
                    yield position, result
            except BrokenProcessPool as error:
                self._stop()
                deaths += 1
                if deaths > RETRIES:
                    raise ExperimentError(
                        f"local workers died {deaths} times without finishing a run; expected them "
                        "to survive; they may need more memory than there is: use fewer --workers."
                    ) from error

    def _results(
        self, function: Callable[[Task], Result], tasks: dict[int, Task]
    ) -> Iterator[tuple[int, Result]]:
        wanted = min(self.workers, len(tasks))  # idle processes would only take memory
        if self._size < wanted:
            self._stop()
            self._lifeline = Lifeline()
            self._pool = ProcessPoolExecutor(
                max_workers=wanted,
                env=ONE_THREAD,
                initializer=end_with,
                initargs=(self._lifeline.child_end,),
            )
            self._size = wanted
        with deaf_to_interrupts():  # the first task starts the processes
            position_of = {self._pool.submit(function, task): at for at, task in tasks.items()}
        for future in as_completed(position_of):
            yield position_of[future], future.result()

    def _stop(self) -> None:
        if self._pool is not None:
            with _quiet_manager():
                self._pool.shutdown(wait=True, kill_workers=True)
            self._pool, self._size = None, 0
        if self._lifeline is not None:
            self._lifeline.cut()
            self._lifeline = None

    def __enter__(self) -> LocalExecutor:
        return self

    def __exit__(self, *_: object) -> None:
        """All that matters is on the disk, so nobody waits for a worker."""
        self._stop()


@contextmanager
def _quiet_manager() -> Iterator[None]:
    """Keep quiet about tasks that loky's manager misses while its pool is being killed."""
    usual = threading.excepthook

    def hook(failed: threading.ExceptHookArgs) -> None:
        name = "" if failed.thread is None else failed.thread.name
        if not (name.startswith("ExecutorManager") and failed.exc_type is KeyError):
            usual(failed)

    threading.excepthook = hook
    try:
        yield
    finally:
        threading.excepthook = usual
