"""The domains as registered Gymnasium environments: gymnasium.make("fsmdp/SysAdmin-v0")."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import ModuleType

    from fsmdp.domains.registry import Domain
    from fsmdp.simulation.environment import FactoredEnv


def register_all(gymnasium: ModuleType) -> None:
    """Tell Gymnasium of every domain; called when it is imported."""
    from fsmdp.domains.registry import DOMAINS

    for domain in DOMAINS.values():
        register_environment(gymnasium, domain)


def register_environment(gymnasium: ModuleType, domain: Domain) -> None:
    """Tell Gymnasium of a domain, unless it knows it already or the domain names no environment."""
    if domain.environment is not None and domain.environment not in gymnasium.registry:
        gymnasium.register(
            domain.environment,
            entry_point="fsmdp.domains.environments:make_domain_env",
            kwargs={"domain": domain.name, **domain.environment_options},
        )


def make_domain_env(domain: str, render_mode: str | None = None, **options: Any) -> FactoredEnv:
    """The environment of a domain built with the given options."""
    from inspect import signature

    from fsmdp.domains.registry import DOMAINS
    from fsmdp.errors import ModelError
    from fsmdp.foundation.checks import show
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
