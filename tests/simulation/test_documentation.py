"""The page on simulation runs as it stands, and its comments give the values they claim."""

import ast
import contextlib
import io
import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "simulate.md"


def test_every_block_runs_and_every_value_is_as_written():
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.S | re.M)
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
    assert (len(blocks), claims) > (9, 15)
