"""Plug-ins by import path, `my_module:make`: how they are found, imported and called.

Importing a module runs it. What a user types, or writes in Python, may import; a file may come
from somebody else, so a specification that names modules is read only if that is allowed.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Callable, Container
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType, MethodType
from typing import Any

from fsmdp.errors import FsmdpError, ModelError
from fsmdp.foundation.checks import clip, show

IMPORT_PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")

ALLOW_CODE = (
    "correct the name, or, if you trust the file and the modules that it names, allow it with "
    "--allow-code, or read_specification(path, allow_code=True) in Python"
)

SEARCHED = "beside the specification, in the current folder, and where Python looks"
"""Where modules are found."""


def search_folder(folder: str | os.PathLike[str]) -> None:
    """Search a folder for modules too, after all others."""
    path = str(Path(folder).resolve())
    if path not in sys.path:
        sys.path.append(path)


def is_import_path(text: str) -> bool:
    """Whether text is an import path whose module can be found; imports nothing."""
    if not IMPORT_PATH.fullmatch(text):
        return False
    search_folder(os.curdir)
    try:
        return find_spec(re.split("[.:]", text)[0]) is not None
    except ValueError:  # a module without a specification, such as __main__
        return False


def refuse_code(text: str | None, known: Container[str], kind: str, where: str) -> None:
    """Refuse what is no known name and would be imported."""
    if text is not None and IMPORT_PATH.fullmatch(text) and text not in known:
        raise ModelError(
            f"{where}: {show(text)} is no {kind} of fsmdp and would be imported, which runs code "
            f"of module {show(text.partition(':')[0])}; {ALLOW_CODE}."
        )


def module_hint(text: object) -> str:
    """What messages add about an unknown name that may have been meant as an import path."""
    if not isinstance(text, str) or not IMPORT_PATH.fullmatch(text):
        return ""
    module = text.partition(":")[0]
    return f"Nor can module {module!r} be imported, which is looked for {SEARCHED}."


def import_function(text: str, where: str) -> Callable[..., Any]:
    """The function or class at an import path."""
    if not IMPORT_PATH.fullmatch(text):
        raise ModelError(
            f"{where}: expected the import path of a function, such as my_module:make, found "
            f"{show(text)}."
        )
    search_folder(os.curdir)
    module, _, name = text.partition(":")
    if module.partition(".")[0] in sys.stdlib_module_names:
        raise ModelError(
            f"{where}: {text!r} is of Python's standard library, which makes nothing of fsmdp; "
            "expected a function or a class of your own."
        )
    try:
        found = getattr(importlib.import_module(module), name)
    except AttributeError:
        raise ModelError(
            f"{where}: module {module!r} has no {name!r}; correct the name after the colon."
        ) from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit too: a module must not end the process
        raise ModelError(
            f"{where}: cannot import {module!r} ({type(error).__name__}: {clip(str(error))}); it "
            f"is looked for {SEARCHED}."
        ) from error
    if not _is_written_in_python(found):
        raise ModelError(
            f"{where}: {text!r} is {show(found)}, expected a function or a class written in Python."
        )
    return found  # type: ignore[no-any-return]


def _is_written_in_python(found: object) -> bool:
    """Whether a call of something runs Python code, or makes an object of a class in Python.

    Compiled functions say nothing of what they take, and may end the process.
    """
    if isinstance(found, partial):
        return _is_written_in_python(found.func)
    if isinstance(found, type):
        members = (member for base in found.__mro__ for member in vars(base).values())
        return any(isinstance(member, FunctionType) for member in members)
    if isinstance(found, FunctionType | MethodType):
        return True
    return callable(found) and isinstance(type(found).__call__, FunctionType)


def call_function(
    text: str, where: str, make: Callable[..., Any], *given: Any, **named: Any
) -> Any:
    """What a function of the user's own returns; a failure is a ModelError that names it."""
    try:
        return make(*given, **named)
    except (FsmdpError, KeyboardInterrupt, MemoryError):
        raise
    except BaseException as error:  # SystemExit too: a function must not end the process
        raise ModelError(
            f"{where}: {text!r} failed ({type(error).__name__}: {clip(str(error))}); correct it."
        ) from error


def make_from(text: str, where: str, kind: type, *arguments: Any) -> Any:
    """What a function of the user's own makes, or an object of a class, which must be of a kind."""
    make = import_function(text, where)
    if isinstance(make, type) and not issubclass(make, kind):
        raise ModelError(
            f"{where}: {text!r} is a class of something else, expected something of type "
            f"{kind.__name__}; return one."
        )
    found = call_function(text, where, make, *arguments)
    if not isinstance(found, kind):
        raise ModelError(
            f"{where}: {text!r} made {show(found)}, expected something of type {kind.__name__}; "
            "return one."
        )
    return found
