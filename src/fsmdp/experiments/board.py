"""A board of numbers that local workers write and their driver reads: episodes done by each run."""

from __future__ import annotations

import mmap
import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fsmdp.learning.learn import Progress

ENTRY = struct.Struct("=q")


class Board:
    """A file of one 64-bit number for each run, mapped into memory; never needed for a result."""

    def __init__(self, path: Path, entries: int) -> None:
        self.path = path
        self.entries = entries
        path.write_bytes(bytes(ENTRY.size * entries))

    def read(self) -> list[int]:
        """All numbers as they stand."""
        content = self.path.read_bytes()
        return [ENTRY.unpack_from(content, ENTRY.size * at)[0] for at in range(self.entries)]

    def place(self, position: int) -> Place:
        """Where a child of this process reports a run."""
        return Place(str(self.path), position, os.getpid())


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """One number of a board, and the process whose children write it."""

    path: str
    position: int
    parent: int

    def reporter(self) -> Progress:
        """Progress for `learn` that writes to the board, and ends a process whose parent is gone.

        A driver that was killed cannot stop its workers, and the next one will redo their runs.
        """
        with Path(self.path).open("r+b") as file:
            numbers = mmap.mmap(file.fileno(), 0)

        def report(done: int, _: int) -> None:
            if os.getppid() != self.parent:
                os._exit(1)
            ENTRY.pack_into(numbers, ENTRY.size * self.position, done)

        return report
