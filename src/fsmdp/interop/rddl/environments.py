"""RDDL problems as registered Gymnasium environments: make("rddl/NAME-v0", instance=1)."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from fsmdp.interop.rddl.sources import repository

if TYPE_CHECKING:
    from types import ModuleType

    from fsmdp.simulation.environment import FactoredEnv

ENTRY = "fsmdp.interop.rddl.environments:make_problem_env"


def register_problems(gymnasium: ModuleType) -> None:
    """Tell Gymnasium of every domain of rddlrepository, if it is installed, and of files.

    Names are read from the repository's folders; a problem is read when it is made.
    """
    names: dict[str, dict[str, str]] = {"fsmdp/RDDL-v0": {}}
    if find_spec("rddlrepository") is not None:
        names |= {
            f"rddl/{name}-v0": {"domain": name, "instance": listing.instances[0]}
            for name, listing in repository().items()
            if listing.instances
        }
    for name, options in names.items():
        if name not in gymnasium.registry:
            gymnasium.register(name, entry_point=ENTRY, kwargs=options)


def make_problem_env(
    domain: str, instance: str | int, render_mode: str | None = None, **options: Any
) -> FactoredEnv:
    """The environment of a problem, by names or paths of files; options are those of `load`."""
    from fsmdp.interop.rddl.loading import load
    from fsmdp.simulation.environment import make_env

    return make_env(load(domain, instance, **options), render_mode)
