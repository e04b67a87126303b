"""Make the pages of the examples: each script as it is, with what it printed and drew.

Run: python docs/examples.py [NAME...], in an environment with the extra `rddl`.
"""

import ast
import subprocess
import sys
import tempfile
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
        f"`python docs/examples.py {name}` makes it again.\n\n"
        f"```py\n{code}\n```\n\nIt prints\n\n```text\n{printed.rstrip()}\n```\n{shown}"
    )


def make(name: str) -> None:
    """Run a script in a folder of its own, and write its page and pictures."""
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
    (PAGES / f"{name}.md").write_text(page(name, done.stdout, pictures), encoding="utf-8")


def index() -> str:
    """The list of all pages."""
    lines = [
        "# Examples",
        "",
        "Each runs in under a minute, is run by the tests, and stands in `examples/`.",
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
