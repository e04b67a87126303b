"""Bases that a user writes down: blocks of variables, or functions with their tables, as JSON.

{"blocks": [["pump", "tank"], ...], "functions": [{"scope": ["pump"], "values": [0, 1]}, ...]}
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import clip
from fsmdp.foundation.disk import read_file
from fsmdp.foundation.kinds import Document, explain
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
