"""Test files for what changed since the last commit: python tests/changed.py [BASE].

A test file is chosen if it changed itself, or if it imports a module that changed; for a change in
src/fsmdp/a/b.py, tests/a/test_b.py is chosen too. Prints one path a line.
"""

import ast
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
MOST_FILES = 12


def changed_files(base):
    """Paths that differ from a commit, and those that git does not know yet."""
    commands = (
        ["git", "diff", "--name-only", base],
        ["git", "ls-files", "-o", "--exclude-standard"],
    )
    found = []
    for command in commands:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        found += done.stdout.split()
    return sorted(set(found))


def imported(path):
    """Modules that a file imports, and parents of imported names."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found |= {f"{node.module}.{name.name}" for name in node.names}
    return found


def module_of(path):
    """src/fsmdp/a/b.py is fsmdp.a.b."""
    return ".".join(Path(path).with_suffix("").parts[1:]).removesuffix(".__init__")


def tests_of(changed):
    """Test files, the ones that changed first."""
    own = [path for path in changed if Path(path).name.startswith("test_") and path.endswith(".py")]
    modules = {
        module_of(path) for path in changed if path.startswith("src/") and path.endswith(".py")
    }
    chosen = {path: None for path in own if (ROOT / path).exists()}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        name = str(path.relative_to(ROOT))
        folder, stem = path.parent.name, path.stem.removeprefix("test_")
        is_named = any(module.endswith(f".{folder}.{stem}") for module in modules)
        if is_named or imported(path) & modules:
            chosen[name] = None
    return list(chosen)


if __name__ == "__main__":
    base = sys.argv[1] if len(sys.argv) > 1 else "HEAD"
    for path in tests_of(changed_files(base))[:MOST_FILES]:
        print(path)
