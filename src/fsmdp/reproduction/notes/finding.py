"""What was found for one note: by how much the text is wrong, and whether its repair holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

CONFIRMED, NOT_SEEN, NOT_REPAIRED = "confirmed", "not seen", "not repaired"


@dataclass(frozen=True, slots=True, eq=False)
class Finding:
    """Two numbers, each with a limit: the first should be above it, the second not.

    `wrong` measures what the note says is wrong, `remaining` what is left of it once repaired.
    """

    note: int
    says: str  # the paper, in our words
    truth: str
    measured: str
    wrong: float
    wrong_above: float
    remaining: float
    remaining_up_to: float

    def row(self) -> dict[str, Any]:
        """As a row of a table."""
        found = {name: getattr(self, name) for name in self.__slots__}
        return found | {"verdict": note_verdict(found)}


def note_verdict(row: dict[str, Any]) -> str:
    """Whether the numbers of a row bear its note out."""
    if row["remaining"] > row["remaining_up_to"]:
        return NOT_REPAIRED
    return CONFIRMED if row["wrong"] > row["wrong_above"] else NOT_SEEN
