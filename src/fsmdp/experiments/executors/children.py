"""Processes that this one starts: they end when it does, and leave Ctrl-C to it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import Pipe, resource_tracker
from multiprocessing.connection import Connection

from joblib.externals.loky.backend import resource_tracker as loky_tracker


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
