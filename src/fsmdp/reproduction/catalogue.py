"""All claims, in the order of the page."""

from __future__ import annotations

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import show, suggest
from fsmdp.reproduction.claim import Claim
from fsmdp.reproduction.claims import (
    beyond,
    correlated,
    diameter,
    notes,
    oracle,
    planner,
    proposition,
    reformulation,
    regret,
)

CLAIMS: tuple[Claim, ...] = (
    oracle.CLAIM,
    planner.CLAIM,
    reformulation.CLAIM,
    regret.CLAIM,
    diameter.CLAIM,
    correlated.CLAIM,
    proposition.CLAIM,
    notes.CLAIM,
    beyond.CLAIM,
)


def find_claims(names: tuple[str, ...]) -> tuple[Claim, ...]:
    """The claims of some names, in the order of the page; all if none is named."""
    known = {claim.name: claim for claim in CLAIMS}
    for name in names:
        if name not in known:
            raise ModelError(f"unknown claim {show(name)}; {suggest(name, list(known))}.")
    return tuple(claim for claim in CLAIMS if not names or claim.name in names)
