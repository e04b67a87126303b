"""What a user's own module makes, by its import path: `my_module:make`.

Importing a module runs it. What a user types, or writes in Python, is the user's own word; a file
may come from somebody else, so a specification that names modules is read only if that is allowed.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from inspect import Parameter, signature
from pathlib import Path
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, NoReturn

from fsmdp.errors import FsmdpError, ModelError
from fsmdp.foundation.checks import clip, show
from fsmdp.foundation.kinds import NUMBER, SWITCH, WHOLE, Kind, Reading
from fsmdp.learning.learners.learner import check_learner
from fsmdp.learning.learners.registry import LEARNERS, LearnerContext, LearnerEntry, Options, Value
from fsmdp.model.structure import Structure

if TYPE_CHECKING:
    import gymnasium

    from fsmdp.learning.learners.learner import Learner

PLACE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")

TOLD = ("seed", "known_rewards")
"""What a function that makes a learner is told by name, if it asks, besides its options."""

TEXT = Reading("text", str)

ALLOW_CODE = (
    "correct the name, or, if you trust the file and the modules that it names, allow it with "
    "--allow-code, or read_specification(path, allow_code=True) in Python"
)

LOOKED_FOR = "beside the specification, in the current folder, and where Python looks"
"""Where modules are found."""


@dataclass(frozen=True, slots=True, eq=False)
class Simulator:
    """An environment with no model behind it, and the structure that learners are told of it."""

    environment: gymnasium.Env[Any, Any]
    told: Structure

    def structure(self, _basis: None = None) -> Structure:
        """What learners are told; its basis is its own."""
        return self.told

    @property
    def rewards(self) -> NoReturn:
        """Known to nobody."""
        raise ModelError(
            "known_rewards: an environment does not say what its rewards are; leave it out, or "
            "build them into a learner of your own."
        )


def look_in(folder: str | os.PathLike[str]) -> None:
    """Let modules of a folder be found too, after all others."""
    path = str(Path(folder).resolve())
    if path not in sys.path:
        sys.path.append(path)


def is_place(text: str) -> bool:
    """Whether text is the place of something in a module that can be found; imports nothing."""
    if not PLACE.fullmatch(text):
        return False
    look_in(os.curdir)
    try:
        return find_spec(re.split("[.:]", text)[0]) is not None
    except ValueError:  # a module without a specification, such as __main__
        return False


def refuse_code(text: str | None, known: Container[str], kind: str, where: str) -> None:
    """Refuse what is no known name and would be imported."""
    if text is not None and PLACE.fullmatch(text) and text not in known:
        raise ModelError(
            f"{where}: {show(text)} is no {kind} of fsmdp and would be imported, which runs code "
            f"of module {show(text.partition(':')[0])}; {ALLOW_CODE}."
        )


def no_module(text: object) -> str:
    """What messages add about an unknown name that may have been meant as a place."""
    if not isinstance(text, str) or not PLACE.fullmatch(text):
        return ""
    module = text.partition(":")[0]
    return f"Nor can module {module!r} be imported, which is looked for {LOOKED_FOR}."


def at_place(text: str, where: str) -> Callable[..., Any]:
    """The function or class at a place."""
    if not PLACE.fullmatch(text):
        raise ModelError(
            f"{where}: expected the place of a function, such as my_module:make, found "
            f"{show(text)}."
        )
    look_in(os.curdir)
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
            f"is looked for {LOOKED_FOR}."
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


def call_at(text: str, where: str, make: Callable[..., Any], *given: Any, **named: Any) -> Any:
    """What a function of the user's own returns; a failure is a ModelError that names it."""
    try:
        return make(*given, **named)
    except (FsmdpError, KeyboardInterrupt, MemoryError):
        raise
    except BaseException as error:  # SystemExit too: a function must not end the process
        raise ModelError(
            f"{where}: {text!r} failed ({type(error).__name__}: {clip(str(error))}); correct it."
        ) from error


def made_at(text: str, where: str, kind: type, *arguments: Any) -> Any:
    """What a function of the user's own makes, or an object of a class, which must be of a kind."""
    make = at_place(text, where)
    if isinstance(make, type) and not issubclass(make, kind):
        raise ModelError(
            f"{where}: {text!r} is a class of something else, expected something of type "
            f"{kind.__name__}; return one."
        )
    found = call_at(text, where, make, *arguments)
    if not isinstance(found, kind):
        raise ModelError(
            f"{where}: {text!r} made {show(found)}, expected something of type {kind.__name__}; "
            "return one."
        )
    return found


def make_simulator(environment: str, structure: str, where: str) -> Simulator:
    """The environment and the structure of two functions."""
    import gymnasium

    return Simulator(
        made_at(environment, f"{where}, environment", gymnasium.Env),
        made_at(structure, f"{where}, structure", Structure),
    )


def find_learner(name: object, where: str) -> LearnerEntry:
    """A learner that is registered, or made by a function of the user's own."""
    if isinstance(name, str) and name not in LEARNERS and is_place(name):
        return _own_learner(name, where)
    return LEARNERS.find(name, where, no_module(name))


def _own_learner(text: str, where: str) -> LearnerEntry:
    """An entry for a function: its parameters with defaults are the options."""
    make = at_place(text, where)
    parameters = signature(make).parameters
    if not parameters:
        raise ModelError(f"{where}: {text!r} takes no arguments, expected the structure first.")
    _, *others = parameters
    options: dict[str, tuple[Kind, Value]] = {}
    for name in others:
        default = parameters[name].default
        if name in TOLD or parameters[name].kind is Parameter.VAR_KEYWORD:
            continue
        if default is Parameter.empty:
            raise ModelError(
                f"{where}: parameter {name!r} of {text!r} has no default, expected one for every "
                f"option (only the structure, {' and '.join(TOLD)} are told); give it one."
            )
        options[name] = (_kind_of(default), default)

    def build(told: LearnerContext, given: Options) -> Learner:
        known: Mapping[str, Any] = {"seed": told.seed, "known_rewards": told.known_rewards}
        asked = {name: known[name] for name in TOLD if name in parameters}
        learner: Learner = call_at(text, where, make, told.structure, **asked, **given)
        try:
            check_learner(learner)
        except ModelError as error:
            raise ModelError(f"{where}: {text!r} made something else: {error}") from None
        return learner

    return LearnerEntry(
        text,
        text.rpartition(":")[2],
        f"made by {text}",
        build=build,
        options=options,
        uses_basis=True,
        takes_rewards="known_rewards" in parameters,
    )


def _kind_of(default: object) -> Kind:
    """How the text of an option is read, by its default."""
    if isinstance(default, bool):
        return SWITCH
    return WHOLE if isinstance(default, int) else NUMBER if isinstance(default, float) else TEXT
