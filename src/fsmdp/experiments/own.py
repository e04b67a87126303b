"""What a user's own module makes, by the place where it stands: `my_module:make`."""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from fsmdp.errors import FsmdpError, ModelError
from fsmdp.foundation.checks import clip, show
from fsmdp.foundation.kinds import NUMBER, SWITCH, WHOLE, Kind, Reading
from fsmdp.learning.learners.registry import LEARNERS, LearnerEntry, Options, Told, Value
from fsmdp.model.structure import Structure

if TYPE_CHECKING:
    import gymnasium

    from fsmdp.learning.learners.learner import Learner

PLACE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")

TOLD = ("seed", "known_rewards")
"""What a function that makes a learner is told by name, if it asks, besides its options."""

TEXT = Reading("text", str)

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
    """Whether text is the place of something in a module that can be found."""
    if not PLACE.fullmatch(text):
        return False
    look_in(os.curdir)
    try:
        return find_spec(text.partition(":")[0]) is not None
    except (ImportError, ValueError):  # a parent that is no package
        return False


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
    try:
        found = getattr(importlib.import_module(module), name)
    except AttributeError:
        raise ModelError(
            f"{where}: module {module!r} has no {name!r}; correct the name after the colon."
        ) from None
    except Exception as error:
        raise ModelError(
            f"{where}: cannot import {module!r} ({type(error).__name__}: {clip(str(error))}); it "
            f"is looked for {LOOKED_FOR}."
        ) from error
    if not callable(found):
        raise ModelError(f"{where}: {text!r} is {show(found)}, expected a function or a class.")
    return found  # type: ignore[no-any-return]


def made_at(text: str, where: str, kind: type, *arguments: Any) -> Any:
    """What a function of the user's own makes, which must be of a kind."""
    try:
        found = at_place(text, where)(*arguments)
    except FsmdpError:
        raise
    except Exception as error:
        raise ModelError(
            f"{where}: {text!r} failed ({type(error).__name__}: {clip(str(error))}); correct it."
        ) from error
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

    def build(told: Told, given: Options) -> Learner:
        known: Mapping[str, Any] = {"seed": told.seed, "known_rewards": told.known_rewards}
        asked = {name: known[name] for name in TOLD if name in parameters}
        return make(told.structure, **asked, **given)  # type: ignore[no-any-return]

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
