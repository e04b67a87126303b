"""Where the command line starts: interrupts are seen to before anything heavy is imported."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

INTERRUPTED = 130
"""The exit code of a command that was interrupted, as shells have it."""


def main() -> None:
    """Run the command line; an interrupt at any moment is one line, never a traceback."""
    signal.signal(signal.SIGINT, _leave)
    sys.unraisablehook = _show_unraisable
    from fsmdp.cli.entry import run

    signal.signal(signal.SIGINT, _interrupt)
    try:
        code = run()
    except KeyboardInterrupt:
        code = say_interrupted()
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Python can no longer handle it as it ends
    if code == INTERRUPTED:
        os._exit(code)  # what was cut off in the middle may not stand Python's own way of ending
    sys.exit(code)


def say_interrupted() -> int:
    """One line, and the exit code."""
    os.write(2, b"fsmdp: interrupted\n")
    return INTERRUPTED


def _interrupt(number: int, frame: FrameType | None) -> None:
    """The first interrupt lets the command tidy up; the next one does not wait for it."""
    signal.signal(signal.SIGINT, _leave)
    signal.default_int_handler(number, frame)


def _leave(_number: int, _frame: FrameType | None) -> None:
    os._exit(say_interrupted())


def _show_unraisable(found: sys.UnraisableHookArgs) -> None:
    """An interrupt that came where nothing can be raised would be shown and then forgotten."""
    if found.exc_type is KeyboardInterrupt:
        _leave(signal.SIGINT, None)
    sys.__unraisablehook__(found)
