"""The text of a problem as pyRDDLGym's lifted model, parsed quietly and without leaving files."""

from __future__ import annotations

import io
import logging
import re
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from functools import cache
from typing import Any

from fsmdp.errors import FsmdpError, ModelError
from fsmdp.foundation.checks import show
from fsmdp.interop.rddl.balancing import balance
from fsmdp.interop.rddl.errors import InvalidError, UnsupportedError
from fsmdp.interop.rddl.kinds import check_formulas
from fsmdp.interop.rddl.sizes import check_expansion, check_groundings, check_length
from fsmdp.interop.rddl.sources import INSTALL, Source
from fsmdp.interop.rddl.values import check_declarations

SECTIONS = {
    "domain": "a domain { ... } block",
    "instance": "an instance { ... } block",
    "non_fluents": "a non-fluents { ... } block",
    "pvariables": "the section pvariables { ... }; in the domain",
    "cpfs": "the section cpfs { ... }; in the domain",
    "reward": "the section reward = ...; in the domain",
    "objects": "the section objects { ... }; in the instance",
}

_one_at_a_time = threading.Lock()


def parse(source: Source) -> tuple[Any, tuple[str, ...]]:
    """The lifted model of a problem (types, fluents with their values, formulas), and notes.

    The text and what it declares are checked beyond what pyRDDLGym checks; sizes are estimated
    before anything of that size is made. What is wrong is an InvalidError, and what pyRDDLGym
    warns about or prints is a note.
    """
    check_length(source)
    said: list[str] = []
    tree = _tree(source, said)
    balance(tree)
    check_groundings(tree)
    with pyrddlgym(source, said):
        from pyRDDLGym.core.compiler.model import RDDLLiftedModel

        model = RDDLLiftedModel(tree)
    check_declarations(model)
    return model, tuple(f"pyRDDLGym: {_plain(line)}" for line in dict.fromkeys(said))


def check_meaning(model: Any, source: Source) -> None:
    """Refuse formulas that make no sense, would be huge, or look at what they must not."""
    check_formulas(model, source)
    check_expansion(model)
    with pyrddlgym(source, []):
        from pyRDDLGym.core.compiler.levels import RDDLLevelAnalysis

        RDDLLevelAnalysis(model).build_call_graph()


def _tree(source: Source, said: list[str]) -> Any:
    parser = _parser()
    with _one_at_a_time, pyrddlgym(source, said):
        parser.source = source
        parser.lexer.source = source
        parser.lexer._lexer.lineno = 1
        tree = parser.parse(source.text)
    for section in ("horizon", "discount"):
        if not hasattr(tree.instance, section):
            raise InvalidError(
                f"{source.files[-1]}: no {section} is given; expected {section} = ...; in the "
                "instance block."
            )
    return tree


@contextmanager
def pyrddlgym(source: Source, said: list[str]) -> Iterator[None]:
    """Quietly; whatever pyRDDLGym raises, bare and of many kinds, becomes one of our errors."""
    files = " and ".join(dict.fromkeys(source.files))
    output = io.StringIO()
    try:
        with redirect_stdout(output), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
    except (FsmdpError, RecursionError, MemoryError):
        raise
    except NotImplementedError as error:
        raise UnsupportedError(f"pyRDDLGym does not support it: {_plain(error)}") from None
    except KeyError as error:
        missing = SECTIONS.get(str(error.args[0]), f"{show(error.args[0])}")
        raise InvalidError(f"{files}: expected {missing}, found none; add it.") from None
    except Exception as error:
        raise InvalidError(
            f"{files}: pyRDDLGym refuses it: {_plain(error)}; correct the files."
        ) from None
    said += [*output.getvalue().splitlines(), *(str(warning.message) for warning in caught)]


@cache
def _parser() -> Any:
    """One parser for all problems: making its tables takes far longer than parsing."""
    try:
        from pyRDDLGym.core.parser.parser import RDDLlex, RDDLParser
    except ImportError as error:
        raise ModelError(
            f"reading RDDL needs the package pyRDDLGym, which cannot be imported ({error}); "
            f"install it with {INSTALL}."
        ) from None

    class Lexer(RDDLlex):  # type: ignore[misc]
        """pyRDDLGym's, which would leave out characters that it does not know."""

        source: Source

        def t_error(self, token: Any) -> None:
            raise InvalidError(
                f"{self.source.place(token.lexpos)}: {show(token.value[0])} is not a character of "
                "RDDL; remove it, or put it into a comment."
            )

    class Parser(RDDLParser):  # type: ignore[misc]
        """pyRDDLGym's, which does not say in which file and column an error is."""

        source: Source

        def p_error(self, token: Any) -> None:
            if token is None:
                place, found = self.source.place(len(self.source.text) - 2), "the end of the text"
            else:
                place, found = self.source.place(token.lexpos), show(token.value)
            raise InvalidError(
                f"{place}: {found} cannot stand here; correct the text there or just before "
                "(a bracket or a semicolon may be missing)."
            )

    parser = Parser(lexer=None, verbose=False)
    parser.lexer = Lexer()
    quiet = logging.Logger("rddl", logging.CRITICAL)
    parser.lexer.build(errorlog=quiet)
    parser.build(debug=False, write_tables=False, errorlog=quiet)
    return parser


def _plain(said: Exception | str) -> str:
    """A message without colours, on one line."""
    text = " ".join(re.sub(r"\x1b\[[0-9;]*m", "", str(said)).split()) or type(said).__name__
    return text if len(text) <= 300 else text[:297] + "..."
