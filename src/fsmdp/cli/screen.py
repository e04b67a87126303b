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
def episodes_bar(text: str, total: int, silent: bool) -> Iterator[Callable[[int, int], None]]:
    """A bar on the error stream with the time left; called with episodes done and in all."""
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
        yield lambda _done, _total: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as progress:
        task = progress.add_task(text, total=total)
        yield lambda done, _total: progress.update(task, completed=done)
