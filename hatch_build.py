"""Compile ahead while a wheel is built, so that the first plan after `pip install` need not wait.

What was compiled goes into the wheel as what it is, a cache: files named after digests of the
sources, of Numba's and Python's versions, of types and of the processor with its system. Whoever
finds none that fits compiles again, as without them. Nothing else in the wheel depends on the
machine, so its tag remains py3-none-any: with a tag for this platform the same wheel would be
refused where it works, and a tag cannot name what these files depend on, the processor's model.

FSMDP_COMPILE=0 leaves them out: for wheels to be published, which are then the same wherever they
are built, and for installations that compile by themselves.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGE = Path("src", "fsmdp")
IMPORTED = ("clarabel", "highspy", "lazy-loader", "networkx", "numba", "numpy", "scipy")
"""What compiling needs; the other dependencies would only be installed in vain."""


class CompileAhead(BuildHookInterface):
    """Adds a compiled cache to a wheel; where that fails, the wheel is built without one."""

    PLUGIN_NAME = "custom"
    _work: tempfile.TemporaryDirectory[str] | None = None

    def dependencies(self) -> list[str]:
        """Packages to have before the build, of those that the project depends on anyway."""
        if not _wanted():
            return []
        needed = self.metadata.core.dependencies_complex.items()
        return [text for text, one in needed if one.name.lower().replace("_", "-") in IMPORTED]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile a copy of the sources, so that nothing older is beside them."""
        if version == "editable" or not _wanted():
            return
        self._work = tempfile.TemporaryDirectory(prefix="fsmdp-build-")
        copy = Path(self._work.name, "fsmdp")
        shutil.copytree(
            Path(self.root, PACKAGE), copy, ignore=shutil.ignore_patterns("__pycache__")
        )
        self.app.display_waiting("compiling, a minute or two (FSMDP_COMPILE=0 leaves it out)")
        path = os.pathsep.join(filter(None, (self._work.name, os.environ.get("PYTHONPATH"))))
        ours = {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "NUMBA_DISABLE_JIT": "0"}
        done = subprocess.run(
            [sys.executable, "-m", "fsmdp.cli.ahead"],
            cwd=self._work.name,
            env={**os.environ, **ours},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            said = done.stderr.strip().rpartition("\n")[2]
            self.app.display_warning(f"not compiled ahead, but when first used: {said}")
            return
        for file in copy.glob("__pycache__/compiled-*/*"):
            build_data["force_include"][str(file)] = str(
                Path("fsmdp", file.relative_to(copy)).as_posix()
            )

    def finalize(self, *_: object) -> None:
        """Remove the copy."""
        if self._work is not None:
            self._work.cleanup()


def _wanted() -> bool:
    return os.environ.get("FSMDP_COMPILE", "1") != "0"
