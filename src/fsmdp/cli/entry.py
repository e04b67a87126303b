"""The entry point: all commands, and how they end."""

from __future__ import annotations

import os
import sys

from fsmdp.cli import compare, demo, inspect, learn, plan, report, reproduce, simulate
from fsmdp.cli.app import app

COMMANDS = (demo, inspect, plan, simulate, learn, compare, report, reproduce)
"""Modules whose import registers a command, in the order of the help."""


def main() -> None:
    """Run the command line; a user's mistake is one message, never a traceback."""
    from fsmdp.errors import FsmdpError, SizeError

    try:
        app()
    except FsmdpError as error:
        print(f"fsmdp: {error}", file=sys.stderr)
        sys.exit(3 if isinstance(error, SizeError) else 2)
    except KeyboardInterrupt:
        print("fsmdp: interrupted", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        # Who read our output has seen enough; nothing more can be said to them.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        print(f"fsmdp: {error.strerror or error}", file=sys.stderr)
        sys.exit(2)
