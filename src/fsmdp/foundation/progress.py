"""Progress of what takes long, in a terminal and in a notebook: off unless it is asked for."""

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from html import escape
from typing import Any

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import show

PATIENCE = 2.0
"""Seconds before a bar appears: what is over sooner needs none."""

BETWEEN_UPDATES = 0.2
"""Seconds between two changes of what a notebook shows."""

BETWEEN_LOOKS = 1.0
"""Seconds after which a notebook's clock goes on, though nothing was reported."""

Report = Callable[[int, int], None]
"""Called with how much is done, and how much there is in all."""

Update = Callable[[float, str], None]
"""Called with how much is done, and a note."""


@contextmanager
def reporting(progress: bool | Report | None, text: str, total: int) -> Iterator[Report | None]:
    """What to call with each advance: the caller's function, a bar, or nothing."""
    check_progress(progress, "(done, in all)")
    if progress is not True:
        yield progress or None
        return
    with bar(text, total) as update:
        yield lambda done, _: update(done, "")


@contextmanager
def stages(progress: bool | Callable[[str], None] | None, text: str) -> Iterator[None]:
    """Show what the library logs meanwhile: by the caller's function, in a bar, or not at all."""
    check_progress(progress, "of a text")
    with ExitStack() as open_contexts:
        if progress is True:
            update = open_contexts.enter_context(bar(text, None))
            open_contexts.enter_context(listening(lambda line: update(0, line)))
        elif progress:
            open_contexts.enter_context(listening(progress))
        yield


def check_progress(progress: object, arguments: str) -> None:
    """Refuse what is neither a switch nor a function."""
    called = callable(progress) and not isinstance(progress, type)
    if progress is not None and not isinstance(progress, bool) and not called:
        raise ModelError(
            f"progress: expected True or a function {arguments}, found {show(progress)}; "
            "leave it out."
        )


@contextmanager
def listening(show: Callable[[str], None]) -> Iterator[None]:
    """Hand over what the library logs."""

    class Show(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            show(record.getMessage())

    log, handler = logging.getLogger("fsmdp"), Show()
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)


@contextmanager
def bar(text: str, total: float | None, unit: str = "") -> Iterator[Update]:
    """A bar that appears after a while and is gone in the end; without a total it only moves.

    In a notebook it is an element of the cell, in a terminal it is drawn on the error stream, and
    anywhere else nothing is shown.
    """
    if "ipykernel" in sys.modules:
        with NotebookBar(text, total, unit).going_on() as update:
            yield update
        return
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _, __: None
        return
    with _terminal_bar(console, text, total, unit) as update:
        yield update


@contextmanager
def _terminal_bar(console: Any, text: str, total: float | None, unit: str) -> Iterator[Update]:
    from rich.progress import (
        BarColumn,
        Progress,
        ProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.table import Column
    from rich.text import Text

    class Note(ProgressColumn):
        def render(self, task: Any) -> Text:
            return Text(task.fields["note"], no_wrap=True, overflow="ellipsis")

    # Columns that may wrap give way first on a narrow screen: the note alone, which is cut.
    whole = Column(no_wrap=True)
    columns = [
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20, table_column=whole),
        *([] if total is None else [TextColumn("{task.completed:.0f}/{task.total:.0f}")]),
        *([TextColumn(unit)] if unit else []),
        TimeElapsedColumn(table_column=whole),
        *([] if total is None else [TimeRemainingColumn(table_column=whole)]),
        Note(),
    ]
    # Streams stay as they are: what is imported meanwhile may keep them for good.
    shown = Progress(
        *columns,
        console=console,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    task = shown.add_task(text, total=total, note="")
    # The work does not wait for us, nor call us when it is in the middle of something.
    timer = threading.Timer(PATIENCE, shown.start)
    timer.daemon = True
    timer.start()
    try:
        yield lambda done, note: shown.update(task, completed=done, note=note)
    finally:
        timer.cancel()
        timer.join()
        if shown.live.is_started:
            shown.stop()


class NotebookBar:
    """A bar in a notebook's cell; it needs no widgets."""

    def __init__(self, text: str, total: float | None, unit: str) -> None:
        self._text, self._total, self._unit = text, total, unit
        self._began = self._last = time.monotonic()
        self._now: tuple[float, str] = 0.0, ""
        self._drawing = threading.Lock()
        self._handle: Any = None

    @contextmanager
    def going_on(self) -> Iterator[Update]:
        """Let the clock go on while the work says nothing, and leave nothing behind."""
        over = threading.Event()

        def look() -> None:
            while not over.wait(BETWEEN_LOOKS):
                self._draw()

        thread = threading.Thread(target=look, daemon=True)
        thread.start()
        try:
            yield self.update
        finally:
            over.set()
            thread.join()
            self._close()

    def update(self, done: float, note: str) -> None:
        """Show how much is done, but not too often."""
        self._now = done, note
        self._draw()

    def _draw(self) -> None:
        with self._drawing:
            now = time.monotonic()
            if now - self._began < PATIENCE or now - self._last < BETWEEN_UPDATES:
                return
            self._last = now
            from IPython.display import HTML, display

            page = HTML(self.html(*self._now, now - self._began))
            if self._handle is None:
                self._handle = display(page, display_id=True)
            else:
                self._handle.update(page)

    def html(self, done: float, note: str, seconds: float) -> str:
        """The element as it is now."""
        state, counted = "", ""
        if self._total is not None:
            state = f' value="{done:.6g}" max="{self._total:.6g}"'
            counted = f" {done:.0f}/{self._total:.0f} {self._unit}".rstrip() + ","
        return (
            f"<div>{escape(self._text)} <progress{state}></progress>{counted} "
            f"{seconds:.0f} s {escape(note)}</div>"
        )

    def _close(self) -> None:
        if self._handle is not None:
            from IPython.display import HTML

            self._handle.update(HTML(""))
