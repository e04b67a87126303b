"""Learners of specifications and the command line: options as text, and how they are built."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, NoReturn

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import show, suggest
from fsmdp.foundation.kinds import NUMBER, SWITCH, WHOLE, Kind, Reading
from fsmdp.io.readers import (
    BASES,
    IMPORT_PATH,
    call_function,
    import_function,
    is_import_path,
    is_written,
    make_from,
    module_hint,
    read_basis,
)
from fsmdp.learning.learners.learner import Learner, check_learner
from fsmdp.learning.learners.registry import LEARNERS, LearnerContext, LearnerEntry, Options, Value
from fsmdp.model.structure import Structure

if TYPE_CHECKING:
    import gymnasium

    from fsmdp.model.basis import Basis
    from fsmdp.model.mdp import FactoredMDP
    from fsmdp.policies.resolve import Policy


GIVEN = ("seed", "known_rewards")
"""What a function that makes a learner is given by name, if it has such parameters."""

TEXT = Reading("text", str)


@dataclass(frozen=True, slots=True, eq=False)
class Simulator:
    """An environment with no model behind it, and the structure that learners are given."""

    environment: gymnasium.Env[Any, Any]
    given_structure: Structure

    def structure(self, _basis: None = None) -> Structure:
        """What learners are given; its basis is its own."""
        return self.given_structure

    @property
    def rewards(self) -> NoReturn:
        """Known to nobody."""
        raise ModelError(
            "known_rewards: an environment does not say what its rewards are; leave it out, or "
            "build them into a learner of your own."
        )


def _read_basis_text(text: str) -> str:
    is_file = is_written(text) or text.endswith(".json")
    if text in BASES or is_file or IMPORT_PATH.fullmatch(text):
        return text
    raise ValueError(text)


def basis_text() -> Kind:
    """A basis by its name, its file or an import path."""
    names = ", ".join(BASES)
    return Reading(f"one of {names}, a JSON file or my_module:function", _read_basis_text)


def options_of(entry: LearnerEntry) -> dict[str, tuple[Kind, Value]]:
    """Kind and default of each option: a learner's own, then what it may be given."""
    options = dict(entry.options)
    if entry.uses_basis:
        options["basis"] = (basis_text(), None)
    if entry.takes_rewards:
        options["known_rewards"] = (SWITCH, False)
    return options


def resolve_options(
    entry: LearnerEntry, given: Mapping[str, object], where: str
) -> dict[str, Value]:
    """All options of a learner: those given, checked, and the defaults of the others."""
    options = options_of(entry)
    found: dict[str, Value] = {name: default for name, (_, default) in options.items()}
    for name, value in given.items():
        if name not in options:
            hint = suggest(str(name), options) if options else "it has no options."
            if hint.endswith("?"):
                hint += f" Its options are {', '.join(options)}."
            raise ModelError(f"{where}: learner {entry.name!r} has no option {show(name)}; {hint}")
        found[name] = _read(options[name][0], value, f"{where}, option {name!r}")
    return dict(entry.complete(found))


def completed_options(learner: str, options: Mapping[str, Value]) -> dict[str, Value]:
    """Options as an earlier release filled them in, with what it did of those that came later.

    As they are, where the learner or a value that it was given is no longer known.
    """
    try:
        entry = find_learner(learner, "learner")
        defaults = {name: default for name, (_, default) in options_of(entry).items()}
        completed = entry.complete({**defaults, **entry.before, **options})
    except (ModelError, KeyError, TypeError):
        return dict(options)
    return {**{name: completed[name] for name in defaults}, **options}


def build_learner(
    name: str,
    model: FactoredMDP | Simulator,
    basis: Basis | None,
    options: Mapping[str, Any],
    seed: int,
) -> Learner:
    """A fresh learner for a model, or for an environment, whose structure has the basis."""
    entry = find_learner(name, "learner")
    own_basis = options.get("basis")
    if own_basis is not None and isinstance(model, Simulator):
        raise ModelError(
            "basis: the structure of an environment has its own, found another; leave it out."
        )
    found: Any = basis if own_basis is None else read_basis(model, own_basis)
    structure = model.structure(found)
    rewards = model.rewards if options.get("known_rewards") else None
    context = LearnerContext(
        structure, rewards, seed, lambda how: _solve(model, structure.basis, how)
    )
    return entry.build(context, {option: options[option] for option in entry.options})


def _solve(model: FactoredMDP | Simulator, basis: Basis, how: str) -> Policy:
    """A policy of the known model, for those that learn nothing."""
    if isinstance(model, Simulator):
        raise ModelError(
            "a policy of the known model was asked for, found an environment, whose model nobody "
            "knows; use a learner that learns."
        )
    if how == "exact":
        from fsmdp.exact.solve import solve_exactly

        return solve_exactly(model)
    from fsmdp.solver.plan import plan

    return plan(model, basis, how)


def _read(kind: Kind, value: object, where: str) -> Any:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    try:
        if not isinstance(value, str | bool | int | float):
            raise ValueError(text)
        return kind.read(text)
    except ValueError:
        raise ModelError(
            f"{where}: expected {kind.description}, found {show(value)}; correct it."
        ) from None


def make_simulator(environment: str, structure: str, where: str) -> Simulator:
    """The environment and the structure of two functions."""
    import gymnasium

    return Simulator(
        make_from(environment, f"{where}, environment", gymnasium.Env),
        make_from(structure, f"{where}, structure", Structure),
    )


def find_learner(name: object, where: str) -> LearnerEntry:
    """A learner that is registered, or made by a function of the user's own."""
    if isinstance(name, str) and name not in LEARNERS and is_import_path(name):
        return _own_learner(name, where)
    return LEARNERS.find(name, where, module_hint(name))


def _own_learner(text: str, where: str) -> LearnerEntry:
    """An entry for a function: its parameters with defaults are the options."""
    make = import_function(text, where)
    parameters = signature(make).parameters
    if not parameters:
        raise ModelError(f"{where}: {text!r} takes no arguments, expected the structure first.")
    _, *others = parameters
    options: dict[str, tuple[Kind, Value]] = {}
    for name in others:
        default = parameters[name].default
        if name in GIVEN or parameters[name].kind is Parameter.VAR_KEYWORD:
            continue
        if default is Parameter.empty:
            raise ModelError(
                f"{where}: parameter {name!r} of {text!r} has no default, expected one for every "
                f"option (only the structure, {' and '.join(GIVEN)} are given); give it one."
            )
        options[name] = (_kind_of(default), default)

    def build(context: LearnerContext, given: Options) -> Learner:
        known: Mapping[str, Any] = {"seed": context.seed, "known_rewards": context.known_rewards}
        asked = {name: known[name] for name in GIVEN if name in parameters}
        learner: Learner = call_function(text, where, make, context.structure, **asked, **given)
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
