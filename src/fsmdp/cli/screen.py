"""What commands show while they work."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def working(text: str, silent: bool) -> Iterator[Callable[[str], None]]:
    """A spinner on the error stream that shows what the library logs while it works."""
    from rich.console import Console

    console = Console(stderr=True)
    if silent or not console.is_terminal:
        yield lambda _: None
        return
    with console.status(text) as status:

        class Show(logging.Handler):
            def emit(self, record: logging.LogRecord) -> None:
                status.update(f"{text}: {record.getMessage()}")

        log, show = logging.getLogger("fsmdp"), Show()
        level = log.level
        log.addHandler(show)
        log.setLevel(logging.INFO)
        try:
            yield status.update
        finally:
            log.removeHandler(show)
            log.setLevel(level)


@contextmanager
def episodes_bar(text: str, in_all: int, silent: bool) -> Iterator[Callable[[int, str], None]]:
    """A bar on the error stream: episodes done, time left, and a note of the caller's."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    if silent or not console.is_terminal:
        yield lambda _, __: None
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("episodes"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", markup=False),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(text, total=in_all, note="")

        def show(done: int, note: str) -> None:
            bar.update(task, completed=done, note=note)

        yield show
