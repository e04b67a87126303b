"""Models and bases by what a user writes for them."""

from __future__ import annotations

from typing import Any


def read_model(text: str) -> Any:
    """A model from what a user types: a domain with options, or a file."""
    from pathlib import Path

    from fsmdp.domains import build_domain
    from fsmdp.model.files import load

    if text.endswith(".json") or Path(text).is_file():
        return load(text)
    return build_domain(text)


def read_basis(model: Any, text: str) -> Any:
    """One of the ready-made bases by name."""
    from fsmdp.errors import ModelError
    from fsmdp.model.basis import Basis

    made = {"singles": Basis.singles, "pairs": Basis.pairs}
    if text not in made:
        raise ModelError(f"unknown basis {text!r}; expected {' or '.join(made)}.")
    return made[text](model)
