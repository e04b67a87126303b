"""Models and bases by what a user writes for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from fsmdp.errors import ModelError
from fsmdp.model.basis import Basis

BASES: Mapping[str, Callable[[Any], Basis]] = MappingProxyType(
    {"singles": Basis.singles, "pairs": Basis.pairs}
)


def read_model(text: str) -> Any:
    """A model from what a user types: a domain with options, or a file."""
    from pathlib import Path

    from fsmdp.domains import build_domain
    from fsmdp.model.files import load

    if text.endswith(".json") or Path(text).is_file():
        return load(text)
    return build_domain(text)


def read_basis(model: Any, text: str) -> Basis:
    """One of the ready-made bases by name."""
    if text not in BASES:
        raise ModelError(f"unknown basis {text!r}; expected {' or '.join(BASES)}.")
    return BASES[text](model)
