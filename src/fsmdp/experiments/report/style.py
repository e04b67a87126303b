"""Colours and dashes: each learner looks the same in every figure, of every model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

# After Okabe and Ito, whose palette colour-blind readers can tell apart; the second of each pair
# is the same hue, lightened until it stands out from a dark page.
COLORS = (
    ("#0072b2", "#5db7f0"),
    ("#d55e00", "#ff9350"),
    ("#00805d", "#35cfa2"),
    ("#a8447f", "#ee8fc6"),
    ("#9a7400", "#f0c94f"),
    ("#4b4bb8", "#a7a6ff"),
    ("#5f6673", "#b4bcc9"),
)

DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")

# Lengths of strokes and gaps in units of the line's width.
PATTERNS: dict[str, tuple[float, ...]] = {
    "solid": (),
    "dash": (4, 2),
    "dot": (1, 1.6),
    "dashdot": (5, 1.6, 1, 1.6),
    "longdash": (8, 2.4),
    "longdashdot": (9, 2, 1, 2),
}

BAND_OPACITY = 0.16
SHORT_NAME = 16
"""Letters of a variable's name in a drawing of the network."""


@dataclass(frozen=True, slots=True, eq=False)
class Style:
    """How a learner is drawn."""

    index: int
    color: str
    dark_color: str
    dash: str

    @property
    def pattern(self) -> tuple[float, ...]:
        """Lengths of strokes and gaps, none for a solid line."""
        return PATTERNS[self.dash]


def learner_styles(learners: Sequence[str]) -> dict[str, Style]:
    """A style for each learner, by its place in the list; the first 42 are all different."""
    return {
        learner: Style(index, *COLORS[index % len(COLORS)], DASHES[index % len(DASHES)])
        for index, learner in enumerate(learners)
    }


def printable(text: str, longest: int = 64) -> str:
    """A name as figures show it: one line, no control characters, of bounded length.

    What is left out is left out of the middle: names that differ often do so at their ends.
    """
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    if len(shown) <= longest:
        return shown
    end = (longest - 1) // 2
    return f"{shown[: longest - 1 - end]}…{shown[len(shown) - end :]}"


def ink_on_rank(rank: int, n_ranks: int) -> str:
    """Ink that can be read on the Cividis scale, whose first half is dark."""
    return "#ffffff" if rank < 0.55 * n_ranks else "#10131a"
