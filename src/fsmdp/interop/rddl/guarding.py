"""The one way into the importer: formulas may be nested deeply, and no error is left unnamed."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from fsmdp.interop.rddl.errors import TooLargeError, located

Result = TypeVar("Result")

MOST_FRAMES = 50_000
STACK_BYTES = 2**28  # reserved, not used, until formulas are nested that deeply

# The parser, the size of new stacks and the limit of recursion belong to the whole process.
_alone = threading.Lock()


def guarded(name: str, work: Callable[[], Result]) -> Result:
    """What a function returns or raises that recurs along the formulas of a problem.

    It runs in a thread of its own with a stack for MOST_FRAMES nested calls; its errors name the
    problem, and formulas nested deeper still are a TooLargeError.
    """
    done: Future[Result] = Future()

    def run() -> None:
        try:
            with located(name):
                done.set_result(work())
        except RecursionError:
            done.set_exception(
                TooLargeError(
                    f"{name}: its formulas are nested too deeply (more than {MOST_FRAMES} calls); "
                    "split them by intermediate fluents."
                )
            )
        except BaseException as error:
            done.set_exception(error)

    with _alone:
        frames, stack = sys.getrecursionlimit(), threading.stack_size(STACK_BYTES)
        sys.setrecursionlimit(max(frames, MOST_FRAMES))
        try:
            thread = threading.Thread(target=run, name="fsmdp-rddl", daemon=True)
            thread.start()
            threading.stack_size(stack)
            return done.result()
        finally:
            threading.stack_size(stack)
            sys.setrecursionlimit(frames)
