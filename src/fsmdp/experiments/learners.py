"""Learners by name, with the options that a specification or the command line can set."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from fsmdp.domains.registry import NUMBER, Kind
from fsmdp.errors import ModelError
from fsmdp.experiments.catalog import BASES, read_basis
from fsmdp.experiments.specification import Option
from fsmdp.foundation.checks import show, suggest

if TYPE_CHECKING:
    from fsmdp.learning.learners.learner import Learner
    from fsmdp.model.basis import Basis
    from fsmdp.model.mdp import FactoredMDP

Options = Mapping[str, Any]
Build = Callable[["FactoredMDP", "Basis", Options, int], "Learner"]


@dataclass(frozen=True, slots=True, eq=False)
class LearnerEntry:
    """A learner: what it is called, the kind and default of each option, and how it is built.

    `build` takes the model, a basis, all options and a seed. A default of None stands for
    something that only the model or another option can tell.
    """

    name: str
    title: str
    description: str
    options: Mapping[str, tuple[Kind, Option]]
    build: Build


def _choice(*words: str) -> Kind:
    def read(text: str) -> str:
        if text not in words:
            raise ValueError(text)
        return text

    return Kind(f"one of {', '.join(words)}", read)


def _read_switch(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError(text)
    return text == "true"


def _read_positive(text: str) -> float:
    number = NUMBER.read(text)
    assert isinstance(number, float)
    if number <= 0:
        raise ValueError(text)
    return number


def _read_probability(text: str) -> float:
    number = _read_positive(text)
    if number >= 1:
        raise ValueError(text)
    return number


def _read_replan(text: str) -> str | float:
    if text == "episode":
        return text
    return 0.0 if re.fullmatch(r"0(\.0*)?", text) else _read_positive(text)


SWITCH = Kind("true or false", _read_switch)
POSITIVE = Kind("a number above 0", _read_positive)
PROBABILITY = Kind("a probability between 0 and 1", _read_probability)
REPLAN = Kind("'episode', or the growth of a cell that calls for a plan (0.5: half)", _read_replan)
BASIS = _choice(*BASES)

KNOWN: dict[str, tuple[Kind, Option]] = {"known_rewards": (SWITCH, False)}
OWN_BASIS: dict[str, tuple[Kind, Option]] = {"basis": (BASIS, None)}
OPTIMISM: dict[str, tuple[Kind, Option]] = {"delta": (PROBABILITY, 0.05), "scale": (POSITIVE, 1.0)}


def _told(model: FactoredMDP, basis: Basis, options: Options) -> Any:
    """The structure that a learner is told, with its own basis if it has one."""
    own = options.get("basis")
    return model.structure(basis if own is None else read_basis(model, own))


def _known(model: FactoredMDP, options: Options) -> Any:
    return model.rewards if options["known_rewards"] else None


def _ucrl(model: FactoredMDP, basis: Basis, options: Options, seed: int) -> Learner:
    from fsmdp.learning.learners.ucrl import UCRLFactored

    passed = {n: options[n] for n in ("preset", "confidence", "replan", "method", "delta", "scale")}
    return UCRLFactored(
        _told(model, basis, options), seed=seed, known_rewards=_known(model, options), **passed
    )


def _psrl(model: FactoredMDP, basis: Basis, options: Options, seed: int) -> Learner:
    from fsmdp.learning.learners.psrl import PSRLFactored

    return PSRLFactored(
        _told(model, basis, options),
        seed,
        prior=options["prior"],
        replan=options["replan"],
        known_rewards=_known(model, options),
    )


def _plan(model: FactoredMDP, basis: Basis, options: Options, _: int) -> Learner:
    from fsmdp.learning.learners.baselines.fixed import FixedPolicy
    from fsmdp.planning.auto import plan

    structure = _told(model, basis, options)
    found = plan(model, structure.basis, options["method"])
    return FixedPolicy(structure, found, label=f"plan of the known model, {options['method']}")


def _optimal(model: FactoredMDP, basis: Basis, _: Options, __: int) -> Learner:
    from fsmdp.learning.learners.baselines.fixed import FixedPolicy
    from fsmdp.model.flat import solve_exactly

    return FixedPolicy(model.structure(basis), solve_exactly(model), label="exact optimum")


def _random(model: FactoredMDP, basis: Basis, _: Options, __: int) -> Learner:
    from fsmdp.learning.learners.baselines.fixed import RandomLearner

    return RandomLearner(model.structure(basis))


def _ucbvi(model: FactoredMDP, basis: Basis, options: Options, seed: int) -> Learner:
    from fsmdp.learning.learners.baselines.ucbvi import UCBVI

    passed = {name: options[name] for name in ("bonus", "delta", "scale")}
    return UCBVI(model.structure(basis), seed=seed, known_rewards=_known(model, options), **passed)


def _tabular_psrl(model: FactoredMDP, basis: Basis, options: Options, seed: int) -> Learner:
    from fsmdp.learning.learners.baselines.psrl import TabularPSRL

    known = _known(model, options)
    return TabularPSRL(model.structure(basis), seed, prior=options["prior"], known_rewards=known)


def _ucrl2(model: FactoredMDP, basis: Basis, options: Options, seed: int) -> Learner:
    from fsmdp.learning.learners.baselines.ucrl2 import UCRL2

    return UCRL2(
        model.structure(basis),
        options["delta"],
        seed,
        scale=options["scale"],
        known_rewards=_known(model, options),
    )


def _ucrl_product(model: FactoredMDP, basis: Basis, options: Options, seed: int) -> Learner:
    from fsmdp.learning.learners.baselines.product import UCRLProduct

    return UCRLProduct(
        _told(model, basis, options),
        options["delta"],
        seed,
        scale=options["scale"],
        known_rewards=_known(model, options),
    )


def _lsvi(model: FactoredMDP, basis: Basis, options: Options, seed: int) -> Learner:
    from fsmdp.learning.learners.baselines.features import action_features, one_hot_features
    from fsmdp.learning.learners.baselines.lsvi import LSVIUCB

    structure = _told(model, basis, options)
    made = {"basis": action_features, "one-hot": one_hot_features}[options["features"]]
    return LSVIUCB(
        structure,
        made(structure),
        options["delta"],
        seed,
        scale=options["scale"],
        known_rewards=_known(model, options),
    )


_ALL = (
    LearnerEntry(
        "ucrl",
        "UCRL-Factored",
        "optimism over confidence sets, the paper's algorithm",
        {
            "preset": (_choice("paper", "practical"), "practical"),
            "confidence": (_choice("weissman", "hoeffding", "bernstein"), None),
            "method": (_choice("stagewise", "joint"), None),
            "replan": (REPLAN, None),
            **OPTIMISM,
            **OWN_BASIS,
            **KNOWN,
        },
        _ucrl,
    ),
    LearnerEntry(
        "psrl",
        "PSRL-Factored",
        "posterior sampling, cell by cell",
        {"prior": (POSITIVE, 1.0), "replan": (REPLAN, "episode"), **OWN_BASIS, **KNOWN},
        _psrl,
    ),
    LearnerEntry(
        "plan",
        "known-model plan",
        "follows the plan of the known model and learns nothing",
        {
            "method": (_choice("auto", "stagewise", "joint", "cutting-planes"), "auto"),
            **OWN_BASIS,
        },
        _plan,
    ),
    LearnerEntry(
        "optimal",
        "exact optimum",
        "follows the optimal policy; small models only",
        {},
        _optimal,
    ),
    LearnerEntry("random", "random actions", "every action with the same chance", {}, _random),
    LearnerEntry(
        "ucbvi",
        "UCBVI",
        "value iteration with bonuses over all states; small models only",
        {"bonus": (_choice("hoeffding", "bernstein"), "bernstein"), **OPTIMISM, **KNOWN},
        _ucbvi,
    ),
    LearnerEntry(
        "tabular-psrl",
        "tabular PSRL",
        "posterior sampling over all states; small models only",
        {"prior": (POSITIVE, None), **KNOWN},
        _tabular_psrl,
    ),
    LearnerEntry(
        "ucrl2",
        "UCRL2",
        "optimism over balls around all transition rows; small models only",
        {**OPTIMISM, **KNOWN},
        _ucrl2,
    ),
    LearnerEntry(
        "ucrl-product",
        "UCRL-Factored, product form",
        "optimism over products of transitions; small models only",
        {**OPTIMISM, **OWN_BASIS, **KNOWN},
        _ucrl_product,
    ),
    LearnerEntry(
        "lsvi-ucb",
        "LSVI-UCB",
        "least squares on features of state and action; small models only",
        {"features": (_choice("basis", "one-hot"), "basis"), **OPTIMISM, **OWN_BASIS, **KNOWN},
        _lsvi,
    ),
)

LEARNERS: Mapping[str, LearnerEntry] = MappingProxyType({entry.name: entry for entry in _ALL})


def find_learner(name: object, where: str) -> LearnerEntry:
    """The learner of a name; a ModelError with the closest name otherwise."""
    if isinstance(name, str) and name in LEARNERS:
        return LEARNERS[name]
    raise ModelError(
        f"{where}: unknown learner {show(name)}; {suggest(str(name), LEARNERS)} "
        f"Learners are {', '.join(LEARNERS)}."
    )


def resolve_options(
    entry: LearnerEntry, given: Mapping[str, object], where: str
) -> dict[str, Option]:
    """All options of a learner: those given, checked, and the defaults of the others."""
    found: dict[str, Option] = {name: default for name, (_, default) in entry.options.items()}
    for name, value in given.items():
        if name not in entry.options:
            allowed = f" Its options are {', '.join(entry.options)}." if entry.options else ""
            hint = suggest(str(name), entry.options) if entry.options else "it has no options"
            raise ModelError(
                f"{where}: learner {entry.name!r} has no option {show(name)}; {hint}{allowed}"
            )
        found[name] = _read(entry.options[name][0], value, f"{where}, option {name!r}")
    if entry.name == "ucrl":
        _fill_from_preset(found)
    return found


def build_learner(
    name: str, model: FactoredMDP, basis: Basis, options: Options, seed: int
) -> Learner:
    """A fresh learner for a model."""
    return find_learner(name, "learner").build(model, basis, options, seed)


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


def _fill_from_preset(options: dict[str, Option]) -> None:
    """Say what a preset stands for, so that results tell which sets and program were used."""
    from fsmdp.learning.learners.factored import EVERY_EPISODE
    from fsmdp.learning.learners.ucrl import PRESETS

    confidence, growth, method = PRESETS[str(options["preset"])]
    replan = "episode" if growth == EVERY_EPISODE else growth
    for name, value in (("confidence", confidence), ("replan", replan), ("method", method)):
        if options[name] is None:
            options[name] = value
