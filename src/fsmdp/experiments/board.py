"""A board that local workers write and their driver reads: how far each run is."""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from fsmdp.learning.run.learn import Watch
    from fsmdp.model.tables import Floats

ENTRY = struct.Struct("=qd")


class Seen(NamedTuple):
    """How far a run is: episodes done, and the sum of their returns."""

    episodes: int = 0
    total: float = 0.0


class Board:
    """A file of two numbers for each run, mapped into memory; never needed for a result."""

    def __init__(self, path: Path, entries: int) -> None:
        self.path = path
        self.entries = entries
        path.write_bytes(bytes(ENTRY.size * entries))

    def read(self) -> list[Seen]:
        """All entries as they stand."""
        content = self.path.read_bytes()
        return [Seen(*ENTRY.unpack_from(content, ENTRY.size * at)) for at in range(self.entries)]

    def place(self, position: int) -> Place:
        """Where a child of this process reports a run."""
        # In full, since workers may have been started from another folder.
        return Place(str(self.path.resolve()), position)


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """One entry of a board."""

    path: str
    position: int

    def reporter(self) -> Watch:
        """A watch for `learn` that writes to the board."""
        with Path(self.path).open("r+b") as file:
            numbers = mmap.mmap(file.fileno(), 0)

        def report(returns: Floats) -> None:
            ENTRY.pack_into(numbers, ENTRY.size * self.position, len(returns), float(returns.sum()))

        return report
