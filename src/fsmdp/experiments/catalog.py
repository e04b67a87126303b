"""Models and bases by what a user writes for them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from fsmdp.errors import ModelError
from fsmdp.experiments.bases import basis_from_text, is_written, read_basis_file
from fsmdp.foundation.registry import Registry
from fsmdp.interop.rddl.loading import object_basis
from fsmdp.model.basis import Basis

BASES: Registry[Callable[[Any], Basis]] = Registry("basis")
"""What makes a basis for a model."""

BASES.register("singles", Basis.singles)
BASES.register("pairs", Basis.pairs)  # of variables that depend on one another
BASES.register("objects", object_basis)


def read_model(text: str) -> Any:
    """A model from what a user types: a domain with options, an RDDL problem, a file, a function.

    A function, `my_module:make`, takes no arguments and returns a FactoredMDP.
    """
    from fsmdp.domains import build_domain
    from fsmdp.domains.registry import DOMAINS
    from fsmdp.experiments.own import is_place, made_at, no_module
    from fsmdp.model.files import load
    from fsmdp.model.mdp import FactoredMDP

    if text.startswith("rddl:"):
        from fsmdp.interop.rddl.loading import load as load_rddl

        domain, instance, join = read_rddl_name(text)
        return load_rddl(domain, instance, join=join)
    if text.endswith(".npz"):
        raise ModelError(
            f"{text}: expected a model, found the name of a plan's file; give the model it was "
            f"made for, as in fsmdp simulate MODEL --policy {text}."
        )
    if text.endswith(".json") or Path(text).is_file():
        return load(text)
    if not is_read(text) and is_place(text):
        return made_at(text, "model", FactoredMDP)
    DOMAINS.find(text.partition(":")[0], also=no_module(text))
    return build_domain(text)


def is_read(text: str) -> bool:
    """Whether the text of a model is a domain, an RDDL problem or a file: what runs no code."""
    from fsmdp.domains.registry import DOMAINS

    name = text.partition(":")[0]
    return name == "rddl" or name in DOMAINS or text.endswith(".json") or Path(text).is_file()


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
    """A basis by its name, by a function of a model (`my_module:basis`), from a file or as JSON."""
    if is_written(text):
        return basis_from_text(model, text)
    if text.endswith(".json"):
        return basis_from_text(model, read_basis_file(text))
    if text in BASES:
        return BASES[text](model)
    from fsmdp.experiments.own import is_place, made_at, no_module

    if is_place(text):
        found: Basis = made_at(text, "basis", Basis, model)
        return found.bind(model.variables)
    return BASES.find(text, also=no_module(text))(model)
