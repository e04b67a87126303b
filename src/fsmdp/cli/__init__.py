"""The command line: one file a command."""

from fsmdp.cli.start import main

__all__ = ["main"]
