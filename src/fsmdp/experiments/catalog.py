"""Models and bases by what a user writes for them."""

from __future__ import annotations

from typing import Any


def read_model(text: str) -> Any:
    """A model from what a user types: a domain with options, an RDDL problem, or a file."""
    from pathlib import Path

    from fsmdp.domains import build_domain
    from fsmdp.model.files import load

    if text.startswith("rddl:"):
        from fsmdp.interop.rddl.load import load as load_rddl

        return load_rddl(*read_rddl_name(text))
    if text.endswith(".json") or Path(text).is_file():
        return load(text)
    return build_domain(text)


def read_rddl_name(text: str) -> tuple[str, str]:
    """Domain and instance from `rddl:DOMAIN:INSTANCE`; either may be the path of a file."""
    from fsmdp.errors import ModelError

    parts = text.removeprefix("rddl:").split(":")
    if len(parts) == 2 and all(parts):
        return parts[0], parts[1]
    raise ModelError(
        f"{text!r}: expected rddl:DOMAIN:INSTANCE, names in rddlrepository or paths of two files, "
        "such as rddl:SysAdmin_MDP_ippc2011:1."
    )


def read_basis(model: Any, text: str) -> Any:
    """One of the ready-made bases by name."""
    from fsmdp.errors import ModelError
    from fsmdp.model.basis import Basis

    made = {"singles": Basis.singles, "pairs": Basis.pairs}
    if text not in made:
        raise ModelError(f"unknown basis {text!r}; expected {' or '.join(made)}.")
    return made[text](model)
