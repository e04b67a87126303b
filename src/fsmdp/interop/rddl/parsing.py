"""The text of a problem as pyRDDLGym's lifted model, parsed quietly and without leaving files."""

from __future__ import annotations

import io
import logging
import re
import warnings
from contextlib import redirect_stdout
from functools import cache
from typing import Any

from fsmdp.errors import ModelError
from fsmdp.interop.rddl.errors import UnsupportedError
from fsmdp.interop.rddl.sources import INSTALL, Source


def parse(source: Source) -> tuple[Any, tuple[str, ...]]:
    """The lifted model of a problem (types, fluents with their values, formulas), and notes.

    The text and the model are checked by pyRDDLGym; what it refuses is a ModelError here, and
    what it warns about or prints is a note.
    """
    parser = _parser()
    output = io.StringIO()
    try:
        from pyRDDLGym.core.compiler.model import RDDLLiftedModel

        with redirect_stdout(output), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            parser.lexer._lexer.lineno = 1
            model = RDDLLiftedModel(parser.parse(source.text))
    except NotImplementedError as error:
        raise UnsupportedError(f"{source.name}: {_plain(error)}") from None
    except Exception as error:  # pyRDDLGym raises bare ones of many kinds
        raise ModelError(
            f"{source.name}: pyRDDLGym cannot read it: {_plain(error)}; correct the files."
        ) from None
    said = [*output.getvalue().splitlines(), *(str(warning.message) for warning in caught)]
    return model, tuple(f"pyRDDLGym: {_plain(line)}" for line in dict.fromkeys(said))


@cache
def _parser() -> Any:
    """One parser for all problems: making its tables takes far longer than parsing."""
    try:
        from pyRDDLGym.core.parser.parser import RDDLParser
    except ImportError as error:
        raise ModelError(
            f"reading RDDL needs the package pyRDDLGym, which cannot be imported ({error}); "
            f"install it with {INSTALL}."
        ) from None
    parser = RDDLParser(lexer=None, verbose=False)
    parser.build(debug=False, write_tables=False, errorlog=logging.Logger("rddl", logging.CRITICAL))
    return parser


def _plain(said: Exception | str) -> str:
    """A message without colours, on one line."""
    text = " ".join(re.sub(r"\x1b\[[0-9;]*m", "", str(said)).split()) or type(said).__name__
    return text if len(text) <= 300 else text[:297] + "..."
