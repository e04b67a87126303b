"""The command line: one file a command."""

from fsmdp.cli.entry import main

__all__ = ["main"]
