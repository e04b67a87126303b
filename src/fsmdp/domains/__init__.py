"""Domains: families of models, each there for a property of its own."""

from fsmdp.domains.influence import Influence, influence
from fsmdp.domains.sysadmin import sysadmin

__all__ = [
    "Influence",
    "influence",
    "sysadmin",
]
