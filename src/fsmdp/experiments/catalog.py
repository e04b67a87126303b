"""Models and bases by what a user writes for them."""

from __future__ import annotations

from typing import Any


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
    from fsmdp.errors import ModelError

    parts = text.removeprefix("rddl:").split(":")
    if all(parts) and (len(parts) == 2 or (len(parts) == 3 and parts[2] == "join")):
        return parts[0], parts[1], len(parts) == 3
    raise ModelError(
        f"{text!r}: expected rddl:DOMAIN:INSTANCE or rddl:DOMAIN:INSTANCE:join, with names in "
        "rddlrepository or paths of two files, such as rddl:SysAdmin_MDP_ippc2011:1."
    )


def read_basis(model: Any, text: str) -> Any:
    """One of the ready-made bases by name."""
    from fsmdp.errors import ModelError
    from fsmdp.model.basis import Basis

    made = {"singles": Basis.singles, "pairs": Basis.pairs}
    if text not in made:
        raise ModelError(f"unknown basis {text!r}; expected {' or '.join(made)}.")
    return made[text](model)
