"""The examples run, and print what their pages in the documentation say."""

import ast
import importlib.util
import json
import re
import runpy
import sys
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.py"))
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
SECONDS = re.compile(r"\d+\.\d+ s\b")


def pages():
    """The script that makes the pages, which is no package."""
    spec = importlib.util.spec_from_file_location("examples", ROOT / "docs" / "examples.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def page(name):
    return (ROOT / "docs" / "examples" / f"{name}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_an_example_prints_what_its_page_shows(name, tmp_path, monkeypatch, capsys):
    if "rddl" in name:
        pytest.importorskip("pyRDDLGym")
    monkeypatch.setattr(sys, "argv", [name])
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    (shown,) = re.findall(r"^```text\n(.*?)^```$", page(name), re.S | re.M)
    printed, shown = (SECONDS.sub("", text) for text in (capsys.readouterr().out, shown))
    assert NUMBER.sub("#", printed).split() == NUMBER.sub("#", shown).split()
    for found, written in zip(NUMBER.findall(printed), NUMBER.findall(shown), strict=True):
        assert float(found) == pytest.approx(float(written), rel=0.05, abs=0.05)


@pytest.mark.parametrize("name", NAMES)
def test_a_page_has_the_script_as_it_is(name):
    pictures = re.findall(r"\]\((.*?\.png)\)", page(name))
    (shown,) = re.findall(r"^```text\n(.*?)^```$", page(name), re.S | re.M)
    expected = pages().page(name, shown, pictures)
    assert page(name) == expected, f"out of date: run python docs/examples.py {name}"
    assert all((ROOT / "docs" / "examples" / picture).is_file() for picture in pictures)


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_is_the_script_in_cells(name):
    making = pages()
    found = (making.PAGES / f"{name}.ipynb").read_text(encoding="utf-8")
    pictures = re.findall(r"\]\((.*?\.png)\)", page(name))
    (shown,) = re.findall(r"^```text\n(.*?)^```$", page(name), re.S | re.M)
    assert found == making.notebook(name, shown, pictures), (
        f"out of date: run python docs/examples.py {name}"
    )
    about, defined, done = json.loads(found)["cells"]
    script = ast.parse((EXAMPLES / f"{name}.py").read_text(encoding="utf-8"))
    main = next(one for one in script.body if getattr(one, "name", "") == "main")
    before = script.body[1 : script.body.index(main)]
    if given := main.args.args:  # arguments of a script: they have their defaults
        assert ast.unparse(before.pop(0)) == "import sys"
    assert about["source"].startswith("# ")
    assert ast.dump(ast.parse(defined["source"])) == ast.dump(ast.Module(before, []))
    acts = ast.Module(ast.parse(done["source"]).body[len(given) :], [])
    assert ast.dump(acts) == ast.dump(ast.Module(main.body[1:], []))
    assert [one["output_type"] for one in done["outputs"]] == [
        "stream",
        *["display_data"] * len(pictures),
    ]


def test_the_lists_of_examples_have_all_of_them():
    making = pages()
    assert sorted(making.ORDER) == NAMES
    assert (making.PAGES / "index.md").read_text(encoding="utf-8") == making.index()
    listed = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert all(f"`{name}.py`" in listed for name in NAMES)
