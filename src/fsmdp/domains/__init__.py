"""Domains: families of models, each there for a property of its own."""

from fsmdp.domains.exogenous import ExogenousBlock, exogenous_basis, exogenous_block
from fsmdp.domains.gridworld import gridworld
from fsmdp.domains.influence import Influence, influence
from fsmdp.domains.maintenance import maintenance
from fsmdp.domains.proposition import proposition_one
from fsmdp.domains.random import random_model
from fsmdp.domains.registry import DOMAINS, Domain, build_domain
from fsmdp.domains.sysadmin import sysadmin

__all__ = [
    "DOMAINS",
    "Domain",
    "ExogenousBlock",
    "Influence",
    "build_domain",
    "exogenous_basis",
    "exogenous_block",
    "gridworld",
    "influence",
    "maintenance",
    "proposition_one",
    "random_model",
    "sysadmin",
]
