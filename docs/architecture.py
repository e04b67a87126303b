"""Draws pipeline.svg, the stations that data passes: python docs/architecture.py."""

from html import escape
from pathlib import Path

PICTURE = Path(__file__).with_name("pipeline.svg")

STATIONS = {  # folder: (column, row, what it does)
    "io": (0, 1, "read a model"),
    "domains": (0, 2, "build a model"),
    "model": (1, 1, "variables, laws, rewards"),
    "reductions": (2, 1, "rewrite the model"),
    "bounds": (3, 0, "prove V ≥ V*"),
    "policies": (3, 1, "choose actions"),
    "exact": (3, 2, "solve by states"),
    "solver": (4, 1, "policy + bound = plan"),
    "online": (5, 0, "simulate, then act"),
    "simulation": (5, 1, "act, and judge"),
    "learning": (5, 2, "act, count, plan again"),
    "experiments": (6, 1, "many runs, kept"),
    "report": (7, 1, "figures and tables"),
    "reproduction": (7, 2, "claims, scoreboards"),
}
ARROWS = (
    ("io", "model"),
    ("domains", "model"),
    ("model", "reductions"),
    ("reductions", "bounds"),
    ("reductions", "policies"),
    ("reductions", "exact"),
    ("bounds", "solver"),
    ("policies", "solver"),
    ("exact", "solver"),
    ("solver", "online"),
    ("solver", "simulation"),
    ("solver", "learning"),
    ("simulation", "experiments"),
    ("learning", "experiments"),
    ("experiments", "report"),
    ("experiments", "reproduction"),
)
BELOW = (
    "foundation: checks, options, registries, files · elimination: max-sum over local tables · "
    "discovery: structure from data · verification: checks plan files · cli: commands"
)
WIDE, HIGH, ACROSS, DOWN = 148, 52, 176, 84


def corner(folder):
    """The upper left corner of a station's box."""
    column, row, _ = STATIONS[folder]
    return 12 + ACROSS * column, 16 + DOWN * row


def picture():
    """The picture as text."""
    width, height = 12 + ACROSS * 8, 16 + DOWN * 3 + 60
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" role="img" aria-label="The pipeline of fsmdp">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    for start, end in ARROWS:
        (x, y), (u, v) = corner(start), corner(end)
        x, y, v = x + WIDE, y + HIGH / 2, v + HIGH / 2
        middle = (x + u) / 2
        parts.append(
            f'<path d="M{x} {y} C{middle} {y} {middle} {v} {u} {v}" fill="none" '
            'stroke="#64748b" stroke-width="1.6"/>'
        )
        parts.append(f'<path d="M{u} {v} l-7 -4 v8 z" fill="#64748b"/>')
    for folder, (_, _, what) in STATIONS.items():
        x, y = corner(folder)
        parts.append(
            f'<rect x="{x}" y="{y}" width="{WIDE}" height="{HIGH}" rx="7" fill="#f1f5f9" '
            'stroke="#0f766e"/>'
        )
        for text, size, weight, down in ((folder, 15, 600, 22), (what, 11.5, 400, 40)):
            parts.append(
                f'<text x="{x + WIDE / 2}" y="{y + down}" text-anchor="middle" '
                f'font-size="{size}" font-weight="{weight}" fill="#111827">{escape(text)}</text>'
            )
    y = 16 + DOWN * 3 + 6
    parts.append(
        f'<rect x="12" y="{y}" width="{width - 40}" height="36" rx="7" fill="#f8fafc" '
        'stroke="#94a3b8"/>'
    )
    parts.append(
        f'<text x="{width / 2 - 14}" y="{y + 23}" text-anchor="middle" font-size="13" '
        f'fill="#111827">{escape(BELOW)}</text>'
    )
    return "\n".join([*parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
