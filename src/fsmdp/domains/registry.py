"""Registry: every domain by name, and models built from text such as `sysadmin:ring:8`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from inspect import signature
from typing import TYPE_CHECKING, Any, Protocol

from fsmdp.errors import ModelError
from fsmdp.foundation.checks import is_number, is_whole, show, suggest
from fsmdp.foundation.kinds import Kind, plain_options
from fsmdp.foundation.registry import Registry
from fsmdp.model.basis import Basis
from fsmdp.model.mdp import FactoredMDP
from fsmdp.model.tables import Floats

if TYPE_CHECKING:
    from types import ModuleType

    from fsmdp.simulation.environment import FactoredEnv


def register_all(gymnasium: ModuleType) -> None:
    """Tell Gymnasium of every domain; called when it is imported."""

    for domain in DOMAINS.values():
        register_environment(gymnasium, domain)


def register_environment(gymnasium: ModuleType, domain: Domain) -> None:
    """Tell Gymnasium of a domain, unless it knows it already or the domain names no environment."""
    if domain.environment is not None and domain.environment not in gymnasium.registry:
        gymnasium.register(
            domain.environment,
            entry_point="fsmdp.domains.registry:make_domain_env",
            kwargs={"domain": domain.name, **domain.environment_options},
        )


def make_domain_env(domain: str, render_mode: str | None = None, **options: Any) -> FactoredEnv:
    """The environment of a domain built with the given options."""
    from fsmdp.simulation.environment import make_env

    build = DOMAINS[domain].build
    known = signature(build).parameters
    for name in options:
        if name not in known:
            raise ModelError(
                f"domain {domain!r}: unknown option {show(name)}; expected one of "
                f"{', '.join(known)}."
            )
    return make_env(build(**options), render_mode)


@dataclass(frozen=True, slots=True, eq=False)
class Domain:
    """A family of models: its builder, and the options that text can set.

    Options are declared by the annotations of the builder's signature: types, or Annotated with a
    kind. `options` adds what a signature cannot declare. The first `positional` options may be
    given without their names. `start_value` takes the same options and gives the best expected
    return in closed form, where there is one. `environment` is the name under which Gymnasium makes
    it, with `environment_options` unless others are given.
    """

    name: str
    build: Callable[..., FactoredMDP]
    summary: str
    options: Mapping[str, Kind] = field(default_factory=dict)
    positional: int = 0
    start_value: Callable[..., float] | None = None
    environment: str | None = None
    environment_options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", {**plain_options(self.build), **self.options})


class Realizable(Protocol):
    """Parameters of a model whose V* is linear in a basis, with known weights."""

    def model(self) -> FactoredMDP:
        """The model."""
        ...

    def basis(self, model: FactoredMDP) -> Basis:
        """The basis that V* is linear in."""
        ...

    def optimal_weights(self) -> Floats:
        """Weights of V*, by step."""
        ...


def realizable_start_value(family: Callable[..., Realizable]) -> Callable[..., float]:
    """V*_1 of the first state, from the weights of V* in a basis where it is linear."""

    def start_value(**options: object) -> float:
        parameters = family(**options)
        model = parameters.model()
        start = [int(value) for value in model.initial]
        features = parameters.basis(model).evaluate(start)
        return float(features @ parameters.optimal_weights()[0])

    return start_value


DOMAINS: Registry[Domain] = Registry("domain", entries=Domain)


def register(domain: Domain) -> Domain:
    """Add a domain, which text such as `name:8` then builds; to Gymnasium too, if it says so."""
    DOMAINS.add(domain)
    gymnasium = sys.modules.get("gymnasium")
    if gymnasium is not None and hasattr(gymnasium, "registry"):
        register_environment(gymnasium, domain)
    return domain


def build_domain(text: str) -> FactoredMDP:
    """The model that text describes: `name:value:...:option=value:...`.

    `sysadmin:ring:8`, `sysadmin:8:ring` and `sysadmin:machines=8:topology=ring:horizon=20` are
    all understood: a value without a name goes to the domain's first option that is still free
    and can read it.
    """
    domain, values = _parse(text)
    return domain.build(**values)


def start_value_of_domain(text: str) -> float | None:
    """The best expected return of the model that text describes, if there is a closed form."""
    domain, values = _parse(text)
    return None if domain.start_value is None else domain.start_value(**values)


def _parse(text: str) -> tuple[Domain, dict[str, object]]:
    if not isinstance(text, str):
        raise ModelError(
            f"domain: expected text such as 'sysadmin:ring:8', found {type(text).__name__}; "
            "give a string, or call the domain's function."
        )
    name, *parts = text.split(":")
    domain = DOMAINS.find(name)
    values: dict[str, object] = {}
    for part in parts:
        option, separator, value = part.partition("=")
        if separator:
            _read_named(domain, option, value, values)
        else:
            _read_positional(domain, part, values)
    return domain, values


def _read_named(domain: Domain, option: str, text: str, values: dict[str, object]) -> None:
    if option not in domain.options:
        raise ModelError(
            f"domain {domain.name!r}: unknown option {show(option)}; "
            f"{suggest(option, domain.options)}"
        )
    if option in values:
        raise ModelError(
            f"domain {domain.name!r}: option {option!r} is given twice, as {show(values[option])} "
            f"and as {show(text)}; expected once, remove one."
        )
    kind = domain.options[option]
    try:
        values[option] = kind.read(text)
    except ValueError:
        raise ModelError(
            f"domain {domain.name!r}, option {option!r}: expected {kind.description}, found "
            f"{show(text)}; correct the value."
        ) from None


def _read_positional(domain: Domain, text: str, values: dict[str, object]) -> None:
    unnamed = list(domain.options)[: domain.positional]
    free = [option for option in unnamed if option not in values]
    for option in free:
        try:
            values[option] = domain.options[option].read(text)
        except ValueError:
            continue
        return
    if free:
        wanted = " or ".join(f"{option} ({domain.options[option].description})" for option in free)
        raise ModelError(
            f"domain {domain.name!r}: expected {wanted}, found {show(text)}; correct the value, or "
            f"write option=value with one of {', '.join(domain.options)}."
        )
    raise ModelError(
        f"domain {domain.name!r}: {show(text)} is one value too many, expected at most "
        f"{len(unnamed)} without a name ({', '.join(unnamed)}); write option=value with one of "
        f"{', '.join(domain.options)}."
    )


def check_whole(domain: str, name: str, value: object, least: int, most: int | None = None) -> None:
    """Refuse anything but a whole number of at least `least` and at most `most`."""
    if is_whole(value):
        if value >= least and (most is None or value <= most):
            return
        remedy = f"use {least} or more" if value < least else f"use {most} or fewer"
    else:
        remedy = f"give {name} as an integer"
    span = f"of at least {least}" if most is None else f"from {least} to {most}"
    raise ModelError(
        f"{domain}: {name} is {show(value)}, expected a whole number {span}; {remedy}."
    )


def check_probability(domain: str, name: str, value: object) -> None:
    """Refuse anything but a number from 0 to 1."""
    # The comparison also refuses NaN.
    if is_number(value) and 0 <= value <= 1:
        return
    raise ModelError(
        f"{domain}: {name} is {show(value)}, expected a probability from 0 to 1; correct it."
    )


def check_switch(domain: str, name: str, value: object) -> None:
    """Refuse anything but True and False."""
    if not isinstance(value, bool):
        raise ModelError(f"{domain}: {name} is {show(value)}, expected True or False; correct it.")
