"""Learners of specifications and the command line: options as text, and how they are built."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fsmdp.errors import ModelError
from fsmdp.experiments.catalog import BASES, read_basis
from fsmdp.experiments.specification import Option
from fsmdp.foundation.checks import show, suggest
from fsmdp.foundation.kinds import SWITCH, Kind, OneOf
from fsmdp.learning.learners.registry import LEARNERS, LearnerEntry, Told

if TYPE_CHECKING:
    from fsmdp.learning.learners.learner import Learner
    from fsmdp.model.basis import Basis
    from fsmdp.model.mdp import FactoredMDP
    from fsmdp.policies.resolve import Policy


def options_of(entry: LearnerEntry) -> dict[str, tuple[Kind, Option]]:
    """Kind and default of each option: a learner's own, then what it may be told."""
    options = dict(entry.options)
    if entry.uses_basis:
        options["basis"] = (OneOf(BASES), None)
    if entry.takes_rewards:
        options["known_rewards"] = (SWITCH, False)
    return options


def resolve_options(
    entry: LearnerEntry, given: Mapping[str, object], where: str
) -> dict[str, Option]:
    """All options of a learner: those given, checked, and the defaults of the others."""
    options = options_of(entry)
    found: dict[str, Option] = {name: default for name, (_, default) in options.items()}
    for name, value in given.items():
        if name not in options:
            allowed = f" Its options are {', '.join(options)}." if options else ""
            hint = suggest(str(name), options) if options else "it has no options"
            raise ModelError(
                f"{where}: learner {entry.name!r} has no option {show(name)}; {hint}{allowed}"
            )
        found[name] = _read(options[name][0], value, f"{where}, option {name!r}")
    return dict(entry.complete(found))


def build_learner(
    name: str, model: FactoredMDP, basis: Basis, options: Mapping[str, Any], seed: int
) -> Learner:
    """A fresh learner for a model."""
    entry = LEARNERS.find(name, "learner")
    own_basis = options.get("basis")
    structure = model.structure(basis if own_basis is None else read_basis(model, own_basis))
    rewards = model.rewards if options.get("known_rewards") else None
    told = Told(structure, rewards, seed, lambda how: _solve(model, structure.basis, how))
    return entry.build(told, {option: options[option] for option in entry.options})


def _solve(model: FactoredMDP, basis: Basis, how: str) -> Policy:
    """A policy of the known model, for those that learn nothing."""
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
