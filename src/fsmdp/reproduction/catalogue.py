"""All claims, in the order of the page."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import show, suggest

if TYPE_CHECKING:
    from fsmdp.reproduction.claim import Claim

NAMES = (
    "oracle",
    "planner",
    "reformulation",
    "regret",
    "diameter",
    "correlated",
    "proposition",
    "notes",
    "beyond",
    "subsumed",
)
"""Modules of `fsmdp.reproduction.claims`, each with its CLAIM; imported when they are run."""


def find_claims(names: tuple[str, ...] = ()) -> tuple[Claim, ...]:
    """The claims of some names, in the order of the page; all if none is named."""
    for name in names:
        if name not in NAMES:
            raise ModelError(f"unknown claim {show(name)}; {suggest(name, NAMES)}")
    return tuple(
        import_module(f"fsmdp.reproduction.claims.{name}").CLAIM
        for name in NAMES
        if not names or name in names
    )
