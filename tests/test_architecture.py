"""The page of the architecture: its folders, its walks and its picture are those of the code."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "architecture.md"
MOST_HOPS = 25

FOLLOW = """
import contextlib, io, sys, threading

hops, sys.argv = set(sys.argv[1].split()), ["fsmdp", *sys.argv[2:]]
from fsmdp.cli import entry

called = []


def note(frame, event, _):
    code = frame.f_code
    if event == "call" and "fsmdp" in code.co_filename:
        path = code.co_filename.replace("\\\\", "/").rpartition("/fsmdp/")[2]
        name = f"{path.removesuffix('.py').replace('/', '.')}:{code.co_qualname}"
        if name in hops:
            called.append(name)


sys.setprofile(note)
threading.setprofile(note)
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    entry.run()
sys.setprofile(None)
print("\\n".join(called))
"""


def walk(command):
    """The hops that the page lists for a command."""
    section = PAGE.read_text().partition(f"### `fsmdp {command}`")[2].partition("\n#")[0]
    return re.findall(r"^\d+\. `([\w.:]+)`$", section, flags=re.M)


@pytest.mark.parametrize(
    ("command", "more"),
    [("plan sysadmin:ring:8", []), ("learn sysadmin:ring:8", ["--episodes", "2"])],
)
def test_commands_pass_the_functions_of_the_page_in_this_order(command, more):
    hops = walk(command)
    assert 10 <= len(hops) <= MOST_HOPS
    followed = subprocess.run(
        [sys.executable, "-c", FOLLOW, " ".join(hops), *command.split(), *more, "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    called = iter(followed.stdout.split("\n"))
    # Each hop is called after the one before it; some are also called earlier, to compile them.
    assert [hop for hop in hops if hop not in called] == []


def test_the_page_has_a_paragraph_for_every_folder():
    folders = {path.parent.name for path in (ROOT / "src" / "fsmdp").glob("*/__init__.py")}
    assert set(re.findall(r"^- \*\*`(\w+)`\*\*:", PAGE.read_text(), flags=re.M)) == folders


def test_every_recipe_has_at_most_five_steps_and_a_test():
    recipes = re.findall(
        r"^\| \[[\w ]+\]\(extending\.md#[\w-]+\) \| (.*) \| `(.*)` \|$",
        PAGE.read_text(),
        flags=re.M,
    )
    assert len(recipes) == 10
    for steps, test in recipes:
        assert 1 <= len(re.findall(r"\d\. ", steps)) <= 5
        assert (ROOT / "tests" / "extending" / test).is_file(), test


def test_the_picture_of_the_pipeline_is_up_to_date():
    spec = importlib.util.spec_from_file_location("architecture", ROOT / "docs" / "architecture.py")
    drawing = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(drawing)
    found = drawing.PICTURE.read_text(encoding="utf-8")
    assert drawing.picture() == found, "out of date: run python docs/architecture.py"
