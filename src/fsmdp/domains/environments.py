"""The domains as registered Gymnasium environments: gymnasium.make("fsmdp/SysAdmin-v0")."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import ModuleType

    from fsmdp.simulation.environment import FactoredEnv

ENVIRONMENTS: dict[str, dict[str, Any]] = {
    "fsmdp/SysAdmin-v0": {"domain": "sysadmin"},
    "fsmdp/Gridworld-v0": {"domain": "gridworld"},
    "fsmdp/Influence-v0": {"domain": "influence"},
    "fsmdp/ExogenousBlock-v0": {"domain": "exogenous-block"},
    "fsmdp/Maintenance-v0": {"domain": "maintenance"},
    # Gymnasium's checker takes an episode of one step for a mistake.
    "fsmdp/PropositionOne-v0": {"domain": "proposition-1", "horizon": 2},
    "fsmdp/Random-v0": {"domain": "random"},
}


def register(gymnasium: ModuleType) -> None:
    """Tell Gymnasium of every domain; called when it is imported."""
    for identifier, options in ENVIRONMENTS.items():
        gymnasium.register(
            identifier,
            entry_point="fsmdp.domains.environments:make_domain_env",
            kwargs=options,
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
