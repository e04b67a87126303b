"""Where the text of an RDDL problem is: the installed rddlrepository, or a user's files."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

from fsmdp.errors import ModelError, SizeError
from fsmdp.foundation.checks import show, show_names
from fsmdp.foundation.disk import read_file

LARGEST_TEXT = 2**24
BETWEEN_TEXTS = "\n\n"
INSTALL = 'pip install ".[rddl]" in a checkout, or pip install "fsmdp[rddl]"'


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """The texts of a domain and of an instance, the files they are from, and what to call them."""

    name: str
    files: tuple[str, ...]
    texts: tuple[str, ...]

    @property
    def text(self) -> str:
        """All of it, the texts one after another."""
        return BETWEEN_TEXTS.join(self.texts) + "\n"

    def place(self, position: int) -> str:
        """File, line and column of a character of the text, as messages name it."""
        at = 0
        while at + 1 < len(self.texts) and position >= len(self.texts[at]) + len(BETWEEN_TEXTS):
            position -= len(self.texts[at]) + len(BETWEEN_TEXTS)
            at += 1
        before = self.texts[at][:position].split("\n")
        return f"{self.files[at]}, line {len(before)}, column {len(before[-1]) + 1}"

    def definition(self, name: str) -> str:
        """Where a fluent or the reward is defined: file, line and column, or the files."""
        found = re.search(rf"(?<![\w'-]){re.escape(name)}\s*(\([^()]*\))?\s*=(?![=>])", self.text)
        return self.place(found.start()) if found else " and ".join(dict.fromkeys(self.files))

    @property
    def digest(self) -> str:
        """Changes whenever the text does."""
        return sha256(self.text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Listing:
    """A domain of the repository: its folder, the competition it is from and its instances."""

    name: str
    context: str
    folder: Path
    instances: tuple[str, ...]


@cache
def repository() -> Mapping[str, Listing]:
    """Every domain of the installed rddlrepository by name.

    Read from its folders: the repository's own manager would write a list of them into
    site-packages, which may be read-only.
    """
    found = find_spec("rddlrepository")
    if found is None or not found.submodule_search_locations:
        raise ModelError(
            "domains by name come with the package rddlrepository, which is not installed; "
            f"install it with {INSTALL}, or give the paths of a domain and an instance file."
        )
    archive = Path(found.submodule_search_locations[0]) / "archive"
    listings = [_listing(path.parent) for path in sorted(archive.rglob("domain.rddl"))]
    return {listing.name: listing for listing in listings if listing is not None}


def _listing(folder: Path) -> Listing | None:
    described = folder / "__init__.py"
    if not described.is_file():
        return None
    # The description is a dictionary of strings: read it, run nothing.
    for statement in ast.parse(described.read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Dict):
            facts = ast.literal_eval(statement.value)
            context = facts.get("context") or ""
            files = (path.stem.removeprefix("instance") for path in folder.glob("instance*.rddl"))
            return Listing(
                f"{facts['name']}_{context}" if context else facts["name"],
                context or "standalone",
                folder,
                tuple(sorted(files, key=_instance_key)),
            )
    return None


def _instance_key(name: str) -> tuple[int, str]:
    return (int(name), "") if name.isdigit() else (10**9, name)


def find_source(domain: str | os.PathLike[str], instance: str | int | os.PathLike[str]) -> Source:
    """The text of a problem, by names in the repository or by paths of two files."""
    if isinstance(domain, os.PathLike) or str(domain).endswith(".rddl"):
        files = Path(domain), Path(str(instance))
        return _read(f"{files[0].stem}:{files[1].stem}", *files)
    listings = repository()
    if domain not in listings:
        raise ModelError(
            f"RDDL domain {show(domain)}: not in the repository; expected the path of a file "
            f"ending in .rddl or one of {show_names(_close(str(domain), listings))}."
        )
    listing = listings[domain]
    wanted = str(instance)
    if wanted not in listing.instances:
        raise ModelError(
            f"RDDL domain {show(domain)}: no instance {show(instance)}; expected one of "
            f"{show_names(listing.instances)}."
        )
    return _read(
        f"{domain}:{wanted}",
        listing.folder / "domain.rddl",
        listing.folder / f"instance{wanted}.rddl",
    )


def _close(name: str, listings: Mapping[str, Listing]) -> list[str]:
    """Names like the one asked for, first."""
    from difflib import get_close_matches

    close = get_close_matches(name, listings, n=5, cutoff=0.4)
    return [*close, *(other for other in listings if other not in close)]


def _read(name: str, *files: Path) -> Source:
    # Carriage returns are no part of RDDL, nor is the mark that some editors begin a file with.
    texts = [
        read_file(path, LARGEST_TEXT).decode("utf-8-sig", errors="replace").replace("\r", "")
        for path in files
    ]
    return Source(name, tuple(path.name for path in files), tuple(texts))


LONG_WORD = re.compile(r"\S{200,}")
"""Names may be thousands of letters long; messages quote them in many places."""

KEPT = 60


class ProblemError(Exception):
    """A message in which no word is longer than a line."""

    def __init__(self, text: str = "") -> None:
        super().__init__(LONG_WORD.sub(lambda found: f"{found[0][:KEPT]}…", text))


class InvalidError(ProblemError, ModelError):
    """Files that are not RDDL, or a problem that contradicts itself."""


class UnsupportedError(ProblemError, ModelError):
    """A problem that uses what a factored-state MDP with finite variables cannot express."""


class TooLargeError(ProblemError, SizeError):
    """A problem whose tables or joint actions exceed the limits of the importer."""


class RDDLWarning(UserWarning):
    """Something in an RDDL problem that is left out of the model, or corrected."""


@contextmanager
def located(place: str | Callable[[], str]) -> Iterator[None]:
    """Say in front of an error's message where it happened, unless the message does."""
    try:
        yield
    except (ModelError, SizeError) as error:
        text, where = str(error), place if isinstance(place, str) else place()
        raise type(error)(text if text.startswith(where) else f"{where}: {text}") from None
