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
    from fsmdp.domains.registry import DOMAINS
    from fsmdp.simulation.environment import make_env

    return make_env(DOMAINS[domain].build(**options), render_mode)
