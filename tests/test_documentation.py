"""Every block of code in the README and the documentation runs, and its comments are true."""

import ast
import contextlib
import importlib.util
import io
import re
import shlex
import sys
from functools import partial
from pathlib import Path

import pytest
import typer.main

import fsmdp
from fsmdp.cli.entry import app
from fsmdp.domains import DOMAINS
from fsmdp.experiments.executors import EXECUTORS
from fsmdp.experiments.specification import read_specification
from fsmdp.io.rddl.sources import find_source
from fsmdp.io.readers import BASES, READERS, read_basis
from fsmdp.learning.cells.confidence import CONFIDENCE
from fsmdp.learning.learners.registry import LEARNERS
from fsmdp.reductions.reduction import REDUCTIONS
from fsmdp.report.curves import CHARTS
from fsmdp.solver.engine import ENGINES
from fsmdp.solver.plan import METHODS
from fsmdp.solver.techniques import TECHNIQUES
from tests.experiments.sweeps import Local

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r'^```(\w*)(?: title="(\S+)")?\n(.*?)^```$', re.S | re.M)
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def blocks(page, *languages):
    """Language, title and text of the blocks of a page."""
    found = BLOCK.findall(page.read_text(encoding="utf-8"))
    return [block for block in found if not languages or block[0] in languages]


def name(page):
    return str(page.relative_to(ROOT))


def with_blocks(*languages):
    return [page for page in PAGES if blocks(page, *languages)]


def is_claimed(value, claim):
    """Whether a value is what a comment says; None for a comment that says something else.

    A comment says a value if it is one, perhaps with a colon and words after it. Numbers hold to
    the digits that are written.
    """
    literal = claim.partition(": ")[0] if claim[:1] not in "[{(" else claim
    if re.fullmatch(r"-?\d+\.\d+", literal):
        return f"{value:.{len(literal.partition('.')[2])}f}" == literal
    try:
        ast.literal_eval(literal)
    except (SyntaxError, ValueError):
        return repr(value) == claim if re.fullmatch(r"[A-Z]\w+\(.*\)", claim) else None
    return repr(value) == literal


def run_block(text, names):
    """Run a block in a namespace; how many comments say a value, and what it printed."""
    lines, claims = text.splitlines(), 0
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        for statement in ast.parse(text).body:
            source = ast.get_source_segment(text, statement)
            _, _, claim = lines[statement.end_lineno - 1].partition("  # ")
            if isinstance(statement, ast.Expr):
                value = eval(source, names)
                claimed = is_claimed(value, claim) if claim else None
                assert claimed is not False, f"{source} is {value!r}, not {claim}"
                claims += claimed is not None
            else:
                decorators = getattr(statement, "decorator_list", [])
                first = min([statement.lineno, *(one.lineno for one in decorators)])
                exec("\n".join(lines[first - 1 : statement.end_lineno]), names)
    return claims, printed.getvalue()


def assert_printed(printed, shown):
    """Words as they are shown, numbers within one per cent."""
    assert NUMBER.sub("#", printed).split() == NUMBER.sub("#", shown).split()
    for found, written in zip(NUMBER.findall(printed), NUMBER.findall(shown), strict=True):
        assert float(found) == pytest.approx(float(written), rel=0.01, abs=0.01)


@pytest.fixture
def own_registries(monkeypatch):
    """What a page registers is forgotten when it ends; sweeps are run in this process."""
    of_models = (DOMAINS, BASES, READERS, REDUCTIONS)
    of_solver = (METHODS, ENGINES, TECHNIQUES)
    of_learning = (CONFIDENCE, LEARNERS, EXECUTORS, CHARTS)
    for registry in (*of_models, *of_solver, *of_learning):
        monkeypatch.setattr(registry, "_entries", dict(registry))
    EXECUTORS.register("local", Local, replace=True)


@pytest.mark.parametrize("page", with_blocks("python"), ids=name)
def test_every_block_runs_and_every_comment_is_true(page, tmp_path, monkeypatch, own_registries):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    if "rddl" in page.name:
        pytest.importorskip("pyRDDLGym")
    names = {"__name__": "documentation"}
    printed = ""
    for language, title, text in blocks(page):
        if title:
            (tmp_path / title).write_text(text)
        elif language == "python":
            _, printed = run_block(text, names)
        elif not language and printed:
            assert_printed(printed, text)
            printed = ""


@pytest.mark.parametrize(
    ("value", "claim", "expected"),
    [
        (8.1251, "8.125", True),
        (8.1256, "8.125", False),
        (8.1251, "8.125: no policy earns more", True),
        (50, "50", True),
        (51, "50", False),
        ("repair", "'repair': the pump is down", True),
        ("wait", "'repair': the pump is down", False),
        ((1, 3), "(1, 3)", True),
        ([0.25], "[0.5]", False),
        (True, "False", False),
        (object(), "one row for each episode", None),
        (fsmdp.Variable("pump", 2), "Variable(name='pump', size=3)", False),
    ],
)
def test_a_comment_says_a_value_or_something_else(value, claim, expected):
    assert is_claimed(value, claim) is expected


def test_a_block_whose_comment_is_false_is_found():
    with pytest.raises(AssertionError, match=r"1 \+ 1 is 2, not 3"):
        run_block("1 + 1  # 3\n", {})
    assert run_block("1 + 1  # 2\nprint('so')\n", {}) == (1, "so\n")


def read_json(path):
    """A basis of a ring, or a model."""
    if path.name == "basis.json":
        return read_basis(fsmdp.domains.sysadmin(4), str(path))
    return fsmdp.load(path)


READ = {"toml": partial(read_specification, allow_code=True), "json": read_json}


@pytest.mark.parametrize("page", with_blocks(*READ), ids=name)
def test_a_file_shown_in_the_documentation_can_be_read(page, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    for number, (language, title, text) in enumerate(blocks(page)):
        path = tmp_path / (title or f"{number}.{language}")
        if title or language in READ:
            path.write_text(text)
        if language in READ:
            READ[language](path)


def test_what_looks_like_a_file_is_marked_as_one():
    for page in PAGES:
        for _, title, text in blocks(page, "text"):
            assert title or not re.match(r"\[\[|\{", text), f"{name(page)}: {text}"


def commands_in(text):
    """Commands of fsmdp in a block or an epilogue, without comments."""
    lines = (shlex.split(line, comments=True) for line in text.splitlines())
    return [words[1:] for words in lines if words[:1] == ["fsmdp"]]


def parse(words):
    """Parse a command line as `fsmdp` would, and run nothing."""
    group = typer.main.get_command(app)
    command = group.get_command(None, words[0])
    assert command is not None, f"there is no command {words[0]!r}"
    with contextlib.suppress(SystemExit):
        command.make_context(words[0], list(words[1:]))


EXAMPLES = [
    *(
        (name(page), words)
        for page in PAGES
        for _, _, text in blocks(page, "sh")
        for words in commands_in(text)
    ),
    *(
        (f"help of {command.name}", words)
        for command in typer.main.get_command(app).commands.values()
        for words in commands_in(re.sub(r"\[/?bold\]|\(.*\)", "", command.epilog or ""))
    ),
]


@pytest.mark.parametrize(("where", "words"), EXAMPLES, ids=lambda part: " ".join(part))
def test_every_command_shown_has_these_arguments_and_options(where, words):
    parse(words)


@pytest.mark.parametrize("where", sorted({where for where, _ in EXAMPLES}))
def test_every_rddl_problem_shown_is_in_the_repository(where):
    pytest.importorskip("rddlrepository")
    for _, words in (example for example in EXAMPLES if example[0] == where):
        for word in words:
            domain, _, instance = word.removeprefix("rddl:").partition(":")
            if word.startswith("rddl:") and domain:
                find_source(domain, instance or "1")


def test_commands_are_found_in_pages_and_help():
    places = {where for where, _ in EXAMPLES}
    assert {"README.md", "docs/cluster.md", "help of plan"} <= places
    with pytest.raises(Exception, match="No such option"):
        parse(["plan", "sysadmin:8", "--no-such-option"])


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_command_in_a_sentence_exists(page):
    commands = typer.main.get_command(app).commands
    for words in re.findall(r"`fsmdp ([^`]+)`", page.read_text(encoding="utf-8")):
        first, *others = words.split()
        if first.startswith("--"):
            continue
        assert first in commands, words
        options = {option for one in commands[first].params for option in one.opts}
        assert {one for one in others if one.startswith("--")} <= options | {"--help"}, words


@pytest.mark.parametrize("page", with_blocks("sh"), ids=name)
def test_every_target_of_make_exists(page):
    targets = set(re.findall(r"^(\w+):.*##", (ROOT / "Makefile").read_text(), re.M))
    for _, _, text in blocks(page, "sh"):
        assert set(re.findall(r"^make (\w+)", text, re.M)) <= targets


def script(name):
    """A script beside the documentation, which is no package."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def drawn_layers():
    pytest.importorskip("grimp")
    return script("layers")


def test_the_page_of_the_command_line_is_that_of_the_commands():
    making = script("commands")
    found = making.PAGE.read_text(encoding="utf-8")
    assert making.page() == found, "out of date: run python docs/commands.py"


def test_the_table_of_learners_is_that_of_the_registry():
    making = script("commands")
    found = making.EXPERIMENTS.read_text(encoding="utf-8")
    assert making.experiments() == found, "out of date: run python docs/commands.py"


def test_the_table_of_engines_is_that_of_the_registry():
    making = script("commands")
    found = making.SOLVER.read_text(encoding="utf-8")
    assert making.solver() == found, "out of date: run python docs/commands.py"


def test_the_picture_of_the_layers_is_that_of_the_imports():
    drawing = drawn_layers()
    found = drawing.PICTURE.read_text(encoding="utf-8")
    assert drawing.picture() == found, "out of date: run python docs/layers.py"


def test_the_table_of_layers_lists_those_that_are_checked():
    table = re.findall(r"^\| (`.+?`) \|", (ROOT / "CONTRIBUTING.md").read_text("utf-8"), re.M)
    listed = [tuple(sorted(re.findall(r"`(\w+)`", row))) for row in table]
    assert listed == drawn_layers().layers()


def test_the_reference_has_every_public_name_once():
    page = (ROOT / "docs" / "api" / "fsmdp.md").read_text("utf-8")
    listed = re.findall(r"^::: fsmdp\.(\w+)$", page, re.M)
    assert sorted([*listed, "domains", "plot", "rddl"]) == sorted(
        set(fsmdp.__all__) - {"__version__"}
    )
