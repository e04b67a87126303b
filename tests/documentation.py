"""Running the blocks of a page, and comparing values with what their comments claim."""

import ast
import contextlib
import io
import re
from pathlib import Path

PAGES = Path(__file__).parents[1] / "docs"


def run_page(name):
    """Run every Python block of a page in turn; how many there were, and how many claims held."""
    text = (PAGES / name).read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.S | re.M)
    names: dict[str, object] = {}
    claims = 0
    with contextlib.redirect_stdout(io.StringIO()):
        for block in blocks:
            lines = block.splitlines()
            for statement in ast.parse(block).body:
                source = ast.get_source_segment(block, statement)
                _, _, claim = lines[statement.end_lineno - 1].partition("  # ")
                if isinstance(statement, ast.Expr) and claim:
                    assert repr(eval(source, names)) == claim, source
                    claims += 1
                else:
                    exec(source, names)
    return len(blocks), claims
