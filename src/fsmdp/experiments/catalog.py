"""Models and bases by what a user writes for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import show, suggest
from fsmdp.interop.rddl.bases import object_basis
from fsmdp.model.basis import Basis

BASES: Mapping[str, Callable[[Any], Basis]] = MappingProxyType(
    {"singles": Basis.singles, "pairs": Basis.pairs, "objects": object_basis}
)
"""Functions of one variable, of two that depend on one another, of all that speak of an object."""


def read_model(text: str) -> Any:
    """A model from what a user types: a domain with options, an RDDL problem, or a file."""
    from pathlib import Path

    from fsmdp.domains import build_domain
    from fsmdp.model.files import load

    if text.startswith("rddl:"):
        from fsmdp.interop.rddl.loading import load as load_rddl

        domain, instance, join = read_rddl_name(text)
        return load_rddl(domain, instance, join=join)
    if text.endswith(".json") or Path(text).is_file():
        return load(text)
    return build_domain(text)


def read_rddl_name(text: str) -> tuple[str, str, bool]:
    """Domain, instance and whether to join exclusive fluents, from `rddl:DOMAIN:INSTANCE[:join]`.

    Domain and instance may be the paths of two files.
    """
    parts = text.removeprefix("rddl:").split(":")
    if all(parts) and (len(parts) == 2 or (len(parts) == 3 and parts[2] == "join")):
        return parts[0], parts[1], len(parts) == 3
    raise ModelError(
        f"{text!r}: expected rddl:DOMAIN:INSTANCE or rddl:DOMAIN:INSTANCE:join, with names in "
        "rddlrepository or paths of two files, such as rddl:SysAdmin_MDP_ippc2011:1."
    )


def read_basis(model: Any, text: str) -> Basis:
    """One of the ready-made bases by name."""
    if text not in BASES:
        raise ModelError(f"unknown basis {show(text)}; {suggest(text, BASES)}.")
    return BASES[text](model)
