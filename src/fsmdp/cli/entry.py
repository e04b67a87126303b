"""All commands, and how they end."""

import codecs
import os
import sys
from collections.abc import Sequence
from contextlib import suppress

from fsmdp.cli import compare, demo, discover, inspect, learn, plan, reproduce, simulate, verify
from fsmdp.cli.app import app
from fsmdp.errors import FsmdpError, SizeError
from fsmdp.foundation.threads import address_space, is_shortage

COMMANDS = (compare, demo, discover, inspect, learn, plan, reproduce, simulate, verify)
"""Modules whose import registers commands."""

THREADED, FRAMES = 2**29, 2**31
ADDRESS_SPACE = {
    **dict.fromkeys(("plan", "simulate"), THREADED),
    **dict.fromkeys(
        ("demo", "learn", "discover", "compare", "report", "reproduce", "ippc"), FRAMES
    ),
}
"""Bytes of addresses that commands need before they begin: with less, BLAS waits for ever and the
library of data frames aborts the process."""

SPELLED = {"±": "+/-", "≤": "<=", "≥": ">=", "×": "x", "…": "...", "–": "-", "—": "-", "•": "*"}
"""Characters that commands print, for terminals and files that have ASCII only."""


def run() -> int:
    """Run the command line and give its exit code; what a user can correct is one line."""

    print_anything()
    try:
        _check_address_space(sys.argv[1:])
        code = _run_app()
        _flush()
        return code
    except FsmdpError as error:
        return _fail(str(error), 3 if isinstance(error, SizeError) else 2)
    except BrokenPipeError:
        # Who read our output has seen enough; nothing more can be said to them.
        _forget_output()
        return 0
    except OSError as error:
        _forget_output()
        return _fail(error.strerror or str(error), 2)
    except BaseException as error:
        if is_shortage(error):
            return _fail("there is not enough memory for this; try it with less, or elsewhere.", 3)
        if type(error).__name__ != "PanicException":  # of polars, and no Exception
            raise
        reason = " ".join(str(error).split())
        return _fail(f"polars cannot read a file, which may be damaged: {reason}", 2)


def _check_address_space(arguments: Sequence[str]) -> None:
    """Refuse a limit (`ulimit -v`) in which a command's libraries abort instead of raising."""

    name = next((one for one in arguments if not one.startswith("-")), "")
    needed = ADDRESS_SPACE.get(name, 0)
    allowed = address_space()
    if allowed is not None and allowed < needed and "--help" not in arguments:
        raise SizeError(
            f"{name}: this process may map {allowed / 2**30:.2g} GiB of addresses "
            f"(ulimit -v), expected at least {needed / 2**30:.2g} GiB; raise the limit, or limit "
            "resident memory instead (systemd-run -p MemoryMax=..., or a container)."
        )


def _run_app() -> int:
    try:
        app()
    except SystemExit as end:
        # Typer ends with codes of its own when nobody reads, and when it is interrupted.
        before = end.__context__
        if isinstance(before, BrokenPipeError):
            raise before from None
        if before is not None and isinstance(before.__cause__, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        return end.code if isinstance(end.code, int) else 0
    return 0


def _fail(message: str, code: int) -> int:
    with suppress(OSError):
        print(f"fsmdp: {message}", file=sys.stderr, flush=True)
    return code


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()


def _forget_output() -> None:
    """Let nothing that could not be written be tried again when Python ends."""
    with suppress(OSError, AttributeError):  # a stream without a file, or none at all
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_anything() -> None:
    """Characters that a stream cannot show are spelt out; bytes of file names stay as they are."""
    codecs.register_error("fsmdp", _spell)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="fsmdp")


def _spell(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    character = error.object[error.start]
    if 0xDC80 <= ord(character) <= 0xDCFF:
        return bytes([ord(character) - 0xDC00]), error.start + 1
    return SPELLED.get(character, ascii(character)[1:-1]), error.start + 1
