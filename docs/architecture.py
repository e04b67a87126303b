"""Draws pipeline.svg, the stations that data passes: python docs/architecture.py."""

from html import escape
from pathlib import Path

PICTURE = Path(__file__).with_name("pipeline.svg")

STATIONS = {  # folder: (column, row, what it does)
    "io": (0, 0, "read a model"),
    "domains": (0, 1, "build a model"),
    "model": (1, 0, "variables, laws"),
    "reductions": (1, 1, "rewrite the model"),
    "bounds": (2, 0, "prove V ≥ V*"),
    "policies": (2, 1, "choose actions"),
    "exact": (2, 2, "solve by states"),
    "solver": (3, 1, "find a plan"),
    "online": (4, 0, "simulate, then act"),
    "simulation": (4, 1, "act, and judge"),
    "learning": (4, 2, "act, count, replan"),
    "experiments": (4, 3, "keep many runs"),
    "report": (3, 3, "figures and tables"),
    "reproduction": (2, 3, "claims, scoreboards"),
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
    ("learning", "experiments"),
    ("experiments", "report"),
    ("report", "reproduction"),
)
BELOW = (
    "foundation: checks, options, registries, files · elimination: max-sum over local tables",
    "discovery: structure from data · verification: checks plan files · cli: commands",
)
WIDE, HIGH, ACROSS, DOWN = 134, 50, 158, 78
COLUMNS, ROWS = 5, 4


def corner(folder):
    """The upper left corner of a station's box."""
    column, row, _ = STATIONS[folder]
    return 12 + ACROSS * column, 16 + DOWN * row


def arrow(start, end):
    """A curve from a station to the next: to the right, to the left, or down."""
    (x, y), (u, v) = corner(start), corner(end)
    if x == u:
        x, y = x + WIDE / 2, y + HIGH
        return f"M{x} {y} V{v}", f"M{x} {v} l-4 -7 h8 z"
    rightwards = x < u
    x, u = (x + WIDE, u) if rightwards else (x, u + WIDE)
    y, v, back = y + HIGH / 2, v + HIGH / 2, -7 if rightwards else 7
    middle = (x + u) / 2
    return f"M{x} {y} C{middle} {y} {middle} {v} {u} {v}", f"M{u} {v} l{back} -4 v8 z"


def picture():
    """The picture as text."""
    width, height = ACROSS * COLUMNS, 16 + DOWN * ROWS + 56
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" role="img" aria-label="The pipeline of fsmdp">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    for pair in ARROWS:
        line, head = arrow(*pair)
        parts.append(f'<path d="{line}" fill="none" stroke="#64748b" stroke-width="1.6"/>')
        parts.append(f'<path d="{head}" fill="#64748b"/>')
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
    y = 16 + DOWN * ROWS
    parts.append(
        f'<rect x="12" y="{y}" width="{width - 24}" height="46" rx="7" fill="#f8fafc" '
        'stroke="#94a3b8"/>'
    )
    for at, text in enumerate(BELOW):
        parts.append(
            f'<text x="{width / 2}" y="{y + 19 + 18 * at}" text-anchor="middle" '
            f'font-size="12.5" fill="#111827">{escape(text)}</text>'
        )
    return "\n".join([*parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
