"""Every tolerance is listed on its page."""

import io
import re
import tokenize
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src" / "fsmdp"
SMALL = re.compile(r"[\d._]+e-\d+")


def small_numbers(path):
    """Literals such as 1e-9, and not those in strings and comments."""
    tokens = tokenize.generate_tokens(io.StringIO(path.read_text()).readline)
    return [
        token.string
        for token in tokens
        if token.type == tokenize.NUMBER and SMALL.fullmatch(token.string)
    ]


def test_every_module_with_a_small_number_is_on_the_page_of_tolerances():
    page = (ROOT / "docs" / "tolerances.md").read_text()
    paths = [path for path in SOURCES.rglob("*.py") if small_numbers(path)]
    assert len(paths) > 20
    names = [str(path.relative_to(SOURCES)) for path in paths]
    assert [name for name in names if f"`{name}`" not in page] == []


def test_the_page_of_tolerances_names_modules_that_exist():
    page = (ROOT / "docs" / "tolerances.md").read_text()
    named = re.findall(r"`([a-z_/]+\.py)`", page)
    missing = [n for n in named if not (SOURCES / n).exists() and not (ROOT / n).exists()]
    assert missing == []
