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
