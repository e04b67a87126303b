"""Models and bases by what a user writes for them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import clip
from fsmdp.foundation.disk import read_file
from fsmdp.foundation.kinds import Document, explain
from fsmdp.foundation.registry import Registry
from fsmdp.io.rddl.loading import object_basis
from fsmdp.model.basis import Basis
from fsmdp.model.tables import Table

LARGEST_FILE = 2**24


class FunctionTable(Document):
    """A function of a few variables: an entry for each of their values, axes in their order."""

    scope: Annotated[list[str], Field(min_length=1)]
    values: Any


class BasisFile(Document):
    """A basis: all indicators of blocks, and functions."""

    name: str = "own"
    blocks: list[Annotated[list[str], Field(min_length=1)]] = Field(default_factory=list)
    functions: list[FunctionTable] = Field(default_factory=list)


def read_basis_file(path: str | os.PathLike[str]) -> str:
    """The content of a basis file, named after it."""
    content = read_file(path, LARGEST_FILE)
    try:
        data = json.loads(content)
        name = str(data.get("name", Path(path).stem))
    except (ValueError, RecursionError, AttributeError) as error:
        raise ModelError(f"{path}: expected a JSON object: {clip(str(error))}.") from None
    return written(data, name)


def is_written(text: str) -> bool:
    """Whether the text of a basis is the basis itself, and no name."""
    return text.lstrip().startswith("{")


def written(data: Mapping[str, Any], name: str) -> str:
    """A basis as text, which any worker can read."""
    return json.dumps({**data, "name": name})


def basis_name(text: str) -> str:
    """What to call a basis in a table."""
    return _parse(text).name if is_written(text) else text


def basis_of_blocks(blocks: Sequence[Sequence[str]]) -> str:
    """Blocks of variables as the text of a basis."""
    largest = max(map(len, blocks), default=0)
    return written({"blocks": [list(one) for one in blocks]}, f"blocks of up to {largest}")


def basis_from_text(model: Any, text: str) -> Basis:
    """The basis that text describes, for a model."""
    read = _parse(text)
    of_blocks = Basis.blocks(model, read.blocks).tables[1:] if read.blocks else ()
    own = [Table(one.scope, one.values) for one in read.functions]
    return Basis([*of_blocks, *own]).bind(model.variables)


def _parse(text: str) -> BasisFile:
    try:
        return BasisFile.model_validate(json.loads(text))
    except ValidationError as error:
        raise ModelError(explain(error, "basis")) from None
    except (ValueError, RecursionError) as error:
        raise ModelError(f"basis: not JSON: {clip(str(error))}; correct it.") from None


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
    from fsmdp.io.models import load
    from fsmdp.model.mdp import FactoredMDP

    if text.startswith("rddl:"):
        from fsmdp.io.rddl.loading import load as load_rddl

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
