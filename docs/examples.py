"""Make the pages of the examples: each script as it is, with what it printed and drew.

The same as notebooks: what a script defines in one cell, what its main() does in the next.

Run: python docs/examples.py [NAME...], in an environment with the extra `rddl`.
"""

import ast
import base64
import json
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

ROOT = Path(__file__).parent.parent
SCRIPTS = ROOT / "examples"
PAGES = ROOT / "docs" / "examples"
ORDER = (
    "own_model",
    "rddl_problem",
    "own_environment",
    "compare_learners",
    "factored_actions",
    "supply_chain",
    "unknown_structure",
    "own_figure",
)


def title_and_text(source: str) -> tuple[str, str, str]:
    """The first line of a script's docstring, the rest of it, and the code below."""
    tree = ast.parse(source)
    docstring = ast.get_docstring(tree)
    first, _, rest = docstring.partition("\n")
    rest = rest.strip().rpartition("Run: ")[0].strip()
    code = "\n".join(source.splitlines()[tree.body[0].end_lineno :]).strip("\n")
    return first.rstrip("."), rest, code


def page(name: str, printed: str, pictures: list[str]) -> str:
    """A page in Markdown; the script's code as in the file, so that a test can compare them."""
    title, text, code = title_and_text((SCRIPTS / f"{name}.py").read_text(encoding="utf-8"))
    shown = "".join(f"\n![What it draws]({picture})\n" for picture in pictures)
    return (
        f"# {title}\n\n"
        + (f"{text}\n\n" if text else "")
        + f"`examples/{name}.py`, and this page, are from the repository; "
        f"`python docs/examples.py {name}` makes it again, and [the same as a "
        f"notebook]({name}.ipynb).\n\n"
        f"```py\n{code}\n```\n\nIt prints\n\n```text\n{printed.rstrip()}\n```\n{shown}"
    )


def cells_of(source: str) -> tuple[str, str]:
    """The code of a script without its main(), and what that does."""
    _, _, code = title_and_text(source)
    lines, tree = code.splitlines(), ast.parse(code)
    main, started = tree.body[-2:]  # the function, and the question whether it is a script
    assert main.name == "main", "an example ends with main() and what calls it"
    assert isinstance(started, ast.If), "an example ends with main() and what calls it"
    body = main.body[1:] if ast.get_docstring(main) else main.body
    given = zip(main.args.args, main.args.defaults, strict=True)
    said = [f"{one.arg} = {ast.unparse(default)}" for one, default in given]
    does = textwrap.dedent("\n".join(lines[body[0].lineno - 1 : main.end_lineno]))
    defined = "\n".join(lines[: main.lineno - 1]).strip()
    if "sys." not in defined + does:  # it was for the arguments of a script
        defined = defined.removeprefix("import sys").strip()
    return defined, "\n".join([*said, does])


def notebook(name: str, printed: str, pictures: list[str]) -> str:
    """A notebook (format 4.5) with the outputs that the page shows."""
    source = (SCRIPTS / f"{name}.py").read_text(encoding="utf-8")
    title, text, _ = title_and_text(source)
    defined, done = cells_of(source)
    shown = [
        {
            "output_type": "display_data",
            "data": {"image/png": base64.b64encode((PAGES / picture).read_bytes()).decode()},
            "metadata": {},
        }
        for picture in pictures
    ]
    said = {"output_type": "stream", "name": "stdout", "text": printed.rstrip() + "\n"}
    cells = [
        {"cell_type": "markdown", "id": "about", "metadata": {}, "source": f"# {title}\n\n{text}"},
        _code("defined", defined, 1, []),
        _code("done", done, 2, [said, *shown]),
    ]
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    book = {"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(book, indent=1, ensure_ascii=False) + "\n"


def _code(name: str, source: str, number: int, outputs: list) -> dict:
    return {
        "cell_type": "code",
        "id": name,
        "metadata": {},
        "execution_count": number,
        "source": source,
        "outputs": outputs,
    }


def make(name: str) -> None:
    """Run a script in a folder of its own, and write its page, its notebook and pictures."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", str(SCRIPTS / f"{name}.py")],
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
        )
        pictures = []
        for found in sorted(Path(folder).rglob("*.png")):
            picture = PAGES / f"{name}-{found.name}"
            picture.write_bytes(found.read_bytes())
            pictures.append(picture.name)
    for ending, made in (("md", page), ("ipynb", notebook)):
        text = made(name, done.stdout, pictures)
        (PAGES / f"{name}.{ending}").write_text(text, encoding="utf-8")


def index() -> str:
    """The list of all pages."""
    lines = [
        "# Examples",
        "",
        "Each runs in under a minute, is run by the tests, and stands in `examples/`; each page",
        "has the same as a notebook, with its outputs.",
        "",
    ]
    for name in ORDER:
        title, _, _ = title_and_text((SCRIPTS / f"{name}.py").read_text(encoding="utf-8"))
        lines.append(f"- [{title}]({name}.md)")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGES.mkdir(exist_ok=True)
    (PAGES / "index.md").write_text(index(), encoding="utf-8")
    for one in sys.argv[1:] or ORDER:
        print(one, flush=True)
        make(one)
