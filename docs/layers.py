"""Draws layers.svg from the imports of the package: python docs/layers.py.

A box is a layer, with what modules of other layers import from it most: classes, then functions. A
curve joins a layer to one that imports from it; it is as thick as such imports are many.
"""

import ast
import re
import tomllib
from collections import Counter
from functools import cache
from html import escape
from pathlib import Path

import grimp

PICTURE = Path(__file__).with_name("layers.svg")
PROJECT = Path(__file__).parents[1] / "pyproject.toml"
SOURCES = PROJECT.with_name("src")
SHARED = ("errors", "compiled", "foundation")  # imported by nearly all; curves would say nothing
MOST_NAMES = 5
FEW, MANY = 4, 16  # coarse, so that not every new import is another picture
HIGH, GAP, TOP = 44, 16, 62
LEFT, WIDE = 220, 660
COLORS = ("#0f766e", "#7c3aed", "#1d4ed8", "#c2410c", "#15803d", "#be185d", "#a16207", "#0369a1")


@cache
def contract() -> dict[str, list[str]]:
    """The contract of the layers in pyproject.toml."""
    tools = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["tool"]
    return tools["importlinter"]["contracts"][0]


def layers() -> list[tuple[str, ...]]:
    """Layers from the foundations on, as the contract lists them."""
    listed = reversed(contract()["layers"])
    return [tuple(sorted(re.findall(r"fsmdp\.(\w+)", line))) for line in listed]


def layer_of(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def imports(graph: grimp.ImportGraph) -> tuple[Counter[tuple[str, str]], dict[str, Counter[str]]]:
    """How many modules of a layer import from another, and how many import each of its names."""
    pairs: Counter[tuple[str, str]] = Counter()
    given: dict[str, Counter[str]] = {}
    for module in graph.modules:
        for source in graph.find_modules_directly_imported_by(module):
            giver, taker = layer_of(source), layer_of(module)
            if giver == taker or f"{module} -> {source}" in contract()["ignore_imports"]:
                continue
            pairs[giver, taker] += 1
            details = graph.get_import_details(importer=module, imported=source)
            lines = " ".join(detail["line_contents"].partition(" import ")[2] for detail in details)
            names = set(re.findall(r"\w+", lines)) & defined_in(source)
            given.setdefault(giver, Counter()).update(names)
    return pairs, given


@cache
def defined_in(module: str) -> frozenset[str]:
    """Classes and functions that a module defines, or that a package lists as its own."""
    path = SOURCES / module.replace(".", "/")
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    body = ast.parse(path.read_text(encoding="utf-8")).body
    listed = [alias.name for one in body if isinstance(one, ast.ImportFrom) for alias in one.names]
    own = [one.name for one in body if isinstance(one, ast.ClassDef | ast.FunctionDef)]
    return frozenset(listed if path.name == "__init__.py" else own)


def text(x: float, y: float, words: str, size: int, style: str = "", fill: str = "#111827") -> str:
    return f'<text x="{x}" y="{y}" font-size="{size}" fill="{fill}"{style}>{escape(words)}</text>'


def box(position: int, names: tuple[str, ...], given: Counter[str]) -> list[str]:
    y = TOP + position * (HIGH + GAP)
    ranked = sorted(given, key=lambda name: (name.islower(), -given[name], name))[:MOST_NAMES]
    shown = ", ".join(ranked)
    return [
        f'<rect x="{LEFT}" y="{y}" width="{WIDE}" height="{HIGH}" rx="8" fill="#f0fdfa" '
        'stroke="#0f766e"/>',
        text(LEFT + 14, y + 28, ", ".join(names), 16, ' font-weight="600"'),
        text(LEFT + 180, y + 28, shown, 13, fill="#134e4a"),
    ]


def curve(start: int, end: int, count: int, color: str) -> str:
    """From the lower part of a box to the upper part of one further down, around on the left."""
    down = HIGH + GAP
    above = TOP + start * down + HIGH * 0.72
    below = TOP + end * down + HIGH * 0.28 - 4 + 2.2 * (end - start)
    bulge = LEFT - 38 - 36 * (end - start) ** 0.85
    thick = 1.2 if count < FEW else 2.6 if count < MANY else 4.4
    return (
        f'<path d="M{LEFT} {above:.1f} C{bulge:.1f} {above:.1f} {bulge:.1f} {below:.1f} '
        f'{LEFT - 3} {below:.1f}" fill="none" stroke="{color}" stroke-opacity="0.65" '
        f'stroke-width="{thick}"/>'
        f'<path d="M{LEFT - 7} {below - 4:.1f} L{LEFT} {below:.1f} L{LEFT - 7} {below + 4:.1f} z" '
        f'fill="{color}"/>'
    )


def picture() -> str:
    graph = grimp.build_graph("fsmdp", cache_dir=None)
    pairs, given = imports(graph)
    rows = layers()
    row_of = {name: row for row, names in enumerate(rows) for name in names}
    parts: list[str] = []
    for row, names in enumerate(rows):
        from_here = sum((given.get(name, Counter()) for name in names), Counter())
        parts += box(row, names, from_here)
    drawn = sorted(
        (row_of[giver], row_of[taker], count)
        for (giver, taker), count in pairs.items()
        if giver in row_of and taker in row_of and giver not in SHARED
    )
    first = min(start for start, _, _ in drawn)
    for start, end, count in drawn:
        parts.append(curve(start, end, count, COLORS[(start - first) % len(COLORS)]))
    high = TOP + len(rows) * (HIGH + GAP)
    wide = LEFT + WIDE + 20
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" '
        f'height="{high}" font-family="system-ui, Helvetica, Arial, sans-serif">',
        "<title>The layers of fsmdp, and what each takes from those above it</title>",
        f'<rect width="{wide}" height="{high}" rx="10" fill="#ffffff"/>',
        text(LEFT, 26, "Layers of fsmdp, foundations first", 18, ' font-weight="600"'),
        text(
            LEFT,
            46,
            "In each box: what other layers import most. Curves: who imports from whom (none where "
            "nearly all do).",
            12,
            fill="#4b5563",
        ),
    ]
    return "\n".join([*head, *parts, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
